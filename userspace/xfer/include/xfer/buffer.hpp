// SPDX-License-Identifier: MIT
// Anonymous memory, page aligned.
#pragma once

#include <cstddef>
#include <span>

#include "xfer/error.hpp"

namespace xfer {

inline constexpr size_t page_size = 4096;

/// @p n rounded up to whole pages.
constexpr size_t round_to_pages(size_t n)
{
	return (n + page_size - 1) & ~(page_size - 1);
}

/// A private anonymous mapping. Its address never changes, so that a memory
/// region can stay registered while the pages behind it come and go.
class Buffer {
public:
	/// @param size bytes, a multiple of the page size. Throws Error.
	/// @param align of the address: a power of two
	explicit Buffer(size_t size, size_t align = size_t{2} << 20);
	~Buffer();
	Buffer(const Buffer &) = delete;
	Buffer &operator=(const Buffer &) = delete;

	std::span<std::byte> span() const noexcept { return {data_, size_}; }
	std::byte *data() const noexcept { return data_; }
	size_t size() const noexcept { return size_; }

	/// Drop all pages, wherever they are: what is touched next is zero and
	/// in system memory. Nothing migrates for it.
	result<void> discard() const;

private:
	void *map_ = nullptr;
	size_t map_size_ = 0;
	std::byte *data_ = nullptr;
	size_t size_;
};

} // namespace xfer
