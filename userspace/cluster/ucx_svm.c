// SPDX-License-Identifier: GPL-2.0
/*
 * ucx-svm BYTES [WORKER KEY BASE]: put, get and messages with a tag of UCP between buffers
 * that are in the video memory of two nodes' GPUs. All but the buffers is plain UCP.
 *
 * Without a worker it offers a buffer, says of it "at WORKER KEY BASE", and waits for a
 * message, which goes to another buffer. With these it gets what is in the first, puts
 * other bytes there, and sends those as a message, too. Both print a line of what became
 * of their buffers.
 */
#include <ucp/api/ucp.h>

#include "svm_buffers.h"

/* Seeds of what is in the buffers at first */
enum { NOTHING, OFFERED, WRITTEN };

#define TAG 7

struct side {
	struct buffers b;
	ucp_context_h context;
	ucp_worker_h worker;
	ucp_ep_h ep;
	ucp_mem_h in, out;
};

static void give_up(const char *what)
{
	fprintf(stderr, "ucx-svm: %s\n", what);
	exit(1);
}

static void must(const char *what, ucs_status_t status)
{
	if (status == UCS_OK)
		return;
	fprintf(stderr, "ucx-svm: %s: %s\n", what, ucs_status_string(status));
	exit(1);
}

static void open_worker(struct side *s)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
			       .features = UCP_FEATURE_RMA | UCP_FEATURE_TAG};
	ucp_worker_params_t worker = {};

	must("ucp_init", ucp_init(&params, NULL, &s->context));
	must("ucp_worker_create", ucp_worker_create(s->context, &worker, &s->worker));
}

static ucp_mem_h map(struct side *s, void *at)
{
	ucp_mem_map_params_t params = {
		.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
			      UCP_MEM_MAP_PARAM_FIELD_LENGTH,
		.address = at,
		.length = s->b.len,
	};
	ucp_mem_h memory;

	must("ucp_mem_map", ucp_mem_map(s->context, &params, &memory));
	return memory;
}

/* Until an operation has ended */
static void complete(struct side *s, const char *what, ucs_status_ptr_t request)
{
	ucs_status_t status = UCS_PTR_STATUS(request);

	if (UCS_PTR_IS_PTR(request)) {
		while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS)
			ucp_worker_progress(s->worker);
		ucp_request_free(request);
	}
	must(what, status);
}

static void flush(struct side *s)
{
	ucp_request_param_t none = {};

	complete(s, "flush", ucp_worker_flush_nbx(s->worker, &none));
}

static void make(struct side *s, const char *bytes, uint32_t out, uint32_t in)
{
	make_buffers(&s->b, bytes, out, in);
	s->in = map(s, s->b.in);
	s->out = map(s, s->b.out);
}

static void unmap(struct side *s)
{
	ucp_mem_unmap(s->context, s->in);
	ucp_mem_unmap(s->context, s->out);
}

static void print_hex(const void *bytes, size_t len)
{
	const unsigned char *at = bytes;

	while (len--)
		printf("%02x", *at++);
	putchar(' ');
}

static void offer(struct side *s)
{
	ucp_address_t *address;
	size_t len, key_len;
	void *key;

	must("ucp_worker_get_address",
	     ucp_worker_get_address(s->worker, &address, &len));
	must("ucp_rkey_pack", ucp_rkey_pack(s->context, s->in, &key, &key_len));
	printf("at ");
	print_hex(address, len);
	print_hex(key, key_len);
	printf("%lu\n", (uintptr_t)s->b.in);
	fflush(stdout);
	ucp_rkey_buffer_release(key);
	ucp_worker_release_address(s->worker, address);
}

static void serve(struct side *s, const char *bytes)
{
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH};
	struct outcome o;
	bool wrong;

	make(s, bytes, NOTHING, OFFERED);
	offer(s);
	param.memh = s->out;
	complete(s, "receive",
		 ucp_tag_recv_nbx(s->worker, s->b.out, s->b.len, TAG, -1ul, &param));
	flush(s);
	o = outcome_of(&s->b);
	unmap(s);
	wrong = pattern_check(s->b.in, s->b.len, WRITTEN) >= 0 ||
		pattern_check(s->b.out, s->b.len, WRITTEN) >= 0;
	tell(&s->b, "offered", 0, o, wrong);
}

/* Bytes of a word of hexadecimal digits */
static void *bytes_of(const char *hex)
{
	size_t i, len = strlen(hex) / 2;
	unsigned char *bytes = malloc(len + 1);

	if (!bytes)
		give_up("no memory");
	for (i = 0; i < len; i++)
		if (sscanf(hex + 2 * i, "%2hhx", &bytes[i]) != 1)
			give_up("WORKER and KEY are hexadecimal digits");
	return bytes;
}

static ucp_rkey_h connect_to(struct side *s, const char *worker, const char *key)
{
	ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
				  .address = bytes_of(worker)};
	ucp_rkey_h rkey;

	must("ucp_ep_create", ucp_ep_create(s->worker, &params, &s->ep));
	must("ucp_ep_rkey_unpack", ucp_ep_rkey_unpack(s->ep, bytes_of(key), &rkey));
	return rkey;
}

static void use(struct side *s, char **args)
{
	ucp_request_param_t in = {.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH}, out = in;
	uint64_t base = strtoull(args[3], NULL, 0);
	ucp_rkey_h key = connect_to(s, args[1], args[2]);
	struct outcome o;
	bool wrong;

	make(s, args[0], WRITTEN, NOTHING);
	in.memh = s->in;
	out.memh = s->out;
	complete(s, "get", ucp_get_nbx(s->ep, s->b.in, s->b.len, base, key, &in));
	complete(s, "put", ucp_put_nbx(s->ep, s->b.out, s->b.len, base, key, &out));
	flush(s);
	complete(s, "send", ucp_tag_send_nbx(s->ep, s->b.out, s->b.len, TAG, &out));
	flush(s);
	o = outcome_of(&s->b);
	ucp_rkey_destroy(key);
	unmap(s);
	wrong = pattern_check(s->b.in, s->b.len, OFFERED) >= 0;
	tell(&s->b, "used", 1, o, wrong);
}

int main(int argc, char **argv)
{
	struct side s = {};

	if (argc != 2 && argc != 5)
		give_up("BYTES, or BYTES WORKER KEY BASE");
	open_gpu(&s.b);
	open_worker(&s);
	if (argc == 2)
		serve(&s, argv[1]);
	else
		use(&s, argv + 1);
	return 0;
}
