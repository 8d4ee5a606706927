// SPDX-License-Identifier: MIT
#include <format>

#include "completion.hpp"
#include "kind.hpp"

namespace sluice::cli {

namespace {

/// Text in a specification of _arguments, which is in single quotes.
std::string quoted(const std::string &text)
{
	std::string to;

	for (char c : text) {
		if (c == '[' || c == ']' || c == ':' || c == '\\')
			to += '\\';
		if (c == '\'')
			to += "'\\'";
		to += c;
	}
	return to;
}

/// What zsh calls to offer words of a kind; a blank says that there are none.
std::string action(const std::string &kind)
{
	static const std::map<std::string, std::string> functions = {
		{"", " "},
		{"COMMAND", "_normal"},
		{"DEVICE", "_sluice_devices"},
		{"FILE", "_files"},
		{"GPU", "_sluice_gpus"},
		{"HOST", "_hosts"},
		{"NIC", "_sluice_nics"},
		{"PLACE", "_sluice_places"},
	};

	return kind.starts_with('=') ? "(" + kind.substr(1) + ")" : functions.at(kind);
}

using specifications = std::vector<std::string>;

void add(const described_option &o, specifications &to)
{
	std::string others;

	for (const std::string &name : o.names)
		others += (others.empty() ? "" : " ") + name;
	for (const std::string &name : o.names)
		to.push_back(o.value.empty()
				     ? std::format("({}){}[{}]", others, name,
						   quoted(o.text))
				     : std::format("({}){}=[{}]:{}:{}", others, name,
						   quoted(o.text), o.value,
						   action(kind_of(o))));
}

/// The arguments of _arguments, one a line.
std::string lines(const specifications &all)
{
	std::string text;

	for (const std::string &one : all)
		text += std::format("{}\t\t'{}'", text.empty() ? "" : " \\\n", one);
	return text;
}

std::string operand(const described_option &o, size_t n,
		    const std::vector<described_command> &commands)
{
	const std::string kind = kind_of(o);
	std::string names;

	if (kind != "COMMAND")
		return std::format("{}:{}:{}", o.repeated ? "*" : std::to_string(n),
				   quoted(o.value), action(kind));
	for (const described_command &c : commands)
		names += " " + c.name;
	return std::format("*::{}:_sluice_run{}", quoted(o.value), names);
}

/// @param path "send" or "trace_merge"
void add(const described_command &c, const std::string &path,
	 const std::vector<described_option> &common, std::string &functions)
{
	specifications all;
	std::string below;
	size_t n = 0;

	for (const auto *options : {&c.options, &common})
		for (const described_option &o : *options)
			add(o, all);
	for (const described_option &o : c.operands)
		all.push_back(operand(o, ++n, c.commands));
	for (const described_command &sub : c.commands)
		below += std::format(
			"\t_sluice_below {0} && {{ _sluice_{1}_{0}; return; }}\n",
			sub.name, path);
	functions += std::format("_sluice_{}()\n{{\n{}\t_arguments -S \\\n{}\n}}\n\n",
				 path, below, lines(all));
	for (const described_command &sub : c.commands)
		add(sub, path + "_" + sub.name, common, functions);
}

} // namespace

std::map<std::string, std::string> zsh_parts(const described_command &program)
{
	std::map<std::string, std::string> parts;
	std::vector<described_option> common;
	specifications options;

	for (const described_option &o : program.options) {
		if (o.names.back() != "--help" && o.names.back() != "--version")
			common.push_back(o);
		add(o, options);
	}
	for (const described_command &c : program.commands) {
		add(c, c.name, common, parts["FUNCTIONS"]);
		parts["COMMANDS"] +=
			std::format("\t\t'{}:{}'\n", c.name, quoted(c.summary));
	}
	parts["OPTIONS"] = lines(options) + " \\\n";
	return parts;
}

} // namespace sluice::cli
