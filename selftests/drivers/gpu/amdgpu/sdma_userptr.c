// SPDX-License-Identifier: GPL-2.0
/*
 * SDMA batches on user pointers: memory of the process, which may lose its
 * pages at any time. A batch reads and writes the pages that the process has,
 * or the call fails and says why.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "../../../kselftest_harness.h"
#include "sdma_hold.h"
#include "sdma_kfd.h"
#include "sdma_mover.h"

#define SIZE		(1 * MIB)
#define PAGE		4096
#define VRAM_VA		(1024 * MIB)
#define USER_VA		(VRAM_VA + 16 * MIB)
#define OTHER_VA	(VRAM_VA + 32 * MIB)

FIXTURE(userptr)
{
	struct gpu gpu;
	struct kfd kfd;
	bool by_kfd;
	struct buffer vram;
	struct buffer user;	/* a user pointer, of GEM or KFD */
	struct buffer other;
	uint64_t last;		/* KFD's handle of the last one */
	uint8_t *want;
	unsigned int seed;
};

static uint8_t *anonymous(void *at)
{
	return mmap(at, SIZE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);
}

FIXTURE_VARIANT(userptr)
{
	bool kfd;
};

FIXTURE_VARIANT_ADD(userptr, gem) { };
FIXTURE_VARIANT_ADD(userptr, kfd) { .kfd = true, };

static int kfd_new(struct kfd *kfd, struct buffer *u, uint32_t flags,
		   uint64_t *handle)
{
	uint32_t kfd_flags = KFD_IOC_ALLOC_MEM_FLAGS_USERPTR;
	uint64_t addr = (uintptr_t)u->cpu;
	int ret;

	if (!(flags & AMDGPU_GEM_USERPTR_READONLY))
		kfd_flags |= KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE;
	ret = kfd_alloc(kfd, u->va, SIZE, kfd_flags, &addr, handle);
	return ret ? ret : kfd_map(kfd, *handle);
}

/* A user pointer to memory that exists, or to new memory. */
static int user_new(struct _test_data_userptr *self, struct buffer *u,
		    uint64_t va, uint32_t flags)
{
	if (!self->by_kfd)
		return buffer_user(&self->gpu, u, SIZE, va, flags);
	if (!u->cpu)
		u->cpu = anonymous(NULL);
	if (u->cpu == MAP_FAILED)
		return -errno;
	u->va = va;
	return kfd_new(&self->kfd, u, flags, &self->last);
}

FIXTURE_SETUP(userptr)
{
	self->seed = 1;
	if (gpu_open(&self->gpu, 0))
		SKIP(return, "no GPU with SDMA batches");
	if (!(self->gpu.info.features & AMDGPU_SDMA_FEATURE_USERPTR))
		SKIP(return, "no user pointers");
	self->by_kfd = variant->kfd;
	if (self->by_kfd && kfd_open(&self->kfd, &self->gpu))
		SKIP(return, "the compute driver does not have this GPU");
	ASSERT_EQ(0, buffer_map(&self->gpu, &self->vram, SIZE,
				AMDGPU_GEM_DOMAIN_VRAM, VRAM_VA));
	ASSERT_EQ(0, user_new(self, &self->user, USER_VA,
			      AMDGPU_GEM_USERPTR_REGISTER));
	self->want = malloc(SIZE);
	ASSERT_NE(NULL, self->want);
	randomize(self->want, SIZE, &self->seed);
	memset(self->vram.cpu, 0, SIZE);
}

FIXTURE_TEARDOWN(userptr)
{
	if (self->gpu.fd >= 0)
		close(self->gpu.fd);
	free(self->want);
}

/* Makes one copy and waits. @index: of the descriptor at fault. */
static int copy(struct _test_data_userptr *self, uint64_t src, uint64_t dst,
		uint64_t size, uint32_t *index)
{
	const struct drm_amdgpu_sdma_desc d[] = {
		fill_desc(VRAM_VA + SIZE - 4096, 4, 0),
		copy_desc(src, dst, size),
	};
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, 2);
	int ret = batch_run(&self->gpu, &batch);

	if (index)
		*index = batch.error_index;
	return ret;
}

