// SPDX-License-Identifier: GPL-2.0
/*
 * SDMA batches through io_uring: when commands complete, and with which result;
 * who submits; chains of file I/O and batches; commands that are refused.
 */
#include <dirent.h>
#include <pthread.h>

#include "sdma_hold.h"
#include "sdma_ring.h"

/* The batch has ended when its command completes. */
TEST_F(uring, batch)
{
	struct drm_amdgpu_sdma_batch batch;
	struct drm_amdgpu_sdma_desc d;
	unsigned int i;

	for (i = 0; i < 32; i++) {
		d = part(i);
		batch = batch_of(&self->gpu, &d, 1);
		ASSERT_EQ(0, run_by(&self->ring, &self->gpu, &batch));
		EXPECT_NE(0, batch.engines_used);
		EXPECT_EQ(AMDGPU_SDMA_NO_INDEX, batch.error_index);
		ASSERT_TRUE(copied(self, i));
	}
}

TEST_F(uring, many_at_once)
{
	struct drm_amdgpu_sdma_batch batch[32];
	struct drm_amdgpu_sdma_desc d[32];
	unsigned int i;

	for (i = 0; i < 32; i++) {
		d[i] = part(i);
		batch[i] = batch_of(&self->gpu, &d[i], 1);
		put_batch(&self->ring, &self->gpu, &batch[i]);
	}
	ASSERT_EQ(32, io_uring_submit(&self->ring));
	for (i = 0; i < 32; i++)
		ASSERT_EQ(0, next_result(&self->ring, NULL));
	for (i = 0; i < 32; i++)
		EXPECT_TRUE(copied(self, i));
}

/* Prepared, run and forgotten by commands; those that run nothing are quick. */
TEST_F(uring, prepared)
{
	struct drm_amdgpu_sdma_desc d = part(0);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	unsigned int i;
	uint32_t h;

	batch.op = AMDGPU_SDMA_BATCH_PREPARE;
	ASSERT_EQ(0, run_by(&self->ring, &self->gpu, &batch));
	h = batch.handle;
	ASSERT_NE(0, h);
	for (i = 0; i < 20; i++) {
		randomize(self->system.cpu, PART, &self->seed);
		batch = run_of(&self->gpu, h);
		ASSERT_EQ(0, run_by(&self->ring, &self->gpu, &batch));
		ASSERT_TRUE(copied(self, 0));
	}
	batch = run_of(&self->gpu, h);
	batch.ctx_id = 0;
	batch.op = AMDGPU_SDMA_BATCH_FORGET;
	ASSERT_EQ(0, run_by(&self->ring, &self->gpu, &batch));
	EXPECT_EQ(-ENOENT, run_by(&self->ring, &self->gpu, &batch));
}

/* Worker threads that io_uring has created for this process. */
static int count_workers(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	int n = 0;

	while (dir && (entry = readdir(dir))) {
		char path[300], comm[32] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm",
			 entry->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		if (fgets(comm, sizeof(comm), f))
			n += !strncmp(comm, "iou-wrk-", 8);
		fclose(f);
	}
	if (dir)
		closedir(dir);
	return n;
}

/* A batch that need not wait is submitted by the caller, without a worker. */
TEST_F(uring, inline)
{
	struct drm_amdgpu_sdma_batch batch;
	struct drm_amdgpu_sdma_desc d;
	unsigned int i;
	uint32_t h;

	/* the first batch of a file makes allocations for it, and may sleep */
	d = part(0);
	batch = batch_of(&self->gpu, &d, 1);
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	ASSERT_EQ(0, prepare(&self->gpu, &d, 1, &h));
	for (i = 0; i < 20; i++) {
		d = part(i);
		batch = i % 2 ? run_of(&self->gpu, h) :
				batch_of(&self->gpu, &d, 1);
		ASSERT_EQ(0, run_by(&self->ring, &self->gpu, &batch));
		EXPECT_NE(0, batch.engines_used);
		ASSERT_TRUE(copied(self, i % 2 ? 0 : i));
	}
	EXPECT_EQ(0, count_workers());
}

