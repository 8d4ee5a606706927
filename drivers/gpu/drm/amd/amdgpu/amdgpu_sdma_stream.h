/* SPDX-License-Identifier: MIT */
#ifndef __AMDGPU_SDMA_STREAM_H__
#define __AMDGPU_SDMA_STREAM_H__

#include <linux/types.h>

#include "amdgpu_sdma_plan.h"

void amdgpu_sdma_stream_begin(struct amdgpu_sdma_stream *s);
bool amdgpu_sdma_stream_close_ib(struct amdgpu_sdma_stream *s);
bool amdgpu_sdma_stream_reserve(struct amdgpu_sdma_stream *s, u32 dw);
void amdgpu_sdma_stream_barrier(struct amdgpu_sdma_stream *s);
bool amdgpu_sdma_stream_wait(struct amdgpu_sdma_stream *s,
			     const struct drm_amdgpu_sdma_desc *d);
bool amdgpu_sdma_stream_record_begin(struct amdgpu_sdma_stream *s, u64 record);
bool amdgpu_sdma_stream_record_end(struct amdgpu_sdma_stream *s, u64 record);
bool amdgpu_sdma_stream_record_share(struct amdgpu_sdma_stream *s, u64 record);

#endif
