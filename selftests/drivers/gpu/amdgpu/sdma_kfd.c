// SPDX-License-Identifier: GPL-2.0
/*
 * SDMA batches on the memory of the compute driver: its buffers are mapped in
 * the VM of the file that was given to it, and batches of that file reach them.
 */
#include <linux/dma-buf.h>
#include <signal.h>
#include <sys/wait.h>

#include "../../../kselftest_harness.h"
#include "emulator.h"
#include "sdma_evict.h"
#include "sdma_hold.h"
#include "sdma_kfd.h"
#include "trace.h"

#define SIZE		(4 * MIB)

/* A buffer of the compute driver: the CPU and the GPU map it at one address. */
struct kfd_buffer {
	uint64_t handle;
	uint8_t *at;
};

FIXTURE(kfd)
{
	struct gpu gpu;
	struct kfd_buffer vram;
	struct kfd_buffer gtt;
	struct kfd kfd;
};

static int kfd_new(struct _test_data_kfd *self, struct kfd_buffer *b,
		   uint32_t flags)
{
	uint64_t offset = 0;
	int ret;

	b->at = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (b->at == MAP_FAILED)
		return -errno;
	ret = kfd_alloc(&self->kfd, (uintptr_t)b->at, SIZE,
			flags | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE, &offset,
			&b->handle);
	if (ret)
		return ret;
	if (mmap(b->at, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		 self->gpu.fd, offset) != b->at)
		return -errno;
	return kfd_map(&self->kfd, b->handle);
}

static int kfd_free(struct _test_data_kfd *self, struct kfd_buffer *b)
{
	struct kfd_ioctl_free_memory_of_gpu_args arg = { .handle = b->handle };

	munmap(b->at, SIZE);
	return kfd_call(&self->kfd, AMDKFD_IOC_FREE_MEMORY_OF_GPU, &arg);
}

FIXTURE_SETUP(kfd)
{
	if (gpu_open(&self->gpu, 0))
		SKIP(return, "no GPU with SDMA batches");
	if (kfd_open(&self->kfd, &self->gpu))
		SKIP(return, "the compute driver does not have this GPU");
	ASSERT_EQ(0, kfd_new(self, &self->vram,
			     KFD_IOC_ALLOC_MEM_FLAGS_VRAM |
			     KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC));
	ASSERT_EQ(0, kfd_new(self, &self->gtt, KFD_IOC_ALLOC_MEM_FLAGS_GTT));
	memset(self->vram.at, 0, SIZE);
	memset(self->gtt.at, 0x5a, SIZE);
}

FIXTURE_TEARDOWN(kfd)
{
	if (self->gpu.fd >= 0)
		close(self->gpu.fd);
	if (self->kfd.fd >= 0)
		close(self->kfd.fd);
}

static struct drm_amdgpu_sdma_desc out_and_back(struct _test_data_kfd *self,
						bool back)
{
	struct drm_amdgpu_sdma_desc d = copy_desc((uintptr_t)self->gtt.at,
						  (uintptr_t)self->vram.at,
						  SIZE);

	return back ? copy_desc(d.dst, d.src, SIZE) : d;
}

/* Otherwise all tests of user pointers would be skipped. */
TEST_F(kfd, features)
{
	EXPECT_TRUE(self->gpu.info.features & AMDGPU_SDMA_FEATURE_USERPTR);
}

TEST_F(kfd, copy)
{
	struct drm_amdgpu_sdma_desc d = out_and_back(self, false);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);

	batch.flags = AMDGPU_SDMA_BATCH_PATH;
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	EXPECT_EQ(SIZE, batch.vram_bytes);
	EXPECT_EQ(SIZE, batch.system_bytes);
	EXPECT_EQ(0, memcmp(self->gtt.at, self->vram.at, SIZE));
	memset(self->gtt.at, 0, SIZE);
	d = out_and_back(self, true);
	batch = batch_of(&self->gpu, &d, 1);
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	EXPECT_EQ(0x5a, self->gtt.at[0]);
	EXPECT_EQ(0x5a, self->gtt.at[SIZE - 1]);
}

