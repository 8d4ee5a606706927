// SPDX-License-Identifier: MIT
// Benchmarks between two machines: RDMA writes to or reads from memory that the
// listening side has registered, and ib_write_bw for comparison.
#include <array>
#include <chrono>
#include <format>
#include <thread>

#include "bench.hpp"
#include "bench_wire.hpp"
#include "child.hpp"
#include "perftest.hpp"
#include "silence.hpp"
#include "try.hpp"

namespace sluice::cli {

namespace {

using message = bench_message;

result<void> say(endpoint &to, const message &m)
{
	auto sent = to.send(std::as_bytes(std::span(&m, 1))).wait();

	if (!sent)
		return std::unexpected(sent.error());
	return {};
}

result<message> hear(endpoint &from, deadline until)
{
	std::array<std::byte, sizeof(message)> room;
	auto n = from.receive(room).wait_until(until);

	if (!n)
		return std::unexpected(n.error());
	auto m = read_message(std::span(room).first(*n));
	if (!m)
		return fail(errc::protocol, from.peer(), "it is no sluice bench");
	return *m;
}

endpoint_options options_of(const bench_options &o)
{
	endpoint_options e;

	e.token = o.token;
	e.silence = silence_for(o.timeout_s);
	e.depth = std::max(e.depth, o.depth);
	return e;
}

perftest_run run_of(const nic &card, const bench_options &o, const message &m)
{
	return {.nic = card.info().name,
		.port = static_cast<uint16_t>(o.port + 1),
		.bytes = m.size,
		.count = m.count,
		.depth = static_cast<unsigned>(m.depth)};
}

/// One write or read of the peer's memory.
class rdma_work : public bench_work {
public:
	rdma_work(endpoint &peer, const registration &local, const slice &memory,
		  const remote_memory &far, bool write, unsigned depth)
		: peer_(peer), local_(local), memory_(memory), far_(far), write_(write),
		  under_way_(depth)
	{
	}
	result<void> start(unsigned slot, uint64_t) override
	{
		under_way_[slot].emplace(write_ ? peer_.write(memory_, local_, far_, 0)
						: peer_.read(memory_, local_, far_, 0));
		return {};
	}
	result<void> wait(unsigned slot) override
	{
		auto &running = under_way_[slot];

		if (!running)
			return {};
		auto n = running->wait();
		running.reset();
		// A peer takes its memory away only when it exits.
		if (!n && n.error().code() == errc::denied)
			return fail(errc::peer_lost, peer_.peer(),
				    "it took its memory back, or died");
		if (!n)
			return std::unexpected(n.error());
		return {};
	}

private:
	endpoint &peer_;
	const registration &local_;
	slice memory_;
	remote_memory far_;
	bool write_;
	std::vector<std::optional<operation>> under_way_;
};

/// The connecting side.
class active_side {
public:
	active_side(const bench_options &o, context &in, device *gpu, nic &card,
		    endpoint &peer)
		: options_(o), context_(in), gpu_(gpu), card_(card), peer_(peer)
	{
	}
	result<figures> run();

private:
	result<remote_memory> ask();
	result<double> perftest(uint64_t bytes, uint64_t count);
	result<double> perftest_once(const perftest_run &run, deadline until);
	deadline soon() const
	{
		return after(std::chrono::seconds(options_.timeout_s));
	}

