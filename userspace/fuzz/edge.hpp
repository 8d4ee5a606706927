// SPDX-License-Identifier: MIT
// An input that ends where memory does: code that reads a byte after it dies, with or
// without a sanitizer.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <sys/mman.h>

namespace sluice::fuzz {

/// The input of one call; it stays there until the next call.
inline std::span<const std::byte> at_the_edge(const unsigned char *data, size_t size)
{
	constexpr size_t page = 4096, room = 64 * page;
	static std::byte *const memory = [] {
		void *all = ::mmap(nullptr, room + page, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (all == MAP_FAILED ||
		    ::mprotect(static_cast<std::byte *>(all) + room, page, PROT_NONE))
			std::abort();
		return static_cast<std::byte *>(all);
	}();

	size = size < room ? size : room;
	std::byte *to = memory + room - size;
	if (size)
		std::memcpy(to, data, size);
	return {to, size};
}

inline std::string_view text_at_the_edge(const unsigned char *data, size_t size)
{
	auto input = at_the_edge(data, size);

	return {reinterpret_cast<const char *>(input.data()), input.size()};
}

/// The text before the next @p end, which is removed with it.
inline std::string_view next_part(std::string_view &text, char end)
{
	std::string_view part = text.substr(0, text.find(end));

	text.remove_prefix(part.size() + (part.size() < text.size()));
	return part;
}

/// A condition that must hold for any input.
inline void must(bool holds)
{
	if (!holds)
		std::abort();
}

} // namespace sluice::fuzz
