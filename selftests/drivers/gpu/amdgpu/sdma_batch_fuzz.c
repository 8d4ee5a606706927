// SPDX-License-Identifier: GPL-2.0
/*
 * Random calls of DRM_IOCTL_AMDGPU_SDMA_BATCH, most of them nearly right, some
 * not at all, interrupted by signals: batches, prepared ones and their runs, by
 * ioctl and by io_uring. Whatever a call returns, memory that it must not touch
 * does not change, every accepted batch ends, and the GPU goes on.
 *
 * SECONDS=N sets the time to run (default 10), SEED=N the random calls; the
 * seed is printed.
 *
 * On a kernel with KCOV, calls that reach code that none reached before are
 * kept, and about every other call is one of these, with some of it spoilt.
 */
#include <fcntl.h>
#include <linux/kcov.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "../../../kselftest.h"
#include "kmsg.h"
#include "sdma_batch_fuzz.h"
#include "sdma_uring.h"

#define MAX_DESCS	48
#define MAX_HANDLES	8

#define MAX_KEPT	512
#define COVER_WORDS	65536

/* A call, with all that it points to. */
struct call {
	struct drm_amdgpu_sdma_batch batch;
	struct drm_amdgpu_sdma_desc d[MAX_DESCS];
	struct drm_amdgpu_sdma_fence fences[4];
};

/* What KCOV reports: @words[0] is the number of addresses that follow. */
struct cover {
	unsigned long *words;
	bool seen[65536];
	unsigned int places;
};

/* What a call asks for. */
enum kind { BATCH, PREPARE, RUN, FORGET, OTHER, KINDS };

static const char * const kind_names[KINDS] = {
	"batch", "prepare", "run", "forget", "other",
};

struct count {
	unsigned long calls, taken;
};

struct fuzz {
	struct gpu gpu;
	struct memory memory;
	uint32_t syncobj;
	int kmsg;
	uint64_t state;
	struct call call;
	unsigned long calls, taken, gave_up;
	struct count kinds[KINDS];
	struct count by_uring;
	/* Of prepared batches, or 0. */
	uint32_t handles[MAX_HANDLES];
	struct io_uring ring;
	bool has_ring;
	struct cover cover;
	struct call kept[MAX_KEPT];
	unsigned int num_kept;
};

static uint32_t rnd(struct fuzz *f)
{
	return random_number(&f->state);
}

static uint32_t below(struct fuzz *f, uint32_t n)
{
	return random_below(&f->state, n);
}

static bool rarely(struct fuzz *f)
{
	return below(f, 100) == 0;
}

/* Values that code tends to get wrong. */
static uint64_t edge(struct fuzz *f)
{
	static const uint64_t edges[] = {
		0, 1, 2, 63, 64, 4095, 4096, 0xfff, 0xffe, 0xffff, 1 << 20,
		1ULL << 22, 1ULL << 30, 1ULL << 32, (1ULL << 33) + 1,
		1ULL << 47, (1ULL << 47) - 1, 0xffff800000000000ULL,
		~0ULL, ~0ULL - 4095, GUARD_VA, VA + SIZE - 1, VA + SIZE,
	};
	uint64_t value = edges[below(f, ARRAY_SIZE(edges))];

	return below(f, 4) ? value : (uint64_t)rnd(f) << below(f, 33);
}

static uint64_t address(struct fuzz *f)
{
	return memory_address(&f->memory, &f->state);
}

static uint64_t size(struct fuzz *f)
{
	return 1 + below(f, below(f, 2) ? 64 : 32 * KIB);
}

static void make_wait(struct fuzz *f, struct drm_amdgpu_sdma_desc *d)
{
	d->src = address(f) & ~3ULL;
	d->mask = below(f, 2) ? ~0u : 1u << below(f, 32);
	d->value = below(f, 2) ? 0 : rnd(f) & d->mask;
	d->compare = below(f, 4);
	d->timeout_ns = below(f, 300000);
}

