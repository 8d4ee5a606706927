/* SPDX-License-Identifier: MIT */
#ifndef __AMDGPU_SDMA_URING_H__
#define __AMDGPU_SDMA_URING_H__

struct io_uring_cmd;

int amdgpu_sdma_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags);

#endif
