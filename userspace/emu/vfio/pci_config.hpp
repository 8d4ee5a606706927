// SPDX-License-Identifier: MIT
// Configuration space: values, a write mask beside them, and builders. QEMU
// forwards every write, BAR sizing included; the mask is what makes sizing
// work.
#pragma once

#include "types.hpp"

#include <array>
#include <functional>
#include <mutex>

namespace sluice::emu::vfio {

class PciConfig {
public:
	static constexpr u32 size = 4096;
	enum BarType : u32 {
		memory32 = 0,
		io = 1,
		memory64 = 4,
		memory64_prefetchable = 0xc
	};

	// For building, before a guest is there.
	void put(u32 offset, u64 value, u32 width, u64 writable = 0);
	void bar(unsigned index, u64 bar_size, BarType type);
	// Appends to the list that starts at 0x34.
	void capability(u8 id, u32 at);

	void read(u32 offset, bytes out) const;
	// False if it lies outside. Unwritable bits keep their value.
	bool write(u32 offset, const_bytes in);
	u64 get(u32 offset, u32 width) const;

	bool memory_enabled() const { return get(4, 2) & 2; }
	bool bus_master() const { return get(4, 2) & 4; }
	u64 bar_address(unsigned index) const;

private:
	mutable std::mutex lock_;
	std::array<u8, size> value_{}, mask_{};
	u32 last_pointer_ = 0x34;
};

} // namespace sluice::emu::vfio
