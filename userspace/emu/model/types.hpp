// SPDX-License-Identifier: MIT
// Types shared by the whole model.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace sluice::emu {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using bytes = std::span<std::byte>;
using const_bytes = std::span<const std::byte>;

constexpr u64 page_shift = 12;
constexpr u64 page_size = 1ull << page_shift;

constexpr u64 join(u32 lo, u32 hi)
{
	return lo | static_cast<u64>(hi) << 32;
}

constexpr u32 lower(u64 v)
{
	return static_cast<u32>(v);
}

constexpr u32 upper(u64 v)
{
	return static_cast<u32>(v >> 32);
}

constexpr u64 field(u64 value, unsigned shift, unsigned width)
{
	return value >> shift & ((1ull << width) - 1);
}

constexpr bool aligned(u64 value, u64 to)
{
	return (value & (to - 1)) == 0;
}

// Where an access of an engine ended. peer: another GPU, over the bus; message:
// only QEMU knows where; xgmi: another GPU, over the link; off: nowhere, as the GPU
// may not use the bus.
enum class Path : u8 { none, vram, system, peer, message, xgmi, off };

constexpr std::array<const char *, 7> path_names{"none",    "vram", "system", "peer",
						 "message", "xgmi", "off"};

constexpr bool reached(Path p)
{
	return p != Path::none && p != Path::off;
}

// The memory at which an access ended. gpu: the owner of vram or xgmi memory;
// address: in that memory, or on the bus.
struct Place {
	Path path = Path::none;
	unsigned gpu = 0;
	u64 address = 0;
};

// Guest and model share memory that both touch at any time. A naturally
// aligned word must never be seen half written, and a fence's store must not
// overtake the data it announces; memcpy promises neither.
inline void copy_shared(std::byte *dst, const std::byte *src, std::size_t n)
{
	auto both = reinterpret_cast<std::uintptr_t>(dst) |
		    reinterpret_cast<std::uintptr_t>(src);

	if (n == 8 && aligned(both, 8)) {
		u64 v = __atomic_load_n(reinterpret_cast<const u64 *>(src),
					__ATOMIC_ACQUIRE);
		__atomic_store_n(reinterpret_cast<u64 *>(dst), v, __ATOMIC_RELEASE);
	} else if (n == 4 && aligned(both, 4)) {
		u32 v = __atomic_load_n(reinterpret_cast<const u32 *>(src),
					__ATOMIC_ACQUIRE);
		__atomic_store_n(reinterpret_cast<u32 *>(dst), v, __ATOMIC_RELEASE);
	} else {
		std::memcpy(dst, src, n);
		std::atomic_thread_fence(std::memory_order_seq_cst);
	}
}

template <class T> const_bytes as_const_bytes(const T &v)
{
	return std::as_bytes(std::span{&v, 1});
}

template <class T> bytes as_mutable_bytes(T &v)
{
	return std::as_writable_bytes(std::span{&v, 1});
}

} // namespace sluice::emu
