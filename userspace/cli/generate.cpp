// SPDX-License-Identifier: MIT
// generate man|bash|zsh [COMMAND]: fill in a template with the commands' own definitions,
// from standard input to standard output. A line or a word @NAME@ is replaced.
#include <iostream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>

#include "command_line.hpp"
#include "completion.hpp"
#include "described.hpp"
#include "man_page.hpp"

using namespace sluice::cli;
using parts = std::map<std::string, std::string>;

namespace {

const described_command &find(const described_command &program, const std::string &name)
{
	if (name == program.name)
		return program;
	for (const described_command &c : program.commands)
		if (c.name == name)
			return c;
	throw std::runtime_error(name + ": there is no such command");
}

parts parts_for(const described_command &program, int argc, char **argv)
{
	const std::string kind = argc > 1 ? argv[1] : "";

	if (kind == "bash")
		return bash_parts(program);
	if (kind == "zsh")
		return zsh_parts(program);
	if (kind != "man" || argc != 3)
		throw std::runtime_error("usage: generate bash|zsh, or generate man "
					 "COMMAND");
	return page_parts(program, find(program, argv[2]));
}

/// A part that consists of lines replaces the line of its mark.
void put(std::string &text, const std::string &name, const std::string &part)
{
	const std::string mark = "@" + name + "@";

	for (size_t at = 0; (at = text.find(mark, at)) != text.npos; at += part.size())
		text.replace(at, mark.size() + part.ends_with('\n'), part);
}

std::string filled(std::string text, const parts &all)
{
	for (const auto &[name, part] : all)
		put(text, name, part);
	for (size_t at = 0; (at = text.find('@', at)) != text.npos; at++) {
		size_t end =
			text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_", at + 1);

		if (end != text.npos && end > at + 1 && text[end] == '@')
			throw std::runtime_error("nothing stands for " +
						 text.substr(at, end + 1 - at));
	}
	return text;
}

} // namespace

int main(int argc, char **argv)
{
	settings common;
	command_line line(common);
	std::string text(std::istreambuf_iterator<char>(std::cin), {});

	try {
		parts all = parts_for(describe(line.app()), argc, argv);

		all["VERSION"] = SLUICE_VERSION;
		std::cout << filled(std::move(text), all);
	} catch (const std::exception &what) {
		std::cerr << "generate: " << what.what() << "\n";
		return 1;
	}
	return std::cout.flush() ? 0 : 1;
}
