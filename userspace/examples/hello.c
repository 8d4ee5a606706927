/* SPDX-License-Identifier: MIT */
/* Bring the beginning of a file into the memory of a GPU, and back again. */
#include <fcntl.h>
#include <stdio.h>
#include <sluice.h>

#define TRY(call) if (call) return printf("%s\n", sluice_last_error()->message), 1

int main(int argc, char **argv)
{
	sluice_context *ring;
	sluice_device *gpu;
	sluice_buffer *host, *vram;
	sluice_batch *copies;
	sluice_operation *op;
	uint64_t n;
	struct sluice_device_info info = {.size = sizeof(info)};

	TRY(sluice_context_open(NULL, &ring));
	TRY(sluice_device_open(ring, "0", &gpu) || sluice_device_get_info(gpu, &info));
	TRY(sluice_buffer_host(1 << 20, NULL, &host) ||
	    sluice_device_attach(gpu, host));
	TRY(sluice_device_vram(gpu, 1 << 20, &vram) || sluice_batch_create(2, &copies));

	struct sluice_slice here = {host, 0, SLUICE_TO_END}, there = {vram, 0, 1 << 20};
	TRY(sluice_context_read(ring, open(argv[argc > 1], O_RDONLY), &here, 0, &op) ||
	    sluice_operation_wait(op, SLUICE_NEVER, &n));
	sluice_operation_free(op);
	for (int back = 0; back < 2; back++) {
		TRY(sluice_batch_clear(copies) || sluice_batch_fault_in(copies, 1) ||
		    sluice_batch_copy(copies, back ? &here : &there,
				      back ? &there : &here) ||
		    sluice_device_submit(gpu, copies, &op) ||
		    sluice_operation_wait(op, SLUICE_NEVER, NULL));
		sluice_operation_free(op);
	}
	printf("%zu bytes went to %s and came back\n", (size_t)n, info.address);
	sluice_batch_free(copies);
	sluice_buffer_free(vram), sluice_buffer_free(host);
	sluice_device_close(gpu), sluice_context_close(ring);
}
