// SPDX-License-Identifier: MIT
// The command line: all commands with their options. The manual pages and the shell
// completions are generated from it.
#pragma once

#include <memory>
#include <vector>

#include "command.hpp"

namespace sluice::cli {

class command_line {
public:
	/// @param common is written when arguments are parsed, and must outlive this.
	explicit command_line(settings &common);

	CLI::App &app() { return app_; }
	/// CLI::ParseError, as the parser.
	void parse(std::vector<std::string> words);
	/// The command that was given; null: none.
	command *chosen() const;
	/// " info send ..."
	std::string names() const;

private:
	struct known {
		std::unique_ptr<command> what;
		CLI::App *parser;
	};

	/// The command of the first word that names one.
	const known *named_in(const std::vector<std::string> &words) const;

	CLI::App app_;
	std::vector<known> commands_;
};

} // namespace sluice::cli
