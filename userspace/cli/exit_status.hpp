// SPDX-License-Identifier: MIT
// The exit statuses of sluice: one table, which both the program and its --help text
// use.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/error.hpp"

namespace sluice::cli {

enum class exit_status : uint8_t {
	ok = 0,
	system = 1,
	usage = 2,
	input = 3,
	device = 4,
	peer_lost = 5,
	timeout = 6,
	corrupt = 7,
	protocol = 8,
	output = 9,
	unsupported = 10,
	no_path = 11,
	busy = 12,
	stale = 13,
	peer_error = 14,
	denied = 15,
	cancelled = 16,
	slower = 20,
	missing = 21,
};

/// The exit status after an error of the kind @p code.
exit_status status_of(errc code) noexcept;

/// What a user can do about an error of the kind @p code.
const char *remedy_of(errc code) noexcept;

/// The table as text.
std::string exit_status_text();

} // namespace sluice::cli
