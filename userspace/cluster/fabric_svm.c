// SPDX-License-Identifier: GPL-2.0
/*
 * fabric-svm BYTES [ADDRESS KEY BASE]: RMA of libfabric between buffers in the video memory
 * of two nodes' GPUs. Apart from the buffers it is plain libfabric.
 *
 * Without an address it offers a buffer, and prints "at ADDRESS KEY BASE" for it. With
 * these it reads that buffer into one of its own, overwrites it with another of its own,
 * and sends a message when all is done. Both print a line about the state of their buffers.
 */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "svm_buffers.h"

/* Seeds of the initial contents of the buffers */
enum { NOTHING, OFFERED, WRITTEN };

struct side {
	struct buffers b;
	struct fi_info *info;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
};

static void give_up(const char *what)
{
	fprintf(stderr, "fabric-svm: %s\n", what);
	exit(1);
}

static void must(const char *what, ssize_t err)
{
	if (!err)
		return;
	fprintf(stderr, "fabric-svm: %s: %s\n", what, fi_strerror(-err));
	exit(1);
}

static void open_endpoint(struct side *s)
{
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_CONTEXT,
				.wait_obj = FI_WAIT_UNSPEC};
	struct fi_info *hints = fi_allocinfo();
	struct fi_av_attr av = {};
	struct fid_fabric *fabric;

	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG | FI_RMA;
	hints->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	must("fi_getinfo",
	     fi_getinfo(FI_VERSION(1, 20), NULL, NULL, 0, hints, &s->info));
	fi_freeinfo(hints);
	must("fi_fabric", fi_fabric(s->info->fabric_attr, &fabric, NULL));
	must("fi_domain", fi_domain(fabric, s->info, &s->domain, NULL));
	must("fi_endpoint", fi_endpoint(s->domain, s->info, &s->ep, NULL));
	must("fi_av_open", fi_av_open(s->domain, &av, &s->av, NULL));
	must("fi_cq_open", fi_cq_open(s->domain, &cq, &s->cq, NULL));
	must("fi_ep_bind", fi_ep_bind(s->ep, &s->av->fid, 0));
	must("fi_ep_bind", fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV));
	must("fi_enable", fi_enable(s->ep));
	fprintf(stderr, "fabric-svm: provider %s\n", s->info->fabric_attr->prov_name);
}

static struct fid_mr *offer(struct side *s, void *at, size_t len)
{
	struct fid_mr *mr;

	must("fi_mr_reg", fi_mr_reg(s->domain, at, len,
				    FI_READ | FI_WRITE | FI_SEND | FI_RECV |
					    FI_REMOTE_READ | FI_REMOTE_WRITE,
				    0, 0, 0, &mr, NULL));
	return mr;
}

/* Until one operation has completed */
static void wait_for_one(struct side *s)
{
	struct fi_cq_err_entry failed = {};
	struct fi_cq_entry done;
	ssize_t n;

	while ((n = fi_cq_sread(s->cq, &done, 1, NULL, 1000)) == -FI_EAGAIN)
		;
	if (n == -FI_EAVAIL && fi_cq_readerr(s->cq, &failed, 0) == 1)
		must("an operation", -failed.err);
	if (n != 1)
		must("fi_cq_sread", n ? n : -EIO);
}

/* Start it as soon as there is room, and wait for its completion. */
#define COMPLETE(s, call) \
	do { \
		ssize_t err_; \
		while ((err_ = (call)) == -FI_EAGAIN) \
			fi_cq_read((s)->cq, NULL, 0); \
		must(#call, err_); \
		wait_for_one(s); \
	} while (0)

/* A page for messages, which does not concern the GPU */
static char *message(struct side *s, struct fid_mr **mr)
{
	char *at = svm_map(SVM_PAGE);

	if (!at)
		give_up("no memory");
	*mr = offer(s, at, SVM_PAGE);
	return at;
}

static void finish(struct buffers *b, const char *what, int side, uint32_t seed)
{
	struct outcome o = outcome_of(b);

	tell(b, what, side, o, pattern_check(b->in, b->len, seed) >= 0);
}

static void serve(struct side *s, const char *bytes)
{
	struct fid_mr *mr, *note_mr;
	unsigned char name[256];
	size_t i, len = sizeof(name);
	char *note;

	make_buffers(&s->b, strtoul(bytes, NULL, 0), NOTHING, OFFERED);
	mr = offer(s, s->b.in, s->b.len);
	note = message(s, &note_mr);
	must("fi_getname", fi_getname(&s->ep->fid, name, &len));
	printf("at ");
	for (i = 0; i < len; i++)
		printf("%02x", name[i]);
	printf(" %lu %lu\n", fi_mr_key(mr),
	       s->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)s->b.in
							       : 0ul);
	fflush(stdout);
	COMPLETE(s, fi_recv(s->ep, note, 1, fi_mr_desc(note_mr), FI_ADDR_UNSPEC, NULL));
	finish(&s->b, "offered", 0, WRITTEN);
}

static fi_addr_t address(struct side *s, const char *hex)
{
	unsigned char name[256];
	fi_addr_t to;
	size_t i;

	for (i = 0; i < sizeof(name) && sscanf(hex + 2 * i, "%2hhx", &name[i]) == 1;
	     i++)
		;
	if (fi_av_insert(s->av, name, 1, &to, 0, NULL) != 1)
		give_up("that is no address");
	return to;
}

static void use(struct side *s, char **args)
{
	uint64_t key = strtoull(args[2], NULL, 0), base = strtoull(args[3], NULL, 0);
	struct fid_mr *in, *out, *note_mr;
	fi_addr_t to = address(s, args[1]);
	char *note;

	make_buffers(&s->b, strtoul(args[0], NULL, 0), WRITTEN, NOTHING);
	in = offer(s, s->b.in, s->b.len);
	out = offer(s, s->b.out, s->b.len);
	note = message(s, &note_mr);
	COMPLETE(s, fi_read(s->ep, s->b.in, s->b.len, fi_mr_desc(in), to, base, key,
			    NULL));
	COMPLETE(s, fi_write(s->ep, s->b.out, s->b.len, fi_mr_desc(out), to, base, key,
			     NULL));
	COMPLETE(s, fi_send(s->ep, note, 1, fi_mr_desc(note_mr), to, NULL));
	finish(&s->b, "used", 1, OFFERED);
}

int main(int argc, char **argv)
{
	struct side s = {};

	if (argc != 2 && argc != 5)
		give_up("BYTES, or BYTES ADDRESS KEY BASE");
	open_gpu(&s.b);
	open_endpoint(&s);
	if (argc == 2)
		serve(&s, argv[1]);
	else
		use(&s, argv + 1);
	return 0;
}
