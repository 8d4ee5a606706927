// SPDX-License-Identifier: MIT
#pragma once

#include <infiniband/verbs.h>

namespace sluice::detail {

/// Have the card of @p region find the pages of @p part now, for writing. Waits until
/// it has: 0 or errno.
int find_pages(const ibv_mr &region, ibv_sge part) noexcept;

} // namespace sluice::detail
