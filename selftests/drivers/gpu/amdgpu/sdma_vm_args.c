// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that SDMA batches may not name: not mapped, mapped without the access,
 * or not of a kind that engines can use. One test for each reason.
 */
#include <linux/pci_regs.h>

#include "sdma_args.h"

/*
 * Whether the GPU may send atomic operations over PCIe: AtomicOp Requester
 * Enable in Device Control 2. Negative if that cannot be read.
 */
static int sends_atomics(const char *gpu)
{
	uint8_t config[256], at;
	char path[128];
	int fd, i;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/config", gpu);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, config, sizeof(config)) != sizeof(config)) {
		close(fd);
		return -1;
	}
	close(fd);
	at = config[PCI_CAPABILITY_LIST];
	for (i = 0; at && i < 48; i++) {
		at &= ~3;
		if (config[at] == PCI_CAP_ID_EXP)
			return !!(config[at + PCI_EXP_DEVCTL2] &
				  PCI_EXP_DEVCTL2_ATOMIC_REQ);
		at = config[at + 1];
	}
	return -1;
}

/* An ADD over PCIe needs atomics, which not every system has. */
TEST_F(args, desc_add_system)
{
	int atomics = sends_atomics(self->gpu.name);
	struct buffer system;

	if (atomics < 0)
		SKIP(return, "the GPU's configuration cannot be read");
	ASSERT_EQ(0, buffer_map(&self->gpu, &system, 4096,
				AMDGPU_GEM_DOMAIN_GTT, VA + 6 * MIB));
	add_of(&self->d[1]);
	self->d[1].dst = system.va;
	self->d[1].value = 5;
	if (atomics) {
		EXPECT_EQ(0, batch_run(&self->gpu, &self->batch));
		EXPECT_EQ(5, *(uint64_t *)system.cpu);
	} else {
		EXPECT_REFUSED(-EOPNOTSUPP, 1);
		EXPECT_EQ(0, *(uint64_t *)system.cpu);
	}
}

TEST_F(args, desc_unmapped)
{
	EXPECT_DESC_REFUSED(-ENOENT, d->dst = UNMAPPED_VA);
}

/* Sparse: addresses without memory. */
TEST_F(args, desc_sparse)
{
	struct drm_amdgpu_gem_va va = {
		.operation = AMDGPU_VA_OP_MAP,
		.flags = AMDGPU_VM_PAGE_PRT,
		.va_address = UNMAPPED_VA,
		.map_size = SIZE,
	};

	ASSERT_EQ(0, gpu_ioctl(&self->gpu, DRM_IOCTL_AMDGPU_GEM_VA, &va));
	EXPECT_DESC_REFUSED(-ENOENT, d->dst = UNMAPPED_VA);
	EXPECT_DESC_REFUSED(-ENOENT,
			    copy_of(d);
			    d->dst = VA + 64 * KIB;
			    d->src = UNMAPPED_VA);
}

/*
 * Maps a buffer of another kind than plain video memory or GTT. Some kernels
 * and GPUs have none, or do not map it in a VM.
 */
static int map_kind(struct __test_metadata *_metadata,
		    struct _test_data_args *self, uint32_t domain,
		    uint64_t flags)
{
	union drm_amdgpu_gem_create arg = {
		.in.alignment = 4096,
		.in.domains = domain,
		.in.domain_flags = flags,
	};
	struct buffer b = { .size = SIZE };

	if (domain & ~(AMDGPU_GEM_DOMAIN_CPU | AMDGPU_GEM_DOMAIN_GTT |
			AMDGPU_GEM_DOMAIN_VRAM))
		b.size = 4096;
	arg.in.bo_size = b.size;
	/* in units, each of which has the addresses of a page */
	if (domain & (AMDGPU_GEM_DOMAIN_GWS | AMDGPU_GEM_DOMAIN_OA))
		arg.in.bo_size = 1;
	if (gpu_ioctl(&self->gpu, DRM_IOCTL_AMDGPU_GEM_CREATE, &arg))
		return -ENODEV;
	b.handle = arg.out.handle;
	return buffer_va(&self->gpu, &b, AMDGPU_VA_OP_MAP, UNMAPPED_VA,
			 GPU_RW);
}

