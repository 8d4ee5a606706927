// SPDX-License-Identifier: MIT
// Parts lie scattered in a cache. One batch gathers them in a row, so that they can be sent
// or stored in one go, and another batch scatters them to other places.
//
//	scatter_gather [GPU]	0, or 0000:03:00.0; without one, in host memory
#include <algorithm>
#include <numeric>
#include <print>
#include <random>
#include <span>

#include "home.hpp"

using namespace sluice;

// A block of a KV cache of Llama 70B that four GPUs share: two parts for each layer.
static constexpr size_t part_bytes = 8 << 10, parts = 160;
// The number of places in the cache for such parts.
static constexpr size_t places = 1024;

static std::vector<size_t> some_places(unsigned seed)
{
	std::vector<size_t> all(places);

	std::iota(all.begin(), all.end(), 0);
	std::ranges::shuffle(all, std::mt19937(seed));
	all.resize(parts);
	return all;
}

static slice part(const buffer &of, size_t n)
{
	return of.part(n * part_bytes, part_bytes);
}

static std::span<uint32_t> words(const slice &of)
{
	return {reinterpret_cast<uint32_t *>(of.data()), of.size() / sizeof(uint32_t)};
}

/// The content of part @p n: words that no other part has. For 0: nothing.
static uint32_t word(size_t n, size_t at)
{
	return n ? static_cast<uint32_t>(n << 16 | at) : 0;
}

static void write(const slice &to, size_t n)
{
	for (size_t at = 0; uint32_t &each : words(to))
		each = word(n, at++);
}

static bool holds(const slice &what, size_t n)
{
	return std::ranges::all_of(words(what),
				   [&, at = size_t{0}](uint32_t each) mutable {
		return each == word(n, at++);
	});
}

/// The part that each place should have: 0 is none.
static std::vector<size_t> plan(const std::vector<size_t> &where)
{
	std::vector<size_t> by_place(places);

	for (size_t n = 0; n < parts; n++)
		by_place[where[n]] = n + 1;
	return by_place;
}

static size_t wrong(const buffer &seen, const std::vector<size_t> &wanted)
{
	size_t count = 0;

	for (size_t n = 0; n < wanted.size(); n++)
		count += !holds(part(seen, n), wanted[n]);
	return count;
}

int main(int argc, char **argv)
{
	auto ring = or_exit(context::open());
	home at(ring, argc > 1 ? argv[1] : "");
	auto cache = at.take(places * part_bytes), row = at.take(parts * part_bytes);
	auto seen = at.take_host(places * part_bytes);
	auto old = some_places(1), other = some_places(2);
	std::vector<home::move> gather, scatter;
	std::vector<size_t> in_order(parts);

	std::iota(in_order.begin(), in_order.end(), 1);
	for (size_t n = 0; n < parts; n++) {
		write(part(seen, old[n]), n + 1);
		gather.push_back({part(row, n), part(cache, old[n])});
		scatter.push_back({part(cache, other[n]), part(row, n)});
	}
	at.copy({{cache, seen}});

	at.copy(gather);
	at.copy({{seen.part(0, row.size()), row}});
	size_t gathered_wrong = wrong(seen, in_order);

	std::ranges::fill(seen.bytes(), std::byte{0});
	at.copy({{cache, seen}});
	at.copy(scatter);
	at.copy({{seen, cache}});
	size_t scattered_wrong = wrong(seen, plan(other));

	std::println(
		"{} parts of {} bytes, in {}: {} gathered wrong, {} scattered wrong",
		parts, part_bytes, at.name(), gathered_wrong, scattered_wrong);
	return gathered_wrong || scattered_wrong;
}
