/* SPDX-License-Identifier: MIT */
/* The C API, from C: the part that needs neither a GPU nor a network card. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "c_check.h"

/* FAILS(), and that spoils the batch `batch`, which is emptied. */
#define SPOILS(...)                                                                    \
	do {                                                                           \
		FAILS(__VA_ARGS__);                                                    \
		CHECK(!sluice_batch_clear(batch));                                     \
	} while (0)

/* The ABI: sizes and offsets of version 0.1, which never change. */
#define AT(s, member, at) \
	_Static_assert(offsetof(struct s, member) == (at), #s "." #member)
#define SIZE(s, bytes) _Static_assert(sizeof(struct s) == (bytes), #s)

#if UINTPTR_MAX == UINT64_MAX
SIZE(sluice_error, 48);
AT(sluice_error, remedy, 40);
SIZE(sluice_slice, 24);
SIZE(sluice_context_options, 16);
SIZE(sluice_host_options, 16);
SIZE(sluice_device_info, 160);
AT(sluice_device_info, visible_vram_bytes, 152);
SIZE(sluice_limits, 56);
SIZE(sluice_counters, 32);
SIZE(sluice_rectangle, 40);
SIZE(sluice_record, 64);
SIZE(sluice_outcome, 40);
SIZE(sluice_collective_options, 24);
SIZE(sluice_message, 56);
SIZE(sluice_host_transport, 64);
SIZE(sluice_nic_info, 208);
SIZE(sluice_endpoint_options, 40);
SIZE(sluice_stream_options, 56);
SIZE(sluice_source, 48);
SIZE(sluice_sink, 40);
SIZE(sluice_report, 752);
AT(sluice_report, bytes_by_path, 288);
AT(sluice_report, sha256, 448);
AT(sluice_report, pages_elsewhere, 736);
SIZE(sluice_progress, 24);
SIZE(sluice_offer, 272);
SIZE(sluice_kv_layout, 48);
AT(sluice_kv_layout, block_bytes, 24);
#endif
_Static_assert(SLUICE_ERROR_CORRUPT == 16, "enum sluice_error_code");
_Static_assert(SLUICE_PATH_STAGED == 4, "enum sluice_data_path");

static const char text[] = "what a file holds";

static sluice_context *ring;
static sluice_buffer *memory;
static char *bytes;

/* Each test has its own context and buffer. */
static int open_all(void)
{
	void *data;

	if (sluice_context_open(NULL, &ring) ||
	    sluice_buffer_host(10000, NULL, &memory) ||
	    sluice_buffer_map(memory, &data))
		return -1;
	bytes = data;
	return 0;
}

static void close_all(void)
{
	sluice_buffer_free(memory);
	sluice_context_close(ring);
	memory = NULL;
	ring = NULL;
}

static int temporary(void)
{
	int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0 && pwrite(fd, text, sizeof(text), 0) != sizeof(text)) {
		close(fd);
		return -1;
	}
	return fd;
}

static struct sluice_slice part(uint64_t offset, uint64_t length)
{
	struct sluice_slice s = {memory, offset, length};

	return s;
}

static void errors_have_names(void)
{
	CHECK(!strcmp(sluice_error_name(SLUICE_ERROR_NONE), "none"));
	CHECK(!strcmp(sluice_error_name(SLUICE_ERROR_USAGE), "usage"));
	CHECK(!strcmp(sluice_error_name(SLUICE_ERROR_CORRUPT), "corrupt"));
	CHECK(!strcmp(sluice_error_name(SLUICE_ERROR_CORRUPT + 1), "?"));
	CHECK(!strcmp(sluice_error_name(-1), "?"));
	CHECK(!strcmp(sluice_path_name(SLUICE_PATH_STAGED), "staged"));
	CHECK(!strcmp(sluice_path_name(SLUICE_PATH_DEVICE_ALIAS), "device-alias"));
	CHECK(!strcmp(sluice_path_name(SLUICE_PATHS), "?"));
	CHECK(!strcmp(sluice_version(), "0.1"));
}

static void an_error_tells_all(void)
{
	const struct sluice_error *e = sluice_last_error();

	FAILS(sluice_device_open(ring, "no such GPU", (sluice_device *[1]){0}), EIO,
	      "no such GPU");
	CHECK(e == sluice_last_error() && e->size == sizeof(*e));
	CHECK(e->code == SLUICE_ERROR_DEVICE && e->index == SLUICE_NO_INDEX);
	CHECK(!strcmp(e->where, "no such GPU") && strstr(e->message, e->where));
	CHECK(strstr(e->remedy, "sluice doctor"));
	/* success does not change the last error */
	CHECK(sluice_batch_count(NULL) == 0 && sluice_context_submit(ring) == 0);
	CHECK(e->returned == -EIO);
}

static void *in_another_thread(void *unused)
{
	(void)unused;
	if (sluice_last_error()->code || sluice_context_submit(NULL) != -EINVAL)
		return NULL;
	return (void *)(uintptr_t)sluice_last_error();
}

static void errors_are_of_a_thread(void)
{
	pthread_t other;
	void *its;

	FAILS(sluice_device_open(ring, "x", (sluice_device *[1]){0}), EIO, "x");
	CHECK(!pthread_create(&other, NULL, in_another_thread, NULL));
	CHECK(!pthread_join(other, &its));
	CHECK(its && its != (void *)(uintptr_t)sluice_last_error());
	CHECK(sluice_last_error()->returned == -EIO);
}

