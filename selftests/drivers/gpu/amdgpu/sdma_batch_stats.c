// SPDX-License-Identifier: GPL-2.0
/*
 * What the driver reports about SDMA batches, compared with what was submitted:
 * the fdinfo of each file, the histograms of the device in debugfs, and traces.
 * And the work of the device for a batch, if the device reports it.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "../../../kselftest_harness.h"
#include "emulator.h"
#include "sdma_prepared.h"
#include "trace.h"

#define VA	(1024 * MIB)
#define SIZE	(4 * MIB)

FIXTURE(stats)
{
	struct gpu gpu;
	struct buffer buffer;
};

FIXTURE_SETUP(stats)
{
	if (gpu_open(&self->gpu, 0))
		SKIP(return, "no GPU with SDMA batches");
	ASSERT_EQ(0, buffer_map(&self->gpu, &self->buffer, SIZE,
				AMDGPU_GEM_DOMAIN_VRAM, VA));
}

FIXTURE_TEARDOWN(stats)
{
	if (self->gpu.fd >= 0)
		close(self->gpu.fd);
}

struct fdinfo {
	unsigned long long batches;
	unsigned long long bytes;
	unsigned long long dma_ns;
};

/* The number after @name, if the line begins with that. */
static void read_number(const char *line, const char *name,
			unsigned long long *value)
{
	if (!strncmp(line, name, strlen(name)))
		*value = strtoull(line + strlen(name), NULL, 10);
}

static int read_fdinfo(int fd, struct fdinfo *info)
{
	char path[64], line[256];
	FILE *f;

	memset(info, 0, sizeof(*info));
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "r");
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		read_number(line, "amd-sdma-batches:", &info->batches);
		read_number(line, "amd-sdma-batch-bytes:", &info->bytes);
		read_number(line, "drm-engine-dma:", &info->dma_ns);
	}
	fclose(f);
	return 0;
}

#define SLOTS 40

struct device_stats {
	unsigned long long batches;
	unsigned long long failed;
	unsigned long long bytes;
	unsigned long long descriptors[SLOTS];
	unsigned long long sizes[SLOTS];
	unsigned long long microseconds[SLOTS];
};

/* Slot of the histogram that counts @value: its significant bits. */
static unsigned int slot_of(unsigned long long value)
{
	unsigned int slot = 0;

	for (; value; value >>= 1)
		slot++;
	return slot;
}

/* "name 1:5 64:3 ...", if the line has that name. */
static void read_histogram(const char *line, const char *name,
			   unsigned long long *slots)
{
	unsigned long long from, count;
	int used;

	if (strncmp(line, name, strlen(name)))
		return;
	line += strlen(name);
	while (sscanf(line, " %llu:%llu%n", &from, &count, &used) == 2) {
		slots[slot_of(from)] = count;
		line += used;
	}
}

static int read_device(int fd, struct device_stats *s)
{
	char path[128], line[4096];
	struct stat st;
	FILE *f;

	memset(s, 0, sizeof(*s));
	if (fstat(fd, &st))
		return -errno;
	snprintf(path, sizeof(path),
		 "/sys/kernel/debug/dri/%u/amdgpu_sdma_batches",
		 minor(st.st_rdev));
	f = fopen(path, "r");
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f)) {
		read_number(line, "batches ", &s->batches);
		read_number(line, "failed ", &s->failed);
		read_number(line, "bytes ", &s->bytes);
		read_histogram(line, "descriptors", s->descriptors);
		read_histogram(line, "sizes", s->sizes);
		read_histogram(line, "microseconds", s->microseconds);
	}
	fclose(f);
	return 0;
}

static unsigned long long sum(const unsigned long long *slots)
{
	unsigned long long total = 0;
	int i;

	for (i = 0; i < SLOTS; i++)
		total += slots[i];
	return total;
}