static void make_rect(struct fuzz *f, struct drm_amdgpu_sdma_desc *d)
{
	d->src = address(f);
	d->dst = address(f);
	d->size = 1 + below(f, 256);
	d->rows = 1 + below(f, 32);
	d->src_pitch = d->size + (below(f, 3) ? below(f, 256) : 0);
	d->dst_pitch = d->size + (below(f, 3) ? below(f, 256) : 0);
}

static void make_signal(struct fuzz *f, struct drm_amdgpu_sdma_desc *d)
{
	d->dst = address(f) & ~7ULL;
	d->value = rnd(f);
}

/* COPY, FILL, BROADCAST or SWAP. */
static void make_move(struct fuzz *f, struct drm_amdgpu_sdma_desc *d)
{
	unsigned int i, more;

	d->dst = address(f);
	d->size = size(f);
	if (d->op == AMDGPU_SDMA_OP_FILL)
		d->value = rnd(f);
	else
		d->src = below(f, 4) ? address(f) : GUARD_VA;
	if (d->op != AMDGPU_SDMA_OP_BROADCAST)
		return;
	more = 1 + below(f, f->gpu.info.max_broadcast - 1);
	for (i = 0; i < more; i++)
		d->dst_more[i] = address(f);
}

/* A descriptor that would be accepted alone. */
static void make_desc(struct fuzz *f, struct drm_amdgpu_sdma_desc *d)
{
	memset(d, 0, sizeof(*d));
	d->op = below(f, AMDGPU_SDMA_OP_COPY_RECT + 1);
	if (d->op == AMDGPU_SDMA_OP_WAIT && below(f, 4))
		d->op = AMDGPU_SDMA_OP_COPY;
	if (d->op == AMDGPU_SDMA_OP_WAIT)
		make_wait(f, d);
	else if (d->op == AMDGPU_SDMA_OP_COPY_RECT)
		make_rect(f, d);
	else if (d->op > AMDGPU_SDMA_OP_WAIT)
		make_signal(f, d);
	else
		make_move(f, d);
	/* most batches need an order to be accepted */
	if (below(f, 3))
		d->flags |= AMDGPU_SDMA_DESC_BARRIER;
	if (below(f, 4))
		d->flags |= AMDGPU_SDMA_DESC_FAULT;
	if (!below(f, 8)) {
		d->flags |= AMDGPU_SDMA_DESC_RECORD;
		d->record = address(f) & ~31ULL;
	}
}

static void spoil(struct fuzz *f, void *p, size_t bytes)
{
	uint64_t value = edge(f);

	if (below(f, 2))
		memcpy((char *)p + below(f, bytes / 8) * 8, &value, 8);
	else
		((char *)p)[below(f, bytes)] ^= 1 << below(f, 8);
}

/* Not so long that the ring's timeout treats the batch as hung. */
static void limit_waits(struct fuzz *f)
{
	const uint64_t most = wait_ns(&f->gpu, 50);
	uint32_t i;

	for (i = 0; i < MAX_DESCS; i++)
		if (f->call.d[i].timeout_ns > most &&
		    f->call.d[i].timeout_ns <= f->gpu.info.max_wait_ns)
			f->call.d[i].timeout_ns = most;
}

static uint32_t any_handle(struct fuzz *f)
{
	if (!below(f, 16))
		return below(f, 2 * MAX_HANDLES);
	return f->handles[below(f, MAX_HANDLES)];
}

static void make_fences(struct fuzz *f)
{
	struct drm_amdgpu_sdma_batch *batch = &f->call.batch;
	uint32_t i;

	memset(f->call.fences, 0, sizeof(f->call.fences));
	for (i = 0; i < ARRAY_SIZE(f->call.fences); i++)
		f->call.fences[i].handle = f->syncobj;
	batch->out_fences = (uintptr_t)f->call.fences;
	batch->num_out_fences = 1;
}

