// SPDX-License-Identifier: MIT
// What a session serves. All calls come from the session's reader thread;
// none may wait for a DMA message, which QEMU answers only afterwards.
#pragma once

#include "dma_map.hpp"
#include "irq.hpp"
#include "pci_config.hpp"

#include <span>

namespace sluice::emu::vfio {

// A region is trapped, mapped (fd and no areas) or sparse (fd and areas: only
// those are mapped).
struct RegionDescription {
	u64 size = 0;
	bool writable = true;
	int fd = -1;
	std::vector<Area> areas;
};

class Device {
public:
	virtual ~Device() = default;

	virtual const RegionDescription &region(u32 index) const = 0;
	// Lengths and ranges are checked before.
	virtual void region_read(u32 index, u64 offset, bytes out) = 0;
	virtual void region_write(u32 index, u64 offset, const_bytes in) = 0;
	virtual void device_reset() = 0;

	virtual DmaMap &dma() = 0;
	virtual Irq &irq() = 0;
};

} // namespace sluice::emu::vfio
