// SPDX-License-Identifier: MIT
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <format>
#include <sys/stat.h>
#include <unistd.h>

#include "engine.hpp"
#include "hang_up.hpp"
#include "stream_end.hpp"
#include "try.hpp"

namespace sluice {

namespace detail {

// An endpoint has at most 64 messages in flight. Each piece may have two: the
// acknowledgment of the one before, and the grant for it.
static constexpr unsigned most_with_two_messages = 31;

// Bytes of a file that are not known to be on its medium. A single sync at the end
// might exceed the peer's patience, and nothing would move meanwhile.
static constexpr uint64_t most_unsynced = 256 << 20;

// IORING_OP_FTRUNCATE, which liburing before 2.6 does not know.
static constexpr int cuts_a_file = 55;

// The kind of file, which is known without asking a server.
static mode_t kind_of(int file) noexcept
{
	constexpr int flags = AT_EMPTY_PATH | AT_STATX_DONT_SYNC;
	struct statx st{};

	return ::statx(file, "", flags, STATX_TYPE, &st) == 0 ? st.stx_mode : 0;
}

// Are all writes appended to it?
static bool appends(int file) noexcept
{
	const int flags = ::fcntl(file, F_GETFL);

	return flags < 0 || (flags & O_APPEND);
}

// Does this message show that the sender has heard that all is well?
static bool goes_on(std::span<const std::byte> m) noexcept
{
	return wire::decode_finish(m) || wire::decode_open(m);
}

class receiving final : public stream_end {
public:
	using stream_end::stream_end;
	// The workers wait for operations of this object.
	~receiving()
	{
		if (to_confirm_)
			break_off("what came was not confirmed");
		let_go();
	}

	task<result<std::optional<stream_offer>>> next();
	task<result<stream_report>> receive(stream_sink sink);
	task<result<void>> refuse(std::string why);
	task<result<void>> confirm();
	task<result<void>> abandon(error why);

private:
	void let_go() noexcept override;
	error meaning_of(error why) const noexcept override;
	/// Two messages, and a wait.
	size_t operations_of_piece() const noexcept override { return 3; }
	/// The message that was heard early, or the next one.
	task<result<std::span<const std::byte>>> hear_next();
	task<result<void>> hear_offer();
	/// Wait until a sender that has no more is gone.
	task<result<void>> see_off();
	/// Had the sender gone on before its connection ended? An error if it had given
	/// up.
	task<result<bool>> sender_went_on();
	/// If it had gone on, the last message need not arrive.
	task<result<void>> or_went_on(task<result<void>> said);
	result<void> prepare_for_pieces();
	result<void> fits();
	task<result<void>> accept();
	/// Let what is read next be what the medium has.
	task<result<void>> drop_cached();
	result<void> heard(std::span<const std::byte> m) override;
	result<void> take_piece(const wire::piece_message &m);
	task<void> worker(unsigned slot) override;
	task<result<void>> carry(unsigned slot, uint64_t index);
	task<result<void>> grant(unsigned slot, uint64_t index);
	/// Do engines store the pieces?
	bool scatters() const { return sink_.file < 0 && options_.gpu; }
	task<result<void>> scatter(piece_memory &piece, uint64_t offset, size_t length);
	task<result<void>> check(unsigned slot, uint64_t index);
	task<result<void>> store(unsigned slot, uint64_t index);
	/// Wait until this slot's last acknowledgment was sent.
	task<result<void>> acknowledged(unsigned slot);
	task<result<void>> all_acknowledged();
	/// Sync some of it to its medium before all has come.
	task<result<void>> sync_some(size_t written);
	task<void> sync_behind();
	task<result<void>> sync_all();
	/// errc::usage if what came has to be confirmed first.
	result<void> nothing_to_confirm() const;
	static std::unexpected<error> nothing_offered();
	/// Listen once more before the sender is told that all went well.
	result<void> said_already();
	/// What the sender said before that.
	result<void> said_before(result<void> done);
	/// The file ends where the offer ends.
	task<result<void>> cut_to_size();
	/// Is all that came right, and on its medium?
	task<result<void>> verify();
	task<result<void>> say_done();
	task<result<void>> receive_all();

