// SPDX-License-Identifier: MIT
// Any words as a ring's contents, or as an indirect buffer of a user's VMID
// (the first byte says which, and whether packets end in any order). Whatever it
// is, the engine must stop or go on, and touch nothing but its memory.
#include "../tests/rig.hpp"

#include <algorithm>

using namespace sluice::emu;
using namespace sluice::emu::test;

extern "C" int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	constexpr u64 ib_at = 512 << 10, ib_va = 0x10000;
	constexpr unsigned steps = 24; // a slice of a long copy each

	if (!size)
		return 0;
	bool user = *data & 1, disorder = *data & 2;
	data++;
	u32 words = static_cast<u32>(std::min<size_t>(size - 1, 4096) / 4);
	GpuConfig config;
	config.seed = disorder;
	Rig rig(config, 4 * MiB);
	rig.enable_vmid(3, true);
	for (u64 page = 0; page < 4; page++)
		rig.map_vram(3, ib_va + page * page_size, ib_at + page * page_size);
	rig.map_bus(3, 0x20000, FakeHost::system_base);
	rig.map_bus(3, 0x21000, FakeHost::peer_base);
	std::memcpy(&rig.vram<u8>(user ? ib_at : Rig::ring_at), data, words * 4);
	if (user) {
		rig.gpu.doorbell(0, 0, 4);
		rig.push({0, 0, 4 | 3 << 16, ib_va, 0, words, 0, 0});
		rig.gpu.doorbell(Rig::doorbell * 4, rig.wptr(), 8);
	} else {
		rig.gpu.doorbell(Rig::doorbell * 4, words * 4, 8);
	}
	rig.gpu.run(steps);
	return 0;
}
