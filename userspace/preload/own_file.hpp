// SPDX-License-Identifier: MIT
// A descriptor in a process whose program does not know of it.
#pragma once

#include <filesystem>
#include <format>
#include <string>
#include <system_error>

#include "sluice/unique_fd.hpp"

namespace sluice::preload {

/// A program may close all descriptors that it does not know, and get the number again for
/// a file of its own. The link target of the number tells the two apart; the inode does
/// not, as all anonymous files, such as those of events, share one.
class own_file {
public:
	/// It stays open as long as the process lives, if the program lets it.
	explicit own_file(unique_fd fd) : fd_(fd.release()), link_(link_of(fd_)) {}

	/// The descriptor, or -1 if the program closed it.
	int get() const { return !link_.empty() && link_of(fd_) == link_ ? fd_ : -1; }

private:
	static std::string link_of(int fd)
	{
		std::error_code none;
		auto link = std::format("/proc/thread-self/fd/{}", fd);

		return std::filesystem::read_symlink(link, none).string();
	}

	const int fd_;
	const std::string link_;
};

} // namespace sluice::preload
