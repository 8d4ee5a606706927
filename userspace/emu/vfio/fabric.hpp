// SPDX-License-Identifier: MIT
// The BARs of all devices of one virtual machine by guest-physical address,
// so that one device's DMA reaches another's BAR. QEMU offers no file for
// them; the addresses come from the configuration writes it forwards.
#pragma once

#include "types.hpp"

#include <functional>
#include <map>
#include <shared_mutex>

namespace sluice::emu::vfio {

class BarTarget {
public:
	virtual ~BarTarget() = default;
	virtual bool bar_read(unsigned bar, u64 offset, bytes out) = 0;
	virtual bool bar_write(unsigned bar, u64 offset, const_bytes in) = 0;
	virtual bool bar_update(unsigned bar, u64 offset, unsigned size,
				const std::function<u64(u64)> &fn, u64 &old) = 0;
};

class Fabric {
public:
	// With a virtual IOMMU devices do not use physical addresses: nothing
	// may be looked up then.
	explicit Fabric(bool enabled = true) : enabled_(enabled) {}

	void place(BarTarget &target, unsigned bar, u64 address, u64 size);
	void remove(BarTarget &target, unsigned bar);
	void remove(BarTarget &target);

	bool read(u64 address, bytes out);
	bool write(u64 address, const_bytes in);
	bool update(u64 address, unsigned size, const std::function<u64(u64)> &fn,
		    u64 &old);

private:
	struct Window {
		BarTarget *target;
		unsigned bar;
		u64 size;
	};
	using Use = std::function<bool(const Window &, u64 offset)>;

	bool with(u64 address, u64 n, const Use &fn);

	bool enabled_;
	std::shared_mutex lock_;
	std::map<u64, Window> windows_;
};

} // namespace sluice::emu::vfio
