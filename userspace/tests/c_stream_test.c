/* SPDX-License-Identifier: MIT */
/*
 * The C API between two nodes with soft RoCE, from C: each test has one process per
 * end. scripts/guest/c-api makes the nodes a and b.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "c_check.h"

#define MIB ((uint64_t)1 << 20)
#define SIZE (9 * MIB + 12345)

static const char address_b[] = "10.77.0.2";
static const int64_t seconds = 1000000000;

/* The listening end tells the other one its port here. */
static int ports[2];

/* The state of one end; each end is a process of its own. */
static sluice_context *ring;
static sluice_nic *nic;
static sluice_endpoint *peer;
static sluice_sender *sender;
static sluice_receiver *receiver;

static void give_port(sluice_listener *door)
{
	uint16_t port = sluice_listener_port(door);

	CHECK(write(ports[1], &port, sizeof(port)) == sizeof(port));
}

static struct sluice_endpoint_options token(const char *text)
{
	struct sluice_endpoint_options o = {.size = sizeof(o), .token = text};

	return o;
}

static int open_card(const char *name)
{
	int err = sluice_context_open(NULL, &ring);

	return err ? err : sluice_nic_open(ring, name, &nic);
}

static int take_port(uint16_t *port)
{
	return read(ports[0], port, sizeof(*port)) == sizeof(*port) ? 0 : -1;
}

static void listen_with(const char *text)
{
	struct sluice_endpoint_options o = token(text);
	sluice_listener *door;

	CHECK(!open_card("rxe-b"));
	CHECK(!sluice_listener_open(nic, NULL, 0, &o, &door));
	give_port(door);
	CHECK(!sluice_listener_accept(door, sluice_after(20 * seconds), &peer));
	sluice_listener_close(door);
}

static int connect_with(const char *text)
{
	struct sluice_endpoint_options o = token(text);
	uint16_t port;

	if (open_card("rxe-a") || take_port(&port))
		return -1;
	return sluice_endpoint_connect(nic, address_b, port, &o,
				       sluice_after(20 * seconds), &peer);
}

static void close_all(void)
{
	/* any order will do */
	sluice_context_close(ring);
	sluice_nic_close(nic);
	sluice_endpoint_close(peer);
	sluice_sender_free(sender);
	sluice_receiver_free(receiver);
}

static int finish_at(int started, sluice_operation *op, uint64_t *value,
		     int64_t deadline)
{
	int err = started;

	if (!err) {
		err = sluice_operation_wait(op, deadline, value);
		sluice_operation_free(op);
	}
	return err;
}

static int finish(int started, sluice_operation *op, uint64_t *value)
{
	return finish_at(started, op, value, sluice_after(60 * seconds));
}

/* Equal at both ends. */
static unsigned char byte_at(uint64_t i)
{
	return (unsigned char)(i * 2654435761u >> 13);
}

static void fill(unsigned char *to, uint64_t size)
{
	for (uint64_t i = 0; i < size; i++)
		to[i] = byte_at(i);
}

static int filled(const unsigned char *in, uint64_t size)
{
	for (uint64_t i = 0; i < size; i++)
		if (in[i] != byte_at(i))
			return 0;
	return 1;
}

static sluice_buffer *make(uint64_t size, unsigned char **bytes)
{
	sluice_buffer *buffer;
	void *data;

	if (sluice_buffer_host(size, NULL, &buffer) || sluice_buffer_map(buffer, &data))
		abort();
	*bytes = data;
	return buffer;
}

static int send_source(const struct sluice_source *source, uint64_t *value)
{
	sluice_operation *op = NULL;
	int err = sluice_sender_send(sender, source, &op);

	return finish(err, op, value);
}

static int send_finish(void)
{
	sluice_operation *op = NULL;
	int err = sluice_sender_finish(sender, &op);

	return finish(err, op, NULL);
}

static int next(uint64_t *is_there)
{
	sluice_operation *op = NULL;
	int err = sluice_receiver_next(receiver, &op);

	return finish(err, op, is_there);
}

static int receive(const struct sluice_sink *sink, uint64_t *value)
{
	sluice_operation *op = NULL;
	int err = sluice_receiver_receive(receiver, sink, &op);

	return finish(err, op, value);
}

