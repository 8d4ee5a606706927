// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <format>
#include <sys/stat.h>

#include "hang_up.hpp"
#include "stream_end.hpp"
#include "try.hpp"

namespace sluice {

namespace detail {

class sending final : public stream_end {
public:
	using stream_end::stream_end;
	// The workers wait for operations of this object.
	~sending() { let_go(); }

	/// Allocate the memory of pieces, and register it: the card reads it.
	result<void> prepare_pieces();
	task<result<stream_report>> send(stream_source source);
	task<result<void>> finish();

private:
	void let_go() noexcept override;
	error meaning_of(error why) const noexcept override;
	/// A write for each chunk, a message, and a wait.
	size_t operations_of_piece() const noexcept override
	{
		return options_.piece / options_.chunk + 2;
	}
	task<result<void>> offer();
	task<result<void>> agree(const wire::accept_message &m);
	result<void> heard(std::span<const std::byte> m) override;
	task<void> worker(unsigned slot) override;
	task<result<void>> carry(unsigned slot, uint64_t index);
	task<result<size_t>> fetch(unsigned slot, uint64_t index);
	task<result<size_t>> fetch_in_order(unsigned slot, uint64_t index);
	/// Do engines fetch the pieces?
	bool gathers() const { return source_.file < 0 && options_.gpu; }
	task<result<void>> gather(piece_memory &piece, uint64_t offset, size_t length);
	task<result<void>> examine(unsigned slot, uint64_t index, size_t length,
				   wire::piece_message &m);
	/// When the source changed. errc::input if it has another size.
	task<result<statx_timestamp>> change_of_source();
	task<result<void>> note_change();
	task<result<void>> unchanged();
	task<result<void>> await_grant(uint64_t index);
	task<result<void>> transfer(unsigned slot, uint64_t index, size_t length,
				    wire::piece_message &m);
	task<result<void>> close();
	task<result<void>> send_all();

	/// The offset of a piece in the source.
	uint64_t offset_of(uint64_t index) const { return start_ + index * piece_; }
	bool size_known() const { return source_.size != stream_source::unknown; }
	/// Is this piece after the end?
	bool behind(uint64_t index) const { return offset_of(index) >= source_.size; }
	/// Does a piece that is on its way end at this offset?
	bool ends_piece(uint64_t offset) const
	{
		return offset <= std::min(offset_of(posted_), source_.size) &&
		       (offset == source_.size || (offset - start_) % piece_ == 0);
	}

