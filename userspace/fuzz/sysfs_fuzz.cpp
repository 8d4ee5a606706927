// SPDX-License-Identifier: MIT
// Any text in place of that of sysfs and procfs. An input is a row of changes to a
// machine with two of everything: what to change, a length, and the new contents.
// The machine is read, all its paths are explained, and the program reports on them.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <sstream>

#include <nlohmann/json.hpp>

#include "../tests/fake_machine.hpp"
#include "edge.hpp"
#include "gpu_list.hpp"
#include "migrations.hpp"
#include "peer_rules.hpp"
#include "program.hpp"
#include "sysfs.hpp"

using namespace sluice;
using sluice::fuzz::must;

namespace {

namespace fs = std::filesystem;

const std::string port = "sys/devices/pci0000:00/0000:00:01.0",
		  inner = port + "/0000:01:00.0", left = inner + "/0000:02:00.0",
		  gpu = left + "/0000:03:00.0",
		  nic = inner + "/0000:02:01.0/0000:04:00.0",
		  disk = "sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0",
		  kfd = "sys/class/kfd/kfd/topology/nodes",
		  node = "sys/devices/system/node";

/// Files whose contents an input changes.
const std::array<std::string, 41> files = {
	"proc/cpuinfo",
	"proc/kallsyms",
	"proc/meminfo",
	"proc/sys/kernel/numa_balancing",
	"proc/sys/kernel/osrelease",
	"sys/devices/pci0000:00/0000:00:00.0/class",
	"sys/devices/pci0000:00/0000:00:00.0/device",
	"sys/devices/pci0000:00/0000:00:00.0/vendor",
	"sys/devices/system/cpu/online",
	"sys/kernel/iommu_groups/7/type",
	"sys/kernel/mm/transparent_hugepage/enabled",
	node + "/node0/cpulist",
	node + "/node0/distance",
	node + "/node0/meminfo",
	node + "/node1/distance",
	kfd + "/1/gpu_id",
	kfd + "/1/properties",
	kfd + "/1/io_links/0/properties",
	kfd + "/2/gpu_id",
	kfd + "/2/properties",
	gpu + "/current_link_speed",
	gpu + "/current_link_width",
	gpu + "/max_link_width",
	gpu + "/mem_info_vis_vram_total",
	gpu + "/mem_info_vram_total",
	gpu + "/numa_node",
	left + "/current_link_speed",
	left + "/current_link_width",
	nic + "/current_link_speed",
	nic + "/max_link_width",
	nic + "/numa_node",
	nic + "/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0",
	nic + "/infiniband/mlx5_0/ports/1/link_layer",
	nic + "/infiniband/mlx5_0/ports/1/rate",
	nic + "/infiniband/mlx5_0/ports/1/state",
	"sys/devices/virtual/infiniband/rxe0/parent",
	"sys/devices/virtual/infiniband/rxe0/ports/1/rate",
	disk + "/current_link_speed",
	disk + "/nvme/nvme0/nvme0n1/hidden",
	disk + "/nvme/nvme0/nvme0n1/size",
	disk + "/nvme/nvme0/model",
};

/// Functions whose extended configuration space it changes.
const std::array<std::string, 5> spaces = {port, inner, left, gpu, nic};

/// Directories in which it makes one more entry, with any name.
const std::array<std::string, 5> directories = {
	"sys/devices", node, kfd, inner, "sys/devices/pci0000:80",
};

class machine {
public:
	machine()
	{
		made_.pci("pci0000:00/0000:00:00.0", 0x8086, 0x2030, 0x060000);
		made_.pci("pci0000:00/0000:00:01.0");
		made_.pci(below("0000:01:00.0"));
		made_.pci(below("0000:01:00.0/0000:02:00.0"));
		made_.pci(below("0000:01:00.0/0000:02:01.0"));
		made_.gpu(below("0000:01:00.0/0000:02:00.0/0000:03:00.0"), 128, 0);
		made_.nic(below("0000:01:00.0/0000:02:01.0/0000:04:00.0"), "mlx5_0", 0);
		made_.pci("pci0000:80/0000:80:00.0", 0x8086, 0x2030, 0x060000);
		made_.pci("pci0000:80/0000:80:01.0");
		made_.pci("pci0000:80/0000:80:02.0");
		made_.disk("pci0000:80/0000:80:01.0/0000:81:00.0", "nvme0n1", 1);
		made_.gpu("pci0000:80/0000:80:02.0/0000:82:00.0", 129, 1);
		made_.soft_nic("rxe0", "eth0");
		made_.group(gpu, 7);
		made_.node(0, "0-3", "10 20");
		made_.node(1, "4-7", "20 10");
		made_.kfd(1, 11, 0x300, 5);
		made_.kfd(2, 12, 0x8200, 5);
		made_.kfd_link(1, 0, 2, 11);
		made_.kfd_link(2, 0, 1, 11);
		for (const std::string &s : spaces)
			made_.acs(s, 0);
		sysfs seen(made_.root());
		for (const std::string &f : files)
			if (seen.has(f))
				before_[f] = seen.bytes(f, 1 << 16);
		for (const std::string &s : spaces)
			before_[s + "/config"] = seen.bytes(s + "/config", 4096);
	}

