// SPDX-License-Identifier: MIT
#pragma once

#include <string>

#include "sluice/error.hpp"

namespace sluice::cli {

/// The token of a --token-file: its first line, without the line end.
result<std::string> read_token(const std::string &path);

} // namespace sluice::cli
