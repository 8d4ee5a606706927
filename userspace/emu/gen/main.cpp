// SPDX-License-Identifier: MIT
// sluice-emu-firmware DIRECTORY [ENGINES]: write what amdgpu loads for the
// emulated part into DIRECTORY/amdgpu.
#include "firmware.hpp"
#include "regs.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace sluice::emu;

int main(int argc, char **argv)
{
	if (argc < 2 || argc > 3) {
		std::fputs("usage: sluice-emu-firmware DIRECTORY [ENGINES]\n", stderr);
		return 2;
	}
	unsigned long engines = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 2;
	if (engines < 1 || engines > reg::max_engines) {
		std::fputs("sluice-emu-firmware: 1 to 16 engines\n", stderr);
		return 2;
	}
	std::filesystem::path directory = argv[1];
	directory /= "amdgpu";
	std::error_code error;
	std::filesystem::create_directories(directory, error);
	for (const File &f : make_firmware(static_cast<unsigned>(engines))) {
		std::ofstream out(directory / f.name, std::ios::binary);
		out.write(reinterpret_cast<const char *>(f.data.data()),
			  static_cast<std::streamsize>(f.data.size()));
		if (!out.flush()) {
			std::fprintf(stderr, "sluice-emu-firmware: %s\n",
				     (directory / f.name).c_str());
			return 1;
		}
	}
	return 0;
}
