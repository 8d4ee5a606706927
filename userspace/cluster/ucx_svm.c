// SPDX-License-Identifier: GPL-2.0
/*
 * ucx-svm BYTES [WORKER KEY BASE]: put, get and tagged messages of UCP between buffers in
 * the video memory of two nodes' GPUs. Apart from the buffers it is plain UCP.
 *
 * Without a worker it offers a buffer, prints "at WORKER KEY BASE" for it, and waits for a
 * message, which goes to another buffer. With these it gets the content of the first, puts
 * other bytes there, and sends those as a message, too. Both print a line about the state
 * of their buffers.
 */
#include "ucx_worker.h"

/* Seeds of the initial contents of the buffers */
enum { NOTHING, OFFERED, WRITTEN };

struct side {
	struct buffers b;
	struct worker w;
	ucp_mem_h in, out;
};

static ucp_mem_h map(struct side *s, void *at)
{
	ucp_mem_map_params_t params = {
		.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
			      UCP_MEM_MAP_PARAM_FIELD_LENGTH,
		.address = at,
		.length = s->b.len,
	};
	ucp_mem_h memory;

	must("ucp_mem_map", ucp_mem_map(s->w.context, &params, &memory));
	return memory;
}

static void make(struct side *s, const char *bytes, uint32_t out, uint32_t in)
{
	make_buffers(&s->b, strtoul(bytes, NULL, 0), out, in);
	s->in = map(s, s->b.in);
	s->out = map(s, s->b.out);
}

static void unmap(struct side *s)
{
	ucp_mem_unmap(s->w.context, s->in);
	ucp_mem_unmap(s->w.context, s->out);
}

static void offer(struct side *s)
{
	size_t len, key_len;
	ucp_address_t *address = address_of(&s->w, &len);
	void *key;

	must("ucp_rkey_pack", ucp_rkey_pack(s->w.context, s->in, &key, &key_len));
	printf("at ");
	print_hex(address, len);
	print_hex(key, key_len);
	printf("%lu\n", (uintptr_t)s->b.in);
	fflush(stdout);
	ucp_rkey_buffer_release(key);
	ucp_worker_release_address(s->w.worker, address);
}

static void serve(struct side *s, const char *bytes)
{
	ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH};
	struct outcome o;
	bool wrong;

	make(s, bytes, NOTHING, OFFERED);
	offer(s);
	param.memh = s->out;
	complete(&s->w, "receive",
		 ucp_tag_recv_nbx(s->w.worker, s->b.out, s->b.len, TAG, -1ul, &param));
	flush(&s->w);
	o = outcome_of(&s->b);
	unmap(s);
	wrong = pattern_check(s->b.in, s->b.len, WRITTEN) >= 0 ||
		pattern_check(s->b.out, s->b.len, WRITTEN) >= 0;
	tell(&s->b, "offered", 0, o, wrong);
}

static ucp_rkey_h connect_to(struct side *s, const char *worker, const char *key)
{
	ucp_rkey_h rkey;

	connect_worker(&s->w, bytes_of(worker));
	must("ucp_ep_rkey_unpack", ucp_ep_rkey_unpack(s->w.ep, bytes_of(key), &rkey));
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
	complete(&s->w, "get", ucp_get_nbx(s->w.ep, s->b.in, s->b.len, base, key, &in));
	complete(&s->w, "put",
		 ucp_put_nbx(s->w.ep, s->b.out, s->b.len, base, key, &out));
	flush(&s->w);
	complete(&s->w, "send",
		 ucp_tag_send_nbx(s->w.ep, s->b.out, s->b.len, TAG, &out));
	flush(&s->w);
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
	open_worker(&s.w);
	if (argc == 2)
		serve(&s, argv[1]);
	else
		use(&s, argv + 1);
	return 0;
}
