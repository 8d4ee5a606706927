// SPDX-License-Identifier: MIT
// What tests of groups on GPUs share.
#pragma once

#include <functional>
#include <thread>

#include "gpu_test.hpp"
#include "group_cases.hpp"
#include "sluice/group.hpp"

namespace sluice {

/// All GPUs, with memory in each.
struct GroupTest : ::testing::Test {
	void SetUp() override
	{
		WANTS_BATCHES();
		if (list_devices().size() < 2)
			GTEST_SKIP() << "there are no two GPUs";
		open_all();
	}

	/// May be called again.
	void open_all()
	{
		memory.clear();
		gpus.clear();
		for (const auto &info : list_devices())
			if (gpus.size() < group::most_ranks)
				gpus.push_back(good(device::open(ring, info.address)));
		for (device &gpu : gpus)
			memory.push_back(good(gpu.vram(size)));
	}

	unsigned ranks() const { return static_cast<unsigned>(gpus.size()); }
	group all() { return good(group::make(ring, gpus)); }

	/// An all-gather of all ranks.
	collective_case a_case(variant how, bool prelaunch) const
	{
		return {detail::pattern::all_gather,
			ranks(),
			0,
			1000,
			false,
			how,
			prelaunch};
	}

	/// The result of @p once, which begins @p what, releases it and waits for it. An
	/// engine holds a prelaunched run for some 40 ms at most, and a busy machine may
	/// release it later than that: then try again. What was swapped by then would be
	/// swapped back: @p restore the memory first.
	static result<size_t> in_time(const collective &what, const auto &once,
				      const std::function<void()> &restore = [] {})
	{
		for (int tries = what.prelaunched() ? 20 : 0;; tries--) {
			result<size_t> moved = once();

			if (moved || moved.error().code() != errc::timeout || !tries)
				return moved;
			restore();
		}
	}
	static result<size_t> run_in_time(collective &what,
					  const std::function<void()> &restore = [] {})
	{
		return in_time(what, [&] {
			auto running = what.run();

			what.release();
			return running.wait();
		}, restore);
	}

	/// Whether @p rank is done, however it ended, @p within this time.
	static bool ends(collective_run &running, unsigned rank, clock::duration within)
	{
		const deadline until = after(within);

		do {
			auto moved = running.of(rank);

			if (moved || moved.error().number() != EINPROGRESS)
				return true;
			std::this_thread::sleep_for(std::chrono::milliseconds(1));
		} while (clock::now() < until);
		return false;
	}

	static constexpr size_t size = 96 << 10;
	context ring = good(context::open());
	std::vector<device> gpus;
	std::vector<buffer> memory;
};

} // namespace sluice
