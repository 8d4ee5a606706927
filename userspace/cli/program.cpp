// SPDX-License-Identifier: MIT
#include "program.hpp"

#include <algorithm>
#include <vector>

#include "command_line.hpp"
#include "json_text.hpp"
#include "text.hpp"

namespace sluice::cli {

namespace {

/// Print the subject, what is wrong with it, and what to do. With --json the one
/// document on standard output is the error.
int report(const error &what, const settings &with, std::ostream &err)
{
	exit_status status = status_of(what.code());
	const char *remedy = remedy_of(what.code());

	err << hanging("sluice: ", what.message()) << hanging("  try: ", remedy);
	if (with.json)
		*with.out << json_text(
			{{"error",
			  {
				  {"code", name(what.code())},
				  {"where", what.where()},
				  {"message", what.message()},
				  {"remedy", remedy},
				  {"exit_status", static_cast<int>(status)},
			  }}});
	return static_cast<int>(status);
}

/// What the program returns once all is printed.
int ended(result<exit_status> status, const settings &with, std::ostream &err)
{
	if (status && !with.out->flush())
		status = fail(errc::output, "standard output", "cannot be written");
	return status ? static_cast<int>(*status) : report(status.error(), with, err);
}

/// Handle the parser's own exceptions: help, the version, or a mistake.
int answer(const CLI::App &app, const CLI::ParseError &what, const settings &with,
	   std::ostream &err)
{
	if (what.get_exit_code() != 0)
		return report(error(errc::usage, "arguments", what.what()), with, err);
	app.exit(what, *with.out, err);
	return ended(exit_status::ok, with, err);
}

/// An exception that a library throws is a failure like any other.
result<exit_status> run(command &what, const settings &with)
{
	try {
		return what.run(with);
	} catch (const std::exception &thrown) {
		return fail(errc::system, "sluice", thrown.what());
	}
}

} // namespace

int run_program(int argc, const char *const *argv, std::ostream &out, std::ostream &err)
{
	settings common{.out = &out};
	command_line line(common);

	std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);

	try {
		line.parse(words);
	} catch (const CLI::ParseError &what) {
		// The parser may not have come to this option.
		common.json |= std::ranges::contains(words, "--json");
		return answer(line.app(), what, common, err);
	}

	command *chosen = line.chosen();
	if (!chosen)
		return report(error(errc::usage, "arguments",
				    "name a command:" + line.names()),
			      common, err);
	return ended(run(*chosen, common), common, err);
}

} // namespace sluice::cli
