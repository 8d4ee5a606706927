// SPDX-License-Identifier: MIT
// Any bytes as what a peer sends before and between the messages of a program: the
// private data of a connection, and the header of a message. What is understood reads
// the same when it is encoded again.
#include <algorithm>

#include "edge.hpp"
#include "wire.hpp"

using namespace sluice;
using namespace sluice::detail;
using sluice::fuzz::must;

namespace {

using view = std::span<const std::byte>;

bool begins_with(view data, view with)
{
	return data.size() >= with.size() &&
	       std::ranges::equal(data.first(with.size()), with);
}

void private_data(view data)
{
	if (auto m = wire::read_greeting(data)) {
		must(m->messages > 0 && m->messages <= most_messages);
		must(begins_with(data, wire::encode(*m)));
	}
	if (auto m = wire::read_answer(data)) {
		must(m->messages > 0 && m->messages <= most_messages);
		must(begins_with(data, wire::encode(*m)));
	}
	// Its version may differ.
	if (auto why = wire::read_refusal(data))
		must(begins_with(data.subspan(6), view(wire::encode(*why)).subspan(6)));
}

bool length_fits(const wire::header &h)
{
	switch (h.what) {
	case wire::kind::proof: return h.length == sizeof(wire::mac);
	case wire::kind::data: return h.length <= max_message;
	case wire::kind::welcome:
	case wire::kind::credit:
	case wire::kind::ping:
	case wire::kind::pong: return h.length == 0;
	}
	return false;
}

void message(view data)
{
	auto header = wire::read_header("peer", data);
	std::array<std::byte, wire::header::size> again;

	if (!header) {
		must(header.error().code() == errc::protocol);
		must(!header.error().message().empty());
		return;
	}
	must(length_fits(*header));
	must(data.size() == wire::header::size + header->length);
	wire::encode(*header, again);
	must(begins_with(data, again));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	view input = fuzz::at_the_edge(data, size);

	private_data(input);
	message(input);
	return 0;
}
