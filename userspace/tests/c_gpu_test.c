/* SPDX-License-Identifier: MIT */
/* The C API on GPUs, from C. scripts/guest/c-api runs it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "c_check.h"

#define SIZE ((uint64_t)1 << 20)

static sluice_context *ring;
static sluice_device *gpu;
static sluice_buffer *host, *out, *vram;
static sluice_batch *batch;
static unsigned char *host_bytes, *out_bytes;

/* For groups: two GPUs, and memory in each, which the CPU sees. */
enum { RANKS = 2, BLOCK = 1003, WHOLE = RANKS * BLOCK };

static struct {
	sluice_device *second;
	sluice_group *group;
	sluice_buffer *memory[RANKS];
	struct sluice_slice to[RANKS], from[RANKS];
	unsigned char *got[RANKS], *had[RANKS];
} two;

static int open_all(void)
{
	void *a, *b;

	if (sluice_context_open(NULL, &ring) || sluice_device_open(ring, "0", &gpu) ||
	    sluice_buffer_host(SIZE, NULL, &host) ||
	    sluice_buffer_host(SIZE, NULL, &out) || sluice_buffer_map(host, &a) ||
	    sluice_buffer_map(out, &b) || sluice_device_attach(gpu, host) ||
	    sluice_device_attach(gpu, out) || sluice_device_vram(gpu, SIZE, &vram) ||
	    sluice_batch_create(8, &batch))
		return -1;
	host_bytes = a;
	out_bytes = b;
	srand(1);
	for (size_t i = 0; i < SIZE; i++)
		host_bytes[i] = (unsigned char)rand();
	return 0;
}

static void close_all(void)
{
	/* any order will do */
	sluice_context_close(ring);
	sluice_device_close(gpu);
	sluice_buffer_free(host);
	sluice_buffer_free(out);
	sluice_buffer_free(vram);
	sluice_batch_free(batch);
	sluice_group_free(two.group);
	sluice_device_close(two.second);
	for (int r = 0; r < RANKS; r++)
		sluice_buffer_free(two.memory[r]);
	memset(&two, 0, sizeof(two));
	ring = NULL;
	gpu = NULL;
	host = out = vram = NULL;
	batch = NULL;
}

static struct sluice_slice of(sluice_buffer *buffer, uint64_t offset, uint64_t length)
{
	struct sluice_slice s = {buffer, offset, length};

	return s;
}

static struct sluice_slice all_of(sluice_buffer *buffer)
{
	return of(buffer, 0, SLUICE_TO_END);
}

static int open_group(void)
{
	sluice_device *gpus[RANKS] = {gpu, NULL};

	if (sluice_device_open(ring, "1", &two.second))
		return -1;
	gpus[1] = two.second;
	for (int r = 0; r < RANKS; r++) {
		void *data;

		if (sluice_device_vram(gpus[r], 2 * WHOLE, &two.memory[r]) ||
		    sluice_buffer_map(two.memory[r], &data))
			return -1;
		two.to[r] = of(two.memory[r], 0, WHOLE);
		two.from[r] = of(two.memory[r], WHOLE, WHOLE);
		two.got[r] = data;
		two.had[r] = two.got[r] + WHOLE;
		memcpy(two.had[r], host_bytes + r * WHOLE, WHOLE);
	}
	return sluice_group_create(ring, gpus, RANKS, &two.group);
}

/* Wait for the started operation, and free it. */
static int finish(int started, sluice_operation *op, uint64_t *value)
{
	int err = started;

	if (!err) {
		err = sluice_operation_wait(op, sluice_after(60000000000), value);
		sluice_operation_free(op);
	}
	return err;
}

static int run(uint64_t *value)
{
	sluice_operation *op = NULL;
	int err = sluice_device_submit(gpu, batch, &op);

	return finish(err, op, value);
}

static int copy(sluice_buffer *to, sluice_buffer *from)
{
	struct sluice_slice there = all_of(to), here = all_of(from);

	return sluice_batch_copy(batch, &there, &here);
}

