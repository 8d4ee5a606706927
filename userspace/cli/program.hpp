// SPDX-License-Identifier: MIT
#pragma once

#include <ostream>

namespace sluice::cli {

/// Run the whole program. Returns its exit status.
int run_program(int argc, const char *const *argv, std::ostream &out,
		std::ostream &err);

} // namespace sluice::cli
