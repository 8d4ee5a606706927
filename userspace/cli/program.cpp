// SPDX-License-Identifier: MIT
#include "program.hpp"

#include <array>
#include <format>

#include "command.hpp"
#include "json_text.hpp"
#include "text.hpp"

namespace sluice::cli {

namespace {

struct entry {
	const char *name;
	const char *summary;
	std::unique_ptr<command> (*make)();
};

constexpr std::array table = {
	entry{"info", "what is in this machine, and the path between any two of it",
	      make_info},
	entry{"send", "send files to another machine", make_send},
	entry{"recv", "receive what another machine sends", make_recv},
	entry{"copy", "copy a file, through the memory of a GPU if one is named",
	      make_copy},
	entry{"kv", "move blocks of a KV cache, and judge what arrives", make_kv},
	entry{"doctor", "what this machine lacks to move data fast, and what to do",
	      make_doctor},
	entry{"bench", "measure copies, files and RDMA, alone or between two machines",
	      make_bench},
	entry{"trace", "a timeline of GPUs, io_uring, cards and streams, for Perfetto",
	      make_trace},
	entry{"top", "who uses the GPUs and the cards, now", make_top},
};

std::string names()
{
	std::string all;

	for (const entry &e : table)
		all += std::format(" {}", e.name);
	return all;
}

/// The thing, what is wrong with it, and what to do. With --json the one document
/// on standard output is the error.
int report(const error &what, const settings &with, std::ostream &err)
{
	exit_status status = status_of(what.code());
	const char *remedy = remedy_of(what.code());

	err << hanging("sluice: ", what.message()) << hanging("  try: ", remedy);
	if (with.json)
		*with.out << json_text({{"error", {
			{"code", name(what.code())},
			{"where", what.where()},
			{"message", what.message()},
			{"remedy", remedy},
			{"exit_status", static_cast<int>(status)},
		}}});
	return static_cast<int>(status);
}

/// The parser's own exceptions end here: help, the version, or a mistake.
int answer(const CLI::App &app, const CLI::ParseError &what, const settings &with,
	   std::ostream &err)
{
	if (what.get_exit_code() == 0)
		return app.exit(what, *with.out, err);
	return report(error(errc::usage, "arguments", what.what()), with, err);
}

/// What a library throws nevertheless is a failure like others.
result<exit_status> run(command &what, const settings &with)
{
	try {
		return what.run(with);
	} catch (const std::exception &thrown) {
		return fail(errc::system, "sluice", thrown.what());
	}
}

void add_common(CLI::App &app, settings &common)
{
	app.set_version_flag("--version", "sluice " SLUICE_VERSION,
			     "print the version");
	app.add_flag("--json", common.json, "print one JSON document");
	// For tests: a machine made of files.
	app.add_option("--sysroot", common.root)->group("");
	app.require_subcommand(0, 1);
	app.fallthrough();
	app.get_formatter()->column_width(16);
	app.footer(exit_status_text());
}

} // namespace

int run_program(int argc, const char *const *argv, std::ostream &out,
		std::ostream &err)
{
	CLI::App app("Move data between files, GPUs and machines.", "sluice");
	settings common{.out = &out};
	std::array<std::unique_ptr<command>, table.size()> commands;
	std::array<CLI::App *, table.size()> parsers;

	add_common(app, common);
	for (size_t i = 0; i < table.size(); i++) {
		commands[i] = table[i].make();
		parsers[i] = app.add_subcommand(table[i].name, table[i].summary);
		parsers[i]->footer(exit_status_text());
		commands[i]->add_options(*parsers[i]);
	}
	try {
		app.parse(argc, argv);
	} catch (const CLI::ParseError &what) {
		return answer(app, what, common, err);
	}

	size_t chosen = 0;
	while (chosen < table.size() && !parsers[chosen]->parsed())
		chosen++;
	if (chosen == table.size())
		return report(error(errc::usage, "arguments",
				    "no command; there is" + names()), common, err);
	auto status = run(*commands[chosen], common);
	if (status && !out.flush())
		status = fail(errc::output, "standard output", "cannot be written");
	return status ? static_cast<int>(*status)
		      : report(status.error(), common, err);
}

} // namespace sluice::cli
