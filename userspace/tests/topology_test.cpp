// SPDX-License-Identifier: MIT
#include <algorithm>

#include <gtest/gtest.h>

#include "fake_machine.hpp"
#include "gpu_list.hpp"
#include "sluice/topology.hpp"
#include "sysfs.hpp"

using namespace sluice;

namespace {

constexpr uint16_t request_redirect = 4;

struct TopologyTest : ::testing::Test {
	topology read()
	{
		auto found = topology::read(machine.root());

		EXPECT_TRUE(found) << found.error().message();
		return found ? *found : topology();
	}

	route between(std::string_view a, std::string_view b)
	{
		topology t = read();
		auto from = t.find(a), to = t.find(b);

		EXPECT_TRUE(from && to);
		if (!from || !to)
			return {};
		return *t.explain(*from, *to);
	}

	/// A GPU and a NIC below one switch, behind the root port 0000:00:01.0.
	void below_a_switch()
	{
		machine.pci("pci0000:00/0000:00:00.0", 0x8086, 0x1234, 0x060000);
		machine.pci("pci0000:00/0000:00:01.0");
		up = machine.pci("pci0000:00/0000:00:01.0/0000:01:00.0");
		left = machine.pci(switched + "0000:02:00.0");
		right = machine.pci(switched + "0000:02:01.0");
		gpu = machine.gpu(switched + "0000:02:00.0/0000:03:00.0", 128);
		nic = machine.nic(switched + "0000:02:01.0/0000:04:00.0", "mlx5_0");
	}

	/// The same below two root ports, the second one at @p other.
	void below_root_ports(uint32_t vendor, uint32_t device,
			      std::string other = "pci0000:00/0000:00:02.0")
	{
		machine.pci("pci0000:00/0000:00:00.0", vendor, device, 0x060000);
		machine.pci("pci0000:80/0000:80:00.0", vendor, device, 0x060000);
		machine.pci("pci0000:00/0000:00:01.0");
		machine.pci(other);
		machine.gpu("pci0000:00/0000:00:01.0/0000:03:00.0", 128);
		machine.nic(other + "/0000:04:00.0", "mlx5_0");
	}

	/// All ports of the switch can be read, and behave as @p control says.
	void readable(uint16_t control)
	{
		for (const std::string &port : {gpu, nic, up, left, right})
			machine.acs(port, 0);
		machine.acs(left, control);
	}

	const std::string switched = "pci0000:00/0000:00:01.0/0000:01:00.0/";
	std::string up, left, right, gpu, nic;
	fake_machine machine;
};

bool mentions(const std::vector<std::string> &texts, std::string_view words)
{
	return std::ranges::any_of(texts, [words](const std::string &text) {
		return text.find(words) != text.npos;
	});
}

} // namespace

TEST(SysfsTest, ANumberAtTheBeginOfAText)
{
	EXPECT_EQ(sysfs::integer("-1\n", 7), -1);
	EXPECT_EQ(sysfs::integer("23 and more", 7), 23);
	EXPECT_EQ(sysfs::integer("", 7), 7);
	EXPECT_EQ(sysfs::integer("node", 7), 7);
	EXPECT_EQ(sysfs::integer("99999999999", 7), 7);
}

TEST_F(TopologyTest, WithoutSysfsIsAnError)
{
	auto none = topology::read("/nowhere");

	ASSERT_FALSE(none);
	EXPECT_EQ(none.error().code(), errc::system);
	EXPECT_EQ(none.error().where(), "/nowhere");
}

TEST_F(TopologyTest, AMachineWithNothingHasOneNode)
{
	topology t = read();

	ASSERT_EQ(t.nodes().size(), 1u);
	EXPECT_TRUE(t.gpus().empty() && t.nics().empty() && t.disks().empty());
	EXPECT_EQ(between("node0", "node0").how, path::same_memory);
}