	stream_source source_;
	scattered memory_;		       ///< of the source, if it is not a file
	std::vector<registration> registered_; ///< of each slot
	std::vector<std::vector<operation>> writes_;
	std::deque<remote_memory> grants_;
	uint64_t piece_ = 0, start_ = 0;
	uint64_t next_ = 0;    ///< first piece that no worker carries yet
	uint64_t fetched_ = 0; ///< pieces read, when they are read in order
	uint64_t examined_ = 0, posted_ = 0; ///< pieces so far, in order
	uint64_t last_ack_ = 0;
	bool accepted_ = false;
	bool closed_ = false;	///< END was sent
	bool in_order_ = false; ///< the source has no offsets
	std::optional<wire::accept_message> answer_;
	statx_timestamp changed_at_{}; ///< the source, when it was begun
};

result<void> sending::prepare_pieces()
{
	SLUICE_CHECK(stream_end::prepare());
	for (const piece_memory &piece : pieces_) {
		SLUICE_TRY(auto r, card_.register_memory(piece.wire, remote::none));
		registered_.push_back(std::move(r));
		writes_.emplace_back().reserve(wire::most_chunks);
	}
	return {};
}

void sending::let_go() noexcept
{
	stream_end::let_go();
	for (auto &writes : writes_)
		writes.clear();
}

// Only a receiver that is about to end revokes memory that it granted.
error sending::meaning_of(error reason) const noexcept
{
	if (reason.code() != errc::denied)
		return reason;
	return error(errc::peer_lost, endpoint_.peer(),
		     "it took back the memory that it had granted, or died");
}

task<result<void>> sending::offer()
{
	co_return co_await say(wire::encode(
		wire::open_message{.size = source_.size,
				   .piece = options_.piece,
				   .chunk = static_cast<uint32_t>(options_.chunk),
				   .checksum = options_.checksum,
				   .digest = options_.digest,
				   .name = source_.name}));
}

// Data that the receiver already has need not be sent if they are the same.
task<result<void>> sending::agree(const wire::accept_message &m)
{
	if (m.piece > options_.piece || m.piece % options_.chunk)
		co_return fail(errc::protocol, endpoint_.peer(),
			       "accepts pieces of another size");
	if (m.from > source_.size)
		co_return fail(errc::protocol, endpoint_.peer(),
			       "has more bytes than we send");
	piece_ = m.piece;
	// A source that is not a file is sent from the beginning: it cannot be
	// compared.
	start_ = size_known() && source_.file >= 0 ? m.from : 0;
	if (!start_)
		co_return {};
	auto read = co_await or_give_up(digest_of(source_.file, m.from, sum_));
	if (!read)
		co_return read;
	if (sum_.digest() != m.digest) {
		sum_ = {};
		start_ = 0;
	}
	report_.resumed = start_;
	progress_.bytes = progress_.resumed = last_ack_ = start_;
	co_return {};
}

result<void> sending::heard(std::span<const std::byte> m)
{
	auto t = wire::type_of(m);

	if (t == wire::type::failed || (t == wire::type::refuse && !answer_))
		return peer_failed(m);
	if (t == wire::type::accept && !answer_) {
		answer_ = wire::decode_accept(m);
		if (!answer_)
			return out_of_turn(m);
		moved();
		return {};
	}
	// For a source without a size the receiver has nothing to check.
	if (auto busy = wire::decode_busy(m); busy && !answer_ && size_known())
		return peer_busy(*busy, source_.size);
	if (auto grant = wire::decode_grant(m);
	    grant && answer_ && grants_.size() < 64) {
		if (grant->memory.size < answer_->piece)
			return fail(errc::protocol, endpoint_.peer(),
				    "grants less than a piece");
		grants_.push_back(grant->memory);
		changed_.notify(); // a piece that uses it moves the stream
		return {};
	}
	if (auto ack = wire::decode_ack(m); ack && accepted_) {
		if (ack->upto <= last_ack_ || !ends_piece(ack->upto))
			return fail(errc::protocol, endpoint_.peer(),
				    "acknowledges what is no piece, or twice");
		progress_.bytes = last_ack_ = ack->upto;
		moved();
		return {};
	}
	if (auto done = wire::decode_done(m); done && closed_) {
		ended_ = done;
		moved();
		return {};
	}
	return out_of_turn(m);
}

// A pipe has no offsets: its pieces are read one after the other.
task<result<size_t>> sending::fetch_in_order(unsigned slot, uint64_t index)
{
	if (auto mine = co_await turn(fetched_, index); !mine)
		co_return std::unexpected(mine.error());
	auto n = behind(index) ? result<size_t>(0)
			       : co_await read_all(source_.file,
						   pieces_[slot].host.part(0, piece_),
						   context::current);
	if (n && *n < piece_)
		source_.size = std::min(source_.size, offset_of(index) + *n);
	fetched_++;
	changed_.notify();
	co_return n;
}

/// Bring a piece of a file to host memory, or of memory to where the card reads it.
/// Returns how many bytes.
task<result<size_t>> sending::fetch(unsigned slot, uint64_t index)
{
	piece_memory &piece = pieces_[slot];

	if (in_order_)
		co_return co_await fetch_in_order(slot, index);
	uint64_t offset = offset_of(index);
	size_t length = std::min<uint64_t>(piece_, source_.size - offset);
	if (source_.file < 0) {
		auto gathered = co_await gather(piece, offset, length);
		co_return gathered ? result<size_t>(length)
				   : std::unexpected(gathered.error());
	}
	auto n = co_await read_all(source_.file, piece.host.part(0, length), offset);
	if (n && *n < length)
		co_return fail(errc::input, source_.name,
			       std::format("it ended at {} of {} bytes", offset + *n,
					   source_.size));
	co_return n;
}

/// Gather a piece of the source's memory where the card reads it, and, if it is
/// examined, where that is done.
task<result<void>> sending::gather(piece_memory &piece, uint64_t offset, size_t length)
{
	bool seen = !piece.direct() && (options_.checksum || options_.digest);

	if (!options_.gpu) {
		memory_.each(offset, length, [&](const slice &part, uint64_t at) {
			std::memcpy(piece.wire.data() + at, part.data(), part.size());
		});
		co_return {};
	}
	auto add = [&](const slice &part, uint64_t at) {
		piece.copies.copy(piece.wire.part(at, part.size()), part);
		if (seen)
			piece.copies.copy(piece.host.part(at, part.size()), part);
	};
	co_return co_await copy_parts(piece, memory_, offset, length, add);
}

// CRCs at once; the digest is of all pieces in order.
task<result<void>> sending::examine(unsigned slot, uint64_t index, size_t length,
				    wire::piece_message &m)
{
	auto data = pieces_[slot].host.bytes().first(length);

	if (options_.checksum)
		checksum(data, options_.chunk, m);
	if (auto mine = co_await turn(examined_, index); !mine)
		co_return mine;
	if (options_.digest)
		if (auto added = co_await add_to_digest(data); !added)
			co_return added;
	examined_++;
	changed_.notify();
	co_return {};
}

task<result<void>> sending::await_grant(uint64_t index)
{
	if (auto mine = co_await turn(posted_, index); !mine)
		co_return mine;
	if (grants_.empty())
		report_.waits_for_grant++;
	stopwatch watch;
	while (grants_.empty() && !broken())
		heed(co_await changed_.wait());
	report_.granted_late += watch.lap("send.grant", index);
	if (broken())
		co_return why();
	co_return {};
}

// Nothing waits between the grant and the message, so messages are in the order of the
// grants, and each is after its writes.
task<result<void>> sending::transfer(unsigned slot, uint64_t index, size_t length,
				     wire::piece_message &m)
{
	if (auto granted = co_await await_grant(index); !granted)
		co_return granted;
	auto to = grants_.front();
	auto &writes = writes_[slot];

	grants_.pop_front();
	m.offset = offset_of(index);
	m.length = length;
	for (size_t at = 0; at < length; at += options_.chunk)
		writes.push_back(endpoint_.write(
			pieces_[slot].wire.part(at,
						std::min(options_.chunk, length - at)),
			registered_[slot], to, at));
	auto said = endpoint_.send(wire::encode(m).span());
	posted_++;
	changed_.notify();
	result<void> all;
	for (operation &write : writes)
		if (auto written = co_await write; !written && all)
			all = std::unexpected(written.error());
	writes.clear();
	if (auto sent = co_await said; !sent && all)
		all = std::unexpected(sent.error());
	co_return all;
}

task<result<void>> sending::carry(unsigned slot, uint64_t index)
{
	wire::piece_message m{};
	stopwatch watch;

	auto length = co_await fetch(slot, index);
	if (!gathers())
		report_.storage += watch.lap("send.storage", index);
	if (!length || !*length)
		co_return length ? result<void>() : std::unexpected(length.error());
	if (source_.file >= 0)
		if (auto copied = co_await to_wire(pieces_[slot], *length); !copied)
			co_return copied;
	report_.engine += watch.lap("send.engine", index);
	if (auto examined = co_await examine(slot, index, *length, m); !examined)
		co_return examined;
	report_.check += watch.lap("send.check", index);
	report_.most_in_flight = std::max(report_.most_in_flight, ++in_flight_);
	auto sent = co_await transfer(slot, index, *length, m);
	in_flight_--;
	report_.wire += watch.lap("send.wire", index);
	report_.bytes += *length;
	report_.pieces++;
	moved();
	co_return sent;
}

task<void> sending::worker(unsigned slot)
{
	while (!broken()) {
		uint64_t index = next_++;

		if (behind(index))
			break;
		auto carried = co_await carry(slot, index);
		if (carried)
			continue;
		co_await hear_out(carried.error());
		give_up(carried.error());
	}
	finished_++;
	changed_.notify();
}

task<result<statx_timestamp>> sending::change_of_source()
{
	auto now = co_await status_of(source_.file, STATX_SIZE | STATX_MTIME);

	if (!now)
		co_return std::unexpected(now.error());
	if (source_.size != now->stx_size)
		co_return fail(errc::input, source_.name,
			       std::format("it has {} bytes now, and had {}",
					   now->stx_size, source_.size));
	co_return now->stx_mtime;
}

task<result<void>> sending::note_change()
{
	source_.steady &= source_.file >= 0 && size_known();
	if (!source_.steady)
		co_return {};
	auto at = co_await change_of_source();
	if (!at)
		co_return std::unexpected(at.error());
	changed_at_ = *at;
	co_return {};
}

task<result<void>> sending::unchanged()
{
	if (!source_.steady)
		co_return {};
	auto now = co_await change_of_source();
	if (!now)
		co_return std::unexpected(now.error());
	if (now->tv_sec != changed_at_.tv_sec || now->tv_nsec != changed_at_.tv_nsec)
		co_return fail(errc::input, source_.name,
			       "it changed while it was sent");
	co_return {};
}

task<result<void>> sending::close()
{
	wire::end_message end{.size = std::min(source_.size, start_ + report_.bytes),
			      .digest = {}};

	if (auto kept_to = kept_to_path(); !kept_to)
		co_return kept_to;
	if (auto same = co_await or_give_up(unchanged()); !same)
		co_return same;
	if (options_.digest)
		end.digest = sum_.digest();
	closed_ = true;
	if (auto said = co_await say(wire::encode(end)); !said)
		co_return said;
	while (!ended_ && !broken())
		heed(co_await changed_.wait());
	if (!ended_)
		co_return why();
	if (ended_->size != end.size ||
	    (options_.digest && ended_->digest != end.digest))
		co_return fail(errc::corrupt, source_.name,
			       "what arrived differs from what was sent");
	if (options_.digest)
		report_.digest = end.digest;
	co_return {};
}

task<result<stream_report>> sending::send(stream_source source)
{
	source_ = std::move(source);
	memory_ = scattered(std::exchange(source_.from, {}));
	if (source_.file < 0)
		source_.size = memory_.size();
	if (!wire::is_name(source_.name))
		co_return wire::is_no_name(source_.name);
	if (auto begun = begin(source_.name, source_.size); !begun)
		co_return std::unexpected(begun.error());
	if (auto usable = take_memory(memory_); !usable)
		co_return std::unexpected(usable.error());
	grants_.clear();
	answer_.reset();
	accepted_ = closed_ = false;
	in_order_ = !size_known();
	next_ = fetched_ = examined_ = posted_ = last_ack_ = 0;
	under_way all(*this);
	auto step = co_await send_all();
	if (!step)
		co_await fail_with(step.error());
	all.over();
	if (!step)
		co_return why();
	co_return end();
}

// The watch starts before anything is sent to a peer, which may take nothing.
task<result<void>> sending::send_all()
{
	auto watching = watch_over();
	auto step = co_await or_give_up(note_change());
	if (step)
		step = co_await offer();
	auto listening = listen();

	while (step && !answer_ && !broken())
		heed(co_await changed_.wait());
	if (step && !broken())
		step = co_await agree(*answer_);
	accepted_ = step && !broken();
	if (accepted_)
		step = co_await carry_all();
	if (step && !broken())
		step = co_await close();
	if (broken())
		step = why();
	co_return step;
}

// The receiver waits for the end of the connection: if it left first, the card's
// acknowledgment of FINISH might be lost.
task<result<void>> sending::finish()
{
	auto said = co_await say_alone(wire::encode_finish());

	if (said)
		hang_up(endpoint_, error(errc::usage, endpoint_.peer(),
					 "the connection has ended with the stream"));
	co_return said;
}

} // namespace detail

sender::sender(std::unique_ptr<detail::sending> s) noexcept : sending_(std::move(s)) {}
sender::sender(sender &&) noexcept = default;
sender::~sender() = default;

result<sender> sender::make(context &in, endpoint &to, nic &card,
			    const stream_options &options)
{
	auto s = std::make_unique<detail::sending>(in, to, card, options);

	SLUICE_CHECK(s->prepare_pieces());
	return sender(std::move(s));
}

task<result<stream_report>> sender::send(stream_source source)
{
	return sending_->send(std::move(source));
}

task<result<void>> sender::finish()
{
	return sending_->finish();
}

const stream_progress &sender::progress() const noexcept
{
	return sending_->progress();
}

} // namespace sluice
