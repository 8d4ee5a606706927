// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "sluice/topology.hpp"

namespace sluice::cli {

/// Everything in the machine, and the paths between its parts.
std::string info_text(const topology &machine);
nlohmann::json info_json(const topology &machine);

/// The path between @p a and @p b.
std::string route_text(std::string_view a, std::string_view b, const route &way);
nlohmann::json route_json(std::string_view a, std::string_view b, const route &way);

} // namespace sluice::cli