TEST_F(TopologyTest, DevicesAreFoundByAllTheirNames)
{
	below_a_switch();
	machine.kfd(1, 4242, 0x300);
	machine.disk("pci0000:00/0000:00:03.0/0000:05:00.0", "nvme0n1");
	topology t = read();

	ASSERT_EQ(t.gpus().size(), 1u);
	const auto &g = t.gpus()[0];
	EXPECT_EQ(g.pci.address, "0000:03:00.0");
	EXPECT_EQ(g.product, "gfx942");
	EXPECT_EQ(g.kfd_id, 4242u);
	EXPECT_EQ(g.engines, 16u);
	EXPECT_TRUE(g.svm);
	EXPECT_EQ(g.vram_bytes, 16ull << 30);
	ASSERT_EQ(g.pci.ports.size(), 3u);
	EXPECT_EQ(g.pci.ports[0].address, "0000:02:00.0");
	EXPECT_EQ(g.pci.ports[2].address, "0000:00:01.0");
	EXPECT_EQ(g.pci.host_bridge, "pci0000:00");
	ASSERT_EQ(t.disks().size(), 1u);
	EXPECT_EQ(t.disks()[0].model, "Flash 1000");
	EXPECT_EQ(t.disks()[0].bytes, 2000409264ull * 512);
	for (auto name : {"gpu0", "0000:03:00.0", "renderD128", "/dev/dri/renderD128"})
		EXPECT_EQ(t.find(name), (location{location::kind::gpu, 0})) << name;
	EXPECT_EQ(t.find("0000:04:00.0"), (location{location::kind::nic, 0}));
	auto none = t.find("gpu1");
	ASSERT_FALSE(none);
	EXPECT_EQ(none.error().code(), errc::device);
	EXPECT_NE(none.error().message().find("node0 gpu0 mlx5_0 nvme0n1"),
		  std::string::npos);
	EXPECT_FALSE(t.find(""));
	EXPECT_FALSE(t.explain({location::kind::gpu, 1}, {location::kind::gpu, 0}));
}

TEST_F(TopologyTest, BelowOneSwitchPeersGoStraight)
{
	below_a_switch();
	readable(0);
	machine.patched_kernel();
	route r = between("gpu0", "mlx5_0");

	EXPECT_EQ(r.how, path::peer_to_peer);
	EXPECT_TRUE(r.not_known.empty());
	EXPECT_TRUE(r.why_not_better.empty());
	EXPECT_TRUE(r.remedies.empty());
	// The port has 50 GB/s, the links 63.
	EXPECT_EQ(r.bytes_per_second, 50e9);
	EXPECT_TRUE(r.limit.starts_with("port of mlx5_0")) << r.limit;
}

TEST_F(TopologyTest, AcsSendsPeersToTheHostBridge)
{
	below_a_switch();
	machine.cpu("AuthenticAMD", 25);
	readable(request_redirect);
	route r = between("gpu0", "mlx5_0");

	EXPECT_EQ(r.how, path::host_bridge);
	EXPECT_TRUE(mentions(r.why_not_better, "0000:02:00.0"));
	EXPECT_TRUE(mentions(r.remedies, "pci=disable_acs_redir=0000:02:00.0"));
}

TEST_F(TopologyTest, AcsOnAHostThatDoesNotForwardIsStaged)
{
	below_a_switch();
	readable(request_redirect);
	route r = between("gpu0", "mlx5_0");

	EXPECT_EQ(r.how, path::staged);
	EXPECT_TRUE(mentions(r.remedies, "pci=disable_acs_redir=0000:02:00.0"));
}

TEST_F(TopologyTest, AcsOfTheBridgeAboveBothCounts)
{
	below_a_switch();
	machine.cpu("AuthenticAMD", 25);
	readable(0);
	machine.acs(up, request_redirect);
	EXPECT_EQ(between("gpu0", "mlx5_0").how, path::host_bridge);
	machine.acs(up, 0x13); // neither of the bits that redirect
	EXPECT_EQ(between("gpu0", "mlx5_0").how, path::peer_to_peer);
}