#define LEN	(SIZE - 4096)

static int copy_in(struct _test_data_userptr *self)
{
	return copy(self, VRAM_VA, USER_VA, LEN, NULL);
}

static int copy_out(struct _test_data_userptr *self)
{
	return copy(self, USER_VA, VRAM_VA, LEN, NULL);
}

TEST_F(userptr, source)
{
	memcpy(self->user.cpu, self->want, SIZE);
	ASSERT_EQ(0, copy_out(self));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
	/* the same pages, which need not be looked up again */
	self->user.cpu[0] ^= 1;
	ASSERT_EQ(0, copy_out(self));
	EXPECT_EQ(self->want[0] ^ 1, self->vram.cpu[0]);
}

TEST_F(userptr, destination)
{
	memcpy(self->vram.cpu, self->want, SIZE);
	memset(self->user.cpu + LEN, 0x11, SIZE - LEN);
	ASSERT_EQ(0, copy_in(self));
	EXPECT_EQ(0, memcmp(self->user.cpu, self->want, LEN));
	EXPECT_EQ(0x11, self->user.cpu[LEN]);
	EXPECT_EQ(0x11, self->user.cpu[SIZE - 1]);
}

/* Copies and swaps between two user pointers, at odd places. */
TEST_F(userptr, two)
{
	const struct drm_amdgpu_sdma_desc d[] = {
		copy_desc(USER_VA + 3, OTHER_VA + 77, 300000),
		swap_desc(USER_VA + 512 * KIB, OTHER_VA + 512 * KIB, 64 * KIB),
		fill_desc(OTHER_VA + SIZE - 4096, 4096, 0x7e7e7e7e),
	};
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, 3);

	ASSERT_EQ(0, user_new(self, &self->other, OTHER_VA,
			      AMDGPU_GEM_USERPTR_REGISTER |
			      AMDGPU_GEM_USERPTR_ANONONLY |
			      AMDGPU_GEM_USERPTR_VALIDATE));
	memcpy(self->user.cpu, self->want, SIZE);
	memset(self->other.cpu, 0x22, SIZE);
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	EXPECT_EQ(0x22, self->other.cpu[76]);
	EXPECT_EQ(0, memcmp(self->other.cpu + 77, self->want + 3, 300000));
	EXPECT_EQ(0x22, self->other.cpu[77 + 300000]);
	EXPECT_EQ(0, memcmp(self->other.cpu + 512 * KIB,
			    self->want + 512 * KIB, 64 * KIB));
	EXPECT_EQ(0x22, self->user.cpu[512 * KIB]);
	EXPECT_EQ(0x22, self->user.cpu[576 * KIB - 1]);
	EXPECT_EQ(0x7e, self->other.cpu[SIZE - 1]);
}

/* A user pointer that was registered for reading. */
TEST_F(userptr, read_only)
{
	uint32_t index;

	ASSERT_EQ(0, user_new(self, &self->other, OTHER_VA,
			      AMDGPU_GEM_USERPTR_REGISTER |
			      AMDGPU_GEM_USERPTR_READONLY));
	memcpy(self->other.cpu, self->want, SIZE);
	/* the compute driver still wants memory that can be written */
	if (!variant->kfd)
		ASSERT_EQ(0, mprotect(self->other.cpu, SIZE, PROT_READ));
	EXPECT_EQ(0, copy(self, OTHER_VA, VRAM_VA, LEN, NULL));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
	memset(self->vram.cpu, 0, SIZE);
	EXPECT_EQ(-EACCES, copy(self, VRAM_VA, OTHER_VA, LEN, &index));
	EXPECT_EQ(1, index);
	EXPECT_EQ(0, memcmp(self->other.cpu, self->want, SIZE));
}

