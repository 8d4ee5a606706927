// SPDX-License-Identifier: GPL-2.0
/*
 * sdma_batch_bench [rounds]: CPU time that the process takes to submit N
 * copies, in nanoseconds per copy. The figures are medians, one line for each
 * size of a copy, N and way.
 *
 *	cs	one AMDGPU_CS for each copy
 *	ib	one AMDGPU_CS with all copies in one buffer
 *	batch	one DRM_IOCTL_AMDGPU_SDMA_BATCH
 *	prep	one run of a prepared batch
 *	fan	like batch, on all engines
 *
 * and until the end is known
 *
 *	wait	of "batch" and a wait for its syncobj
 *	uring	of one batch by io_uring, including its worker, if it was built
 *		with liburing
 *
 * Descriptors have the minimum size, which is enough for a copy. Building the
 * buffer of "ib" and the descriptors of "batch" is counted; preparing a batch
 * is not, nor, in the first five ways, the wait for the end. The time of the
 * scheduler's worker and of the interrupt does not count as the process's: both
 * run once for each job, which in "cs" is once for each copy. In a guest whose
 * clock counts instructions (QEMU's -icount shift=0) the figures are
 * instructions; the driver then needs lockup_timeout=-1.
 *
 * User space's share comes from a second measurement of the same code without
 * the system calls; the rest is the kernel's. liburing makes its system call
 * itself, so the few instructions around it count as the kernel's.
 *
 * Further columns tell what all N copies take together: system calls, fences
 * that engines write, and doorbells and interrupts, if the device reports them.
 *
 * Exits with 1 if the figures miss a goal, and says which.
 */
#include <sched.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>

#include "emulator.h"
#include "sdma_uring.h"

#define MAX_COPIES	65536
#define FROM_VA		(1024 * MIB)
#define TO_VA		(2048 * MIB)
#define IB_VA		(512 * MIB)
#define IB_SIZE		(2 * MIB)
/* The cost of one AMDGPU_CS does not depend on how many there are. */
#define MAX_CS		4096

/* What a plain copy needs of a descriptor: AMDGPU_SDMA_DESC_SIZE_MIN bytes. */
struct short_desc {
	uint32_t op, flags;
	uint64_t dst, src, size;
};

struct bench {
	struct gpu gpu;
	struct buffer from, to, ib;
	uint32_t list;
	uint32_t out;
	uint32_t prepared;
	uint32_t size;
	int port; /* to the emulator, or negative */
	bool dry; /* without system calls */
	unsigned long calls;
	struct short_desc descs[MAX_COPIES];
};

static void check(const char *what, int ret)
{
	if (!ret)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-ret));
	exit(1);
}

/* Of all threads of the process, including those of io_uring. */
static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* Without the cost of reading the clock. */
static uint64_t since(uint64_t start)
{
	static bool measured;
	static uint64_t cost;
	uint64_t spent = now() - start, again;
	int i;

	for (i = 0; !measured && i < 64; i++) {
		again = now();
		again = now() - again;
		if (!i || again < cost)
			cost = again;
	}
	measured = true;
	return spent > cost ? spent - cost : 0;
}

/* A system call that is measured. */
static void call(struct bench *b, const char *what, unsigned long cmd, void *arg)
{
	b->calls++;
	if (!b->dry)
		check(what, gpu_ioctl(&b->gpu, cmd, arg));
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

/* Copies are not contiguous, or the driver would merge them. */
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

	call(b, "CS", DRM_IOCTL_AMDGPU_CS, &arg);
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

	if (!b->dry)
		check("wait", gpu_ioctl(&b->gpu, DRM_IOCTL_AMDGPU_WAIT_CS, &arg));
}