TEST_F(TopologyTest, AnOrdinaryUserIsToldThatAcsIsNotKnown)
{
	below_a_switch();
	route r = between("gpu0", "mlx5_0");

	EXPECT_EQ(r.how, path::peer_to_peer);
	EXPECT_TRUE(mentions(r.not_known, "ACS"));
}

TEST_F(TopologyTest, IommuGroupsTellOfAcs)
{
	below_a_switch();
	machine.cpu("AuthenticAMD", 25);
	machine.group(gpu, 7);
	machine.group(nic, 8);
	route apart = between("gpu0", "mlx5_0");
	EXPECT_EQ(apart.how, path::host_bridge);
	EXPECT_TRUE(apart.not_known.empty());

	std::filesystem::remove(machine.root() + "/" + nic + "/iommu_group");
	machine.link(nic + "/iommu_group", "sys/kernel/iommu_groups/7");
	// A port above the switch without ACS puts both into one group; the ports of the
	// switch may redirect all the same.
	EXPECT_TRUE(mentions(between("gpu0", "mlx5_0").not_known, "ACS"));
	EXPECT_EQ(read().gpus()[0].pci.iommu_mode, "DMA");
}

TEST_F(TopologyTest, RootPortsOfZenForward)
{
	below_root_ports(0x1022, 0x1480, "pci0000:80/0000:80:01.0");
	machine.cpu("AuthenticAMD", 23);
	EXPECT_EQ(between("gpu0", "mlx5_0").how, path::host_bridge);
	machine.cpu("AuthenticAMD", 22);
	EXPECT_EQ(between("gpu0", "mlx5_0").how, path::staged);
	machine.cpu("HygonGenuine", 24);
	EXPECT_EQ(between("gpu0", "mlx5_0").how, path::staged);
}

TEST_F(TopologyTest, ListedHostBridgesForward)
{
	below_root_ports(0x8086, 0x2030, "pci0000:80/0000:80:01.0");
	EXPECT_EQ(between("gpu0", "mlx5_0").how, path::host_bridge);
}

TEST_F(TopologyTest, SomeHostBridgesForwardOnlyInside)
{
	below_root_ports(0x8086, 0x3c00);
	EXPECT_EQ(between("gpu0", "mlx5_0").how, path::host_bridge);
}

TEST_F(TopologyTest, SomeHostBridgesDoNotForwardToOthers)
{
	below_root_ports(0x8086, 0x3c00, "pci0000:80/0000:80:01.0");
	EXPECT_EQ(between("gpu0", "mlx5_0").how, path::staged);
}

TEST_F(TopologyTest, UnlistedHostBridgesAreNamed)
{
	below_root_ports(0x8086, 0x29c0);
	route r = between("gpu0", "mlx5_0");

	EXPECT_EQ(r.how, path::staged);
	EXPECT_TRUE(mentions(r.why_not_better, "pci0000:00 (8086:29c0)"));
	EXPECT_FALSE(r.remedies.empty());
	EXPECT_EQ(r.steps.size(), 2u);
}

TEST_F(TopologyTest, AKernelWithoutP2pdmaStages)
{
	below_a_switch();
	machine.kernel("7.3.4", "other_symbol");
	route r = between("gpu0", "mlx5_0");

	EXPECT_EQ(r.how, path::staged);
	EXPECT_TRUE(mentions(r.remedies, "CONFIG_PCI_P2PDMA"));
}

TEST_F(TopologyTest, ASymbolThatOnlyBeginsAlikeIsAnother)
{
	machine.kernel("7.3.4", "dev_pagemap_publish_alias_of __svm_alias_init");
	EXPECT_FALSE(read().running().alias);
	EXPECT_FALSE(read().running().kfd_alias);
	EXPECT_TRUE(read().running().symbols);
}

