// SPDX-License-Identifier: MIT
// The memory that one side transfers from or to.
#pragma once

#include <memory>
#include <optional>

#include "options.hpp"
#include "report.hpp"
#include "xfer/buffer.hpp"
#include "xfer/device_memory.hpp"
#include "xfer/verbs.hpp"

namespace xfer {

class Window {
public:
	/// Registers at most @p o.window bytes, less if the device's memory or
	/// @p limit is smaller. @p access as for MemoryRegion. Throws Error.
	Window(const Options &o, const RdmaDevice &device, uint64_t limit,
	       int access);

	std::span<std::byte> span() const noexcept { return buffer_->span(); }
	std::span<std::byte> first(uint64_t bytes) const
	{
		return span().first(bytes);
	}
	const MemoryRegion &mr() const noexcept { return *mr_; }

	/// Drop all pages, so that what is filled in next is new memory.
	result<void> discard() const { return buffer_->discard(); }

	/// Migrate the first @p bytes to the device; nothing for system memory.
	/// All other pages stay where they are.
	result<void> to_device(uint64_t bytes) const;

	/// Where the first @p bytes are in the device's BAR.
	result<std::vector<Extent>> lookup(uint64_t bytes) const;

	/// Bracket the time in which the other side or the RDMA device uses the
	/// memory: what happens to pages in between is added to stats().
	result<void> begin();
	result<void> end();

	const SideStats &stats() const noexcept { return stats_; }
	bool in_device() const noexcept { return peer_ != nullptr; }

private:
	std::unique_ptr<DeviceMemory> peer_;
	std::optional<Buffer> buffer_;
	std::optional<MemoryRegion> mr_;
	PeerInfo before_;
	SideStats stats_;
};

} // namespace xfer