/* Others fill video memory; the process's memory is evicted and comes back. */
TEST_F_TIMEOUT(kfd, evicted, 120)
{
	struct drm_amdgpu_sdma_desc d = out_and_back(self, false);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	unsigned int round;
	struct evict e;
	uint32_t handle;
	int ret;

	ASSERT_EQ(0, prepare(&self->gpu, &d, 1, &handle));
	for (round = 1; round < 4; round++) {
		ret = evict_open(&e);
		if (ret == -E2BIG)
			SKIP(return, "too much video memory");
		ASSERT_EQ(0, ret);
		memset(self->gtt.at, round, SIZE);
		ASSERT_EQ(0, batch_run(&self->gpu, &batch));
		EXPECT_EQ(0, memcmp(self->gtt.at, self->vram.at, SIZE));
		ASSERT_LE(0, evict_once(&e));
		memset(self->gtt.at, 0x80 | round, SIZE);
		ASSERT_EQ(0, run_prepared(&self->gpu, handle));
		EXPECT_EQ(0, memcmp(self->gtt.at, self->vram.at, SIZE));
		evict_close(&e);
	}
}

/* Unmapping waits for the batches that were submitted before. */
TEST_F(kfd, unmapped_meanwhile)
{
	const uint64_t flag = (uintptr_t)self->gtt.at + SIZE - 4096;
	struct drm_amdgpu_sdma_desc d[] = {
		wait_eq(flag, 1, wait_ns(&self->gpu, 500)),
		copy_desc((uintptr_t)self->gtt.at, (uintptr_t)self->vram.at,
			  MIB),
	};
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, 2);
	uint32_t syncobj, *word = (uint32_t *)flag;
	int status;
	pid_t pid;

	*word = 0;
	ASSERT_EQ(0, syncobj_new(&self->gpu, &syncobj));
	ASSERT_EQ(0, batch_submit_to(&self->gpu, &batch, syncobj, 0));
	/* a child has the CPU's mappings of buffers too */
	pid = fork();
	if (!pid) {
		usleep(20000);
		__atomic_store_n(word, 1, __ATOMIC_RELEASE);
		_exit(0);
	}
	ASSERT_LT(0, pid);
	EXPECT_EQ(0, kfd_unmap(&self->kfd, self->vram.handle));
	ASSERT_EQ(0, syncobj_wait(&self->gpu, syncobj, 0, WAIT_SECONDS));
	EXPECT_EQ(1, syncobj_status(&self->gpu, syncobj));
	EXPECT_EQ(0, memcmp(self->gtt.at, self->vram.at, MIB));
	EXPECT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(-ENOENT, batch_run(&self->gpu, &batch));
	EXPECT_EQ(1, batch.error_index);
}

/* Two buffers, mapped in turn at one address: copies reach the right one. */
TEST_F(kfd, mapped_again)
{
	struct drm_amdgpu_sdma_desc d;
	struct drm_amdgpu_sdma_batch batch;
	struct buffer b[2];
	uint64_t at;
	int i;

	at = (uintptr_t)mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			     -1, 0);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, buffer_new(&self->gpu, &b[i], SIZE,
					AMDGPU_GEM_DOMAIN_VRAM));
		ASSERT_EQ(0, buffer_cpu(&self->gpu, &b[i]));
		memset(b[i].cpu, 1 + i, SIZE);
	}
	d = copy_desc((uintptr_t)self->gtt.at, at, SIZE);
	for (i = 0; i < 8; i++) {
		ASSERT_EQ(0, buffer_va(&self->gpu, &b[i % 2], AMDGPU_VA_OP_MAP,
				       at, GPU_RW));
		batch = batch_of(&self->gpu, &d, 1);
		ASSERT_EQ(0, batch_run(&self->gpu, &batch));
		EXPECT_EQ(0, memcmp(self->gtt.at, b[i % 2].cpu, SIZE));
		ASSERT_EQ(0, buffer_va(&self->gpu, &b[i % 2],
				       AMDGPU_VA_OP_UNMAP, at, 0));
	}
}

