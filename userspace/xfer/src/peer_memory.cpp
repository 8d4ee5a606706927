// SPDX-License-Identifier: MIT
#include "xfer/peer_memory.hpp"

#include <algorithm>
#include <fcntl.h>
#include <sys/ioctl.h>

#include "peer_test_uapi.h"
#include "xfer/buffer.hpp"

namespace xfer {

namespace {

uint64_t address_of(std::span<std::byte> range)
{
	return reinterpret_cast<uintptr_t>(range.data());
}

static_assert(DeviceMemory::nowhere == PEER_MEM_NOWHERE);

} // namespace

PeerMemory::PeerMemory(const std::string &path)
	: DeviceMemory(path), fd_(::open(path.c_str(), O_RDWR | O_CLOEXEC))
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
		return fail_errno(name_ + ": PEER_MEM_INFO", errno, errc::device);
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
			return fail_errno(name_ + ": PEER_MEM_TO_DEV", errno,
					  errc::device);
	}
	return {};
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
		return fail_errno(name_ + ": PEER_MEM_LOOKUP", errno,
				  errc::device);
	return pages;
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
		return fail_errno(name_ + ": PEER_MEM_PUBLISH", errno,
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

} // namespace xfer