/* Memory that becomes read-only, and then writable again. */
TEST_F(userptr, protected)
{
	uint32_t index;

	memcpy(self->user.cpu, self->want, SIZE);
	ASSERT_EQ(0, copy_out(self));
	ASSERT_EQ(0, mprotect(self->user.cpu, SIZE, PROT_READ));
	memset(self->vram.cpu, 0, SIZE);
	EXPECT_EQ(-EACCES, copy(self, VRAM_VA, USER_VA, LEN, &index));
	EXPECT_EQ(1, index);
	EXPECT_EQ(0, memcmp(self->user.cpu, self->want, SIZE));
	ASSERT_EQ(0, mprotect(self->user.cpu, SIZE, PROT_READ | PROT_WRITE));
	EXPECT_EQ(0, copy_in(self));
	EXPECT_EQ(0, self->user.cpu[0]);
}

/* Protected memory does not keep KFD from bringing back other memory. */
TEST_F(userptr, beside_protected)
{
	ASSERT_EQ(0, user_new(self, &self->other, OTHER_VA,
			      AMDGPU_GEM_USERPTR_REGISTER));
	memcpy(self->other.cpu, self->want, SIZE);
	ASSERT_EQ(0, copy(self, OTHER_VA, VRAM_VA, LEN, NULL));
	ASSERT_EQ(0, mprotect(self->user.cpu, SIZE, PROT_READ));
	/* its worker sees that one before the other */
	usleep(100000);
	ASSERT_EQ(0, madvise(self->other.cpu, SIZE, MADV_DONTNEED));
	memset(self->other.cpu, 0x55, SIZE);
	ASSERT_EQ(0, copy(self, OTHER_VA, VRAM_VA, LEN, NULL));
	EXPECT_EQ(0x55, self->vram.cpu[0]);
	EXPECT_EQ(0x55, self->vram.cpu[LEN - 1]);
}

/* Memory that is unmapped, and then mapped again with other pages. */
TEST_F(userptr, unmapped)
{
	uint32_t index;

	memcpy(self->user.cpu, self->want, SIZE);
	ASSERT_EQ(0, copy_out(self));
	ASSERT_EQ(0, munmap(self->user.cpu, SIZE));
	memset(self->vram.cpu, 0x33, SIZE);
	EXPECT_EQ(-EFAULT, copy(self, USER_VA, VRAM_VA, LEN, &index));
	EXPECT_EQ(1, index);
	EXPECT_EQ(0x33, self->vram.cpu[0]);
	/* the compute driver has tried to get the pages, too, and failed */
	usleep(100000);
	ASSERT_EQ(self->user.cpu, anonymous(self->user.cpu));
	memset(self->user.cpu, 0x44, SIZE);
	ASSERT_EQ(0, copy_out(self));
	EXPECT_EQ(0x44, self->vram.cpu[0]);
	EXPECT_EQ(0x44, self->vram.cpu[LEN - 1]);
}

/* Half of it is unmapped: all of it is refused, whatever the batch reads. */
TEST_F(userptr, half_unmapped)
{
	ASSERT_EQ(0, munmap(self->user.cpu + SIZE / 2, SIZE / 2));
	EXPECT_EQ(-EFAULT, copy(self, USER_VA, VRAM_VA, PAGE, NULL));
}

TEST_F(userptr, replaced)
{
	unsigned int round;

	for (round = 0; round < 20; round++) {
		ASSERT_EQ(self->user.cpu, anonymous(self->user.cpu));
		randomize(self->want, SIZE, &self->seed);
		memcpy(self->user.cpu, self->want, SIZE);
		ASSERT_EQ(0, copy_out(self));
		ASSERT_EQ(0, memcmp(self->vram.cpu, self->want, LEN))
			TH_LOG("round %u", round);
		ASSERT_EQ(0, madvise(self->user.cpu, SIZE, MADV_DONTNEED));
		ASSERT_EQ(0, copy_in(self));
		ASSERT_EQ(0, memcmp(self->user.cpu, self->want, LEN))
			TH_LOG("round %u", round);
	}
}

