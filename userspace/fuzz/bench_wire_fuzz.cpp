// SPDX-License-Identifier: MIT
// Any bytes as messages of the other side of a bench.
#include <algorithm>

#include "bench_wire.hpp"
#include "edge.hpp"

using namespace sluice::cli;
using sluice::fuzz::must;

extern "C" int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	auto input = sluice::fuzz::at_the_edge(data, size);
	auto m = read_message(input);

	if (!m)
		return 0;
	must(std::ranges::equal(input, std::as_bytes(std::span(&*m, 1))));
	must(!asks_for_memory(*m) || !asks_for_writes(*m));
	if (asks_for_memory(*m) || asks_for_writes(*m))
		must(m->size > 0 && m->size <= most_asked);
	if (asks_for_writes(*m)) {
		must(m->count >= 5 && m->count <= most_writes);
		must(m->depth >= 1 && m->depth <= sluice::most_depth);
	}
	for (uint64_t least : {uint64_t{1}, most_asked})
		if (auto memory = memory_in(*m, least)) {
			must(memory->size >= least);
			must(memory->address + memory->size > memory->address);
			must(memory->key == m->key);
		}
	return 0;
}
