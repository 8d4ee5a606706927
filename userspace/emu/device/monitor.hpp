// SPDX-License-Identifier: MIT
// QEMU's monitor, which plays the slot that a device is pulled out of.
#pragma once

#include <string>

namespace sluice::emu {

// Have QEMU tell the guest that the slot of its device ID is empty. Nothing of
// the guest is waited for. Returns what went wrong, or nothing.
std::string unplug(const std::string &monitor, const std::string &id);

} // namespace sluice::emu
