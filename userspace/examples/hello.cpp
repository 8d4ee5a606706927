// SPDX-License-Identifier: MIT
// Bring the beginning of a file into the memory of a GPU, and out again.
#include <cstdio>
#include <fcntl.h>

#include "sluice/device.hpp"

using namespace sluice;

static int failed(const error &why)
{
	std::printf("%.*s\n", int(why.message().size()), why.message().data());
	return 1;
}

int main(int argc, char **argv)
{
	auto ring = context::open();
	if (!ring)
		return failed(ring.error());
	auto gpu = device::open(*ring, "0");
	auto host = buffer::host(1 << 20);
	auto vram = gpu ? gpu->vram(1 << 20) : std::unexpected(gpu.error());
	if (!host || !vram)
		return failed(host ? vram.error() : host.error());
	if (auto there = gpu->attach(*host); !there)
		return failed(there.error());

	auto n = ring->read(::open(argc > 1 ? argv[1] : argv[0], O_RDONLY), *host, 0)
			 .wait();
	if (!n)
		return failed(n.error());
	batch to, back;
	to.fault_in().copy(*vram, *host);
	back.fault_in().copy(*host, *vram);
	for (batch *b : {&to, &back})
		if (auto moved = gpu->submit(*b).wait(); !moved)
			return failed(moved.error());
	std::printf("%zu bytes went to %s and came back\n", *n,
		    gpu->info().address.c_str());
}