/* A user pointer to memory of a file. */
TEST_F(userptr, file_memory)
{
	int fd = memfd_create("userptr", 0);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ftruncate(fd, SIZE));
	self->other.cpu = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
			       fd, 0);
	ASSERT_NE(MAP_FAILED, self->other.cpu);
	ASSERT_EQ(0, user_new(self, &self->other, OTHER_VA,
			      AMDGPU_GEM_USERPTR_REGISTER));
	memcpy(self->vram.cpu, self->want, SIZE);
	ASSERT_EQ(0, copy(self, VRAM_VA, OTHER_VA, LEN, NULL));
	/* read through the file, not through the mapping */
	memset(self->want, 0, LEN);
	ASSERT_EQ(LEN, pread(fd, self->want, LEN, 0));
	EXPECT_EQ(0, memcmp(self->want, self->other.cpu, LEN));
	EXPECT_EQ(0, memcmp(self->want, self->vram.cpu, LEN - 4096));
	/* pages that were truncated are lost */
	ASSERT_EQ(0, ftruncate(fd, 0));
	EXPECT_EQ(-EFAULT, copy(self, VRAM_VA, OTHER_VA, PAGE, NULL));
	close(fd);
}

/* Pages that a child shares are copied before they are written to. */
TEST_F(userptr, fork)
{
	int go[2], status;
	pid_t child;
	char c;

	memcpy(self->user.cpu, self->want, SIZE);
	ASSERT_EQ(0, copy_out(self));
	ASSERT_EQ(0, pipe(go));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		close(go[1]);
		/* the user pointer belongs to its parent */
		if (copy_out(self) != -EPERM)
			_exit(3);
		if (read(go[0], &c, 1))
			_exit(2);
		_exit(!!memcmp(self->user.cpu, self->want, SIZE));
	}
	memset(self->vram.cpu, 0x55, SIZE);
	ASSERT_EQ(0, copy_in(self));
	EXPECT_EQ(0x55, self->user.cpu[0]);
	EXPECT_EQ(0x55, self->user.cpu[LEN - 1]);
	close(go[1]);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
}

static bool first_thread_is_there(void)
{
	char path[64], stat[64] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", getpid());
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return false;
	if (read(fd, stat, sizeof(stat) - 1) < 0)
		stat[0] = 0;
	close(fd);
	return !strstr(stat, ") Z");
}

/* The first thread of the process has exited: pages cannot be brought back. */
static void *copy_alone(void *arg)
{
	struct _test_data_userptr *self = arg;

	alarm(60);
	while (first_thread_is_there())
		usleep(1000);
	if (madvise(self->user.cpu, SIZE, MADV_DONTNEED))
		_exit(2);
	_exit(copy_out(self) == -ENODEV ? 0 : 3);
}

static void leave_to_thread(struct _test_data_userptr *self)
{
	pthread_t thread;

	self->user.cpu = NULL;
	if (gpu_open(&self->gpu, 0) || kfd_open(&self->kfd, &self->gpu) ||
	    buffer_map(&self->gpu, &self->vram, SIZE, AMDGPU_GEM_DOMAIN_VRAM,
		       VRAM_VA) ||
	    user_new(self, &self->user, USER_VA, 0) || copy_out(self) ||
	    pthread_create(&thread, NULL, copy_alone, self))
		_exit(1);
	pthread_exit(NULL);
}

TEST_F_TIMEOUT(userptr, first_thread_gone, 100)
{
	int status;
	pid_t child;

	if (!self->by_kfd)
		SKIP(return, "these have no worker");
	child = fork();
	ASSERT_LE(0, child);
	if (!child)
		leave_to_thread(self);
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_EQ(0, WEXITSTATUS(status));
}

