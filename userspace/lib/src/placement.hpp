// SPDX-License-Identifier: MIT
// Where the memory of a stream's pieces is.
#pragma once

#include "sluice/buffer.hpp"
#include "sluice/stream.hpp"

namespace sluice::detail {

/// The NUMA node of the device that reaches pieces in host memory, -1 if it has none.
/// Where the card reaches video memory, that is the GPU. Else it is the card, although
/// a GPU may copy from or to there, too.
int node_for_pieces(data_path path, int of_gpu, int of_card) noexcept;

/// Host memory, and how much of it is not where it should be.
struct placed_memory {
	buffer memory;
	uint64_t elsewhere = 0; ///< pages
};

/// Zeroed host memory on @p node, or elsewhere if there is none; -1: anywhere.
result<placed_memory> memory_near(int node, size_t size);

} // namespace sluice::detail