static void null_is_named(void)
{
	struct sluice_slice all = part(0, SLUICE_TO_END);
	struct sluice_slice none = {NULL, 0, 0};
	sluice_collective *collective = NULL;
	sluice_processes *processes = NULL;
	sluice_operation *op = NULL;
	sluice_batch *batch;
	char *said;
	int fd;

	FAILS(sluice_context_open(NULL, NULL), EINVAL, "context: it is NULL");
	FAILS(sluice_context_wait(NULL, 0, NULL), EINVAL, "context");
	FAILS(sluice_context_fd(NULL), EINVAL, "context");
	FAILS(sluice_context_left_behind(NULL), EINVAL, "context");
	FAILS(sluice_context_read(NULL, 0, &all, 0, &op), EINVAL, "context");
	FAILS(sluice_context_read(ring, 0, NULL, 0, &op), EINVAL, "to: it is NULL");
	FAILS(sluice_context_read(ring, 0, &none, 0, &op), EINVAL, "to: its buffer");
	FAILS(sluice_context_read(ring, 0, &all, 0, NULL), EINVAL, "operation");
	FAILS(sluice_context_write(ring, 0, NULL, 0, &op), EINVAL, "from");
	FAILS(sluice_operation_poll(NULL), EINVAL, "operation");
	FAILS(sluice_operation_done(NULL), EINVAL, "operation");
	FAILS(sluice_operation_wait(NULL, 0, NULL), EINVAL, "operation");
	FAILS(sluice_operation_cancel(NULL), EINVAL, "operation");
	FAILS(sluice_buffer_host(1, NULL, NULL), EINVAL, "buffer");
	FAILS(sluice_buffer_dup(NULL, &memory), EINVAL, "buffer");
	FAILS(sluice_buffer_dup(memory, NULL), EINVAL, "again");
	FAILS(sluice_buffer_map(NULL, (void *[1]){0}), EINVAL, "buffer");
	FAILS(sluice_buffer_map(memory, NULL), EINVAL, "data");
	FAILS(sluice_buffer_export(NULL, &fd), EINVAL, "buffer");
	FAILS(sluice_buffer_kind(NULL), EINVAL, "buffer");
	FAILS(sluice_device_open(ring, NULL, (sluice_device *[1]){0}), EINVAL, "name");
	FAILS(sluice_device_vram(NULL, 1, &memory), EINVAL, "device");
	FAILS(sluice_device_submit(NULL, NULL, &op), EINVAL, "device");
	FAILS(sluice_device_count(NULL), EINVAL, "count");
	FAILS(sluice_batch_create(1, NULL), EINVAL, "batch");
	FAILS(sluice_batch_copy(NULL, &all, &all), EINVAL, "batch");
	FAILS(sluice_prepared_run(NULL, &op), EINVAL, "prepared");
	FAILS(sluice_group_create(NULL, NULL, 1, NULL), EINVAL, "context");
	FAILS(sluice_group_create(ring, NULL, 1, NULL), EINVAL, "gpus");
	FAILS(sluice_group_all_gather(NULL, &all, &all, NULL, &collective), EINVAL,
	      "group");
	FAILS(sluice_group_all_to_all(NULL, &all, &all, NULL, &collective), EINVAL,
	      "group");
	FAILS(sluice_group_broadcast(NULL, 0, &all, NULL, &collective), EINVAL,
	      "group");
	FAILS(sluice_group_gather(NULL, 0, &all, &all, NULL, &collective), EINVAL,
	      "group");
	FAILS(sluice_group_scatter(NULL, 0, &all, &all, NULL, &collective), EINVAL,
	      "group");
	FAILS(sluice_group_send(NULL, NULL, 0, NULL, &collective), EINVAL, "group");
	FAILS(sluice_group_create_shared(NULL, NULL, NULL), EINVAL, "device");
	FAILS(sluice_processes_meet(ring, NULL, 0, 2, 0, NULL), EINVAL, "path");
	FAILS(sluice_processes_meet(ring, "x", 2, 2, 0, &processes), EINVAL, "rank 2");
	FAILS(sluice_processes_meet(ring, "x", 0, 2, -1, &processes), EINVAL,
	      "patience_ns");
	FAILS(sluice_processes_exchange(NULL, NULL, memory, &memory), EINVAL,
	      "processes");
	FAILS(sluice_processes_barrier(NULL), EINVAL, "processes");
	FAILS(sluice_host_group_create(NULL, NULL, 0, NULL), EINVAL, "local");
	FAILS(sluice_host_group_all_gather(NULL, &all, &all, NULL), EINVAL, "group");
	FAILS(sluice_host_group_all_to_all(NULL, &all, &all, &all, NULL), EINVAL,
	      "group");
	FAILS(sluice_host_group_broadcast(NULL, 0, &all, NULL), EINVAL, "group");
	FAILS(sluice_host_group_gather(NULL, 0, &all, &all, &all, NULL), EINVAL,
	      "group");
	FAILS(sluice_host_group_scatter(NULL, 0, &all, &all, &all, NULL), EINVAL,
	      "group");
	FAILS(sluice_host_collective_run(NULL, NULL), EINVAL, "collective");
	FAILS(sluice_collective_run(NULL, &op), EINVAL, "collective");
	FAILS(sluice_collective_release(NULL), EINVAL, "collective");
	FAILS(sluice_collective_variant(NULL), EINVAL, "collective");
	FAILS(sluice_collective_of(NULL, 0, NULL), EINVAL, "operation");
	FAILS(sluice_nic_count(NULL), EINVAL, "count");
	FAILS(sluice_nic_open(NULL, "x", (sluice_nic *[1]){0}), EINVAL, "context");
	FAILS(sluice_endpoint_connect(NULL, "x", 1, NULL, 0, NULL), EINVAL, "nic");
	FAILS(sluice_endpoint_begin(NULL, "x", 1, NULL, 0, &op), EINVAL, "nic");
	FAILS(sluice_endpoint_take(NULL, NULL), EINVAL, "operation");
	FAILS(sluice_listener_arrival(NULL, &op), EINVAL, "listener");
	FAILS(sluice_listener_accept(NULL, 0, NULL), EINVAL, "listener");
	FAILS(sluice_sender_create(NULL, NULL, NULL), EINVAL, "endpoint");
	FAILS(sluice_sender_send(NULL, NULL, &op), EINVAL, "sender");
	FAILS(sluice_receiver_next(NULL, &op), EINVAL, "receiver");
	FAILS(sluice_receiver_report(NULL, NULL), EINVAL, "receiver");
	FAILS(sluice_topology_read("/", NULL), EINVAL, "topology");
	FAILS(sluice_topology_explain(NULL, "a", "b", SLUICE_TEXT, &said), EINVAL,
	      "topology");
	CHECK(!op && !collective && !processes);
	CHECK(!sluice_processes_rank(NULL) && !sluice_processes_ranks(NULL));
	CHECK(!sluice_host_group_ranks(NULL) && !sluice_host_group_first_rank(NULL));
	CHECK(!sluice_batch_create(0, &batch));
	SPOILS(sluice_batch_copy(batch, NULL, &all), EINVAL, "to");
	SPOILS(sluice_batch_copy(batch, &all, NULL), EINVAL, "from");
	sluice_batch_free(batch);
	CHECK(!sluice_topology_name(NULL, 0) && !*sluice_endpoint_peer(NULL));
}

