// SPDX-License-Identifier: GPL-2.0
/*
 * What DRM_IOCTL_AMDGPU_SDMA_BATCH refuses: one test for each reason. Each
 * checks the errno, the descriptor that is said to be at fault, and that
 * nothing of the batch ran.
 */
#include <linux/pci_regs.h>

#include "../../../kselftest_harness.h"
#include "sdma_batch.h"

#define VA		(1024 * MIB)
#define READ_ONLY_VA	(VA + 2 * MIB)
#define WRITE_ONLY_VA	(VA + 4 * MIB)
#define UNMAPPED_VA	(VA + 8 * MIB)
#define SIZE		MIB
#define BYTE		0x5a

#define NONE		AMDGPU_SDMA_NO_INDEX

FIXTURE(args)
{
	struct gpu gpu;
	struct buffer buffer;
	struct drm_amdgpu_sdma_desc d[3];
	struct drm_amdgpu_sdma_batch batch;
};

/* A batch of three good descriptors, of which tests spoil something. */
FIXTURE_SETUP(args)
{
	int i;

	if (gpu_open(&self->gpu, 0))
		SKIP(return, "no GPU with SDMA batches");
	ASSERT_EQ(0, buffer_map(&self->gpu, &self->buffer, SIZE,
				AMDGPU_GEM_DOMAIN_VRAM, VA));
	ASSERT_EQ(0, buffer_va(&self->gpu, &self->buffer, AMDGPU_VA_OP_MAP,
			       READ_ONLY_VA, AMDGPU_VM_PAGE_READABLE));
	ASSERT_EQ(0, buffer_va(&self->gpu, &self->buffer, AMDGPU_VA_OP_MAP,
			       WRITE_ONLY_VA, AMDGPU_VM_PAGE_WRITEABLE));
	memset(self->buffer.cpu, BYTE, SIZE);
	memset(self->d, 0, sizeof(self->d));
	for (i = 0; i < 3; i++) {
		self->d[i].op = AMDGPU_SDMA_OP_FILL;
		self->d[i].dst = VA + i * 64 * KIB;
		self->d[i].size = 4096;
		self->d[i].value = 0x01010101;
	}
	self->batch = batch_of(&self->gpu, self->d, 3);
}

FIXTURE_TEARDOWN(args)
{
	if (self->gpu.fd >= 0)
		close(self->gpu.fd);
}

static bool untouched(struct _test_data_args *self)
{
	size_t i;

	/* What ran by mistake has ended when a good batch has. */
	struct drm_amdgpu_sdma_desc d = {
		.op = AMDGPU_SDMA_OP_FILL, .dst = VA, .size = 1, .value = BYTE,
	};
	struct drm_amdgpu_sdma_batch good = batch_of(&self->gpu, &d, 1);

	if (batch_run(&self->gpu, &good))
		return false;
	for (i = 0; i < SIZE; i++)
		if (self->buffer.cpu[i] != BYTE)
			return false;
	return true;
}

#define EXPECT_REFUSED(error, index)					\
	do {								\
		EXPECT_EQ(error, batch_run(&self->gpu, &self->batch));	\
		EXPECT_EQ(index, self->batch.error_index);		\
		EXPECT_EQ(0, self->batch.engines_used);			\
		EXPECT_TRUE(untouched(self));				\
	} while (0)

/* The batch that all tests spoil is good. */
TEST_F(args, good)
{
	EXPECT_EQ(0, batch_run(&self->gpu, &self->batch));
	EXPECT_EQ(NONE, self->batch.error_index);
	EXPECT_EQ(1, self->buffer.cpu[2 * 64 * KIB + 4095]);
}

/* Spoils one member of the call. */
#define EXPECT_BATCH_REFUSED(error, spoil)				\
	do {								\
		self->batch.spoil;					\
		EXPECT_REFUSED(error, NONE);				\
	} while (0)

TEST_F(args, batch_flags)
{
	EXPECT_BATCH_REFUSED(-EINVAL, flags = 1u << 31);
}

TEST_F(args, batch_handle)
{
	EXPECT_BATCH_REFUSED(-EINVAL, handle = 1);
}

TEST_F(args, batch_reserved_first)
{
	EXPECT_BATCH_REFUSED(-EINVAL, reserved[0] = 1);
}

TEST_F(args, batch_reserved_last)
{
	EXPECT_BATCH_REFUSED(-EINVAL, reserved[3] = 1);
}