TEST_F(TopologyTest, SymbolsAreFoundInALongList)
{
	std::string filler = "0000000000000000 T schedule\n";

	while (filler.size() < (5 << 20))
		filler += std::format("0000000000000000 t filler_{}\n", filler.size());
	// A symbol that lies across the end of the first piece.
	std::string line = "\nffffffffffffffff T dev_pagemap_publish_alias\n";
	filler.replace((1 << 20) - 30, line.size(), line);
	machine.file("proc/kallsyms", filler + "0000 T svm_alias_init\t[amdgpu]\n");
	EXPECT_TRUE(read().running().alias);
	EXPECT_TRUE(read().running().kfd_alias);
	EXPECT_FALSE(read().running().p2pdma);
}

TEST_F(TopologyTest, ASmallBarIsNamed)
{
	machine.patched_kernel();
	machine.pci("pci0000:00/0000:00:01.0");
	machine.gpu("pci0000:00/0000:00:01.0/0000:03:00.0", 128, -1, 16ull << 30,
		    256ull << 20);
	machine.soft_nic("rxe0", "eth0");
	route r = between("gpu0", "rxe0");

	EXPECT_EQ(r.how, path::by_cpu);
	EXPECT_TRUE(mentions(r.why_not_better, "256 MiB of 16 GiB"));
	EXPECT_TRUE(mentions(r.remedies, "resizable BAR"));
}

TEST_F(TopologyTest, SoftNicsReachGpusInPlaceOnAPatchedKernel)
{
	machine.gpu("pci0000:00/0000:00:01.0/0000:03:00.0", 128);
	machine.soft_nic("rxe0", "eth0");
	route stock = between("gpu0", "rxe0");
	EXPECT_EQ(stock.how, path::staged);
	EXPECT_EQ(stock.steps.size(), 2u);
	EXPECT_TRUE(mentions(stock.remedies, "series of Sluice"));

	machine.patched_kernel();
	route patched = between("gpu0", "rxe0");
	EXPECT_EQ(patched.how, path::by_cpu);
	EXPECT_EQ(read().nics()[0].interface, "eth0");
	EXPECT_EQ(between("node0", "rxe0").how, path::by_cpu);

	machine.file("proc/kallsyms", "");
	EXPECT_TRUE(mentions(between("gpu0", "rxe0").not_known, "kallsyms"));
}

TEST_F(TopologyTest, WithoutSymbolsARouteSaysWhatIsNotKnown)
{
	const std::string bus = "pci0000:00/0000:00:01.0/0000:01:00.0/";

	machine.gpu(bus + "0000:02:00.0/0000:03:00.0", 128);
	machine.gpu(bus + "0000:02:01.0/0000:04:00.0", 129);
	machine.file("proc/kallsyms", "");
	EXPECT_TRUE(mentions(between("gpu0", "gpu1").not_known, "P2PDMA"));
}

TEST_F(TopologyTest, AHiveIsLinked)
{
	for (int i = 0; i < 3; i++) {
		machine.gpu(std::format("pci0000:00/0000:00:0{}.0/0000:0{}:00.0", i + 1,
					i + 1),
			    128 + i);
		machine.kfd(i + 1, 100 + i, (i + 1) << 8, i < 2 ? 77 : 0);
	}
	machine.kfd(0, 0, 0); // the CPU
	machine.kfd_link(1, 0, 0, 2);
	machine.kfd_link(1, 1, 2, 11);
	machine.kfd_link(2, 1, 1, 11);
	machine.cpu("AuthenticAMD", 25);
	route r = between("gpu0", "gpu1");

	EXPECT_EQ(r.how, path::xgmi);
	EXPECT_EQ(r.bytes_per_second, 64e9);
	EXPECT_TRUE(r.why_not_better.empty());
	EXPECT_EQ(between("gpu1", "gpu2").how, path::host_bridge);
	EXPECT_TRUE(mentions(between("gpu1", "gpu2").why_not_better, "xGMI"));
	EXPECT_EQ(between("gpu2", "gpu2").how, path::same_memory);
}