/* Begin to receive a message; the operation keeps the memory for it. */
static int receive_message(sluice_operation **op)
{
	unsigned char *bytes;
	sluice_buffer *memory = make(4096, &bytes);
	struct sluice_slice to = {memory, 0, 100};
	int err = sluice_endpoint_receive(peer, &to, op);

	sluice_buffer_free(memory);
	return err;
}

/* Scattered memory goes into memory that is scattered differently. */

static void send_memory(void)
{
	unsigned char *bytes;
	sluice_buffer *memory = make(SIZE, &bytes);
	struct sluice_slice parts[2] = {{memory, 0, 5 * MIB + 1},
					{memory, 5 * MIB + 1, SIZE - 5 * MIB - 1}};
	struct sluice_source source = {.size = sizeof(source),
				       .name = "memory",
				       .memory = parts,
				       .count = 2,
				       .file = -1};
	struct sluice_report report = {.size = sizeof(report)};
	struct sluice_progress progress = {.size = sizeof(progress)};
	uint64_t n = 0;

	fill(bytes, SIZE);
	CHECK(!connect_with(NULL) &&
	      !strncmp(sluice_endpoint_peer(peer), address_b, 9));
	CHECK(!sluice_sender_create(peer, NULL, &sender));
	/* the stream keeps the endpoint, and the operation the memory */
	sluice_endpoint_close(peer);
	peer = NULL;
	FAILS(sluice_sender_report(sender, &report), EINVAL, "in full");
	CHECK(!send_source(&source, &n) && n == SIZE);
	CHECK(!sluice_sender_report(sender, &report));
	CHECK(report.bytes == SIZE && !report.resumed && report.pieces == 3);
	CHECK(report.bytes_by_path[SLUICE_PATH_HOST] == SIZE);
	CHECK(!report.bytes_by_path[SLUICE_PATH_STAGED]);
	CHECK(!strcmp(report.name, "memory") && report.total_ns > 0);
	CHECK(report.flags == SLUICE_REPORT_DIGEST && report.system_calls);
	CHECK(!sluice_sender_progress(sender, &progress));
	CHECK(progress.bytes == SIZE && progress.total == SIZE);
	CHECK(write(ports[1], report.sha256, 32) == 32);
	CHECK(!send_finish());
	sluice_buffer_free(memory);
}

static void receive_memory(void)
{
	unsigned char *bytes, digest[32], nothing[32] = {0};
	sluice_buffer *memory = make(SIZE, &bytes);
	struct sluice_slice parts[2] = {{memory, 0, 77}, {memory, 77, SIZE - 77}};
	struct sluice_sink sink = {.size = sizeof(sink), .memory = parts, .count = 2};
	struct sluice_stream_options o = {.size = sizeof(o), .pieces = 3};
	struct sluice_report report = {.size = sizeof(report)};
	struct sluice_offer offer = {.size = sizeof(offer)};
	uint64_t n = 0;

	listen_with(NULL);
	CHECK(!bad && !sluice_receiver_create(peer, &o, &receiver));
	FAILS(sluice_receiver_offer(receiver, &offer), EINVAL, "nothing is offered");
	CHECK(!next(&n) && n == 1 && !sluice_receiver_offer(receiver, &offer));
	CHECK(!strcmp(offer.name, "memory") && offer.bytes == SIZE);
	CHECK(!receive(&sink, &n) && n == SIZE && filled(bytes, SIZE));
	CHECK(!sluice_receiver_report(receiver, &report));
	CHECK(report.bytes_by_path[SLUICE_PATH_HOST] == SIZE);
	CHECK(report.flags & SLUICE_REPORT_DIGEST);
	CHECK(!next(&n) && n == 0);
	FAILS(sluice_receiver_receive(receiver, &sink, (sluice_operation *[1]){0}),
	      EINVAL, "nothing is offered");
	CHECK(read(ports[0], digest, 32) == 32 && memcmp(digest, nothing, 32));
	CHECK(!memcmp(digest, report.sha256, 32));
	sluice_buffer_free(memory);
}

/*
 * Blocks of a KV cache go to other blocks of another cache, which has room after each. A
 * part consists of bytes that no other part has.
 */

static const uint32_t kv_from[] = {5, 2}, kv_to[] = {0, 7};

static struct sluice_kv_layout kv_shape(uint64_t stride)
{
	struct sluice_kv_layout l = {.size = sizeof(l),
				     .layers = 3,
				     .planes = 2,
				     .blocks = 8,
				     .block_bytes = 5000,
				     .block_stride = stride};

