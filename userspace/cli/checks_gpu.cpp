// SPDX-License-Identifier: MIT
// GPUs: access rights, batches, shared memory, BARs.
#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <format>

#include "doctor.hpp"
#include "text.hpp"

namespace sluice::cli {

namespace {

constexpr const char *join_render =
	"let the user in: usermod -aG render,video USER, and log in again";

check kfd(const facts &of)
{
	const std::string name = "amdkfd";

	if (!of.kfd_errno)
		return {name, verdict::not_known, "could not be asked", ""};
	if (*of.kfd_errno == 0)
		return {name, verdict::ok, "/dev/kfd opens", ""};
	std::string found = std::format("/dev/kfd: {}", std::strerror(*of.kfd_errno));
	if (*of.kfd_errno == EACCES || *of.kfd_errno == EPERM)
		return {name, verdict::missing, found, join_render};
	return {name, verdict::missing, found + ": no memory shared with GPUs",
		"load amdgpu of a kernel with CONFIG_HSA_AMD=y and "
		"CONFIG_HSA_AMD_SVM=y; in a container, pass it /dev/kfd"};
}

check xnack(const facts &of)
{
	if (!of.xnack)
		return {"XNACK", verdict::not_known, "could not be asked", ""};
	if (*of.xnack)
		return {"XNACK", verdict::ok, "on: GPUs wait for pages that move", ""};
	return {"XNACK", verdict::ok,
		"off: queues of GPUs stop while shared memory moves; "
		"batches do not need it",
		""};
}

check node(const topology::gpu &g, const gpu_facts &known)
{
	const std::string name = g.name + " node";

	if (!known.open_errno)
		return {name, verdict::not_known, "could not be asked", ""};
	if (*known.open_errno == 0)
		return {name, verdict::ok, g.render_node + " opens", ""};
	std::string found =
		std::format("{}: {}", g.render_node, std::strerror(*known.open_errno));
	return {name, verdict::missing, found,
		*known.open_errno == EACCES
			? join_render
			: "in a container, pass it " + g.render_node};
}

/// A driver that is not ours is no fault, unless no GPU has ours.
check other_driver(const topology::gpu &g, bool some_amd)
{
	const std::string name = g.name + " driver";
	const std::string driver = g.driver.empty() ? "none" : g.driver;

	if (some_amd)
		return {name, verdict::ok, driver + ": not used", ""};
	return {name, verdict::missing, driver, "Sluice moves data only with amdgpu"};
}

check batches(const topology::gpu &g, const gpu_facts &known)
{
	const std::string name = g.name + " batches";

	if (!known.batch)
		return {name, verdict::not_known, "could not be asked", ""};
	if (known.batch->ops == 0)
		return {name, verdict::slower,
			"none: copies are submitted one by one, by "
			"AMDGPU_CS",
			"boot a kernel with the patch series of Sluice"};
	return {name, verdict::ok,
		std::format("up to {} operations and {} in one call, on {} engines",
			    known.batch->max_descs, size_text(known.batch->max_bytes),
			    std::popcount(known.batch->engine_mask)),
		""};
}

check shared(const facts &of, const topology::gpu &g)
{
	const std::string name = g.name + " SVM";
	const auto &kernel = of.machine.running();

	if (g.kfd_id == 0)
		return {name, verdict::missing,
			"amdkfd does not know the GPU: it shares no "
			"memory with processes",
			"use a kernel with CONFIG_HSA_AMD=y"};
	if (!g.svm)
		return {name, verdict::missing, "it shares no memory with processes",
			"use a kernel with CONFIG_HSA_AMD_SVM=y"};
	if (kernel.symbols && !kernel.kfd_alias)
		return {name, verdict::slower,
			"shared memory moves to the host when a NIC "
			"wants it",
			"boot a kernel with the patch series of Sluice"};
	return {name, verdict::ok,
		kernel.symbols ? "shared memory, which a NIC can reach in place"
			       : "shared memory",
		""};
}

check bar(const topology::gpu &g)
{
	const std::string name = g.name + " BAR";

	if (g.vram_bytes == 0)
		return {name, verdict::not_known, "amdgpu does not tell", ""};
	if (g.visible_vram_bytes >= g.vram_bytes)
		return {name, verdict::ok,
			std::format("all of {} is visible", size_text(g.vram_bytes)),
			""};
	return {name, verdict::slower,
		std::format("{} of {} are visible: the rest moves to the host for "
			    "peers and the CPU",
			    size_text(g.visible_vram_bytes), size_text(g.vram_bytes)),
		"turn on resizable BAR (above 4G decoding) in the firmware's "
		"setup"};
}

} // namespace

bool is_withheld(const facts &of, const gpu_facts &known)
{
	return known.open_errno == EPERM &&
	       std::ranges::any_of(of.gpus, [](const gpu_facts &other) {
		return other.open_errno == 0;
	});
}

check slot_check(const std::string &name, const pci_link &link)
{
	if (link.lanes == 0)
		return {name + " slot", verdict::ok, "no PCI link to look at", ""};
	if (link.most_lanes <= link.lanes)
		return {name + " slot", verdict::ok,
			std::format("{} lanes of {:g} GT/s, {}", link.lanes,
				    link.gigatransfers,
				    rate_text(link.bytes_per_second())),
			""};
	return {name + " slot", verdict::slower,
		std::format("{} lanes, and it could have {}", link.lanes,
			    link.most_lanes),
		"put the card in a slot with more lanes, or seat it anew"};
}

void check_gpus(const facts &of, checks &to)
{
	auto all = of.machine.gpus();

	if (all.empty()) {
		to.push_back({"GPU", verdict::missing,
			      "none with a render node: only host "
			      "memory is used",
			      "load amdgpu, if there is an AMD GPU"});
		return;
	}
	bool some_amd = std::ranges::any_of(all, &topology::gpu::has_amdgpu);
	if (some_amd) {
		to.push_back(kfd(of));
		to.push_back(xnack(of));
	}
	for (size_t i = 0; i < all.size(); i++) {
		if (!all[i].has_amdgpu()) {
			to.push_back(other_driver(all[i], some_amd));
			continue;
		}
		if (is_withheld(of, of.gpus[i])) {
			to.push_back(
				{all[i].name + " node", verdict::not_known,
				 all[i].render_node + ": not given to this container",
				 ""});
			continue;
		}
		to.push_back(node(all[i], of.gpus[i]));
		to.push_back(batches(all[i], of.gpus[i]));
		to.push_back(shared(of, all[i]));
		to.push_back(bar(all[i]));
		to.push_back(slot_check(all[i].name, all[i].pci.link));
	}
}

} // namespace sluice::cli