/* Such memory is neither written nor read by an otherwise valid batch. */
static void refuse_kind(struct __test_metadata *_metadata,
			struct _test_data_args *self, uint32_t domain,
			uint64_t flags)
{
	struct drm_amdgpu_sdma_desc *d = &self->d[1];

	if (map_kind(_metadata, self, domain, flags))
		SKIP(return, "no such buffer");
	d->dst = UNMAPPED_VA;
	EXPECT_REFUSED(-EOPNOTSUPP, 1);
	copy_of(d);
	d->dst = VA + 64 * KIB;
	d->src = UNMAPPED_VA;
	EXPECT_REFUSED(-EOPNOTSUPP, 1);
	*d = recorded(fill_desc(VA + 64 * KIB, 4096, 1), UNMAPPED_VA);
	EXPECT_REFUSED(-EOPNOTSUPP, 1);
	/* nor by a prepared batch */
	self->batch.op = AMDGPU_SDMA_BATCH_PREPARE;
	self->batch.out_fences = 0;
	self->batch.num_out_fences = 0;
	EXPECT_EQ(-EOPNOTSUPP, batch_submit(&self->gpu, &self->batch));
	EXPECT_EQ(1, self->batch.error_index);
}

/* The GPU has no address for it: its page table entries are not valid. */
TEST_F(args, domain_cpu)
{
	refuse_kind(_metadata, self, AMDGPU_GEM_DOMAIN_CPU, 0);
}

TEST_F(args, domain_gds)
{
	refuse_kind(_metadata, self, AMDGPU_GEM_DOMAIN_GDS,
		    AMDGPU_GEM_CREATE_NO_CPU_ACCESS);
}

TEST_F(args, domain_gws)
{
	refuse_kind(_metadata, self, AMDGPU_GEM_DOMAIN_GWS,
		    AMDGPU_GEM_CREATE_NO_CPU_ACCESS);
}

TEST_F(args, domain_oa)
{
	refuse_kind(_metadata, self, AMDGPU_GEM_DOMAIN_OA,
		    AMDGPU_GEM_CREATE_NO_CPU_ACCESS);
}

TEST_F(args, domain_doorbell)
{
	refuse_kind(_metadata, self, AMDGPU_GEM_DOMAIN_DOORBELL, 0);
}

TEST_F(args, encrypted)
{
	refuse_kind(_metadata, self, AMDGPU_GEM_DOMAIN_VRAM,
		    AMDGPU_GEM_CREATE_ENCRYPTED);
}

/* The user takes care of its fences; its memory is like any other. */
TEST_F(args, explicit_sync)
{
	ASSERT_EQ(0, map_kind(_metadata, self, AMDGPU_GEM_DOMAIN_GTT,
			      AMDGPU_GEM_CREATE_EXPLICIT_SYNC));
	self->d[1].dst = UNMAPPED_VA;
	EXPECT_EQ(0, batch_run(&self->gpu, &self->batch));
}

#define PAGES		8
#define FROM_PAGES	(VA + 64 * MIB)
#define TO_PAGES	(VA + 128 * MIB)

/* Copies between pages that are mapped one by one, each with a lookup. */
static void copy_pages(struct drm_amdgpu_sdma_desc *d)
{
	*d = (struct drm_amdgpu_sdma_desc) {
		.op = AMDGPU_SDMA_OP_COPY,
		.flags = AMDGPU_SDMA_DESC_BARRIER,
		.src = FROM_PAGES + 4095,
		.dst = TO_PAGES + 4095,
		.size = (PAGES - 2) * 4096 + 2,
	};
}

/* The first descriptor over the limit is reported; one less is valid. */
TEST_F(args, batch_lookups)
{
	const uint32_t max = 524288 / (2 * PAGES);
	struct drm_amdgpu_sdma_desc *d = calloc(max + 1, sizeof(*d));
	struct buffer page;
	uint32_t i;

	ASSERT_NE(NULL, d);
	ASSERT_EQ(0, buffer_new(&self->gpu, &page, 4096,
				AMDGPU_GEM_DOMAIN_GTT));
	for (i = 0; i < PAGES; i++) {
		ASSERT_EQ(0, buffer_va(&self->gpu, &page, AMDGPU_VA_OP_MAP,
				       FROM_PAGES + i * 4096, GPU_RW));
		ASSERT_EQ(0, buffer_va(&self->gpu, &page, AMDGPU_VA_OP_MAP,
				       TO_PAGES + i * 4096, GPU_RW));
	}
	for (i = 0; i <= max; i++)
		copy_pages(&d[i]);
	self->batch = batch_of(&self->gpu, d, max + 1);
	EXPECT_REFUSED(-EMSGSIZE, max);
	self->batch = batch_of(&self->gpu, d, max);
	self->batch.op = AMDGPU_SDMA_BATCH_PREPARE;
	EXPECT_EQ(0, batch_submit(&self->gpu, &self->batch));
	free(d);
}

