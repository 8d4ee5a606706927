// SPDX-License-Identifier: MIT
// What the values of an option are, for who completes them.
#pragma once

#include <string>

#include "described.hpp"

namespace sluice::cli {

/// One of FILE, HOST, NIC, GPU, DEVICE, PLACE, COMMAND; "": nothing can be offered; or
/// "=a b": one of these words. Throws when an option's value has a name that it does
/// not know: whoever adds such an option has to say here what is offered.
std::string kind_of(const described_option &o);

} // namespace sluice::cli
