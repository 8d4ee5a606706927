// SPDX-License-Identifier: GPL-2.0
/*
 * SDMA batches on SVM memory that changes meanwhile: it is unmapped, protected,
 * migrated, registered anew or lost in a reset. A change waits for the batches
 * that use the memory, and for no others. Their results are right, or an error.
 */
#include <sys/wait.h>

#include "../../../rdma/loop_swap.h"
#include "sdma_evict.h"
#include "sdma_svm_fault.h"

/* Ways to take away memory that a batch uses. */
struct taker {
	pthread_t thread;
	struct _test_data_svm *self;
	void (*take)(struct _test_data_svm *self);
	bool done;
};

static void take_by_munmap(struct _test_data_svm *self)
{
	munmap(self->at, SIZE);
}

static void take_by_madvise(struct _test_data_svm *self)
{
	madvise(self->at + MIB, PAGE, MADV_DONTNEED);
}

static void take_by_mprotect(struct _test_data_svm *self)
{
	mprotect(self->at, SIZE, PROT_NONE);
}

static void take_by_migration(struct _test_data_svm *self)
{
	svm_prefetch(&self->svm, self->at, SIZE, &self->svm.gpu[0]);
}

static void take_by_touch(struct _test_data_svm *self)
{
	*(volatile uint8_t *)(self->at + 2 * MIB);
}

static void take_by_attribute(struct _test_data_svm *self)
{
	const struct kfd_ioctl_svm_attribute attr = {
		KFD_IOCTL_SVM_ATTR_NO_ACCESS, self->kfd.id
	};

	svm_set(&self->svm, self->at, SIZE, &attr, 1);
}

/* Maps it anew, with other flags. */
static void take_by_remap(struct _test_data_svm *self)
{
	const struct kfd_ioctl_svm_attribute attr = {
		KFD_IOCTL_SVM_ATTR_SET_FLAGS, KFD_IOCTL_SVM_FLAG_GPU_EXEC
	};

	svm_set(&self->svm, self->at, SIZE, &attr, 1);
}

static void take_by_split(struct _test_data_svm *self)
{
	const struct kfd_ioctl_svm_attribute attr = {
		KFD_IOCTL_SVM_ATTR_GRANULARITY, 5
	};

	svm_set(&self->svm, self->at + MIB, MIB, &attr, 1);
}

/* More than once, as a page may be busy; it is in swap at least briefly. */
static void take_by_pageout(struct _test_data_svm *self)
{
	uint8_t *at = self->at + MIB;
	unsigned int tries;

	for (tries = 0; tries < 100 && !count_swapped(at, 16 * PAGE); tries++)
		madvise(at, 16 * PAGE, MADV_PAGEOUT);
}