/* How many jobs have there been, and how many of them flushed TLBs? */
static int read_jobs(const char *dir, int *flushed)
{
	char line[512], *at;
	int jobs = 0;
	FILE *f = trace_open(dir);

	if (!f)
		return -errno;
	*flushed = 0;
	while (fgets(line, sizeof(line), f)) {
		at = strstr(line, "needs_flush=");
		if (!at)
			continue;
		jobs++;
		*flushed += at[strlen("needs_flush=")] == '1';
	}
	fclose(f);
	return jobs;
}

/* @times batches of one job each. */
static int copy_out(struct _test_data_kfd *self, int times)
{
	struct drm_amdgpu_sdma_desc d = out_and_back(self, false);
	struct drm_amdgpu_sdma_batch batch;
	int ret = 0;

	while (!ret && times--) {
		batch = batch_of(&self->gpu, &d, 1);
		batch.placement = AMDGPU_SDMA_PLACE_ONE_ENGINE;
		/* each die has TLBs of its own */
		batch.engine_mask = 1;
		ret = batch_run(&self->gpu, &batch);
	}
	return ret;
}

/* The CPU writes the page tables, and knows when TLBs may be stale. */
TEST_F(kfd, flushes_when_it_has_to)
{
	static const char * const grab[] = { "amdgpu/amdgpu_vm_grab_id" };
	char dir[128];
	int ret, flushed;

	snprintf(dir, sizeof(dir), TRACE_INSTANCES "/sdma_kfd.%d", getpid());
	ASSERT_EQ(0, copy_out(self, 1));
	ret = trace_begin(dir, grab, 1);
	if (ret) {
		rmdir(dir);
		SKIP(return, "no tracepoints (%d)", ret);
	}
	EXPECT_EQ(0, copy_out(self, 8));
	EXPECT_EQ(8, read_jobs(dir, &flushed));
	EXPECT_EQ(0, flushed);
	EXPECT_EQ(0, kfd_unmap(&self->kfd, self->vram.handle));
	EXPECT_EQ(0, kfd_map(&self->kfd, self->vram.handle));
	EXPECT_EQ(0, copy_out(self, 2));
	EXPECT_EQ(10, read_jobs(dir, &flushed));
	EXPECT_EQ(1, flushed);
	EXPECT_EQ(0, rmdir(dir));
}

/*
 * The CPU writes these page tables. Unmapped entries are cleared after the
 * pending batches, and a call with NONBLOCK does not wait for those. Another
 * call waits, without the locks that the first one needs.
 */
TEST_F_TIMEOUT(kfd, nonblock, 120)
{
	struct drm_amdgpu_sdma_desc d = out_and_back(self, false);
	struct drm_amdgpu_sdma_batch first = batch_of(&self->gpu, &d, 1);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	struct drm_amdgpu_sdma_batch patient = batch;
	struct answer waits = { .gpu = &self->gpu, .batch = &patient };
	struct buffer other;
	struct hold hold;
	uint8_t *at;

	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync to hold batches back with");
	at = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, at);
	ASSERT_EQ(0, buffer_map(&self->gpu, &other, SIZE,
				AMDGPU_GEM_DOMAIN_VRAM, (uintptr_t)at));
	hold_batch(&hold, &first);
	first.flags = AMDGPU_SDMA_BATCH_NONBLOCK;
	ASSERT_EQ(0, batch_submit(&self->gpu, &first));
	ASSERT_EQ(0, buffer_va(&self->gpu, &other, AMDGPU_VA_OP_UNMAP,
			       (uintptr_t)at, AMDGPU_VM_DELAY_UPDATE));
	batch.flags = AMDGPU_SDMA_BATCH_NONBLOCK;
	EXPECT_EQ(-EAGAIN, answer_now(&self->gpu, &hold, &batch));
	ASSERT_EQ(0, pthread_create(&waits.thread, NULL, answer_call, &waits));
	usleep(300000);
	EXPECT_FALSE(answered(&waits));
	EXPECT_EQ(-EAGAIN, answer_now(&self->gpu, &hold, &batch));
	hold_release(&hold);
	pthread_join(waits.thread, NULL);
	EXPECT_EQ(0, waits.ret);
	batch.flags = 0;
	EXPECT_EQ(0, batch_run(&self->gpu, &batch));
	EXPECT_EQ(0, memcmp(self->gtt.at, self->vram.at, SIZE));
}

