// SPDX-License-Identifier: MIT
// Move video memory to a peer's: move_vram NIC GPU there, move_vram NIC GPU HOST here.
#include <print>

#include <sluice/or_exit.hpp>
#include <sluice/stream.hpp>

using namespace sluice;

int main(int argc, char **argv)
{
	if (argc < 3)
		return std::println(stderr, "usage: move_vram NIC GPU [HOST]"), 2;
	auto ring = or_exit(context::open());
	auto card = or_exit(nic::open(ring, argv[1]));
	auto gpu = or_exit(device::open(ring, argv[2]));
	auto vram = or_exit(gpu.vram(16 << 20));
	stream_options options{.gpu = &gpu};
	stream_report report;
	if (argc > 3) {
		or_exit(gpu.submit(batch().fill(vram, 0x600df00d)).wait());
		auto peer = or_exit(
			endpoint::connect(ring, card, argv[3], 7471, {}, never));
		auto stream = or_exit(sender::make(ring, peer, card, options));
		report = or_exit(
			stream.send({.name = "vram", .from = {vram}}).run(ring));
		or_exit(stream.finish().run(ring));
	} else {
		auto door = or_exit(listener::open(ring, card, "", 7471, {}));
		auto peer = or_exit(door.accept(never));
		auto stream = or_exit(receiver::make(ring, peer, card, options));
		while (or_exit(stream.next().run(ring)))
			report = or_exit(stream.receive({.to = {vram}}).run(ring));
	}
	std::println("{} bytes by {}, SHA-256 {}", report.bytes, name(report.path),
		     to_string(report.digest.value_or(sha256_digest{})));
}