static int same(void)
{
	return !memcmp(host_bytes, out_bytes, SIZE);
}

static void a_gpu_is_described(void)
{
	struct sluice_device_info info = {.size = sizeof(info)}, first = info;
	struct sluice_limits limits = {.size = sizeof(limits)};
	uint32_t count = 0;

	WANTS_SERIES();
	CHECK(!sluice_device_count(&count) && count == 2);
	CHECK(!sluice_device_info_at(0, &first));
	CHECK(!sluice_device_get_info(gpu, &info));
	CHECK(!memcmp(&info, &first, sizeof(info)));
	CHECK(!strncmp(info.address, "0000:", 5) && !strcmp(info.product, "gfx942"));
	CHECK(!strncmp(info.render_node, "/dev/dri/renderD", 16));
	CHECK(info.vram_bytes >= SIZE && info.kfd_id);
	CHECK(!sluice_device_limits(gpu, &limits));
	CHECK(limits.operations > 512 && limits.broadcast == 8 && limits.wait_ns > 0);
	CHECK(limits.flags & SLUICE_LIMIT_SVM && limits.flags & SLUICE_LIMIT_PREPARED);
	CHECK(!(limits.flags & SLUICE_LIMIT_COMMAND));
	CHECK(sluice_buffer_kind(vram) == SLUICE_MEMORY_VRAM);
}

/* A file goes to video memory and back to another file. */
static void a_file_goes_to_vram_and_back(void)
{
	int from = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	int to = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	struct sluice_slice here = all_of(out);
	sluice_operation *read_op, *write_op, *op;
	uint64_t n = 0;
	unsigned char *back = malloc(SIZE);

	WANTS_SERIES();
	CHECK(back && from >= 0 && to >= 0);
	CHECK(write(from, host_bytes, SIZE) == (ssize_t)SIZE);
	/* read, batch and write are one chain */
	CHECK(!copy(vram, out) && !sluice_batch_barrier(batch));
	CHECK(!sluice_batch_fill(batch, &here, 0) && !sluice_batch_barrier(batch));
	CHECK(!copy(out, vram));
	CHECK(!sluice_chain_begin(ring, 3));
	CHECK(!sluice_context_read(ring, from, &here, 0, &read_op));
	CHECK(!sluice_device_submit(gpu, batch, &op));
	CHECK(!sluice_context_write(ring, to, &here, 0, &write_op));
	CHECK(!sluice_chain_end(ring));
	CHECK(!finish(0, write_op, &n) && n == SIZE);
	CHECK(!finish(0, read_op, &n) && n == SIZE);
	CHECK(!finish(0, op, &n) && n == 3 * SIZE);
	CHECK(pread(to, back, SIZE, 0) == (ssize_t)SIZE);
	CHECK(!memcmp(back, host_bytes, SIZE));
	free(back);
	close(from);
	close(to);
}

static void a_batch_has_an_outcome(void)
{
	struct sluice_outcome o = {.size = sizeof(o)};
	uint64_t n = 0;

	WANTS_SERIES();
	CHECK(!copy(vram, host) && !run(&n) && n == SIZE);
	CHECK(!sluice_batch_outcome(batch, &o));
	CHECK(o.vram_bytes == SIZE && o.system_bytes == SIZE && !o.peer_bytes);
	CHECK(o.engines);
}