static unsigned long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* @n fills of @size bytes in one batch. */
static int fill(struct gpu *gpu, uint32_t n, uint64_t size, uint32_t placement)
{
	struct drm_amdgpu_sdma_desc d[32] = { 0 };
	struct drm_amdgpu_sdma_batch batch = batch_of(gpu, d, n);
	uint32_t i;

	for (i = 0; i < n; i++) {
		d[i].op = AMDGPU_SDMA_OP_FILL;
		d[i].dst = VA + i * size;
		d[i].size = size;
	}
	batch.placement = placement;
	return batch_run(gpu, &batch);
}

/*
 * A batch is accounted for by the fence's first callback, which may run a
 * moment after others see the fence signaled.
 */
static bool settles(int fd, unsigned long long batches, struct fdinfo *info)
{
	int i;

	for (i = 0; i < 100; i++) {
		if (read_fdinfo(fd, info) || info->batches >= batches)
			break;
		usleep(10000);
	}
	return info->batches == batches;
}

TEST_F(stats, fdinfo)
{
	struct fdinfo before, after;
	unsigned long long start;
	uint32_t i;

	/* The file has had no batches yet, and says nothing about them. */
	ASSERT_EQ(0, read_fdinfo(self->gpu.fd, &before));
	EXPECT_EQ(0, before.batches);
	start = now();
	for (i = 1; i <= 5; i++)
		ASSERT_EQ(0, fill(&self->gpu, i, 4096 * i,
				  AMDGPU_SDMA_PLACE_ONE_ENGINE));
	ASSERT_TRUE(settles(self->gpu.fd, 5, &after));
	EXPECT_EQ(4096 * (1 + 4 + 9 + 16 + 25), after.bytes);
	/* one at a time: no more than the time that has passed */
	EXPECT_LT(0, after.dma_ns);
	EXPECT_LE(after.dma_ns, now() - start);
}

struct reading {
	int fd;
	unsigned long long size;
	atomic_bool stop;
	unsigned int torn;
};

static void *read_on(void *arg)
{
	struct reading *r = arg;
	struct fdinfo info;

	while (!r->stop)
		r->torn += read_fdinfo(r->fd, &info) ||
			   info.bytes != info.batches * r->size;
	return NULL;
}

/* A reader sees each batch that ends with its bytes, or not at all. */
TEST_F_TIMEOUT(stats, of_one_moment, 200)
{
	struct reading r = { .fd = self->gpu.fd, .size = 4096 };
	pthread_t reader;
	int i, err = 0;

	ASSERT_EQ(0, fill(&self->gpu, 1, r.size, AMDGPU_SDMA_PLACE_ONE_ENGINE));
	ASSERT_EQ(0, pthread_create(&reader, NULL, read_on, &r));
	for (i = 0; !err && i < 1000; i++)
		err = fill(&self->gpu, 1, r.size, AMDGPU_SDMA_PLACE_ONE_ENGINE);
	r.stop = true;
	pthread_join(reader, NULL);
	EXPECT_EQ(0, err);
	EXPECT_EQ(0, r.torn);
}

/* Each engine's time counts, so the sum may exceed the time that has passed. */
TEST_F(stats, fan_out)
{
	unsigned int engines = __builtin_popcount(self->gpu.info.engine_mask);
	struct fdinfo before, after;
	unsigned long long start;

	ASSERT_EQ(0, fill(&self->gpu, 1, 64, AMDGPU_SDMA_PLACE_ONE_ENGINE));
	ASSERT_TRUE(settles(self->gpu.fd, 1, &before));
	start = now();
	ASSERT_EQ(0, fill(&self->gpu, 16, 128 * KIB,
			  AMDGPU_SDMA_PLACE_FAN_OUT));
	ASSERT_TRUE(settles(self->gpu.fd, 2, &after));
	EXPECT_EQ(16 * 128 * KIB, after.bytes - before.bytes);
	EXPECT_LT(before.dma_ns, after.dma_ns);
	EXPECT_LE(after.dma_ns - before.dma_ns, (now() - start) * engines);
}

