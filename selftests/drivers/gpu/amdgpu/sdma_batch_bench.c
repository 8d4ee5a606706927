// SPDX-License-Identifier: GPL-2.0
/*
 * sdma_batch_bench [rounds]: CPU time of the process, user space and kernel, to
 * submit N copies, in nanoseconds a copy: medians, one line for each N and size
 * of a copy.
 *
 *	cs		one AMDGPU_CS for each copy
 *	ib		one AMDGPU_CS with all copies in one buffer
 *	batch		one DRM_IOCTL_AMDGPU_SDMA_BATCH
 *	prep		one run of a prepared batch
 *
 * and, if it was built with liburing, until the end is known,
 *
 *	wait		of "batch" and a wait for its syncobj
 *	uring		of one batch by io_uring, its worker's included
 *
 * Building the buffer of "ib" and the descriptors of "batch" is counted, what
 * prepares a batch is not, nor, in the first four, the wait for the end. Not the
 * process's are the scheduler's worker and the interrupt, once for each job: of
 * "cs" for each copy. In a guest whose clock counts instructions (QEMU's -icount
 * shift=0) the figures are instructions; the driver then wants
 * lockup_timeout=-1.
 */
#ifdef HAVE_LIBURING
#include <liburing.h>
#endif

#include "sdma_prepared.h"

#define MAX_COPIES	65536
#define FROM_VA		(1024 * MIB)
#define TO_VA		(2048 * MIB)
#define IB_VA		(512 * MIB)
#define IB_SIZE		(2 * MIB)
/* A clock that counts instructions jumps when there is nothing to do. */
#define FOR_EVER	1e9

struct bench {
	struct gpu gpu;
	struct buffer from, to, ib;
	uint32_t list;
	uint32_t out;
	uint32_t prepared;
	uint32_t size;
	struct drm_amdgpu_sdma_desc descs[MAX_COPIES];
};

static void fail(const char *what, int error)
{
	fprintf(stderr, "%s: %s\n", what, strerror(-error));
	exit(1);
}

static void check(const char *what, int ret)
{
	if (ret)
		fail(what, ret);
}

/* Of all threads of the process, also of those that io_uring makes. */
static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* Without what it costs to look at the clock. */
static uint64_t since(uint64_t start)
{
	static uint64_t cost;
	uint64_t spent = now() - start, again;
	int i;

	for (i = 0; !cost || i < 16; i++) {
		again = now();
		again = now() - again;
		if (!cost || again < cost)
			cost = again;
	}
	return spent > cost ? spent - cost : 0;
}

static void make_list(struct bench *b)
{
	struct drm_amdgpu_bo_list_entry entries[] = {
		{ .bo_handle = b->ib.handle }, { .bo_handle = b->from.handle },
		{ .bo_handle = b->to.handle },
	};
	union drm_amdgpu_bo_list arg = {
		.in.operation = AMDGPU_BO_LIST_OP_CREATE,
		.in.bo_number = 3,
		.in.bo_info_size = sizeof(entries[0]),
		.in.bo_info_ptr = (uintptr_t)entries,
	};

	check("BO list", gpu_ioctl(&b->gpu, DRM_IOCTL_AMDGPU_BO_LIST, &arg));
	b->list = arg.out.list_handle;
}

/* Copies do not continue each other, or the driver would merge them. */
static uint64_t offset(const struct bench *b, uint32_t i)
{
	return (uint64_t)(i * 2 % (b->from.size / b->size)) * b->size;
}

static uint32_t *put_copy(const struct bench *b, uint32_t *p, uint32_t i)
{
	uint64_t from = FROM_VA + offset(b, i);
	uint64_t to = TO_VA + (uint64_t)i * b->size;

	*p++ = 1;
	*p++ = b->size - 1;
	*p++ = 0;
	*p++ = from;
	*p++ = from >> 32;
	*p++ = to;
	*p++ = to >> 32;
	return p;
}