static void *take(void *arg)
{
	struct taker *t = arg;

	t->take(t->self);
	__atomic_store_n(&t->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* One taker, or two at once: the second waits too. */
static void takers_wait(struct __test_metadata *_metadata,
			struct _test_data_svm *self,
			void (*first)(struct _test_data_svm *self),
			void (*second)(struct _test_data_svm *self))
{
	struct taker t[] = {
		{ .self = self, .take = first },
		{ .self = self, .take = second },
	};
	struct hold hold;
	uint32_t timeline;
	unsigned int i;

	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold batches back with");
	ASSERT_EQ(0, hold_desc(self, &hold,
			       copy_desc(va(self->at), VRAM_VA, LEN),
			       &timeline));
	for (i = 0; i < 2 && t[i].take; i++) {
		ASSERT_EQ(0, pthread_create(&t[i].thread, NULL, take, &t[i]));
		usleep(200000);
	}
	for (i = 0; i < 2 && t[i].take; i++)
		EXPECT_FALSE(__atomic_load_n(&t[i].done, __ATOMIC_ACQUIRE));
	hold_release(&hold);
	for (i = 0; i < 2 && t[i].take; i++)
		ASSERT_EQ(0, pthread_join(t[i].thread, NULL));
	EXPECT_EQ(0, syncobj_wait(&self->gpu, timeline, 1, WAIT_SECONDS));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
}

TEST_F(svm, munmap_waits)
{
	memcpy(self->at, self->want, SIZE);
	takers_wait(_metadata, self, take_by_munmap, NULL);
}

TEST_F(svm, mprotect_waits)
{
	memcpy(self->at, self->want, SIZE);
	takers_wait(_metadata, self, take_by_mprotect, NULL);
}

TEST_F(svm, migration_waits)
{
	memcpy(self->at, self->want, SIZE);
	takers_wait(_metadata, self, take_by_migration, NULL);
}

TEST_F(svm, attribute_waits)
{
	memcpy(self->at, self->want, SIZE);
	takers_wait(_metadata, self, take_by_attribute, NULL);
}

TEST_F(svm, remap_waits)
{
	memcpy(self->at, self->want, SIZE);
	takers_wait(_metadata, self, take_by_remap, NULL);
}

TEST_F(svm, split_waits)
{
	memcpy(self->at, self->want, SIZE);
	takers_wait(_metadata, self, take_by_split, NULL);
}

TEST_F(svm, two_wait)
{
	memcpy(self->at, self->want, SIZE);
	takers_wait(_metadata, self, take_by_madvise, take_by_madvise);
}

TEST_F(svm, pageout_waits)
{
	struct loop_swap swap;

	stay_on_this_cpu();
	if (loop_swap_open(&swap))
		SKIP(return, "no swap: it takes root, and the loop module");
	self->at = svm_map(SIZE);
	ASSERT_NE(NULL, self->at);
	ASSERT_EQ(0, madvise(self->at, SIZE, MADV_NOHUGEPAGE));
	memcpy(self->at, self->want, SIZE);
	ASSERT_EQ(0, svm_access(&self->svm, self->at, SIZE,
				&self->svm.gpu[0]));
	takers_wait(_metadata, self, take_by_pageout, NULL);
	EXPECT_EQ(0, memcmp(self->at, self->want, SIZE));
	loop_swap_close(&swap);
}

/* Video memory that the CPU accesses. */
TEST_F(svm, touch_waits)
{
	memcpy(self->at, self->want, SIZE);
	ASSERT_EQ(0, send_away(self));
	takers_wait(_metadata, self, take_by_touch, NULL);
}

static void take_by_eviction(struct _test_data_svm *self)
{
	struct evict e;
	int tries;

	if (evict_open(&e))
		return;
	for (tries = 0; tries < 1000 && svm_away(&self->svm, self->at, SIZE);
	     tries++)
		usleep(10000);
	evict_close(&e);
}

static int wait_for_migration(int watch)
{
	int tries, seen = 0;

	for (tries = 0; tries < 2000 && !seen; tries++) {
		usleep(10000);
		seen = svm_migrations(watch);
	}
	return seen;
}

/* Video memory that is evicted: the move has begun, and waits for the batch. */
TEST_F_TIMEOUT(svm, eviction_waits, 120)
{
	struct taker t = { .self = self, .take = take_by_eviction };
	struct hold hold;
	uint32_t timeline;
	int watch;

	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold batches back with");
	if (gpu_too_many(&self->gpu, EVICT_SIZE) > EVICT_MOST / 2)
		SKIP(return, "too much video memory");
	memcpy(self->at, self->want, SIZE);
	ASSERT_EQ(0, send_away(self));
	watch = svm_watch(&self->svm, &self->svm.gpu[0]);
	ASSERT_LE(0, watch);
	ASSERT_EQ(0, hold_desc(self, &hold,
			       copy_desc(va(self->at), VRAM_VA, LEN),
			       &timeline));
	ASSERT_EQ(0, pthread_create(&t.thread, NULL, take, &t));
	EXPECT_LT(0, wait_for_migration(watch));
	usleep(200000);
	EXPECT_EQ(0, svm_here(&self->svm, self->at, SIZE));
	hold_release(&hold);
	ASSERT_EQ(0, pthread_join(t.thread, NULL));
	EXPECT_EQ(0, svm_away(&self->svm, self->at, SIZE));
	EXPECT_EQ(0, syncobj_wait(&self->gpu, timeline, 1, WAIT_SECONDS));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
	close(watch);
}

struct release {
	bool asked;
	bool done;
};

/*
 * Releases the batch from another process: threads of a process that forks may
 * have to wait until the fork is done.
 */
static pid_t release_later(struct hold *hold, struct release *release)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	while (!__atomic_load_n(&release->asked, __ATOMIC_ACQUIRE))
		usleep(10000);
	usleep(2000000);
	__atomic_store_n(&release->done, true, __ATOMIC_RELEASE);
	hold_release(hold);
	_exit(0);
}

/* A child gets the memory as it is at one moment: not what is written later. */
TEST_F(svm, fork_waits)
{
	const struct drm_amdgpu_sdma_desc d =
		faulting(copy_desc(VRAM_VA, va(self->at), LEN));
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	struct release *release;
	pid_t releaser, child;
	struct hold hold;
	int status;

	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold batches back with");
	release = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)release);
	memcpy(self->vram.cpu, self->want, SIZE);
	hold_batch(&hold, &batch);
	releaser = release_later(&hold, release);
	ASSERT_LT(0, releaser);
	ASSERT_EQ(0, batch_submit(&self->gpu, &batch));
	__atomic_store_n(&release->asked, true, __ATOMIC_RELEASE);
	child = fork();
	if (!child)
		_exit(!!memcmp(self->at, self->want, LEN));
	ASSERT_LT(0, child);
	EXPECT_TRUE(__atomic_load_n(&release->done, __ATOMIC_ACQUIRE));
	EXPECT_EQ(0, memcmp(self->at, self->want, LEN));
	EXPECT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(releaser, waitpid(releaser, &status, 0));
}

