// SPDX-License-Identifier: MIT
// Disaggregated serving: prefill hands the KV cache of each request to decode. Equivalent
// to kv_transfer.py, which may be the other end.
//
//	kv_transfer decode --gpu 1			there
//	kv_transfer prefill --host THERE --gpu 0	here
//
// Both ends have a cache of blocks, and a request has some of them, wherever there was
// room. Prefill makes up what a model would have computed, so that decode can check each
// byte. For each piece of a stream, one batch gathers parts of blocks, and a batch at the
// other end scatters them. In between, the card reads and writes in place if it can.
#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <print>
#include <random>
#include <span>

#include <CLI/CLI.hpp>
#include <sluice/kv.hpp>

#include "home.hpp"

using namespace sluice;

struct model {
	unsigned layers;
	size_t block_bytes; // of a block in the K or the V plane of one layer
};

static const std::map<std::string, model> models = {
	{"8b", {32, 32 << 10}},	    // 64 tensors of 32 KiB
	{"70b", {80, 32 << 10}},    // 160 tensors of 32 KiB
	{"70b-tp4", {80, 8 << 10}}, // 160 tensors of 8 KiB, on each of four GPUs
};

struct options {
	std::string role, host = "localhost", nic, gpu, model = "8b";
	uint16_t port = 7480;
	unsigned requests = 3, blocks = 8, room = 32, timeout = 60;
};

/// As good as random, and equal at both ends.
static uint32_t computed(uint32_t request, uint32_t tensor, uint32_t word)
{
	return (word + request * 65537 + tensor) * 2654435761u;
}

/// A cache, in a GPU or in host memory, and an allocator of its blocks.
class cache {
public:
	cache(home &at, const kv_layout &layout)
		: layout_(layout), at_(at), memory_(at.take(layout.size())),
		  seen_(at.gpu() ? at.take_host(layout.size()) : memory_),
		  free_(layout.blocks)
	{
		std::iota(free_.begin(), free_.end(), 0);
		std::ranges::shuffle(free_, std::mt19937(std::random_device{}()));
	}

	const kv_layout &layout() const { return layout_; }
	const buffer &memory() const { return memory_; }

	/// Take blocks, wherever there is room.
	std::vector<uint32_t> take(unsigned count)
	{
		std::vector<uint32_t> taken(free_.begin(), free_.begin() + count);

		free_.erase(free_.begin(), free_.begin() + count);
		return taken;
	}
	void give_back(const std::vector<uint32_t> &blocks)
	{
		free_.insert(free_.end(), blocks.begin(), blocks.end());
	}

	/// Write what the model computed for a request.
	void write(uint32_t request, const std::vector<uint32_t> &blocks)
	{
		each_tensor(blocks, [&](uint32_t tensor, std::span<uint32_t> words) {
			for (uint32_t n = 0; uint32_t &word : words)
				word = computed(request, tensor, n++);
		});
		if (at_.gpu())
			at_.copy({{memory_, seen_}});
	}

	/// The number of tensors that differ from what the model computed.
	size_t wrong(uint32_t request, const std::vector<uint32_t> &blocks)
	{
		size_t count = 0;

		if (at_.gpu())
			at_.copy({{seen_, memory_}});
		each_tensor(blocks, [&](uint32_t tensor, std::span<uint32_t> words) {
			count += !std::ranges::all_of(
				words, [&, n = uint32_t{0}](uint32_t word) mutable {
				return word == computed(request, tensor, n++);
			});
		});
		return count;
	}

private:
	/// Call @p f for each tensor, block by block, with its number in the request.
	template <class F> void each_tensor(const std::vector<uint32_t> &blocks, F &&f)
	{
		const size_t planes = size_t{layout_.layers} * layout_.planes;

		for (uint32_t tensor = 0; uint32_t block : blocks)
			for (size_t plane = 0; plane < planes; plane++)
				f(tensor++, words(plane, block));
	}
	std::span<uint32_t> words(size_t plane, uint32_t block)
	{
		size_t at = (plane * layout_.blocks + block) * layout_.block_bytes;

		return {reinterpret_cast<uint32_t *>(seen_.data() + at),
			layout_.block_bytes / sizeof(uint32_t)};
	}