static void all_operations_work(void)
{
	struct sluice_slice a = of(vram, 0, 4096), b = of(vram, 4096, 4096);
	/* the engines can add in video memory only */
	struct sluice_slice word = of(out, 8192, 8), count = of(vram, 16384, 8);
	struct sluice_slice counted = of(out, 8200, 8);
	struct sluice_slice note = of(out, 8256, 64), rect = of(vram, 8192, 4096);
	struct sluice_slice back = of(out, 0, 8192), rows = of(out, 16384, 4096);
	struct sluice_slice many[2] = {of(out, 32768, 4096), of(out, 36864, 4096)};
	struct sluice_rectangle shape = {sizeof(shape), 16, 4, 32, 64};
	struct sluice_record *record =
		(struct sluice_record *)(void *)(out_bytes + 8256);
	struct sluice_slice left = of(host, 0, 4096), right = of(host, 4096, 4096);
	uint64_t signal;
	size_t i;

	WANTS_SERIES();
	CHECK(!sluice_batch_copy(batch, &a, &left) &&
	      !sluice_batch_copy(batch, &b, &right));
	CHECK(!sluice_batch_barrier(batch) && !sluice_batch_swap(batch, &a, &b));
	CHECK(!sluice_batch_fill(batch, &rect, 0x01020304));
	CHECK(!sluice_batch_barrier(batch));
	CHECK(!sluice_batch_record(batch, &note));
	CHECK(!sluice_batch_copy(batch, &back, &(struct sluice_slice){vram, 0, 8192}));
	CHECK(!sluice_batch_copy_rectangle(batch, &rows, &rect, &shape));
	CHECK(!sluice_batch_broadcast(batch, many, 2, &rect));
	CHECK(!sluice_batch_write(batch, &word, 0x1122334455667788));
	CHECK(!sluice_batch_add(batch, &count, 5) &&
	      !sluice_batch_add(batch, &count, 6));
	CHECK(!sluice_batch_barrier(batch) &&
	      !sluice_batch_copy(batch, &counted, &count));
	CHECK(sluice_batch_count(batch) == 11);
	CHECK(!run(NULL));
	CHECK(!memcmp(out_bytes, host_bytes + 4096, 4096));
	CHECK(!memcmp(out_bytes + 4096, host_bytes, 4096));
	for (i = 0; i < 4096; i++)
		CHECK(out_bytes[16384 + i] ==
			      (i % 32 < 16 && i < 128 ? 4 - i % 4 : 0) &&
		      out_bytes[32768 + i] == 4 - i % 4 &&
		      out_bytes[36864 + i] == 4 - i % 4);
	memcpy(&signal, out_bytes + 8192, 8);
	CHECK(signal == 0x1122334455667788);
	memcpy(&signal, out_bytes + 8200, 8);
	CHECK(signal == 11);
	CHECK(record->status == SLUICE_RECORD_DONE && record->end >= record->start);
}

/* Pages in reverse order go to video memory by one call, and back by another. */
static void many_copies_go_by_one_call(void)
{
	enum { pages = SIZE / 4096 };
	struct sluice_slice from = all_of(host), to = all_of(vram), back = all_of(out);
	uint64_t in_order[pages], reverse[pages], sizes[pages], n = 0;

	WANTS_SERIES();
	for (uint64_t i = 0; i < pages; i++) {
		in_order[i] = i * 4096;
		reverse[i] = SIZE - (i + 1) * 4096;
		sizes[i] = 4096;
	}
	CHECK(!sluice_batch_copy_many(batch, &to, reverse, &from, in_order, sizes,
				      pages));
	CHECK(sluice_batch_count(batch) == pages && !run(&n) && n == SIZE);
	CHECK(!sluice_batch_clear(batch) && !copy(out, vram) && !run(NULL));
	for (size_t i = 0; i < pages; i++)
		CHECK(!memcmp(out_bytes + reverse[i], host_bytes + in_order[i], 4096));
	CHECK(!sluice_batch_clear(batch));
	CHECK(!sluice_batch_copy_many(batch, &back, in_order, &to, reverse, sizes,
				      pages));
	CHECK(!run(NULL) && same());
}

/*
 * Blocks of a cache in video memory are gathered, and scattered to other blocks, with
 * guard bytes after each that nothing writes to.
 */
