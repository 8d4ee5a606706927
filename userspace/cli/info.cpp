// SPDX-License-Identifier: MIT
// sluice info: what is in the machine.
#include "info.hpp"

#include <algorithm>
#include <array>
#include <format>
#include <map>

#include "command.hpp"
#include "json_text.hpp"
#include "text.hpp"

namespace sluice::cli {

namespace {

using rows = std::vector<std::vector<std::string>>;

struct path_words {
	const char *cell; ///< in the table of paths
	const char *meaning;
};

constexpr std::array words = {
	path_words{"same", "the same memory: nothing has to move"},
	path_words{"xgmi", "by the link between the GPUs"},
	path_words{"p2p", "straight from device to device below a PCI switch"},
	path_words{"dma", "the device has DMA to host memory"},
	path_words{"bridge", "from device to device through the CPU's host bridge"},
	path_words{"cpu", "the CPU moves each byte"},
	path_words{"staged", "to host memory first, and from there in a second step"},
	path_words{"none", "not at all"},
};
static_assert(words.size() == static_cast<size_t>(path::unreachable) + 1);

const path_words &words_of(path how)
{
	return words[static_cast<size_t>(how)];
}

std::string node_text(int node)
{
	return node < 0 ? "" : std::format("node{}", node);
}

std::string memory_text(const topology::gpu &g)
{
	if (g.vram_bytes == 0)
		return "";
	if (g.visible_vram_bytes >= g.vram_bytes)
		return size_text(g.vram_bytes);
	return std::format("{} ({} visible)", size_text(g.vram_bytes),
			   size_text(g.visible_vram_bytes));
}

std::string section(const char *title, const rows &lines, const char *none)
{
	return std::format("\n{}\n{}", title,
			   lines.empty() ? std::format("  {}\n", none)
					 : aligned(lines));
}

std::string devices_text(const topology &t)
{
	rows nodes, gpus, nics, disks;

	for (const auto &n : t.nodes())
		nodes.push_back({std::format("node{}", n.id), size_text(n.bytes),
				 "CPUs " + n.cpus});
	for (const auto &g : t.gpus())
		gpus.push_back({g.name, g.product.empty() ? g.driver : g.product,
				memory_text(g), node_text(g.pci.numa_node),
				g.pci.address,
				g.render_node.substr(g.render_node.rfind('/') + 1)});
	for (const auto &n : t.nics())
		nics.push_back({n.name, n.pci ? n.driver : n.driver + " (software)",
				bits_text(n.bits_per_second), n.active ? "up" : "down",
				n.interface, node_text(n.pci ? n.pci->numa_node : -1),
				n.pci ? n.pci->address : ""});
	for (const auto &d : t.disks())
		disks.push_back({d.name, d.model, size_text(d.bytes),
				 node_text(d.pci.numa_node), d.pci.address});
	return section("Host memory", nodes, "none") + section("GPUs", gpus, "none") +
	       section("NICs with RDMA", nics, "none") +
	       section("Disks", disks, "none on PCI");
}

/// Some columns of the table of paths.
std::string table_text(const topology &t, std::span<const location> all,
		       std::span<const location> across)
{
	rows table{{""}};

	for (location b : across)
		table[0].push_back(t.name_of(b));
	for (location a : all) {
		table.push_back({t.name_of(a)});
		for (location b : across) {
			auto way = t.explain(a, b);
			table.back().push_back(a == b ? "-"
					       : way  ? words_of(way->how).cell
						      : "?");
		}
	}
	return aligned(table);
}

std::string tables_text(const topology &t)
{
	auto all = t.locations();
	size_t widest = 6; // "staged", "bridge"
	std::string text = "\nPaths\n";

	for (location each : all)
		widest = std::max(widest, t.name_of(each).size());
	// As many columns as there is room for; the rest go into tables below.
	size_t room = std::max<size_t>(1, columns / (widest + 2) - 1);
	for (size_t first = 0; first < all.size(); first += room)
		text += (first ? "\n" : "") +
			table_text(t, all,
				   std::span(all).subspan(
					   first, std::min(room, all.size() - first)));
	return text;
}

/// The meanings of those cells that occur.
std::string legend(const std::vector<bool> &seen)
{
	rows lines;

	for (size_t i = 0; i < words.size(); i++)
		if (seen[i])
			lines.push_back({words[i].cell, words[i].meaning});
	return lines.empty() ? "" : "\n" + aligned(lines);
}

std::string notes_text(const char *title,
		       const std::map<std::string, std::string> &notes)
{
	std::string text;

	for (const auto &[note, pairs] : notes)
		text += hanging("  * ", note) + hanging("      ", pairs);
	return text.empty() ? "" : std::format("\n{}\n{}", title, text);
}

std::string paths_text(const topology &t)
{
	std::map<std::string, std::string> remedies, unknown;
	std::vector<bool> seen(words.size());
	auto all = t.locations();

	for (size_t i = 0; i < all.size(); i++)
		for (size_t j = i + 1; j < all.size(); j++) {
			auto way = t.explain(all[i], all[j]);
			if (!way)
				continue;
			std::string pair = std::format("{}-{} ", t.name_of(all[i]),
						       t.name_of(all[j]));
			seen[static_cast<size_t>(way->how)] = true;
			for (const std::string &remedy : way->remedies)
				remedies[remedy] += pair;
			for (const std::string &what : way->not_known)
				unknown[what] += pair;
		}
	return tables_text(t) + legend(seen) +
	       notes_text("What would make paths better", remedies) +
	       notes_text("What is not known", unknown);
}

class info : public command {
public:
	void add_options(CLI::App &to) override
	{
		to.add_option("between", between_,
			      "explain the path between two of them: gpu0 mlx5_0")
			->option_text("A B")
			->expected(2);
		to.usage("Usage: sluice info [OPTIONS] [A B]");
	}
	result<exit_status> run(const settings &with) override;

private:
	std::vector<std::string> between_;
};

result<exit_status> info::run(const settings &with)
{
	auto machine = topology::read(with.root);

	if (!machine)
		return std::unexpected(machine.error());
	if (between_.empty()) {
		*with.out << (with.json ? json_text(info_json(*machine))
					: info_text(*machine));
		return exit_status::ok;
	}
	auto a = machine->find(between_[0]), b = machine->find(between_[1]);
	if (!a || !b)
		return std::unexpected(a ? b.error() : a.error());
	auto way = machine->explain(*a, *b);
	if (!way)
		return std::unexpected(way.error());
	std::string from = machine->name_of(*a), to = machine->name_of(*b);
	*with.out << (with.json ? json_text(route_json(from, to, *way))
				: route_text(from, to, *way));
	return exit_status::ok;
}

} // namespace

std::string info_text(const topology &machine)
{
	const auto &kernel = machine.running();

	return std::format("Linux {}{}\n", printable(kernel.release),
			   !kernel.symbols ? ""
			   : kernel.alias  ? ", with the patch series of Sluice"
					   : ", without the patch series of Sluice") +
	       devices_text(machine) + paths_text(machine) +
	       "\n\"sluice info A B\" explains the path between two of them.\n";
}

std::string route_text(std::string_view a, std::string_view b, const route &way)
{
	std::string text = hanging("", std::format("{} - {}: {}", a, b, name(way.how)));
	auto list = [&text](std::string_view head,
			    const std::vector<std::string> &lines) {
		std::string_view now = head;
		std::string blank(head.size(), ' ');

		for (const std::string &line : lines) {
			text += hanging(now, line);
			now = blank;
		}
	};

	text += hanging("  which is    ", words_of(way.how).meaning);
	list("  steps       ", way.steps);
	text += hanging("  limit       ", way.limit);
	list("  because     ", way.why_not_better);
	list("  not known   ", way.not_known);
	list("  try         ", way.remedies);
	return text;
}

std::unique_ptr<command> make_info()
{
	return std::make_unique<info>();
}

} // namespace sluice::cli