TEST_F(args, batch_placement)
{
	EXPECT_BATCH_REFUSED(-EINVAL,
			     placement = AMDGPU_SDMA_PLACE_FAN_OUT + 1);
}

TEST_F(args, batch_context)
{
	EXPECT_BATCH_REFUSED(-EINVAL, ctx_id = 0xdead);
}

TEST_F(args, batch_no_descs)
{
	EXPECT_BATCH_REFUSED(-EINVAL, num_descs = 0);
}

TEST_F(args, batch_many_descs)
{
	EXPECT_BATCH_REFUSED(-E2BIG, num_descs = 65537);
}

TEST_F(args, batch_most_descs)
{
	EXPECT_BATCH_REFUSED(-E2BIG, num_descs = ~0u);
}

TEST_F(args, batch_null_descs)
{
	EXPECT_BATCH_REFUSED(-EFAULT, descs = 0);
}

TEST_F(args, batch_kernel_descs)
{
	EXPECT_BATCH_REFUSED(-EFAULT, descs = ~0xfffUL);
}

/*
 * A part of the second descriptor is not there. Those of the kernel's own size
 * are read together, others one by one: then it is known which one it was.
 */
static void cut_descs(struct __test_metadata *_metadata,
		      struct _test_data_args *self, size_t stride, size_t there)
{
	uint8_t *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *at = p + 4096 - stride - there;

	ASSERT_NE(MAP_FAILED, p);
	memcpy(at, self->d, sizeof(self->d[0]));
	memcpy(at + stride, &self->d[1], there);
	ASSERT_EQ(0, munmap(p + 4096, 4096));
	self->batch.descs = (uintptr_t)at;
	self->batch.num_descs = 2;
	self->batch.desc_stride = stride;
}

TEST_F(args, batch_descs_cut)
{
	cut_descs(_metadata, self, sizeof(self->d[0]), 64);
	EXPECT_REFUSED(-EFAULT, NONE);
}

TEST_F(args, batch_short_descs_cut)
{
	/* what is shorter has no value: a copy */
	self->d[0].op = AMDGPU_SDMA_OP_COPY;
	self->d[0].src = VA + 512 * KIB;
	cut_descs(_metadata, self, AMDGPU_SDMA_DESC_SIZE_MIN, 16);
	EXPECT_REFUSED(-EFAULT, 1);
}

TEST_F(args, batch_long_descs_cut)
{
	cut_descs(_metadata, self, sizeof(self->d[0]) + 8, sizeof(self->d[0]));
	EXPECT_REFUSED(-EFAULT, 1);
}

TEST_F(args, batch_stride_short)
{
	EXPECT_BATCH_REFUSED(-EINVAL,
			     desc_stride = AMDGPU_SDMA_DESC_SIZE_MIN - 8);
}

TEST_F(args, batch_stride_odd)
{
	EXPECT_BATCH_REFUSED(-EINVAL, desc_stride = 97);
}

TEST_F(args, batch_stride_zero)
{
	EXPECT_BATCH_REFUSED(-EINVAL, desc_stride = 0);
}

TEST_F(args, batch_stride_huge)
{
	EXPECT_BATCH_REFUSED(-EINVAL, desc_stride = 8192);
}

TEST_F(args, batch_in_fences)
{
	EXPECT_BATCH_REFUSED(-E2BIG, num_in_fences = 65);
}

TEST_F(args, batch_in_fences_null)
{
	EXPECT_BATCH_REFUSED(-EFAULT, num_in_fences = 1);
}

TEST_F(args, batch_engine)
{
	self->batch.engine_mask = ~self->gpu.info.engine_mask;
	EXPECT_REFUSED(-EINVAL, NONE);
}

/* The helper submits with out-fences of its own: not here. */
TEST_F(args, batch_out_fences)
{
	struct drm_amdgpu_sdma_fence out = { .handle = 0xdead };

	self->batch.num_out_fences = 65;
	EXPECT_EQ(-E2BIG, batch_submit(&self->gpu, &self->batch));
	self->batch.num_out_fences = 1;
	EXPECT_EQ(-EFAULT, batch_submit(&self->gpu, &self->batch));
	self->batch.out_fences = (uintptr_t)&out;
	EXPECT_EQ(-ENOENT, batch_submit(&self->gpu, &self->batch));
	ASSERT_EQ(0, syncobj_new(&self->gpu, &out.handle));
	out.pad = 1;
	EXPECT_EQ(-EINVAL, batch_submit(&self->gpu, &self->batch));
	EXPECT_TRUE(untouched(self));
}

