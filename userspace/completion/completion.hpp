// SPDX-License-Identifier: MIT
// The parts of the shells' completion that are made from the commands' own definitions.
#pragma once

#include <map>
#include <string>

#include "described.hpp"

namespace sluice::cli {

/// What stands for @COMMANDS@ and @VALUES@ in sluice.bash.in.
std::map<std::string, std::string> bash_parts(const described_command &program);

/// What stands for @FUNCTIONS@, @COMMANDS@ and @OPTIONS@ in sluice.zsh.in.
std::map<std::string, std::string> zsh_parts(const described_command &program);

} // namespace sluice::cli
