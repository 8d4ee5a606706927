// SPDX-License-Identifier: MIT
#include <vector>

#include <gtest/gtest.h>

#include "options.hpp"

using namespace xfer;

namespace {

Parsed parse(std::vector<const char *> words)
{
	words.insert(words.begin(), "sluice-xfer");
	return parse_options(static_cast<int>(words.size()), words.data());
}

} // namespace

TEST(Options, SendDefaults)
{
	auto parsed = parse({"send", "--to", "b", "file"});

	ASSERT_TRUE(parsed.options) << parsed.text;
	const Options &o = *parsed.options;
	EXPECT_EQ(o.role, Options::role::send);
	EXPECT_EQ(o.file, "file");
	EXPECT_EQ(o.chunk, 1u << 20);
	EXPECT_EQ(o.window, 64u << 20);
	EXPECT_EQ(o.memory, "system");
	EXPECT_TRUE(o.on_demand);
	EXPECT_EQ(o.timeout, std::chrono::seconds(30));
}

TEST(Options, Sizes)
{
	auto parsed = parse({"send", "--to", "b", "f", "--chunk", "64K",
			     "--window", "1G"});

	ASSERT_TRUE(parsed.options) << parsed.text;
	EXPECT_EQ(parsed.options->chunk, 64u << 10);
	EXPECT_EQ(parsed.options->window, uint64_t{1} << 30);
}

TEST(Options, Receive)
{
	auto parsed = parse({"receive", "--memory", "/dev/peer_mem1", "--alias",
			     "no-cpu", "--credits", "3", "--verify", "port"});

	ASSERT_TRUE(parsed.options) << parsed.text;
	EXPECT_EQ(parsed.options->role, Options::role::receive);
	EXPECT_EQ(parsed.options->alias, memory_alias::no_cpu);
	EXPECT_EQ(parsed.options->credits, 3u);
	EXPECT_EQ(parsed.options->verify, "port");
}

TEST(Options, RefusesNonsense)
{
	const std::vector<std::vector<const char *>> bad = {
		{},
		{"steal"},
		{"send"},
		{"send", "file"},
		{"send", "--to", "b"},
		{"send", "--to", "b", "f", "--chunk", "0"},
		{"send", "--to", "b", "f", "--chunk", "1"},
		{"send", "--to", "b", "f", "--chunk", "4097"},
		{"send", "--to", "b", "f", "--chunk", "-4096"},
		{"send", "--to", "b", "f", "--chunk", "many"},
		{"send", "--to", "b", "f", "--chunk", "1G"},
		{"send", "--to", "b", "f", "--chunk", "2M", "--window", "1M"},
		{"send", "--to", "b", "f", "--depth", "0"},
		{"send", "--to", "b", "f", "--depth", "100000"},
		{"send", "--to", "b", "f", "--port", "0"},
		{"send", "--to", "b", "f", "--port", "65536"},
		{"send", "--to", "b", "f", "--timeout", "0"},
		{"send", "--to", "b", "f", "--alias", "no-cpu"},
		{"send", "--to", "b", "f", "--unknown"},
		{"receive", "--credits", "0"},
		{"receive", "--window", "5000"},
		{"receive", "--window", "0"},
		{"receive", "--alias", "maybe"},
		{"receive", "--memory", "/dev/x", "--registration", "pinned"},
	};

	for (const auto &words : bad) {
		auto parsed = parse(words);
		std::string line;

		for (const char *word : words)
			line += std::string(word) + " ";
		EXPECT_FALSE(parsed.options) << line;
		EXPECT_EQ(parsed.status, exit_status::usage) << line;
		EXPECT_FALSE(parsed.text.empty()) << line;
	}
}

TEST(Options, Help)
{
	auto parsed = parse({"--help"});

	EXPECT_FALSE(parsed.options);
	EXPECT_EQ(parsed.status, exit_status::ok);
	EXPECT_NE(parsed.text.find("Exit status"), std::string::npos);
}

TEST(Errors, NamesThereAndBack)
{
	for (errc code : {errc::system, errc::usage, errc::input, errc::device,
			  errc::peer_lost, errc::peer_error, errc::protocol,
			  errc::timeout, errc::corrupt}) {
		EXPECT_EQ(errc_from_name(name(code)), code);
		EXPECT_NE(status_of(code), exit_status::ok);
	}
	EXPECT_EQ(errc_from_name("sunspots"), errc::peer_error);
}