/* Memory in a linked GPU: the CPU accesses it, or it migrates to this GPU. */
TEST_F(svm, linked_touch_waits)
{
	struct gpu peer;
	int ret;

	memcpy(self->at, self->want, SIZE);
	ret = send_to_linked(self, &peer);
	if (ret == -ENODEV)
		SKIP(return, "no other GPU is linked");
	ASSERT_EQ(0, ret);
	takers_wait(_metadata, self, take_by_touch, NULL);
	close(peer.fd);
}

TEST_F(svm, linked_migration_waits)
{
	struct gpu peer;
	int ret;

	memcpy(self->at, self->want, SIZE);
	ret = send_to_linked(self, &peer);
	if (ret == -ENODEV)
		SKIP(return, "no other GPU is linked");
	ASSERT_EQ(0, ret);
	takers_wait(_metadata, self, take_by_migration, NULL);
	close(peer.fd);
}

static void *map_behind_fence(void *arg)
{
	struct helper *h = arg;
	struct drm_amdgpu_gem_va va_arg = {
		.handle = h->buffer->handle,
		.operation = AMDGPU_VA_OP_MAP,
		.flags = GPU_RW,
		.va_address = va(h->self->at),
		.map_size = SIZE,
		.num_syncobj_handles = 1,
		.input_fence_syncobj_handles = (uintptr_t)&h->fence,
	};

	done(h, gpu_ioctl(&h->self->gpu, DRM_IOCTL_AMDGPU_GEM_VA, &va_arg));
	return NULL;
}

/* While a buffer's mapping waits, SVM memory is registered in its place. */
TEST_F(svm, buffer_after_its_fence)
{
	struct buffer buffer;
	struct helper h = { .self = self, .buffer = &buffer };
	struct hold hold;

	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold a mapping back with");
	/* Keeps its place reserved: the thread's stack would fit there. */
	ASSERT_EQ(self->at, mmap(self->at, SIZE, PROT_NONE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
				 0));
	ASSERT_EQ(0, buffer_new(&self->gpu, &buffer, SIZE,
				AMDGPU_GEM_DOMAIN_VRAM));
	h.fence = hold.in.handle;
	ASSERT_EQ(0, pthread_create(&h.thread, NULL, map_behind_fence, &h));
	usleep(200000);
	EXPECT_FALSE(is_done(&h));
	ASSERT_EQ(self->at, mmap(self->at, SIZE, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
				 0));
	memcpy(self->at, self->want, SIZE);
	ASSERT_EQ(0, svm_access(&self->svm, self->at, SIZE,
				&self->svm.gpu[0]));
	ASSERT_EQ(0, copy_out(self));
	hold_release(&hold);
	ASSERT_EQ(0, pthread_join(h.thread, NULL));
	EXPECT_EQ(-EADDRINUSE, h.ret);
	memset(self->vram.cpu, 0, SIZE);
	ASSERT_EQ(0, copy_out(self));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
}

/*
 * Memory that a batch uses becomes part of a smaller range. Page faults of the
 * process do not wait for the batch meanwhile: it may be waiting for them.
 */
TEST_F(svm, faults_do_not_wait)
{
	struct helper h = { .self = self };
	struct hold hold;
	uint32_t timeline;

	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold batches back with");
	memcpy(self->at, self->want, SIZE);
	ASSERT_EQ(0, hold_page(self, &hold, &timeline));
	ASSERT_EQ(0, munmap(self->at + SIZE - PAGE, PAGE));
	usleep(200000);
	ASSERT_EQ(0, pthread_create(&h.thread, NULL, touch_new_memory, &h));
	EXPECT_TRUE(wait_done(&h, 5));
	hold_release(&hold);
	ASSERT_EQ(0, pthread_join(h.thread, NULL));
	EXPECT_EQ(0, h.ret);
	EXPECT_EQ(0, syncobj_wait(&self->gpu, timeline, 1, WAIT_SECONDS));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, PAGE));
}