	return l;
}

static unsigned char *kv_part(unsigned char *cache, uint64_t stride, size_t plane,
			      uint32_t block)
{
	return cache + (plane * 8 + block) * stride;
}

static void send_blocks(void)
{
	const struct sluice_kv_layout layout = kv_shape(0);
	struct sluice_offer offer = {.size = sizeof(offer)};
	struct sluice_slice cache = {.length = SLUICE_TO_END}, parts[12];
	struct sluice_source source = {
		.size = sizeof(source), .memory = parts, .name = offer.name};
	unsigned char *bytes;
	uint64_t size, n = 0;

	CHECK(!sluice_kv_size(&layout, &size) && size == 6 * 8 * 5000);
	cache.buffer = make(size, &bytes);
	for (size_t i = 0; i < 12; i++)
		memset(kv_part(bytes, 5000, i / 2, kv_from[i % 2]), (int)i + 1, 5000);
	CHECK(!sluice_kv_offer(&layout, 2, &offer));
	CHECK(!sluice_kv_parts(&layout, &cache, kv_from, 2, SLUICE_KV_READ, parts, 12,
			       &source.count));
	CHECK(!connect_with(NULL) && !sluice_sender_create(peer, NULL, &sender));
	// A mistake in the call does not end the stream.
	source.name = "a/b";
	FAILS(send_source(&source, &n), EINVAL, "a name has");
	source.name = offer.name;
	source.memory = NULL;
	FAILS(send_source(&source, &n), EINVAL, "NULL");
	source.memory = parts;
	CHECK(!send_source(&source, &n) && n == offer.bytes && !send_finish());
	sluice_buffer_free(cache.buffer);
}

static void receive_blocks(void)
{
	const struct sluice_kv_layout layout = kv_shape(5003);
	struct sluice_offer offer = {.size = sizeof(offer)};
	struct sluice_slice cache = {.length = SLUICE_TO_END}, parts[12];
	struct sluice_sink sink = {.size = sizeof(sink), .memory = parts};
	unsigned char *bytes, *part;
	uint64_t size, n = 0, others = 0;

	CHECK(!sluice_kv_size(&layout, &size));
	cache.buffer = make(size, &bytes);
	listen_with(NULL);
	CHECK(!bad && !sluice_receiver_create(peer, NULL, &receiver));
	CHECK(!next(&n) && n == 1 && !sluice_receiver_offer(receiver, &offer));
	FAILS(sluice_kv_fits(&layout, 3, &offer), EPROTO, "2 blocks of 5000 bytes");
	CHECK(!sluice_kv_fits(&layout, 2, &offer));
	CHECK(!sluice_kv_parts(&layout, &cache, kv_to, 2, SLUICE_KV_WRITE, parts, 12,
			       &sink.count));
	sink.memory = NULL;
	FAILS(receive(&sink, &n), EINVAL, "NULL");
	sink.memory = parts;
	CHECK(!receive(&sink, &n) && n == 60000 && !next(&n) && n == 0);
	for (size_t i = 0; i < 12; i++) {
		part = kv_part(bytes, 5003, i / 2, kv_to[i % 2]);
		for (size_t at = 0; at < 5000; at++)
			CHECK(part[at] == i + 1);
		memset(part, 0, 5000);
	}
	for (size_t at = 0; at < size; at++)
		others += bytes[at];
	CHECK(!others);
	sluice_buffer_free(cache.buffer);
}

/* File to video memory here, in place by RDMA, and there to video memory. */

static int open_gpu(const char *name, sluice_device **gpu,
		    struct sluice_stream_options *o)
{
	struct sluice_stream_options wanted = {.size = sizeof(wanted),
					       .require = SLUICE_PATH_DEVICE_ALIAS};

	if (sluice_device_open(ring, name, gpu))
		return -1;
	wanted.gpu = *gpu;
	*o = wanted;
	return 0;
}

static void nothing_migrated(const struct sluice_report *report)
{
	CHECK(report->bytes_by_path[SLUICE_PATH_DEVICE_ALIAS] == SIZE);
	CHECK(!report->bytes_by_path[SLUICE_PATH_HOST]);
	CHECK(report->flags == (SLUICE_REPORT_DIGEST | SLUICE_REPORT_MIGRATIONS));
	CHECK(!report->migrated_in && !report->migrated_out && !report->lost_events);
}