	const bench_options &options_;
	context &context_;
	device *gpu_;
	nic &card_;
	endpoint &peer_;
	std::string far_kind_;
};

result<remote_memory> active_side::ask()
{
	SLUICE_CHECK(say(peer_, {.what = message::ask, .size = options_.largest()}));
	SLUICE_TRY(auto m, hear(peer_, soon()));
	auto memory = memory_in(m, options_.largest());
	if (!memory)
		return fail(errc::protocol, peer_.peer(),
			    "it does not say where its memory is");
	return *memory;
}

// The peer's ib_write_bw has to listen first, and does not tell when it does.
result<double> active_side::perftest_once(const perftest_run &run, deadline until)
{
	for (;;) {
		SLUICE_TRY(auto program,
			   child::start(perftest_words(run, options_.host),
					{.capture = true}));
		SLUICE_TRY(int status, program.wait(context_, until));
		auto printed = program.output();
		auto rate = perftest_rate(printed, run.bytes);
		if (status == 0 && rate)
			return *rate;
		if (clock::now() >= until ||
		    printed.find("ouldn't connect") == printed.npos)
			return fail(errc::peer_error, "ib_write_bw",
				    std::format("exit status {}: {}", status,
						printed.substr(0, 100)));
		(void)context_.sleep_until(after(std::chrono::milliseconds(50))).wait();
	}
}

result<double> active_side::perftest(uint64_t bytes, uint64_t count)
{
	message m{.what = message::compare,
		  .size = bytes,
		  .count = std::max<uint64_t>(count, 5),
		  .depth = options_.depth};

	SLUICE_CHECK(say(peer_, m));
	SLUICE_TRY(auto answer, hear(peer_, soon()));
	if (answer.what != message::started)
		return fail(errc::input, peer_.peer(),
			    "it has no ib_write_bw: install perftest there");
	return perftest_once(run_of(card_, options_, m), soon());
}

result<figures> active_side::run()
{
	bool write = options_.operation == "write";
	figures all{.title = std::format("{} of {}'s memory, {} memory here, {}",
					 options_.operation, peer_.peer(),
					 options_.memory, card_.info().name),
		    .note = options_.note,
		    .depth = options_.depth,
		    .rows = {}};
	SLUICE_TRY(auto memory,
		   bench_memory::make(gpu_, options_.memory, options_.largest()));
	SLUICE_TRY(auto local, card_.register_memory(memory.all(), remote::none));
	SLUICE_TRY(auto far, ask());
	bench_other other;

	if (options_.perftest)
		other = [this](uint64_t bytes, uint64_t count) {
			return perftest(bytes, count);
		};
	for (uint64_t bytes : options_.sizes) {
		rdma_work work(peer_, local, memory.all().part(0, bytes), far, write,
			       options_.depth);
		SLUICE_TRY(auto f, measure(context_, work, options_.operation, bytes,
					   options_, other));
		all.rows.push_back(std::move(f));
	}
	SLUICE_CHECK(memory.verify());
	SLUICE_CHECK(say(peer_, {.what = message::end}));
	SLUICE_TRY(auto last, hear(peer_, soon()));
	if (last.what != message::end)
		return fail(
			errc::peer_error, peer_.peer(),
			"pages left its video memory meanwhile: there is no result");
	return all;
}

/// The listening side. It checks what the peer sends: the peer is not trusted.
class passive_side {
public:
	passive_side(const bench_options &o, context &in, device *gpu, nic &card,
		     endpoint &peer)
		: options_(o), context_(in), gpu_(gpu), card_(card), peer_(peer)
	{
	}
	result<void> run();

private:
	result<void> give(const message &m);
	result<void> compare(const message &m);
	result<void> finish();

	const bench_options &options_;
	context &context_;
	device *gpu_;
	nic &card_;
	endpoint &peer_;
	std::optional<bench_memory> memory_;
	registration registered_;
	std::optional<child> perftest_;
};

result<void> passive_side::give(const message &m)
{
	if (memory_ || !asks_for_memory(m))
		return fail(errc::protocol, peer_.peer(),
			    std::format("it asks for {} bytes, the most is {}, once",
					m.size, most_asked));
	SLUICE_TRY(auto memory,
		   bench_memory::make(gpu_, options_.memory, round_to_pages(m.size)));
	SLUICE_TRY(registered_,
		   card_.register_memory(memory.all(), remote::read | remote::write));
	memory_.emplace(std::move(memory));
	return say(peer_, {.what = message::memory,
			   .size = memory_->all().size(),
			   .address = memory_->all().address(),
			   .key = registered_.remote_key()});
}

// The previous ib_write_bw has ended, or is ended now.
result<void> passive_side::compare(const message &m)
{
	if (!asks_for_writes(m))
		return fail(errc::protocol, peer_.peer(),
			    "what it asks of ib_write_bw is out of bounds");
	perftest_.reset();
	auto program = child::start(perftest_words(run_of(card_, options_, m), ""),
				    {.capture = true});
	if (program)
		perftest_.emplace(std::move(*program));
	return say(peer_, {.what = program ? message::started : message::refused});
}

result<void> passive_side::finish()
{
	auto kept = memory_ ? memory_->verify() : result<void>();

	SLUICE_CHECK(say(peer_, {.what = kept ? message::end : message::refused}));
	return kept;
}

result<void> passive_side::run()
{
	for (;;) {
		SLUICE_TRY(auto m, hear(peer_, never));
		switch (m.what) {
		case message::ask: SLUICE_CHECK(give(m)); break;
		case message::compare: SLUICE_CHECK(compare(m)); break;
		case message::end: return finish();
		default:
			return fail(errc::protocol, peer_.peer(),
				    "it sends a message that is not due");
		}
	}
}

} // namespace

result<figures> bench_connect(const bench_options &o)
{
	SLUICE_TRY(auto in, context::open());
	SLUICE_TRY(auto gpu, bench_gpu(in, o, o.memory != "host"));
	SLUICE_TRY(auto card, nic::open(in, o.nic));
	SLUICE_TRY(auto peer,
		   endpoint::connect(in, card, o.host, o.port, options_of(o),
				     after(std::chrono::seconds(o.timeout_s))));
	return active_side(o, in, gpu ? &*gpu : nullptr, card, peer).run();
}

result<void> bench_listen(const bench_options &o)
{
	SLUICE_TRY(auto in, context::open());
	SLUICE_TRY(auto gpu, bench_gpu(in, o, o.memory != "host"));
	SLUICE_TRY(auto card, nic::open(in, o.nic));
	SLUICE_TRY(auto door,
		   listener::open(in, card, o.address, o.port, options_of(o)));
	SLUICE_TRY(auto peer, door.accept(after(std::chrono::seconds(o.timeout_s))));
	return passive_side(o, in, gpu ? &*gpu : nullptr, card, peer).run();
}

} // namespace sluice::cli
