// SPDX-License-Identifier: MIT
// sluice env: what third-party libraries have to be told so that they leave memory where
// it is. None of these settings is a default of theirs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::cli {

struct variable {
	std::string name, value;
	std::string reason; ///< why, in words
};

/// "ucx", "openmpi", "libfabric"
std::vector<std::string> libraries();

/// @param library one of libraries()
/// @param nic the device to use; empty: the library chooses
/// @param soft whether it is soft RoCE
std::vector<variable> variables_for(std::string_view library, const std::string &nic,
				    bool soft);

/// Lines for a shell.
std::string env_text(const std::vector<variable> &all);

} // namespace sluice::cli
