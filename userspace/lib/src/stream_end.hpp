// SPDX-License-Identifier: MIT
// What both ends of a stream have: memory for pieces, which is reused in turn, and the
// coroutines that carry them.
#pragma once

#include <deque>
#include <list>
#include <optional>
#include <sys/stat.h>
#include <vector>

#include "event.hpp"
#include "scattered.hpp"
#include "sluice/stream.hpp"
#include "span.hpp"
#include "stream_wire.hpp"

namespace sluice::detail {

/// Memory of one piece.
struct piece_memory {
	slice host; ///< what files, CRCs and digests see
	slice wire; ///< what the card reads or writes; may be the same
	bool direct() const { return wire.address() == host.address(); }
	batch copies{2}; ///< from the one to the other
};

/// How much time was spent since the last lap.
class stopwatch {
public:
	clock::duration lap() noexcept
	{
		auto now = clock::now();

		return now - std::exchange(last_, now);
	}
	/// The same, written to the trace as a step of a piece.
	clock::duration lap(const char *step, uint64_t piece) noexcept
	{
		auto began = last_;
		auto took = lap();

		span(step, piece, began, last_);
		return took;
	}

private:
	clock::time_point last_ = clock::now();
};

class stream_end {
public:
	stream_end(context &in, endpoint &with, nic &card, const stream_options &o)
		: context_(in), endpoint_(with), card_(card), options_(o),
		  changed_(engine_of(in))
	{
	}

	/// Allocate the memory, and try how the card reaches it.
	result<void> prepare();

	const stream_progress &progress() const noexcept { return progress_; }

protected:
	~stream_end() = default;

	/// What runs for a stream ends with the coroutine that began it, even if that
	/// one is destroyed: its owner may then close files and free memory.
	class under_way {
	public:
		explicit under_way(stream_end &of) noexcept : of_(of) {}
		under_way(const under_way &) = delete;
		~under_way()
		{
			if (!over_)
				of_.break_off("its coroutine was destroyed");
			of_.let_go();
		}
		/// It has ended, successfully or not.
		void over() noexcept { over_ = true; }

	private:
		stream_end &of_;
		bool over_ = false;
	};

	/// Destroy all coroutines and operations, which waits for what the card has.
	virtual void let_go() noexcept;
	/// End the connection: then nothing has to be waited for.
	void break_off(const char *why) noexcept;

	result<void> check_fit() const;
	/// How many operations one piece may have in flight.
	virtual size_t operations_of_piece() const noexcept = 0;
	result<void> make_pieces();
	result<piece_memory> make_piece();

	/// errc::busy if a file still has memory of an earlier stream that failed.
	result<void> begin(std::string name, uint64_t size);
	/// errc::no_path if the data did not take the required path. Called before the
	/// peer is told that all went well.
	result<void> kept_to_path();
	stream_report end();

	/// What a refusal by a card means to this end.
	virtual error meaning_of(error why) const noexcept = 0;
	/// All give up, for this reason; the first one counts.
	void give_up(error why) noexcept;
	/// Before a worker gives up for this reason: before the connection broke, the
	/// peer may have said why. Wait until listen() has read it.
	task<void> hear_out(const error &why);
	bool broken() const noexcept { return why_.has_value(); }
	std::unexpected<error> why() const { return std::unexpected(*why_); }
	/// Something moved.
	void moved() noexcept;
	/// Check the result of waiting for changed_: if other operations fill the
	/// context, waiting is impossible, and all give up.
	void heed(const result<size_t> &woken) noexcept;

	/// Listen to the peer until it says that it has ended, or all give up.
	task<result<void>> listen();
	/// A message of the peer. One that brings the stream forward has moved(). One
	/// that ends it is left in ended_.
	virtual result<void> heard(std::span<const std::byte> m) = 0;
	/// Start a worker for each piece in memory. Wait for all, or until all give up.
	task<result<void>> carry_all();
	virtual task<void> worker(unsigned slot) = 0;
	/// Keep the outcome, and tell that it is over.
	task<void> tell(task<result<void>> what, std::optional<result<void>> &outcome);
	/// Tell the peer, and end everything, the connection included.
	task<void> fail_with(const error &why);
	/// Set @p flag at that time.
	task<void> alarm(deadline at, bool &flag);

	/// Give up if nothing moves for too long.
	task<void> watch_over();
	/// Wait for something that a file may never complete, or until all give up.
	task<result<void>> or_give_up(task<result<void>> what);
	/// Wait until @p count is @p value, or all give up.
	task<result<void>> turn(const uint64_t &count, uint64_t value);