static void wait_out(struct bench *b)
{
	uint64_t point = 0;
	struct drm_syncobj_timeline_wait arg = {
		.handles = (uintptr_t)&b->out,
		.points = (uintptr_t)&point,
		.count_handles = 1,
		.flags = DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT,
		/* a clock that counts instructions jumps when all is idle */
		.timeout_nsec = INT64_MAX,
	};

	if (!b->dry)
		check("wait", gpu_ioctl(&b->gpu, DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT,
					&arg));
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
		/* with more at once, the context would wait */
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

static struct drm_amdgpu_sdma_batch batch_of_all(struct bench *b, uint32_t n)
{
	return (struct drm_amdgpu_sdma_batch) {
		.ctx_id = b->gpu.ctx,
		.descs = (uintptr_t)b->descs,
		.num_descs = n,
		.desc_stride = sizeof(b->descs[0]),
	};
}

static void submit(struct bench *b, uint32_t n, uint32_t placement)
{
	struct drm_amdgpu_sdma_batch batch = batch_of_all(b, n);
	struct drm_amdgpu_sdma_fence out = { .handle = b->out };

	put_descs(b, n);
	batch.placement = placement;
	batch.out_fences = (uintptr_t)&out;
	batch.num_out_fences = 1;
	call(b, "batch", DRM_IOCTL_AMDGPU_SDMA_BATCH, &batch);
}

/* The wait for the end comes after the time is taken. */
static uint64_t time_submit(struct bench *b, uint32_t n, uint32_t placement)
{
	uint64_t start = now();

	submit(b, n, placement);
	start = since(start);
	wait_out(b);
	return start;
}

static uint64_t by_batch(struct bench *b, uint32_t n)
{
	return time_submit(b, n, AMDGPU_SDMA_PLACE_ONE_ENGINE);
}

static uint64_t by_fan(struct bench *b, uint32_t n)
{
	return time_submit(b, n, AMDGPU_SDMA_PLACE_FAN_OUT);
}

static uint64_t by_wait(struct bench *b, uint32_t n)
{
	uint64_t start = now();

	submit(b, n, AMDGPU_SDMA_PLACE_ONE_ENGINE);
	wait_out(b);
	b->calls++;
	return since(start);
}

static uint64_t by_prepared(struct bench *b, uint32_t n)
{
	struct drm_amdgpu_sdma_batch batch = run_of(&b->gpu, b->prepared);
	struct drm_amdgpu_sdma_fence out = { .handle = b->out };
	uint64_t start = now();

	batch.out_fences = (uintptr_t)&out;
	batch.num_out_fences = 1;
	call(b, "run", DRM_IOCTL_AMDGPU_SDMA_BATCH, &batch);
	start = since(start);
	wait_out(b);
	return start;
}

/* The descriptors are those of by_batch(), which has run. */
static void make_prepared(struct bench *b, uint32_t n)
{
	struct drm_amdgpu_sdma_batch batch = batch_of_all(b, n);

	batch.placement = AMDGPU_SDMA_PLACE_ONE_ENGINE;
	check("prepare", batch_prepare(&b->gpu, &batch, &b->prepared));
}

#ifdef HAVE_LIBURING
static struct io_uring ring;

static uint64_t by_uring(struct bench *b, uint32_t n)
{
	struct drm_amdgpu_sdma_batch batch = batch_of_all(b, n);
	uint64_t start = now();
	struct io_uring_cqe *cqe;

	put_descs(b, n);
	batch.placement = AMDGPU_SDMA_PLACE_ONE_ENGINE;
	put_batch(&ring, &b->gpu, &batch);
	b->calls++;
	if (b->dry) {
		ring.sq.sqe_tail--; /* the entry is free again */
		return since(start);
	}
	if (io_uring_submit_and_wait(&ring, 1) != 1 ||
	    io_uring_peek_cqe(&ring, &cqe))
		check("io_uring", -EIO);
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

	for (i = 0; i < rounds; i++)
		samples[i] = way(b, n);
	qsort(samples, rounds, sizeof(samples[0]), compare);
	return (double)samples[rounds / 2] / n;
}

/* The work for a submission, or negative where it is not reported. */
struct work {
	double calls, fences, doorbells, interrupts;
};

/* Fences of the SDMA rings that were emitted since the driver was loaded. */
static double fences(struct bench *b)
{
	char path[128], line[256];
	bool sdma = false;
	double sum = -1;
	struct stat st;
	FILE *f;

	if (fstat(b->gpu.fd, &st))
		return -1;
	snprintf(path, sizeof(path), "/sys/kernel/debug/dri/%u/amdgpu_fence_info",
		 minor(st.st_rdev));
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "--- ring", 8)) {
			sdma = strstr(line, "(sdma");
		} else if (sdma && !strncmp(line, "Last emitted", 12)) {
			sum = (sum < 0 ? 0 : sum) + strtoul(line + 12, NULL, 16);
			sdma = false; /* the ring's other fences follow */
		}
	}
	if (f)
		fclose(f);
	return sum;
}

