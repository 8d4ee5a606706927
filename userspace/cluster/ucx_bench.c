// SPDX-License-Identifier: GPL-2.0
/*
 * ucx-bench ROUNDS [WORKER]: the time of tagged UCP messages between buffers in the host,
 * and in the video memory of two nodes' GPUs. Without a worker it prints its own address,
 * "at WORKER", and waits for the other side. rounds.h describes the output.
 */
#include "rounds.h"
#include "ucx_worker.h"

struct engine {
	struct worker w;
	ucs_status_ptr_t request[WINDOW];
	int started;
};

static void start_send(struct engine *e, void *at, size_t len)
{
	ucp_request_param_t none = {};

	e->request[e->started++] = ucp_tag_send_nbx(e->w.ep, at, len, TAG, &none);
}

static void start_receive(struct engine *e, void *at, size_t len)
{
	ucp_request_param_t none = {};

	e->request[e->started++] =
		ucp_tag_recv_nbx(e->w.worker, at, len, TAG, -1ul, &none);
}

static bool under_way(ucs_status_ptr_t request)
{
	return UCS_PTR_IS_PTR(request) &&
	       ucp_request_check_status(request) == UCS_INPROGRESS;
}

static void finish(struct engine *e)
{
	for (int i = 0; i < e->started; i++) {
		while (under_way(e->request[i]))
			if (!ucp_worker_progress(e->w.worker))
				nap();
		complete(&e->w, "a message", e->request[i]);
	}
	e->started = 0;
}

static void meet(struct engine *e)
{
	start_send(e, NULL, 0);
	start_receive(e, NULL, 0);
	finish(e);
}

/* Rank 1: the first message tells who rank 0 is. */
static void wait_for_other(struct engine *e)
{
	static char address[4096];
	size_t len;
	ucp_address_t *own = address_of(&e->w, &len);

	printf("at ");
	print_hex(own, len);
	end_line();
	ucp_worker_release_address(e->w.worker, own);
	start_receive(e, address, sizeof(address));
	finish(e);
	connect_worker(&e->w, address);
}

static void connect_to(struct engine *e, const char *worker)
{
	size_t len;
	ucp_address_t *own = address_of(&e->w, &len);

	connect_worker(&e->w, bytes_of(worker));
	start_send(e, own, len);
	finish(e);
	ucp_worker_release_address(e->w.worker, own);
}

int main(int argc, char **argv)
{
	struct engine e = {};
	struct bench x = {.rank = argc == 2};

	if (argc != 2 && argc != 3)
		give_up("ROUNDS, or ROUNDS WORKER");
	begin_bench(&x, &e, argv[1]);
	open_worker(&e.w);
	if (x.rank == 1)
		wait_for_other(&e);
	else
		connect_to(&e, argv[2]);
	measure_messages(&x);
	flush(&e.w);
	return 0;
}
