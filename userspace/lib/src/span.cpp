// SPDX-License-Identifier: MIT
#include "span.hpp"

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

namespace sluice::detail {

namespace {

/// A descriptor that cannot be written to counts as none.
int find_descriptor() noexcept
{
	const char *text = std::getenv("SLUICE_TRACE_FD");
	char *end = nullptr;
	long fd = text ? std::strtol(text, &end, 10) : -1;

	if (fd < 3 || fd > 1 << 20 || *end)
		return -1;
	int flags = ::fcntl(static_cast<int>(fd), F_GETFL);
	return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY ? static_cast<int>(fd)
							     : -1;
}

long long nanoseconds(clock::time_point t) noexcept
{
	return std::chrono::duration_cast<std::chrono::nanoseconds>(
		       t.time_since_epoch())
		.count();
}

} // namespace

int trace_descriptor() noexcept
{
	static const int fd = find_descriptor();

	return fd;
}

// A lost line is no reason to fail a transfer.
void write_span(const char *step, uint64_t piece, clock::time_point begin,
		clock::time_point end) noexcept
{
	char line[128];
	int n = std::snprintf(line, sizeof(line),
			      "sluice: step=%s piece=%llu begin=%lld end=%lld\n", step,
			      static_cast<unsigned long long>(piece),
			      nanoseconds(begin), nanoseconds(end));

	if (n > 0 && n < static_cast<int>(sizeof(line)))
		(void)!::write(trace_descriptor(), line, static_cast<size_t>(n));
}

} // namespace sluice::detail
