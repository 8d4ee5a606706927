// SPDX-License-Identifier: MIT
// Energy in pm_metrics: its layout against the driver's header, and the results from it.
#include <cstddef>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <regex>
#include <sstream>

#include <gtest/gtest.h>

#include "fake_machine.hpp"
#include "figures.hpp"
#include "power.hpp"
#include "top.hpp"

#if __has_include("smu_v13_0_6_pmfw.h")
#include "smu_v13_0_6_pmfw.h"
#define HAVE_PMFW_HEADER
#endif

using namespace sluice;
using namespace sluice::cli;

namespace {

/// What firmware and driver show after @p updates of a millisecond each, with @p watts
/// for the XCDs, twice that for the AIDs, three times for HBM, and ten times in all.
std::string metrics(uint32_t updates, uint64_t watts)
{
	std::string bytes(2048, '\0');
	uint64_t mj = updates * watts;
	auto put = [&](size_t at, auto n) { std::memcpy(&bytes[at], &n, sizeof(n)); };
	auto energy = [](uint64_t n) { return n * 65536 / 1000; };

	put(pm_metrics::mp1_version, pm_metrics::mi300);
	put(pm_metrics::updates, updates);
	put(pm_metrics::time, uint64_t{updates} * 100000);
	put(pm_metrics::socket, energy(10 * mj));
	put(pm_metrics::xcd, energy(mj));
	put(pm_metrics::aid, energy(2 * mj));
	put(pm_metrics::hbm, energy(3 * mj));
	return bytes;
}

energy_sample sample(uint32_t updates, uint64_t watts = 10)
{
	return parse_pm_metrics(metrics(updates, watts), "gpu").value();
}

constexpr auto driver = "sys/bus/pci/drivers/amdgpu/";

} // namespace

TEST(Power, TheTableIsWhereTheDriversHeaderHasIt)
{
#ifdef HAVE_PMFW_HEADER
	constexpr size_t table = pm_metrics::table;

	EXPECT_EQ(table + offsetof(MetricsTableV0_t, AccumulationCounter),
		  pm_metrics::updates);
	EXPECT_EQ(table + offsetof(MetricsTableV0_t, Timestamp), pm_metrics::time);
	EXPECT_EQ(table + offsetof(MetricsTableV0_t, SocketEnergyAcc),
		  pm_metrics::socket);
	EXPECT_EQ(table + offsetof(MetricsTableV0_t, XcdEnergyAcc), pm_metrics::xcd);
	EXPECT_EQ(table + offsetof(MetricsTableV0_t, AidEnergyAcc), pm_metrics::aid);
	EXPECT_EQ(table + offsetof(MetricsTableV0_t, HbmEnergyAcc), pm_metrics::hbm);
	EXPECT_EQ(sizeof(MetricsTableV0_t::AccumulationCounter), sizeof(uint32_t));
	// an MI300A has other fields, but after these
	EXPECT_EQ(offsetof(MetricsTableV1_t, HbmEnergyAcc),
		  offsetof(MetricsTableV0_t, HbmEnergyAcc));
#else
	GTEST_SKIP() << "no kernel tree in build/linux";
#endif
}

// The header before the table is in a file that no program can include.
TEST(Power, TheHeaderInFrontIsTheDrivers)
{
	std::ifstream file(KGD_PP_INTERFACE);
	std::ostringstream all;

	all << file.rdbuf();
	const std::string text = all.str();
	if (text.empty())
		GTEST_SKIP() << "no kernel tree in build/linux";
	std::smatch found;
	ASSERT_TRUE(std::regex_search(
		text, found,
		std::regex("struct amdgpu_pmmetrics_header \\{([^}]*)\\}")));
	const std::string body = found[1];
	const std::regex member("uint(\\d+)_t (\\w+);");
	size_t at = 0, version = 0;
	for (std::sregex_iterator i(body.begin(), body.end(), member), end; i != end;
	     ++i) {
		if ((*i)[2] == "mp1_ip_discovery_version")
			version = at;
		at += std::stoul((*i)[1]) / 8;
	}
	EXPECT_EQ(version, pm_metrics::mp1_version);
	EXPECT_EQ(at, pm_metrics::table);
}