static void nothing_can_be_freed(void)
{
	sluice_context_close(NULL);
	sluice_operation_free(NULL);
	sluice_buffer_free(NULL);
	sluice_device_close(NULL);
	sluice_batch_free(NULL);
	sluice_prepared_free(NULL);
	sluice_group_free(NULL);
	sluice_collective_free(NULL);
	sluice_processes_free(NULL);
	sluice_host_group_free(NULL);
	sluice_host_collective_free(NULL);
	sluice_nic_close(NULL);
	sluice_listener_close(NULL);
	sluice_endpoint_close(NULL);
	sluice_sender_free(NULL);
	sluice_receiver_free(NULL);
	sluice_topology_free(NULL);
	sluice_free(NULL);
}

/* A structure of a program that is newer than the library. */
struct newer {
	struct sluice_context_options known;
	uint64_t more;
};

static void sizes_are_checked(void)
{
	struct newer from = {{sizeof(from), 8, 0}, 0};
	struct sluice_context_options o = {0, 8, 0};
	struct sluice_progress progress = {.size = 8};
	sluice_context *made = NULL;

	FAILS(sluice_context_open(&o, &made), EINVAL, "options: its size is 0");
	o.size = sizeof(o) - 1;
	FAILS(sluice_context_open(&o, &made), EINVAL, "options: its size is 15");
	o.size = SIZE_MAX;
	FAILS(sluice_context_open(&o, &made), EINVAL, "set it to sizeof");
	o.size = sizeof(o);
	o.reserved = 1;
	FAILS(sluice_context_open(&o, &made), EINVAL, "reserved");
	from.more = 1;
	FAILS(sluice_context_open(&from.known, &made), EOPNOTSUPP, "byte 16 is set");
	CHECK(!made);
	from.more = 0;
	CHECK(!sluice_context_open(&from.known, &made));
	sluice_context_close(made);
	FAILS(sluice_sender_progress(NULL, &progress), EINVAL, "sender");
	CHECK(progress.size == 8);
}

/* The library fills in a structure up to the caller's size. */
static void newer_structures_are_filled(void)
{
	sluice_batch *batch;
	struct {
		struct sluice_outcome known;
		uint64_t more[2];
	} out = {{.size = sizeof(out)}, {1, 2}};

	CHECK(!sluice_batch_create(1, &batch));
	CHECK(!sluice_batch_outcome(batch, &out.known));
	CHECK(out.known.size == sizeof(out) && !out.more[0] && !out.more[1]);
	out.known.size = sizeof(out.known) - 1;
	FAILS(sluice_batch_outcome(batch, &out.known), EINVAL, "outcome");
	sluice_batch_free(batch);
}

