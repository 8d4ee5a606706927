// SPDX-License-Identifier: MIT
// Any datagrams as questions and answers about another machine's clock. An input is a
// row of them, all of one length; the first byte changes when they arrive.
#include <algorithm>
#include <cstring>
#include <vector>

#include "clock_sync.hpp"
#include "edge.hpp"

using namespace sluice::cli;
using sluice::fuzz::must;
using view = std::span<const std::byte>;

namespace {

view bytes_of(const ping_packet &p)
{
	return std::as_bytes(std::span(&p, 1));
}

/// An answer says what it should, and is never taken for a question: two sides that
/// answer each other's answers would never stop.
void ask(view datagram)
{
	auto answer = answer_to(datagram, "a boot id", 77);

	if (!answer)
		return;
	must(answer->number == read_ping(datagram)->number);
	must(answer->there == 77 && boot_in(*answer) == "a boot id");
	must(ping_of(bytes_of(*answer), answer->number, 1, 2)->there == 77);
	must(!answer_to(bytes_of(*answer), "another", 78));
}

/// The other clock is ahead by as much as the answer says, within the uncertainty.
void measure(const std::vector<clock_ping> &pings)
{
	auto first = offset_of(pings, "boot"), last = offset_of({pings.back()}, "boot");
	auto both = combined(first, last);

	must(first.uncertainty_ns >= 0 && first.uncertainty_ns <= last.uncertainty_ns);
	must(both.uncertainty_ns >= last.uncertainty_ns);
	for (int64_t ns : {first.ns, last.ns}) {
		int64_t apart = both.ns - ns;

		must(apart <= both.uncertainty_ns && -apart <= both.uncertainty_ns);
	}
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	view input = sluice::fuzz::at_the_edge(data, size);
	std::vector<clock_ping> pings;

	if (input.empty())
		return 0;
	auto way = std::to_integer<int64_t>(input[0]);
	for (input = input.subspan(1); !input.empty();) {
		view one = input.first(std::min(sizeof(ping_packet), input.size()));

		input = input.subspan(one.size());
		ask(one);
		if (auto p = read_ping(one)) {
			must(boot_in(*p).size() < p->boot.size());
			auto got = ping_of(one, p->number, 1000, 1000 + (way ^= 0x55));
			if (got)
				pings.push_back(*got);
		}
	}
	if (!pings.empty())
		measure(pings);
	return 0;
}
