// SPDX-License-Identifier: MIT
// Soft RoCE of unpatched kernels claims to have paging on demand (ODP), but copies from
// and to the start of a page, whatever the offset in it. Transfers complete with
// success and wrong bytes. So it is tested once before it is trusted.
#pragma once

#include <cstdint>

#include <infiniband/verbs.h>

namespace sluice::detail {

enum class odp_verdict : uint8_t {
	untried, ///< the trial could not be made: no port, no address
	right,
	wrong, ///< a transfer arrived elsewhere, or as something else
};

/// Write from on-demand memory to on-demand memory of the same device. The verdict is
/// kept for the process.
odp_verdict try_odp(ibv_context *device);

/// Does the device belong to soft RoCE? Only soft RoCE tells the interface that it is
/// on.
bool is_soft_roce(const char *name);

} // namespace sluice::detail