static void bad_values_are_named(void)
{
	struct sluice_context_options o = {sizeof(o), 65537, 0};
	struct sluice_host_options h = {sizeof(h), 8, 0};
	struct sluice_slice all = part(0, SLUICE_TO_END), word = part(0, 4);
	sluice_context *context;
	sluice_buffer *buffer;
	sluice_batch *batch;
	int fd;

	FAILS(sluice_context_open(&o, &context), EINVAL, "65536");
	FAILS(sluice_buffer_host(0, NULL, &buffer), EINVAL, "size of 0");
	FAILS(sluice_buffer_host(UINT64_MAX, NULL, &buffer), EINVAL, "too large");
	FAILS(sluice_buffer_host(1ull << 60, NULL, &buffer), ENOMEM, "mmap");
	FAILS(sluice_buffer_host(1, &h, &buffer), EINVAL, "flags 0x8");
	h.flags = SLUICE_HOST_ON_NODE;
	h.numa_node = 1000;
	FAILS(sluice_buffer_host(1, &h, &buffer), EIO, "NUMA");
	FAILS(sluice_buffer_export(memory, &fd), EOPNOTSUPP, "video memory");
	FAILS(sluice_batch_create(UINT32_MAX, &batch), EINVAL, "4294967295");
	FAILS(sluice_chain_end(ring), EINVAL, "no chain is open");
	CHECK(!sluice_chain_begin(ring, 2));
	FAILS(sluice_chain_begin(ring, 2), EBUSY, "open already");
	CHECK(!sluice_chain_end(ring));
	CHECK(!sluice_batch_create(4, &batch));
	SPOILS(sluice_batch_place(batch, 3, 0), EINVAL, "sluice_place");
	SPOILS(sluice_batch_hint(batch, 3), EINVAL, "sluice_hint");
	SPOILS(sluice_batch_hint(batch, -1), EINVAL, "sluice_hint");
	SPOILS(sluice_batch_wait(batch, &word, 4, 0, 0, 1), EINVAL, "sluice_compare");
	SPOILS(sluice_batch_broadcast(batch, &all, 1, &all), EINVAL, "2 to 8");
	CHECK(sluice_batch_count(batch) == 0);
	sluice_batch_free(batch);
}

static void a_group_has_gpus(void)
{
	sluice_device *none[SLUICE_MAX_RANKS] = {NULL};
	sluice_group *group = NULL;
	sluice_operation *op;
	uint64_t n = 7;

	FAILS(sluice_group_create(ring, none, 0, &group), EINVAL,
	      "0 GPUs: a group has 1 to 8");
	FAILS(sluice_group_create(ring, none, SLUICE_MAX_RANKS + 1, &group), EINVAL,
	      "9 GPUs: a group has 1 to 8");
	FAILS(sluice_group_create(ring, none, 2, &group), EINVAL, "gpus: one is NULL");
	CHECK(sluice_last_error()->index == 0 && !group);
	CHECK(!sluice_group_ranks(NULL) && !sluice_collective_bytes(NULL));
	CHECK(!sluice_context_sleep(ring, 0, &op));
	FAILS(sluice_collective_of(op, 0, &n), EINVAL,
	      "none of sluice_collective_run()");
	CHECK(n == 7);
	sluice_operation_free(op);
}

static void a_batch_tells_its_first_mistake(void)
{
	struct sluice_slice all = part(0, 8), less = part(0, 7), far = part(0, 1 << 20);
	sluice_batch *batch;

	CHECK(!sluice_batch_create(4, &batch));
	CHECK(!sluice_batch_fill(batch, &all, 1) && !sluice_batch_fill(batch, &all, 2));
	CHECK(sluice_batch_count(batch) == 2 && sluice_batch_bytes(batch) == 16);
	FAILS(sluice_batch_fill(batch, &far, 3), EINVAL, "1048576 bytes at 0");
	CHECK(sluice_last_error()->index == 2);
	SPOILS(sluice_batch_barrier(batch), EINVAL, "1048576 bytes at 0");
	FAILS(sluice_batch_place(batch, 77, 0), EINVAL, "77 is no enum sluice_place");
	SPOILS(sluice_batch_fill(batch, &all, 1), EINVAL, "77 is no enum sluice_place");
	FAILS(sluice_batch_copy(batch, &all, NULL), EINVAL, "from");
	SPOILS(sluice_batch_fill(batch, &all, 1), EINVAL, "from");
	CHECK(!sluice_batch_fill(batch, &all, 1) && !sluice_batch_fill(batch, &all, 2));
	FAILS(sluice_batch_copy(batch, &all, &less), EINVAL, "to 8 bytes from 7");
	CHECK(sluice_last_error()->index == 2);
	FAILS(sluice_batch_fill(batch, &all, 4), EINVAL, "to 8 bytes from 7");
	CHECK(sluice_last_error()->index == 2);
	CHECK(!sluice_batch_clear(batch) && sluice_batch_count(batch) == 0);
	CHECK(!sluice_batch_fill(batch, &all, 4));
	FAILS(sluice_batch_after(batch, -1), EINVAL, "no fence");
	sluice_batch_free(batch);
}

