// SPDX-License-Identifier: MIT
// Blocks of a KV cache, as a language model server moves them from where prompts are
// read (prefill) to where answers are written (decode).
//
// A cache is divided into blocks of a fixed number of tokens, and a sequence has some
// of them, wherever there was room. Each block has a part in the K and in the V plane
// of each layer. So one sequence is hundreds of small pieces of memory. A stream
// gathers them by one batch for each of its pieces, sends them, and scatters them at
// the other end, where other blocks are free:
//
//	auto source = kv_source(layout, cache, blocks);		// prefill
//	co_await sender.send(*source);
//
//	auto offer = co_await receiver.next();			// decode
//	if (auto fits = kv_fits(**offer, layout, free.size()); fits)
//		co_await receiver.receive(*kv_sink(layout, cache, free));
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sluice/stream.hpp"

namespace sluice {

/// Where the parts of a block are. Block b of plane p of layer l begins at
/// (l * planes + p) * plane_stride + b * block_stride, in bytes.
struct kv_layout {
	unsigned layers = 1;
	unsigned planes = 2;	 ///< K and V; 1 where they are together
	uint32_t blocks = 0;	 ///< in each plane
	size_t block_bytes = 0;	 ///< of a block in one plane
	size_t block_stride = 0; ///< 0: block_bytes, contiguous
	size_t plane_stride = 0; ///< 0: blocks * block_stride

	/// Bytes of one block in all planes and layers: how much of it is sent.
	uint64_t bytes_each() const noexcept;
	/// Bytes that a cache has at least.
	uint64_t size() const noexcept;
	/// errc::usage names what is wrong: no blocks, parts that overlap.
	result<void> check() const;
	/// The same, and whether it fits in @p cache.
	result<void> check(const slice &cache) const;
};

enum class kv_use {
	read,  ///< a block may be named again
	write, ///< a block may be named once
};

/// The memory of @p blocks of @p cache, layer by layer and plane by plane, in this
/// order; adjacent parts are merged. errc::usage, with index() of the block at fault.
result<std::vector<slice>> kv_parts(const kv_layout &layout, const slice &cache,
				    std::span<const uint32_t> blocks, kv_use use);

/// What a sender of @p count blocks offers: the shape is in its name.
stream_offer kv_offer(const kv_layout &layout, size_t count);

/// What a stream sends: the parts of @p blocks.
result<stream_source> kv_source(const kv_layout &layout, const slice &cache,
				std::span<const uint32_t> blocks);

/// Where a stream puts as many blocks, in the same order.
result<stream_sink> kv_sink(const kv_layout &layout, const slice &cache,
			    std::span<const uint32_t> blocks);

/// Does @p offer match @p count blocks of this shape? The strides and the size of the
/// cache may differ. errc::protocol names both shapes.
result<void> kv_fits(const stream_offer &offer, const kv_layout &layout, size_t count);

} // namespace sluice
