// SPDX-License-Identifier: MIT
// Any bytes as a message of a stream. A message that is understood keeps the promises of
// docs/wire.md, and has the same bytes when it is encoded again.
#include <algorithm>

#include "edge.hpp"
#include "sluice/buffer.hpp"
#include "stream_wire.hpp"

using namespace sluice;
using sluice::fuzz::must;

namespace {

using view = std::span<const std::byte>;

void same(view message, const wire::bytes &again)
{
	must(std::ranges::equal(message, again.span()));
}

bool whole_pages(uint64_t bytes)
{
	return bytes && bytes % page_size == 0;
}

bool printable(std::string_view text)
{
	return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

/// Nothing that a terminal obeys: the name may be text of any language.
bool harmless(std::string_view name)
{
	return std::ranges::none_of(name, [](char c) {
		return static_cast<unsigned char>(c) < ' ' || c == 0x7f;
	});
}

void open(view m)
{
	auto d = wire::decode_open(m);

	if (!d)
		return;
	must(whole_pages(d->piece) && whole_pages(d->chunk));
	must(d->piece / d->chunk <= wire::most_chunks);
	must(!d->name.empty() && d->name.size() <= wire::longest_name);
	must(harmless(d->name) && !d->name.contains('/'));
	must(d->name != "." && d->name != "..");
	same(m, wire::encode(*d));
}

void accept(view m)
{
	if (auto d = wire::decode_accept(m)) {
		must(whole_pages(d->piece));
		same(m, wire::encode(*d));
	}
}

void grant(view m)
{
	if (auto d = wire::decode_grant(m)) {
		must(d->memory.size &&
		     d->memory.address + d->memory.size >= d->memory.address);
		same(m, wire::encode(*d));
	}
}

void piece(view m)
{
	if (auto d = wire::decode_piece(m)) {
		must(d->length && d->offset + d->length >= d->offset);
		must(d->chunks <= wire::most_chunks);
		same(m, wire::encode(*d));
	}
}

void others(view m)
{
	if (auto d = wire::decode_ack(m))
		same(m, wire::encode(*d));
	if (auto d = wire::decode_busy(m))
		same(m, wire::encode(*d));
	if (auto d = wire::decode_end(m))
		same(m, wire::encode(*d));
	if (auto d = wire::decode_done(m))
		same(m, wire::encode_done(*d));
	if (wire::decode_finish(m))
		same(m, wire::encode_finish());
	if (auto d = wire::decode_text(m)) {
		must(printable(d->text));
		if (d->text.size() <= 400) // texts of ours are not longer
			same(m, wire::encode_text(*wire::type_of(m), d->text));
	}
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	view m = fuzz::at_the_edge(data, size);

	open(m);
	accept(m);
	grant(m);
	piece(m);
	others(m);
	return 0;
}