static void many_copies_are_all_or_none(void)
{
	struct sluice_slice to = part(0, 4096), from = part(4096, 4096);
	uint64_t there[3] = {0, 4000, 96}, here[3] = {96, 0, 4000};
	uint64_t sizes[3] = {96, 96, 96};
	sluice_batch *batch;

	CHECK(!sluice_batch_create(4, &batch) && !sluice_batch_fill(batch, &to, 1));
	CHECK(!sluice_batch_copy_many(batch, &to, there, &from, here, sizes, 3));
	CHECK(!sluice_batch_copy_many(batch, &to, there, &from, here, sizes, 0));
	CHECK(sluice_batch_count(batch) == 4 &&
	      sluice_batch_bytes(batch) == 4096 + 3 * 96);
	here[2] = 4001;
	FAILS(sluice_batch_copy_many(batch, &to, there, &from, here, sizes, 3), EINVAL,
	      "copy 2: 96 bytes at 4001 are outside of the 4096 bytes of `from`");
	CHECK(sluice_last_error()->index == 4 + 2 && sluice_batch_count(batch) == 4);
	CHECK(!sluice_batch_clear(batch));
	there[1] = UINT64_MAX;
	FAILS(sluice_batch_copy_many(batch, &to, there, &from, here, sizes, 3), EINVAL,
	      "copy 1: 96 bytes at 18446744073709551615");
	CHECK(sluice_last_error()->index == 1 && sluice_batch_count(batch) == 0);
	CHECK(!sluice_batch_clear(batch));
	SPOILS(sluice_batch_copy_many(batch, &to, there, &from, NULL, sizes, 3), EINVAL,
	       "from_offsets: it is NULL");
	sluice_batch_free(batch);
}

static void what_is_gathered_adds_up(void)
{
	struct sluice_slice parts[2] = {part(0, 100), part(4000, 28)};
	struct sluice_slice row = part(8192, 128), less = part(8192, 127);
	sluice_batch *batch;

	CHECK(!sluice_batch_create(4, &batch));
	CHECK(!sluice_batch_gather(batch, &row, parts, 2));
	CHECK(!sluice_batch_scatter(batch, parts, 2, &row));
	CHECK(sluice_batch_count(batch) == 4 && sluice_batch_bytes(batch) == 256);
	parts[1].offset = 12270;
	FAILS(sluice_batch_scatter(batch, parts, 2, &row), EINVAL, "28 bytes at 12270");
	CHECK(sluice_last_error()->index == 4 + 1);
	CHECK(!sluice_batch_clear(batch));
	parts[1].offset = 4000;
	SPOILS(sluice_batch_gather(batch, &row, NULL, 2), EINVAL, "parts: it is NULL");
	SPOILS(sluice_batch_gather(batch, NULL, parts, 2), EINVAL, "to: it is NULL");
	SPOILS(sluice_batch_scatter(batch, parts, 2, NULL), EINVAL, "from: it is NULL");
	SPOILS(sluice_batch_gather(batch, &less, parts, 2), EINVAL,
	       "2 parts have 128 bytes, and the memory in a row 127");
	sluice_batch_free(batch);
}

/* Two layers of K and V, with room after each block. */
static const struct sluice_kv_layout shape = {.size = sizeof(shape),
					      .layers = 2,
					      .planes = 2,
					      .blocks = 4,
					      .block_bytes = 200,
					      .block_stride = 256};

static void kv_shapes_are_compared(void)
{
	struct sluice_offer offer = {.size = sizeof(offer)};
	struct sluice_kv_layout other = shape;
	uint64_t n = 0;

	CHECK(!sluice_kv_size(&shape, &n) && n == 3 * 1024 + 3 * 256 + 200);
	CHECK(!sluice_kv_offer(&shape, 3, &offer) && offer.bytes == 3 * 4 * 200);
	CHECK(!strcmp(offer.name, "kv 2 layers, 2 planes, 3 blocks of 200 bytes"));
	other.blocks = 100;
	other.block_stride = 0;
	CHECK(!sluice_kv_fits(&other, 3, &offer));
	FAILS(sluice_kv_fits(&shape, 4, &offer), EPROTO, "4 blocks of 200 bytes");
	offer.bytes--;
	FAILS(sluice_kv_fits(&shape, 3, &offer), EPROTO, "of 2399 bytes is offered");
}

static void kv_shapes_that_cannot_be(void)
{
	struct sluice_kv_layout bad_one = shape;
	uint64_t n = 7;

	FAILS(sluice_kv_size(NULL, &n), EINVAL, "layout: it is NULL");
	FAILS(sluice_kv_size(&shape, NULL), EINVAL, "bytes: it is NULL");
	bad_one.planes = 0;
	FAILS(sluice_kv_size(&bad_one, &n), EINVAL, "must not be 0");
	bad_one.planes = 2;
	bad_one.block_stride = 199;
	FAILS(sluice_kv_size(&bad_one, &n), EINVAL,
	      "200 bytes each 199 bytes overlaps");
	bad_one.block_stride = UINT64_MAX / 2;
	FAILS(sluice_kv_size(&bad_one, &n), EINVAL, "64 bits");
	bad_one = shape;
	bad_one.reserved = 1;
	FAILS(sluice_kv_size(&bad_one, &n), EINVAL, "`reserved` must be 0");
	CHECK(n == 7);
}