TEST_F(args, batch_in_fence)
{
	struct drm_amdgpu_sdma_fence in = { .handle = 0xdead };

	self->batch.in_fences = (uintptr_t)&in;
	self->batch.num_in_fences = 1;
	EXPECT_REFUSED(-ENOENT, NONE);
	in.pad = 1;
	EXPECT_REFUSED(-EINVAL, NONE);
}

/*
 * The DRM core takes shorter and longer arguments: what is missing is zero,
 * what is more is not looked at. A call cut behind its pointer has no
 * descriptors; one cut before the out-fences is complete.
 */
TEST_F(args, length)
{
	const size_t full = sizeof(self->batch);
	struct {
		struct drm_amdgpu_sdma_batch batch;
		uint64_t more[4];
	} longer = { .batch = self->batch, .more = { 1, 2, 3, 4 } };
	size_t size;

	for (size = 8; size <= full + 32; size += 8) {
		unsigned long cmd = _IOC(_IOC_READ | _IOC_WRITE,
					 DRM_IOCTL_BASE, DRM_COMMAND_BASE +
					 DRM_AMDGPU_SDMA_BATCH, size);
		int want = size < offsetof(struct drm_amdgpu_sdma_batch,
					   in_fences) ? -EINVAL : 0;

		longer.batch = self->batch;
		EXPECT_EQ(want, gpu_ioctl(&self->gpu, cmd, &longer))
			TH_LOG("size %zu", size);
	}
}

static void copy_of(struct drm_amdgpu_sdma_desc *d)
{
	d->op = AMDGPU_SDMA_OP_COPY;
	d->src = VA + 512 * KIB;
	d->value = 0;
}

static void wait_of(struct drm_amdgpu_sdma_desc *d)
{
	*d = (struct drm_amdgpu_sdma_desc) {
		.op = AMDGPU_SDMA_OP_WAIT, .src = VA + 512 * KIB,
		.value = BYTE * 0x01010101u, .mask = ~0u, .polls = 9,
	};
}

static void add_of(struct drm_amdgpu_sdma_desc *d)
{
	*d = (struct drm_amdgpu_sdma_desc) {
		.op = AMDGPU_SDMA_OP_ADD, .dst = VA + 512 * KIB,
	};
}

/* Spoils the second descriptor. */
#define EXPECT_DESC_REFUSED(error, spoil)				\
	do {								\
		struct drm_amdgpu_sdma_desc *d = &self->d[1];		\
									\
		spoil;							\
		EXPECT_REFUSED(error, 1);				\
	} while (0)

TEST_F(args, desc_op)
{
	EXPECT_DESC_REFUSED(-EINVAL, d->op = AMDGPU_SDMA_OP_ADD + 1);
}

TEST_F(args, desc_op_huge)
{
	EXPECT_DESC_REFUSED(-EINVAL, d->op = ~0u);
}

TEST_F(args, desc_flags)
{
	EXPECT_DESC_REFUSED(-EINVAL, d->flags = 4);
}

TEST_F(args, desc_pad)
{
	EXPECT_DESC_REFUSED(-EINVAL, d->pad = 1);
}

TEST_F(args, desc_reserved)
{
	EXPECT_DESC_REFUSED(-EINVAL, d->reserved = 1);
}

TEST_F(args, desc_size_zero)
{
	EXPECT_DESC_REFUSED(-EINVAL, d->size = 0);
}

TEST_F(args, desc_size_huge)
{
	EXPECT_DESC_REFUSED(-E2BIG, d->size = (1ULL << 40) + 1);
}

TEST_F(args, desc_size_total)
{
	EXPECT_DESC_REFUSED(-E2BIG,
			    self->d[0].size = self->gpu.info.max_bytes / 2;
			    d->size = self->gpu.info.max_bytes / 2 + 1);
}

TEST_F(args, desc_size_wraps)
{
	EXPECT_DESC_REFUSED(-ERANGE, d->dst = -4096ULL; d->size = 4097);
}

TEST_F(args, desc_canonical)
{
	EXPECT_DESC_REFUSED(-ERANGE, d->dst = 1ULL << 50);
}

TEST_F(args, desc_into_hole)
{
	EXPECT_DESC_REFUSED(-ERANGE, d->dst = (1ULL << 47) - 1; d->size = 2);
}

