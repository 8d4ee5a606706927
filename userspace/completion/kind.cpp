// SPDX-License-Identifier: MIT
#include "kind.hpp"

#include <map>
#include <stdexcept>

#include "sluice/stream.hpp"

namespace sluice::cli {

namespace {

std::string words(const std::vector<std::string> &all)
{
	std::string text = "=";

	for (const std::string &word : all)
		text += (text.size() > 1 ? " " : "") + word;
	return text;
}

std::string paths()
{
	std::vector<std::string> all;

	for (data_path p : {data_path::device_alias, data_path::device_dmabuf,
			    data_path::host, data_path::staged})
		all.emplace_back(name(p));
	return words(all);
}

} // namespace

std::string kind_of(const described_option &o)
{
	// By the name of an option's value.
	static const std::map<std::string, std::string> values = {
		{"", ""},	   {"ADDRESS", ""},    {"FILE", "FILE"}, {"GPU", "GPU"},
		{"HOST", "HOST"},  {"N", ""},	       {"NAME", ""},	 {"NIC", "NIC"},
		{"PATH", paths()}, {"PLACE", "PLACE"}, {"SIZE", ""},	 {"SIZES", ""},
		{"WORDS", ""},
	};
	// By the name of an operand.
	static const std::map<std::string, std::string> operands = {
		{"A", "FILE"},	  {"B", "FILE"},	 {"COMMAND", "COMMAND"},
		{"FILE", "FILE"}, {"FROM", "FILE"},	 {"HOST", "HOST"},
		{"TO", "FILE"},	  {"between", "DEVICE"},
	};
	const auto &known = o.operand() ? operands : values;
	auto found = known.find(o.operand() ? o.names[0] : o.value);

	if (!o.choices.empty())
		return words(o.choices);
	if (found == known.end())
		throw std::runtime_error(o.names.back() + ": what can be offered for " +
					 o.value + "? See completion/kind.cpp");
	return found->second;
}

} // namespace sluice::cli