static void blocks_are_gathered_and_scattered(void)
{
	const struct sluice_kv_layout shape = {.size = sizeof(shape),
					       .layers = 3,
					       .planes = 2,
					       .blocks = 16,
					       .block_bytes = 4000,
					       .block_stride = 4096};
	const uint32_t from[] = {7, 3, 4}, to[] = {0, 15, 9};
	struct sluice_slice cache = all_of(vram), parts[18],
			    row = of(out, 0, 18 * 4000);
	size_t n, i;

	WANTS_SERIES();
	CHECK(!copy(vram, host) && !run(NULL) && !sluice_batch_clear(batch));
	CHECK(!sluice_kv_parts(&shape, &cache, from, 3, SLUICE_KV_READ, parts, 18, &n));
	CHECK(n == 18 && !sluice_batch_gather(batch, &row, parts, n));
	CHECK(!sluice_batch_barrier(batch));
	CHECK(!sluice_kv_parts(&shape, &cache, to, 3, SLUICE_KV_WRITE, parts, 18, &n));
	CHECK(n == 18 && !sluice_batch_scatter(batch, parts, n, &row) && !run(NULL));
	/* compare with the CPU */
	for (i = 0; i < n; i++) {
		size_t plane = i / 3 * 16;

		CHECK(!memcmp(out_bytes + i * 4000,
			      host_bytes + (plane + from[i % 3]) * 4096, 4000));
		memcpy(host_bytes + (plane + to[i % 3]) * 4096, out_bytes + i * 4000,
		       4000);
	}
	CHECK(!sluice_batch_clear(batch) && !copy(out, vram) && !run(NULL) && same());
}

static void waits_wait_or_give_up(void)
{
	struct sluice_slice word = of(out, 0, 4), done = of(out, 8, 8);
	struct sluice_limits limits = {.size = sizeof(limits)};
	sluice_operation *op;

	WANTS_SERIES();
	/* with emulated time, much more may be taken for a hang */
	CHECK(!sluice_device_limits(gpu, &limits));
	CHECK(!sluice_batch_wait(batch, &word, SLUICE_GREATER_EQUAL, 7, 0xff,
				 limits.wait_ns / 4));
	CHECK(!sluice_batch_write(batch, &done, 1));
	CHECK(!sluice_device_submit(gpu, batch, &op));
	CHECK(sluice_operation_poll(op) == 0);
	FAILS(sluice_batch_fill(batch, &done, 1), EINVAL, "under way");
	out_bytes[0] = 7;
	CHECK(!finish(0, op, NULL) && out_bytes[8] == 1);
	CHECK(!sluice_batch_clear(batch));
	CHECK(!sluice_batch_wait(batch, &word, SLUICE_EQUAL, 8, UINT32_MAX, 5000000));
	FAILS(run(NULL), ETIMEDOUT, "gave up");
	CHECK(sluice_last_error()->system_errno == ETIME);
}

/* The kernel names the operation at fault. */
static void the_failing_operation_is_named(void)
{
	sluice_buffer *apart;
	struct sluice_slice some, good = of(vram, 0, 4096);

	WANTS_SERIES();
	CHECK(!sluice_buffer_host(4096, NULL, &apart));
	some = all_of(apart);
	CHECK(!sluice_batch_fill(batch, &good, 1) && !sluice_batch_barrier(batch));
	CHECK(!sluice_batch_copy(batch, &good, &some));
	FAILS(run(NULL), EINVAL, "operation 1");
	CHECK(sluice_last_error()->index == 1);
	CHECK(!sluice_device_attach(gpu, apart) && !run(NULL));
	sluice_buffer_free(apart);
}

static void prepared_batches_run_often(void)
{
	struct sluice_slice count = of(vram, 0, 8), counted = of(out, 0, 8);
	sluice_operation *ops[8];
	sluice_prepared *prepared;
	uint64_t n;

	WANTS_SERIES();
	CHECK(!sluice_batch_add(batch, &count, 3));
	CHECK(!sluice_device_prepare(gpu, batch, &prepared));
	CHECK(sluice_prepared_bytes(prepared) == 8);
	sluice_batch_free(batch);
	CHECK(!sluice_batch_create(1, &batch));
	for (int i = 0; i < 8; i++)
		CHECK(!sluice_prepared_run(prepared, &ops[i]));
	/* a run keeps what it needs */
	sluice_prepared_free(prepared);
	for (int i = 0; i < 8; i++)
		CHECK(!finish(0, ops[i], &n) && n == 8);
	FAILS(sluice_device_prepare(gpu, batch, &prepared), EINVAL, "");
	CHECK(!sluice_batch_copy(batch, &counted, &count) && !run(NULL));
	CHECK(out_bytes[0] == 24);
}