/* Prepared once, a batch finds the current pages in each run. */
TEST_F(userptr, prepared)
{
	const struct drm_amdgpu_sdma_desc d = copy_desc(USER_VA, VRAM_VA, LEN);
	unsigned int round;
	uint32_t h;

	memset(self->user.cpu, 0, SIZE);
	ASSERT_EQ(0, prepare(&self->gpu, &d, 1, &h));
	for (round = 0; round < 10; round++) {
		randomize(self->want, SIZE, &self->seed);
		if (round % 2)
			ASSERT_EQ(self->user.cpu, anonymous(self->user.cpu));
		memcpy(self->user.cpu, self->want, SIZE);
		ASSERT_EQ(0, run_prepared(&self->gpu, h));
		ASSERT_EQ(0, memcmp(self->vram.cpu, self->want, LEN))
			TH_LOG("round %u", round);
	}
	ASSERT_EQ(0, munmap(self->user.cpu, SIZE));
	EXPECT_EQ(-EFAULT, run_prepared(&self->gpu, h));
	ASSERT_EQ(self->user.cpu, anonymous(self->user.cpu));
	EXPECT_EQ(0, run_prepared(&self->gpu, h));
	EXPECT_EQ(0, self->vram.cpu[0]);
}

/* A thread that takes away the pages of the user pointer. */
struct taker {
	struct _test_data_userptr *self;
	int ret;
	bool done;
};

static void *unmap(void *arg)
{
	struct taker *t = arg;

	munmap(t->self->user.cpu, SIZE);
	__atomic_store_n(&t->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* The thread waits for the batch that uses them. */
static void taken_while_used(struct __test_metadata *_metadata,
			     struct _test_data_userptr *self,
			     void *(*take)(void *arg))
{
	const struct drm_amdgpu_sdma_desc d = copy_desc(USER_VA, VRAM_VA, LEN);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	struct taker t = { .self = self };
	struct hold hold;
	uint32_t timeline;
	pthread_t thread;

	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold batches back with");
	memcpy(self->user.cpu, self->want, SIZE);
	ASSERT_EQ(0, syncobj_new(&self->gpu, &timeline));
	hold_batch(&hold, &batch);
	ASSERT_EQ(0, batch_submit_to(&self->gpu, &batch, timeline, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, take, &t));
	usleep(200000);
	EXPECT_FALSE(__atomic_load_n(&t.done, __ATOMIC_ACQUIRE));
	hold_release(&hold);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, t.ret);
	EXPECT_EQ(0, syncobj_wait(&self->gpu, timeline, 1, WAIT_SECONDS));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
}

TEST_F(userptr, unmapped_while_used)
{
	taken_while_used(_metadata, self, unmap);
}

/* Frees the user pointer; after that, the process has the memory for itself. */
static int user_free(struct _test_data_userptr *self)
{
	struct drm_gem_close arg = { .handle = self->user.handle };
	int ret;

	if (!self->by_kfd)
		return gpu_ioctl(&self->gpu, DRM_IOCTL_GEM_CLOSE, &arg);
	ret = kfd_unmap(&self->kfd, self->last);
	return ret ? ret : kfd_free_memory(&self->kfd, self->last);
}

static void *close_and_unmap(void *arg)
{
	struct taker *t = arg;

	t->ret = user_free(t->self);
	return unmap(arg);
}

/* The user pointer is freed first. */
TEST_F(userptr, closed_while_used)
{
	taken_while_used(_metadata, self, close_and_unmap);
}

static void on_alarm(int sig)
{
}

/*
 * A signal ends the wait for a batch before the page tables are updated: the
 * memory is then still mapped, and is not freed.
 */
TEST_F(userptr, unmapping_interrupted)
{
	const struct drm_amdgpu_sdma_desc d = copy_desc(USER_VA, VRAM_VA, LEN);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	const struct itimerval soon = { .it_value.tv_usec = 100000 };
	struct sigaction action = { .sa_handler = on_alarm };
	struct hold hold;
	uint32_t timeline;

	if (!variant->kfd)
		SKIP(return, "GEM's unmapping does not wait");
	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold batches back with");
	memcpy(self->user.cpu, self->want, SIZE);
	ASSERT_EQ(0, syncobj_new(&self->gpu, &timeline));
	hold_batch(&hold, &batch);
	ASSERT_EQ(0, batch_submit_to(&self->gpu, &batch, timeline, 1));
	ASSERT_EQ(0, sigaction(SIGALRM, &action, NULL));
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &soon, NULL));
	EXPECT_EQ(-EINTR, kfd_unmap(&self->kfd, self->last));
	EXPECT_EQ(-EBUSY, kfd_free_memory(&self->kfd, self->last));
	hold_release(&hold);
	EXPECT_EQ(0, syncobj_wait(&self->gpu, timeline, 1, WAIT_SECONDS));
	EXPECT_EQ(0, user_free(self));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
}

