// SPDX-License-Identifier: MIT
// The files that the driver loads: a discovery table that describes the
// emulated part, and firmware images of a header and zeros.
#pragma once

#include "types.hpp"

#include <string>
#include <vector>

namespace sluice::emu {

struct File {
	std::string name;
	std::vector<u8> data;
};

std::vector<u8> make_discovery(unsigned engines);
std::vector<File> make_firmware(unsigned engines);

} // namespace sluice::emu