/* A call that fails at once needs no worker either. */
TEST_F(uring, inline_error)
{
	struct drm_amdgpu_sdma_desc d = copy_desc(SYSTEM_VA, 512 * MIB, PART);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);

	EXPECT_EQ(-ENOENT, run_by(&self->ring, &self->gpu, &batch));
	EXPECT_EQ(AMDGPU_SDMA_ERROR_DESC, batch.error_array);
	EXPECT_EQ(0, batch.error_index);
	EXPECT_EQ(0, count_workers());
}

/*
 * A batch that has to wait for earlier ones: a worker waits, or with NONBLOCK
 * the command fails.
 */
TEST_F_TIMEOUT(uring, blocks_in_a_worker, 120)
{
	const struct drm_amdgpu_sdma_desc d = part(0);
	struct drm_amdgpu_sdma_batch full = batch_of(&self->gpu, &d, 1), batch;
	struct hold hold;
	int i, workers = 0;

	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold batches back with");
	ASSERT_LT(0, hold_many(&self->gpu, &hold, &full));
	batch = full;
	batch.flags = AMDGPU_SDMA_BATCH_NONBLOCK;
	EXPECT_EQ(-EAGAIN, run_by(&self->ring, &self->gpu, &batch));
	EXPECT_EQ(0, count_workers());
	batch.flags = 0;
	put_batch(&self->ring, &self->gpu, &batch);
	ASSERT_EQ(1, io_uring_submit(&self->ring));
	for (i = 0; i < 100 && !workers; i++) {
		usleep(10000);
		workers = count_workers();
	}
	EXPECT_EQ(1, workers);
	EXPECT_EQ(0, batch.engines_used);
	EXPECT_FALSE(copied(self, 0));
	hold_release(&hold);
	ASSERT_EQ(0, next_result(&self->ring, NULL));
	EXPECT_NE(0, batch.engines_used);
	EXPECT_TRUE(copied(self, 0));
}

static int new_file(void)
{
	FILE *f = tmpfile();
	int fd = f ? dup(fileno(f)) : -1;

	if (f)
		fclose(f);
	return fd;
}

#define CHAINS	16

/*
 * Read a file into system memory, let the engine move it to video memory and
 * back to another place, write that to another file: one system call for all.
 */
static void put_chain(struct _test_data_uring *self, unsigned int i,
		      const int file[2], struct drm_amdgpu_sdma_batch *batch)
{
	const uint64_t at = i * PART;
	struct io_uring_sqe *sqe;

	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_read(sqe, file[0], self->system.cpu + at, PART, at);
	sqe->flags |= IOSQE_IO_LINK;
	sqe->user_data = PART;
	sqe = put_batch(&self->ring, &self->gpu, batch);
	sqe->flags |= IOSQE_IO_LINK;
	sqe->user_data = 0;
	sqe = io_uring_get_sqe(&self->ring);
	io_uring_prep_write(sqe, file[1], self->system.cpu + SIZE / 2 + at,
			    PART, at);
	sqe->user_data = PART;
}

static void run_chains(struct __test_metadata *_metadata,
		       struct _test_data_uring *self)
{
	struct drm_amdgpu_sdma_desc d[CHAINS][2];
	struct drm_amdgpu_sdma_batch batch[CHAINS];
	uint8_t *data = malloc(CHAINS * PART);
	int file[2] = { new_file(), new_file() };
	unsigned int i;
	uint64_t want;
	int ret;