static void kv_parts_are_where_they_should_be(void)
{
	struct sluice_slice cache = part(512, SLUICE_TO_END), parts[16];
	struct sluice_kv_layout close = shape;
	const uint32_t blocks[] = {3, 0};
	size_t n = 0;

	CHECK(!sluice_kv_parts(&shape, &cache, blocks, 2, SLUICE_KV_WRITE, NULL, 0,
			       &n));
	CHECK(n == 8);
	CHECK(!sluice_kv_parts(&shape, &cache, blocks, 2, SLUICE_KV_READ, parts, 8,
			       &n));
	CHECK(n == 8);
	for (size_t i = 0; i < n; i++)
		CHECK(parts[i].buffer == memory && parts[i].length == 200 &&
		      parts[i].offset == 512 + i / 2 * 1024 + blocks[i % 2] * 256);
	close.block_stride = 0;
	CHECK(!sluice_kv_parts(&close, &cache, (uint32_t[]){1, 2}, 2, SLUICE_KV_READ,
			       parts, 16, &n));
	CHECK(n == 4 && parts[3].offset == 512 + 3 * 800 + 200 &&
	      parts[3].length == 400);
}

static void kv_blocks_at_fault_are_named(void)
{
	struct sluice_slice cache = part(0, SLUICE_TO_END), parts[16],
			    less = part(0, 4039);
	const uint32_t twice[] = {1, 2, 1}, beyond[] = {0, 4};
	size_t n = 7;

	FAILS(sluice_kv_parts(&shape, &cache, twice, 3, SLUICE_KV_WRITE, parts, 16, &n),
	      EINVAL, "block 1 is named twice");
	CHECK(sluice_last_error()->index == 2);
	FAILS(sluice_kv_parts(&shape, &cache, beyond, 2, SLUICE_KV_READ, parts, 16, &n),
	      EINVAL, "block 4 is none of 4");
	CHECK(sluice_last_error()->index == 1);
	FAILS(sluice_kv_parts(&shape, &cache, twice, 0, SLUICE_KV_READ, parts, 16, &n),
	      EINVAL, "no block is named");
	FAILS(sluice_kv_parts(&shape, &cache, NULL, 1, SLUICE_KV_READ, parts, 16, &n),
	      EINVAL, "blocks: it is NULL");
	FAILS(sluice_kv_parts(&shape, &less, twice, 2, SLUICE_KV_READ, parts, 16, &n),
	      EINVAL, "the layout has 4040 bytes, the memory 4039");
	FAILS(sluice_kv_parts(&shape, &cache, twice, 3, SLUICE_KV_READ, parts, 7, &n),
	      EINVAL, "there is room for 7, and there are 12");
	FAILS(sluice_kv_parts(&shape, &cache, twice, 1, 2, parts, 16, &n), EINVAL,
	      "2 is no enum sluice_kv_use");
	FAILS(sluice_kv_parts(&shape, &cache, twice, 1, SLUICE_KV_READ, parts, 16,
			      NULL),
	      EINVAL, "filled: it is NULL");
	CHECK(n == 7);
}

static void buffers_are_what_they_say(void)
{
	CHECK(sluice_buffer_size(memory) == 12288 && sluice_buffer_size(NULL) == 0);
	CHECK(sluice_buffer_kind(memory) == SLUICE_MEMORY_HOST);
	for (size_t i = 0; i < 12288; i++)
		CHECK(bytes[i] == 0);
}

static void a_file_is_read(void)
{
	struct sluice_slice to = part(100, SLUICE_TO_END);
	int file = temporary();
	sluice_operation *op;
	uint64_t n = 0;

	CHECK(file >= 0);
	CHECK(!sluice_context_read(ring, file, &to, 5, &op));
	CHECK(!sluice_operation_wait(op, SLUICE_NEVER, &n));
	CHECK(n == sizeof(text) - 5 && !memcmp(bytes + 100, text + 5, n));
	CHECK(bytes[99] == 0 && bytes[100 + n] == 0);
	CHECK(sluice_operation_poll(op) == 1);
	/* again: the same result */
	n = 0;
	CHECK(!sluice_operation_wait(op, 0, &n) && n == sizeof(text) - 5);
	sluice_operation_free(op);
	close(file);
}

static void a_chain_writes_what_it_read(void)
{
	struct sluice_slice all = part(0, sizeof(text));
	int from = temporary(), to = temporary();
	sluice_operation *ops[3];
	char there[2 * sizeof(text)];

	CHECK(from >= 0 && to >= 0);
	CHECK(!sluice_chain_begin(ring, 3));
	CHECK(!sluice_context_read(ring, from, &all, 0, &ops[0]));
	CHECK(!sluice_context_write(ring, to, &all, sizeof(text), &ops[1]));
	CHECK(!sluice_context_sync(ring, to, &ops[2]));
	CHECK(!sluice_chain_end(ring));
	for (int i = 0; i < 3; i++) {
		CHECK(!sluice_operation_wait(ops[i], SLUICE_NEVER, NULL));
		sluice_operation_free(ops[i]);
	}
	CHECK(pread(to, there, sizeof(there), 0) == sizeof(there));
	CHECK(!memcmp(there, text, sizeof(text)) &&
	      !memcmp(there + sizeof(text), text, sizeof(text)));
	close(from);
	close(to);
}