static uint64_t submit_ib(struct bench *b, uint64_t va, uint32_t dwords)
{
	struct drm_amdgpu_cs_chunk_ib ib = {
		.va_start = va,
		.ib_bytes = dwords * 4,
		.ip_type = AMDGPU_HW_IP_DMA,
	};
	struct drm_amdgpu_cs_chunk chunk = {
		.chunk_id = AMDGPU_CHUNK_ID_IB,
		.length_dw = sizeof(ib) / 4,
		.chunk_data = (uintptr_t)&ib,
	};
	uint64_t chunks = (uintptr_t)&chunk;
	union drm_amdgpu_cs arg = {
		.in.ctx_id = b->gpu.ctx,
		.in.bo_list_handle = b->list,
		.in.num_chunks = 1,
		.in.chunks = (uintptr_t)&chunks,
	};

	check("CS", gpu_ioctl(&b->gpu, DRM_IOCTL_AMDGPU_CS, &arg));
	return arg.out.handle;
}

static void wait_cs(struct bench *b, uint64_t handle)
{
	union drm_amdgpu_wait_cs arg = {
		.in.handle = handle,
		.in.timeout = ~0ULL >> 1,
		.in.ip_type = AMDGPU_HW_IP_DMA,
		.in.ctx_id = b->gpu.ctx,
	};

	check("wait", gpu_ioctl(&b->gpu, DRM_IOCTL_AMDGPU_WAIT_CS, &arg));
}

/* Each way: the time to submit n copies; they have ended on return. */

static uint64_t by_cs(struct bench *b, uint32_t n)
{
	uint64_t start = now(), spent = 0, handle = 0;
	uint32_t i, *p;

	for (i = 0; i < n; i++) {
		p = put_copy(b, (uint32_t *)(b->ib.cpu + i % 1024 * 32), i);
		*p = 0;
		handle = submit_ib(b, IB_VA + i % 1024 * 32, 8);
		/* the context takes no more at once without waiting */
		if (i % 16 == 15) {
			spent += since(start);
			wait_cs(b, handle);
			start = now();
		}
	}
	spent += since(start);
	wait_cs(b, handle);
	return spent;
}

static uint64_t by_ib(struct bench *b, uint32_t n)
{
	uint32_t i, *p = (uint32_t *)b->ib.cpu;
	uint64_t start = now(), handle;

	for (i = 0; i < n; i++)
		p = put_copy(b, p, i);
	while ((p - (uint32_t *)b->ib.cpu) % 8)
		*p++ = 0;
	handle = submit_ib(b, IB_VA, p - (uint32_t *)b->ib.cpu);
	start = since(start);
	wait_cs(b, handle);
	return start;
}

static void put_descs(struct bench *b, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		b->descs[i].src = FROM_VA + offset(b, i);
		b->descs[i].dst = TO_VA + (uint64_t)i * b->size;
		b->descs[i].size = b->size;
	}
}

static uint64_t submit(struct bench *b, uint32_t n)
{
	struct drm_amdgpu_sdma_batch batch = batch_of(&b->gpu, b->descs, n);
	struct drm_amdgpu_sdma_fence out = { .handle = b->out };
	uint64_t start = now();

	put_descs(b, n);
	batch.placement = AMDGPU_SDMA_PLACE_ONE_ENGINE;
	batch.out_fences = (uintptr_t)&out;
	batch.num_out_fences = 1;
	check("batch", batch_submit(&b->gpu, &batch));
	return since(start);
}

static uint64_t by_batch(struct bench *b, uint32_t n)
{
	uint64_t spent = submit(b, n);

	check("wait", syncobj_wait(&b->gpu, b->out, 0, FOR_EVER));
	return spent;
}

static uint64_t by_prepared(struct bench *b, uint32_t n)
{
	struct drm_amdgpu_sdma_batch batch = run_of(&b->gpu, b->prepared);
	struct drm_amdgpu_sdma_fence out = { .handle = b->out };
	uint64_t start = now();

	batch.out_fences = (uintptr_t)&out;
	batch.num_out_fences = 1;
	check("run", batch_submit(&b->gpu, &batch));
	start = since(start);
	check("wait", syncobj_wait(&b->gpu, b->out, 0, FOR_EVER));
	return start;
}

/* The descriptors are those of by_batch(), which has run. */
static void make_prepared(struct bench *b, uint32_t n)
{
	struct drm_amdgpu_sdma_batch batch = batch_of(&b->gpu, b->descs, n);

	batch.placement = AMDGPU_SDMA_PLACE_ONE_ENGINE;
	check("prepare", batch_prepare(&b->gpu, &batch, &b->prepared));
}

#ifdef HAVE_LIBURING
static uint64_t by_wait(struct bench *b, uint32_t n)
{
	uint64_t start = now();

	submit(b, n);
	check("wait", syncobj_wait(&b->gpu, b->out, 0, FOR_EVER));
	return since(start);
}