TEST(Power, WhatIsNotThatTableIsRefusedByName)
{
	auto said = [](std::string bytes, errc code) {
		auto got = parse_pm_metrics(bytes, "0000:03:00.0");

		EXPECT_FALSE(got);
		EXPECT_EQ(got.error().code(), code);
		return std::string(got.error().message());
	};
	std::string whole = metrics(1, 1), other = whole;

	other[pm_metrics::mp1_version + 1] = 12;
	EXPECT_EQ(said("", errc::input),
		  "0000:03:00.0: pm_metrics has 0 bytes, its header has 16");
	EXPECT_EQ(said(whole.substr(0, pm_metrics::end - 1), errc::input),
		  "0000:03:00.0: pm_metrics has 115 bytes, 116 are wanted");
	EXPECT_EQ(
		said(other, errc::unsupported),
		"0000:03:00.0: pm_metrics is that of a power controller 13.0.12, known "
		"is 13.0.6");
	EXPECT_TRUE(parse_pm_metrics(whole.substr(0, pm_metrics::end), "x"));
}

TEST(Power, JoulesAreOfTheTimeBetween)
{
	auto used = energy_between(sample(1000), sample(1500));

	ASSERT_TRUE(used);
	EXPECT_NEAR(used->seconds, 0.5, 1e-9);
	EXPECT_NEAR(used->uncertainty, 2.0 / 500, 1e-9);
	EXPECT_NEAR(used->xcd, 5, 1e-3);
	EXPECT_NEAR(used->aid, 10, 1e-3);
	EXPECT_NEAR(used->hbm, 15, 1e-3);
	EXPECT_NEAR(used->socket, 50, 1e-3);
	EXPECT_EQ(energy_text(*used),
		  "XCD 5, AID 10, HBM 15, socket 50 J in 500.0 ms +- 0.4 %");
}

TEST(Power, NothingIsToldOfNoTimeOrAnotherStart)
{
	EXPECT_FALSE(energy_between(sample(5), sample(5)));
	EXPECT_FALSE(energy_between(sample(500), sample(5)));
	energy_sample less = sample(7);
	less.hbm = 0;
	EXPECT_FALSE(energy_between(sample(5), less));
	// the count wraps around before the rest does
	energy_sample last = sample(5), first = sample(7);
	last.updates = UINT32_MAX;
	first.updates = 1;
	ASSERT_TRUE(energy_between(last, first));
	EXPECT_EQ(energy_between(last, first)->uncertainty, 1);
}

TEST(Power, AMeterAddsUpItsGpus)
{
	fake_machine machine;
	const std::vector<std::string> gpus{"0000:03:00.0", "0000:04:00.0"};
	auto show = [&](uint32_t updates) {
		for (const auto &gpu : gpus)
			machine.file(driver + gpu + "/pm_metrics",
				     metrics(updates, 10));
	};

	machine.file(std::string(driver) + "bind", "");
	show(1000);
	EXPECT_EQ(amdgpu_addresses(machine.root()), gpus);
	energy_meter meter(machine.root(), gpus);
	EXPECT_EQ(meter.used().error().code(), errc::device);
	show(2000);
	auto used = meter.used();
	ASSERT_TRUE(used);
	EXPECT_NEAR(used->aid, 40, 1e-3);
	EXPECT_NEAR(used->seconds, 1, 1e-9);
	energy_meter none(machine.root(), std::vector<std::string>{"0000:05:00.0"});
	EXPECT_EQ(none.used().error().message(),
		  "0000:05:00.0: no energy is told: it has "
		  "no pm_metrics, which GPUs of MI300's kind have");
}

