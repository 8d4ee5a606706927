// SPDX-License-Identifier: MIT
#include "man_page.hpp"

#include <cctype>
#include <format>
#include <set>
#include <sstream>

#include "exit_status.hpp"

namespace sluice::cli {

namespace {

/// Text for troff: minus signs that can be copied, and no line that is a request.
std::string troff(const std::string &text)
{
	std::string to;

	for (char c : text) {
		if (to.empty() && (c == '.' || c == '\''))
			to += "\\&";
		if (c == '-')
			to += "\\-";
		else if (c == '\\')
			to += "\\e";
		else
			to += c;
	}
	return to;
}

std::string bold(const std::string &text)
{
	return "\\fB" + troff(text) + "\\fR";
}

std::string italic(const std::string &text)
{
	return "\\fI" + troff(text) + "\\fR";
}

std::string sentence(std::string text)
{
	// A word such as "ib_write_bw" keeps its letters.
	if (!text.empty() && text.substr(0, text.find(' ')).find('_') == text.npos)
		text[0] = static_cast<char>(
			std::toupper(static_cast<unsigned char>(text[0])));
	return text + ".";
}

std::string listed(const std::vector<std::string> &words)
{
	std::string all;

	for (const std::string &word : words)
		all += (all.empty() ? "" : ", ") + bold(word);
	return all;
}

/// One entry of a list: what to type, and what it is for.
std::string entry(const described_option &o)
{
	std::string text = ".TP\n";

	if (o.operand())
		text += italic(o.value) +
			(o.repeated && o.value == o.names[0] ? "...\n" : "\n");
	else
		text += listed(o.names) +
			(o.value.empty() ? "" : " " + italic(o.value)) + "\n";
	if (!o.text.empty())
		text += troff(sentence(o.text)) + "\n";
	if (!o.choices.empty())
		text += "One of " + listed(o.choices) + ".\n";
	if (!o.limits.empty())
		text += troff(o.limits) + ".\n";
	if (!o.initial.empty())
		text += "Default: " + bold(o.initial) + ".\n";
	if (o.required && !o.operand())
		text += "It must be given.\n";
	return text;
}

std::string entries(const described_command &c, const std::set<std::string> &but = {})
{
	std::string text;

	for (const auto *list : {&c.operands, &c.options})
		for (const described_option &o : *list)
			if (!but.contains(o.names.back()))
				text += entry(o);
	return text;
}

std::string operand_text(const described_option &o)
{
	std::string text =
		italic(o.value) + (o.repeated && o.value == o.names[0] ? "..." : "");

	return o.required ? " " + text : " [" + text + "]";
}

std::string synopsis(const described_command &c, const std::string &name)
{
	std::string text;

	for (const std::string &line : c.usage)
		text += (text.empty() ? "" : ".br\n") + troff(line) + "\n";
	if (!text.empty())
		return text;
	text = bold(name) + " [" + italic("OPTIONS") + "]";
	for (const described_option &o : c.operands)
		text += operand_text(o);
	return text + "\n";
}

/// Commands below this one have no page of their own.
std::string options_below(const described_command &c, const std::string &name)
{
	std::string text;

	for (const described_command &sub : c.commands)
		text += ".SS " + troff(name + " " + sub.name) + "\n" +
			troff(sentence(sub.summary)) + "\n" + entries(sub, {"--help"});
	return text;
}

std::string commands_of(const described_command &c)
{
	std::string text;

	for (const described_command &sub : c.commands)
		text += ".TP\n.BR " + troff(c.name + "-" + sub.name) + " (1)\n" +
			troff(sentence(sub.summary)) + "\n";
	return text;
}

std::string exit_statuses()
{
	std::istringstream all(exit_status_text());
	std::string text, line;

	std::getline(all, line); // the heading
	while (std::getline(all, line))
		text += troff(line) + "\n";
	return ".EX\n" + text + ".EE\n";
}

} // namespace

std::map<std::string, std::string> page_parts(const described_command &program,
					      const described_command &command)
{
	bool top = program.name == command.name;
	std::string page = top ? program.name : program.name + "-" + command.name;
	std::string typed = top ? program.name : program.name + " " + command.name;
	std::string options = entries(command);
	std::string summary = command.summary;
	std::set<std::string> not_here = {"--help", "--version"};

	// The program's summary is a sentence, a command's is not.
	if (summary.ends_with('.'))
		summary.pop_back();
	// It becomes another program, and has no document.
	if (command.name == "run")
		not_here.insert("--json");
	if (!top)
		options += entries(program, not_here) + options_below(command, typed);
	return {{"NAME", troff(page) + " \\- " + troff(summary) + "\n"},
		{"SYNOPSIS", synopsis(command, typed)},
		{"OPTIONS", options},
		{"COMMANDS", commands_of(command)},
		{"EXIT_STATUS", exit_statuses()}};
}

} // namespace sluice::cli
