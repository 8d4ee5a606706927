// SPDX-License-Identifier: MIT
// QEMU's monitor, which plays the slot that a device is pulled out of.
#pragma once

#include <chrono>
#include <string>

namespace sluice::emu {

// Have QEMU tell the guest that the slot of its device ID is empty. Nothing of
// the guest is waited for, and QEMU for that long in all. Returns what went wrong,
// or nothing.
std::string unplug(const std::string &monitor, const std::string &id,
		   std::chrono::milliseconds patience = std::chrono::seconds(10));

} // namespace sluice::emu
