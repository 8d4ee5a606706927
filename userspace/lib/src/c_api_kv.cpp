// SPDX-License-Identifier: MIT
// The C API: blocks of KV caches.
#include "c_api.hpp"
#include "sluice/kv.hpp"

using namespace sluice;
using namespace sluice::c;

namespace {

result<kv_layout> layout_of(const sluice_kv_layout *from)
{
	SLUICE_CHECK(given(from, "layout"));
	SLUICE_TRY(auto l, taken(from, "layout"));
	SLUICE_CHECK(not_reserved(l.reserved, "layout"));
	kv_layout to{.layers = l.layers,
		     .planes = l.planes,
		     .blocks = l.blocks,
		     .block_bytes = l.block_bytes,
		     .block_stride = l.block_stride,
		     .plane_stride = l.plane_stride};
	SLUICE_CHECK(to.check());
	return to;
}

result<std::span<const uint32_t>> blocks_of(const uint32_t *blocks, size_t count)
{
	SLUICE_CHECK(given(blocks, "blocks"));
	return std::span(blocks, count);
}

sluice_offer in_c(const stream_offer &from)
{
	sluice_offer to{};

	put_text(to.name, from.name);
	to.bytes = from.size;
	return to;
}

/// All have the same buffer, which still belongs to the caller.
result<void> give_parts(const std::vector<slice> &from, sluice_buffer *buffer,
			sluice_slice *to, size_t room)
{
	if (from.size() > room)
		return fail(errc::usage, "parts",
			    std::format("there is room for {}, and there are {}", room,
					from.size()));
	for (const slice &part : from)
		*to++ = {.buffer = buffer,
			 .offset = part.offset(),
			 .length = part.size()};
	return {};
}

} // namespace

int sluice_kv_size(const struct sluice_kv_layout *layout, uint64_t *bytes)
{
	return guarded([&]() -> result<void> {
		SLUICE_TRY(auto l, layout_of(layout));
		SLUICE_CHECK(given(bytes, "bytes"));
		*bytes = l.size();
		return {};
	});
}

int sluice_kv_offer(const struct sluice_kv_layout *layout, size_t count,
		    struct sluice_offer *offer)
{
	return guarded([&]() -> result<void> {
		SLUICE_TRY(auto l, layout_of(layout));
		return give(offer, in_c(kv_offer(l, count)), "offer");
	});
}

int sluice_kv_fits(const struct sluice_kv_layout *layout, size_t count,
		   const struct sluice_offer *offer)
{
	return guarded([&]() -> result<void> {
		SLUICE_TRY(auto l, layout_of(layout));
		SLUICE_CHECK(given(offer, "offer"));
		SLUICE_TRY(auto o, taken(offer, "offer"));
		o.name[sizeof(o.name) - 1] = '\0';
		return kv_fits({.name = o.name, .size = o.bytes}, l, count);
	});
}

int sluice_kv_parts(const struct sluice_kv_layout *layout,
		    const struct sluice_slice *cache, const uint32_t *blocks,
		    size_t count, int use, struct sluice_slice *parts, size_t room,
		    size_t *filled)
{
	return guarded([&]() -> result<void> {
		SLUICE_TRY(auto l, layout_of(layout));
		SLUICE_TRY(auto memory, slice_of(cache, "cache"));
		SLUICE_TRY(auto named, blocks_of(blocks, count));
		if (use < SLUICE_KV_READ || use > SLUICE_KV_WRITE)
			return fail(errc::usage, "use",
				    std::format("{} is no enum sluice_kv_use", use));
		SLUICE_CHECK(given(filled, "filled"));
		SLUICE_TRY(auto found,
			   kv_parts(l, memory, named, static_cast<kv_use>(use)));
		if (parts)
			SLUICE_CHECK(give_parts(found, cache->buffer, parts, room));
		*filled = found.size();
		return {};
	});
}