static void send_from_gpu(void)
{
	struct sluice_report report = {.size = sizeof(report)};
	struct sluice_source source = {
		.size = sizeof(source), .name = "file", .bytes = SIZE};
	struct sluice_stream_options o;
	sluice_device *gpu;
	unsigned char *bytes = malloc(SIZE);

	CHECK(bytes);
	fill(bytes, SIZE);
	source.file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	CHECK(write(source.file, bytes, SIZE) == (ssize_t)SIZE);
	free(bytes);
	CHECK(!connect_with(NULL) && !open_gpu("0", &gpu, &o));
	CHECK(!sluice_sender_create(peer, &o, &sender));
	sluice_device_close(gpu);
	CHECK(!send_source(&source, NULL) && !sluice_sender_report(sender, &report));
	nothing_migrated(&report);
	CHECK(!bad && !send_finish());
	close(source.file);
}

static void copy_and_compare(sluice_device *gpu, sluice_buffer *vram)
{
	unsigned char *bytes;
	sluice_buffer *host = make(SIZE, &bytes);
	struct sluice_slice to = {host, 0, SIZE}, from = {vram, 0, SIZE};
	sluice_operation *op;
	sluice_batch *batch;

	CHECK(!sluice_device_attach(gpu, host) && !sluice_batch_create(1, &batch));
	CHECK(!sluice_batch_fault_in(batch, 1) &&
	      !sluice_batch_copy(batch, &to, &from));
	CHECK(!sluice_device_submit(gpu, batch, &op) && !finish(0, op, NULL));
	CHECK(filled(bytes, SIZE));
	sluice_batch_free(batch);
	sluice_buffer_free(host);
}

static void receive_in_gpu(void)
{
	struct sluice_report report = {.size = sizeof(report)};
	struct sluice_slice part = {.length = SIZE};
	struct sluice_sink sink = {.size = sizeof(sink), .memory = &part, .count = 1};
	struct sluice_stream_options o;
	sluice_device *gpu;
	uint64_t n = 0;

	listen_with(NULL);
	CHECK(!bad && !open_gpu("1", &gpu, &o));
	CHECK(!sluice_device_vram(gpu, SIZE, &part.buffer));
	CHECK(!sluice_receiver_create(peer, &o, &receiver));
	CHECK(!next(&n) && n == 1 && !receive(&sink, &n) && n == SIZE);
	CHECK(!sluice_receiver_report(receiver, &report));
	nothing_migrated(&report);
	CHECK(!bad && !next(&n) && n == 0);
	copy_and_compare(gpu, part.buffer);
	sluice_buffer_free(part.buffer);
	sluice_device_close(gpu);
}

/* A stream that the receiver refuses. */

static void send_unwanted(void)
{
	struct sluice_source source = {
		.size = sizeof(source), .name = "unwanted", .bytes = MIB};
	struct sluice_stream_options o = {.size = sizeof(o),
					  .require = SLUICE_PATH_DEVICE_ALIAS};

	source.file = open("/dev/zero", O_RDONLY);
	CHECK(!connect_with(NULL));
	FAILS(sluice_sender_create(peer, &o, &sender), ENOLINK, "device-alias");
	o.require = 9;
	FAILS(sluice_sender_create(peer, &o, &sender), EINVAL, "sluice_data_path");
	o.require = 0;
	o.pieces = 65;
	FAILS(sluice_sender_create(peer, &o, &sender), EINVAL, "between 2 and 64");
	o.pieces = 0;
	CHECK(!sluice_sender_create(peer, &o, &sender));
	FAILS(send_source(&source, NULL), EREMOTEIO, "the disk is full");
	CHECK(sluice_last_error()->code == SLUICE_ERROR_PEER_ERROR);
	/* the sender cannot be used any more */
	FAILS(send_source(&source, NULL), ECANCELED, "make another one");
	close(source.file);
}

static void refuse_it(void)
{
	sluice_operation *op;
	uint64_t n = 0;

	listen_with(NULL);
	CHECK(!bad && !sluice_receiver_create(peer, NULL, &receiver));
	CHECK(!next(&n) && n == 1);
	CHECK(!sluice_receiver_refuse(receiver, "the disk is full", &op));
	CHECK(!finish(0, op, NULL));
	/* the sender gives up, and tells why */
	FAILS(next(&n), EREMOTEIO, "the disk is full");
}

