// SPDX-License-Identifier: MIT
#include "usage.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "number.hpp"

namespace sluice::cli {

namespace {

namespace fs = std::filesystem;
using namespace std::string_view_literals;

/// "123", "123 ns" or "4 KiB".
std::optional<uint64_t> parse_amount(std::string_view text)
{
	uint64_t n = 0;
	auto [end, err] = std::from_chars(text.data(), text.data() + text.size(), n);
	std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));

	if (err != std::errc())
		return std::nullopt;
	int shift = unit == " KiB"sv					? 10
		    : unit == " MiB"sv					? 20
		    : unit.empty() || unit == " ns"sv || unit == " B"sv ? 0
									: -1;
	if (shift < 0 || n > UINT64_MAX >> shift)
		return std::nullopt;
	return n << shift;
}

void take_amount(std::string_view key, uint64_t n, gpu_client &to)
{
	constexpr std::string_view engine = "drm-engine-",
				   capacity = "drm-engine-capacity-";

	if (key == "drm-client-id"sv)
		to.id = n;
	else if (key == "drm-memory-vram"sv)
		to.vram = n;
	else if (key == "drm-memory-gtt"sv)
		to.gtt = n;
	else if (key == "amd-sdma-batches"sv)
		to.batches = n;
	else if (key == "amd-sdma-batch-bytes"sv)
		to.batch_bytes = n;
	else if (key.starts_with(engine) && !key.starts_with(capacity))
		to.busy_ns[std::string(key.substr(engine.size()))] = n;
}

std::string read_text(const fs::path &path)
{
	std::ifstream file(path, std::ios::binary);
	std::ostringstream all;

	all << file.rdbuf();
	return all.str();
}

std::optional<uint64_t> pid_of(const fs::path &directory)
{
	uint64_t pid = 0;

	return parse_number(directory.filename().native(), pid) ? std::optional(pid)
								: std::nullopt;
}

using directory = fs::directory_iterator;

void add_process(const fs::path &process, uint64_t pid,
		 std::set<std::pair<std::string, uint64_t>> &seen, usage &to)
{
	std::error_code err;

	// A process may exit at any time, or belong to another user.
	for (directory at(process / "fdinfo", err), end; !err && at != end;
	     at.increment(err)) {
		auto client = parse_fdinfo(read_text(at->path()));

		if (!client || !seen.emplace(client->gpu, client->id).second)
			continue;
		client->pid = pid;
		client->command = command_in(read_text(process / "comm"));
		to.clients.push_back(std::move(*client));
	}
}

/// A file may be seen in another process than before: the kernel counts for the file.
using client_key = std::pair<std::string, uint64_t>;

client_key key_of(const gpu_client &c)
{
	return {c.gpu, c.id};
}

void add(std::optional<double> &to, const std::optional<uint64_t> &before,
	 const std::optional<uint64_t> &now, double seconds)
{
	if (now)
		to = to.value_or(0) +
		     static_cast<double>(counted_since(before.value_or(0), *now)) /
			     seconds;
}

void add_client(gpu_rates &to, const gpu_client &before, const gpu_client &now,
		double seconds)
{
	to.vram += now.vram;
	to.gtt += now.gtt;
	add(to.batches, before.batches, now.batches, seconds);
	add(to.batch_bytes, before.batch_bytes, now.batch_bytes, seconds);
	for (const auto &[engine, ns] : now.busy_ns) {
		auto was = before.busy_ns.find(engine);

		to.busy[engine] +=
			static_cast<double>(counted_since(
				was == before.busy_ns.end() ? 0 : was->second, ns)) /
			1e9 / seconds;
	}
}

std::vector<gpu_rates> gpu_rates_of(const usage &before, const usage &now,
				    double seconds)
{
	std::map<client_key, const gpu_client *> old;
	std::map<std::pair<uint64_t, std::string>, gpu_rates> rows;
	std::vector<gpu_rates> all;

	for (const gpu_client &c : before.clients)
		old[key_of(c)] = &c;
	for (const gpu_client &c : now.clients) {
		gpu_rates &row = rows[{c.pid, c.gpu}];
		auto was = old.find(key_of(c));

		row.pid = c.pid;
		row.command = c.command;
		row.gpu = c.gpu;
		add_client(row, was == old.end() ? gpu_client() : *was->second, c,
			   seconds);
	}
	for (auto &[key, row] : rows)
		all.push_back(std::move(row));
	std::ranges::stable_sort(all, std::greater(), [](const gpu_rates &r) {
		return r.batch_bytes.value_or(0);
	});
	return all;
}