	std::string root() const { return made_.root(); }

	void write(const std::string &path, std::string_view text)
	{
		made_.file(path, text);
		changed_.push_back(path);
	}
	/// Repeats the capabilities, up to the size that their first byte gives.
	void config(const std::string &function, std::string_view capabilities)
	{
		std::string space(256, '\0');
		size_t size = capabilities.empty()
				      ? 0
				      : 256 + 16 * static_cast<unsigned char>(
							   capabilities[0]);

		while (space.size() < size)
			space += capabilities;
		space.resize(std::min(std::max(size, space.size()), size_t{4096}));
		write(function + "/config", space);
	}
	void entry(const std::string &directory, std::string_view name)
	{
		std::string path = directory + "/" + std::string(name);
		std::error_code bad;

		if (name.empty() || name == "." || name == ".." ||
		    name.find('/') != name.npos || name.find('\0') != name.npos ||
		    !fs::create_directory(fs::path(root()) / path, bad))
			return;
		changed_.push_back(path);
	}
	void put_back()
	{
		std::error_code bad;

		for (const std::string &path : changed_)
			if (auto was = before_.find(path); was != before_.end())
				made_.file(path, was->second);
			else
				fs::remove_all(fs::path(root()) / path, bad);
		changed_.clear();
	}

private:
	static std::string below(const char *rest)
	{
		return std::string("pci0000:00/0000:00:01.0/") + rest;
	}

	fake_machine made_;
	std::map<std::string, std::string> before_;
	std::vector<std::string> changed_;
};

void change(machine &m, std::string_view text)
{
	while (text.size() >= 2) {
		size_t what = static_cast<unsigned char>(text[0]);
		size_t length = static_cast<unsigned char>(text[1]);
		std::string_view now = text.substr(2, length);

		text.remove_prefix(2 + now.size());
		what %= files.size() + spaces.size() + directories.size();
		if (what < files.size())
			m.write(files[what], now);
		else if ((what -= files.size()) < spaces.size())
			m.config(spaces[what], now);
		else
			m.entry(directories[what - spaces.size()], now);
	}
}

bool is_rate(double bytes_per_second)
{
	return std::isfinite(bytes_per_second) && bytes_per_second >= 0;
}

void links(const pci_function &f)
{
	must(!f.address.empty());
	must(is_rate(f.link.bytes_per_second()));
	for (const pci_port &p : f.ports)
		must(is_rate(p.link.bytes_per_second()));
}

void peers(const topology &t)
{
	peer_rules rules(t);

	for (const auto &g : t.gpus()) {
		links(g.pci);
		for (const auto &l : g.links)
			must(l.gpu < t.gpus().size() && is_rate(l.bytes_per_second));
		for (const auto &n : t.nics())
			if (n.pci) {
				links(*n.pci);
				auto there = rules.ask(g.pci, *n.pci);
				auto back = rules.ask(*n.pci, g.pci);
				must(there.how == back.how);
				must(there.redirected == !there.redirecting.empty() ||
				     there.acs_known);
				rules.unlisted(g.pci, *n.pci);
			}
	}
}

void paths(const topology &t)
{
	auto all = t.locations();

	for (location a : all) {
		must(!t.name_of(a).empty());
		must(t.find(t.name_of(a)).has_value());
		for (location b : all) {
			auto there = t.explain(a, b), back = t.explain(b, a);

			must(there && back && there->how == back->how);
			must(is_rate(there->bytes_per_second));
			must(!there->steps.empty() || there->how == path::unreachable ||
			     there->how == path::same_memory);
		}
	}
}

/// One of the ways in which the program shows a machine.
void tell(const std::string &root, unsigned which)
{
	const char *command = which & 1 ? "doctor" : "info";
	bool json = which & 2;
	std::array<const char *, 5> argv = {"sluice", "--sysroot", root.c_str(),
					    command, "--json"};
	std::ostringstream out, err;
	int status = sluice::cli::run_program(json ? 5 : 4, argv.data(), out, err);

	must(status >= 0 && status < 128);
	must(!json || nlohmann::json::accept(out.str()));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	static machine it;
	auto input = fuzz::at_the_edge(data, size);
	std::string_view text(reinterpret_cast<const char *>(input.data()),
			      input.size());

	sysfs::value(text, "value");
	detail::parse_migration(text);
	change(it, text);
	auto read = topology::read(it.root());
	must(read.has_value());
	peers(*read);
	paths(*read);
	detail::find_gpus(it.root() + "/sys");
	tell(it.root(), size % 4);
	it.put_back();
	return 0;
}
