// SPDX-License-Identifier: MIT
// A file that is complete or not there: until it is complete, it has another name, with
// ".part" appended.
#pragma once

#include <string>

#include <sys/types.h>

#include "sluice/error.hpp"
#include "sluice/unique_fd.hpp"

namespace sluice::cli {

/// The path for @p name if a user says @p to: in @p to if that is a directory, else @p to
/// itself. errc::output if the path cannot be looked at, is not a regular file (a symbolic
/// link is none), or exists already and may not be replaced.
result<std::string> place_of(const std::string &to, const std::string &name,
			     bool overwrite);

/// The error for a file that is at @p path and may not be replaced.
std::unexpected<error> is_there(const std::string &path);

/// Whether both paths lead to one regular file, or would if they were there. An empty path
/// leads nowhere.
bool is_same_file(const std::string &one, const std::string &other);

/// The mode of a file that will be renamed to @p path: @p of_new, or, if it will replace a
/// file, for its owner alone, until it gets the rights of that one.
mode_t rights_of_part(const std::string &path, mode_t of_new);

/// Open @p part to read and write, locked against other processes. It must be a regular
/// file without another name, and not a symbolic link. Its content is kept.
/// errc::output, also if another process holds it.
/// @param mode less the umask, if it is new; if it is for the owner alone, that of a part
/// that is there, too
result<unique_fd> open_part(const std::string &part, mode_t mode);

/// Create @p part, which must not exist. errc::output.
/// @param mode less the umask
result<unique_fd> make_part(const std::string &part, mode_t mode);

/// Rename the file to @p path, and give it the owner, the mode and the access list of the
/// file that it replaces, as far as this user may. errc::output, also if the name was taken in the
/// meantime and may not be replaced.
/// @param file @p part, open
result<void> put_in_place(int file, const std::string &part, const std::string &path,
			  bool overwrite);

/// The directory of @p path, to be synced after the renaming: without that, a power
/// failure may lose the name. Empty if this user may not read the directory.
unique_fd directory_of(const std::string &path);

/// Check that the file can be written or created, as is needed at the end. errc::output.
result<void> can_be_written(const std::string &path);

} // namespace sluice::cli
