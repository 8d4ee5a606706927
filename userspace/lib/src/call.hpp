// SPDX-License-Identifier: MIT
#pragma once

#include <cerrno>
#include <sys/ioctl.h>

namespace sluice::detail {

/// ioctl(2), retried if a signal interrupts it: 0 or -errno.
inline int call(int fd, unsigned long request, void *argument) noexcept
{
	int err;

	do {
		err = ::ioctl(fd, request, argument);
	} while (err < 0 && errno == EINTR);
	return err < 0 ? -errno : 0;
}

/// The same for calls that a driver fails with EAGAIN because memory moved meanwhile:
/// these are retried, too. Where EAGAIN is an answer, use call().
inline int call_again(int fd, unsigned long request, void *argument) noexcept
{
	int err;

	do {
		err = call(fd, request, argument);
	} while (err == -EAGAIN);
	return err;
}

} // namespace sluice::detail