TEST_F(TopologyTest, TwoSocketsAreFarFromEachOther)
{
	machine.node(0, "0-31", "10 32");
	machine.node(1, "32-63", "32 10");
	machine.gpu("pci0000:00/0000:00:01.0/0000:03:00.0", 128, 0);
	machine.disk("pci0000:80/0000:80:01.0/0000:84:00.0", "nvme0n1", 1);
	topology t = read();
	ASSERT_EQ(t.nodes().size(), 2u);
	EXPECT_EQ(t.nodes()[1].cpus, "32-63");
	EXPECT_EQ(t.nodes()[1].bytes, 64ull << 30);

	EXPECT_TRUE(between("node0", "gpu0").why_not_better.empty());
	route far = between("node1", "gpu0");
	EXPECT_EQ(far.how, path::host_memory);
	EXPECT_TRUE(mentions(far.remedies, "use memory of node0"));
	EXPECT_NE(between("node0", "node1").limit.find("32"), std::string::npos);
	EXPECT_EQ(between("node0", "node1").how, path::by_cpu);
	route disk = between("nvme0n1", "gpu0");
	EXPECT_EQ(disk.how, path::staged);
	ASSERT_EQ(disk.steps.size(), 2u);
	EXPECT_TRUE(disk.steps[0].starts_with("nvme0n1")) << disk.steps[0];
	EXPECT_TRUE(between("gpu0", "nvme0n1").steps[1].starts_with("nvme0n1"));
}

TEST_F(TopologyTest, RoutesAreTheSameInBothDirections)
{
	below_a_switch();
	machine.soft_nic("rxe0", "eth0");
	machine.disk("pci0000:00/0000:00:03.0/0000:05:00.0", "nvme0n1");
	topology t = read();

	for (location a : t.locations())
		for (location b : t.locations()) {
			route there = *t.explain(a, b), back = *t.explain(b, a);

			EXPECT_EQ(there.how, back.how);
			EXPECT_EQ(there.limit, back.limit);
			EXPECT_FALSE(there.limit.empty());
			EXPECT_FALSE(there.steps.empty());
			EXPECT_NE(there.how, path::unreachable);
		}
}

TEST_F(TopologyTest, GpusOfTheTwoSocketsAreFarFromEachOthersCards)
{
	machine.node(0, "0-31", "10 32");
	machine.node(1, "32-63", "32 10");
	machine.cpu("AuthenticAMD", 25);
	machine.gpu("pci0000:00/0000:00:01.0/0000:03:00.0", 128, 0);
	machine.gpu("pci0000:80/0000:80:01.0/0000:83:00.0", 129, 1);
	machine.nic("pci0000:00/0000:00:02.0/0000:04:00.0", "mlx5_0", 0);
	EXPECT_FALSE(mentions(between("gpu0", "mlx5_0").why_not_better, "cross"));
	EXPECT_TRUE(mentions(between("gpu1", "mlx5_0").why_not_better, "cross"));
	EXPECT_TRUE(mentions(between("gpu1", "gpu0").why_not_better, "cross"));
}

// A number means the same GPU to sluice info and to device::open().
TEST_F(TopologyTest, GpusAreCountedAsTheyAreOpened)
{
	auto other = machine.gpu("pci0000:00/0000:00:02.0", 128);
	machine.driver(other, "i915");
	machine.gpu("pci10000:00/10000:00:01.0/10000:03:00.0", 129);
	machine.gpu("pci0000:00/0000:00:03.0/0000:84:00.0", 130);
	topology t = read();
	auto opened = detail::find_gpus(machine.root() + "/sys", machine.root());

	ASSERT_EQ(t.gpus().size(), 3u);
	ASSERT_EQ(opened.size(), 2u);
	for (size_t i = 0; i < opened.size(); i++)
		EXPECT_EQ(opened[i].address, t.gpus()[i].pci.address);
	EXPECT_EQ(t.gpus()[2].driver, "i915");
}

