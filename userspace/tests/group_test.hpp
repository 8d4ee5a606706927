// SPDX-License-Identifier: MIT
// What tests of groups on GPUs share.
#pragma once

#include "gpu_test.hpp"
#include "group_cases.hpp"
#include "sluice/group.hpp"

namespace sluice {

/// All GPUs, with memory in each.
struct GroupTest : ::testing::Test {
	void SetUp() override
	{
		WANTS_BATCHES();
		for (const auto &info : list_devices())
			if (gpus.size() < group::most_ranks)
				gpus.push_back(good(device::open(ring, info.address)));
		if (gpus.size() < 2)
			GTEST_SKIP() << "there are no two GPUs";
		for (device &gpu : gpus)
			memory.push_back(good(gpu.vram(size)));
	}

	unsigned ranks() const { return static_cast<unsigned>(gpus.size()); }
	group all() { return good(group::make(ring, gpus)); }

	/// An all-gather of all ranks.
	collective_case a_case(variant how, bool prelaunch) const
	{
		return {detail::pattern::all_gather, ranks(), 0, 1000, false, how,
			prelaunch};
	}

	static constexpr size_t size = 96 << 10;
	context ring = good(context::open());
	std::vector<device> gpus;
	std::vector<buffer> memory;
};

} // namespace sluice
