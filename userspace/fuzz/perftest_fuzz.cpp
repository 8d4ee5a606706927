// SPDX-License-Identifier: MIT
// Any text as the output of other programs that the bench reads: ib_write_bw, and the
// kernel in /proc/cpuinfo. An input that begins with a zero byte is numbers, which are
// printed as by ib_write_bw, between lines that are the rest of the input.
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <format>
#include <sstream>
#include <vector>

#include "edge.hpp"
#include "figures.hpp"
#include "perftest.hpp"

using namespace sluice::cli;
using sluice::fuzz::must;
using sluice::fuzz::next_part;

namespace {

constexpr uint64_t sizes[] = {1, 4096, 65536, uint64_t{1} << 30};

std::vector<std::string> words_of(std::string_view line)
{
	std::istringstream all{std::string(line)};
	std::vector<std::string> words;

	for (std::string word; all >> word;)
		words.push_back(word);
	return words;
}

/// Whether a line reports this rate for writes of @p bytes.
bool says(std::string_view line, uint64_t bytes, double rate)
{
	auto words = words_of(line);
	uint64_t size = 0;

	if (words.size() < 4)
		return false;
	std::from_chars(words[0].data(), words[0].data() + words[0].size(), size);
	if (size != bytes)
		return false;
	char *end;
	double gigabits = std::strtod(words[3].c_str(), &end);
	return *end == 0 && gigabits * 1e9 / 8 == rate;
}

void any(std::string_view printed)
{
	for (uint64_t bytes : sizes) {
		auto rate = perftest_rate(printed, bytes);
		bool said = false;

		if (!rate)
			continue;
		must(std::isfinite(*rate) && *rate > 0);
		for (std::string_view rest = printed; !rest.empty();)
			said |= says(next_part(rest, '\n'), bytes, *rate);
		must(said);
	}
}

void written(std::string_view input)
{
	struct {
		uint32_t bytes, count, best, average;
	} of{};
	input.copy(reinterpret_cast<char *>(&of), sizeof(of));
	input.remove_prefix(std::min(sizeof(of), input.size()));
	std::string before(next_part(input, '\0'));
	double average = of.average / 100.0;

	std::string line = std::format(" {:<10} {:<10}       {:<7.2f}            "
				       "{:<7.2f} \t\t {:<7.6f}\n",
				       of.bytes, of.count, of.best / 100.0, average,
				       of.best / 1e6);
	auto rate = perftest_rate(before + "\n" + line + std::string(input), of.bytes);
	auto earlier = perftest_rate(before, of.bytes);
	if (earlier)
		must(rate == earlier);
	else if (of.average)
		must(rate && std::abs(*rate - average * 1e9 / 8) <= 1);
}

void cpuinfo(std::string_view text)
{
	constexpr std::string_view key = "model name";
	std::istringstream file{std::string(text)};
	std::string name = first_of(file, key);

	if (name.empty())
		return;
	must(!name.contains('\n') && text.contains(": " + name));
	must(text.contains(key));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	auto text = sluice::fuzz::text_at_the_edge(data, size);

	if (text.starts_with('\0'))
		return written(text.substr(1)), 0;
	any(text);
	cpuinfo(text);
	return 0;
}
