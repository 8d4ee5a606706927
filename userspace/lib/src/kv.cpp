// SPDX-License-Identifier: MIT
#include "sluice/kv.hpp"

#include <format>
#include <limits>

#include "try.hpp"

namespace sluice {

namespace {

std::unexpected<error> bad(std::string_view what)
{
	return fail(errc::usage, "KV cache", what);
}

/// 0 if it exceeds 64 bits.
uint64_t product(std::initializer_list<uint64_t> factors) noexcept
{
	uint64_t all = 1;

	for (uint64_t f : factors)
		if (__builtin_mul_overflow(all, f, &all))
			return 0;
	return all;
}

kv_layout with_strides(kv_layout l) noexcept
{
	if (!l.block_stride)
		l.block_stride = l.block_bytes;
	if (!l.plane_stride)
		l.plane_stride = product({l.blocks, l.block_stride});
	return l;
}

result<void> check_blocks(const kv_layout &l, std::span<const uint32_t> blocks,
			  bool once)
{
	std::vector<bool> named(once ? l.blocks : 0);

	if (blocks.empty())
		return bad("no block is named");
	for (size_t i = 0; i < blocks.size(); i++) {
		auto refused = [&](std::string_view why) {
			return std::unexpected(
				error(errc::usage, "KV cache",
				      std::format("block {} {}", blocks[i], why))
					.at(i));
		};
		if (blocks[i] >= l.blocks)
			return refused(std::format("is none of {}", l.blocks));
		if (once && named[blocks[i]])
			return refused("is named twice");
		if (once)
			named[blocks[i]] = true;
	}
	return {};
}

std::vector<slice> parts_of(const kv_layout &l, const slice &cache,
			    std::span<const uint32_t> blocks)
{
	std::vector<slice> parts;

	parts.reserve(blocks.size() * l.layers * l.planes);
	for (size_t plane = 0; plane < size_t{l.layers} * l.planes; plane++)
		for (uint32_t b : blocks) {
			size_t at = plane * l.plane_stride + b * l.block_stride;
			size_t end = parts.empty() ? 0
						   : parts.back().offset() +
							     parts.back().size();

			if (!parts.empty() && end == cache.offset() + at)
				parts.back() =
					slice(cache.of(), parts.back().offset(),
					      parts.back().size() + l.block_bytes);
			else
				parts.push_back(cache.part(at, l.block_bytes));
		}
	return parts;
}

} // namespace

uint64_t kv_layout::bytes_each() const noexcept
{
	return product({layers, planes, block_bytes});
}

uint64_t kv_layout::size() const noexcept
{
	kv_layout l = with_strides(*this);

	if (!layers || !planes || !blocks)
		return 0;
	// Nothing has to follow the last part.
	return product({uint64_t{layers} * planes - 1, l.plane_stride}) +
	       product({uint64_t{blocks} - 1, l.block_stride}) + block_bytes;
}

result<void> kv_layout::check() const
{
	kv_layout l = with_strides(*this);
	uint64_t plane = product({blocks, l.block_stride});

	if (!layers || !planes || !blocks || !block_bytes)
		return bad("layers, planes, blocks and their bytes must not be 0");
	if (!plane || !product({layers, planes, l.plane_stride}) ||
	    product({layers, planes, l.plane_stride}) >
		    std::numeric_limits<int64_t>::max())
		return bad("it has more bytes than 64 bits can tell");
	if (l.block_stride < block_bytes)
		return bad(std::format("a block of {} bytes each {} bytes overlaps",
				       block_bytes, l.block_stride));
	if (l.plane_stride < plane - l.block_stride + block_bytes)
		return bad(std::format("a plane of {} bytes each {} bytes overlaps",
				       plane - l.block_stride + block_bytes,
				       l.plane_stride));
	return {};
}

result<void> kv_layout::check(const slice &cache) const
{
	SLUICE_CHECK(check());
	if (!cache.valid() || size() > cache.size())
		return bad(std::format("the layout has {} bytes, the memory {}", size(),
				       cache.size()));
	return {};
}

result<std::vector<slice>> kv_parts(const kv_layout &layout, const slice &cache,
				    std::span<const uint32_t> blocks, kv_use use)
{
	SLUICE_CHECK(layout.check(cache));
	SLUICE_CHECK(check_blocks(layout, blocks, use == kv_use::write));
	return parts_of(with_strides(layout), cache, blocks);
}

stream_offer kv_offer(const kv_layout &layout, size_t count)
{
	return {.name = std::format("kv {} layers, {} planes, {} blocks of {} bytes",
				    layout.layers, layout.planes, count,
				    layout.block_bytes),
		.size = product({layout.bytes_each(), count})};
}

result<stream_source> kv_source(const kv_layout &layout, const slice &cache,
				std::span<const uint32_t> blocks)
{
	SLUICE_TRY(auto parts, kv_parts(layout, cache, blocks, kv_use::read));
	auto offer = kv_offer(layout, blocks.size());
	return stream_source{.name = std::move(offer.name),
			     .file = -1,
			     .from = std::move(parts),
			     .size = offer.size};
}

result<stream_sink> kv_sink(const kv_layout &layout, const slice &cache,
			    std::span<const uint32_t> blocks)
{
	SLUICE_TRY(auto parts, kv_parts(layout, cache, blocks, kv_use::write));
	return stream_sink{.file = -1, .to = std::move(parts), .have = 0};
}

result<void> kv_fits(const stream_offer &offer, const kv_layout &layout, size_t count)
{
	auto wanted = kv_offer(layout, count);

	if (offer.name != wanted.name || offer.size != wanted.size)
		return fail(
			errc::protocol, "KV cache",
			std::format(
				"\"{}\" of {} bytes is offered, \"{}\" of {} is wanted",
				offer.name, offer.size, wanted.name, wanted.size));
	return {};
}

} // namespace sluice
