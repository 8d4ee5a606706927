// SPDX-License-Identifier: MIT
#include "machine.hpp"

#include <toml++/toml.hpp>

#include <algorithm>
#include <cmath>
#include <format>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace sluice::timing {

extern const char mi300x_toml[];

namespace {

constexpr std::array<std::string_view, 4> bases{"published", "phases", "fitted",
						"assumed"};

[[noreturn]] void reject(std::string_view key, std::string_view why)
{
	throw std::runtime_error(std::format("[{}]: {}", key, why));
}

// Rates are divisors, and a ratio of zero is none; times may be zero.
void check_value(const Parameter &p, double v)
{
	bool time = p.unit == "ns";
	double least = time ? 0 : 0.001, most = time ? 1e9 : 1e6;

	if (!(v >= least && v <= most))
		reject(p.key, std::format("value {} is not between {} and {:.0f}", v,
					  least, most));
}

Note read_note(const Parameter &p, const toml::table &t)
{
	Note n{t["basis"].value_or(std::string()), t["source"].value_or(std::string())};

	if (t["unit"].value_or(std::string_view()) != p.unit)
		reject(p.key, std::format("unit is not \"{}\"", p.unit));
	if (std::ranges::find(bases, n.basis) == bases.end())
		reject(p.key, "basis is not published, phases, fitted or assumed");
	if (n.source.empty())
		reject(p.key, "source is missing");
	return n;
}

void read_parameter(const toml::table &file, std::size_t i, MachineFile &out)
{
	const Parameter &p = parameters[i];
	const toml::table *t = file[p.key].as_table();

	if (!t)
		reject(p.key, "is missing");
	auto value = (*t)["value"].value<double>();
	if (!value)
		reject(p.key, "value is not a number");
	check_value(p, *value);
	out.machine.*p.value = *value;
	out.notes[i] = read_note(p, *t);
}

void check_names(const toml::table &file)
{
	for (const auto &[key, value] : file)
		if (std::ranges::find(parameters, key.str(), &Parameter::key) ==
		    parameters.end())
			reject(key.str(), "is no parameter of the model");
}

} // namespace

MachineFile parse_machine(std::string_view text, std::string_view name)
try {
	toml::table file = toml::parse(text);
	MachineFile out;

	check_names(file);
	for (std::size_t i = 0; i < parameters.size(); i++)
		read_parameter(file, i, out);
	if (out.machine.fetch() < 0)
		reject("doorbell", "is longer than schedule, of which it is part");
	return out;
} catch (const toml::parse_error &e) {
	throw std::runtime_error(std::format("{}, line {}: {}", name,
					     e.source().begin.line, e.description()));
} catch (const std::runtime_error &e) {
	throw std::runtime_error(std::format("{}: {}", name, e.what()));
}

MachineFile read_machine(const std::string &path)
{
	std::ifstream in(path);
	std::ostringstream text;

	if (!in || !(text << in.rdbuf()))
		throw std::runtime_error(path + ": cannot be read");
	return parse_machine(text.str(), path);
}

MachineFile mi300x()
{
	return parse_machine(mi300x_toml, "mi300x.toml");
}

} // namespace sluice::timing