/* With NONBLOCK, pages are still looked up, but no call waits for room. */
TEST_F_TIMEOUT(userptr, nonblock, 200)
{
	const struct drm_amdgpu_sdma_desc d = copy_desc(USER_VA, VRAM_VA, LEN),
		other = fill_desc(VRAM_VA + SIZE - PAGE, 4, 0);
	struct drm_amdgpu_sdma_batch many = batch_of(&self->gpu, &other, 1);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	struct hold hold;

	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold batches back with");
	batch.flags = AMDGPU_SDMA_BATCH_NONBLOCK;
	memcpy(self->user.cpu, self->want, SIZE);
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
	memset(self->vram.cpu, 0, SIZE);
	batch = batch_of(&self->gpu, &d, 1);
	batch.flags = AMDGPU_SDMA_BATCH_NONBLOCK;
	EXPECT_LT(0, hold_many(&self->gpu, &hold, &many));
	EXPECT_EQ(-EAGAIN, answer_now(&self->gpu, &hold, &batch));
	EXPECT_EQ(AMDGPU_SDMA_ERROR_NONE, batch.error_array);
	EXPECT_EQ(AMDGPU_SDMA_NO_INDEX, batch.error_index);
	EXPECT_EQ(0, batch.engines_used);
	hold_release(&hold);
	/* a call that may wait does so until there is room again */
	EXPECT_EQ(0, batch_run(&self->gpu, &many));
	EXPECT_TRUE(all_are(self->vram.cpu, LEN, 0));
	EXPECT_EQ(0, batch_run(&self->gpu, &batch));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, LEN));
}

/* While many batches run, the user pointer gets other pages. */
struct pages {
	struct _test_data_userptr *self;
	uint8_t *new;
};

static int new_pages(struct mover *m)
{
	struct pages *p = m->data;

	p->new = anonymous(NULL);
	if (p->new == MAP_FAILED)
		return -errno;
	memset(p->new, MOVER_NEW, SIZE);
	return 0;
}

static int replace_pages(struct mover *m)
{
	struct pages *p = m->data;
	uint8_t *at = p->self->user.cpu, *old = anonymous(NULL);
	int ret;

	if (old == MAP_FAILED ||
	    mremap(at, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, old) != old ||
	    mremap(p->new, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, at) != at)
		return -errno;
	ret = mover_check_old(m, old, SIZE);
	munmap(old, SIZE);
	return ret;
}

TEST_F_TIMEOUT(userptr, moved_all_the_time, 280)
{
	struct pages pages = { .self = self };
	struct mover m = {
		.gpu = &self->gpu, .prepare = new_pages, .move = replace_pages,
		.data = &pages, .part = LEN / MOVER_PARTS, .seed = 1,
	};
	unsigned int round;

	memset(self->user.cpu, MOVER_NEW, SIZE);
	ASSERT_EQ(0, mover_start(&m, USER_VA, VRAM_VA));
	for (round = 0; round < 400 && !m.error; round++) {
		ASSERT_EQ(0, mover_copy(&m, USER_VA, VRAM_VA));
		ASSERT_TRUE(all_are(self->vram.cpu, LEN, MOVER_NEW))
			TH_LOG("round %u", round);
		/* writes what is there already: a reader sees no change */
		ASSERT_EQ(0, mover_copy(&m, VRAM_VA, USER_VA));
	}
	mover_stop(&m);
	TH_LOG("%u moves in batches of %u us", m.moves, m.batch_us);
	EXPECT_EQ(0, m.error);
	EXPECT_LT(10, m.moves);
}

TEST_HARNESS_MAIN
