// SPDX-License-Identifier: MIT
// Kernel, io_uring, memory and IOMMU.
#include <algorithm>
#include <cstring>
#include <format>
#include <set>

#include "doctor.hpp"
#include "text.hpp"

namespace sluice::cli {

namespace {

constexpr uint64_t little_memlock = 64 << 20;

check kernel(const facts &of)
{
	const auto &k = of.machine.running();
	std::string found = "Linux " + k.release;

	if (!k.symbols)
		return {"kernel", verdict::not_known,
			found + ": /proc/kallsyms does not "
				"tell whether it has the patch series of Sluice",
			"mount /proc"};
	if (k.alias)
		return {"kernel", verdict::ok,
			found + ", with the patch series of Sluice", ""};
	return {"kernel", verdict::slower,
		found + ", without the patch series of Sluice: "
			"RDMA moves memory that a GPU shares with a process to the "
			"host first, and "
			"GPUs take no batches of copies",
		"boot a kernel with the series: RDMA reaches such memory in place, "
		"and one "
		"call submits a batch of copies. All works without it as well"};
}

check p2pdma(const facts &of)
{
	const auto &k = of.machine.running();

	if (!k.symbols)
		return {"P2PDMA", verdict::not_known, "/proc/kallsyms does not tell",
			""};
	if (k.p2pdma)
		return {"P2PDMA", verdict::ok,
			"the kernel lets devices reach each other", ""};
	return {"P2PDMA", verdict::slower, "the kernel lets no device reach another",
		"build it with CONFIG_PCI_P2PDMA=y"};
}

check uring(const facts &of)
{
	if (!of.uring_errno)
		return {"io_uring", verdict::not_known, "could not be asked", ""};
	if (*of.uring_errno == 0)
		return {"io_uring", verdict::ok, "there is a ring for this process",
			""};
	return {"io_uring", verdict::missing,
		std::format("no ring for this process: {}",
			    std::strerror(*of.uring_errno)),
		"sysctl kernel.io_uring_disabled=0; in a container, let its "
		"seccomp "
		"profile pass io_uring"};
}

check memlock(const facts &of)
{
	// A NIC that does not tell counts for neither.
	auto on_demand = [](const nic_facts &n) { return n.on_demand == true; };
	auto pins = [](const nic_facts &n) { return n.on_demand == false; };

	if (!of.memlock)
		return {"memlock", verdict::not_known, "could not be asked", ""};
	std::string limit =
		*of.memlock == UINT64_MAX ? "no limit" : size_text(*of.memlock);
	if (!of.nics.empty() && std::ranges::all_of(of.nics, on_demand))
		return {"memlock", verdict::ok, limit + "; memory on demand needs none",
			""};
	if (of.may_pin_more)
		return {"memlock", verdict::ok,
			limit + ", which this user may exceed (CAP_IPC_LOCK)", ""};
	if (std::ranges::none_of(of.nics, pins) || *of.memlock >= little_memlock)
		return {"memlock", verdict::ok, limit, ""};
	return {"memlock", verdict::missing,
		limit + ", and a NIC pins memory: transfers "
			"from larger buffers fail",
		"ulimit -l unlimited, or a line in /etc/security/limits.conf"};
}

check huge_pages(const facts &of)
{
	if (of.huge_pages.empty())
		return {"huge pages", verdict::not_known,
			"the kernel has no transparent huge pages, or does not "
			"tell",
			""};
	if (of.huge_pages != "never")
		return {"huge pages", verdict::ok, of.huge_pages, ""};
	return {"huge pages", verdict::slower, "never: devices translate each 4 KiB",
		"echo madvise >/sys/kernel/mm/transparent_hugepage/enabled"};
}

check balancing(const facts &of)
{
	if (!of.numa_balancing || *of.numa_balancing == 0)
		return {"NUMA balancing", verdict::ok, "off", ""};
	if (of.machine.nodes().size() < 2)
		return {"NUMA balancing", verdict::ok, "on, but there is one node", ""};
	return {"NUMA balancing", verdict::slower,
		"on: it takes pages from devices that "
		"use them, to see who touches them, and moves them between nodes",
		"sysctl kernel.numa_balancing=0"};
}

check iommu(const facts &of)
{
	std::set<std::string> modes;
	bool grouped = false;
	auto look_at = [&](const pci_function &device) {
		modes.insert(device.iommu_mode);
		grouped |= device.iommu_group >= 0;
	};

	for (const auto &g : of.machine.gpus())
		look_at(g.pci);
	for (const auto &n : of.machine.nics())
		if (n.pci)
			look_at(*n.pci);
	modes.erase("");
	std::string text;
	for (const std::string &mode : modes)
		text += (text.empty() ? "" : ", ") + mode;
	if (text.empty() && grouped)
		return {"IOMMU", verdict::not_known,
			"devices are in groups of one, and /sys/kernel/iommu_groups "
			"does not tell how it translates",
			""};
	if (text.empty())
		return {"IOMMU", verdict::ok, "none translates for GPUs and NICs", ""};
	if (modes == std::set<std::string>{"identity"})
		return {"IOMMU", verdict::ok, "identity: nothing is translated", ""};
	return {"IOMMU", verdict::ok,
		text + ": it translates what crosses the host bridge; "
		       "to compare, boot with iommu=pt",
		""};
}

} // namespace

void check_host(const facts &of, checks &to)
{
	for (auto one : {kernel, uring, p2pdma, iommu, memlock, huge_pages, balancing})
		to.push_back(one(of));
}

} // namespace sluice::cli
