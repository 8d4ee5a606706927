// SPDX-License-Identifier: GPL-2.0
// libsluice beside ROCr in one process: it moves memory that ROCr has allocated, which it
// gets as a dma-buf.
#include "rocr.h"

#include <unistd.h>

#include <sluice.h>

#define SIZE	(3 * 1024 * 1024 + 20)

#define CHECK_CALL(call)						\
	do {								\
		int err_ = (call);					\
		CHECK(!err_, "%d: %s", err_, sluice_last_error()->message);	\
	} while (0)

struct ends {
	sluice_context *ring;
	sluice_device *gpu;
	sluice_buffer *host, *imported;
	uint64_t offset; /* of ROCr's memory in what was imported */
};

static int copy(const struct ends *e, bool to_gpu)
{
	struct sluice_slice host = { e->host, 0, SIZE };
	struct sluice_slice vram = { e->imported, e->offset, SIZE };
	sluice_operation *op;
	sluice_batch *batch;
	uint64_t bytes;

	CHECK_CALL(sluice_batch_create(1, &batch));
	CHECK_CALL(sluice_batch_copy(batch, to_gpu ? &vram : &host,
				     to_gpu ? &host : &vram));
	CHECK_CALL(sluice_device_submit(e->gpu, batch, &op));
	CHECK_CALL(sluice_operation_wait(op, SLUICE_NEVER, &bytes));
	CHECK(bytes == SIZE, "%llu bytes", (unsigned long long)bytes);
	sluice_operation_free(op);
	sluice_batch_free(batch);
	return 0;
}

/* ROCr's address and the library's show the same bytes. */
static int both_ways(const struct ends *e, uint8_t *vram)
{
	void *host;

	CHECK_CALL(sluice_buffer_map(e->host, &host));
	seed_fill(host, SIZE, 1);
	if (copy(e, true))
		return 1;
	CHECK_SEED(vram, SIZE, 1);
	seed_fill(vram, SIZE, 2);
	if (copy(e, false))
		return 1;
	CHECK_SEED(host, SIZE, 2);
	return 0;
}

static int imported_on(unsigned int gpu)
{
	uint8_t *vram = rocr_new(rocr.gpu[gpu].vram, SIZE);
	struct ends e = { 0 };
	int dmabuf, ret;

	CHECK(vram, "no memory");
	CHECK_HSA(
		hsa_amd_portable_export_dmabuf(vram, SIZE, &dmabuf, &e.offset));
	CHECK_CALL(sluice_context_open(NULL, &e.ring));
	CHECK_CALL(sluice_device_open(e.ring, rocr.gpu[gpu].pci, &e.gpu));
	CHECK_CALL(sluice_device_import(e.gpu, dmabuf, &e.imported));
	close(dmabuf);
	CHECK_CALL(sluice_buffer_host(SIZE, NULL, &e.host));
	CHECK_CALL(sluice_device_attach(e.gpu, e.host));
	ret = both_ways(&e, vram);
	sluice_buffer_free(e.host);
	sluice_buffer_free(e.imported);
	sluice_device_close(e.gpu);
	sluice_context_close(e.ring);
	hsa_amd_memory_pool_free(vram);
	return ret;
}

static int library_import(void)
{
	for (unsigned int gpu = 0; gpu < rocr.gpus; gpu++)
		if (imported_on(gpu))
			return 1;
	return 0;
}

const struct test library_tests[] = {
	{ "library.import", library_import },
	{ NULL, NULL },
};
