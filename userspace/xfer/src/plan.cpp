// SPDX-License-Identifier: MIT
#include "xfer/plan.hpp"

#include <algorithm>

namespace xfer {

namespace {

constexpr uint64_t divide_up(uint64_t a, uint64_t b)
{
	return a / b + (a % b != 0);
}

} // namespace

result<Plan> Plan::make(uint64_t size, uint64_t window, uint64_t chunk)
{
	if (chunk < min_chunk || chunk > max_chunk || chunk % min_chunk)
		return fail(errc::usage, "a chunk of " + std::to_string(chunk) +
			    " bytes: it must be a multiple of 4096 between " +
			    std::to_string(min_chunk) + " and " +
			    std::to_string(max_chunk));
	if (size == 0)
		return fail(errc::usage, "there is nothing to send");
	if (window < chunk)
		return fail(errc::usage, "a chunk of " + std::to_string(chunk) +
			    " bytes does not fit into a window of " +
			    std::to_string(window));
	return Plan(size, window / chunk * chunk, chunk);
}

uint64_t Plan::pieces() const noexcept
{
	return divide_up(size_, piece_);
}

uint64_t Plan::chunks() const noexcept
{
	return divide_up(size_, chunk_);
}

Piece Plan::piece(uint64_t index) const noexcept
{
	uint64_t offset = index * piece_;
	uint64_t length = std::min(piece_, size_ - offset);

	return {{offset, length}, offset / chunk_, divide_up(length, chunk_)};
}

Slice Plan::chunk(const Piece &piece, uint64_t index) const noexcept
{
	uint64_t offset = index * chunk_;

	return {offset, std::min(chunk_, piece.file.length - offset)};
}

} // namespace xfer