/* Each destination of a broadcast counts, and both sides of a swap. */
TEST_F(stats, bytes)
{
	struct drm_amdgpu_sdma_desc d[] = {
		{ .op = AMDGPU_SDMA_OP_BROADCAST, .src = VA, .size = 1000,
		  .dst = VA + MIB, .dst_more = { VA + 2 * MIB } },
		{ .op = AMDGPU_SDMA_OP_SWAP, .src = VA + 64 * KIB,
		  .dst = VA + 128 * KIB, .size = 100 },
		{ .op = AMDGPU_SDMA_OP_COPY, .src = VA + 256 * KIB,
		  .dst = VA + 512 * KIB, .size = 7 },
	};
	struct drm_amdgpu_sdma_batch batch = batch_of(&self->gpu, d, 3);
	uint64_t swap = self->gpu.info.swap_alignment ? 200 : 300;
	struct fdinfo info;

	ASSERT_EQ(0, batch_run(&self->gpu, &batch));
	ASSERT_TRUE(settles(self->gpu.fd, 1, &info));
	EXPECT_EQ(2 * 1000 + swap + 7, info.bytes);
}

/* The fdinfo of a file does not show what another file does. */
TEST_F(stats, files)
{
	struct fdinfo info;
	struct gpu other;

	ASSERT_EQ(0, gpu_open(&other, 0));
	ASSERT_EQ(0, fill(&self->gpu, 1, 64, AMDGPU_SDMA_PLACE_ONE_ENGINE));
	ASSERT_TRUE(settles(self->gpu.fd, 1, &info));
	ASSERT_EQ(0, read_fdinfo(other.fd, &info));
	EXPECT_EQ(0, info.batches);
	EXPECT_EQ(0, info.bytes);
	close(other.fd);
}

/* No other process may submit batches to this device meanwhile. */
TEST_F(stats, debugfs)
{
	static const struct {
		uint32_t descs;
		uint64_t size;
	} batches[] = { { 1, 1 }, { 1, 4096 }, { 3, 1000 }, { 32, 128 * KIB } };
	struct device_stats before, after;
	struct fdinfo info;
	uint64_t bytes = 0;
	unsigned int i;

	if (read_device(self->gpu.fd, &before))
		SKIP(return, "no debugfs");
	for (i = 0; i < ARRAY_SIZE(batches); i++) {
		ASSERT_EQ(0, fill(&self->gpu, batches[i].descs,
				  batches[i].size, i % 3));
		bytes += batches[i].descs * batches[i].size;
	}
	ASSERT_TRUE(settles(self->gpu.fd, ARRAY_SIZE(batches), &info));
	ASSERT_EQ(0, read_device(self->gpu.fd, &after));
	EXPECT_EQ(ARRAY_SIZE(batches), after.batches - before.batches);
	EXPECT_EQ(bytes, after.bytes - before.bytes);
	EXPECT_EQ(before.failed, after.failed);
	for (i = 0; i < ARRAY_SIZE(batches); i++) {
		before.descriptors[slot_of(batches[i].descs)]++;
		before.sizes[slot_of(batches[i].descs * batches[i].size)]++;
	}
	EXPECT_EQ(0, memcmp(before.descriptors, after.descriptors,
			    sizeof(after.descriptors)));
	EXPECT_EQ(0, memcmp(before.sizes, after.sizes, sizeof(after.sizes)));
	EXPECT_EQ(after.batches, sum(after.microseconds));
}

struct device_counts {
	long doorbells;
	long interrupts;
};

/* Once the device is idle: closing the file of another test makes work, too. */
static struct device_counts device_counts(int port)
{
	struct device_counts last, now = { -1, -1 };
	int i;

	for (i = 0; i < 100; i++) {
		last = now;
		now.doorbells = emulator_count(port, "engine_doorbells");
		now.interrupts = emulator_count(port, "interrupts");
		if (!memcmp(&last, &now, sizeof(now)))
			break;
		usleep(50000);
	}
	return now;
}

