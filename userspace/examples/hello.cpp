// SPDX-License-Identifier: MIT
// Bring the beginning of a file into the memory of a GPU, and back again.
#include <fcntl.h>
#include <print>

#include <sluice/device.hpp>
#include <sluice/or_exit.hpp>

using namespace sluice;

int main(int argc, char **argv)
{
	auto ring = or_exit(context::open());
	auto gpu = or_exit(device::open(ring, "0"));
	auto host = or_exit(buffer::host(1 << 20));
	auto vram = or_exit(gpu.vram(1 << 20));
	or_exit(gpu.attach(host));
	int file = open(argc > 1 ? argv[1] : argv[0], O_RDONLY);
	size_t n = or_exit(ring.read(file, host, 0).wait());
	batch to, back;
	to.fault_in().copy(vram, host);
	back.fault_in().copy(host, vram);
	or_exit(gpu.submit(to).wait());
	or_exit(gpu.submit(back).wait());
	std::println("{} bytes went to {} and came back", n, gpu.info().address);
}