static int to_system_memory(struct gpu *gpu, const struct buffer *b)
{
	struct drm_amdgpu_gem_op arg = {
		.handle = b->handle,
		.op = AMDGPU_GEM_OP_SET_PLACEMENT,
		.value = AMDGPU_GEM_DOMAIN_GTT,
	};

	return gpu_ioctl(gpu, DRM_IOCTL_AMDGPU_GEM_OP, &arg);
}

/* Nor does it wait for the move of a buffer, while all engines hang. */
TEST_F_TIMEOUT(kfd, nonblock_beside_a_move, 120)
{
	int port = emulator_open();
	struct drm_amdgpu_sdma_desc d;
	struct drm_amdgpu_sdma_batch batch;
	struct buffer other;
	uint8_t *at;

	if (port < 0)
		SKIP(return, "for an emulated GPU only: its engines hang");
	at = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, at);
	ASSERT_EQ(0, buffer_map(&self->gpu, &other, SIZE,
				AMDGPU_GEM_DOMAIN_VRAM, (uintptr_t)at));
	d = copy_desc((uintptr_t)self->gtt.at, (uintptr_t)at, SIZE);
	batch = batch_of(&self->gpu, &d, 1);
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	ASSERT_EQ(0, to_system_memory(&self->gpu, &other));
	ASSERT_EQ(0, emulator_all(port, "engine all hang"));
	batch = batch_of(&self->gpu, &d, 1);
	batch.flags = AMDGPU_SDMA_BATCH_NONBLOCK;
	EXPECT_EQ(-EAGAIN, batch_submit(&self->gpu, &batch));
	ASSERT_EQ(0, emulator_all(port, "engine all resume"));
	batch = batch_of(&self->gpu, &d, 1);
	EXPECT_EQ(0, batch_run(&self->gpu, &batch));
}

/* Add a foreign fence to the buffer, the one that holds batches back. */
static int fence_buffer(struct gpu *gpu, const struct buffer *b,
			const struct hold *hold)
{
	struct drm_prime_handle export = { .handle = b->handle };
	struct dma_buf_import_sync_file arg = { .flags = DMA_BUF_SYNC_WRITE };
	int ret = gpu_ioctl(gpu, DRM_IOCTL_PRIME_HANDLE_TO_FD, &export);

	if (ret)
		return ret;
	arg.fd = syncobj_file(gpu, hold->in.handle);
	ret = ioctl(export.fd, DMA_BUF_IOCTL_IMPORT_SYNC_FILE, &arg) ? -errno : 0;
	close(arg.fd);
	close(export.fd);
	return ret;
}

/* The driver takes foreign fences for moves. */
TEST_F_TIMEOUT(kfd, nonblock_beside_a_fence, 120)
{
	struct drm_amdgpu_sdma_batch batch;
	struct drm_amdgpu_sdma_desc d;
	struct buffer other;
	struct hold hold;
	uint8_t *at;

	if (hold_open(&self->gpu, &hold))
		SKIP(return, "no sw_sync for a fence");
	at = mmap(NULL, 2 * SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, at);
	ASSERT_EQ(0, buffer_map(&self->gpu, &other, SIZE,
				AMDGPU_GEM_DOMAIN_VRAM, (uintptr_t)at));
	ASSERT_EQ(0, fence_buffer(&self->gpu, &other, &hold));
	d = copy_desc((uintptr_t)self->gtt.at, (uintptr_t)at + SIZE, SIZE);
	ASSERT_EQ(0, buffer_va(&self->gpu, &other, AMDGPU_VA_OP_MAP, d.dst,
			       GPU_RW | AMDGPU_VM_DELAY_UPDATE));
	batch = batch_of(&self->gpu, &d, 1);
	batch.flags = AMDGPU_SDMA_BATCH_NONBLOCK;
	EXPECT_EQ(-EAGAIN, answer_now(&self->gpu, &hold, &batch));
	hold_release(&hold);
	batch.flags = 0;
	EXPECT_EQ(0, batch_run(&self->gpu, &batch));
	EXPECT_EQ(0, memcmp(self->gtt.at, other.cpu, SIZE));
}

