// SPDX-License-Identifier: MIT
// The installed C++ library: calls that need no device, and of each library that it is
// linked with.
#include <cstdio>
#include <span>
#include <string>

#include <sluice/batch.hpp>
#include <sluice/buffer.hpp>
#include <sluice/context.hpp>
#include <sluice/deadline.hpp>
#include <sluice/device.hpp>
#include <sluice/digest.hpp>
#include <sluice/endpoint.hpp>
#include <sluice/error.hpp>
#include <sluice/group.hpp>
#include <sluice/hosts.hpp>
#include <sluice/kv.hpp>
#include <sluice/nic.hpp>
#include <sluice/or_exit.hpp>
#include <sluice/processes.hpp>
#include <sluice/stream.hpp>
#include <sluice/task.hpp>
#include <sluice/topology.hpp>
#include <sluice/unique_fd.hpp>

// Never called, but it has to link.
sluice::result<sluice::listener> listen(sluice::context &ring, sluice::nic &card)
{
	return sluice::listener::open(ring, card, "", 0, {});
}

static bool digests_are_right()
{
	const std::string text = "123456789";
	auto bytes = std::as_bytes(std::span(text));
	sluice::sha256 hash;

	hash.add(bytes);
	return sluice::crc32c(bytes) == 0xe3069283 &&
	       sluice::to_string(hash.digest()).starts_with("15e2b0d3c33891eb");
}

int main()
{
	auto machine = sluice::topology::read();
	auto memory = sluice::buffer::host(4096);

	if (!machine || !memory || !digests_are_right() ||
	    sluice::variant_of("pcpy") != sluice::variant::pcpy)
		return 1;
	// io_uring may be forbidden here; devices that do not exist must be refused.
	if (auto ring = sluice::context::open()) {
		auto gpu = sluice::device::open(*ring, "no such GPU");
		auto card = sluice::nic::open(*ring, "no such card");

		if (gpu || card)
			return 1;
		std::puts(std::string(card.error().message()).c_str());
	}
	std::printf("%zu nodes\n", machine->nodes().size());
	return 0;
}
