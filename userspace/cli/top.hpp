// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "usage.hpp"

namespace sluice::cli {

std::string top_text(const usage_rates &of);
nlohmann::ordered_json top_json(const usage_rates &of);

} // namespace sluice::cli