/* One peer guesses the token, and one knows it. */

static void guess_and_know(void)
{
	sluice_operation *op;

	CHECK(connect_with("a guess") == -EACCES);
	CHECK(sluice_last_error()->code == SLUICE_ERROR_DENIED);
	CHECK(strstr(sluice_last_error()->remedy, "token"));
	close_all();
	CHECK(!connect_with("what both know") && !sluice_endpoint_alive(peer));
	CHECK(!sluice_endpoint_send(peer, "hello", 5, &op) && !finish(0, op, NULL));
}

static void turn_one_away(void)
{
	struct sluice_endpoint_options o = token("what both know");
	sluice_listener *door;
	sluice_operation *op;

	CHECK(!open_card("rxe-b"));
	CHECK(!sluice_listener_open(nic, "", 0, &o, &door));
	FAILS(sluice_listener_accept(door, sluice_after(1000000), &peer), ETIMEDOUT,
	      "");
	give_port(door);
	give_port(door);
	CHECK(!sluice_listener_accept(door, sluice_after(20 * seconds), &peer));
	sluice_listener_close(door);
	CHECK(!receive_message(&op) && !finish(0, op, NULL));
}

/* Connecting and accepting as operations. */

static void connect_begun(void)
{
	sluice_operation *op, *other;
	uint16_t port;

	CHECK(!open_card("rxe-a"));
	/* no listener there, until it is cancelled */
	CHECK(!sluice_endpoint_begin(nic, address_b, 1, NULL, SLUICE_NEVER, &op));
	FAILS(sluice_endpoint_take(op, &peer), EINVAL, "not done");
	FAILS(sluice_operation_wait(op, sluice_after(200000000), NULL), EINPROGRESS,
	      "goes on");
	CHECK(sluice_operation_done(op) == 0 && !sluice_operation_cancel(op));
	FAILS(sluice_operation_wait(op, 0, NULL), ECANCELED, "cancelled");
	FAILS(sluice_endpoint_take(op, &peer), ECANCELED, "cancelled");
	sluice_operation_free(op);
	CHECK(!take_port(&port));
	CHECK(!sluice_endpoint_begin(nic, address_b, port, NULL,
				     sluice_after(20 * seconds), &op));
	CHECK(!sluice_operation_wait(op, sluice_after(20 * seconds), NULL));
	CHECK(!sluice_endpoint_take(op, &peer));
	FAILS(sluice_endpoint_take(op, &(sluice_endpoint *){NULL}), EINVAL, "taken");
	sluice_operation_free(op);
	CHECK(!sluice_context_sleep(ring, 0, &other));
	FAILS(sluice_endpoint_take(other, &peer), EINVAL, "sluice_endpoint_begin");
	sluice_operation_free(other);
	CHECK(!sluice_endpoint_send(peer, "hello", 5, &op) && !finish(0, op, NULL));
}

static void accept_begun(void)
{
	sluice_listener *door;
	sluice_operation *op;

	CHECK(!open_card("rxe-b"));
	CHECK(!sluice_listener_open(nic, NULL, 0, NULL, &door));
	CHECK(!sluice_listener_arrival(door, &op) && sluice_operation_poll(op) == 0);
	give_port(door);
	CHECK(!finish_at(0, op, NULL, sluice_after(20 * seconds)));
	CHECK(!sluice_listener_accept(door, 0, &peer));
	sluice_listener_close(door);
	CHECK(!receive_message(&op) && !finish(0, op, NULL));
}

/* A connection ends when it is closed, though an operation is under way. */

static void close_while_receiving(void)
{
	sluice_operation *op;

	listen_with(NULL);
	CHECK(!bad && !receive_message(&op));
	sluice_endpoint_close(peer);
	peer = NULL;
	FAILS(finish(0, op, NULL), ECANCELED, "closed");
}

static void be_left(void)
{
	sluice_operation *op;

	CHECK(!connect_with(NULL));
	CHECK(!receive_message(&op));
	FAILS(finish(0, op, NULL), ECONNRESET, "");
}

/* Messages, until one of the two leaves. */