TEST_F(args, desc_unused_src)
{
	EXPECT_DESC_REFUSED(-EINVAL, d->src = VA);
}

TEST_F(args, desc_unused_dst)
{
	EXPECT_DESC_REFUSED(-EINVAL, wait_of(d); d->dst = VA);
}

TEST_F(args, desc_unused_size)
{
	EXPECT_DESC_REFUSED(-EINVAL, add_of(d); d->size = 8);
}

TEST_F(args, desc_unused_value)
{
	EXPECT_DESC_REFUSED(-EINVAL, copy_of(d); d->value = 1);
}

TEST_F(args, desc_unused_more)
{
	EXPECT_DESC_REFUSED(-EINVAL, d->dst_more[2] = VA);
}

TEST_F(args, desc_unused_mask)
{
	EXPECT_DESC_REFUSED(-EINVAL, d->mask = 1);
}

TEST_F(args, desc_unused_compare)
{
	EXPECT_DESC_REFUSED(-EINVAL, d->compare = 1);
}

TEST_F(args, desc_unused_polls)
{
	EXPECT_DESC_REFUSED(-EINVAL, d->polls = 1);
}

TEST_F(args, desc_unused_record)
{
	EXPECT_DESC_REFUSED(-EINVAL, d->record = VA + 512 * KIB);
}

TEST_F(args, desc_record_unaligned)
{
	EXPECT_DESC_REFUSED(-EINVAL,
			    d->flags = AMDGPU_SDMA_DESC_RECORD;
			    d->record = VA + 512 * KIB + 8);
}

TEST_F(args, desc_record_read_only)
{
	EXPECT_DESC_REFUSED(-EACCES,
			    d->flags = AMDGPU_SDMA_DESC_RECORD;
			    d->record = READ_ONLY_VA + 512 * KIB);
}

TEST_F(args, desc_fill_pattern)
{
	EXPECT_DESC_REFUSED(-EINVAL, d->value = 1ULL << 32);
}

TEST_F(args, desc_broadcast_one)
{
	EXPECT_DESC_REFUSED(-EINVAL,
			    copy_of(d);
			    d->op = AMDGPU_SDMA_OP_BROADCAST);
}

TEST_F(args, desc_broadcast_gap)
{
	EXPECT_DESC_REFUSED(-EINVAL,
			    copy_of(d);
			    d->op = AMDGPU_SDMA_OP_BROADCAST;
			    d->dst_more[0] = VA + 600 * KIB;
			    d->dst_more[2] = VA + 700 * KIB);
}

TEST_F(args, desc_wait_compare)
{
	EXPECT_DESC_REFUSED(-EINVAL,
			    wait_of(d);
			    d->compare = AMDGPU_SDMA_COMPARE_LE + 1);
}

TEST_F(args, desc_wait_no_polls)
{
	EXPECT_DESC_REFUSED(-EINVAL, wait_of(d); d->polls = 0);
}

TEST_F(args, desc_wait_for_ever)
{
	EXPECT_DESC_REFUSED(-EINVAL, wait_of(d); d->polls = 0xfff);
}

TEST_F(args, desc_wait_no_mask)
{
	EXPECT_DESC_REFUSED(-EINVAL, wait_of(d); d->mask = 0);
}

TEST_F(args, desc_wait_value)
{
	EXPECT_DESC_REFUSED(-EINVAL, wait_of(d); d->value = 1ULL << 32);
}

TEST_F(args, desc_wait_value_off_mask)
{
	EXPECT_DESC_REFUSED(-EINVAL, wait_of(d); d->mask = 0xff);
}

TEST_F(args, desc_wait_unaligned)
{
	EXPECT_DESC_REFUSED(-EINVAL, wait_of(d); d->src += 2);
}

TEST_F(args, desc_wait_polls_together)
{
	EXPECT_DESC_REFUSED(-E2BIG,
			    wait_of(d);
			    d->polls = 4000;
			    self->d[0] = *d);
}

TEST_F(args, desc_add_unaligned)
{
	EXPECT_DESC_REFUSED(-EINVAL, add_of(d); d->dst += 4);
}

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

/* Over PCIe it takes atomics, which not every system has. */
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

