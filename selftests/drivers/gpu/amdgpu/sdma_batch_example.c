// SPDX-License-Identifier: GPL-2.0
/*
 * Run the examples of the documentation: a batch that waits for a flag, copies,
 * and adds to a counter; and a prepared batch.
 */
#include "../../../kselftest.h"
#include "sdma_batch.h"

static int drmIoctl(int fd, unsigned long request, void *arg)
{
	int ret;

	do {
		ret = ioctl(fd, request, arg);
	} while (ret == -1 && (errno == EINTR || errno == EAGAIN));
	return ret;
}

static int submit(int fd, uint32_t context, uint32_t syncobj, uint64_t flag_va,
		  uint64_t a_va, uint64_t b_va, uint64_t counter_va)
{
	/* example { */
	struct drm_amdgpu_sdma_desc d[] = {
		{ .op = AMDGPU_SDMA_OP_WAIT, .src = flag_va, .value = 1,
		  .mask = ~0u, .compare = AMDGPU_SDMA_COMPARE_GE,
		  .timeout_ns = 20 * 1000 * 1000 },
		{ .op = AMDGPU_SDMA_OP_COPY, .src = a_va, .dst = b_va,
		  .size = 65536 },
		{ .op = AMDGPU_SDMA_OP_ADD, .dst = counter_va, .value = 1 },
	};
	struct drm_amdgpu_sdma_fence out = { .handle = syncobj };
	struct drm_amdgpu_sdma_batch batch = {
		.ctx_id = context,
		.descs = (uintptr_t)d,
		.num_descs = 3,
		.desc_stride = sizeof(d[0]),
		.out_fences = (uintptr_t)&out,
		.num_out_fences = 1,
	};

	if (drmIoctl(fd, DRM_IOCTL_AMDGPU_SDMA_BATCH, &batch)) {
		fprintf(stderr, "descriptor %d: %m\n", (int)batch.error_index);
		return -1;
	}
	/* } example */
	return 0;
}

#define RUNS	3

static bool more(void)
{
	static int runs;

	return runs++ < RUNS;
}

static int prepared(int fd, uint32_t context, uint32_t syncobj,
		    struct drm_amdgpu_sdma_batch batch)
{
	struct drm_amdgpu_sdma_fence out = { .handle = syncobj };

	/* prepared example { */
	struct drm_amdgpu_sdma_batch run = {
		.op = AMDGPU_SDMA_BATCH_RUN,
		.ctx_id = context,
		.out_fences = (uintptr_t)&out,
		.num_out_fences = 1,
	};

	batch.op = AMDGPU_SDMA_BATCH_PREPARE;	/* without fences */
	if (drmIoctl(fd, DRM_IOCTL_AMDGPU_SDMA_BATCH, &batch))
		return -1;
	run.handle = batch.handle;
	while (more())
		if (drmIoctl(fd, DRM_IOCTL_AMDGPU_SDMA_BATCH, &run))
			return -1;
	/* } example */
	return 0;
}

#define VA	(1024 * MIB)

/* The counter, once everything has ended. */
static uint64_t ended(struct gpu *gpu, struct buffer *buffer, uint32_t syncobj)
{
	uint64_t sum;

	if (syncobj_wait(gpu, syncobj, 0, WAIT_SECONDS) ||
	    syncobj_status(gpu, syncobj) != 1)
		return -1;
	memcpy(&sum, buffer->cpu + 2 * MIB, sizeof(sum));
	return sum;
}

int main(void)
{
	uint64_t a = VA, b = VA + MIB, counter = VA + 2 * MIB;
	uint64_t flag = VA + 3 * MIB;
	struct drm_amdgpu_sdma_desc d = {
		.op = AMDGPU_SDMA_OP_ADD, .dst = counter, .value = 1,
	};
	struct buffer buffer;
	uint32_t syncobj;
	struct gpu gpu;
	bool ok;

	ksft_print_header();
	if (gpu_open(&gpu, 0))
		ksft_exit_skip("no GPU with SDMA batches\n");
	ksft_set_plan(2);
	if (buffer_map(&gpu, &buffer, 4 * MIB, AMDGPU_GEM_DOMAIN_VRAM, VA) ||
	    syncobj_new(&gpu, &syncobj))
		ksft_exit_fail_msg("no buffer\n");
	memset(buffer.cpu, 0, 4 * MIB);
	memset(buffer.cpu, 0x42, 65536);
	ok = !submit(gpu.fd, gpu.ctx, syncobj, flag, a, b, counter);
	__atomic_store_n((uint32_t *)(buffer.cpu + (flag - VA)), 1,
			 __ATOMIC_RELEASE);
	ok = ok && ended(&gpu, &buffer, syncobj) == 1 &&
	     !memcmp(buffer.cpu, buffer.cpu + (b - VA), 65536);
	ksft_test_result(ok, "example of the documentation\n");
	ok = !prepared(gpu.fd, gpu.ctx, syncobj, batch_of(&gpu, &d, 1)) &&
	     ended(&gpu, &buffer, syncobj) == 1 + RUNS;
	ksft_test_result(ok, "example of prepared batches\n");
	ksft_finished();
}
