// SPDX-License-Identifier: MIT
#include "text.hpp"

#include <algorithm>
#include <array>
#include <format>

namespace sluice::cli {

// A terminal obeys some characters, and others do not take one column per byte.
std::string printable(std::string_view text)
{
	std::string plain(text);

	std::ranges::replace_if(plain, [](char c) { return c < ' ' || c > '~'; }, '?');
	return plain;
}

std::string hanging(std::string_view head, std::string_view words)
{
	return hanging(head, words, std::string(head.size(), ' '));
}

std::string hanging(std::string_view head, std::string_view words,
		    std::string_view indent)
{
	const std::string plain = printable(words);
	std::string_view text = plain;
	std::string result = printable(head), line;
	bool first = true;
	auto end_line = [&] {
		result += first ? "" : indent;
		result += line + "\n";
		first = false;
		line.clear();
	};

	while (!text.empty()) {
		size_t end = std::min(text.find(' '), text.size());
		std::string_view word = text.substr(0, end);

		text.remove_prefix(std::min(end + 1, text.size()));
		if (!line.empty() &&
		    head.size() + line.size() + 1 + word.size() > columns)
			end_line();
		line += line.empty() ? "" : " ";
		line += word;
	}
	end_line();
	return result;
}

std::string aligned(const std::vector<std::vector<std::string>> &rows)
{
	std::vector<size_t> widths;
	std::string text;

	for (const auto &row : rows) {
		widths.resize(std::max(widths.size(), row.size()));
		for (size_t i = 0; i < row.size(); i++)
			widths[i] = std::max(widths[i], row[i].size());
	}
	for (const auto &row : rows) {
		std::string line;

		for (size_t i = 0; i < row.size(); i++)
			line += std::format("  {:<{}}", printable(row[i]), widths[i]);
		line.resize(line.find_last_not_of(' ') + 1);
		text += line + "\n";
	}
	return text;
}

std::string size_text(uint64_t bytes)
{
	constexpr std::array units = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	auto value = static_cast<double>(bytes);
	size_t unit = 0;

	while (value >= 1000 && unit + 1 < units.size()) {
		value /= 1024;
		unit++;
	}
	return std::format("{:.3g} {}", value, units[unit]);
}

std::string bits_text(double bits_per_second)
{
	return std::format("{:.3g} Gb/s", bits_per_second / 1e9);
}

std::string rate_text(double bytes_per_second)
{
	return std::format("{:.3g} GB/s", bytes_per_second / 1e9);
}

} // namespace sluice::cli