	ASSERT_NE(NULL, data);
	randomize(data, CHAINS * PART, &self->seed);
	ASSERT_EQ(CHAINS * PART, pwrite(file[0], data, CHAINS * PART, 0));
	for (i = 0; i < CHAINS; i++) {
		d[i][0] = part(i);
		d[i][1] = copy_desc(VRAM_VA + i * PART,
				    SYSTEM_VA + SIZE / 2 + i * PART, PART);
		d[i][1].flags = AMDGPU_SDMA_DESC_BARRIER;
		batch[i] = batch_of(&self->gpu, d[i], 2);
		put_chain(self, i, file, &batch[i]);
	}
	ASSERT_EQ(3 * CHAINS, io_uring_submit(&self->ring));
	for (i = 0; i < 3 * CHAINS; i++) {
		ret = next_result(&self->ring, &want);
		ASSERT_EQ((int)want, ret) TH_LOG("completion %u", i);
	}
	memset(self->system.cpu, 0, CHAINS * PART);
	ASSERT_EQ(CHAINS * PART, pread(file[1], self->system.cpu,
				       CHAINS * PART, 0));
	EXPECT_EQ(0, memcmp(data, self->system.cpu, CHAINS * PART));
	close(file[0]);
	close(file[1]);
	free(data);
}

TEST_F(uring, chain)
{
	unsigned int i;

	for (i = 0; i < 4; i++)
		run_chains(_metadata, self);
}

/* No system call at all, once the polling thread is awake. */
TEST_F(uring, chain_sqpoll)
{
	struct io_uring_params params = {
		.flags = IORING_SETUP_SQPOLL,
		.sq_thread_idle = 2000,
	};
	unsigned int i;

	io_uring_queue_exit(&self->ring);
	ASSERT_EQ(0, io_uring_queue_init_params(64, &self->ring, &params));
	for (i = 0; i < 4; i++)
		run_chains(_metadata, self);
}

TEST_F(uring, setups)
{
	struct drm_amdgpu_sdma_batch batch;
	struct drm_amdgpu_sdma_desc d;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(setups); i++) {
		io_uring_queue_exit(&self->ring);
		ASSERT_EQ(0, io_uring_queue_init(64, &self->ring, setups[i]));
		d = part(i);
		batch = batch_of(&self->gpu, &d, 1);
		ASSERT_EQ(0, run_by(&self->ring, &self->gpu, &batch))
			TH_LOG("setup %u", i);
		EXPECT_TRUE(copied(self, i));
	}
}

/* Submitted with a signaled fence, or one that signals at once. */
TEST_F(uring, in_fences)
{
	struct drm_amdgpu_sdma_fence fence = { };
	struct drm_amdgpu_sdma_batch batch[20];
	struct drm_amdgpu_sdma_desc d[20];
	unsigned int i;

	ASSERT_EQ(0, syncobj_new(&self->gpu, &fence.handle));
	for (i = 0; i < 20; i++) {
		d[i] = part(i);
		batch[i] = batch_of(&self->gpu, &d[i], 1);
		batch[i].out_fences = (uintptr_t)&fence;
		batch[i].num_out_fences = 1;
		batch[i].in_fences = (uintptr_t)&fence;
		batch[i].num_in_fences = !!i;
		ASSERT_EQ(0, run_by(&self->ring, &self->gpu, &batch[i]));
		EXPECT_EQ(1, syncobj_status(&self->gpu, fence.handle));
		EXPECT_TRUE(copied(self, i));
	}
}

