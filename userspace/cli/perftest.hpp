// SPDX-License-Identifier: MIT
// perftest's ib_write_bw, to compare with. Source: ib_write_bw(1).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/error.hpp"

namespace sluice::cli {

struct perftest_run {
	std::string nic;
	uint16_t port = 0;
	uint64_t bytes = 0; ///< per write
	uint64_t count = 0; ///< writes
	unsigned depth = 0; ///< in flight at once
};

/// Its command line. @param host of the server; empty: this is the server
std::vector<std::string> perftest_words(const perftest_run &of,
					const std::string &host);

/// The average rate that it printed for writes of @p bytes: bytes per second.
std::optional<double> perftest_rate(std::string_view printed, uint64_t bytes);

} // namespace sluice::cli
