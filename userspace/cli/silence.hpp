// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>

#include "sluice/endpoint.hpp"

namespace sluice::cli {

/// How long a peer may give no sign of life to a side that waits @p timeout_s seconds: a
/// third of that, or the library's default if that is longer. A busy host that is given
/// time is not taken for a dead one.
inline clock::duration silence_for(unsigned timeout_s)
{
	return std::max<clock::duration>(endpoint_options().silence,
					 std::chrono::seconds(timeout_s) / 3);
}

} // namespace sluice::cli