static void a_context_that_closes_ends_its_chain(void)
{
	sluice_operation *op;
	sluice_context *other;

	CHECK(!sluice_context_open(NULL, &other));
	CHECK(!sluice_chain_begin(other, 2));
	CHECK(!sluice_context_sleep(other, sluice_after(1000000), &op));
	sluice_context_close(other);
	CHECK(!sluice_operation_wait(op, sluice_after(5000000000), NULL));
	sluice_operation_free(op);
}

static void errors_of_files_are_theirs(void)
{
	struct sluice_slice all = part(0, SLUICE_TO_END);
	int file = open("/dev/full", O_WRONLY);
	sluice_operation *op;

	CHECK(!sluice_context_read(ring, -1, &all, 0, &op));
	FAILS(sluice_operation_wait(op, SLUICE_NEVER, NULL), EBADF, "read");
	CHECK(sluice_last_error()->code == SLUICE_ERROR_INPUT);
	CHECK(sluice_last_error()->system_errno == EBADF);
	sluice_operation_free(op);
	CHECK(!sluice_context_write(ring, file, &all, 0, &op));
	FAILS(sluice_operation_wait(op, SLUICE_NEVER, NULL), ENOSPC, "write");
	CHECK(sluice_last_error()->code == SLUICE_ERROR_OUTPUT);
	CHECK(strstr(sluice_last_error()->remedy, "room"));
	sluice_operation_free(op);
	close(file);
}

/* A read of a pipe to which nothing is written. */
static void a_waiting_read_is_cancelled(void)
{
	struct sluice_slice all = part(0, SLUICE_TO_END);
	sluice_operation *op;
	uint64_t n = 7;
	int ends[2];

	CHECK(!pipe(ends));
	CHECK(!sluice_context_read(ring, ends[0], &all, SLUICE_CURRENT, &op));
	CHECK(sluice_operation_poll(op) == 0);
	FAILS(sluice_operation_wait(op, sluice_after(20000000), &n), EINPROGRESS,
	      "goes on");
	CHECK(sluice_last_error()->code == SLUICE_ERROR_TIMEOUT && n == 7);
	CHECK(!sluice_operation_cancel(op));
	FAILS(sluice_operation_wait(op, sluice_after(10000000000), &n), ECANCELED,
	      "read");
	CHECK(n == 7 && sluice_operation_poll(op) == 1);
	sluice_operation_free(op);
	/* free cancels, too: what is written later stays in the pipe */
	CHECK(!sluice_context_read(ring, ends[0], &all, SLUICE_CURRENT, &op));
	CHECK(sluice_operation_poll(op) == 0);
	sluice_operation_free(op);
	CHECK(write(ends[1], text, 4) == 4);
	CHECK(read(ends[0], bytes, 8) == 4);
	close(ends[0]);
	close(ends[1]);
}

static void *write_later(void *to)
{
	usleep(100000);
	return (void *)write(*(int *)to, text, 4);
}

static void others_can_wait(void)
{
	pthread_t other;
	struct sluice_slice all = part(0, SLUICE_TO_END);
	struct pollfd look = {.events = POLLIN};
	sluice_operation *op, *ready;
	uint32_t completed = 7;
	int64_t began;
	uint64_t n;
	int ends[2];

	CHECK(!pipe(ends));
	look.fd = sluice_context_fd(ring);
	CHECK(look.fd >= 0);
	CHECK(!sluice_context_ready(ring, ends[0], POLLIN, &ready));
	CHECK(!sluice_context_read(ring, ends[0], &all, SLUICE_CURRENT, &op));
	CHECK(!sluice_context_submit(ring) && poll(&look, 1, 20) == 0);
	CHECK(!sluice_context_wait(ring, 0, &completed) && completed == 0);
	/* the loop is woken, and soon */
	CHECK(!pthread_create(&other, NULL, write_later, &ends[1]));
	began = sluice_after(0);
	while (sluice_operation_done(op) == 0 || sluice_operation_done(ready) == 0) {
		CHECK(!sluice_context_submit(ring) && poll(&look, 1, 10000) == 1);
		do
			CHECK(!sluice_context_wait(ring, 0, &completed));
		while (completed);
	}
	CHECK(sluice_after(-5000000000) < began);
	CHECK(!pthread_join(other, NULL));
	/* completions that were taken in are not reported again */
	CHECK(!sluice_context_submit(ring) && poll(&look, 1, 0) == 0);
	CHECK(!sluice_operation_wait(op, 0, &n) && n == 4);
	CHECK(!sluice_operation_wait(ready, 0, &n) && n & POLLIN);
	sluice_operation_free(op);
	sluice_operation_free(ready);
	close(ends[0]);
	close(ends[1]);
}

static void time_is_monotonic(void)
{
	int64_t until = sluice_after(5000000);
	sluice_operation *op;

	CHECK(!sluice_context_sleep(ring, until, &op));
	CHECK(!sluice_operation_wait(op, SLUICE_NEVER, NULL));
	CHECK(sluice_after(0) >= until);
	CHECK(sluice_after(INT64_MAX) == SLUICE_NEVER);
	sluice_operation_free(op);
}

