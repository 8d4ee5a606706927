// SPDX-License-Identifier: MIT
// Soft RoCE of unpatched kernels says that it has paging on demand (ODP), and then
// copies from and to the start of a page, whatever the offset in it. Transfers
// complete with success and wrong bytes. So it is tried once before it is trusted.
#pragma once

#include <cstdint>

#include <infiniband/verbs.h>

namespace sluice::detail {

enum class odp_verdict : uint8_t {
	untried, ///< the trial could not be made: no port, no address
	right,
	wrong, ///< a transfer arrived elsewhere, or as something else
};

/// Write from on-demand memory to on-demand memory of the same device. What was
/// found is kept for the process: all devices of soft RoCE have one driver.
odp_verdict try_odp(ibv_context *device);

/// Does the device belong to soft RoCE? It alone tells the interface that it is on.
bool is_soft_roce(const char *name);

} // namespace sluice::detail