/* The work so far, once the device is idle. */
static struct work work_done(struct bench *b)
{
	struct work last, now = { -1, -1, -1, -1 };
	int i;

	for (i = 0; i < 100; i++) {
		last = now;
		now.calls = b->calls;
		now.fences = fences(b);
		if (b->port >= 0) {
			now.doorbells = emulator_count(b->port,
						       "engine_doorbells");
			now.interrupts = emulator_count(b->port, "interrupts");
		}
		if (!memcmp(&last, &now, sizeof(now)))
			break;
		usleep(50000);
	}
	return now;
}

static double per_round(double before, double after, int rounds)
{
	return before < 0 ? -1 : (after - before) / rounds;
}

static struct work work_since(struct bench *b, const struct work *before,
			      int rounds)
{
	struct work now = work_done(b);

	return (struct work) {
		.calls = per_round(before->calls, now.calls, rounds),
		.fences = per_round(before->fences, now.fences, rounds),
		.doorbells = per_round(before->doorbells, now.doorbells, rounds),
		.interrupts = per_round(before->interrupts, now.interrupts,
					rounds),
	};
}

struct result {
	double user, all; /* per copy */
	struct work work; /* of all copies together */
};

static struct result measure(struct bench *b, uint32_t n, int rounds,
			     uint64_t (*way)(struct bench *b, uint32_t n))
{
	struct result result;
	struct work before;

	way(b, n); /* allocates memory that is kept */
	before = work_done(b);
	result.all = median(b, n, rounds, way);
	result.work = work_since(b, &before, rounds);
	b->dry = true;
	result.user = median(b, n, rounds, way);
	b->dry = false;
	return result;
}

enum { CS, IB, BATCH, PREP, FAN, WAIT, URING, WAYS };

static const struct {
	const char *name;
	uint64_t (*run)(struct bench *b, uint32_t n);
} ways[WAYS] = {
	[CS] = { "cs", by_cs },
	[IB] = { "ib", by_ib },
	[BATCH] = { "batch", by_batch },
	[PREP] = { "prep", by_prepared },
	[FAN] = { "fan", by_fan },
	[WAIT] = { "wait", by_wait },
#ifdef HAVE_LIBURING
	[URING] = { "uring", by_uring },
#endif
};

static const uint32_t sizes[] = { 4096, 65536 };
static const uint32_t counts[] = { 1, 8, 64, 512, 4096, 65536 };

#define SIZES	2
#define COUNTS	6
/* Counts that goals use; the cost of 512 copies is the reference for more. */
#define AT_64	2
#define AT_512	3
#define AT_4096	4

/* Ways that were not measured have a time of 0. */
static struct result results[SIZES][COUNTS][WAYS];

static void print_work(double count)
{
	if (count < 0)
		printf(" %10s", "-");
	else
		printf(" %10.1f", count);
}

static void print_result(uint32_t size, uint32_t n, const char *name,
			 const struct result *r)
{
	printf("%6u %6u %-6s %9.2f %9.2f %9.2f", size, n, name, r->user,
	       r->all - r->user, r->all);
	print_work(r->work.calls);
	print_work(r->work.fences);
	print_work(r->work.doorbells);
	print_work(r->work.interrupts);
	printf("\n");
	fflush(stdout);
}

static void measure_way(struct bench *b, uint32_t n, int rounds, int way,
			struct result *result)
{
	if (!ways[way].run || (way == CS && n > MAX_CS))
		return;
	if (way == PREP)
		make_prepared(b, n);
	*result = measure(b, n, rounds, ways[way].run);
	if (way == PREP)
		check("forget", forget(&b->gpu, b->prepared));
	print_result(b->size, n, ways[way].name, result);
}

static void measure_all(struct bench *b, int rounds)
{
	int i, j, way;

	printf("%6s %6s %-6s %9s %9s %9s %10s %10s %10s %10s\n", "size",
	       "copies", "way", "user", "kernel", "all", "syscalls", "fences",
	       "doorbells", "interrupts");
	for (i = 0; i < SIZES; i++) {
		b->size = sizes[i];
		for (j = 0; j < COUNTS; j++) {
			if ((uint64_t)b->size * counts[j] > b->to.size)
				continue;
			for (way = 0; way < WAYS; way++)
				measure_way(b, counts[j], rounds, way,
					    &results[i][j][way]);
		}
	}
}