/* Handles may be freed in any order: the operation keeps the ring and the memory. */
static void the_order_of_ends_is_free(void)
{
	struct sluice_slice all = part(0, SLUICE_TO_END);
	sluice_operation *op;
	int ends[2];

	CHECK(!pipe(ends));
	CHECK(!sluice_context_read(ring, ends[0], &all, SLUICE_CURRENT, &op));
	close_all();
	CHECK(sluice_operation_poll(op) == 0);
	CHECK(write(ends[1], text, 4) == 4);
	CHECK(!sluice_operation_wait(op, SLUICE_NEVER, NULL));
	sluice_operation_free(op);
	close(ends[0]);
	close(ends[1]);
}

/* The sanitizers end a process that is out of memory. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define MAY_LACK_MEMORY
/* No exception escapes: a batch of a million operations in little memory. */
static void no_memory_is_an_error(void)
{
	struct rlimit before, little = {0, 0};
	sluice_batch *batch = NULL;
	int got;

	CHECK(!getrlimit(RLIMIT_AS, &before));
	little.rlim_max = before.rlim_max;
	CHECK(!setrlimit(RLIMIT_AS, &little));
	got = sluice_batch_create(1 << 20, &batch);
	CHECK(!setrlimit(RLIMIT_AS, &before));
	FAILS(got, ENOMEM, "memory");
	CHECK(!batch && sluice_last_error()->system_errno == ENOMEM);
}
#endif

static void paths_are_explained(void)
{
	char *said = NULL;
	sluice_topology *machine;
	const char *first;

	FAILS(sluice_topology_read("/nowhere", &machine), EIO, "/nowhere");
	CHECK(!sluice_topology_read(NULL, &machine));
	first = sluice_topology_name(machine, 0);
	CHECK(first && !strncmp(first, "node", 4));
	CHECK(!sluice_topology_name(machine, 100000));
	CHECK(!sluice_topology_explain(machine, first, first, SLUICE_TEXT, &said));
	CHECK(!strncmp(said, first, strlen(first)) && strstr(said, ": same"));
	sluice_free(said);
	CHECK(!sluice_topology_explain(machine, first, first, SLUICE_JSON, &said));
	CHECK(said[0] == '{' && strstr(said, "\"path\": \"same"));
	sluice_free(said);
	FAILS(sluice_topology_explain(machine, first, "none", SLUICE_TEXT, &said), EIO,
	      "none");
	FAILS(sluice_topology_explain(machine, first, first, 2, &said), EINVAL,
	      "format");
	sluice_topology_free(machine);
}

static void what_is_missing_is_told(void)
{
	struct sluice_device_info gpu = {.size = sizeof(gpu)};
	struct sluice_nic_info nic = {.size = sizeof(nic)};
	uint32_t count;

	CHECK(!sluice_device_count(&count));
	FAILS(sluice_device_info_at(count, &gpu), EIO, "there is no GPU");
	CHECK(!sluice_nic_count(&count));
	FAILS(sluice_nic_info_at(count, &nic), EIO, "there is no RDMA device");
	FAILS(sluice_nic_open(ring, "no such card", (sluice_nic *[1]){0}), EIO,
	      "no such card");
}

#define TEST(name) { #name, name }

static const struct test tests[] = {
	TEST(errors_have_names),
	TEST(an_error_tells_all),
	TEST(errors_are_of_a_thread),
	TEST(null_is_named),
	TEST(nothing_can_be_freed),
	TEST(sizes_are_checked),
	TEST(newer_structures_are_filled),
	TEST(bad_values_are_named),
	TEST(a_group_has_gpus),
	TEST(a_batch_tells_its_first_mistake),
	TEST(many_copies_are_all_or_none),
	TEST(what_is_gathered_adds_up),
	TEST(kv_shapes_are_compared),
	TEST(kv_shapes_that_cannot_be),
	TEST(kv_parts_are_where_they_should_be),
	TEST(kv_blocks_at_fault_are_named),
	TEST(buffers_are_what_they_say),
	TEST(a_file_is_read),
	TEST(a_chain_writes_what_it_read),
	TEST(a_context_that_closes_ends_its_chain),
	TEST(errors_of_files_are_theirs),
	TEST(a_waiting_read_is_cancelled),
	TEST(others_can_wait),
	TEST(time_is_monotonic),
	TEST(the_order_of_ends_is_free),
#ifdef MAY_LACK_MEMORY
	TEST(no_memory_is_an_error),
#endif
	TEST(paths_are_explained),
	TEST(what_is_missing_is_told),
};

/* For a script: the explanation of a path, as JSON. */
static int explain(const char *a, const char *b)
{
	sluice_topology *machine;
	char *said;

	if (sluice_topology_read(NULL, &machine) ||
	    sluice_topology_explain(machine, a, b, SLUICE_JSON, &said)) {
		fprintf(stderr, "%s\n", sluice_last_error()->message);
		return 1;
	}
	fputs(said, stdout);
	sluice_free(said);
	sluice_topology_free(machine);
	return 0;
}

int main(int argc, char **argv)
{
	sluice_context *trial;

	if (argc == 4 && !strcmp(argv[1], "explain"))
		return explain(argv[2], argv[3]);
	/* A kernel may forbid io_uring altogether. */
	if (sluice_context_open(NULL, &trial) == -EOPNOTSUPP) {
		printf("1..0 # SKIP %s\n", sluice_last_error()->message);
		return 77;
	}
	sluice_context_close(trial);
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argv[1], open_all,
			 close_all);
}