static int run_collective(sluice_collective *what, uint64_t *value)
{
	sluice_operation *op = NULL;
	int err = sluice_collective_run(what, &op);

	/* a run keeps what it needs */
	sluice_collective_free(what);
	return finish(err, op, value);
}

/* Block @there of what rank @r gets is block @here of rank @by. */
static int got(int r, int there, int by, int here)
{
	return !memcmp(two.got[r] + there * BLOCK, two.had[by] + here * BLOCK, BLOCK);
}

static void blocks_go_between_all(void)
{
	struct sluice_slice one[RANKS];
	sluice_collective *all;
	uint64_t n = 0;

	WANTS_SERIES();
	CHECK(!open_group() && sluice_group_ranks(two.group) == RANKS);
	for (int r = 0; r < RANKS; r++)
		one[r] = of(two.memory[r], WHOLE, BLOCK);
	CHECK(!sluice_group_all_gather(two.group, two.to, one, NULL, &all));
	CHECK(sluice_collective_bytes(all) == RANKS * WHOLE);
	CHECK(sluice_collective_variant(all) > SLUICE_VARIANT_AUTOMATIC);
	CHECK(!run_collective(all, &n) && n == RANKS * WHOLE);
	for (int r = 0; r < RANKS; r++)
		CHECK(got(r, 0, 0, 0) && got(r, 1, 1, 0));
	CHECK(!sluice_group_all_to_all(two.group, two.to, two.from, NULL, &all));
	CHECK(!run_collective(all, &n) && n == RANKS * WHOLE);
	for (int r = 0; r < RANKS; r++)
		CHECK(got(r, 0, 0, r) && got(r, 1, 1, r));
	/* in place: each pair swaps */
	CHECK(!sluice_group_all_to_all(two.group, two.from, two.from, NULL, &all));
	CHECK(sluice_collective_variant(all) == SLUICE_VARIANT_SWAP);
	CHECK(!run_collective(all, &n) && n == 2 * BLOCK);
	for (int r = 0; r < RANKS; r++)
		CHECK(!memcmp(two.had[r], two.got[r], WHOLE));
}

static void blocks_go_to_and_from_a_root(void)
{
	struct sluice_collective_options o = {.size = sizeof(o),
					      .variant = SLUICE_VARIANT_PCPY};
	struct sluice_slice here[RANKS], there[RANKS];
	sluice_collective *all;
	sluice_operation *op;
	uint64_t n = 0;

	WANTS_SERIES();
	CHECK(!open_group());
	for (int r = 0; r < RANKS; r++) {
		here[r] = of(two.memory[r], WHOLE, BLOCK);
		there[r] = of(two.memory[r], 0, BLOCK);
	}
	CHECK(!sluice_group_gather(two.group, 1, &two.to[1], here, &o, &all));
	CHECK(sluice_collective_variant(all) == SLUICE_VARIANT_PCPY);
	CHECK(!run_collective(all, &n) && n == WHOLE);
	CHECK(got(1, 0, 0, 0) && got(1, 1, 1, 0));
	CHECK(!sluice_group_scatter(two.group, 1, there, &two.from[1], NULL, &all));
	CHECK(!run_collective(all, &n) && n == WHOLE);
	CHECK(got(0, 0, 1, 0) && got(1, 0, 1, 1));
	/* only the root has moved something */
	CHECK(!sluice_group_broadcast(two.group, 1, two.from, NULL, &all));
	CHECK(!sluice_collective_run(all, &op));
	sluice_collective_free(all);
	CHECK(!sluice_operation_wait(op, sluice_after(60000000000), &n) && n == WHOLE);
	CHECK(!sluice_collective_of(op, 0, &n) && n == 0);
	CHECK(!sluice_collective_of(op, 1, &n) && n == WHOLE);
	FAILS(sluice_collective_of(op, RANKS, &n), EINVAL, "rank 2, it has 2");
	sluice_operation_free(op);
	CHECK(!memcmp(two.had[0], host_bytes + WHOLE, WHOLE));
	CHECK(!memcmp(two.had[1], host_bytes + WHOLE, WHOLE));
}

