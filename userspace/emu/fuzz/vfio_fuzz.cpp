// SPDX-License-Identifier: MIT
// Any bytes as a stream of vfio-user messages, without the socket.
#include "../tests/fake_device.hpp"
#include "dispatcher.hpp"

using namespace sluice::emu;
using namespace sluice::emu::vfio;

extern "C" int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	const_bytes rest = std::as_bytes(std::span(data, size));
	test::FakeDevice device;
	Dispatcher dispatcher(device);
	Header h;

	while (take(rest, h) && frame_size_ok(h.size) &&
	       h.size - sizeof(h) <= rest.size()) {
		std::vector<unique_fd> fds;
		const_bytes payload = rest.first(h.size - sizeof(h));
		Reply r = dispatcher.handle(h, payload, fds);
		if (r.data.size() > max_message)
			__builtin_trap();
		rest = rest.subspan(payload.size());
	}
	return 0;
}
