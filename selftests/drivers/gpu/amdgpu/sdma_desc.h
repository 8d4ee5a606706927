/* SPDX-License-Identifier: GPL-2.0 */
/* Random data and descriptors, for tests of SDMA batches. */
#ifndef _SELFTEST_SDMA_DESC_H
#define _SELFTEST_SDMA_DESC_H

#include "sdma_batch.h"

static inline unsigned int env(const char *name, unsigned int otherwise)
{
	const char *value = getenv(name);

	return value ? strtoul(value, NULL, 0) : otherwise;
}

static inline unsigned int next_random(unsigned int *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

static inline void randomize(void *p, size_t size, unsigned int *seed)
{
	uint32_t *word = p;
	size_t i;

	for (i = 0; i < size / 4; i++)
		word[i] = next_random(seed) << 8 ^ next_random(seed);
}

static inline bool all_are(const uint8_t *p, size_t size, uint8_t value)
{
	while (size && *p == value)
		p++, size--;
	return !size;
}

static inline struct drm_amdgpu_sdma_desc
copy_desc(uint64_t src, uint64_t dst, uint64_t size)
{
	return (struct drm_amdgpu_sdma_desc) {
		.op = AMDGPU_SDMA_OP_COPY,
		.src = src,
		.dst = dst,
		.size = size,
	};
}

static inline struct drm_amdgpu_sdma_desc
swap_desc(uint64_t src, uint64_t dst, uint64_t size)
{
	return (struct drm_amdgpu_sdma_desc) {
		.op = AMDGPU_SDMA_OP_SWAP,
		.src = src,
		.dst = dst,
		.size = size,
	};
}

static inline struct drm_amdgpu_sdma_desc
fill_desc(uint64_t dst, uint64_t size, uint32_t value)
{
	return (struct drm_amdgpu_sdma_desc) {
		.op = AMDGPU_SDMA_OP_FILL,
		.dst = dst,
		.size = size,
		.value = value,
	};
}

static inline struct drm_amdgpu_sdma_desc
write_desc(uint64_t dst, uint64_t value)
{
	return (struct drm_amdgpu_sdma_desc) {
		.op = AMDGPU_SDMA_OP_WRITE,
		.dst = dst,
		.value = value,
	};
}

static inline struct drm_amdgpu_sdma_desc add_desc(uint64_t dst, uint64_t value)
{
	return (struct drm_amdgpu_sdma_desc) {
		.op = AMDGPU_SDMA_OP_ADD,
		.dst = dst,
		.value = value,
	};
}

static inline struct drm_amdgpu_sdma_desc
wait_desc(uint64_t src, uint32_t compare, uint32_t value, uint64_t timeout_ns)
{
	return (struct drm_amdgpu_sdma_desc) {
		.op = AMDGPU_SDMA_OP_WAIT,
		.src = src,
		.compare = compare,
		.value = value,
		.mask = ~0u,
		.timeout_ns = timeout_ns,
	};
}

static inline struct drm_amdgpu_sdma_desc
wait_eq(uint64_t src, uint32_t value, uint64_t timeout_ns)
{
	return wait_desc(src, AMDGPU_SDMA_COMPARE_EQ, value, timeout_ns);
}

static inline struct drm_amdgpu_sdma_desc
wait_ge(uint64_t src, uint32_t value, uint64_t timeout_ns)
{
	return wait_desc(src, AMDGPU_SDMA_COMPARE_GE, value, timeout_ns);
}

/* The descriptor, with a record. */
static inline struct drm_amdgpu_sdma_desc
recorded(struct drm_amdgpu_sdma_desc d, uint64_t record)
{
	d.flags |= AMDGPU_SDMA_DESC_RECORD;
	d.record = record;
	return d;
}

/* The descriptor, ordered after all before it. */
static inline struct drm_amdgpu_sdma_desc behind(struct drm_amdgpu_sdma_desc d)
{
	d.flags |= AMDGPU_SDMA_DESC_BARRIER;
	return d;
}

#endif
