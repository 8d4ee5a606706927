// SPDX-License-Identifier: MIT
// A file that is whole or not there: it has another name, with ".part" behind it,
// until all of it is.
#pragma once

#include <string>

#include <sys/types.h>

#include "sluice/error.hpp"
#include "sluice/unique_fd.hpp"

namespace sluice::cli {

/// The path of @p name where a user says @p to: in it if it is a directory, else it is
/// the path. errc::output if it cannot be looked at, if it is no regular file, or if it
/// is there already and may not be replaced.
result<std::string> place_of(const std::string &to, const std::string &name,
			     bool overwrite);

/// The rights of what is at @p path, or those of a new file.
mode_t rights_at(const std::string &path);

/// Open @p part to read and write, for nobody else meanwhile: a file, never one that
/// somebody else's link leads to, or that has another name as well. What is in it stays.
/// errc::output, also if another process has it.
/// @param mode less the umask, if it is new
result<unique_fd> open_part(const std::string &part, mode_t mode);

/// Make @p part, which must not be there. errc::output.
/// @param mode less the umask
result<unique_fd> make_part(const std::string &part, mode_t mode);

/// Give the file its name, and the owner and rights of the file that it replaces, as far
/// as this user may. errc::output, also if something has that name meanwhile and may not be
/// replaced.
/// @param file @p part, open
result<void> put_in_place(int file, const std::string &part, const std::string &path,
			  bool overwrite);

/// The directory of @p path, to be synced when the file has its name: without that the name
/// may be gone after a loss of power. Who may not read the directory gets none.
unique_fd directory_of(const std::string &path);

/// Can the file be written to, or made, which is needed at the end? errc::output.
result<void> can_be_written(const std::string &path);

} // namespace sluice::cli