void add_power(const usage &before, const usage &now, usage_rates &to)
{
	for (const energy_sample &s : now.energy) {
		auto was = std::ranges::find(before.energy, s.gpu, &energy_sample::gpu);

		if (was == before.energy.end())
			continue;
		if (auto used = energy_between(*was, s))
			to.power.push_back({s.gpu, *used});
		else
			to.no_energy.push_back(s.gpu + ": the firmware has added up no "
						       "energy meanwhile");
	}
}

double dma_of(const gpu_rates &r)
{
	auto busy = r.busy.find("dma");

	return busy == r.busy.end() ? 0 : busy->second;
}

/// The power of HBM in proportion to the bytes of batches; that of AIDs, which have the
/// SDMA engines, in proportion to the time for which these were busy.
void share_power(gpu_power &of, double seconds, std::vector<gpu_rates> &rows)
{
	double bytes = 0, busy = 0;

	for (const gpu_rates &r : rows)
		if (r.gpu == of.gpu) {
			bytes += r.batch_bytes.value_or(0);
			busy += dma_of(r);
		}
	if (bytes > 0)
		of.joules_per_gb = of.used.copies() / (bytes * seconds / 1e9);
	if (bytes <= 0 && busy <= 0)
		return;
	for (gpu_rates &r : rows) {
		const double dma = dma_of(r);

		if (r.gpu != of.gpu || (!r.batch_bytes && dma <= 0))
			continue;
		double by_bytes = bytes > 0 ? r.batch_bytes.value_or(0) / bytes : 0;
		double by_time = busy > 0 ? dma / busy : by_bytes;

		r.copy_watts = (of.used.hbm * by_bytes + of.used.aid * by_time) /
			       of.used.seconds;
	}
}

} // namespace

std::optional<gpu_client> parse_fdinfo(std::string_view text)
{
	gpu_client c;
	bool amdgpu = false;

	while (!text.empty()) {
		size_t end = std::min(text.find('\n'), text.size());
		std::string_view line = text.substr(0, end);
		size_t colon = line.find(':');

		text.remove_prefix(std::min(end + 1, text.size()));
		if (colon == line.npos)
			continue;
		std::string_view key = line.substr(0, colon);
		std::string_view value = line.substr(colon + 1);
		value.remove_prefix(
			std::min(value.find_first_not_of(" \t"), value.size()));
		if (key == "drm-driver"sv)
			amdgpu = value == "amdgpu"sv;
		else if (key == "drm-pdev"sv)
			c.gpu = value;
		else if (auto n = parse_amount(value))
			take_amount(key, *n, c);
	}
	return amdgpu ? std::optional(std::move(c)) : std::nullopt;
}

std::string command_in(std::string_view comm)
{
	return std::string(comm.substr(0, comm.find('\n')));
}

usage read_usage(std::string_view root)
{
	usage all{.us = monotonic_us(), .clients = {}, .counters = {}};
	std::set<std::pair<std::string, uint64_t>> seen;
	std::error_code err;

	for (directory at(fs::path(root) / "proc", err), end; !err && at != end;
	     at.increment(err))
		if (auto pid = pid_of(at->path()))
			add_process(at->path(), *pid, seen, all);
	all.counters = read_nic_counters(root);
	for (const std::string &gpu : amdgpu_addresses(root))
		if (auto sample = read_energy(root, gpu))
			all.energy.push_back(*std::move(sample));
		else
			all.no_energy.emplace_back(sample.error().message());
	return all;
}

usage_rates rates_between(const usage &before, const usage &now)
{
	usage_rates all{.seconds = (now.us - before.us) / 1e6, .gpus = {}, .nics = {}};
	std::map<std::pair<std::string, std::string>, uint64_t> old;

	all.gpus = gpu_rates_of(before, now, all.seconds);
	all.no_energy = now.no_energy;
	add_power(before, now, all);
	for (gpu_power &p : all.power)
		share_power(p, all.seconds, all.gpus);
	for (const nic_sample &s : before.counters)
		old[{s.nic, s.counter}] = s.value;
	for (const nic_sample &s : now.counters) {
		auto was = old.find({s.nic, s.counter});
		uint64_t from = was == old.end() ? s.value : was->second;

		all.nics.push_back({s.nic, s.counter,
				    static_cast<double>(counted_since(from, s.value)) /
					    all.seconds,
				    s.value});
	}
	return all;
}

} // namespace sluice::cli