static void say_something(void)
{
	struct sluice_slice none = {0};
	char much[SLUICE_MAX_MESSAGE + 1] = {0};
	sluice_operation *op;

	CHECK(!connect_with(NULL));
	CHECK(!sluice_endpoint_send(peer, much, sizeof(much), &op));
	FAILS(finish(0, op, NULL), EINVAL, "");
	FAILS(sluice_endpoint_send(peer, NULL, 1, &op), EINVAL, "message");
	FAILS(sluice_endpoint_receive(peer, &none, &op), EINVAL, "to");
	CHECK(!sluice_endpoint_send(peer, "hello", 5, &op) && !finish(0, op, NULL));
}

static void hear_it(void)
{
	unsigned char *bytes;
	sluice_buffer *memory = make(4096, &bytes);
	struct sluice_slice to = {memory, 8, 100};
	sluice_operation *op;
	uint64_t n = 0;

	listen_with(NULL);
	CHECK(!bad && !sluice_endpoint_receive(peer, &to, &op));
	sluice_buffer_free(memory);
	CHECK(!sluice_operation_wait(op, sluice_after(20 * seconds), &n));
	CHECK(n == 5 && !memcmp(bytes + 8, "hello", 5) && !bytes[13]);
	sluice_operation_free(op);
	memory = make(4096, &bytes);
	to.buffer = memory;
	CHECK(!sluice_endpoint_receive(peer, &to, &op));
	FAILS(finish(0, op, &n), ECONNRESET, "");
	FAILS(sluice_endpoint_alive(peer), ECONNRESET, "");
	sluice_buffer_free(memory);
}

/* A sender that gives up midway: its pipe gives no more data. */

static void send_half(void)
{
	struct sluice_source source = {
		.size = sizeof(source), .name = "half", .bytes = SLUICE_UNKNOWN};
	struct sluice_progress progress = {.size = sizeof(progress)};
	struct sluice_stream_options o = {.size = sizeof(o), .piece = 65536};
	struct sluice_slice all;
	sluice_operation *op, *more, *other;
	unsigned char *bytes;
	sluice_buffer *memory = make(65536, &bytes);
	int ends[2], waits[2];

	all = (struct sluice_slice){memory, 0, SLUICE_TO_END};
	CHECK(!pipe(ends) && !pipe(waits) && fcntl(ends[1], F_SETPIPE_SZ, 131072) > 0);
	CHECK(write(ends[1], bytes, 65536) == 65536);
	source.file = ends[0];
	CHECK(!connect_with(NULL) && !sluice_sender_create(peer, &o, &sender));
	CHECK(!sluice_sender_send(sender, &source, &op));
	FAILS(sluice_sender_send(sender, &source, &more), EBUSY, "under way");
	/* the stream moves while the test waits for another operation */
	CHECK(!sluice_context_read(ring, waits[0], &all, SLUICE_CURRENT, &other));
	for (int i = 0; i < 1000 && progress.bytes < 65536; i++) {
		FAILS(sluice_operation_wait(other, sluice_after(20000000), NULL),
		      EINPROGRESS, "read");
		CHECK(!sluice_sender_progress(sender, &progress));
	}
	CHECK(progress.bytes == 65536 && progress.total == SLUICE_UNKNOWN);
	CHECK(sluice_operation_poll(op) == 0 && !sluice_operation_cancel(op));
	FAILS(sluice_operation_wait(op, 0, NULL), ECANCELED, "cancelled");
	FAILS(sluice_sender_finish(sender, &more), ECANCELED, "make another one");
	FAILS(sluice_sender_progress(sender, &progress), ECANCELED, "broke off");
	sluice_operation_free(op);
	sluice_operation_free(other);
	/* what is written to the pipe now stays in it */
	CHECK(write(ends[1], "x", 1) == 1 && read(ends[0], bytes, 9) == 1);
	sluice_buffer_free(memory);
}

static void receive_half(void)
{
	struct sluice_sink sink = {.size = sizeof(sink)};
	unsigned char bytes[65536];
	uint64_t n = 0;

	sink.file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	listen_with(NULL);
	CHECK(!bad && !sluice_receiver_create(peer, NULL, &receiver));
	CHECK(!next(&n) && n == 1 && sink.file >= 0);
	FAILS(receive(&sink, &n), ECONNRESET, "");
	CHECK(pread(sink.file, bytes, sizeof(bytes), 0) == sizeof(bytes));
	close(sink.file);
}

