// SPDX-License-Identifier: MIT
#pragma once

#include <infiniband/verbs.h>

namespace sluice::detail {

/// Have the card of @p region fault in the pages of @p part now, for writing, and wait
/// for that: 0 or errno.
int find_pages(const ibv_mr &region, ibv_sge part) noexcept;

} // namespace sluice::detail
