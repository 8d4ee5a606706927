// SPDX-License-Identifier: MIT
#include "command_line.hpp"

#include <algorithm>
#include <array>

namespace sluice::cli {

namespace {

struct entry {
	const char *name;
	const char *summary;
	std::unique_ptr<command> (*make)();
};

constexpr std::array table = {
	entry{"info", "list the devices of this machine, and the paths between them",
	      make_info},
	entry{"send", "send files to another machine", make_send},
	entry{"recv", "receive what another machine sends", make_recv},
	entry{"copy", "copy a file, through the memory of a GPU if one is named",
	      make_copy},
	entry{"kv", "send blocks of a made-up KV cache, and check what arrives",
	      make_kv},
	entry{"doctor",
	      "tell what this machine lacks to move data fast, and what to do",
	      make_doctor},
	entry{"bench", "measure copies, files and RDMA, alone or between two machines",
	      make_bench},
	entry{"trace", "record a timeline of GPUs, io_uring, cards and streams",
	      make_trace},
	entry{"top", "show what each process does with GPUs, and the cards' traffic",
	      make_top},
	entry{"env", "print what to set for UCX, Open MPI or libfabric", make_env},
	entry{"run", "run another program, with its RDMA memory in a GPU", make_run},
};

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

/// Whether the parser takes the next word for the value of this one.
bool has_value(const CLI::App &parser, const std::string &word)
{
	const CLI::Option *o = parser.get_option_no_throw(word);

	return o && o->get_items_expected_min() != 0;
}

/// Cut off the words of another program: all from the first on that is no option of ours,
/// nor the value of one. As with env(1), "--" before it is ours, and behind it is not.
std::vector<std::string> cut_program(const CLI::App &parser,
				     std::vector<std::string> &words)
{
	auto at = std::ranges::find(words, parser.get_name()) + 1;

	while (at != words.end() && at->starts_with('-') && *at != "--") {
		const bool two =
			has_value(parser, *at) || has_value(*parser.get_parent(), *at);

		at += two && at + 1 != words.end() ? 2 : 1;
	}
	auto is_named = [&](const CLI::App *sub) { return sub->check_name(*at); };
	if (at == words.end() || !parser.get_subcommands(is_named).empty())
		return {};
	std::vector<std::string> program(at + (*at == "--"), words.end());
	words.erase(at, words.end());
	return program;
}

} // namespace

command_line::command_line(settings &common)
	: app_("Move data between files, GPUs and machines.", "sluice")
{
	add_common(app_, common);
	for (const entry &e : table) {
		known c{e.make(), app_.add_subcommand(e.name, e.summary)};

		c.parser->footer(exit_status_text());
		c.what->add_options(*c.parser);
		commands_.push_back(std::move(c));
	}
}

// For the parser, "[a,b]" is a list of two words wherever an operand may be one of
// several. So it does not get the words of other programs, and a file needs a path.
void command_line::parse(std::vector<std::string> words)
{
	if (const known *c = named_in(words); c && c->what->program())
		*c->what->program() = cut_program(*c->parser, words);
	for (const std::string &word : words)
		if (word.starts_with('[') && word.ends_with(']'))
			throw CLI::ArgumentMismatch(word +
						    " would be a list: write ./" +
						    word + " for a file");
	std::ranges::reverse(words);
	app_.parse(std::move(words));
}

const command_line::known *
command_line::named_in(const std::vector<std::string> &words) const
{
	for (const std::string &word : words)
		for (const known &c : commands_)
			if (c.parser->get_name() == word)
				return &c;
	return nullptr;
}

command *command_line::chosen() const
{
	auto found = std::ranges::find_if(
		commands_, [](const known &c) { return c.parser->parsed(); });

	return found == commands_.end() ? nullptr : found->what.get();
}

std::string command_line::names() const
{
	std::string all;

	for (const entry &e : table)
		all += std::string(" ") + e.name;
	return all;
}

} // namespace sluice::cli
