// SPDX-License-Identifier: MIT
// Which guest addresses the device can reach, and how. A mapping with a file
// is memory of this process; one without says only that QEMU would answer a
// message for it. No pointer leaves this class: guests unmap at any time.
#pragma once

#include "protocol.hpp"

#include <functional>
#include <map>
#include <memory>
#include <shared_mutex>

namespace sluice::emu::vfio {

class DmaMap {
public:
	enum class Kind : u8 { none, memory, message };
	using Use = std::function<void(std::byte *at, u64 length)>;

	// Errors are errno values, 0 is success.
	int map(const DmaMapRequest &request, unique_fd file);
	// Returns when the memory is no longer in use.
	int unmap(const DmaUnmapRequest &request);
	void clear();

	// Let fn work on the part of [address, +n) that the first mapping
	// covers, and say how long that part is. Only Kind::memory calls fn.
	Kind use(u64 address, u64 n, bool write, u64 &length, const Use &fn);
	size_t count() const;

private:
	struct Unmapper {
		u64 size;
		void operator()(std::byte *p) const;
	};
	struct Entry {
		u64 size;
		bool readable, writable;
		std::unique_ptr<std::byte, Unmapper> memory;
	};

	static bool covers(const std::pair<const u64, Entry> &e, u64 address);
	bool overlaps(u64 address, u64 size) const;

	mutable std::shared_mutex lock_;
	std::map<u64, Entry> entries_;
};

} // namespace sluice::emu::vfio