/* A process that is killed keeps its memory until its batches have ended. */
static int submit_and_die(struct _test_data_svm *self, int timeline)
{
	struct drm_amdgpu_sdma_desc d = copy_desc(0, VRAM_VA, LEN);
	struct _test_data_svm child = { .kfd.fd = -1 };
	struct drm_amdgpu_sdma_batch batch;
	struct hold hold;

	if (gpu_open(&child.gpu, 0) || kfd_open(&child.kfd, &child.gpu))
		return 1;
	child.svm = svm_of(&child.kfd, &child.gpu);
	if (buffer_map(&child.gpu, &child.vram, SIZE, AMDGPU_GEM_DOMAIN_VRAM,
		       VRAM_VA) ||
	    svm_new(&child.svm, &child.at, SIZE) ||
	    hold_open_on(&child.gpu, &hold, timeline))
		return 2;
	d.src = va(child.at);
	batch = batch_of(&child.gpu, &d, 1);
	hold_batch(&hold, &batch);
	return batch_submit(&child.gpu, &batch) ? 3 : 0;
}

TEST_F(svm, killed_waits)
{
	struct hold hold;
	int status;
	pid_t child;

	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold batches back with");
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		status = submit_and_die(self, hold.timeline);
		if (status)
			_exit(status);
		kill(getpid(), SIGKILL);
	}
	sleep(2);
	EXPECT_EQ(0, waitpid(child, &status, WNOHANG));
	hold_release(&hold);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status)) TH_LOG("%#x", status);
}

/* Memory that a reset has lost is an error; the rest is mapped anew. */
TEST_F_TIMEOUT(svm, lost_in_reset, 120)
{
	uint8_t *here;
	uint32_t index;
	int lost;

	memcpy(self->at, self->want, SIZE);
	ASSERT_EQ(0, send_away(self));
	ASSERT_EQ(0, copy_out(self));
	ASSERT_EQ(0, svm_new(&self->svm, &here, SIZE));
	memcpy(here, self->want, SIZE);
	ASSERT_EQ(0, copy(self, va(here), VRAM_VA, LEN));
	ASSERT_EQ(0, reset_gpu(self->gpu.name));
	EXPECT_EQ(-ECANCELED, copy(self, va(here), VRAM_VA, LEN));
	ASSERT_EQ(0, gpu_context(&self->gpu, &self->gpu.ctx));
	memset(self->vram.cpu, 0, SIZE);
	ASSERT_EQ(0, copy(self, va(here), VRAM_VA, LEN));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
	lost = copy_flags(self, va(self->at), VRAM_VA, LEN,
			  AMDGPU_SDMA_DESC_FAULT, &index);
	if (lost) {
		EXPECT_EQ(-EIO, lost);
		EXPECT_EQ(1, index);
		EXPECT_EQ(0, svm_look(self->at, SIZE, 0));
	} else {
		EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
	}
}

/* Linked GPUs are reset together, and all of them lose their memory. */
static void lose_linked(struct __test_metadata *_metadata,
			struct _test_data_svm *self, unsigned int which)
{
	char gpus[MAX_GPUS][32];
	struct gpu peer;
	int ret;

	memcpy(self->at, self->want, SIZE);
	ret = send_to_linked(self, &peer);
	if (ret == -ENODEV)
		SKIP(return, "no other GPU is linked");
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, copy_out(self));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
	ASSERT_LT(which, find_gpus(gpus));
	ASSERT_EQ(0, reset_gpu(gpus[which]));
	/* -EIO, or -ECANCELED if the memory survives */
	EXPECT_NE(0, copy_out(self));
	ASSERT_EQ(0, gpu_context(&self->gpu, &self->gpu.ctx));
	memset(self->vram.cpu, 0, SIZE);
	ret = copy_flags(self, va(self->at), VRAM_VA, LEN,
			 AMDGPU_SDMA_DESC_FAULT, NULL);
	if (ret) {
		EXPECT_EQ(-EIO, ret);
		EXPECT_EQ(0, svm_look(self->at, SIZE, 0));
	} else {
		EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
	}
	close(peer.fd);
}

TEST_F_TIMEOUT(svm, lost_in_reset_of_this, 120)
{
	lose_linked(_metadata, self, 0);
}

TEST_F_TIMEOUT(svm, lost_in_reset_of_linked, 120)
{
	lose_linked(_metadata, self, 1);
}

TEST_HARNESS_MAIN
