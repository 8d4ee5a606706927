// SPDX-License-Identifier: MIT
// The interface of sluice's commands. Each command has its own file and a line in the
// table of command_line.cpp.
#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "exit_status.hpp"
#include "sluice/error.hpp"

namespace sluice::cli {

/// For CLI::Option::check(): an empty name is a variable that its user has not set.
inline std::string not_empty(const std::string &text)
{
	return text.empty() ? "it is empty" : "";
}

/// Settings that apply to all commands.
struct settings {
	bool json = false;
	std::string root = "/";	     ///< where sys and proc are; for tests
	std::ostream *out = nullptr; ///< for results, and nothing else

	/// Whether this is the running machine, so that its devices can be queried.
	bool live() const { return root == "/"; }
};

class command {
public:
	command() = default;
	command(const command &) = delete;
	virtual ~command() = default;

	virtual void add_options(CLI::App &to) = 0;
	/// Where the words of another program are put, as they are; null: this command
	/// runs none.
	virtual std::vector<std::string> *program() { return nullptr; }
	virtual result<exit_status> run(const settings &with) = 0;
};

std::unique_ptr<command> make_info();
std::unique_ptr<command> make_copy();
std::unique_ptr<command> make_doctor();
std::unique_ptr<command> make_kv();
std::unique_ptr<command> make_recv();
std::unique_ptr<command> make_send();
std::unique_ptr<command> make_bench();
std::unique_ptr<command> make_trace();
std::unique_ptr<command> make_top();
std::unique_ptr<command> make_env();
std::unique_ptr<command> make_run();

} // namespace sluice::cli
