// SPDX-License-Identifier: MIT
#include "figures.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <format>
#include <fstream>
#include <sys/utsname.h>
#include <thread>

#include "svg_plot.hpp"
#include "text.hpp"

namespace sluice::cli {

namespace {

constexpr uint64_t most_bytes = uint64_t{1} << 30;

std::unexpected<error> bad_size(std::string_view text)
{
	return fail(errc::usage, "--sizes",
		    std::format("\"{}\" is no size from 1 to 1G, such as 4K", text));
}

result<uint64_t> parse_size(std::string_view text)
{
	uint64_t n = 0;
	auto [end, err] = std::from_chars(text.data(), text.data() + text.size(), n);
	std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
	int shift = unit.empty()  ? 0
		    : unit == "K" ? 10
		    : unit == "M" ? 20
		    : unit == "G" ? 30
				  : -1;

	if (err != std::errc() || shift < 0 || n == 0 || n > most_bytes >> shift)
		return bad_size(text);
	return n << shift;
}

result<std::vector<uint64_t>> parse_range(std::string_view first, std::string_view last)
{
	auto from = parse_size(first), to = parse_size(last);
	std::vector<uint64_t> all;

	if (!from || !to)
		return std::unexpected(from ? to.error() : from.error());
	if (*from > *to)
		return fail(errc::usage, "--sizes",
			    std::format("{} is above {}", first, last));
	for (uint64_t n = *from; n < *to; n *= 4)
		all.push_back(n);
	all.push_back(*to);
	return all;
}

std::string megabytes(double bytes_per_second)
{
	return std::format("{:.1f}", bytes_per_second / 1e6);
}

std::string microseconds(const std::optional<double> &us)
{
	return us ? std::format("{:.1f}", *us) : "-";
}

plot_line &named(std::vector<plot_line> &lines, const std::string &name)
{
	for (plot_line &line : lines)
		if (line.name == name)
			return line;
	return lines.emplace_back(plot_line{.name = name, .points = {}});
}

std::string energy_lines(const figures &all)
{
	std::string lines;

	for (const figure &f : all.rows)
		if (f.energy)
			lines += hanging("  ", std::format("{} {}: {}", f.what, f.bytes,
							   energy_text(*f.energy)));
	if (!lines.empty())
		lines = "energy\n" + lines +
			hanging("  ",
				"of all that the GPUs did in the "
				"rounds, idling too; +-: how much may be of before and after. NOT "
				"verified on hardware.");
	return all.no_energy.empty() ? lines : lines + hanging("  ", all.no_energy);
}

} // namespace

result<std::vector<uint64_t>> parse_sizes(std::string_view text)
{
	if (size_t dots = text.find(".."); dots != text.npos)
		return parse_range(text.substr(0, dots), text.substr(dots + 2));
	std::vector<uint64_t> all;
	for (bool more = true; more;) {
		size_t end = std::min(text.find(','), text.size());
		auto n = parse_size(text.substr(0, end));

		if (!n)
			return std::unexpected(n.error());
		all.push_back(*n);
		more = end < text.size();
		text.remove_prefix(std::min(end + 1, text.size()));
	}
	return all;
}

// Nearest rank: always a measured value.
double quantile(std::vector<double> all, double q)
{
	double rank = std::ceil(q * static_cast<double>(all.size()));
	auto at = static_cast<size_t>(std::max(rank, 1.0)) - 1;

	std::ranges::nth_element(all, all.begin() + static_cast<ptrdiff_t>(at));
	return all[at];
}

percentiles percentiles_of(const std::vector<double> &all)
{
	percentiles p{.n = all.size()};

	if (!all.empty())
		p.p50 = quantile(all, 0.5);
	if (all.size() >= 100)
		p.p99 = quantile(all, 0.99);
	if (all.size() >= 1000)
		p.p999 = quantile(all, 0.999);
	return p;
}

std::optional<double> figure::other_rate() const
{
	if (other_rates.empty())
		return std::nullopt;
	return quantile(other_rates, 0.5);
}

std::optional<double> figure::ratio() const
{
	auto other = other_rate();

	if (!other || *other <= 0)
		return std::nullopt;
	return rate() / *other;
}

std::string first_of(std::istream &from, std::string_view key)
{
	for (std::string line; std::getline(from, line);)
		if (size_t colon = line.find(": ");
		    line.starts_with(key) && colon != line.npos)
			return line.substr(colon + 2);
	return "";
}

std::string environment_text()
{
	std::ifstream cpus("/proc/cpuinfo");
	utsname system{};

	::uname(&system);
	return std::format("Linux {}, {}, {} CPUs", system.release,
			   first_of(cpus, "model name"),
			   std::thread::hardware_concurrency());
}

std::string svg_of(const figures &all)
{
	plot_panel rates{"MB/s (10^6 bytes a second of whole time)", {}, false};
	plot_panel times{"microseconds, one at a time", {}, true};

	for (const figure &f : all.rows) {
		auto size = static_cast<double>(f.bytes);
		auto p = percentiles_of(f.latencies);
		auto add = [&](plot_panel &to, const std::string &name, double value) {
			named(to.lines, name).points.emplace_back(size, value);
		};

		add(rates, f.what, f.rate() / 1e6);
		if (auto other = f.other_rate())
			add(rates, "ib_write_bw", *other / 1e6);
		if (p.n)
			add(times, f.what + " p50", p.p50);
		if (p.p99)
			add(times, f.what + " p99", *p.p99);
		if (p.p999)
			add(times, f.what + " p99.9", *p.p999);
	}
	return svg_plot(all.title, {rates, times},
			environment_text() + (all.note.empty() ? "" : "; " + all.note));
}

std::string figures_text(const figures &all)
{
	bool other = std::ranges::any_of(
		all.rows, [](const figure &f) { return !f.other_rates.empty(); });
	std::vector<std::vector<std::string>> table{
		{"what", "bytes", "MB/s", "n", "p50 us", "p99", "p99.9", "n"}};

	if (other)
		table[0].insert(table[0].end(), {"ib_write_bw", "ratio"});
	for (const figure &f : all.rows) {
		auto p = percentiles_of(f.latencies);

		table.push_back(
			{f.what, std::to_string(f.bytes), megabytes(f.rate()),
			 std::to_string(f.rates.size()),
			 microseconds(p.n ? std::optional(p.p50) : std::nullopt),
			 microseconds(p.p99), microseconds(p.p999),
			 std::to_string(p.n)});
		if (auto r = f.ratio(), rate = f.other_rate(); r && rate)
			table.back().insert(
				table.back().end(),
				{megabytes(*rate), std::format("{:.2f}", *r)});
		else if (other)
			table.back().insert(table.back().end(), {"-", "-"});
	}
	return hanging("", all.title) + aligned(table) + energy_lines(all) +
	       hanging("  ",
		       std::format(
			       "MB/s: 10^6 bytes a second of whole time, median of n rounds, {} "
			       "under way at once. us: one at a time; \"-\": n is too small.",
			       all.depth)) +
	       hanging("  ",
		       environment_text() + (all.note.empty() ? "" : "; " + all.note));
}

nlohmann::ordered_json energy_json(const energy_used &of)
{
	return {{"window_s", of.seconds},
		{"uncertainty", of.uncertainty},
		{"joules",
		 {{"xcd", of.xcd},
		  {"aid", of.aid},
		  {"hbm", of.hbm},
		  {"socket", of.socket}}},
		{"verified_on_hardware", false}};
}

nlohmann::ordered_json figures_json(const figures &all)
{
	nlohmann::ordered_json rows = nlohmann::ordered_json::array();

	for (const figure &f : all.rows) {
		auto p = percentiles_of(f.latencies);
		nlohmann::ordered_json row = {
			{"what", f.what},
			{"bytes", f.bytes},
			{"mb_per_s",
			 {{"median", f.rate() / 1e6}, {"n", f.rates.size()}}},
			{"latency_us",
			 {{"p50", nullptr},
			  {"p99", nullptr},
			  {"p99_9", nullptr},
			  {"n", p.n}}},
			{"system_calls", f.calls},
			{"cpu_us", f.cpu_us},
			{"energy", nullptr},
		};

		for (double r : f.rates)
			row["mb_per_s"]["samples"].push_back(r / 1e6);
		if (p.n)
			row["latency_us"]["p50"] = p.p50;
		if (p.p99)
			row["latency_us"]["p99"] = *p.p99;
		if (p.p999)
			row["latency_us"]["p99_9"] = *p.p999;
		if (auto r = f.ratio(), rate = f.other_rate(); r && rate)
			row["ib_write_bw"] = {{"mb_per_s", *rate / 1e6},
					      {"n", f.other_rates.size()},
					      {"ratio", *r}};
		if (const auto &energy = f.energy)
			row["energy"] = energy_json(*energy);
		rows.push_back(std::move(row));
	}
	return {{"title", all.title},	      {"environment", environment_text()},
		{"note", all.note},	      {"depth", all.depth},
		{"no_energy", all.no_energy}, {"results", std::move(rows)}};
}

} // namespace sluice::cli