/* On a busy machine it may be released later than the engines hold it: try again. */
static void a_prelaunched_run_is_held(void)
{
	struct sluice_collective_options o = {.size = sizeof(o),
					      .flags = SLUICE_COLLECTIVE_PRELAUNCH};
	int err = -ETIMEDOUT, held = 0, second = 0;
	sluice_operation *op, *again;
	sluice_collective *all;
	uint64_t n = 0;

	WANTS_SERIES();
	CHECK(!open_group());
	CHECK(!sluice_group_all_to_all(two.group, two.to, two.from, &o, &all));
	for (int tries = 0; err == -ETIMEDOUT && tries < 20; tries++) {
		CHECK(!sluice_collective_run(all, &op));
		held = !sluice_operation_poll(op) &&
		       sluice_collective_of(op, 1, &n) == -EINPROGRESS;
		CHECK(!sluice_collective_run(all, &again));
		second = finish(0, again, NULL);
		CHECK(!sluice_collective_release(all));
		err = sluice_operation_wait(op, sluice_after(60000000000), &n);
		if (err)
			sluice_operation_free(op);
	}
	CHECK(!err && held && second == -EBUSY && n == RANKS * WHOLE);
	sluice_operation_free(op);
	CHECK(got(0, 1, 1, 0));
	/* it is never released */
	CHECK(!sluice_collective_run(all, &op));
	FAILS(finish(0, op, &n), ETIMEDOUT, "");
	sluice_collective_free(all);
}

static void the_rank_at_fault_is_named(void)
{
	struct sluice_collective_options o = {.size = sizeof(o),
					      .variant = SLUICE_VARIANT_SWAP};
	struct sluice_slice all_to[RANKS];
	sluice_collective *none = NULL;
	sluice_context *apart;
	sluice_group *group_apart = NULL;

	WANTS_SERIES();
	CHECK(!open_group());
	memcpy(all_to, two.to, sizeof(all_to));
	FAILS(sluice_group_broadcast(two.group, 2, two.to, NULL, &none), EINVAL,
	      "rank 2 is the root");
	FAILS(sluice_group_broadcast(two.group, 0, two.to, &o, &none), EINVAL,
	      "no variant swap");
	o.variant = SLUICE_VARIANT_B2B + 1;
	FAILS(sluice_group_broadcast(two.group, 0, two.to, &o, &none), EINVAL,
	      "5 is no enum sluice_variant");
	o.variant = 0;
	o.flags = 2;
	FAILS(sluice_group_broadcast(two.group, 0, two.to, &o, &none), EINVAL,
	      "flags 0x2");
	o.flags = SLUICE_COLLECTIVE_PRELAUNCH;
	o.hold_ns = -1;
	FAILS(sluice_group_broadcast(two.group, 0, two.to, &o, &none), EINVAL,
	      "hold_ns");
	o.hold_ns = INT64_MAX;
	FAILS(sluice_group_broadcast(two.group, 0, two.to, &o, &none), EINVAL,
	      "the GPUs allow");
	all_to[1].length--;
	FAILS(sluice_group_all_to_all(two.group, all_to, two.from, NULL, &none), EINVAL,
	      "rank 1: 2005 bytes where 2006 are wanted");
	CHECK(sluice_last_error()->index == 1);
	all_to[1].buffer = NULL;
	FAILS(sluice_group_all_to_all(two.group, two.to, all_to, NULL, &none), EINVAL,
	      "rank 1: no memory");
	CHECK(sluice_last_error()->index == 1 && !none);
	CHECK(!sluice_context_open(NULL, &apart));
	FAILS(sluice_group_create(apart, &gpu, 1, &group_apart), EINVAL,
	      "another context");
	CHECK(!group_apart);
	sluice_context_close(apart);
}