TEST(Power, TopSharesItByTheBytesOfBatches)
{
	usage before{.us = 0}, now{.us = 1e6};
	auto process = [](uint64_t pid, uint64_t bytes) {
		return gpu_client{.pid = pid,
				  .command = "train",
				  .gpu = "gpu",
				  .id = pid,
				  .batches = bytes,
				  .batch_bytes = bytes};
	};

	before.energy = {sample(1000)};
	now.energy = {sample(2000)};
	before.clients = {process(1, 0), process(2, 0)};
	now.clients = {process(1, 3'000'000'000), process(2, 1'000'000'000)};
	now.no_energy = {"other: no energy is told"};
	auto rates = rates_between(before, now);

	ASSERT_EQ(rates.power.size(), 1u);
	EXPECT_NEAR(rates.power[0].used.aid, 20, 1e-3);
	EXPECT_NEAR(rates.power[0].joules_per_gb.value(), 50 / 4.0, 1e-3);
	EXPECT_NEAR(rates.gpus[0].copy_watts.value(), 50 * 0.75, 1e-3);
	EXPECT_NEAR(rates.gpus[1].copy_watts.value(), 50 * 0.25, 1e-3);
	auto text = top_text(rates);
	EXPECT_NE(text.find("NOT verified"), text.npos) << text;
	EXPECT_NE(text.find("other: no energy is told"), text.npos) << text;
	EXPECT_NE(text.find("12.5"), text.npos) << text;
	EXPECT_NEAR(top_json(rates)["power"][0]["joules"]["hbm"], 30, 1e-3);
	EXPECT_EQ(top_json(rates)["power"][0]["verified_on_hardware"], false);
}

// AIDs draw 20 W and HBM 30 W.
TEST(Power, TopSharesAidsByTheTimeOfEngines)
{
	usage before{.us = 0}, now{.us = 1e6};
	auto process = [](uint64_t pid, uint64_t ns, std::optional<uint64_t> bytes) {
		return gpu_client{.pid = pid,
				  .command = "train",
				  .gpu = "gpu",
				  .id = pid,
				  .busy_ns = {{"dma", ns}, {"gfx", 7}},
				  .batches = bytes,
				  .batch_bytes = bytes};
	};

	before.energy = {sample(1000)};
	now.energy = {sample(2000)};
	before.clients = {process(1, 0, 0), process(2, 0, 0), process(3, 0, {}),
			  process(4, 0, {})};
	now.clients = {process(1, 100, 3000), process(2, 200, 1000),
		       process(3, 100, {}), process(4, 0, {})};
	auto rates = rates_between(before, now);
	std::map<uint64_t, std::optional<double>> watts;
	for (const gpu_rates &r : rates.gpus)
		watts[r.pid] = r.copy_watts;

	EXPECT_NEAR(watts[1].value(), 20 * 0.25 + 30 * 0.75, 1e-3);
	EXPECT_NEAR(watts[2].value(), 20 * 0.5 + 30 * 0.25, 1e-3);
	// its copies are jobs of AMDGPU_CS: nothing tells their bytes
	EXPECT_NEAR(watts[3].value(), 20 * 0.25, 1e-3);
	EXPECT_FALSE(watts[4].has_value());
}

TEST(Power, FiguresHaveItOrSayWhyNot)
{
	figures all{.title = "gpu to host", .note = {}, .depth = 1, .rows = {}};

	all.rows.push_back({.what = "copy",
			    .bytes = 4096,
			    .rates = {1e6},
			    .energy = energy_between(sample(1000), sample(1500))});
	auto text = figures_text(all);
	EXPECT_NE(text.find("XCD 5, AID 10, HBM 15, socket 50 J"), text.npos) << text;
	EXPECT_NE(text.find("NOT verified"), text.npos) << text;
	EXPECT_NEAR(figures_json(all)["results"][0]["energy"]["joules"]["xcd"], 5,
		    1e-3);
	all.rows[0].energy.reset();
	all.no_energy = "gpu: no energy is told";
	text = figures_text(all);
	EXPECT_NE(text.find("no energy is told"), text.npos) << text;
	EXPECT_TRUE(figures_json(all)["results"][0]["energy"].is_null());
}