TEST_F(kfd, stale)
{
	struct drm_amdgpu_sdma_desc d = out_and_back(self, false);
	uint32_t handle;

	ASSERT_EQ(0, prepare(&self->gpu, &d, 1, &handle));
	ASSERT_EQ(0, run_prepared(&self->gpu, handle));
	ASSERT_EQ(0, kfd_unmap(&self->kfd, self->vram.handle));
	EXPECT_EQ(-ESTALE, run_prepared(&self->gpu, handle));
	ASSERT_EQ(0, kfd_map(&self->kfd, self->vram.handle));
	EXPECT_EQ(-ESTALE, run_prepared(&self->gpu, handle));
	ASSERT_EQ(0, prepare(&self->gpu, &d, 1, &handle));
	EXPECT_EQ(0, run_prepared(&self->gpu, handle));
	ASSERT_EQ(0, kfd_unmap(&self->kfd, self->vram.handle));
	ASSERT_EQ(0, kfd_free(self, &self->vram));
	EXPECT_EQ(-ESTALE, run_prepared(&self->gpu, handle));
}

/* Memory of another GPU that the compute driver has mapped on both. */
static int add_peer(struct _test_data_kfd *self, struct _test_data_kfd *other)
{
	int ret;

	other->kfd.fd = self->kfd.fd;
	ret = gpu_open(&other->gpu, 1);
	if (!ret)
		ret = kfd_acquire(&other->kfd, &other->gpu);
	if (ret)
		return -ENODEV;
	ret = kfd_new(other, &other->vram, KFD_IOC_ALLOC_MEM_FLAGS_VRAM |
					   KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC);
	if (!ret)
		ret = kfd_map(&self->kfd, other->vram.handle);
	return ret ? ret : kfd_map(&other->kfd, self->gtt.handle);
}

TEST_F(kfd, peer)
{
	struct drm_amdgpu_sdma_desc d = out_and_back(self, false);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	struct _test_data_kfd other = { };
	int ret = add_peer(self, &other);

	if (ret == -ENODEV)
		SKIP(return, "one GPU");
	ASSERT_EQ(0, ret);
	d.dst = (uintptr_t)other.vram.at;
	batch.flags = AMDGPU_SDMA_BATCH_PATH;
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	EXPECT_EQ(SIZE, batch.peer_bytes);
	EXPECT_EQ(0, memcmp(self->gtt.at, other.vram.at, SIZE));
	/* and by the other GPU's own file */
	memset(other.vram.at, 0x77, SIZE);
	d = copy_desc((uintptr_t)other.vram.at, (uintptr_t)self->gtt.at, SIZE);
	batch = batch_of(&other.gpu, &d, 1);
	ASSERT_EQ(0, batch_run(&other.gpu, &batch));
	EXPECT_EQ(0, memcmp(self->gtt.at, other.vram.at, SIZE));
	close(other.gpu.fd);
}

/*
 * Memory of a process is evicted from one of its two GPUs. Batches go on in
 * both: the first GPU copies from the host, the second one from the first.
 */
