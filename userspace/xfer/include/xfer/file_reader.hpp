// SPDX-License-Identifier: MIT
// A regular file, read through io_uring.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "xfer/error.hpp"
#include "xfer/ring.hpp"
#include "xfer/unique_fd.hpp"

namespace xfer {

class FileReader {
public:
	/// Open @p path. Throws Error of kind errc::input if it does not exist,
	/// cannot be read, is not a regular file, or is empty.
	explicit FileReader(const std::string &path);

	/// Size in bytes when it was opened.
	uint64_t size() const noexcept { return size_; }

	/// Fill @p to from byte @p offset on, with several reads under way.
	/// errc::input if the file ends before.
	result<void> read(Ring &ring, std::span<std::byte> to,
			  uint64_t offset) const;

	/// How many reads of how many bytes read() keeps under way.
	static constexpr unsigned depth = 4;
	static constexpr size_t block = size_t{1} << 20;

private:
	result<size_t> fill(Ring &ring, std::span<std::byte> to,
			    uint64_t offset) const;

	std::string path_;
	UniqueFd fd_;
	uint64_t size_ = 0;
};

} // namespace xfer
