// SPDX-License-Identifier: MIT
// Bring the beginning of a file into the memory of a GPU, and out again.
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>

#include "sluice/device.hpp"

using namespace sluice;

template <class T> static T need(result<T> got)
{
	if (!got) {
		std::puts(std::string(got.error().message()).c_str());
		std::exit(1);
	}
	return T(std::move(got).value());
}

int main(int argc, char **argv)
{
	auto ring = need(context::open());
	auto gpu = need(device::open(ring, "0"));
	auto host = need(buffer::host(1 << 20));
	auto vram = need(gpu.vram(1 << 20));
	need(gpu.attach(host));
	int file = open(argc > 1 ? argv[1] : argv[0], O_RDONLY);
	size_t n = need(ring.read(file, host, 0).wait());
	batch to, back;
	to.fault_in().copy(vram, host);
	back.fault_in().copy(host, vram);
	need(gpu.submit(to).wait());
	need(gpu.submit(back).wait());
	std::printf("%zu bytes went to %s and came back\n", n,
		    gpu.info().address.c_str());
}
