// SPDX-License-Identifier: MIT
// The parts of manual pages that are made from the commands' own definitions.
#pragma once

#include <map>
#include <string>

#include "described.hpp"

namespace sluice::cli {

/// What replaces @NAME@, @SYNOPSIS@, @OPTIONS@, @COMMANDS@ and @EXIT_STATUS@ in the page
/// of @p command, as troff.
/// @param program the command above it, whose options it has as well; may be the same
std::map<std::string, std::string> page_parts(const described_command &program,
					      const described_command &command);

} // namespace sluice::cli
