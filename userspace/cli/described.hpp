// SPDX-License-Identifier: MIT
// Commands and their options as data, from which the manual pages and the shell
// completions are generated. No option is written twice.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace sluice::cli {

/// An option, or an operand.
struct described_option {
	std::vector<std::string> names; ///< "-h", "--help"; one without "-": an operand
	std::string value; ///< FILE, N, SIZE; empty: none; an operand's name
	std::vector<std::string> choices; ///< the allowed values; empty: any
	std::string limits;		  ///< "1 to 64"
	std::string initial;		  ///< the default
	std::string text;		  ///< what it is for
	bool required = false, repeated = false;

	bool operand() const { return !names[0].starts_with('-'); }
};

struct described_command {
	std::string name; ///< "send"; "sluice" for the program itself
	std::string summary;
	std::vector<std::string> usage; ///< lines, without "Usage:"
	std::vector<described_option> options, operands;
	std::vector<described_command> commands;
};

described_command describe(const CLI::App &app);

} // namespace sluice::cli