/* A batch, to run or to prepare. */
static void make_batch(struct fuzz *f, bool prepared)
{
	struct drm_amdgpu_sdma_batch *batch = &f->call.batch;
	uint32_t i, n = 1 + below(f, MAX_DESCS);

	*batch = batch_of(&f->gpu, f->call.d, below(f, 4) ? 1 + n % 4 : n);
	for (i = 0; i < batch->num_descs; i++)
		make_desc(f, &f->call.d[i]);
	batch->placement = below(f, 3);
	batch->flags = below(f, 4) ? 0 : below(f, 4);
	if (!below(f, 4))
		batch->records = address(f) & ~31ULL;
	if (prepared)
		batch->op = AMDGPU_SDMA_BATCH_PREPARE;
	else
		make_fences(f);
	if (below(f, 2))
		batch->engine_mask = f->gpu.info.engine_mask & rnd(f);
	while (!below(f, 3))
		spoil(f, &f->call.d[below(f, batch->num_descs)],
		      sizeof(f->call.d[0]));
	limit_waits(f);
}

static void make_forget(struct fuzz *f)
{
	f->call.batch = (struct drm_amdgpu_sdma_batch) {
		.op = AMDGPU_SDMA_BATCH_FORGET,
		.handle = any_handle(f),
	};
}

static void make_call(struct fuzz *f)
{
	struct drm_amdgpu_sdma_batch *batch = &f->call.batch;
	uint32_t what = below(f, 32);

	if (what < 12) {
		make_batch(f, false);
	} else if (what < 20) {
		make_batch(f, true);
	} else if (what < 31) {
		*batch = run_of(&f->gpu, any_handle(f));
		make_fences(f);
	} else {
		make_forget(f);
	}
	while (rarely(f))
		spoil(f, f->call.fences, sizeof(f->call.fences));
	while (!below(f, 10))
		spoil(f, batch, sizeof(*batch));
}

static void keep(struct fuzz *f)
{
	f->kept[f->num_kept < MAX_KEPT ? f->num_kept++ : below(f, MAX_KEPT)] =
		f->call;
}

/* A kept call, with a new descriptor or with something spoilt. */
static void vary(struct fuzz *f)
{
	struct drm_amdgpu_sdma_desc *d;

	f->call = f->kept[below(f, f->num_kept)];
	do {
		d = &f->call.d[below(f, 2) ? 0 : below(f, MAX_DESCS)];
		if (below(f, 2))
			make_desc(f, d);
		else
			spoil(f, d, sizeof(*d));
	} while (below(f, 2));
	limit_waits(f);
	if (f->call.batch.op == AMDGPU_SDMA_BATCH_RUN)
		f->call.batch.handle = any_handle(f);
	if (!below(f, 8))
		spoil(f, f->call.fences, sizeof(f->call.fences));
	if (!below(f, 8))
		spoil(f, &f->call.batch, sizeof(f->call.batch));
}

