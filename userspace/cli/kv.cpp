// SPDX-License-Identifier: MIT
// `sluice kv`: sends blocks of a KV cache from one machine to another. The cache is made
// up here, so that each byte that arrives can be checked.
#include <algorithm>
#include <cstring>
#include <format>
#include <numeric>
#include <random>

#include "sluice/kv.hpp"
#include "transfer.hpp"

namespace sluice::cli {

namespace {

struct kv_options : transfer_options {
	std::string role, host, listen;
	kv_layout layout{.layers = 4,
			 .planes = 2,
			 .blocks = 2048,
			 .block_bytes = 16384};
	uint32_t blocks = 512;
	uint64_t seed = 1;
};

/// The content of memory to which nothing was sent.
constexpr std::byte untouched{0xa5};

/// The blocks that a side uses: each side draws its own.
std::vector<uint32_t> draw_blocks(const kv_options &o)
{
	std::vector<uint32_t> ids(o.layout.blocks);
	std::mt19937_64 random(o.seed * 2 + (o.role == "send"));

	std::iota(ids.begin(), ids.end(), 0u);
	std::ranges::shuffle(ids, random);
	ids.resize(o.blocks);
	return ids;
}

/// The content of the n-th sent block in a plane: words that occur nowhere else.
void write_block(std::span<std::byte> to, uint64_t seed, size_t n, size_t plane)
{
	std::mt19937_64 random(seed ^ (n << 20) ^ (plane << 44));
	size_t at = 0;

	for (; at < to.size(); at += sizeof(uint64_t)) {
		uint64_t word = random();

		std::memcpy(to.data() + at, &word,
			    std::min(sizeof(word), to.size() - at));
	}
}

/// A cache in the memory of the GPU or the host, and an image of it for the CPU.
class cache {
public:
	static result<cache> make(session &s, const kv_options &o);

	const slice memory() const { return memory_; }
	std::span<std::byte> block(size_t plane, uint32_t id) const
	{
		return image_
			.part(plane * layout_.blocks * layout_.block_bytes +
				      id * layout_.block_bytes,
			      layout_.block_bytes)
			.bytes();
	}
	/// Copy the image to the memory, or back.
	result<void> store() { return move(memory_, image_); }
	result<void> load() { return move(image_, memory_); }
	/// How many parts of blocks have wrong content.
	size_t count_wrong(const kv_options &o, const std::vector<uint32_t> &ids) const;
	void fill(const kv_options &o, const std::vector<uint32_t> &ids) const;

private:
	result<void> move(const buffer &to, const buffer &from);
	size_t planes() const { return size_t{layout_.layers} * layout_.planes; }

	device *gpu_ = nullptr;
	kv_layout layout_;
	buffer memory_, image_;
};

result<cache> cache::make(session &s, const kv_options &o)
{
	cache c;
	uint64_t size = o.layout.size();

	if (!size)
		return fail(errc::usage, "--block-bytes", "it must not be 0");
	c.layout_ = o.layout;
	auto image = buffer::host(size);
	if (!image)
		return std::unexpected(image.error());
	c.image_ = c.memory_ = *image;
	if (!s.gpu)
		return c;
	c.gpu_ = &*s.gpu;
	// Where batches do not support SVM, as without the series, video memory is staged.
	auto memory = s.gpu->limits().svm ? s.gpu->svm(size) : s.gpu->vram(size);
	if (!memory)
		return std::unexpected(memory.error());
	c.memory_ = *memory;
	if (auto known = s.gpu->attach(c.image_); !known)
		return std::unexpected(known.error());
	return c;
}

// The engines copy: memory that the CPU touches would leave the GPU.
result<void> cache::move(const buffer &to, const buffer &from)
{
	for (size_t at = 0, n = 0; gpu_ && at < to.size(); at += n) {
		batch copy(1);

		n = std::min<uint64_t>(to.size() - at, gpu_->limits().bytes);
		copy.copy(to.part(at, n), from.part(at, n)).fault_in();
		auto moved = gpu_->submit(copy).wait();
		if (!moved)
			return std::unexpected(moved.error());
	}
	return {};
}

void cache::fill(const kv_options &o, const std::vector<uint32_t> &ids) const
{
	std::memset(image_.data(), static_cast<int>(untouched), image_.size());
	for (size_t plane = 0; plane < planes(); plane++)
		for (size_t n = 0; n < ids.size(); n++)
			write_block(block(plane, ids[n]), o.seed, n, plane);
}

size_t cache::count_wrong(const kv_options &o, const std::vector<uint32_t> &ids) const
{
	std::vector<std::byte> right(layout_.block_bytes);
	std::vector<bool> sent(layout_.blocks);
	size_t wrong = 0;

	for (uint32_t id : ids)
		sent[id] = true;
	for (size_t plane = 0; plane < planes(); plane++) {
		for (size_t n = 0; n < ids.size(); n++) {
			write_block(right, o.seed, n, plane);
			wrong += !std::ranges::equal(right, block(plane, ids[n]));
		}
		std::ranges::fill(right, untouched);
		for (uint32_t id = 0; id < layout_.blocks; id++)
			wrong += !sent[id] &&
				 !std::ranges::equal(right, block(plane, id));
	}
	return wrong;
}

class kv_command : public command {
public:
	void add_options(CLI::App &to) override;
	result<exit_status> run(const settings &with) override;

private:
	result<void> check() const;
	result<stream_report> send(session &s, cache &from);
	result<stream_report> receive(session &s, cache &to);