/* The error of the batch's fence is the result, and ends a chain. */
TEST_F(uring, fence_error)
{
	struct drm_amdgpu_sdma_desc d[] = {
		wait_eq(NEVER_VA, 1, 200000), part(0),
	};
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, 2);
	struct drm_amdgpu_sdma_batch next = batch_of(&self->gpu, d + 1, 1);
	uint64_t data;
	int i, ret;

	put_batch(&self->ring, &self->gpu, &batch)->flags |= IOSQE_IO_LINK;
	put_batch(&self->ring, &self->gpu, &next)->user_data = 1;
	ASSERT_EQ(2, io_uring_submit(&self->ring));
	for (i = 0; i < 2; i++) {
		ret = next_result(&self->ring, &data);
		EXPECT_EQ(data ? -ECANCELED : -ETIME, ret);
	}
	EXPECT_EQ(0, self->vram.cpu[0] | self->vram.cpu[1]);
	/* The same with a hard link: the chain goes on. */
	put_batch(&self->ring, &self->gpu, &batch)->flags |= IOSQE_IO_HARDLINK;
	put_batch(&self->ring, &self->gpu, &next)->user_data = 1;
	ASSERT_EQ(2, io_uring_submit(&self->ring));
	for (i = 0; i < 2; i++) {
		ret = next_result(&self->ring, &data);
		EXPECT_EQ(data ? 0 : -ETIME, ret);
	}
	EXPECT_TRUE(copied(self, 0));
}

/* The error of the call is the result too, with the descriptor at fault. */
TEST_F(uring, call_error)
{
	struct drm_amdgpu_sdma_desc d[] = {
		part(0), copy_desc(SYSTEM_VA, 512 * MIB, PART),
	};
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, 2);

	EXPECT_EQ(-ENOENT, run_by(&self->ring, &self->gpu, &batch));
	EXPECT_EQ(1, batch.error_index);
	EXPECT_EQ(0, batch.engines_used);
	EXPECT_FALSE(copied(self, 0));
}

/* A ring that may do nothing else, and one that may only do NOPs. */
TEST_F(uring, restricted)
{
	struct io_uring_restriction only = {
		.opcode = IORING_RESTRICTION_SQE_OP,
		.sqe_op = IORING_OP_URING_CMD,
	};
	struct drm_amdgpu_sdma_desc d = part(0);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	struct io_uring ring;

	ASSERT_EQ(0, io_uring_queue_init(8, &ring, IORING_SETUP_R_DISABLED));
	ASSERT_EQ(0, io_uring_register_restrictions(&ring, &only, 1));
	ASSERT_EQ(0, io_uring_enable_rings(&ring));
	EXPECT_EQ(0, run_by(&ring, &self->gpu, &batch));
	EXPECT_TRUE(copied(self, 0));
	io_uring_prep_nop(io_uring_get_sqe(&ring));
	ASSERT_EQ(1, io_uring_submit(&ring));
	EXPECT_EQ(-EACCES, next_result(&ring, NULL));
	io_uring_queue_exit(&ring);

	only.sqe_op = IORING_OP_NOP;
	ASSERT_EQ(0, io_uring_queue_init(8, &ring, IORING_SETUP_R_DISABLED));
	ASSERT_EQ(0, io_uring_register_restrictions(&ring, &only, 1));
	ASSERT_EQ(0, io_uring_enable_rings(&ring));
	EXPECT_EQ(-EACCES, run_by(&ring, &self->gpu, &batch));
	io_uring_queue_exit(&ring);
}

struct submitter {
	struct io_uring *ring;
	struct gpu *gpu;
	struct drm_amdgpu_sdma_batch batch;
	int ret;
};

static void *submit_and_end(void *arg)
{
	struct submitter *s = arg;

	put_batch(s->ring, s->gpu, &s->batch);
	s->ret = io_uring_submit(s->ring);
	return NULL;
}

/* The thread that submitted has exited when its command completes. */
TEST_F(uring, thread_exit)
{
	struct drm_amdgpu_sdma_desc d[] = { part(0), part(1), part(2) };
	struct submitter s = { .ring = &self->ring, .gpu = &self->gpu };
	pthread_t thread;
	unsigned int i;

	for (i = 0; i < 100; i++) {
		s.batch = batch_of(&self->gpu, d, 3);
		ASSERT_EQ(0, pthread_create(&thread, NULL, submit_and_end, &s));
		ASSERT_EQ(0, pthread_join(thread, NULL));
		ASSERT_EQ(1, s.ret);
		ASSERT_EQ(0, next_result(&self->ring, NULL))
			TH_LOG("round %u", i);
	}
}

