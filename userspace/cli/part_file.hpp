// SPDX-License-Identifier: MIT
// A file that is whole or not there: it has another name, with ".part" behind it,
// until all of it is.
#pragma once

#include <string>

#include "sluice/error.hpp"
#include "sluice/unique_fd.hpp"

namespace sluice::cli {

/// The path of @p name where a user says @p to: in it if it is a directory, else it is
/// the path. errc::output if it cannot be looked at, or if it is there already and
/// may not be replaced.
result<std::string> place_of(const std::string &to, const std::string &name,
			     bool overwrite);

/// Open @p part to read and write, and make it if it is not there: a file, never one
/// that somebody else's link leads to. errc::output.
/// @param flags more flags of open(2)
result<unique_fd> open_part(const std::string &part, int flags);

/// Give it its name. errc::output, also if something has that name meanwhile and may
/// not be replaced.
result<void> put_in_place(const std::string &part, const std::string &path,
			  bool overwrite);

} // namespace sluice::cli