	/// Is it all inside its buffers, and is there a GPU for what only a GPU should
	/// access? Attaches memory to the GPU.
	result<void> take_memory(const scattered &memory);
	/// Run the copies of a piece.
	task<result<void>> run_copies(piece_memory &piece);
	/// Run the copies that @p add(part, at) adds for each part of @p length bytes of
	/// memory, two at most, @p at being where the part begins in these bytes. As
	/// many at once as a batch may have.
	template <class Add>
	task<result<void>> copy_parts(piece_memory &piece, const scattered &memory,
				      uint64_t offset, uint64_t length, Add add)
	{
		const batch_limits &most = options_.gpu->limits();

		for (uint64_t done = 0, n = 0; done < length; done += n) {
			n = memory.reach(offset + done,
					 std::min(length - done, most.bytes / 2),
					 most.operations / 2);
			piece.copies.clear();
			memory.each(offset + done, n,
				    [&](const slice &part, uint64_t at) {
				add(part, done + at);
			});
			if (auto copied = co_await run_copies(piece); !copied)
				co_return copied;
		}
		co_return {};
	}
	/// Copy from the memory that files use to the memory that the card uses, or
	/// back.
	task<result<void>> to_wire(piece_memory &piece, size_t length);
	task<result<void>> to_host(piece_memory &piece, size_t length);

	/// Read or write all of @p memory.
	task<result<size_t>> read_all(int file, slice to, uint64_t offset);
	task<result<void>> write_all(int file, slice from, uint64_t offset);
	/// SHA-256 of the first @p size bytes of a file. The peer, which waits for
	/// that, is told the progress now and then.
	task<result<void>> digest_of(int file, uint64_t size, sha256 &sum);
	/// The peer does the same, with @p most bytes to look at.
	result<void> peer_busy(const wire::busy_message &m, uint64_t most);
	/// Add a piece to the digest. Other work of the context gets its turn now and then.
	task<result<void>> add_to_digest(std::span<const std::byte> data);
	/// Flush all that was written to a file to its medium.
	task<result<void>> sync(int file);
	/// Ask the file system, in the ring: the answer may never come. It uses the first
	/// piece's memory.
	task<result<struct statx>> status_of(int file, unsigned mask);

	/// Wait until it is sent, or all give up.
	task<result<void>> say(const wire::bytes &message);
	task<result<void>> sent(operation message);
	/// say(), while nothing else runs. Give up if it takes too long.
	task<result<void>> say_alone(const wire::bytes &message);
	/// The next message, in message_.
	task<result<std::span<const std::byte>>> hear();
	/// The error of a peer that says that it gives up.
	std::unexpected<error> peer_failed(std::span<const std::byte> m) const;
	std::unexpected<error> out_of_turn(std::span<const std::byte> m) const;

	/// CRCs of the chunks of a piece.
	static void checksum(std::span<const std::byte> data, size_t chunk,
			     wire::piece_message &into) noexcept;

	context &context_;
	endpoint &endpoint_;
	nic &card_;
	stream_options options_;
	event changed_;
	std::vector<piece_memory> pieces_;
	std::optional<error> why_;
	std::array<std::byte, max_message> message_;
	stream_progress progress_;
	stream_report report_;
	sha256 sum_;
	size_t hashed_ = 0; ///< bytes since other work had its turn
	uint64_t moves_ = 0;
	uint64_t peer_looked_at_ = 0; ///< bytes, before the first piece
	unsigned in_flight_ = 0;
	clock::time_point began_{};
	uint64_t calls_before_ = 0;
	std::optional<device_counters> counters_before_;
	data_path path_ = data_path::host;
	std::string because_;	 ///< why it is no better
	int node_ = -1;		 ///< that pieces in host memory should be on
	uint64_t elsewhere_ = 0; ///< pages of them that are not

	/// One for each piece in memory. They stay while the peer is told why this end
	/// gives up: destroying them ends the peer's right to write, and then the
	/// connection.
	std::vector<task<void>> workers_;
	uint64_t finished_ = 0; ///< of them
	/// What the peer says last: END of a sender, DONE of a receiver.
	std::optional<wire::end_message> ended_;
	/// Messages that say() waits for, or stopped waiting for.
	struct saying {
		std::optional<result<void>> outcome;
		std::optional<task<void>> running;
	};
	std::list<saying> said_;
	bool left_behind_ = false; ///< operations, on these pieces
};

} // namespace sluice::detail