	kv_layout layout_;
	home &at_;
	buffer memory_, seen_;
	std::vector<uint32_t> free_;
};

static void tell(unsigned request, const stream_report &report)
{
	std::println("request {}: {} bytes in {} pieces by {}, {:.3f} s", request,
		     report.bytes, report.pieces, name(report.path),
		     std::chrono::duration<double>(report.total).count());
}

static void prefill(context &ring, nic &card, home &at, cache &from, const options &o)
{
	auto peer = or_exit(endpoint::connect(ring, card, o.host, o.port, {},
					      after(std::chrono::seconds(o.timeout))));
	auto stream = or_exit(sender::make(ring, peer, card, {.gpu = at.gpu()}));

	for (unsigned request = 0; request < o.requests; request++) {
		auto blocks = from.take(o.blocks);

		from.write(request, blocks);
		auto source = or_exit(kv_source(from.layout(), from.memory(), blocks));
		tell(request, or_exit(stream.send(std::move(source)).run(ring)));
		from.give_back(blocks);
	}
	or_exit(stream.finish().run(ring));
}

static int decode(context &ring, nic &card, home &at, cache &to, const options &o)
{
	auto door = or_exit(listener::open(ring, card, "", o.port, {}));
	auto peer = or_exit(door.accept(after(std::chrono::seconds(o.timeout))));
	auto stream = or_exit(receiver::make(ring, peer, card, {.gpu = at.gpu()}));
	unsigned request = 0;

	while (auto offer = or_exit(stream.next().run(ring))) {
		or_exit(kv_fits(*offer, to.layout(), o.blocks));
		auto blocks = to.take(o.blocks);
		auto sink = or_exit(kv_sink(to.layout(), to.memory(), blocks));
		auto report = or_exit(stream.receive(std::move(sink)).run(ring));
		if (size_t wrong = to.wrong(request, blocks)) {
			std::println("request {}: {} tensors are wrong", request,
				     wrong);
			return 1;
		}
		tell(request++, report);
		to.give_back(blocks);
	}
	std::println("{} requests in {}, every tensor as it was computed", request,
		     at.name());
	return 0;
}

int main(int argc, char **argv)
{
	options o;
	CLI::App app("Hand the KV cache of each request from prefill to decode.");

	app.add_option("ROLE", o.role, "prefill or decode")
		->required()
		->check(CLI::IsMember({"prefill", "decode"}));
	app.add_option("--host", o.host, "where decode listens")->capture_default_str();
	app.add_option("--port", o.port)->capture_default_str();
	app.add_option("--nic", o.nic, "RDMA device, if there are several");
	app.add_option("--gpu", o.gpu, "0000:03:00.0, or 0; default: host memory");
	app.add_option("--model", o.model)
		->check(CLI::IsMember(&models))
		->capture_default_str();
	app.add_option("--requests", o.requests)->capture_default_str();
	app.add_option("--room", o.room, "blocks of the cache")
		->check(CLI::Range(1, 1 << 20))
		->capture_default_str();
	app.add_option("--blocks", o.blocks, "of a request")
		->check(CLI::Range(1, 1 << 20))
		->capture_default_str();
	app.add_option("--timeout", o.timeout, "for a peer, seconds")
		->capture_default_str();
	CLI11_PARSE(app, argc, argv);
	if (o.blocks > o.room)
		exit_for({errc::usage, "--blocks",
			  std::format("{} are wanted, and --room has {}", o.blocks,
				      o.room)});

	auto ring = or_exit(context::open());
	auto card = or_exit(nic::open(ring, o.nic));
	home at(ring, o.gpu);
	const model &of = models.at(o.model);
	cache blocks(
		at,
		{.layers = of.layers, .blocks = o.room, .block_bytes = of.block_bytes});
	if (o.role == "decode")
		return decode(ring, card, at, blocks, o);
	prefill(ring, card, at, blocks, o);
	return 0;
}
