// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace sluice::cli {

/// A document for standard output. Names of devices may hold any bytes: invalid UTF-8
/// is replaced.
inline std::string json_text(const nlohmann::json &all)
{
	return all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

} // namespace sluice::cli
