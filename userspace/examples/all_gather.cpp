// SPDX-License-Identifier: MIT
// Every GPU of this machine gets the blocks of all GPUs, by their SDMA engines.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "sluice/group.hpp"

using namespace sluice;

template <class T> static T need(result<T> got)
{
	if (!got) {
		std::puts(std::string(got.error().message()).c_str());
		std::exit(1);
	}
	return T(std::move(got).value());
}

static std::byte mark(unsigned rank)
{
	return static_cast<std::byte>('A' + rank);
}

int main()
{
	constexpr size_t block = 65536;
	auto ring = need(context::open());
	std::vector<device> gpus;
	for (const auto &info : list_devices())
		if (gpus.size() < group::most_ranks)
			gpus.push_back(need(device::open(ring, info.address)));
	const auto ranks = static_cast<unsigned>(gpus.size());

	// Rank r has its block in place: the r-th block of its result.
	std::vector<slice> to, from;
	for (unsigned r = 0; r < ranks; r++) {
		to.push_back(need(gpus[r].vram(ranks * block)));
		if (!to[r].of().mapped()) {
			std::printf("the CPU does not reach all memory of GPU %u\n", r);
			return 1;
		}
		from.push_back(to[r].part(r * block, block));
		std::ranges::fill(from[r].bytes(), mark(r));
	}

	auto all = need(group::make(ring, gpus));
	auto gather = need(all.all_gather(to, from));
	size_t moved = need(gather.run().wait()); // one system call starts all GPUs

	for (const slice &one : to)
		for (unsigned r = 0; r < ranks; r++) {
			auto is_right = [r](std::byte b) { return b == mark(r); };
			auto bytes = one.part(r * block, block).bytes();

			if (!std::ranges::all_of(bytes, is_right)) {
				std::printf("rank %u's block is wrong\n", r);
				return 1;
			}
		}
	std::printf("%u GPUs have the blocks of all: %zu bytes by %s\n", ranks, moved,
		    name(gather.how()));
}