/* Whether a goal is missed; the result is printed either way. */
static bool missed(const char *what, double figure, const char *limit, bool met)
{
	printf("%-6s %s: %.3f, goal: %s\n", met ? "met" : "MISSED", what, figure,
	       limit);
	return !met;
}

static int ratio_goals(int size)
{
	const struct result *r = results[size][AT_64];
	const struct result *many = results[size][AT_4096];
	double cs = r[CS].all / r[BATCH].all;
	double ib = r[BATCH].all / r[IB].all;
	double prep = r[PREP].all / r[BATCH].all;
	int bad;

	bad = missed("cs / batch", cs, "30 or more", cs >= 30) +
	      missed("batch / ib", ib, "1.3 or less", ib <= 1.3) +
	      missed("prep / batch", prep, "0.5 or less", prep <= 0.5);
	if (!many[BATCH].all)
		return bad;
	ib = many[BATCH].all / many[IB].all;
	return bad + missed("batch / ib of 4096 copies", ib, "4 or less",
			    ib <= 4);
}

/* No cliff: with more copies, each costs at most a fifth more than with 512. */
static int cliff_goals(int size)
{
	const struct result (*r)[WAYS] = results[size];
	double most, ratio;
	char what[32];
	int j, way, bad = 0;

	for (way = IB; way < WAYS; way++) {
		if (!r[AT_512][way].all)
			continue;
		most = 0;
		for (j = AT_512 + 1; j < COUNTS; j++) {
			ratio = r[j][way].all / r[AT_512][way].all;
			most = ratio > most ? ratio : most;
		}
		snprintf(what, sizeof(what), "%s, more than 512 / 512",
			 ways[way].name);
		bad += missed(what, most, "1.2 or less", most <= 1.2);
	}
	return bad;
}

/* For any number of copies. Work that was not counted has no goal. */
static int work_goal(int size, int way, const char *name, size_t member,
		     double limit)
{
	double count, worst = limit;
	char what[64], text[32];
	int j;

	for (j = 0; j < COUNTS; j++) {
		if (!results[size][j][way].all)
			continue;
		count = *(double *)((char *)&results[size][j][way].work + member);
		if (count < 0)
			return 0;
		if (count != limit)
			worst = count;
	}
	snprintf(what, sizeof(what), "%s of %s", name, ways[way].name);
	snprintf(text, sizeof(text), "%g", limit);
	return missed(what, worst, text, worst == limit);
}

static int work_goals(int size, int way)
{
	return work_goal(size, way, "syscalls", offsetof(struct work, calls), 1) +
	       work_goal(size, way, "fences", offsetof(struct work, fences), 1) +
	       work_goal(size, way, "doorbells",
			 offsetof(struct work, doorbells), 1) +
	       work_goal(size, way, "interrupts",
			 offsetof(struct work, interrupts), 1);
}

static int goals(void)
{
	int size, bad = 0;

	for (size = 0; size < SIZES; size++) {
		printf("\nAt 64 copies of %u bytes\n", sizes[size]);
		bad += ratio_goals(size);
		printf("Up to 65536 copies of %u bytes, 256 MiB at most\n",
		       sizes[size]);
		bad += cliff_goals(size);
		bad += work_goals(size, BATCH);
		bad += work_goals(size, PREP);
	}
	return bad;
}

/*
 * Otherwise it depends on the scheduler whether what a submission wakes, the
 * driver's worker and then the interrupt, runs before or after it has returned.
 */
static void be_undisturbed(void)
{
	struct sched_param param = { .sched_priority = 1 };

	if (sched_setscheduler(0, SCHED_FIFO, &param))
		puts("not SCHED_FIFO, the figures vary");
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
	b->port = emulator_open();
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 5;
	static struct bench b;
	struct utsname uts;

	if (rounds < 1 || rounds > 64)
		return 1;
	be_undisturbed();
	open_all(&b);
#ifdef HAVE_LIBURING
	check("ring", io_uring_queue_init(8, &ring, 0));
#endif
	uname(&uts);
	printf("Linux %s, n=%d, medians: ns or instructions of the process a copy;\n"
	       "calls, fences, doorbells, interrupts: of all copies together, mean\n",
	       uts.release, rounds);
	measure_all(&b, rounds);
	return goals() ? 1 : 0;
}