	kv_options options_;
};

void kv_command::add_options(CLI::App &to)
{
	kv_options &o = options_;

	to.add_option("ROLE", o.role, "the side to be, send or recv; begin with recv")
		->required()
		->check(CLI::IsMember({"send", "recv"}));
	to.add_option("--to", o.host, "the receiver's host, for send")
		->type_name("HOST");
	to.add_option("--listen", o.listen,
		      "listen on this address, for recv; default: all")
		->type_name("ADDRESS");
	to.add_option("--layers", o.layout.layers, "layers of the model")
		->check(CLI::Range(1, 1024))
		->capture_default_str();
	to.add_option("--planes", o.layout.planes, "2: K and V; 1: they are together")
		->check(CLI::Range(1, 2))
		->capture_default_str();
	to.add_option("--cache-blocks", o.layout.blocks, "blocks that the cache has")
		->check(CLI::Range(1, 1 << 24))
		->capture_default_str();
	to.add_option("--block-bytes", o.layout.block_bytes,
		      "bytes of a block in one plane of one layer")
		->transform(CLI::AsSizeValue(false))
		->capture_default_str();
	to.add_option("--blocks", o.blocks, "blocks to move")
		->check(CLI::Range(1, 1 << 24))
		->capture_default_str();
	to.add_option("--seed", o.seed,
		      "seed of what is in them; both sides need the same")
		->capture_default_str();
	add_chunk_option(to, o);
	add_transfer_options(to, o);
}

result<void> kv_command::check() const
{
	const kv_options &o = options_;

	if (o.blocks > o.layout.blocks)
		return fail(errc::usage, "--blocks",
			    std::format("{} are more than the cache has, {}", o.blocks,
					o.layout.blocks));
	if (o.role == "send" && o.host.empty())
		return fail(errc::usage, "--to", "send needs the host of the receiver");
	if (o.role == "recv" && !o.host.empty())
		return fail(errc::usage, "--to", "it is for send");
	if (o.role == "send" && !o.listen.empty())
		return fail(errc::usage, "--listen", "it is for recv");
	return {};
}

result<stream_report> kv_command::send(session &s, cache &from)
{
	auto ids = draw_blocks(options_);

	from.fill(options_, ids);
	if (auto stored = from.store(); !stored)
		return std::unexpected(stored.error());
	auto source = kv_source(options_.layout, from.memory(), ids);
	if (!source)
		return std::unexpected(source.error());
	auto to = endpoint::connect(s.context, s.card, options_.host, options_.port,
				    s.endpoint,
				    after(std::chrono::seconds(options_.timeout_s)));
	if (!to)
		return std::unexpected(to.error());
	auto out = sender::make(s.context, *to, s.card, s.stream_of());
	if (!out)
		return std::unexpected(out.error());
	auto report = run_task(s, out->send(std::move(*source)), "kv", out->progress(),
			       options_.quiet);
	if (!report)
		return report;
	if (auto done = out->finish().run(s.context); !done)
		return std::unexpected(done.error());
	return report;
}

result<stream_report> kv_command::receive(session &s, cache &to)
{
	auto ids = draw_blocks(options_);

	to.fill(options_, {});
	if (auto stored = to.store(); !stored)
		return std::unexpected(stored.error());
	auto sink = kv_sink(options_.layout, to.memory(), ids);
	if (!sink)
		return std::unexpected(sink.error());
	auto peer = accept_one(s, options_, options_.listen);
	if (!peer)
		return std::unexpected(peer.error());
	auto in = receiver::make(s.context, *peer, s.card, s.stream_of());
	if (!in)
		return std::unexpected(in.error());
	auto offer = in->next().run(s.context);
	if (!offer)
		return std::unexpected(offer.error());
	if (!*offer)
		return fail(errc::protocol, peer->peer(), "it sends nothing");
	if (auto fits = kv_fits(**offer, options_.layout, ids.size()); !fits) {
		(void)in->refuse(std::string(fits.error().message())).run(s.context);
		return std::unexpected(fits.error());
	}
	auto report = run_task(s, in->receive(std::move(*sink)), "kv", in->progress(),
			       options_.quiet);
	if (!report)
		return report;
	if (auto end = in->next().run(s.context); !end)
		return std::unexpected(end.error());
	if (auto loaded = to.load(); !loaded)
		return std::unexpected(loaded.error());
	if (size_t wrong = to.count_wrong(options_, ids))
		return fail(
			errc::corrupt, "KV cache",
			std::format("{} parts of blocks are not what they should be",
				    wrong));
	return report;
}

result<exit_status> kv_command::run(const settings &with)
{
	reports told(with, options_);

	if (auto sane = check(); !sane)
		return std::unexpected(sane.error());
	if (auto can = told.begin(); !can)
		return std::unexpected(can.error());
	auto s = session::open(options_);
	if (!s)
		return std::unexpected(s.error());
	auto memory = cache::make(*s, options_);
	if (!memory)
		return std::unexpected(memory.error());
	auto report =
		options_.role == "send" ? send(*s, *memory) : receive(*s, *memory);
	if (!report)
		return std::unexpected(report.error());
	told.add(*report);
	return told.end();
}

} // namespace

std::unique_ptr<command> make_kv()
{
	return std::make_unique<kv_command>();
}

} // namespace sluice::cli
