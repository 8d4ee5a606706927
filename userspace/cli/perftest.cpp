// SPDX-License-Identifier: MIT
#include "perftest.hpp"

#include <algorithm>
#include <array>
#include <sstream>

#include "number.hpp"

namespace sluice::cli {

namespace {

constexpr double most_gigabits = 1e9; // of a card; excludes "inf"

} // namespace

// It requires five writes, and completions no rarer than writes in flight.
std::vector<std::string> perftest_words(const perftest_run &of, const std::string &host)
{
	std::vector<std::string> words = {
		"ib_write_bw",
		"-F",
		"--report_gbits",
		"-d",
		of.nic,
		"-p",
		std::to_string(of.port),
		"-s",
		std::to_string(of.bytes),
		"-n",
		std::to_string(std::max<uint64_t>(of.count, 5)),
		"-t",
		std::to_string(of.depth),
		"-Q",
		std::to_string(std::min(of.depth, 4u))};

	if (!host.empty())
		words.push_back(host);
	return words;
}

// A line of numbers: bytes, writes, Gb/s at best, Gb/s on average, ...
std::optional<double> perftest_rate(std::string_view printed, uint64_t bytes)
{
	std::istringstream lines{std::string(printed)};

	for (std::string line; std::getline(lines, line);) {
		std::istringstream words(line);
		std::array<std::string, 4> word;
		uint64_t size = 0, count = 0;
		double best = 0, average = 0;

		for (std::string &each : word)
			words >> each;
		if (parse_number(word[0], size) && parse_number(word[1], count) &&
		    parse_number(word[2], best) && parse_number(word[3], average) &&
		    size == bytes && average > 0 && average < most_gigabits)
			return average * 1e9 / 8;
	}
	return std::nullopt;
}

} // namespace sluice::cli
