// SPDX-License-Identifier: MIT
// The least that a session can serve.
#pragma once

#include "device.hpp"

namespace sluice::emu::test {

class FakeDevice : public vfio::Device {
public:
	std::array<vfio::RegionDescription, vfio::region_count> regions;
	vfio::DmaMap map;
	vfio::Irq irqs{std::array<u32, vfio::irq_count>{0, 1, 0, 1, 1}};
	u32 last_write = 0;
	unsigned resets = 0;

	FakeDevice()
	{
		regions[0].size = 4 << 20;
		regions[5].size = 0x1000;
		regions[vfio::region_config].size = 4096;
	}

	const vfio::RegionDescription &region(u32 index) const override
	{
		return regions[index];
	}
	void region_read(u32, u64 offset, bytes out) override
	{
		for (size_t i = 0; i < out.size(); i++)
			out[i] = static_cast<std::byte>(offset + i);
	}
	void region_write(u32, u64, const_bytes in) override
	{
		std::memcpy(&last_write, in.data(), std::min<size_t>(4, in.size()));
	}
	void device_reset() override { resets++; }
	vfio::DmaMap &dma() override { return map; }
	vfio::Irq &irq() override { return irqs; }
};

} // namespace sluice::emu::test
