// SPDX-License-Identifier: MIT
#include "power.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <format>
#include <fstream>
#include <iterator>

#include "try.hpp"

namespace sluice::cli {

namespace {

namespace fs = std::filesystem;

constexpr double joules = 1.0 / 65536, tick_s = 10e-9;

template <class T> T number_at(std::string_view bytes, size_t at)
{
	T n;

	std::memcpy(&n, bytes.data() + at, sizeof(n));
	return n;
}

fs::path driven(std::string_view root)
{
	return fs::path(root) / "sys/bus/pci/drivers/amdgpu";
}

std::string version_text(uint32_t mp1)
{
	return std::format("{}.{}.{}", mp1 >> 24, mp1 >> 16 & 0xff, mp1 >> 8 & 0xff);
}

} // namespace

result<energy_sample> parse_pm_metrics(std::string_view bytes, const std::string &gpu)
{
	if (bytes.size() < pm_metrics::table)
		return fail(errc::input, gpu,
			    std::format("pm_metrics has {} bytes, its header has {}",
					bytes.size(), pm_metrics::table));
	// the last byte tells variants, which have the same table
	auto mp1 = number_at<uint32_t>(bytes, pm_metrics::mp1_version);
	if ((mp1 & ~0xffu) != pm_metrics::mi300)
		return fail(
			errc::unsupported, gpu,
			std::format(
				"pm_metrics is that of a power controller {}, known is {}",
				version_text(mp1), version_text(pm_metrics::mi300)));
	if (bytes.size() < pm_metrics::end)
		return fail(errc::input, gpu,
			    std::format("pm_metrics has {} bytes, {} are wanted",
					bytes.size(), pm_metrics::end));
	auto at = [&](size_t offset) { return number_at<uint64_t>(bytes, offset); };
	return energy_sample{gpu,
			     number_at<uint32_t>(bytes, pm_metrics::updates),
			     at(pm_metrics::time),
			     at(pm_metrics::socket),
			     at(pm_metrics::xcd),
			     at(pm_metrics::aid),
			     at(pm_metrics::hbm)};
}

result<energy_sample> read_energy(std::string_view root, const std::string &gpu)
{
	const fs::path path = driven(root) / gpu / "pm_metrics";
	std::error_code ignored;

	if (!fs::exists(path, ignored))
		return fail(errc::unsupported, gpu,
			    "no energy is told: it has no "
			    "pm_metrics, which GPUs of MI300's kind have");
	std::ifstream file(path, std::ios::binary);
	std::string bytes(std::istreambuf_iterator<char>(file), {});
	if (file.bad() || bytes.empty())
		return fail(errc::device, gpu,
			    "pm_metrics cannot be read: the GPU may "
			    "be asleep, or others may not read it");
	return parse_pm_metrics(bytes, gpu);
}

std::vector<std::string> amdgpu_addresses(std::string_view root)
{
	std::vector<std::string> all;
	std::error_code err;

	// beside the devices there are files such as bind, and the module
	for (fs::directory_iterator at(driven(root), err), end; !err && at != end;
	     at.increment(err))
		if (auto name = at->path().filename().string(); name.contains(':'))
			all.push_back(name);
	std::ranges::sort(all);
	return all;
}

std::optional<energy_used> energy_between(const energy_sample &before,
					  const energy_sample &now)
{
	auto part = [&](uint64_t energy_sample::*of) {
		return static_cast<double>(now.*of - before.*of) * joules;
	};

	if (now.updates == before.updates || now.time <= before.time ||
	    now.socket < before.socket || now.xcd < before.xcd ||
	    now.aid < before.aid || now.hbm < before.hbm)
		return std::nullopt;
	// 32 bits: it may wrap around
	const uint32_t updates = now.updates - before.updates;
	return energy_used{static_cast<double>(now.time - before.time) * tick_s,
			   2.0 / updates,
			   part(&energy_sample::socket),
			   part(&energy_sample::xcd),
			   part(&energy_sample::aid),
			   part(&energy_sample::hbm)};
}

std::string energy_text(const energy_used &of)
{
	return std::format(
		"XCD {:.3g}, AID {:.3g}, HBM {:.3g}, socket {:.3g} J in {:.1f} "
		"ms +- {:.2g} %",
		of.xcd, of.aid, of.hbm, of.socket, of.seconds * 1e3,
		of.uncertainty * 100);
}

energy_meter::energy_meter(std::string_view root, std::span<const std::string> gpus)
	: root_(root), gpus_(gpus.begin(), gpus.end()), before_(look())
{
}

energy_meter::samples energy_meter::look() const
{
	std::vector<energy_sample> all;

	for (const std::string &gpu : gpus_) {
		SLUICE_TRY(auto sample, read_energy(root_, gpu));
		all.push_back(std::move(sample));
	}
	return all;
}

result<energy_used> energy_meter::used() const
{
	energy_used all;

	SLUICE_TRY(auto before, before_);
	SLUICE_TRY(auto now, look());
	for (size_t i = 0; i < now.size(); i++) {
		auto one = energy_between(before[i], now[i]);

		if (!one)
			return fail(errc::device, now[i].gpu,
				    "the firmware has added up no "
				    "energy meanwhile: it took too short");
		all.seconds = std::max(all.seconds, one->seconds);
		all.uncertainty = std::max(all.uncertainty, one->uncertainty);
		all.socket += one->socket;
		all.xcd += one->xcd;
		all.aid += one->aid;
		all.hbm += one->hbm;
	}
	return all;
}

} // namespace sluice::cli
