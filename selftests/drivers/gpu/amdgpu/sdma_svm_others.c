// SPDX-License-Identifier: GPL-2.0
/*
 * One handler serves the retry faults of all processes of a GPU. Here a process
 * has a held batch, whatever else it does waits for that batch, and one of its
 * queues faults: queues of another process go on.
 */
#include <sys/wait.h>

#include "sdma_cs.h"
#include "sdma_svm_fault.h"

/* How often the other process copies: the first time sets up all it needs. */
#define ROUNDS	2

/*
 * Another process: copies on request, and answers. Its memory is not beside
 * what it has from its parent, and shares no lock with that.
 */
static void be_another(int in, int out)
{
	struct _test_data_svm other = { .kfd.fd = -1 };
	struct svm_queue queue;
	uint8_t *from, *to;
	unsigned int i;
	char word = 0;

	if (gpu_open(&other.gpu, 0) || kfd_open(&other.kfd, &other.gpu) ||
	    svm_enable_xnack(other.kfd.fd))
		_exit(1);
	other.svm = svm_of(&other.kfd, &other.gpu);
	if (queue_open(&other, &queue))
		_exit(2);
	from = svm_map(HUGE_SIZE);
	to = svm_map(HUGE_SIZE);
	if (!from || !to || madvise(from, HUGE_SIZE, MADV_DONTFORK) ||
	    madvise(to, HUGE_SIZE, MADV_DONTFORK))
		_exit(3);
	for (i = 0; i < ROUNDS; i++) {
		if (read(in, &word, 1) != 1)
			_exit(4);
		from[i * PAGE] = i + 1;
		if (svm_queue_copy(&queue, from + i * PAGE, to + i * PAGE,
				   PAGE) || to[i * PAGE] != i + 1)
			_exit(5);
		if (write(out, &word, 1) != 1)
			_exit(6);
	}
	_exit(0);
}

/* Returns its pid, or a negative errno. */
static pid_t start_another(int out[2], int in[2])
{
	pid_t child;

	if (pipe(out) || pipe(in))
		return -errno;
	child = fork();
	if (!child) {
		close(out[1]);
		close(in[0]);
		be_another(out[0], in[1]);
	}
	close(out[0]);
	close(in[1]);
	return child;
}

static bool another_copies(int out, int in, unsigned int seconds)
{
	struct pollfd p = { .fd = in, .events = POLLIN };
	char word = 0;

	return write(out, &word, 1) == 1 &&
	       poll(&p, 1, seconds * 1000) == 1 && read(in, &word, 1) == 1;
}

/* What the process does in a thread beside its queue: waits for the batch. */
static void *do_nothing(void *arg)
{
	done(arg, 0);
	return NULL;
}

static void *unmap_page(void *arg)
{
	struct helper *h = arg;

	done(h, munmap(h->self->at, PAGE));
	return NULL;
}

static void *register_page(void *arg)
{
	const struct kfd_ioctl_svm_attribute attr = {
		KFD_IOCTL_SVM_ATTR_SET_FLAGS, KFD_IOCTL_SVM_FLAG_GPU_EXEC
	};
	struct helper *h = arg;

	done(h, svm_set(&h->self->svm, h->self->at, PAGE, &attr, 1));
	return NULL;
}

/* A later mapping makes the CPU clear unmapped entries, after the batch. */
static void *unmap_buffer(void *arg)
{
	struct helper *h = arg;

	done(h, buffer_va(&h->self->gpu, h->buffer, AMDGPU_VA_OP_UNMAP,
			  h->buffer->va, AMDGPU_VM_DELAY_UPDATE));
	return NULL;
}

/* The same, and maps the buffer: with the page tables locked. */
static void *map_buffer(void *arg)
{
	struct helper *h = arg;
	int ret = buffer_va(&h->self->gpu, h->buffer, AMDGPU_VA_OP_UNMAP,
			    h->buffer->va, AMDGPU_VM_DELAY_UPDATE);

	done(h, ret ? ret : buffer_va(&h->self->gpu, h->buffer,
				      AMDGPU_VA_OP_MAP, h->buffer->va, GPU_RW));
	return NULL;
}

