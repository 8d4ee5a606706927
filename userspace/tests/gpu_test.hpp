// SPDX-License-Identifier: MIT
// What tests on GPUs share.
#pragma once

#include <algorithm>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "base_kernel.hpp"
#include "gpu.hpp"
#include "sluice/device.hpp"

namespace sluice {

/// Random bytes, equal for equal seeds.
inline std::vector<std::byte> random_bytes(size_t size, uint32_t seed)
{
	std::mt19937 random(seed);
	std::vector<std::byte> bytes(size);

	std::ranges::generate(bytes, [&] { return static_cast<std::byte>(random()); });
	return bytes;
}

inline void put_random(const slice &to, uint32_t seed)
{
	std::ranges::copy(random_bytes(to.size(), seed), to.data());
}

/// Index of the first byte that differs, or -1.
inline ptrdiff_t first_difference(std::span<const std::byte> a,
				  std::span<const std::byte> b)
{
	auto [i, j] = std::ranges::mismatch(a, b);

	return i == a.end() && j == b.end() ? -1 : i - a.begin();
}

#define EXPECT_BYTES(a, b) EXPECT_EQ(first_difference(a, b), -1)
#define ASSERT_BYTES(a, b) ASSERT_EQ(first_difference(a, b), -1)
/// For results: shows the error.
#define ASSERT_GOOD(result) ASSERT_TRUE(result) << (result).error().message()
#define EXPECT_GOOD(result) EXPECT_TRUE(result) << (result).error().message()

template <class T> T good(result<T> r)
{
	if (!r) {
		ADD_FAILURE() << r.error().message();
		std::abort();
	}
	return *std::move(r);
}

/// A ring, and all GPUs. Without a GPU, the test is skipped.
struct GpuTest : ::testing::Test {
	void SetUp() override
	{
		auto all = list_devices();

		if (all.empty())
			GTEST_SKIP() << "there is no GPU";
		for (const auto &info : all)
			gpus.push_back(good(device::open(ring, info.address)));
		host = good(buffer::host(size));
		out = good(buffer::host(size));
		put_random(host, 1);
		attach(host);
		attach(out);
	}

	void attach(const buffer &memory)
	{
		for (auto &gpu : gpus) {
			auto attached = gpu.attach(memory);
			ASSERT_GOOD(attached);
		}
	}

	void run(device &gpu, batch &what)
	{
		auto moved = gpu.submit(what).wait();

		ASSERT_GOOD(moved);
		EXPECT_EQ(*moved, what.bytes());
	}

	/// Have @p all wait until release(), or for a while. With emulated time, that
	/// may be so long that twice as much is taken for a hang.
	void hold(batch &all)
	{
		std::memset(host.data(), 0, 8);
		all.wait(host.part(0, 4), compare::equal, 1, gpus[0].limits().wait / 4);
	}
	void release() { host.data()[0] = std::byte{1}; }

	static constexpr size_t size = 1 << 20;
	context ring = good(context::open());
	std::vector<device> gpus;
	buffer host, out;
};

} // namespace sluice
