// SPDX-License-Identifier: MIT
#pragma once

#include <cerrno>
#include <sys/ioctl.h>

namespace sluice::detail {

/// ioctl(2), made again if a signal interrupts it: 0 or -errno.
inline int call(int fd, unsigned long request, void *argument) noexcept
{
	int err;

	do {
		err = ::ioctl(fd, request, argument);
	} while (err < 0 && errno == EINTR);
	return err < 0 ? -errno : 0;
}

} // namespace sluice::detail