	/// Pieces that came and that no worker has taken yet; index % pieces is the
	/// slot.
	wire::piece_message &came(uint64_t index)
	{
		return came_[index % options_.pieces];
	}

	stream_offer offer_;
	wire::open_message open_{};
	stream_sink sink_;
	scattered memory_; ///< of the sink, if it is not a file
	std::vector<wire::piece_message> came_;
	std::vector<std::optional<operation>> acks_; ///< of each slot
	uint64_t piece_ = 0;
	uint64_t expected_ = 0; ///< offset of the next piece
	uint64_t granted_ = 0, arrived_ = 0, checked_ = 0, written_ = 0;
	uint64_t stored_ = 0;		 ///< pieces so far, in order
	uint64_t unsynced_ = 0;		 ///< bytes of the file
	std::optional<operation> heard_; ///< a message that is waited for already
	std::optional<task<void>> syncing_;
	bool is_syncing_ = false;
	bool syncs_ = false; ///< the sink is a file on a medium
	bool cuts_ = false;  ///< it may be longer than what comes
	bool short_ = false; ///< a piece came that has to be the last one
	std::optional<wire::end_message> to_confirm_;
	bool offered_ = false;	      ///< and neither taken nor refused
	bool no_more_ = false;	      ///< instead of an offer
	std::optional<size_t> early_; ///< size of an offer that was heard already
	bool sequential_ = false;     ///< the sink takes one piece after the other
};

void receiving::let_go() noexcept
{
	stream_end::let_go();
	syncing_.reset();
	is_syncing_ = false;
	for (auto &ack : acks_)
		ack.reset();
}

// The sender has used memory after its right was revoked, or without a right.
error receiving::meaning_of(error reason) const noexcept
{
	if (reason.code() != errc::denied)
		return reason;
	return error(errc::protocol, reason.where(),
		     "it used memory that it has no "
		     "right to");
}

task<result<std::span<const std::byte>>> receiving::hear_next()
{
	if (early_)
		co_return std::span<const std::byte>(message_).first(
			*std::exchange(early_, std::nullopt));
	// It outlives a task of next() that is destroyed: what came meanwhile is not lost.
	if (!heard_)
		heard_.emplace(endpoint_.receive(message_));
	auto n = co_await *heard_;
	heard_.reset();
	if (!n)
		co_return std::unexpected(n.error());
	co_return std::span<const std::byte>(message_).first(*n);
}

task<result<void>> receiving::hear_offer()
{
	// The task of a next() that had heard it was destroyed.
	if (offered_)
		co_return {};
	if (no_more_)
		co_return co_await see_off();
	auto m = co_await hear_next();
	if (!m)
		co_return std::unexpected(m.error());
	no_more_ = wire::decode_finish(*m);
	if (no_more_)
		co_return co_await see_off();
	auto open = wire::decode_open(*m);
	if (!open)
		co_return peer_failed(*m);
	open_ = *open;
	offer_ = {std::string(open->name), open->size};
	open_.name = {};
	offered_ = true;
	co_return {};
}

// The sender leaves when it knows that FINISH has come.
task<result<void>> receiving::see_off()
{
	moved();
	if (auto m = co_await hear())
		co_return peer_failed(*m);
	co_return {};
}

// If the sender went on, it has heard that all is there: it may have left before its
// card acknowledged that message.
task<result<bool>> receiving::sender_went_on()
{
	if (early_)
		co_return true;
	auto m = co_await hear_next();

	if (!m)
		co_return false;
	if (!goes_on(*m))
		co_return peer_failed(*m);
	early_ = m->size();
	co_return true;
}

task<result<void>> receiving::or_went_on(task<result<void>> said)
{
	auto told = co_await said;

	if (told || endpoint_.alive())
		co_return told;
	auto went_on = co_await sender_went_on();
	if (!went_on)
		co_return std::unexpected(went_on.error());
	co_return *went_on ? result<void>() : told;
}

task<result<std::optional<stream_offer>>> receiving::next()
{
	if (auto free = nothing_to_confirm(); !free)
		co_return std::unexpected(free.error());
	why_.reset();
	auto watching = watch_over();
	auto heard = co_await or_give_up(hear_offer());

	if (no_more_ && (heard || heard.error().code() == errc::timeout))
		co_return std::optional<stream_offer>();
	if (!heard) {
		co_await fail_with(heard.error());
		co_return why();
	}
	co_return offer_;
}

task<result<void>> receiving::refuse(std::string reason)
{
	if (auto free = nothing_to_confirm(); !free)
		co_return free;
	if (!std::exchange(offered_, false))
		co_return nothing_offered();
	co_return co_await say_alone(wire::encode_text(wire::type::refuse, reason));
}

// The sender compares what is here already.
task<result<void>> receiving::accept()
{
	wire::accept_message m{.from = 0, .piece = piece_, .digest = {}};

	if (sink_.have && sink_.file >= 0 && offer_.size != stream_source::unknown &&
	    sink_.have <= offer_.size) {
		m.from = progress_.bytes = progress_.resumed = sink_.have;
		if (auto fresh = co_await or_give_up(drop_cached()); !fresh)
			co_return fresh;
		auto read = co_await or_give_up(digest_of(sink_.file, m.from, sum_));
		if (!read)
			co_return read;
		m.digest = sum_.digest();
	}
	expected_ = m.from;
	co_return co_await say(wire::encode(m));
}

// A page that could not be written is marked clean and stays: only the first sync fails,
// and later ones succeed. The digest of such pages would not be that of the medium. A file
// that is complete has been synced with success, and may have very much to sync again.
task<result<void>> receiving::drop_cached()
{
	if (!syncs_ || sink_.complete)
		co_return {};
	if (auto synced = co_await sync(sink_.file); !synced)
		co_return synced;
	auto dropped = co_await engine_of(context_).start_on_file(
		"drop from the page cache", errc::output, {}, [&](io_uring_sqe *sqe) {
		io_uring_prep_fadvise(sqe, sink_.file, 0, 0, POSIX_FADV_DONTNEED);
	});
	// What has no page cache refuses it, with an errno.
	if (!dropped && !dropped.error().number())
		co_return std::unexpected(dropped.error());
	co_return {};
}

// Pieces come in order and without gaps. The first one may be at the beginning,
// although more is here: then the sender has found that it differs.
result<void> receiving::take_piece(const wire::piece_message &m)
{
	auto bad = [this](const char *what) {
		return fail(errc::protocol, endpoint_.peer(), what);
	};
	size_t chunks = (m.length + open_.chunk - 1) / open_.chunk;

	if (arrived_ == 0 && m.offset == 0 && expected_) {
		if (sink_.complete)
			return fail(errc::output, offer_.name,
				    "it is there already, and is not the same, or its "
				    "sender cannot compare it");
		expected_ = progress_.bytes = progress_.resumed = 0;
		sum_ = {};
	}
	if (arrived_ == granted_)
		return bad("sends a piece that no memory was granted for");
	if (m.offset != expected_ || m.length > piece_ || short_)
		return bad("sends a piece that is out of place");
	short_ = m.length < piece_;
	if (offer_.size != stream_source::unknown &&
	    (m.offset > offer_.size || m.length > offer_.size - m.offset))
		return bad("sends more than it offered");
	if (m.chunks != (open_.checksum ? chunks : 0))
		return bad("sends another number of CRCs than a piece has chunks");
	came(arrived_++) = m;
	expected_ += m.length;
	moved();
	return {};
}

result<void> receiving::heard(std::span<const std::byte> m)
{
	if (auto piece = wire::decode_piece(m); piece && !ended_)
		return take_piece(*piece);
	if (auto busy = wire::decode_busy(m); busy && arrived_ == 0 && !ended_)
		return peer_busy(*busy, expected_);
	if (auto end = wire::decode_end(m); end && !ended_) {
		if (end->size != expected_ ||
		    (offer_.size != stream_source::unknown && end->size != offer_.size))
			return fail(errc::protocol, endpoint_.peer(),
				    "ends before all was sent");
		ended_ = end;
		moved();
		return {};
	}
	return peer_failed(m);
}

/// Let the sender write one more piece, wait until it is there, and revoke the right.
task<result<void>> receiving::grant(unsigned slot, uint64_t index)
{
	while (granted_ != index && !ended_ && !broken())
		heed(co_await changed_.wait());
	if (ended_ || broken())
		co_return {};
	const slice memory = pieces_[slot].wire.part(0, piece_);
	auto r = card_.register_memory(memory, remote::write);
	if (!r)
		co_return std::unexpected(r.error());
	auto said = endpoint_.send(
		wire::encode(wire::grant_message{{memory.address(), memory.size(),
						  r->remote_key()}})
			.span());
	granted_++;
	changed_.notify();
	if (auto sent = co_await said; !sent)
		co_return std::unexpected(sent.error());
	while (arrived_ <= index && !ended_ && !broken())
		heed(co_await changed_.wait());
	// The sender may be writing. If its right ended here, its card would break the
	// connection before it is told why: fail_with() does that first.
	if (broken())
		co_await std::suspend_always{};
	co_return {};
}

/// Put a piece into the parts of the sink's memory.
task<result<void>> receiving::scatter(piece_memory &piece, uint64_t offset,
				      size_t length)
{
	if (!options_.gpu) {
		memory_.each(offset, length, [&](const slice &part, uint64_t at) {
			std::memcpy(part.data(), piece.wire.data() + at, part.size());
		});
		co_return {};
	}
	auto add = [&](const slice &part, uint64_t at) {
		piece.copies.copy(part, piece.wire.part(at, part.size()));
	};
	co_return co_await copy_parts(piece, memory_, offset, length, add);
}

task<result<void>> receiving::check(unsigned slot, uint64_t index)
{
	const auto &m = came(index);
	auto data = pieces_[slot].host.bytes().first(m.length);
	wire::piece_message here{};

	if (open_.checksum)
		checksum(data, open_.chunk, here);
	for (unsigned i = 0; i < here.chunks; i++)
		if (here.crc[i] != m.crc[i])
			co_return fail(
				errc::corrupt, offer_.name,
				std::format(
					"the chunk at {} differs from what was sent",
					m.offset + i * uint64_t{open_.chunk}));
	if (auto mine = co_await turn(checked_, index); !mine)
		co_return mine;
	if (open_.digest)
		if (auto added = co_await add_to_digest(data); !added)
			co_return added;
	checked_++;
	changed_.notify();
	co_return {};
}

// In parallel with what comes: otherwise the wire would be idle meanwhile.
task<result<void>> receiving::sync_some(size_t written)
{
	if (!syncs_)
		co_return {};
	unsynced_ += written;
	while (unsynced_ >= most_unsynced && is_syncing_ && !broken())
		heed(co_await changed_.wait());
	if (broken())
		co_return why();
	if (unsynced_ < most_unsynced)
		co_return {};
	unsynced_ = 0;
	is_syncing_ = true;
	syncing_.emplace(sync_behind());
	co_return {};
}

task<void> receiving::sync_behind()
{
	auto synced = co_await sync(sink_.file);

	is_syncing_ = false;
	if (!synced)
		give_up(synced.error());
	moved();
}

// An error is reported to one of two syncs of a file: hear of both.
task<result<void>> receiving::sync_all()
{
	while (is_syncing_ && !broken())
		heed(co_await changed_.wait());
	if (broken())
		co_return why();
	co_return co_await sync(sink_.file);
}

/// Put a piece into its place, and say so when all before it is.
task<result<void>> receiving::store(unsigned slot, uint64_t index)
{
	const auto &m = came(index);
	const slice data = pieces_[slot].host.part(0, m.length);

	if (sink_.file >= 0) {
		// A sink without offsets takes one piece after the other.
		if (sequential_)
			if (auto mine = co_await turn(written_, index); !mine)
				co_return mine;
		auto written = co_await write_all(
			sink_.file, data, sequential_ ? context::current : m.offset);
		if (!written)
			co_return written;
		if (sequential_) {
			written_++;
			changed_.notify();
		}
		if (auto synced = co_await sync_some(m.length); !synced)
			co_return synced;
	} else if (auto put = co_await scatter(pieces_[slot], m.offset, m.length);
		   !put) {
		co_return put;
	}
	if (auto mine = co_await turn(stored_, index); !mine)
		co_return mine;
	progress_.bytes = m.offset + m.length;
	auto said =
		endpoint_.send(wire::encode(wire::ack_message{progress_.bytes}).span());
	acks_[slot] = std::move(said);
	stored_++;
	moved();
	co_return {};
}

// Not before the next grant is on its way, so that one call of the card sends both.
task<result<void>> receiving::acknowledged(unsigned slot)
{
	if (!acks_[slot])
		co_return {};
	auto sent = co_await *acks_[slot];
	acks_[slot].reset();
	if (!sent)
		co_return std::unexpected(sent.error());
	co_return {};
}

// With many pieces, they leave no room for another message.
task<result<void>> receiving::all_acknowledged()
{
	for (unsigned slot = 0; slot < options_.pieces; slot++)
		if (auto told = co_await acknowledged(slot); !told)
			co_return told;
	co_return {};
}

task<result<void>> receiving::carry(unsigned slot, uint64_t index)
{
	stopwatch watch;

	if (options_.pieces > most_with_two_messages)
		if (auto told = co_await acknowledged(slot); !told)
			co_return told;
	// The registration ends with it: the peer cannot change what is checked.
	if (auto granted = co_await grant(slot, index); !granted)
		co_return granted;
	if (auto told = co_await acknowledged(slot); !told)
		co_return told;
	report_.wire += watch.lap("recv.wire", index);
	if (broken() || arrived_ <= index)
		co_return {};
	size_t length = came(index).length;
	report_.most_in_flight = std::max(report_.most_in_flight, ++in_flight_);
	if (sink_.file >= 0 || open_.checksum || open_.digest)
		if (auto copied = co_await to_host(pieces_[slot], length); !copied)
			co_return copied;
	report_.engine += watch.lap("recv.engine", index);
	if (auto checked = co_await check(slot, index); !checked)
		co_return checked;
	report_.check += watch.lap("recv.check", index);
	if (auto stored = co_await store(slot, index); !stored)
		co_return stored;
	if (scatters())
		report_.engine += watch.lap("recv.engine", index);
	else
		report_.storage += watch.lap("recv.storage", index);
	in_flight_--;
	report_.bytes += length;
	report_.pieces++;
	co_return {};
}

// Slot n carries the pieces n, n + pieces, ...: what came for one is not overwritten
// before it is stored, since its slot grants no other until then.
task<void> receiving::worker(unsigned slot)
{
	auto behind_end = [this](uint64_t index) {
		return ended_ && index >= arrived_;
	};

	for (uint64_t index = slot; !broken() && !behind_end(index);
	     index += options_.pieces) {
		auto carried = co_await carry(slot, index);
		if (carried)
			continue;
		co_await hear_out(carried.error());
		// Behind the end no piece was due. If the connection is over, who tells
		// of success finds that, too, and listens to what was said last.
		if (!behind_end(index))
			give_up(carried.error());
	}
	finished_++;
	changed_.notify();
}

task<result<void>> receiving::verify()
{
	wire::end_message done{.size = expected_, .digest = {}};

	if (open_.digest) {
		done.digest = sum_.digest();
		if (done.digest != ended_->digest)
			co_return fail(errc::corrupt, offer_.name,
				       "what arrived differs from what was sent");
		report_.digest = done.digest;
	}
	if (auto cut = co_await or_give_up(cut_to_size()); !cut)
		co_return cut;
	if (syncs_)
		if (auto synced = co_await or_give_up(sync_all()); !synced)
			co_return synced;
	if (auto kept_to = kept_to_path(); !kept_to)
		co_return kept_to;
	auto told = co_await or_went_on(or_give_up(all_acknowledged()));
	if (told)
		to_confirm_ = done;
	co_return told;
}

// What the file had before, or what a broken transfer has left, may be longer.
task<result<void>> receiving::cut_to_size()
{
	if (!cuts_)
		co_return {};
	auto now = co_await status_of(sink_.file, STATX_SIZE);
	if (!now)
		co_return std::unexpected(now.error());
	if (now->stx_size <= expected_)
		co_return {};
	auto cut = co_await engine_of(context_).start_on_file(
		"truncate", errc::output, {}, [&](io_uring_sqe *sqe) {
		io_uring_prep_rw(cuts_a_file, sqe, sink_.file, nullptr, 0, expected_);
	});
	if (cut)
		co_return {};
	if (cut.error().number() != EINVAL)
		co_return fail_at(offer_.name, cut.error());
	// Before Linux 6.9 the ring cannot do it.
	if (::ftruncate(sink_.file, static_cast<off_t>(expected_)) < 0)
		co_return fail_errno(offer_.name, "truncate", errno, errc::output);
	co_return {};
}

task<result<void>> receiving::say_done()
{
	const auto done = wire::encode_done(*to_confirm_);

	to_confirm_.reset();
	co_return co_await or_went_on(say(done));
}

task<result<void>> receiving::confirm()
{
	if (!to_confirm_)
		co_return fail(errc::usage, "stream", "there is nothing to confirm");
	why_.reset();
	under_way all(*this);
	auto watching = watch_over();
	auto done = said_already();

	if (done)
		done = said_before(co_await say_done());
	to_confirm_.reset();
	if (!done)
		co_await fail_with(done.error());
	all.over();
	co_return done;
}

// The sender may have given up waiting. Its later messages are for next().
result<void> receiving::said_already()
{
	if (!early_)
		heard_.emplace(endpoint_.receive(message_));
	return said_before({});
}

result<void> receiving::said_before(result<void> done)
{
	if (!heard_ || !heard_->done())
		return done;
	auto n = heard_->wait();
	heard_.reset();
	if (!n)
		return done;
	auto m = std::span<const std::byte>(message_).first(*n);
	if (!goes_on(m))
		return peer_failed(m);
	early_ = *n;
	return endpoint_.alive() ? done : result<void>();
}

result<void> receiving::nothing_to_confirm() const
{
	if (!to_confirm_)
		return {};
	return fail(errc::usage, "stream", "confirm what came first, or give it up");
}

std::unexpected<error> receiving::nothing_offered()
{
	return fail(errc::usage, "stream", "nothing is offered: call next() first");
}

task<result<void>> receiving::abandon(error reason)
{
	why_.reset();
	to_confirm_.reset();
	offered_ = false;
	under_way all(*this);
	co_await fail_with(reason);
	all.over();
	co_return {};
}

/// Can the offer be received at all?
result<void> receiving::fits()
{
	if (piece_ == 0)
		return fail(
			errc::usage, "stream",
			std::format(
				"pieces of {} bytes hold no chunk of the sender, {} bytes: use larger pieces",
				options_.piece, open_.chunk));
	if (sink_.file >= 0)
		return {};
	if (offer_.size == stream_source::unknown)
		return fail(errc::usage, "stream",
			    "the size of what is offered is not known, so no memory is "
			    "sure to hold it");
	if (offer_.size > memory_.size())
		return fail(errc::usage, "stream",
			    std::format("{} bytes are offered, the memory has {}",
					offer_.size, memory_.size()));
	return take_memory(memory_);
}

result<void> receiving::prepare_for_pieces()
{
	if (auto begun = begin(offer_.name, offer_.size); !begun)
		return begun;
	if (sink_.complete && sink_.have != offer_.size)
		return fail(errc::output, offer_.name,
			    "it is there already, and has another size");
	piece_ = std::min<uint64_t>(open_.piece, options_.piece) / open_.chunk *
		 open_.chunk;
	const mode_t kind = sink_.file >= 0 ? kind_of(sink_.file) : 0;
	syncs_ = S_ISREG(kind) || S_ISBLK(kind);
	sequential_ =
		sink_.file >= 0 && (sink_.in_order || !syncs_ || appends(sink_.file));
	cuts_ = S_ISREG(kind) && !sequential_ && !sink_.complete;
	if (sink_.complete && (sequential_ || sink_.file < 0))
		return fail(errc::usage, offer_.name,
			    "only a file that is not written in order can be compared");
	if (sequential_)
		sink_.have = 0; // nothing can return to its beginning
	came_.assign(options_.pieces, {});
	acks_.clear();
	acks_.resize(options_.pieces);
	granted_ = arrived_ = checked_ = written_ = stored_ = unsynced_ = 0;
	short_ = false;
	to_confirm_.reset();
	return fits();
}

task<result<void>> receiving::receive_all()
{
	auto watching = watch_over();
	auto step = co_await accept();
	auto listening = listen();

	if (step)
		step = co_await carry_all();
	if (step && !broken())
		step = co_await verify();
	if (step && !broken() && !sink_.confirm) {
		if (has_message(endpoint_))
			step = said_already();
		if (step)
			step = co_await say_done();
	}
	if (broken())
		step = why();
	co_return step;
}

// The sender waits for an answer, even if there is nothing to receive.
task<result<stream_report>> receiving::receive(stream_sink sink)
{
	if (auto free = nothing_to_confirm(); !free)
		co_return std::unexpected(free.error());
	if (!std::exchange(offered_, false))
		co_return nothing_offered();
	sink_ = std::move(sink);
	memory_ = scattered(std::exchange(sink_.to, {}));
	why_.reset();
	under_way all(*this);
	auto step = prepare_for_pieces();

	if (step)
		step = co_await receive_all();
	if (!step) {
		to_confirm_.reset();
		co_await fail_with(step.error());
	}
	all.over();
	if (!step)
		co_return why();
	report_.resumed = expected_ - report_.bytes;
	co_return end();
}

} // namespace detail

receiver::receiver(std::unique_ptr<detail::receiving> r) noexcept
	: receiving_(std::move(r))
{
}
receiver::receiver(receiver &&) noexcept = default;
receiver::~receiver() = default;

result<receiver> receiver::make(context &in, endpoint &from, nic &card,
				const stream_options &options)
{
	auto r = std::make_unique<detail::receiving>(in, from, card, options);

	SLUICE_CHECK(r->prepare());
	return receiver(std::move(r));
}

task<result<std::optional<stream_offer>>> receiver::next()
{
	return receiving_->next();
}

task<result<stream_report>> receiver::receive(stream_sink sink)
{
	return receiving_->receive(std::move(sink));
}

task<result<void>> receiver::confirm()
{
	return receiving_->confirm();
}

task<result<void>> receiver::give_up(error why)
{
	return receiving_->abandon(std::move(why));
}

task<result<void>> receiver::refuse(std::string why)
{
	return receiving_->refuse(std::move(why));
}

const stream_progress &receiver::progress() const noexcept
{
	return receiving_->progress();
}

} // namespace sluice
