// SPDX-License-Identifier: MIT
#pragma once

#include <ostream>

namespace sluice::cli {

/// All of the program: its exit status.
int run_program(int argc, const char *const *argv, std::ostream &out,
		std::ostream &err);

} // namespace sluice::cli