/* One doorbell and one interrupt for each engine, however many descriptors. */
TEST_F(stats, doorbells)
{
	static const uint32_t counts[] = { 1, 32 };
	struct device_counts before, after;
	int port = emulator_open();
	uint32_t i, place, used;
	struct fdinfo info;

	if (port < 0)
		SKIP(return, "for an emulated GPU only");
	/* set up page tables first */
	ASSERT_EQ(0, fill(&self->gpu, 32, 128 * KIB,
			  AMDGPU_SDMA_PLACE_FAN_OUT));
	for (i = 0; i < 4; i++) {
		place = i % 2 ? AMDGPU_SDMA_PLACE_FAN_OUT :
				AMDGPU_SDMA_PLACE_ONE_ENGINE;
		used = i % 2 ? __builtin_popcount(self->gpu.info.engine_mask) :
			       1;
		before = device_counts(port);
		ASSERT_EQ(0, fill(&self->gpu, counts[i / 2], 128 * KIB,
				  place));
		ASSERT_TRUE(settles(self->gpu.fd, i + 2, &info));
		after = device_counts(port);
		EXPECT_EQ(used, after.doorbells - before.doorbells);
		EXPECT_EQ(used, after.interrupts - before.interrupts);
	}
	close(port);
}

enum { SUBMIT, RUN, DONE, EVENTS };

static const char * const events[] = {
	"amdgpu/amdgpu_sdma_batch_submit",
	"amdgpu/amdgpu_sdma_batch_run",
	"amdgpu/amdgpu_sdma_batch_done",
};

/* A batch in a trace, identified by its fence. */
struct traced {
	unsigned long long context;
	unsigned long long seqno;
	unsigned int placement;
	unsigned int placed;
	unsigned int shares;
	int error;
	/* how often each event came, and at which line of the trace last */
	int times[EVENTS];
	int line[EVENTS];
};

static unsigned int member(const char *line, const char *name)
{
	const char *at = strstr(line, name);

	return at ? strtol(at + strlen(name), NULL, 10) : -1;
}

/* Which event it is, or -1; and its fence. */
static int parse_event(const char *line, struct traced *t)
{
	const char *at = strstr(line, "amdgpu_sdma_batch_");
	char name[48] = "amdgpu/";
	int i;

	if (!at || sscanf(at, "%40[a-z_]: fence=%llu:%llu",
			  name + strlen(name), &t->context, &t->seqno) != 3)
		return -1;
	for (i = 0; i < EVENTS && strcmp(name, events[i]); i++)
		;
	return i < EVENTS ? i : -1;
}

static struct traced *find_traced(struct traced *all, int num,
				  const struct traced *t)
{
	int i;

	for (i = 0; i < num; i++)
		if (all[i].context == t->context && all[i].seqno == t->seqno)
			return &all[i];
	return NULL;
}

/* Returns how many batches were submitted. */
static int read_trace(const char *dir, struct traced *all, int max)
{
	int event, num = 0, lines = 0;
	FILE *f = trace_open(dir);
	struct traced *t;
	char line[512];

	if (!f)
		return -errno;
	while (num < max && fgets(line, sizeof(line), f)) {
		struct traced at = { 0 };

		event = parse_event(line, &at);
		t = find_traced(all, num, &at);
		if (event == SUBMIT && !t) {
			t = &all[num++];
			*t = at;
			t->placement = member(line, "placement=");
			t->placed = member(line, "placed=");
			t->shares = member(line, "shares=");
		}
		if (event < 0 || !t)
			continue;
		if (event == DONE)
			t->error = member(line, "error=");
		t->times[event]++;
		t->line[event] = lines++;
	}
	fclose(f);
	return num;
}

/* The last event of the last batch may come after its fence has signaled. */
static int read_settled(const char *dir, struct traced *all, int num, int max)
{
	int i, n = 0;

	for (i = 0; i < 100; i++) {
		n = read_trace(dir, all, max);
		if (n != num || all[num - 1].times[DONE])
			break;
		usleep(10000);
	}
	return n;
}

