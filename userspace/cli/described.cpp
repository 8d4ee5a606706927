// SPDX-License-Identifier: MIT
#include "described.hpp"

#include <format>
#include <sstream>
#include <string_view>

namespace sluice::cli {

namespace {

/// The text between @p from and @p to, if both are there.
std::string between(std::string_view text, std::string_view from, std::string_view to)
{
	size_t begin = text.find(from);
	size_t end = begin == text.npos ? begin : text.find(to, begin + from.size());

	if (end == text.npos)
		return {};
	begin += from.size();
	return std::string(text.substr(begin, end - begin));
}

std::vector<std::string> split(const std::string &text, char at)
{
	std::istringstream all(text);
	std::vector<std::string> parts;

	for (std::string part; std::getline(all, part, at);)
		parts.push_back(part);
	return parts;
}

std::vector<std::string> names_of(const CLI::Option &o)
{
	std::vector<std::string> names;

	if (o.get_positional())
		return {o.get_name(true)};
	for (const std::string &name : o.get_snames())
		names.push_back("-" + name);
	for (const std::string &name : o.get_lnames())
		names.push_back("--" + name);
	return names;
}

/// Turns "1 - 64" into "1 to 64".
std::string limits_of(const std::string &type)
{
	std::string limits = between(type, " in [", "]");
	size_t dash = limits.find(" - ");

	return dash == limits.npos ? limits : limits.replace(dash, 3, " to ");
}

// The parser puts the type and its constraints into one word: "UINT:INT in [1 - 64]",
// "TEXT:{send,recv}", "UINT:SIZE [b, kb(=1024b), ...]".
std::string value_of(const CLI::Option &o)
{
	const std::string type = o.get_type_name();
	const std::string first = type.substr(0, type.find(':'));

	if (o.get_type_size() == 0)
		return {};
	if (type.find(":SIZE ") != type.npos)
		return "SIZE";
	if (first == "UINT" || first == "INT" || first == "FLOAT")
		return "N";
	return first == "TEXT" ? "WORD" : first;
}

/// A size as users write it: 4 MiB is 4M.
std::string initial_of(const CLI::Option &o, const std::string &value)
{
	std::string initial = o.get_default_str();
	uint64_t n = 0;
	size_t unit = 0;

	if (value != "SIZE" || initial.empty())
		return initial;
	for (n = std::stoull(initial); n && n % 1024 == 0 && unit < 4; unit++)
		n /= 1024;
	return std::format("{}{}", n, std::string_view("\0KMGT" + unit, unit != 0));
}

described_option describe(const CLI::Option &o)
{
	described_option d{.names = names_of(o),
			   .value = value_of(o),
			   .choices = {},
			   .limits = {},
			   .initial = {},
			   .text = o.get_description(),
			   .required = o.get_required()};
	const std::string type = o.get_type_name();

	d.choices = split(between(type, ":{", "}"), ',');
	d.limits = limits_of(type);
	d.initial = initial_of(o, d.value);
	d.repeated = o.get_items_expected_max() > 1;
	if (d.operand())
		d.value =
			o.get_option_text().empty() ? d.names[0] : o.get_option_text();
	return d;
}

std::vector<std::string> usage_of(const CLI::App &app)
{
	std::vector<std::string> lines;

	for (const std::string &line : split(app.get_usage(), '\n'))
		lines.push_back(line.substr(line.find("sluice")));
	return lines;
}

} // namespace

described_command describe(const CLI::App &app)
{
	described_command d{.name = app.get_name(),
			    .summary = app.get_description(),
			    .usage = usage_of(app),
			    .options = {},
			    .operands = {},
			    .commands = {}};

	for (const CLI::Option *o : app.get_options()) {
		if (o->get_group().empty())
			continue;
		auto option = describe(*o);
		(option.operand() ? d.operands : d.options).push_back(option);
	}
	for (const CLI::App *sub :
	     app.get_subcommands([](const CLI::App *) { return true; }))
		d.commands.push_back(describe(*sub));
	return d;
}

} // namespace sluice::cli
