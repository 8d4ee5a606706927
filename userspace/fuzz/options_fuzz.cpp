// SPDX-License-Identifier: MIT
// Any lines as arguments of the program. They are parsed, or refused with a message;
// nothing is moved.
#include <algorithm>
#include <sstream>
#include <vector>

#include "edge.hpp"
#include "program.hpp"
#include "transfer.hpp"

using namespace sluice::cli;
using sluice::fuzz::must;

namespace {

std::vector<std::string> lines_of(std::string_view text)
{
	constexpr size_t most = 16;
	std::vector<std::string> lines;

	while (!text.empty() && lines.size() < most) {
		size_t end = std::min(text.find('\n'), text.size());
		std::string line(text.substr(0, end));

		line.resize(std::min(line.find('\0'), line.size()));
		lines.push_back(std::move(line));
		text.remove_prefix(std::min(end + 1, text.size()));
	}
	return lines;
}

std::vector<const char *> argv_of(const std::vector<std::string> &lines)
{
	std::vector<const char *> argv;

	for (const std::string &line : lines)
		argv.push_back(line.c_str());
	return argv;
}

int count(const std::vector<const char *> &argv)
{
	return static_cast<int>(argv.size());
}

/// False: the arguments are refused.
bool parses(CLI::App &app, const std::vector<std::string> &lines)
{
	auto argv = argv_of(lines);

	argv.insert(argv.begin(), "sluice");
	try {
		app.parse(count(argv), argv.data());
		return true;
	} catch (const CLI::ParseError &) {
		return false;
	}
}

/// Options with bounds are within them.
void transfers(const std::vector<std::string> &lines)
{
	CLI::App app;
	transfer_options o;

	add_transfer_options(app, o);
	if (!parses(app, lines))
		return;
	must(o.port > 0);
	must(o.pieces >= 2 && o.pieces <= 64);
	must(o.timeout_s >= 1 && o.timeout_s <= 86400);
}

/// All commands, none of which runs.
void commands(const std::vector<std::string> &lines)
{
	CLI::App app;
	std::vector<std::unique_ptr<command>> all;

	for (auto make : {make_info, make_send, make_recv, make_doctor}) {
		all.push_back(make());
		all.back()->add_options(
			*app.add_subcommand(std::to_string(all.size()), "")); // 1 to 4
	}
	parses(app, lines);
}

/// The whole program, on a machine that does not exist.
void program(const std::vector<std::string> &lines, bool doctor)
{
	std::vector<std::string> all{"sluice", "--sysroot", "/nonexistent",
				     doctor ? "doctor" : "info"};
	std::ostringstream out, err;

	all.insert(all.end(), lines.begin(), lines.end());
	auto argv = argv_of(all);
	int status = run_program(count(argv), argv.data(), out, err);
	must(status >= 0 && status < 128);
	must(status == 0 || !err.str().empty());
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	auto input = sluice::fuzz::at_the_edge(data, size);
	std::string_view text(reinterpret_cast<const char *>(input.data()),
			      input.size());
	auto lines = lines_of(text);

	transfers(lines);
	commands(lines);
	program(lines, size % 2);
	return 0;
}
