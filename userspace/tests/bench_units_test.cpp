// SPDX-License-Identifier: MIT
// What `sluice bench` reads and writes: sizes, percentiles, plots, and the output of
// ib_write_bw.
#include <cstdint>
#include <numeric>
#include <sstream>

#include <gtest/gtest.h>

#include "bench.hpp"
#include "bench_wire.hpp"
#include "figures.hpp"
#include "perftest.hpp"
#include "svg_plot.hpp"

using namespace sluice;
using namespace sluice::cli;

namespace {

std::vector<double> up_to(int n)
{
	std::vector<double> all(static_cast<size_t>(n));

	// Backwards, so that they are not sorted.
	std::iota(all.rbegin(), all.rend(), 1);
	return all;
}

figures two_rows()
{
	figures all{.title = "host <to> svm", .note = "quiet", .depth = 16, .rows = {}};

	all.rows.push_back({.what = "write",
			    .bytes = 4096,
			    .rates = {3e6, 1e6, 2e6},
			    .latencies = up_to(1000),
			    .calls = 0.5,
			    .other_rates = {4e6}});
	all.rows.push_back({.what = "write",
			    .bytes = 16384,
			    .rates = {9e6},
			    .latencies = up_to(16),
			    .calls = 0,
			    .other_rates = {}});
	return all;
}

size_t count(const std::string &in, std::string_view what)
{
	size_t n = 0;

	for (size_t at = 0; (at = in.find(what, at)) != in.npos; at++)
		n++;
	return n;
}

using sizes = std::vector<uint64_t>;

} // namespace

TEST(BenchUnits, SizesAreARangeOrAList)
{
	EXPECT_EQ(parse_sizes("4K..64K"), (sizes{4096, 16384, 65536}));
	EXPECT_EQ(parse_sizes("1..5"), (sizes{1, 4, 5}));
	EXPECT_EQ(parse_sizes("4K..4K"), (sizes{4096}));
	EXPECT_EQ(parse_sizes("2M,512,1G"), (sizes{2 << 20, 512, 1 << 30}));
}

TEST(BenchUnits, SizesThatMakeNoSenseAreNamed)
{
	for (const char *text :
	     {"", "0", "4k", "4K,", ",4K", "4K..", "..4K", "2G", "1025M", "-1", "4KB",
	      "4K...8K", "16777217K", "99999999999999999999"}) {
		auto got = parse_sizes(text);

		ASSERT_FALSE(got) << text;
		EXPECT_EQ(got.error().code(), errc::usage) << text;
		EXPECT_EQ(got.error().where(), "--sizes");
	}
	EXPECT_FALSE(parse_sizes("8K..4K"));
}

TEST(BenchUnits, QuantilesAreValuesThatWereMeasured)
{
	EXPECT_EQ(quantile({7}, 0.5), 7);
	EXPECT_EQ(quantile(up_to(4), 0.5), 2);
	EXPECT_EQ(quantile(up_to(5), 0.5), 3);
	EXPECT_EQ(quantile(up_to(100), 0.99), 99);
	EXPECT_EQ(quantile(up_to(1000), 0.999), 999);
	EXPECT_EQ(quantile(up_to(10), 1), 10);
}

TEST(BenchUnits, FewSamplesTellNoHighPercentile)
{
	EXPECT_EQ(percentiles_of({}).n, 0u);
	EXPECT_FALSE(percentiles_of(up_to(99)).p99);
	EXPECT_EQ(percentiles_of(up_to(100)).p99, 99);
	EXPECT_FALSE(percentiles_of(up_to(999)).p999);
	EXPECT_EQ(percentiles_of(up_to(1000)).p999, 999);
}

TEST(BenchUnits, TheTableHasMediansAndTheirN)
{
	auto text = figures_text(two_rows());

	EXPECT_NE(text.find("write  4096   2.0   3  500.0   990.0  999.0  1000  "
			    "4.0          0.50"),
		  text.npos)
		<< text;
	EXPECT_NE(text.find("write  16384  9.0   1  8.0     -      -      16"),
		  text.npos)
		<< text;
	EXPECT_NE(text.find("quiet"), text.npos);
	for (size_t at = 0, end; at < text.size(); at = end + 1) {
		end = text.find('\n', at);
		EXPECT_LE(end - at, 80u) << text.substr(at, end - at);
	}
}

TEST(BenchUnits, JsonHasAllSamplesAndNoInventedPercentile)
{
	auto j = figures_json(two_rows());
	auto &first = j["results"][0], &second = j["results"][1];

	EXPECT_EQ(first["mb_per_s"]["samples"].size(), 3u);
	EXPECT_EQ(first["mb_per_s"]["median"], 2.0);
	EXPECT_EQ(first["latency_us"]["p99_9"], 999.0);
	EXPECT_EQ(first["ib_write_bw"]["ratio"], 0.5);
	EXPECT_TRUE(second["latency_us"]["p99"].is_null());
	EXPECT_FALSE(second.contains("ib_write_bw"));
	EXPECT_NE(j["environment"].get<std::string>().find("Linux"), std::string::npos);
}