/*
 * Refused commands: one test for each reason, on an otherwise valid command.
 */
static int run_spoiled(struct _test_data_uring *self,
		       const struct drm_amdgpu_sdma_uring *cmd, uint32_t op,
		       uint32_t flags)
{
	struct io_uring_sqe *sqe = put_cmd(&self->ring, self->gpu.fd, cmd);
	int ret;

	sqe->cmd_op = op;
	sqe->uring_cmd_flags = flags;
	ret = io_uring_submit(&self->ring);
	return ret < 0 ? ret : next_result(&self->ring, NULL);
}

#define EXPECT_SPOILED(error, spoil_cmd, op, flags)			\
	do {								\
		struct drm_amdgpu_sdma_desc d = part(0);		\
		struct {						\
			struct drm_amdgpu_sdma_batch batch;		\
			uint64_t tail;					\
		} a = { .batch = batch_of(&self->gpu, &d, 1) };		\
		struct drm_amdgpu_sdma_uring cmd = {			\
			.batch = (uintptr_t)&a,				\
			.size = sizeof(a.batch),			\
		};							\
		const int want = error;					\
									\
		spoil_cmd;						\
		EXPECT_EQ(want, run_spoiled(self, &cmd, op, flags));	\
		EXPECT_EQ(!want, copied(self, 0));			\
	} while (0)

#define OP	DRM_AMDGPU_URING_SDMA_BATCH

TEST_F(uring, good)
{
	EXPECT_SPOILED(0, (void)0, OP, 0);
}

TEST_F(uring, refused_op)
{
	EXPECT_SPOILED(-EOPNOTSUPP, (void)0, OP + 1, 0);
}

/* The ioctl's number is not the command's. */
TEST_F(uring, refused_ioctl)
{
	EXPECT_SPOILED(-EOPNOTSUPP, (void)0, DRM_IOCTL_AMDGPU_SDMA_BATCH, 0);
}

TEST_F(uring, refused_fixed)
{
	EXPECT_SPOILED(-EINVAL, (void)0, OP, IORING_URING_CMD_FIXED);
}

TEST_F(uring, refused_pad)
{
	EXPECT_SPOILED(-EINVAL, cmd.pad = 1, OP, 0);
}

TEST_F(uring, refused_size)
{
	EXPECT_SPOILED(-EINVAL, cmd.size--, OP, 0);
}

TEST_F(uring, refused_size_0)
{
	EXPECT_SPOILED(-EINVAL, cmd.size = 0, OP, 0);
}

TEST_F(uring, refused_size_huge)
{
	EXPECT_SPOILED(-EINVAL, cmd.size = 1u << 31, OP, 0);
}

TEST_F(uring, longer_with_zeros)
{
	EXPECT_SPOILED(0, cmd.size += 8, OP, 0);
}

TEST_F(uring, refused_tail)
{
	EXPECT_SPOILED(-E2BIG, (cmd.size += 8, a.tail = 1), OP, 0);
}

TEST_F(uring, refused_pointer)
{
	EXPECT_SPOILED(-EFAULT, cmd.batch = 4096, OP, 0);
}

/* Results cannot be written: the command fails before anything runs. */
TEST_F(uring, refused_read_only)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, page);
	EXPECT_SPOILED(-EFAULT,
		       (memcpy(page, &a.batch, sizeof(a.batch)),
			mprotect(page, 4096, PROT_READ),
			cmd.batch = (uintptr_t)page), OP, 0);
	munmap(page, 4096);
}

TEST_F(uring, refused_batch_flags)
{
	EXPECT_SPOILED(-EINVAL, a.batch.flags = 1u << 31, OP, 0);
}

TEST_F(uring, refused_batch_op)
{
	EXPECT_SPOILED(-EINVAL, a.batch.op = AMDGPU_SDMA_BATCH_FORGET + 1, OP,
		       0);
}

TEST_HARNESS_MAIN
