/* SPDX-License-Identifier: MIT */
#ifndef __AMDGPU_SDMA_BATCH_LIMITS_H__
#define __AMDGPU_SDMA_BATCH_LIMITS_H__

#include <linux/types.h>

struct amdgpu_device;
struct amdgpu_fpriv;
struct amdgpu_sdma_plan;
struct drm_amdgpu_info_sdma_batch;

/**
 * struct amdgpu_sdma_batch_limits - what bounds the time of batches on a device
 * @rate: minimum rate of an engine in megabytes a second
 * @max_bytes: bytes that one batch may move
 * @max_dwords: length of one batch's packets
 * @max_work: bytes, or time that counts as bytes, that a file may have in
 *	flight for one engine
 * @max_wait_ns: sum of the timeouts that the waits of one batch may have
 * @low_mhz: slowest clock of an engine
 * @high_mhz: fastest clock of an engine
 */
struct amdgpu_sdma_batch_limits {
	u64 max_bytes;
	u64 max_work;
	u64 max_wait_ns;
	u32 rate;
	u32 max_dwords;
	u32 low_mhz;
	u32 high_mhz;
};

void amdgpu_sdma_batch_limits_init(struct amdgpu_device *adev);
u64 amdgpu_sdma_batch_longest_wait(const struct amdgpu_sdma_batch_limits *l,
				   const struct amdgpu_sdma_plan *plan);
u32 amdgpu_sdma_batch_rate(u64 link, u32 engines);
u64 amdgpu_sdma_batch_work(const struct amdgpu_sdma_batch_limits *l,
			   const struct amdgpu_sdma_plan *plan, u32 share,
			   u64 packet_bytes);
u32 amdgpu_sdma_batch_host_engines(struct amdgpu_device *adev, u32 engines);
void amdgpu_sdma_batch_info(struct amdgpu_device *adev,
			    struct amdgpu_fpriv *fpriv,
			    struct drm_amdgpu_info_sdma_batch *info);

#endif