/* Like fill(), but by a handle. */
static int fill_prepared(struct gpu *gpu, uint32_t runs)
{
	struct drm_amdgpu_sdma_desc d[16];
	struct drm_amdgpu_sdma_batch batch = batch_of(gpu, d, ARRAY_SIZE(d));
	uint32_t i, handle;
	int ret;

	for (i = 0; i < ARRAY_SIZE(d); i++)
		d[i] = fill_desc(VA + i * 128 * KIB, 128 * KIB, i);
	batch.placement = AMDGPU_SDMA_PLACE_FAN_OUT;
	ret = batch_prepare(gpu, &batch, &handle);
	for (i = 0; !ret && i < runs; i++)
		ret = run_prepared(gpu, handle);
	return ret;
}

static int wait_for_nothing(struct gpu *gpu)
{
	struct drm_amdgpu_sdma_desc d =
		wait_eq(VA, 0x12345678, wait_ns(gpu, 1));
	struct drm_amdgpu_sdma_batch batch = batch_of(gpu, &d, 1);

	return batch_run(gpu, &batch);
}

/* In a trace each batch is submitted, runs and ends, once and in this order. */
TEST_F(stats, trace)
{
	enum { ONE = AMDGPU_SDMA_PLACE_ONE_ENGINE,
	       ALL = AMDGPU_SDMA_PLACE_FAN_OUT,
	       AUTO = AMDGPU_SDMA_PLACE_AUTO, BATCHES = 7 };
	static const struct traced want[BATCHES] = {
		{ .placement = ONE, .placed = ONE },
		{ .placement = AUTO, .placed = ONE },
		{ .placement = AUTO, .placed = ALL },
		{ .placement = ALL, .placed = ALL },
		{ .placement = ALL, .placed = ALL },
		{ .placement = ALL, .placed = ALL },
		{ .placement = AUTO, .placed = ONE, .error = -ETIME },
	};
	const bool many = __builtin_popcount(self->gpu.info.engine_mask) > 1;
	struct traced got[2 * BATCHES] = { 0 };
	char dir[128];
	int i, event;

	snprintf(dir, sizeof(dir), TRACE_INSTANCES "/sdma_batch_stats.%d",
		 getpid());
	i = trace_begin(dir, events, EVENTS);
	if (i) {
		rmdir(dir);
		SKIP(return, "no tracepoints (%d)", i);
	}
	EXPECT_EQ(0, fill(&self->gpu, 16, 128 * KIB, ONE));
	EXPECT_EQ(0, fill(&self->gpu, 8, 4 * KIB, AUTO));
	EXPECT_EQ(0, fill(&self->gpu, 16, 128 * KIB, AUTO));
	EXPECT_EQ(0, fill(&self->gpu, 16, 128 * KIB, ALL));
	EXPECT_EQ(0, fill_prepared(&self->gpu, 2));
	EXPECT_EQ(-ETIME, wait_for_nothing(&self->gpu));
	EXPECT_EQ(BATCHES, read_settled(dir, got, BATCHES, 2 * BATCHES));
	EXPECT_EQ(0, rmdir(dir));
	for (i = 0; i < BATCHES; i++) {
		for (event = 0; event < EVENTS; event++) {
			EXPECT_EQ(1, got[i].times[event]) {
				TH_LOG("batch %d, %s", i, events[event]);
			}
		}
		EXPECT_LT(got[i].line[SUBMIT], got[i].line[RUN]);
		EXPECT_LT(got[i].line[RUN], got[i].line[DONE]);
		EXPECT_EQ(want[i].placement, got[i].placement);
		EXPECT_EQ(many ? want[i].placed : ONE, got[i].placed);
		EXPECT_EQ(want[i].placed != ONE && many, got[i].shares > 1);
		EXPECT_EQ(want[i].error, got[i].error);
	}
}

TEST_HARNESS_MAIN
