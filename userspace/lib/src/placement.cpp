// SPDX-License-Identifier: MIT
#include "placement.hpp"

#include <algorithm>

namespace sluice::detail {

int node_for_pieces(data_path path, int of_gpu, int of_card) noexcept
{
	bool by_gpu = path == data_path::device_alias ||
		      path == data_path::device_dmabuf || of_card < 0;

	return by_gpu ? of_gpu : of_card;
}

// A kernel without NUMA, or without that node, is no reason to fail.
result<placed_memory> memory_near(int node, size_t size)
{
	placed_memory made;
	auto placed = buffer::host(size, {.numa_node = node});

	if (!placed && node >= 0)
		placed = buffer::host(size);
	if (!placed)
		return std::unexpected(placed.error());
	made.memory = std::move(*placed);
	if (node < 0)
		return made;
	made.elsewhere = made.memory.size() / page_size;
	if (auto where = made.memory.nodes())
		made.elsewhere -=
			static_cast<uint64_t>(std::ranges::count(*where, node));
	return made;
}

} // namespace sluice::detail
