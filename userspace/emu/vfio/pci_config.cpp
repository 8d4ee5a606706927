// SPDX-License-Identifier: MIT
#include "pci_config.hpp"

namespace sluice::emu::vfio {

void PciConfig::put(u32 offset, u64 value, u32 width, u64 writable)
{
	for (u32 i = 0; i < width; i++) {
		value_[offset + i] = static_cast<u8>(value >> 8 * i);
		mask_[offset + i] = static_cast<u8>(writable >> 8 * i);
	}
}

void PciConfig::bar(unsigned index, u64 bar_size, BarType type)
{
	bool wide = type == memory64 || type == memory64_prefetchable;
	u64 flags = type == io ? 3 : 15;

	put(0x10 + 4 * index, type, wide ? 8 : 4, ~(bar_size - 1) & ~flags);
}

void PciConfig::capability(u8 id, u32 at)
{
	value_[last_pointer_] = static_cast<u8>(at);
	value_[at] = id;
	value_[6] |= 0x10; // the status register's capability bit
	last_pointer_ = at + 1;
}

void PciConfig::read(u32 offset, bytes out) const
{
	std::lock_guard guard(lock_);

	for (size_t i = 0; i < out.size(); i++)
		out[i] = std::byte{offset + i < size ? value_[offset + i] : u8{0xff}};
}

bool PciConfig::write(u32 offset, const_bytes in)
{
	std::lock_guard guard(lock_);

	if (offset > size || in.size() > size - offset)
		return false;
	for (size_t i = 0; i < in.size(); i++) {
		u8 mask = mask_[offset + i];
		u8 &v = value_[offset + i];
		v = static_cast<u8>((v & ~mask) | (static_cast<u8>(in[i]) & mask));
	}
	return true;
}

u64 PciConfig::get(u32 offset, u32 width) const
{
	u64 v = 0;

	read(offset, as_mutable_bytes(v).first(width));
	return v;
}

u64 PciConfig::bar_address(unsigned index) const
{
	u64 low = get(0x10 + 4 * index, 4);
	bool wide = (low & 7) == 4;

	if (wide)
		low = get(0x10 + 4 * index, 8);
	return low & ~15ull;
}

} // namespace sluice::emu::vfio