/* 16 MiB of packets, of swaps through other memory; one more is refused. */
TEST_F(args, packets)
{
	const uint32_t n = 65536;
	struct drm_amdgpu_sdma_desc *d = calloc(n, sizeof(*d));
	uint32_t i, most;

	ASSERT_NE(NULL, d);
	for (i = 0; i < n; i++) {
		d[i] = swap_desc(VA + 512 * KIB, VA + 513, 1);
		d[i].flags = AMDGPU_SDMA_DESC_BARRIER |
			     AMDGPU_SDMA_DESC_RECORD;
		d[i].record = VA + 64 * KIB;
	}
	self->batch = batch_of(&self->gpu, d, n);
	EXPECT_EQ(-EMSGSIZE, batch_submit(&self->gpu, &self->batch));
	EXPECT_EQ(AMDGPU_SDMA_ERROR_DESC, self->batch.error_array);
	most = self->batch.error_index;
	TH_LOG("%u descriptors fit", most);
	ASSERT_GT(n, most);
	EXPECT_LT(n / 4, most);
	/* 61 dwords and what a record takes */
	EXPECT_GE(16 * MIB, most * 61ULL * 4);
	self->batch = batch_of(&self->gpu, d, most + 1);
	EXPECT_REFUSED(-EMSGSIZE, most);
	self->batch = batch_of(&self->gpu, d, most);
	self->batch.op = AMDGPU_SDMA_BATCH_PREPARE;
	EXPECT_EQ(0, batch_submit(&self->gpu, &self->batch));
	free(d);
}

TEST_F(args, desc_null)
{
	EXPECT_DESC_REFUSED(-ENOENT, d->dst = 0);
}

TEST_F(args, desc_past_the_end)
{
	EXPECT_DESC_REFUSED(-ENOENT, d->dst = VA + SIZE - 4095);
}

TEST_F(args, desc_before_the_begin)
{
	EXPECT_DESC_REFUSED(-ENOENT, d->dst = VA - 1; d->size = 1);
}

TEST_F(args, desc_source_unmapped)
{
	EXPECT_DESC_REFUSED(-ENOENT, copy_of(d); d->src = UNMAPPED_VA);
}

TEST_F(args, desc_read_only)
{
	EXPECT_DESC_REFUSED(-EACCES, d->dst = READ_ONLY_VA + 512 * KIB);
}

TEST_F(args, desc_swap_read_only)
{
	EXPECT_DESC_REFUSED(-EACCES,
			    copy_of(d);
			    d->op = AMDGPU_SDMA_OP_SWAP;
			    d->src = READ_ONLY_VA);
}

TEST_F(args, desc_add_write_only)
{
	EXPECT_DESC_REFUSED(-EACCES, add_of(d); d->dst = WRITE_ONLY_VA);
}

TEST_F(args, desc_write_only)
{
	EXPECT_DESC_REFUSED(-EACCES, copy_of(d); d->src = WRITE_ONLY_VA);
}

/* Each destination of a broadcast is checked. */
static void spoil_each(struct __test_metadata *_metadata,
		       struct _test_data_args *self, uint64_t bad, int error)
{
	struct drm_amdgpu_sdma_desc *d = &self->d[1];
	unsigned int i, j;

	for (i = 0; i < self->gpu.info.max_broadcast - 1; i++) {
		broadcast_of(d);
		for (j = 0; j <= i; j++)
			d->dst_more[j] = VA + 600 * KIB + j * 8 * KIB;
		d->dst_more[i] = bad;
		EXPECT_REFUSED(error, 1);
	}
}

TEST_F(args, broadcast_unmapped)
{
	spoil_each(_metadata, self, UNMAPPED_VA, -ENOENT);
}

TEST_F(args, broadcast_past_the_end)
{
	spoil_each(_metadata, self, VA + SIZE - 4095, -ENOENT);
}

TEST_F(args, broadcast_read_only)
{
	spoil_each(_metadata, self, READ_ONLY_VA + 512 * KIB, -EACCES);
}

TEST_F(args, broadcast_wraps)
{
	spoil_each(_metadata, self, -4095ULL, -ERANGE);
}

