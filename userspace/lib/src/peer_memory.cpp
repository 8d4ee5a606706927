// SPDX-License-Identifier: MIT
#include "sluice/peer_memory.hpp"

#include <algorithm>
#include <chrono>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <thread>

#include "peer_test_uapi.h"
#include "sluice/buffer.hpp"

namespace sluice {

namespace {

uint64_t address_of(std::span<std::byte> range)
{
	return reinterpret_cast<uintptr_t>(range.data());
}

} // namespace

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

PeerMemory::PeerMemory(const std::string &path)
	: path_(path), fd_(::open(path.c_str(), O_RDWR | O_CLOEXEC))
{
	if (!fd_)
		throw system_error(path, errno, errc::device);
	or_throw(info());
}

result<PeerInfo> PeerMemory::info() const
{
	peer_mem_info in{};
	PeerInfo out;

	if (::ioctl(fd_.get(), PEER_MEM_INFO, &in) < 0)
		return fail_errno(path_ + ": PEER_MEM_INFO", errno, errc::device);
	out.size = in.size;
	out.visible = in.visible;
	out.pages = in.pages;
	out.moved_in = in.moved_in;
	out.moved_out = in.moved_out;
	out.faults = in.faults;
	out.by_alias = in.mapped;
	out.fallbacks = in.unreachable + in.invisible + in.no_cpu +
		in.map_failed + in.revoked;
	return out;
}

result<void> PeerMemory::migrate(std::span<std::byte> range) const
{
	for (size_t at = 0; at < range.size(); at += PEER_MEM_MAX_LEN) {
		auto part = range.subspan(at, std::min<size_t>(
			range.size() - at, PEER_MEM_MAX_LEN));
		peer_mem_migrate arg{};

		arg.addr = address_of(part);
		arg.len = round_to_pages(part.size());
		if (::ioctl(fd_.get(), PEER_MEM_TO_DEV, &arg) < 0)
			return fail_errno(path_ + ": PEER_MEM_TO_DEV", errno,
					  errc::device);
	}
	return {};
}

// Migration is best effort: a page that somebody looks at in passing stays
// behind, and nothing tells but a look at where the pages are. Try again then,
// for about a second; a page that does not move by then is held for good.
result<void> PeerMemory::to_device(std::span<std::byte> range) const
{
	for (auto pause = std::chrono::milliseconds(1);; pause *= 2) {
		if (auto moved = migrate(range); !moved)
			return moved;
		auto where = offsets(range);
		if (!where)
			return std::unexpected(where.error());
		auto left = std::ranges::count(*where, PEER_MEM_NOWHERE);
		if (!left)
			return {};
		if (pause > std::chrono::milliseconds(512))
			return fail(errc::device, path_ + ": " +
				    std::to_string(left) +
				    " pages do not migrate to the device");
		std::this_thread::sleep_for(pause);
	}
}

result<std::vector<uint64_t>>
PeerMemory::offsets(std::span<std::byte> range) const
{
	std::vector<uint64_t> pages(round_to_pages(range.size()) / page_size);
	peer_mem_lookup arg{};

	arg.addr = address_of(range);
	arg.len = pages.size() * page_size;
	arg.offsets = reinterpret_cast<uintptr_t>(pages.data());
	if (::ioctl(fd_.get(), PEER_MEM_LOOKUP, &arg) < 0)
		return fail_errno(path_ + ": PEER_MEM_LOOKUP", errno,
				  errc::device);
	return pages;
}

result<std::vector<Extent>> PeerMemory::lookup(std::span<std::byte> range) const
{
	auto pages = offsets(range);

	if (!pages)
		return std::unexpected(pages.error());
	return join_pages(*pages, range.size());
}

result<void> PeerMemory::publish(uint32_t flags) const
{
	auto now = info();
	peer_mem_publish arg{};

	if (!now)
		return std::unexpected(now.error());
	arg.visible = now->size;
	arg.flags = flags;
	if (::ioctl(fd_.get(), PEER_MEM_PUBLISH, &arg) < 0)
		return fail_errno(path_ + ": PEER_MEM_PUBLISH", errno,
				  errc::device);
	return {};
}

result<void> PeerMemory::publish() const
{
	return publish(0);
}

result<void> PeerMemory::publish_without_cpu() const
{
	return publish(PEER_MEM_PUBLISH_NO_CPU);
}

} // namespace sluice
