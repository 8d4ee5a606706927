// SPDX-License-Identifier: MIT
#include <format>

#include "completion.hpp"
#include "kind.hpp"

namespace sluice::cli {

namespace {

std::string joined(const std::vector<std::string> &words)
{
	std::string all;

	for (const std::string &word : words)
		all += (all.empty() ? "" : " ") + word;
	return all;
}

std::vector<std::string> names_of(const std::vector<described_option> &options)
{
	std::vector<std::string> names;

	for (const described_option &o : options)
		names.insert(names.end(), o.names.begin(), o.names.end());
	return names;
}

std::vector<std::string> names_of(const std::vector<described_command> &commands)
{
	std::vector<std::string> names;

	for (const described_command &c : commands)
		names.push_back(c.name);
	return names;
}

/// The kinds of its operands; the last one holds for all that follow if it is repeated.
std::string operands_of(const described_command &c)
{
	std::string all;

	for (const described_option &o : c.operands)
		all += std::format("{}'{}{}'", all.empty() ? "" : " ", kind_of(o),
				   o.repeated ? "..." : "");
	return all;
}

/// @param path "", "send" or "trace merge"
void add(const described_command &c, const std::string &path,
	 std::map<std::string, std::string> &to)
{
	to["COMMANDS"] += std::format(
		"\t'{}')\n\t\toptions='{}'\n\t\tcommands='{}'\n\t\toperands=({}) ;;\n",
		path, joined(names_of(c.options)), joined(names_of(c.commands)),
		operands_of(c));
	for (const described_option &o : c.options)
		if (!o.value.empty())
			for (const std::string &name : o.names)
				to["VALUES"] += std::format("\t'{} {}') kind='{}' ;;\n",
							    path, name, kind_of(o));
	for (const described_command &sub : c.commands)
		add(sub, path.empty() ? sub.name : path + " " + sub.name, to);
}

} // namespace

std::map<std::string, std::string> bash_parts(const described_command &program)
{
	std::map<std::string, std::string> parts;

	add(program, "", parts);
	return parts;
}

} // namespace sluice::cli