/* What one descriptor may read, another may not write, and vice versa. */
TEST_F(args, read_then_written)
{
	struct drm_amdgpu_sdma_desc *d = self->d;

	copy_of(&d[0]);
	d[0].src = READ_ONLY_VA + 512 * KIB;
	d[1].dst = READ_ONLY_VA + 600 * KIB;
	EXPECT_REFUSED(-EACCES, 1);
	/* the same bytes, and in one descriptor */
	d[1] = behind(fill_desc(READ_ONLY_VA + 512 * KIB, 4096, 1));
	EXPECT_REFUSED(-EACCES, 1);
	d[1] = copy_desc(READ_ONLY_VA + 512 * KIB, READ_ONLY_VA + 600 * KIB,
			 4096);
	EXPECT_REFUSED(-EACCES, 1);
}

TEST_F(args, written_then_read)
{
	struct drm_amdgpu_sdma_desc *d = self->d;

	d[0].dst = WRITE_ONLY_VA + 512 * KIB;
	copy_of(&d[1]);
	d[1].src = WRITE_ONLY_VA + 600 * KIB;
	EXPECT_REFUSED(-EACCES, 1);
	d[1] = behind(copy_desc(WRITE_ONLY_VA + 512 * KIB, VA + 64 * KIB,
				4096));
	EXPECT_REFUSED(-EACCES, 1);
	d[1] = copy_desc(WRITE_ONLY_VA + 600 * KIB, WRITE_ONLY_VA + 700 * KIB,
			 4096);
	EXPECT_REFUSED(-EACCES, 1);
}

/* Each row is looked up separately. */
TEST_F(args, rect_read_only)
{
	EXPECT_DESC_REFUSED(-EACCES,
			    rect_of(d);
			    d->dst = READ_ONLY_VA + 512 * KIB);
	EXPECT_DESC_REFUSED(-EACCES,
			    rect_of(d);
			    d->src = WRITE_ONLY_VA + 512 * KIB);
	/* the first row in one mapping, the second in another */
	EXPECT_DESC_REFUSED(-EACCES,
			    rect_of(d);
			    d->rows = 2;
			    d->dst_pitch = READ_ONLY_VA - VA);
}

/* A valid wait, add and write-only fill: those above fail for one reason. */
TEST_F(args, good_others)
{
	struct drm_amdgpu_sdma_desc *d = self->d;

	wait_of(d);
	d++;
	add_of(d);
	d++;
	d->dst = WRITE_ONLY_VA;
	EXPECT_EQ(0, batch_run(&self->gpu, &self->batch));
	EXPECT_EQ(1, self->buffer.cpu[0]);
}

/* The driver keeps packets of batches just below the reserved addresses. */
TEST_F(args, drivers_memory)
{
	struct drm_amdgpu_info_device device;
	struct drm_amdgpu_info arg = {
		.return_pointer = (uintptr_t)&device,
		.return_size = sizeof(device),
		.query = AMDGPU_INFO_DEV_INFO,
	};
	uint64_t va;

	/* makes sure that there is such memory */
	ASSERT_TRUE(untouched(self));
	ASSERT_EQ(0, gpu_ioctl(&self->gpu, DRM_IOCTL_AMDGPU_INFO, &arg));
	va = device.high_va_max ? device.high_va_max :
				  device.virtual_address_max;
	self->d[1].dst = va;
	EXPECT_REFUSED(-EACCES, 1);
	EXPECT_EQ(-EINVAL, buffer_va(&self->gpu, &self->buffer,
				     AMDGPU_VA_OP_MAP, va, GPU_RW));
}

/* A buffer that is no longer mapped, where an access would fault. */
TEST_F(args, unmapped_between)
{
	EXPECT_EQ(0, batch_run(&self->gpu, &self->batch));
	memset(self->buffer.cpu, BYTE, SIZE);
	ASSERT_EQ(0, buffer_va(&self->gpu, &self->buffer, AMDGPU_VA_OP_UNMAP,
			       VA, 0));
	EXPECT_EQ(-ENOENT, batch_run(&self->gpu, &self->batch));
	EXPECT_EQ(0, self->batch.error_index);
	ASSERT_EQ(0, buffer_va(&self->gpu, &self->buffer, AMDGPU_VA_OP_MAP, VA,
			       GPU_RW));
	EXPECT_TRUE(untouched(self));
}

TEST_HARNESS_MAIN
