// SPDX-License-Identifier: MIT
// sluice env: what third-party engines have to be told so that they leave memory where
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
std::vector<std::string> engines();

/// @param engine one of engines()
/// @param nic the device to use; empty: the engine chooses
/// @param soft whether it is soft RoCE
std::vector<variable> variables_for(std::string_view engine, const std::string &nic,
				    bool soft);

/// Lines for a shell.
std::string env_text(const std::vector<variable> &all);

} // namespace sluice::cli