static void shared_memory_migrates(void)
{
	struct sluice_counters before = {.size = sizeof(before)}, after = before;
	struct sluice_slice all;
	sluice_buffer *svm;

	WANTS_SERIES();
	CHECK(!sluice_device_counters(gpu, &before));
	CHECK(!sluice_device_svm(gpu, SIZE, 0, &svm));
	CHECK(sluice_buffer_kind(svm) == SLUICE_MEMORY_SVM);
	all = all_of(svm);
	CHECK(!copy(svm, host) && !run(NULL));
	CHECK(!sluice_device_bring_back(gpu, &all));
	CHECK(!sluice_device_counters(gpu, &after));
	CHECK(after.migrated_in - before.migrated_in >= SIZE / 4096);
	CHECK(after.migrated_out - before.migrated_out >= SIZE / 4096);
	CHECK(!sluice_device_prefetch(gpu, &all));
	CHECK(!sluice_batch_clear(batch) && !copy(out, svm) && !run(NULL) && same());
	FAILS(sluice_device_svm(gpu, SIZE, 8, &svm), EINVAL, "flags 0x8");
	sluice_buffer_free(svm);
	all = all_of(host);
	FAILS(sluice_device_prefetch(gpu, &all), EINVAL, "migrate");
}

/* Exported from one buffer, imported by the other GPU and this one, mapped for the CPU. */
static void dmabufs_go_out_and_in(void)
{
	sluice_device *other;
	sluice_buffer *here, *there;
	void *data;
	int dmabuf;

	CHECK(!sluice_device_open(ring, "1", &other));
	CHECK(!copy(vram, host) && !run(NULL));
	CHECK(!sluice_buffer_export(vram, &dmabuf));
	CHECK(!sluice_device_import(gpu, dmabuf, &here));
	CHECK(!sluice_device_import(other, dmabuf, &there));
	CHECK(!close(dmabuf));
	sluice_buffer_free(vram);
	CHECK(!sluice_buffer_map(there, &data) && !memcmp(data, host_bytes, SIZE));
	sluice_buffer_free(there);
	sluice_device_close(other);
	CHECK(!sluice_batch_clear(batch) && !copy(out, here) && !run(NULL) && same());
	vram = here;
	FAILS(sluice_device_import(gpu, -1, &there), EINVAL, "dma-buf");
}

static void video_memory_has_an_end(void)
{
	sluice_buffer *none = NULL;

	FAILS(sluice_device_vram(gpu, (uint64_t)1 << 50, &none), EIO, "video memory");
	FAILS(sluice_device_vram(gpu, 0, &none), EINVAL, "size of 0");
	CHECK(!none);
}

#define TEST(name) { #name, name }

static const struct test tests[] = {
	TEST(a_gpu_is_described),	    TEST(a_file_goes_to_vram_and_back),
	TEST(a_batch_has_an_outcome),	    TEST(all_operations_work),
	TEST(many_copies_go_by_one_call),   TEST(blocks_are_gathered_and_scattered),
	TEST(waits_wait_or_give_up),	    TEST(the_failing_operation_is_named),
	TEST(prepared_batches_run_often),   TEST(blocks_go_between_all),
	TEST(blocks_go_to_and_from_a_root), TEST(a_prelaunched_run_is_held),
	TEST(the_rank_at_fault_is_named),   TEST(shared_memory_migrates),
	TEST(dmabufs_go_out_and_in),	    TEST(video_memory_has_an_end),
};

int main(int argc, char **argv)
{
	(void)argc;
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argv[1], open_all,
			 close_all);
}