TEST_F(TopologyTest, AContainerHasTheGpusThatItWasGiven)
{
	machine.gpu("pci0000:00/0000:00:01.0/0000:03:00.0", 128);
	machine.gpu("pci0000:00/0000:00:02.0/0000:04:00.0", 129);
	auto other = machine.gpu("pci0000:00/0000:00:03.0/0000:05:00.0", 130);
	machine.driver(other, "i915");
	EXPECT_EQ(read().gpus().size(), 3u);
	machine.file("dev/dri/renderD130", ""); // not one of ours
	EXPECT_EQ(read().gpus().size(), 3u);
	machine.file("dev/dri/renderD129", "");
	auto given =
		detail::find_gpus(machine.root() + "/sys", machine.root() + "/dev/dri");

	ASSERT_EQ(read().gpus().size(), 2u);
	EXPECT_EQ(read().gpus()[0].pci.address, "0000:04:00.0");
	ASSERT_EQ(given.size(), 1u);
	EXPECT_EQ(given[0].address, "0000:04:00.0");
}

TEST_F(TopologyTest, OtherDriversAreOutOfReach)
{
	gpu = machine.gpu("pci0000:00/0000:00:01.0/0000:03:00.0", 128);
	std::filesystem::remove(machine.root() + "/" + gpu + "/driver");
	machine.soft_nic("rxe0", "eth0");
	EXPECT_EQ(between("gpu0", "rxe0").how, path::unreachable);
	EXPECT_EQ(between("gpu0", "node0").how, path::unreachable);
}

TEST_F(TopologyTest, OnlyFunctionsAreGpus)
{
	machine.gpu("pci0000:00/0000:00:01.0/0000:03:00.0", 128);
	// A partition of it, and the device of a hypervisor.
	for (const std::string path : {"sys/devices/platform/amdgpu_xcp_0",
				       "sys/devices/pci0000:00/0000:00:02.0/virtio0"}) {
		std::string node = std::format("renderD{}", path.size());

		machine.file(path + "/drm/" + node + "/dev", "226:129\n");
		machine.link(path + "/drm/" + node + "/device", path);
		machine.link("sys/class/drm/" + node, path + "/drm/" + node);
	}
	EXPECT_EQ(read().gpus().size(), 1u);
}

TEST_F(TopologyTest, AHostileConfigSpaceEnds)
{
	below_a_switch();
	std::string space(4096, '\0');
	space[0x100] = 1;
	space[0x103] = 0x10; // next: itself
	machine.file(left + "/config", space);
	space[0x103] = static_cast<char>(0xff); // next: near the end
	space[0x102] = static_cast<char>(0xf1);
	machine.file(right + "/config", space);
	machine.file(nic + "/numa_node", "9999999999999999999999\n");
	machine.file(nic + "/current_link_speed", "Unknown\n");
	machine.file(nic + "/current_link_width", "255\n");
	EXPECT_EQ(between("gpu0", "mlx5_0").how, path::peer_to_peer);
}

TEST_F(TopologyTest, ADiskWithSeveralPathsIsFound)
{
	machine.pci("pci0000:00/0000:00:01.0/0000:05:00.0", 0x144d, 1, 0x010802);
	const std::string subsystem = "sys/devices/virtual/nvme-subsystem/nvme-subsys0";
	machine.file(
		"sys/devices/pci0000:00/0000:00:01.0/0000:05:00.0/nvme/nvme0/model",
		"M\n");
	machine.file(subsystem + "/nvme0n1/size", "8\n");
	machine.link(subsystem + "/nvme0",
		     "sys/devices/pci0000:00/0000:00:01.0/0000:05:00.0/nvme/nvme0");
	machine.link("sys/block/nvme0n1", subsystem + "/nvme0n1");
	machine.file("sys/devices/virtual/block/loop0/size", "8\n");
	machine.link("sys/block/loop0", "sys/devices/virtual/block/loop0");
	topology t = read();
	ASSERT_EQ(t.disks().size(), 1u);
	EXPECT_EQ(t.disks()[0].pci.address, "0000:05:00.0");
}