static struct io_uring ring;

static uint64_t by_uring(struct bench *b, uint32_t n)
{
	struct drm_amdgpu_sdma_batch batch = batch_of(&b->gpu, b->descs, n);
	struct drm_amdgpu_sdma_uring cmd = {
		.batch = (uintptr_t)&batch,
		.size = sizeof(batch),
	};
	uint64_t start = now();
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
	struct io_uring_cqe *cqe;

	put_descs(b, n);
	batch.placement = AMDGPU_SDMA_PLACE_ONE_ENGINE;
	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, b->gpu.fd, NULL, 0, 0);
	sqe->cmd_op = DRM_AMDGPU_URING_SDMA_BATCH;
	memcpy(sqe->cmd, &cmd, sizeof(cmd));
	if (io_uring_submit(&ring) != 1 || io_uring_wait_cqe(&ring, &cqe))
		fail("io_uring", -EIO);
	check("batch", cqe->res);
	io_uring_cqe_seen(&ring, cqe);
	return since(start);
}
#endif

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static double median(struct bench *b, uint32_t n, int rounds,
		     uint64_t (*way)(struct bench *b, uint32_t n))
{
	uint64_t samples[64];
	int i;

	way(b, n); /* memory that is allocated once */
	for (i = 0; i < rounds; i++)
		samples[i] = way(b, n);
	qsort(samples, rounds, sizeof(samples[0]), compare);
	return (double)samples[rounds / 2] / n;
}

static void open_all(struct bench *b)
{
	int ret = gpu_open(&b->gpu, 0);

	if (ret) {
		puts("1..0 # SKIP no GPU with SDMA batches");
		exit(4);
	}
	check("from", buffer_map(&b->gpu, &b->from, 128 * MIB,
				 AMDGPU_GEM_DOMAIN_GTT, FROM_VA));
	check("to", buffer_map(&b->gpu, &b->to, 256 * MIB,
			       AMDGPU_GEM_DOMAIN_VRAM, TO_VA));
	check("ib", buffer_map(&b->gpu, &b->ib, IB_SIZE, AMDGPU_GEM_DOMAIN_GTT,
			       IB_VA));
	make_list(b);
	check("syncobj", syncobj_new(&b->gpu, &b->out));
}

static void bench_submit(struct bench *b, uint32_t n, int rounds)
{
	double cs, ib, batch, prepared;

	/* Many single submissions take long and vary little. */
	cs = median(b, n, n > 64 ? 1 : rounds, by_cs);
	ib = median(b, n, rounds, by_ib);
	batch = median(b, n, rounds, by_batch);
	make_prepared(b, n);
	prepared = median(b, n, rounds, by_prepared);
	check("forget", forget(&b->gpu, b->prepared));
	printf("%6u %6u %9.1f %9.1f %9.1f %9.2f %8.1f %8.2f %10.2f", b->size, n,
	       cs, ib, batch, prepared, cs / batch, batch / ib,
	       prepared / batch);
}

static void bench_end(struct bench *b, uint32_t n, int rounds)
{
#ifdef HAVE_LIBURING
	printf(" %9.1f %9.1f", median(b, n, rounds, by_wait),
	       median(b, n, rounds, by_uring));
#endif
	printf("\n");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const uint32_t counts[] = { 1, 8, 64, 512, 4096, 65536 };
	static const uint32_t sizes[] = { 4096, 65536 };
	int rounds = argc > 1 ? atoi(argv[1]) : 5;
	static struct bench b;
	unsigned int i, j;

	if (rounds < 1 || rounds > 64)
		return 1;
	open_all(&b);
#ifdef HAVE_LIBURING
	check("ring", io_uring_queue_init(8, &ring, 0));
#endif
	printf("n=%d, medians, ns or instructions of the process a copy\n", rounds);
	printf("%6s %6s %9s %9s %9s %9s %8s %8s %10s %9s %9s\n", "size",
	       "copies", "cs", "ib", "batch", "prep", "cs/batch", "batch/ib",
	       "prep/batch", "wait", "uring");
	for (i = 0; i < 2; i++) {
		for (j = 0; j < 6; j++) {
			b.size = sizes[i];
			if ((uint64_t)b.size * counts[j] > b.to.size)
				continue;
			bench_submit(&b, counts[j], rounds);
			bench_end(&b, counts[j], rounds);
		}
	}
	return 0;
}
