// SPDX-License-Identifier: MIT
// QEMU's monitor, which plays the slot that a device is pulled out of.
#pragma once

#include <chrono>
#include <string>

namespace sluice::emu {

// Have QEMU tell the guest that the slot of the device ID is empty. Waits for
// QEMU, at most this long in all, but not for the guest. Returns what went wrong,
// or nothing.
std::string unplug(const std::string &monitor, const std::string &id,
		   std::chrono::milliseconds patience = std::chrono::seconds(10));

} // namespace sluice::emu