TEST(BenchUnits, APlotHasALineForEachAndTheEnvironment)
{
	auto svg = svg_of(two_rows());

	EXPECT_EQ(count(svg, "<polyline"), 5u); // 2 rates, p50, p99, p99.9
	EXPECT_NE(svg.find("host &lt;to&gt; svm"), svg.npos);
	EXPECT_NE(svg.find("quiet</text>"), svg.npos);
	EXPECT_EQ(svg.find("nan"), svg.npos);
	EXPECT_EQ(svg.find("inf"), svg.npos);
	EXPECT_TRUE(svg.ends_with("</svg>\n"));
	// 9 MB/s is near the top of an axis that ends at 10, 2 MB/s is not.
	EXPECT_NE(svg.find("80.0,264.0 530.0,103.0"), svg.npos) << svg;
}

TEST(BenchUnits, APlotOfOnePointOrNoneHasAxes)
{
	figures all = two_rows();

	all.rows.resize(1);
	EXPECT_EQ(svg_of(all).find("nan"), std::string::npos);
	all.rows.clear();
	EXPECT_EQ(svg_of(all).find("nan"), std::string::npos);
}

TEST(BenchUnits, TheRateOfIbWriteBwIsRead)
{
	const char *printed =
		" local address: LID 0000 QPN 0x0012 PSN 0x6d34\n"
		" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   "
		"MsgRate[Mpps]\n"
		" 65536      100              1.31               0.80   \t\t 0.001526\n"
		"-----------------------------------------\n";

	EXPECT_EQ(perftest_rate(printed, 65536), 1e8);
	EXPECT_FALSE(perftest_rate(printed, 4096));
	EXPECT_FALSE(perftest_rate("Couldn't connect to 10.0.0.1:7473\n", 65536));
	EXPECT_FALSE(perftest_rate(" 65536 100 0.00 0.00 0.0\n", 65536));
}

TEST(BenchUnits, WhatIsNoRateIsNone)
{
	for (const char *line :
	     {"-18446744073709486080 100 1.31 0.80 0.001", "65536 -1 1.31 0.80",
	      "65536 100 1.31 1e300", "65536 100 1.31 0.80x", "65536 100 1.31 -0.80",
	      "65536 100 1.31", "65536 100 x 0.80", "+65536 1 1 1",
	      "65536 100 1.31 nan", "65536 100 1.31 inf"})
		EXPECT_FALSE(perftest_rate(line, 65536)) << line;
}

TEST(BenchUnits, TheValueOfAKeyIsFound)
{
	std::istringstream cpus(
		"processor\t: 0\nmodel name\t: A: B\nmodel name\t: C\n"),
		none("model name\t:\nmodel namex\n"), empty;

	EXPECT_EQ(first_of(cpus, "model name"), "A: B");
	EXPECT_EQ(first_of(none, "model name"), "");
	EXPECT_EQ(first_of(empty, "model name"), "");
}

TEST(BenchUnits, WhatThePeerSaysIsChecked)
{
	bench_message m{.what = bench_message::memory,
			.size = 4096,
			.address = 0x7f0000000000,
			.key = 5};
	auto bytes = std::as_bytes(std::span(&m, 1));

	ASSERT_TRUE(read_message(bytes));
	EXPECT_FALSE(read_message(bytes.first(bytes.size() - 1)));
	EXPECT_TRUE(memory_in(m, 4096));
	EXPECT_FALSE(memory_in(m, 4097));
	m.address = UINT64_MAX - 4095; // it ends after the last address
	EXPECT_FALSE(memory_in(m, 4096));
	m.address = 0;
	m.key = uint64_t{1} << 32; // keys have 32 bits
	EXPECT_FALSE(memory_in(m, 4096));
	m.magic = 0;
	EXPECT_FALSE(read_message(bytes));
	bench_message writes{
		.what = bench_message::compare, .size = 1, .count = 5, .depth = 1};
	EXPECT_TRUE(asks_for_writes(writes));
	EXPECT_FALSE(asks_for_memory(writes));
	writes.count = 4;
	EXPECT_FALSE(asks_for_writes(writes));
}

TEST(BenchUnits, IbWriteBwDoesTheSameWrites)
{
	auto words = perftest_words(
		{.nic = "rxe0", .port = 7473, .bytes = 4096, .count = 2, .depth = 16},
		"10.0.0.1");
	std::string line;

	for (const auto &word : words)
		line += word + " ";
	EXPECT_EQ(line, "ib_write_bw -F --report_gbits -d rxe0 -p 7473 -s 4096 -n 5 "
			"-t 16 -Q 4 10.0.0.1 ");
}

TEST(BenchUnits, LargeOperationsAreFewerButNeverNone)
{
	bench_options o;

	o.sizes = {4096, 16 << 20};
	o.total = 64 << 20;
	EXPECT_EQ(o.count(4096), 16384u);
	EXPECT_EQ(o.count(16 << 20), 16u); // the depth
	EXPECT_EQ(o.singles(4096), 1000u);
	EXPECT_EQ(o.singles(16 << 20), 16u);
	EXPECT_EQ(o.largest(), 16u << 20);
}
