/* SPDX-License-Identifier: GPL-2.0 */
/* A process that talks to another one by plain UCP. */
#ifndef SLUICE_CLUSTER_UCX_WORKER_H
#define SLUICE_CLUSTER_UCX_WORKER_H

#include <ucp/api/ucp.h>

#include "svm_buffers.h"

#define TAG 7

struct worker {
	ucp_context_h context;
	ucp_worker_h worker;
	ucp_ep_h ep;
};

static void give_up(const char *what)
{
	fprintf(stderr, "ucx: %s\n", what);
	exit(1);
}

static void must(const char *what, ucs_status_t status)
{
	if (status == UCS_OK)
		return;
	fprintf(stderr, "ucx: %s: %s\n", what, ucs_status_string(status));
	exit(1);
}

static void open_worker(struct worker *w)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
			       .features = UCP_FEATURE_RMA | UCP_FEATURE_TAG};
	ucp_worker_params_t defaults = {};

	must("ucp_init", ucp_init(&params, NULL, &w->context));
	must("ucp_worker_create", ucp_worker_create(w->context, &defaults, &w->worker));
}

/* Until an operation has completed */
static void complete(struct worker *w, const char *what, ucs_status_ptr_t request)
{
	ucs_status_t status = UCS_PTR_STATUS(request);

	if (UCS_PTR_IS_PTR(request)) {
		while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS)
			ucp_worker_progress(w->worker);
		ucp_request_free(request);
	}
	must(what, status);
}

static void flush(struct worker *w)
{
	ucp_request_param_t none = {};

	complete(w, "flush", ucp_worker_flush_nbx(w->worker, &none));
}

static void connect_worker(struct worker *w, const void *address)
{
	ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
				  .address = address};

	must("ucp_ep_create", ucp_ep_create(w->worker, &params, &w->ep));
}

static ucp_address_t *address_of(struct worker *w, size_t *len)
{
	ucp_address_t *address;

	must("ucp_worker_get_address",
	     ucp_worker_get_address(w->worker, &address, len));
	return address;
}

static void print_hex(const void *bytes, size_t len)
{
	const unsigned char *at = bytes;

	while (len--)
		printf("%02x", *at++);
	putchar(' ');
}

/* The bytes for a word of hexadecimal digits */
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

#endif
