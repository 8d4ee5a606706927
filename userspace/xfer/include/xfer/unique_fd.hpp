// SPDX-License-Identifier: MIT
// A file descriptor with one owner.
#pragma once

#include <utility>
#include <unistd.h>

namespace xfer {

class UniqueFd {
public:
	UniqueFd() noexcept = default;
	explicit UniqueFd(int fd) noexcept : fd_(fd) {}
	UniqueFd(UniqueFd &&other) noexcept
		: fd_(std::exchange(other.fd_, -1)) {}
	UniqueFd &operator=(UniqueFd &&other) noexcept
	{
		std::swap(fd_, other.fd_);
		return *this;
	}
	~UniqueFd()
	{
		if (fd_ >= 0)
			::close(fd_);
	}

	int get() const noexcept { return fd_; }
	explicit operator bool() const noexcept { return fd_ >= 0; }

private:
	int fd_ = -1;
};

} // namespace xfer