/* The receiver already has half of a file. */

static void send_the_rest(void)
{
	struct sluice_report report = {.size = sizeof(report)};
	struct sluice_source source = {
		.size = sizeof(source), .name = "file", .bytes = SIZE};
	unsigned char *bytes = malloc(SIZE);
	uint64_t n = 0;

	CHECK(bytes);
	fill(bytes, SIZE);
	source.file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	CHECK(write(source.file, bytes, SIZE) == (ssize_t)SIZE);
	CHECK(!connect_with(NULL) && !sluice_sender_create(peer, NULL, &sender));
	CHECK(!send_source(&source, &n) && n == SIZE - 4 * MIB);
	CHECK(!sluice_sender_report(sender, &report));
	CHECK(report.resumed == 4 * MIB && report.bytes == n);
	CHECK(!send_finish());
	free(bytes);
	close(source.file);
}

static void receive_the_rest(void)
{
	struct sluice_sink sink = {.size = sizeof(sink), .have = 4 * MIB};
	unsigned char *bytes = malloc(SIZE);
	uint64_t n = 0;

	CHECK(bytes);
	fill(bytes, SIZE);
	sink.file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	CHECK(write(sink.file, bytes, 4 * MIB) == (ssize_t)(4 * MIB));
	listen_with(NULL);
	CHECK(!bad && !sluice_receiver_create(peer, NULL, &receiver));
	CHECK(!next(&n) && n == 1 && !receive(&sink, &n) && n == SIZE - 4 * MIB);
	memset(bytes, 0, SIZE);
	CHECK(pread(sink.file, bytes, SIZE, 0) == (ssize_t)SIZE && filled(bytes, SIZE));
	CHECK(!next(&n) && n == 0);
	free(bytes);
	close(sink.file);
}

/* One end of a test in the node @name. */
static pid_t start(const char *name, void (*end)(void))
{
	char path[64];
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid)
		return pid;
	snprintf(path, sizeof(path), "/var/run/netns/%s", name);
	if (setns(open(path, O_RDONLY | O_CLOEXEC), CLONE_NEWNET) < 0) {
		printf("# there is no node %s\n", name);
		_exit(1);
	}
	/* Nothing may hang forever. */
	alarm(100);
	end();
	if (!bad)
		close_all();
	fflush(stdout);
	_exit(bad ? 1 : 0);
}

static void both(void (*a)(void), void (*b)(void))
{
	pid_t pids[2];
	int status;

	CHECK(!pipe(ports));
	pids[0] = start("a", a);
	pids[1] = start("b", b);
	close(ports[1]);
	for (int i = 0; i < 2; i++) {
		if (waitpid(pids[i], &status, 0) != pids[i] || status) {
			printf("# the end in %c: status %#x\n", "ab"[i], status);
			bad++;
		}
	}
	close(ports[0]);
}

static void memory_to_memory(void)
{
	both(send_memory, receive_memory);
}
static void blocks_to_blocks(void)
{
	both(send_blocks, receive_blocks);
}
static void gpu_to_gpu(void)
{
	WANTS_SERIES();
	both(send_from_gpu, receive_in_gpu);
}
static void refused(void)
{
	both(send_unwanted, refuse_it);
}
static void token_is_wrong(void)
{
	both(guess_and_know, turn_one_away);
}
static void begun(void)
{
	both(connect_begun, accept_begun);
}
static void closed(void)
{
	both(be_left, close_while_receiving);
}
static void messages(void)
{
	both(say_something, hear_it);
}
static void cancelled(void)
{
	both(send_half, receive_half);
}
static void resumed(void)
{
	both(send_the_rest, receive_the_rest);
}

#define TEST(name) { #name, name }

static const struct test tests[] = {
	TEST(memory_to_memory), TEST(blocks_to_blocks), TEST(gpu_to_gpu),
	TEST(refused),		TEST(token_is_wrong),	TEST(begun),
	TEST(closed),		TEST(messages),		TEST(cancelled),
	TEST(resumed),
};

static int nothing_before(void)
{
	return 0;
}

static void nothing_after(void) {}

int main(int argc, char **argv)
{
	(void)argc;
	return run_tests(tests, sizeof(tests) / sizeof(tests[0]), argv[1],
			 nothing_before, nothing_after);
}