/* Without KCOV no code is seen, and no call is kept. */
static void cover_open(struct cover *c)
{
	int fd = open("/sys/kernel/debug/kcov", O_RDWR);

	if (fd < 0)
		return;
	if (ioctl(fd, KCOV_INIT_TRACE, COVER_WORDS))
		ksft_exit_fail_msg("KCOV_INIT_TRACE: %m\n");
	c->words = mmap(NULL, COVER_WORDS * sizeof(*c->words),
			PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (c->words == MAP_FAILED || ioctl(fd, KCOV_ENABLE, KCOV_TRACE_PC))
		ksft_exit_fail_msg("KCOV: %m\n");
}

static void cover_start(struct cover *c)
{
	if (c->words)
		__atomic_store_n(&c->words[0], 0, __ATOMIC_RELAXED);
}

/* Whether the kernel has reached code that no call had reached before. */
static bool cover_grows(struct cover *c)
{
	unsigned int before = c->places;
	unsigned long i, n;

	if (!c->words)
		return false;
	n = __atomic_load_n(&c->words[0], __ATOMIC_RELAXED);
	for (i = 1; i <= n; i++) {
		bool *seen = &c->seen[c->words[i] * 0x9e3779b97f4a7c15ULL >> 48];

		c->places += !*seen;
		*seen = true;
	}
	return c->places > before;
}

/* A batch that was accepted ends: well, or because a wait gave up. */
static void wait_end(struct fuzz *f)
{
	int ret = syncobj_wait(&f->gpu, f->syncobj, 0, WAIT_SECONDS);

	if (ret)
		ksft_exit_fail_msg("call %lu: no end: %d\n", f->calls, ret);
	ret = syncobj_status(&f->gpu, f->syncobj);
	if (ret == -ETIME)
		f->gave_up++;
	else if (ret != 1)
		ksft_exit_fail_msg("call %lu: ended with %d\n", f->calls, ret);
}

static enum kind kind_of(const struct drm_amdgpu_sdma_batch *batch)
{
	switch (batch->op) {
	case AMDGPU_SDMA_BATCH_SUBMIT:
		return BATCH;
	case AMDGPU_SDMA_BATCH_PREPARE:
		return PREPARE;
	case AMDGPU_SDMA_BATCH_RUN:
		return RUN;
	case AMDGPU_SDMA_BATCH_FORGET:
		return FORGET;
	default:
		return OTHER;
	}
}

static void drop_handle(struct fuzz *f, uint32_t handle)
{
	unsigned int i;

	for (i = 0; i < MAX_HANDLES; i++)
		if (f->handles[i] == handle)
			f->handles[i] = 0;
}

/* Replaces another handle, which is forgotten: their number is limited. */
static void keep_handle(struct fuzz *f, uint32_t handle)
{
	uint32_t *place = &f->handles[below(f, MAX_HANDLES)];

	if (*place)
		forget(&f->gpu, *place);
	*place = handle;
}

/* A command also returns how the batch ended: -ETIME if a wait gave up. */
static int call_by_uring(struct fuzz *f, struct drm_amdgpu_sdma_batch *args)
{
	int ret = run_by(&f->ring, &f->gpu, args);

	if (ret == -ETIMEDOUT)
		ksft_exit_fail_msg("call %lu: no completion\n", f->calls);
	f->by_uring.calls++;
	if (ret == -ETIME && args->engines_used) {
		f->gave_up++;
		ret = 0;
	}
	f->by_uring.taken += !ret;
	return ret;
}

static bool fenced(struct fuzz *f)
{
	const struct drm_amdgpu_sdma_batch *batch = &f->call.batch;

	return batch->out_fences == (uintptr_t)f->call.fences &&
	       batch->num_out_fences && batch->num_out_fences < 4 &&
	       f->call.fences[0].handle == f->syncobj &&
	       !f->call.fences[0].point;
}

static void fuzz_once(struct fuzz *f)
{
	const struct drm_amdgpu_sdma_batch *batch = &f->call.batch;
	struct drm_amdgpu_sdma_batch args;
	struct count *count;
	int ret;

	memory_change(&f->memory, &f->state);
	if (f->num_kept && below(f, 2))
		vary(f);
	else
		make_call(f);
	args = *batch;
	count = &f->kinds[kind_of(&args)];
	count->calls++;
	f->calls++;
	cover_start(&f->cover);
	if (f->has_ring && !below(f, 4))
		ret = call_by_uring(f, &args);
	else
		ret = batch_submit(&f->gpu, &args);
	if (cover_grows(&f->cover))
		keep(f);
	if (ret) {
		if (args.engines_used)
			ksft_exit_fail_msg("call %lu: %d, but runs\n",
					   f->calls, ret);
		return;
	}
	f->taken++;
	count->taken++;
	if (batch->op == AMDGPU_SDMA_BATCH_PREPARE)
		keep_handle(f, args.handle);
	else if (batch->op == AMDGPU_SDMA_BATCH_FORGET)
		drop_handle(f, batch->handle);
	else if (fenced(f) && below(f, 4) == 0)
		wait_end(f);
}

static bool intact(struct fuzz *f)
{
	size_t i;

	for (i = 0; i < GUARD_SIZE; i++)
		if (f->memory.guard.cpu[i] != 0x3c)
			return false;
	return true;
}

static int copy_guard(struct fuzz *f, uint32_t engine_mask)
{
	const struct drm_amdgpu_sdma_desc d =
		copy_desc(GUARD_VA, VA, GUARD_SIZE);
	struct drm_amdgpu_sdma_batch batch = batch_of(&f->gpu, &d, 1);

	batch.engine_mask = engine_mask;
	return batch_run(&f->gpu, &batch);
}

/* A batch finds all that it uses mapped, or is refused. */
static void test_faults(struct fuzz *f)
{
	if (f->kmsg < 0)
		ksft_test_result_skip("the kernel's log is not to be read\n");
	else
		ksft_test_result(!kmsg_has(f->kmsg, "page fault", "amdgpu"),
				 "no batch made the GPU fault\n");
}

/* A copy that must work, on each engine, after all that was accepted there. */
static int sane(struct fuzz *f)
{
	uint32_t engine;
	int ret = 0;

	for (engine = 0; engine < 32 && !ret; engine++) {
		if (f->gpu.info.engine_mask & 1u << engine)
			ret = copy_guard(f, 1u << engine);
	}
	/* nothing runs any more */
	memset(f->memory.buffer.cpu, 0, GUARD_SIZE);
	if (!ret)
		ret = copy_guard(f, 0);
	if (ret)
		return ret;
	return memcmp(f->memory.buffer.cpu, f->memory.guard.cpu, GUARD_SIZE) ?
		-EIO : 0;
}

static void open_all(struct fuzz *f)
{
	f->kmsg = kmsg_open();
	if (gpu_open(&f->gpu, 0))
		ksft_exit_skip("no GPU with SDMA batches\n");
	if (memory_open(&f->memory, &f->gpu) ||
	    syncobj_new(&f->gpu, &f->syncobj))
		ksft_exit_fail_msg("no memory for batches\n");
	memset(f->memory.guard.cpu, 0x3c, GUARD_SIZE);
	f->has_ring = !io_uring_queue_init(8, &f->ring, 0);
}

static void on_alarm(int sig)
{
}

/* Signals at all times, without SA_RESTART: calls end with EINTR. */
static void start_signals(void)
{
	struct sigaction action = { .sa_handler = on_alarm };
	struct itimerval timer = {
		.it_interval.tv_usec = 23000, .it_value.tv_usec = 23000,
	};

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

/* What is printed from here on must not be cut off. */
static void stop_signals(void)
{
	struct itimerval never = { };

	setitimer(ITIMER_REAL, &never, NULL);
}

static void print_kinds(struct fuzz *f)
{
	unsigned int i;

	for (i = 0; i < KINDS; i++)
		ksft_print_msg("%s: %lu calls, %lu taken\n", kind_names[i],
			       f->kinds[i].calls, f->kinds[i].taken);
	ksft_print_msg("by io_uring: %lu calls, %lu taken\n",
		       f->by_uring.calls, f->by_uring.taken);
}

int main(void)
{
	unsigned int seed = env("SEED", 1);
	time_t end = time(NULL) + env("SECONDS", 10);
	static struct fuzz f;
	int ret;

	ksft_print_header();
	open_all(&f);
	ksft_set_plan(6);
	ksft_print_msg("SEED=%u\n", seed);
	f.state = seed;
	cover_open(&f.cover);
	start_signals();
	while (time(NULL) < end)
		fuzz_once(&f);
	stop_signals();
	ret = sane(&f);
	ksft_print_msg("%lu calls, %lu taken, %lu of those looked at gave up\n",
		       f.calls, f.taken, f.gave_up);
	ksft_print_msg("%u places in the kernel, %u calls kept\n",
		       f.cover.places, f.num_kept);
	print_kinds(&f);
	ksft_test_result(!ret, "the GPU goes on (%d)\n", ret);
	test_faults(&f);
	ksft_test_result(intact(&f), "memory to read did not change\n");
	/* otherwise only one of both would be tested */
	ksft_test_result(f.taken > f.calls / 20 && f.taken < f.calls * 19 / 20,
			 "some were taken, some not\n");
	ksft_test_result(f.kinds[PREPARE].taken && f.kinds[RUN].taken &&
			 f.kinds[FORGET].taken,
			 "prepared batches ran\n");
	if (f.has_ring)
		ksft_test_result(f.by_uring.taken, "commands were taken\n");
	else
		ksft_test_result_skip("no io_uring\n");
	ksft_finished();
}
