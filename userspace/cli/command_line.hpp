// SPDX-License-Identifier: MIT
// What the program understands: all commands with their options. The manual pages
// and the completion of shells are made from the same.
#pragma once

#include <memory>
#include <vector>

#include "command.hpp"

namespace sluice::cli {

class command_line {
public:
	/// @param common is written when arguments are parsed, and outlives this.
	explicit command_line(settings &common);

	CLI::App &app() { return app_; }
	/// The command that was named; null: none.
	command *chosen() const;
	/// " info send ..."
	std::string names() const;

private:
	struct known {
		std::unique_ptr<command> what;
		CLI::App *parser;
	};

	CLI::App app_;
	std::vector<known> commands_;
};

} // namespace sluice::cli
