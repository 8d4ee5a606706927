// SPDX-License-Identifier: MIT
// Any text as what the kernel reports of open files of GPUs, of processes and of cards,
// and what `top` shows of it. An input is texts separated by zero bytes: fdinfo, comm and
// a counter of a card at one time, and the same at a later time.
#include <array>
#include <charconv>
#include <cmath>
#include <format>
#include <optional>

#include "edge.hpp"
#include "json_text.hpp"
#include "top.hpp"
#include "usage.hpp"

using namespace sluice::cli;
using sluice::fuzz::must;
using sluice::fuzz::next_part;

namespace {

/// "12 KiB" is 12288, however large.
bool is_amount(std::string_view text, uint64_t n)
{
	constexpr std::pair<const char *, unsigned> units[] = {{" KiB", 1 << 10},
							       {" MiB", 1 << 20}};
	uint64_t said;
	auto [end, err] = std::from_chars(text.data(), text.data() + text.size(), said);

	if (err != std::errc())
		return false;
	for (auto [unit, times] : units)
		if (text.ends_with(unit))
			return n % times == 0 && n / times == said;
	return said == n;
}

/// Whether one of the lines says so.
bool says(std::string_view fdinfo, std::string_view key, uint64_t n)
{
	while (!fdinfo.empty()) {
		std::string_view line = next_part(fdinfo, '\n');

		if (!line.starts_with(key) || line.substr(key.size(), 1) != ":")
			continue;
		line.remove_prefix(key.size() + 1);
		line.remove_prefix(
			std::min(line.find_first_not_of(" \t"), line.size()));
		if (is_amount(line, n))
			return true;
	}
	return false;
}

std::optional<gpu_client> client(std::string_view fdinfo)
{
	auto c = parse_fdinfo(fdinfo);

	must(!c || fdinfo.contains("amdgpu"));
	if (!c)
		return c;
	must(!c->vram || says(fdinfo, "drm-memory-vram", c->vram));
	must(!c->gtt || says(fdinfo, "drm-memory-gtt", c->gtt));
	must(!c->id || says(fdinfo, "drm-client-id", c->id));
	must(!c->batches || says(fdinfo, "amd-sdma-batches", *c->batches));
	must(!c->batch_bytes || says(fdinfo, "amd-sdma-batch-bytes", *c->batch_bytes));
	for (const auto &[engine, ns] : c->busy_ns)
		must(says(fdinfo, "drm-engine-" + engine, ns));
	return c;
}

/// A counter is a number from the text.
std::optional<uint64_t> counter(std::string_view text)
{
	auto n = parse_counter(text);

	must(!n || text.contains(std::to_string(*n)));
	return n;
}

usage look(std::string_view &text, double us)
{
	usage all{.us = us, .clients = {}, .counters = {}};

	auto c = client(next_part(text, '\0'));
	std::string comm = command_in(next_part(text, '\0'));
	must(!comm.contains('\n'));
	if (c) {
		c->command = comm;
		all.clients.push_back(*c);
		c->id++; // another file with the same values
		c->pid = 1;
		all.clients.push_back(std::move(*c));
	}
	if (auto n = counter(next_part(text, '\0')))
		all.counters.push_back({us, "rxe0", "sent_bytes", *n});
	return all;
}

bool is_rate(const std::optional<double> &n)
{
	return !n || (std::isfinite(*n) && *n >= 0);
}

void rates(const usage_rates &of)
{
	must(of.seconds == 2);
	for (const gpu_rates &r : of.gpus) {
		must(is_rate(r.batches) && is_rate(r.batch_bytes));
		for (const auto &[engine, busy] : r.busy)
			must(is_rate(busy));
	}
	for (const nic_rate &r : of.nics)
		must(is_rate(r.a_second) &&
		     r.a_second <= static_cast<double>(r.total) / 2);
}

/// A terminal obeys foreign text, unless it is filtered.
void shown(const usage_rates &of)
{
	for (unsigned char c : top_text(of))
		must(c == '\n' || (c >= ' ' && c <= '~'));
	must(nlohmann::json::accept(json_text(top_json(of))));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	auto text = sluice::fuzz::text_at_the_edge(data, size);
	usage before = look(text, 1e6), now = look(text, 3e6);
	auto between = rates_between(before, now);

	must(between.gpus.size() == now.clients.size());
	rates(between);
	shown(between);
	return 0;
}
