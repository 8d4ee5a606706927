// SPDX-License-Identifier: MIT
// Parameters: those that are built in, and what a file may not say.
#include "machine.hpp"

#include <gtest/gtest.h>

#include <format>
#include <stdexcept>

using namespace sluice::timing;

namespace {

std::string entry(std::string_view key, std::string_view unit,
		  std::string_view value = "600")
{
	return std::format("[{}]\nvalue = {}\nunit = \"{}\"\nbasis = \"assumed\"\n"
			   "source = \"a test\"\n",
			   key, value, unit);
}

// All parameters, one of them replaced.
std::string file(std::string_view key = "", std::string_view with = "")
{
	std::string out;

	for (const Parameter &p : parameters)
		out += p.key == key ? std::string(with) : entry(p.key, p.unit);
	return out;
}

std::string refusal(const std::string &text)
{
	try {
		parse_machine(text, "FILE");
	} catch (const std::runtime_error &e) {
		return e.what();
	}
	return "taken";
}

TEST(Machine, BuiltIn)
{
	MachineFile f = mi300x();

	EXPECT_EQ(f.machine.xgmi_link, 48);
	EXPECT_EQ(f.machine.copy_latency, 2050);
	for (const Note &n : f.notes)
		EXPECT_GT(n.source.size(), 10u);
}

TEST(Machine, Whole)
{
	EXPECT_EQ(parse_machine(file(), "FILE").machine.poll, 600);
}

TEST(Machine, RefusalsNameTheParameterAndTheLimit)
{
	EXPECT_EQ(refusal(file("poll")), "FILE: [poll]: is missing");
	EXPECT_EQ(refusal(file() + entry("pol", "ns")),
		  "FILE: [pol]: is no parameter of the model");
	EXPECT_EQ(refusal(file("poll", entry("poll", "us"))),
		  "FILE: [poll]: unit is not \"ns\"");
	EXPECT_EQ(refusal(file("poll", entry("poll", "ns", "-1"))),
		  "FILE: [poll]: value -1 is not between 0 and 1000000000");
	EXPECT_EQ(refusal(file("poll", entry("poll", "ns", "nan"))),
		  "FILE: [poll]: value nan is not between 0 and 1000000000");
	EXPECT_EQ(refusal(file("engine", entry("engine", "GB/s", "0"))),
		  "FILE: [engine]: value 0 is not between 0.001 and 1000000");
	EXPECT_EQ(refusal(file("poll", entry("poll", "ns", "\"1\""))),
		  "FILE: [poll]: value is not a number");
	EXPECT_EQ(refusal(file("doorbell", entry("doorbell", "ns", "601"))),
		  "FILE: [doorbell]: is longer than schedule, of which it is part");
	EXPECT_EQ(refusal(file("poll", "[poll]\nvalue = 1\nunit = \"ns\"\n"
				       "basis = \"guessed\"\nsource = \"x\"\n")),
		  "FILE: [poll]: basis is not published, phases, fitted or assumed");
	EXPECT_EQ(refusal(file("poll", "[poll]\nvalue = 1\nunit = \"ns\"\n"
				       "basis = \"assumed\"\n")),
		  "FILE: [poll]: source is missing");
	EXPECT_TRUE(refusal("[poll\n").starts_with("FILE, line 1: "));
	EXPECT_THROW(read_machine("/nowhere"), std::runtime_error);
}

} // namespace
