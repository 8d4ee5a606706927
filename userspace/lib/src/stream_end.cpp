// SPDX-License-Identifier: MIT
#include "stream_end.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <format>

#include "card.hpp"
#include "engine.hpp"
#include "gpu.hpp"
#include "gpu_memory.hpp"
#include "hang_up.hpp"
#include "one_context.hpp"
#include "placement.hpp"
#include "try.hpp"

namespace sluice {

const char *name(data_path path) noexcept
{
	switch (path) {
	case data_path::device_alias: return "device-alias";
	case data_path::device_dmabuf: return "device-dmabuf";
	case data_path::host: return "host";
	case data_path::staged: return "staged";
	}
	return "?";
}

namespace detail {

namespace {

// How long to try to tell the peer why this end gives up.
constexpr auto longest_farewell = std::chrono::seconds(1);

// Bytes that are hashed before other work of the context gets its turn. Meanwhile, no peer
// sees a sign of life.
constexpr size_t most_hashed = 16 << 20;

// Bytes between two messages to a peer that waits. Reading and hashing them takes
// seconds at most.
constexpr uint64_t busy_each = 16 << 20;

result<void> check_options(const stream_options &o)
{
	auto bad = [](std::string_view what) {
		return fail(errc::usage, "stream", what);
	};

	if (o.piece == 0 || o.piece % page_size || o.piece > size_t{1} << 30)
		return bad(std::format(
			"a piece of {} bytes: it must be whole pages, at most 1 GiB",
			o.piece));
	if (o.chunk == 0 || o.chunk % page_size || o.chunk > o.piece)
		return bad(std::format(
			"a chunk of {} bytes: it must be whole pages, at most a piece of {}",
			o.chunk, o.piece));
	if (o.piece / o.chunk > wire::most_chunks)
		return bad("a piece may have at most 128 chunks");
	if (o.pieces < 2 || o.pieces > 64)
		return bad("pieces must be between 2 and 64");
	if (o.patience <= clock::duration::zero())
		return bad("patience must be more than 0");
	return {};
}

std::string required(data_path wanted, data_path found, std::string_view because)
{
	return std::format("\"{}\" is required, but this side has \"{}\"{}{}",
			   name(wanted), name(found), because.empty() ? "" : ": ",
			   because);
}

// Have the card access memory in the GPU. The error tells why it does not stay there.
result<void> try_in_place(nic &card, device &gpu)
{
	SLUICE_TRY(auto trial, gpu.svm(page_size));
	SLUICE_TRY(auto reached, card.register_memory(trial, remote::write));
	SLUICE_TRY(auto before, gpu.counters());
	SLUICE_CHECK(reached.prefetch());
	SLUICE_TRY(auto now, gpu.counters());
	SLUICE_TRY(size_t left, misplaced_pages(trial.address(), trial.size(), true));
	if (left || now.migrated_out != before.migrated_out)
		return fail(errc::no_path, gpu.info().address,
			    "its memory moves to the host when the card reaches for "
			    "it");
	return {};
}

// Have the card register video memory as a dma-buf. The error tells why it does not.
result<void> try_dmabuf(nic &card, device &gpu)
{
	SLUICE_TRY(auto trial, gpu.vram(page_size));
	SLUICE_CHECK(
		card.register_memory(trial, remote::write, registration_path::dmabuf));
	return {};
}

// The best path to video memory. In place, nothing is pinned; a caller that requires a
// dma-buf gets one all the same.
found_path find_in_gpu(nic &card, const stream_options &options)
{
	found_path found{.path = data_path::device_dmabuf, .reason = {}};

	if (options.require != data_path::device_dmabuf) {
		auto in_place = try_in_place(card, *options.gpu);

		if (in_place)
			return {.path = data_path::device_alias, .reason = {}};
		found.reason = in_place.error().message();
	}
	if (auto shown = try_dmabuf(card, *options.gpu); !shown) {
		found.path = data_path::staged;
		found.reason += found.reason.empty() ? "" : "; ";
		found.reason += shown.error().message();
	}
	return found;
}

} // namespace

// Otherwise nothing would run what this end waits for, or there would be no room for
// it.
result<void> stream_end::check_fit() const
{
	const engine &in = engine_of(context_);
	// In addition to those of pieces: listening, sending, a watch, a timer.
	const size_t most = options_.pieces * operations_of_piece() + 8;

	SLUICE_CHECK(detail::check_context(card_.info().name, card_.inside().in, in));
	if (options_.gpu)
		SLUICE_CHECK(detail::check_context(options_.gpu->info().address,
						   options_.gpu->inside().ring(), in));
	if (most > in.capacity())
		return fail(
			errc::usage, "stream",
			std::format("its pieces may have {} operations under way, and "
				    "the context has room for {}",
				    most, in.capacity()));
	return {};
}

result<void> stream_end::prepare()
{
	SLUICE_CHECK(check_options(options_));
	SLUICE_CHECK(check_fit());
	SLUICE_TRY(auto found, find_path(card_, options_));
	path_ = found.path;
	because_ = std::move(found.reason);
	node_ = node_for_pieces(path_,
				options_.gpu ? options_.gpu->info().numa_node : -1,
				card_.info().numa_node);
	return make_pieces();
}

result<piece_memory> stream_end::make_piece()
{
	piece_memory piece;

	SLUICE_TRY(auto placed, memory_near(node_, options_.piece));
	piece.host = placed.memory;
	elsewhere_ += placed.elsewhere;
	piece.wire = piece.host;
	if (options_.gpu)
		SLUICE_CHECK(options_.gpu->attach(piece.host.of()));
	if (path_ == data_path::device_alias) {
		SLUICE_TRY(piece.wire, options_.gpu->svm(options_.piece));
	} else if (path_ == data_path::device_dmabuf) {
		SLUICE_TRY(piece.wire, options_.gpu->vram(options_.piece));
	}
	return piece;
}

result<void> stream_end::make_pieces()
{
	for (unsigned i = 0; i < options_.pieces; i++) {
		SLUICE_TRY(auto piece, make_piece());
		pieces_.push_back(std::move(piece));
	}
	return {};
}

result<void> stream_end::begin(std::string source, uint64_t size)
{
	if (left_behind_)
		return fail(
			errc::busy, source,
			"a file of an earlier transfer does not answer and still has "
			"its memory: connect again");
	report_ = {};
	report_.name = std::move(source);
	report_.path = path_;
	report_.path_reason = because_;
	report_.numa_node = node_;
	report_.pages_elsewhere = elsewhere_;
	progress_ = {.bytes = 0, .size = size};
	why_.reset();
	sum_ = {};
	peer_looked_at_ = 0;
	in_flight_ = 0;
	finished_ = 0;
	ended_.reset();
	began_ = clock::now();
	calls_before_ = context_.system_calls();
	counters_before_.reset();
	if (options_.gpu)
		if (auto now = options_.gpu->counters())
			counters_before_ = *now;
	return {};
}

result<void> stream_end::kept_to_path()
{
	if (counters_before_)
		if (auto now = options_.gpu->counters())
			report_.migrations = {
				now->migrated_in - counters_before_->migrated_in,
				now->migrated_out - counters_before_->migrated_out,
				now->lost_events - counters_before_->lost_events};
	if (options_.require != data_path::device_alias)
		return {};
	if (!report_.migrations || report_.migrations->lost_events)
		return fail(
			errc::no_path, report_.name,
			std::format("{}, so nobody knows whether pages moved from the "
				    "GPU to the host on their way",
				    report_.migrations ? "events were lost"
						       : "the GPU has no counters"));
	if (report_.migrations->migrated_out)
		return fail(
			errc::no_path, report_.name,
			std::format(
				"{} pages moved from the GPU to the host on their way",
				report_.migrations->migrated_out));
	return {};
}

stream_report stream_end::end()
{
	report_.total = clock::now() - began_;
	report_.system_calls = context_.system_calls() - calls_before_;
	return std::move(report_);
}

void stream_end::give_up(error reason) noexcept
{
	if (!why_)
		why_ = meaning_of(std::move(reason));
	changed_.notify();
}

// If the connection broke, listen() ends as well, unless it has ended before.
task<void> stream_end::hear_out(const error &reason)
{
	if (reason.code() == errc::denied || reason.code() == errc::peer_lost)
		while (!broken() && !ended_)
			heed(co_await changed_.wait());
	co_return;
}

void stream_end::heed(const result<size_t> &woken) noexcept
{
	if (!woken)
		give_up(woken.error());
}

void stream_end::moved() noexcept
{
	moves_++;
	changed_.notify();
}

task<void> stream_end::watch_over()
{
	for (;;) {
		uint64_t before = moves_;

		heed(co_await context_.sleep_until(after(options_.patience)));
		if (broken())
			co_return;
		if (moves_ == before)
			give_up(error(errc::timeout, endpoint_.peer(),
				      "nothing moves any more"));
	}
}

task<void> stream_end::tell(task<result<void>> what,
			    std::optional<result<void>> &outcome)
{
	outcome = co_await what;
	changed_.notify();
}

task<result<void>> stream_end::or_give_up(task<result<void>> what)
{
	std::optional<result<void>> outcome;
	auto running = tell(std::move(what), outcome);

	while (!outcome && !broken())
		heed(co_await changed_.wait());
	if (!outcome)
		co_return why();
	co_return std::move(*outcome);
}

task<result<void>> stream_end::turn(const uint64_t &count, uint64_t value)
{
	while (count != value && !broken())
		heed(co_await changed_.wait());
	if (broken())
		co_return why();
	co_return {};
}

result<void> stream_end::take_memory(const scattered &all)
{
	for (const slice &part : all.parts()) {
		if (!part.of() || !part.valid())
			return fail(errc::usage, "stream",
				    "memory outside of its buffer");
		if (options_.gpu)
			SLUICE_CHECK(options_.gpu->attach(part.of()));
		else if (part.of().kind() != memory::host)
			return fail(errc::usage, "stream",
				    "memory of a GPU, and no GPU to copy it");
	}
	return {};
}

task<result<void>> stream_end::run_copies(piece_memory &piece)
{
	auto copied = co_await options_.gpu->submit(piece.copies.fault_in());

	if (!copied)
		co_return std::unexpected(copied.error());
	co_return {};
}

task<result<void>> stream_end::to_wire(piece_memory &piece, size_t length)
{
	if (piece.direct())
		co_return {};
	piece.copies.clear();
	piece.copies.copy(piece.wire.part(0, length), piece.host.part(0, length));
	co_return co_await run_copies(piece);
}

task<result<void>> stream_end::to_host(piece_memory &piece, size_t length)
{
	if (piece.direct())
		co_return {};
	piece.copies.clear();
	piece.copies.copy(piece.host.part(0, length), piece.wire.part(0, length));
	co_return co_await run_copies(piece);
}

// Fewer bytes than asked for: the file has ended.
task<result<size_t>> stream_end::read_all(int file, slice to, uint64_t offset)
{
	size_t have = 0;

	while (have < to.size()) {
		auto at = offset == context::current ? offset : offset + have;
		auto n = co_await context_.read(file, to.part(have, to.size() - have),
						at);

		if (!n)
			co_return fail_at(report_.name, n.error());
		if (*n == 0)
			break;
		have += *n;
	}
	co_return have;
}

task<result<void>> stream_end::write_all(int file, slice from, uint64_t offset)
{
	for (size_t done = 0; done < from.size();) {
		auto at = offset == context::current ? offset : offset + done;
		auto n = co_await context_.write(
			file, from.part(done, from.size() - done), at);

		if (!n)
			co_return fail_at(report_.name, n.error());
		if (*n == 0)
			co_return fail(errc::output, report_.name,
				       "it takes no more bytes");
		done += *n;
	}
	co_return {};
}

task<result<void>> stream_end::add_to_digest(std::span<const std::byte> data)
{
	while (!data.empty()) {
		auto part = data.first(std::min(data.size(), most_hashed - hashed_));

		sum_.add(part);
		data = data.subspan(part.size());
		hashed_ += part.size();
		if (hashed_ < most_hashed)
			continue;
		hashed_ = 0;
		heed(co_await context_.sleep_until(deadline{}));
		if (broken())
			co_return why();
	}
	co_return {};
}

task<result<void>> stream_end::digest_of(int file, uint64_t size, sha256 &sum)
{
	const slice &through = pieces_[0].host;
	uint64_t told = 0;

	for (uint64_t at = 0; at < size;) {
		size_t want = std::min<uint64_t>(
			{size - at, through.size(), told + busy_each - at});
		auto n = co_await read_all(file, through.part(0, want), at);

		if (!n)
			co_return std::unexpected(n.error());
		if (*n < want)
			co_return fail(errc::input, report_.name, "it ends early");
		sum.add(through.bytes().first(want));
		at += want;
		moved();
		if (at - told < busy_each || at == size)
			continue;
		if (auto said = co_await say(wire::encode(wire::busy_message{at}));
		    !said)
			co_return said;
		told = at;
	}
	co_return {};
}

result<void> stream_end::peer_busy(const wire::busy_message &m, uint64_t most)
{
	if (m.looked_at < peer_looked_at_ + busy_each || m.looked_at > most)
		return fail(errc::protocol, endpoint_.peer(),
			    "says that it has looked at what there is not");
	peer_looked_at_ = m.looked_at;
	moved();
	return {};
}

task<result<void>> stream_end::sync(int file)
{
	auto synced = co_await context_.sync(file);

	if (!synced)
		co_return fail_at(report_.name, synced.error());
	co_return {};
}

task<result<struct statx>> stream_end::status_of(int file, unsigned mask)
{
	const slice answer = pieces_[0].host.part(0, sizeof(struct statx));
	struct statx found;
	auto asked = co_await engine_of(context_).start_on_file(
		"stat", errc::input, answer, [&](io_uring_sqe *sqe) {
		io_uring_prep_statx(sqe, file, "", AT_EMPTY_PATH, mask,
				    reinterpret_cast<struct statx *>(answer.data()));
	});

	if (!asked)
		co_return fail_at(report_.name, asked.error());
	std::memcpy(&found, answer.data(), sizeof(found));
	co_return found;
}

task<result<void>> stream_end::sent(operation message)
{
	auto done = co_await message;

	if (!done)
		co_return std::unexpected(done.error());
	co_return {};
}

// A peer may take no message. A message that the card has cannot be taken back: it
// stays until fail_with() ends everything.
task<result<void>> stream_end::say(const wire::bytes &message)
{
	auto one = said_.emplace(said_.end());

	one->running.emplace(tell(sent(endpoint_.send(message.span())), one->outcome));
	while (!one->outcome && !broken())
		heed(co_await changed_.wait());
	if (!one->outcome)
		co_return why();
	auto outcome = std::move(*one->outcome);
	said_.erase(one);
	co_return outcome;
}

task<result<void>> stream_end::say_alone(const wire::bytes &message)
{
	why_.reset();
	under_way all(*this);
	auto watching = watch_over();
	auto done = co_await say(message);

	if (!done)
		co_await fail_with(done.error());
	all.over();
	co_return done;
}

task<result<void>> stream_end::listen()
{
	while (!ended_ && !broken()) {
		auto m = co_await hear();
		auto taken = m ? heard(*m) : std::unexpected(m.error());

		if (!taken) {
			give_up(taken.error());
			co_return taken;
		}
	}
	co_return {};
}

task<result<void>> stream_end::carry_all()
{
	for (unsigned slot = 0; slot < options_.pieces; slot++)
		workers_.push_back(worker(slot));
	while (finished_ < options_.pieces && !broken())
		heed(co_await changed_.wait());
	if (broken())
		co_return why();
	workers_.clear();
	co_return {};
}

task<void> stream_end::alarm(deadline at, bool &flag)
{
	(void)co_await context_.sleep_until(at);
	flag = true;
	changed_.notify();
}

void stream_end::let_go() noexcept
{
	workers_.clear();
	said_.clear();
}

void stream_end::break_off(const char *reason) noexcept
{
	hang_up(endpoint_, error(errc::cancelled, endpoint_.peer(), reason));
}

// Telling the peer is best effort: it may be gone, or take no message. Then the connection
// ends, with all that the card still has: whether that is ever over is up to the peer. What
// the peer's card has taken, the peer still hears.
task<void> stream_end::fail_with(const error &reason)
{
	std::optional<result<void>> outcome;
	bool late = false;

	give_up(reason);
	{
		auto text = wire::encode_text(wire::type::failed, reason.message());
		auto telling = tell(sent(send_first(endpoint_, text.span())), outcome);
		auto waiting = alarm(after(longest_farewell), late);

		while (!outcome && !late)
			if (!co_await changed_.wait())
				break;
		break_off("the stream has failed");
	}
	let_go();
	// Counted for all users of the context: to tell these apart would need separate
	// counts.
	left_behind_ = context_.left_behind() != 0;
}

task<result<std::span<const std::byte>>> stream_end::hear()
{
	auto n = co_await endpoint_.receive(message_);

	if (!n)
		co_return std::unexpected(n.error());
	co_return std::span<const std::byte>(message_).first(*n);
}

// The peer does not choose what kind of failure this is here.
std::unexpected<error> stream_end::peer_failed(std::span<const std::byte> m) const
{
	auto said = wire::decode_text(m);

	if (!said)
		return out_of_turn(m);
	return fail(errc::peer_error, endpoint_.peer(), said->text);
}

std::unexpected<error> stream_end::out_of_turn(std::span<const std::byte> m) const
{
	char text[64];

	std::snprintf(text, sizeof(text),
		      "a message of type %d, %zu bytes, that is not due",
		      m.empty() ? -1 : static_cast<int>(m[0]), m.size());
	return fail(errc::protocol, endpoint_.peer(), text);
}

void stream_end::checksum(std::span<const std::byte> data, size_t chunk,
			  wire::piece_message &into) noexcept
{
	into.chunks = 0;
	while (!data.empty()) {
		auto part = data.first(std::min(chunk, data.size()));

		into.crc[into.chunks++] = crc32c(part);
		data = data.subspan(part.size());
	}
}

} // namespace detail

// What the card cannot reach in the GPU goes through host memory, and the report
// says so, unless that is not allowed.
result<found_path> find_path(nic &card, const stream_options &options)
{
	found_path found;

	SLUICE_CHECK(detail::check_options(options));
	if (options.gpu)
		found = detail::find_in_gpu(card, options);
	if (options.require && *options.require != found.path)
		return fail(
			errc::no_path, card.info().name,
			detail::required(*options.require, found.path, found.reason));
	return found;
}

} // namespace sluice