TEST_F(args, desc_write_unaligned)
{
	EXPECT_DESC_REFUSED(-EINVAL,
			    add_of(d);
			    d->op = AMDGPU_SDMA_OP_WRITE;
			    d->dst += 4);
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

/* The process's own pages, which the kernel may move. */
TEST_F(args, desc_userptr)
{
	struct drm_amdgpu_gem_userptr arg = {
		.size = SIZE,
		.flags = AMDGPU_GEM_USERPTR_ANONONLY |
			 AMDGPU_GEM_USERPTR_REGISTER,
	};
	struct buffer user = { .size = SIZE };
	uint8_t *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	ASSERT_NE(MAP_FAILED, p);
	arg.addr = (uintptr_t)p;
	ASSERT_EQ(0, gpu_ioctl(&self->gpu, DRM_IOCTL_AMDGPU_GEM_USERPTR, &arg));
	user.handle = arg.handle;
	ASSERT_EQ(0, buffer_va(&self->gpu, &user, AMDGPU_VA_OP_MAP, UNMAPPED_VA,
			       GPU_RW));
	EXPECT_DESC_REFUSED(-EOPNOTSUPP, d->dst = UNMAPPED_VA);
	EXPECT_EQ(0, p[0]);
}

#define PAGES		8
#define FROM_PAGES	(VA + 64 * MIB)
#define TO_PAGES	(VA + 128 * MIB)

/* Copies from pages to pages that are mapped one by one: so many lookups. */
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

/* The descriptor that is one too many is named; one less is a good batch. */
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
	EXPECT_REFUSED(-E2BIG, max);
	self->batch = batch_of(&self->gpu, d, max);
	self->batch.flags = AMDGPU_SDMA_BATCH_PREPARE;
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

/* A good wait, add and write-only fill: the ones above fail for one reason. */
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

/* Where the driver keeps the packets of batches: just below the reserved. */
TEST_F(args, drivers_memory)
{
	struct drm_amdgpu_info_device device;
	struct drm_amdgpu_info arg = {
		.return_pointer = (uintptr_t)&device,
		.return_size = sizeof(device),
		.query = AMDGPU_INFO_DEV_INFO,
	};
	uint64_t va;

	/* so that there is such memory */
	ASSERT_TRUE(untouched(self));
	ASSERT_EQ(0, gpu_ioctl(&self->gpu, DRM_IOCTL_AMDGPU_INFO, &arg));
	va = device.high_va_max ? device.high_va_max :
				  device.virtual_address_max;
	self->d[1].dst = va;
	EXPECT_REFUSED(-EACCES, 1);
	EXPECT_EQ(-EINVAL, buffer_va(&self->gpu, &self->buffer,
				     AMDGPU_VA_OP_MAP, va, GPU_RW));
}

#define EXPECT_OVERLAP(first, second)					\
	do {								\
		EXPECT_REFUSED(-EEXIST, second);			\
		EXPECT_EQ(first, self->batch.error_index2);		\
	} while (0)

TEST_F(args, overlap_writes)
{
	self->d[2].dst = self->d[0].dst + 4095;
	EXPECT_OVERLAP(0, 2);
}

TEST_F(args, overlap_read_and_write)
{
	struct drm_amdgpu_sdma_desc *d = &self->d[2];

	copy_of(d);
	d->src = self->d[1].dst - 4095;
	EXPECT_OVERLAP(1, 2);
}

TEST_F(args, overlap_itself)
{
	struct drm_amdgpu_sdma_desc *d = &self->d[1];

	copy_of(d);
	d->src = d->dst + 1;
	EXPECT_OVERLAP(1, 1);
}

/* Reads may overlap, and what a barrier separates. */
TEST_F(args, no_overlap)
{
	struct drm_amdgpu_sdma_desc *d = &self->d[1];

	copy_of(d);
	d = &self->d[2];
	copy_of(d);
	EXPECT_EQ(0, batch_run(&self->gpu, &self->batch));
	d->dst = self->d[0].dst;
	d->flags = AMDGPU_SDMA_DESC_BARRIER;
	EXPECT_EQ(0, batch_run(&self->gpu, &self->batch));
}

TEST_F(args, fan_out_with_order)
{
	self->batch.placement = AMDGPU_SDMA_PLACE_FAN_OUT;
	self->d[2].flags = AMDGPU_SDMA_DESC_BARRIER;
	EXPECT_REFUSED(-EINVAL, 2);
}

/* Each engine would poll for itself. */
TEST_F(args, fan_out_with_wait)
{
	self->batch.placement = AMDGPU_SDMA_PLACE_FAN_OUT;
	wait_of(&self->d[0]);
	EXPECT_REFUSED(-EINVAL, 0);
}

/* What a page fault would find: a buffer that is no longer mapped. */
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