/* The queue copies @from, which its process has filled with random bytes. */
static void others_go_on(struct __test_metadata *_metadata,
			 struct _test_data_svm *self,
			 const struct _fixture_variant_svm *variant,
			 void *(*beside)(void *helper), uint8_t *from)
{
	struct buffer buffer;
	struct svm_queue queue;
	struct helper b = { .self = self, .buffer = &buffer, };
	int out[2], in[2], status;
	struct hold hold;
	uint32_t timeline, fence;
	pid_t child;

	if (!variant->xnack)
		SKIP(return, "queues do not retry");
	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold batches back with");
	child = start_another(out, in);
	ASSERT_LT(0, child);
	ASSERT_TRUE(another_copies(out[1], in[0], 60));
	ASSERT_EQ(0, buffer_map(&self->gpu, &buffer, MIB, AMDGPU_GEM_DOMAIN_GTT,
				VRAM_VA + 64 * MIB));
	ASSERT_EQ(0, take_away(self));
	memcpy(self->at, self->want, PAGE);
	ASSERT_EQ(0, queue_open(self, &queue));
	ASSERT_EQ(0, svm_queue_copy(&queue, vram_at(2 * MIB), vram_at(MIB),
				    PAGE));
	ASSERT_EQ(0, hold_page(self, &hold, &timeline));
	memcpy(self->at + PAGE, self->want + PAGE, PAGE);
	memcpy(from, self->want + 2 * PAGE, PAGE);
	ASSERT_EQ(0, pthread_create(&b.thread, NULL, beside, &b));
	usleep(300000);
	fence = svm_queue_start_copy(&queue, from, vram_at(MIB), PAGE);
	usleep(500000);
	EXPECT_TRUE(another_copies(out[1], in[0], 10));
	if (beside == do_nothing)
		EXPECT_FALSE(svm_queue_is_at(&queue, fence));
	hold_release(&hold);
	ASSERT_EQ(0, pthread_join(b.thread, NULL));
	EXPECT_EQ(0, b.ret);
	EXPECT_EQ(0, svm_queue_wait(&queue, fence));
	EXPECT_EQ(0, syncobj_wait(&self->gpu, timeline, 1, WAIT_SECONDS));
	EXPECT_EQ(0, memcmp(self->vram.cpu, self->want, PAGE));
	EXPECT_EQ(0, memcmp(self->vram.cpu + MIB, self->want + 2 * PAGE, PAGE));
	if (beside == copy_beside || beside == bring_beside)
		EXPECT_EQ(0, memcmp(self->vram.cpu + PAGE, self->want + PAGE,
				    PAGE));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	queue_close(self, &queue);
}

TEST_F_TIMEOUT(svm, queue_beside, 120)
{
	others_go_on(_metadata, self, variant, do_nothing, self->at + 2 * PAGE);
}

TEST_F_TIMEOUT(svm, another_batch, 120)
{
	others_go_on(_metadata, self, variant, copy_beside, self->at + 2 * PAGE);
}

TEST_F_TIMEOUT(svm, batch_that_brings, 120)
{
	others_go_on(_metadata, self, variant, bring_beside, self->at + 2 * PAGE);
}

TEST_F_TIMEOUT(svm, munmap, 120)
{
	others_go_on(_metadata, self, variant, unmap_page, self->at + HUGE_SIZE);
}

/* Where nothing is registered, a range has to be created for the fault. */
TEST_F_TIMEOUT(svm, new_memory, 120)
{
	others_go_on(_metadata, self, variant, unmap_page, svm_map(HUGE_SIZE));
}

TEST_F_TIMEOUT(svm, registration, 120)
{
	others_go_on(_metadata, self, variant, register_page, self->at + HUGE_SIZE);
}

TEST_F_TIMEOUT(svm, unmapped_buffer, 120)
{
	others_go_on(_metadata, self, variant, unmap_buffer, self->at + HUGE_SIZE);
}

TEST_F_TIMEOUT(svm, mapped_buffer, 120)
{
	others_go_on(_metadata, self, variant, map_buffer, self->at + HUGE_SIZE);
}

/* Holds a job that does nothing, and maps its buffer beforehand. */
static int hold_job(struct _test_data_svm *self, struct hold *hold,
		    struct buffer *ib, uint64_t *job)
{
	uint32_t list;
	int ret = buffer_map(&self->gpu, ib, PAGE, AMDGPU_GEM_DOMAIN_GTT,
			     VRAM_VA + 128 * MIB);

	if (ret)
		return ret;
	memset(ib->cpu, 0, PAGE);
	ret = cs_list(&self->gpu, &ib, 1, &list);
	return ret ? ret : cs_submit(&self->gpu, list, ib->va, 32, hold, job);
}

/*
 * A process that has no batches. A job of AMDGPU_CS is held, and the CPU would
 * clear unmapped entries after it, before it maps memory for the queue.
 */
TEST_F_TIMEOUT(svm, job_without_batches, 120)
{
	struct helper b = { .self = self };
	int out[2], in[2], status;
	struct buffer buffer, ib;
	struct svm_queue queue;
	struct hold hold;
	uint32_t fence;
	uint64_t job;
	pid_t child;

	if (!variant->xnack)
		SKIP(return, "queues do not retry");
	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold jobs back with");
	child = start_another(out, in);
	ASSERT_LT(0, child);
	ASSERT_TRUE(another_copies(out[1], in[0], 60));
	ASSERT_EQ(0, buffer_map(&self->gpu, &buffer, MIB, AMDGPU_GEM_DOMAIN_GTT,
				VRAM_VA + 64 * MIB));
	b.buffer = &buffer;
	ASSERT_EQ(0, take_away(self));
	memcpy(self->at, self->want, PAGE);
	ASSERT_EQ(0, queue_open(self, &queue));
	ASSERT_EQ(0, hold_job(self, &hold, &ib, &job));
	unmap_buffer(&b);
	ASSERT_EQ(0, b.ret);
	fence = svm_queue_start_copy(&queue, self->at, vram_at(MIB), PAGE);
	usleep(500000);
	EXPECT_TRUE(another_copies(out[1], in[0], 10));
	hold_release(&hold);
	EXPECT_EQ(0, svm_queue_wait(&queue, fence));
	EXPECT_EQ(0, cs_wait(&self->gpu, job, WAIT_SECONDS));
	EXPECT_EQ(0, memcmp(self->vram.cpu + MIB, self->want, PAGE));
	ASSERT_EQ(child, waitpid(child, &status, 0));
	EXPECT_EQ(0, status);
	queue_close(self, &queue);
}

TEST_HARNESS_MAIN