TEST_F_TIMEOUT(kfd, evicted_with_two, 120)
{
	struct drm_amdgpu_sdma_desc d[] = { out_and_back(self, false), { } };
	struct _test_data_kfd other = { };
	struct drm_amdgpu_sdma_batch batch;
	unsigned int round, i;
	struct evict e;
	int ret = add_peer(self, &other);

	if (ret == -ENODEV)
		SKIP(return, "one GPU");
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, kfd_map(&other.kfd, self->vram.handle));
	d[1] = copy_desc(d[0].dst, (uintptr_t)other.vram.at, SIZE);
	for (round = 1; round < 4; round++) {
		ret = evict_open(&e);
		if (ret == -E2BIG)
			SKIP(return, "too much video memory");
		ASSERT_EQ(0, ret);
		ASSERT_LE(0, evict_once(&e));
		/* while the process's queues are evicted, and afterwards */
		for (i = 0; i < 8; i++) {
			memset(self->gtt.at, round << 4 | i, SIZE);
			batch = batch_of(&self->gpu, &d[0], 1);
			ASSERT_EQ(0, batch_run(&self->gpu, &batch));
			batch = batch_of(&other.gpu, &d[1], 1);
			ASSERT_EQ(0, batch_run(&other.gpu, &batch));
			EXPECT_EQ(0, memcmp(self->gtt.at, other.vram.at, SIZE));
		}
		evict_close(&e);
	}
	close(other.gpu.fd);
}

/* A child has the file, but not the process of the compute driver. */
TEST_F(kfd, fork)
{
	struct drm_amdgpu_sdma_desc d = out_and_back(self, false);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	int status;
	pid_t pid;

	pid = fork();
	if (!pid)
		_exit(batch_run(&self->gpu, &batch) != 0);
	ASSERT_LT(0, pid);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_EQ(0, WEXITSTATUS(status));
	EXPECT_EQ(0, memcmp(self->gtt.at, self->vram.at, SIZE));
	memset(self->gtt.at, 1, SIZE);
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	EXPECT_EQ(0, memcmp(self->gtt.at, self->vram.at, SIZE));
}

/* A process that is killed while its batches are pending. */
TEST_F(kfd, killed)
{
	struct drm_amdgpu_sdma_desc d = out_and_back(self, false);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	struct _test_data_kfd child = { .kfd.fd = -1 };
	unsigned int round, i;
	int status;
	pid_t pid;

	for (round = 0; round < 4; round++) {
		pid = fork();
		if (!pid) {
			if (gpu_open(&child.gpu, 0) || kfd_open(&child.kfd, &child.gpu) ||
			    kfd_new(&child, &child.vram,
				    KFD_IOC_ALLOC_MEM_FLAGS_VRAM |
				    KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC) ||
			    kfd_new(&child, &child.gtt,
				    KFD_IOC_ALLOC_MEM_FLAGS_GTT))
				_exit(1);
			d = out_and_back(&child, false);
			batch = batch_of(&child.gpu, &d, 1);
			for (i = 0; i < 8; i++)
				if (batch_submit(&child.gpu, &batch))
					_exit(2);
			kill(getpid(), SIGKILL);
		}
		ASSERT_LT(0, pid);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFSIGNALED(status));
		ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	}
	EXPECT_EQ(0, memcmp(self->gtt.at, self->vram.at, SIZE));
}

/*
 * The compute driver maps memory where a buffer was whose entries are still in
 * the page tables: clearing those later must not clear the new ones.
 */
TEST_F(kfd, where_a_buffer_was)
{
	const uint64_t at = 1024 * MIB;
	const struct drm_amdgpu_sdma_desc d =
		copy_desc((uintptr_t)self->gtt.at, at, SIZE);
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, &d, 1);
	uint64_t offset = 0, handle;
	struct buffer old;
	uint8_t *cpu;

	ASSERT_EQ(0, buffer_map(&self->gpu, &old, SIZE,
				AMDGPU_GEM_DOMAIN_VRAM, at));
	ASSERT_EQ(0, buffer_va(&self->gpu, &old, AMDGPU_VA_OP_UNMAP, at,
			       AMDGPU_VM_DELAY_UPDATE));
	ASSERT_EQ(0, kfd_alloc(&self->kfd, at, SIZE,
			       KFD_IOC_ALLOC_MEM_FLAGS_GTT |
			       KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE,
			       &offset, &handle));
	cpu = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
		   self->gpu.fd, offset);
	ASSERT_NE(MAP_FAILED, cpu);
	memset(cpu, 0, SIZE);
	ASSERT_EQ(0, kfd_map(&self->kfd, handle));
	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	EXPECT_EQ(0, memcmp(cpu, self->gtt.at, SIZE));
}

TEST_HARNESS_MAIN
