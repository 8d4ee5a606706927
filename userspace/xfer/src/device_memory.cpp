// SPDX-License-Identifier: MIT
#include "xfer/device_memory.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "peer_test_uapi.h"
#include "xfer/buffer.hpp"
#include "xfer/gpu_memory.hpp"
#include "xfer/peer_memory.hpp"

namespace xfer {

PeerInfo operator-(const PeerInfo &later, const PeerInfo &earlier)
{
	PeerInfo d = later;

	d.moved_in -= earlier.moved_in;
	d.moved_out -= earlier.moved_out;
	d.faults -= earlier.faults;
	d.by_alias -= earlier.by_alias;
	d.fallbacks -= earlier.fallbacks;
	return d;
}

result<std::vector<Extent>> join_pages(std::span<const uint64_t> offsets,
				       uint64_t length)
{
	std::vector<Extent> extents;

	for (size_t i = 0; i < offsets.size() && length; i++) {
		uint64_t offset = offsets[i] & PEER_MEM_OFFSET_MASK;
		uint64_t bytes = std::min<uint64_t>(length, page_size);

		if (offsets[i] == PEER_MEM_NOWHERE)
			return fail(errc::device, "page " + std::to_string(i) +
				    " of the memory is not in the device");
		if (!extents.empty() && extents.back().offset +
		    extents.back().length == offset)
			extents.back().length += bytes;
		else
			extents.push_back({offset, bytes});
		length -= bytes;
	}
	if (length)
		return fail(errc::usage, "fewer pages than bytes");
	return extents;
}

// Migration is best effort: a page that somebody looks at in passing stays
// behind, and nothing tells but a look at where the pages are. Try again then,
// for about a second; a page that does not move by then is held for good.
result<void> DeviceMemory::to_device(std::span<std::byte> range) const
{
	for (auto pause = std::chrono::milliseconds(1);; pause *= 2) {
		if (auto moved = migrate(range); !moved)
			return moved;
		auto where = offsets(range);
		if (!where)
			return std::unexpected(where.error());
		auto left = std::ranges::count(*where, nowhere);
		if (!left)
			return {};
		if (pause > std::chrono::milliseconds(512))
			return fail(errc::device, name_ + ": " +
				    std::to_string(left) +
				    " pages do not migrate to the device");
		std::this_thread::sleep_for(pause);
	}
}

result<std::vector<Extent>> DeviceMemory::lookup(std::span<std::byte> range) const
{
	auto pages = offsets(range);

	if (!pages)
		return std::unexpected(pages.error());
	return join_pages(*pages, range.size());
}

std::unique_ptr<DeviceMemory> open_device_memory(const std::string &name)
{
	if (name.starts_with("gpu:"))
		return std::make_unique<GpuMemory>(name.substr(4));
	return std::make_unique<PeerMemory>(name);
}

} // namespace xfer
