// SPDX-License-Identifier: MIT
// How a file is cut: into pieces that fit into the receiver's window, and
// pieces into chunks, one RDMA write each.
#pragma once

#include <cstdint>

#include "xfer/error.hpp"

namespace xfer {

/// Limits of the chunk size in bytes.
inline constexpr uint64_t min_chunk = 4096;
inline constexpr uint64_t max_chunk = uint64_t{64} << 20;

/// Bytes of a file, a window, or a piece.
struct Slice {
	uint64_t offset;
	uint64_t length;

	bool operator==(const Slice &) const = default;
};

/// A piece: where it is in the file, and its chunks.
struct Piece {
	Slice file;		///< its bytes of the file
	uint64_t first;		///< number of its first chunk in the file
	uint64_t chunks;	///< how many it has, at least one
};

class Plan {
public:
	/// @param size of the file, bytes, not 0
	/// @param window bytes of a piece at most, at least @p chunk; only
	///	whole chunks of it are used
	/// @param chunk bytes of a chunk, a multiple of 4 KiB between min_chunk
	///	and max_chunk
	/// errc::usage if that is not so.
	static result<Plan> make(uint64_t size, uint64_t window, uint64_t chunk);

	uint64_t size() const noexcept { return size_; }
	uint64_t chunk_size() const noexcept { return chunk_; }
	uint64_t piece_size() const noexcept { return piece_; }
	uint64_t pieces() const noexcept;
	uint64_t chunks() const noexcept;

	/// Piece @p index < pieces().
	Piece piece(uint64_t index) const noexcept;

	/// Chunk @p index of @p piece, its offset relative to the piece, which
	/// is also its offset in the window.
	Slice chunk(const Piece &piece, uint64_t index) const noexcept;

private:
	Plan(uint64_t size, uint64_t piece, uint64_t chunk)
		: size_(size), piece_(piece), chunk_(chunk) {}

	uint64_t size_, piece_, chunk_;
};

} // namespace xfer
