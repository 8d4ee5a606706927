// SPDX-License-Identifier: MIT
// A stream moves data from a source at one end of a connection to a sink at the other:
// file or memory -> (video memory) -> RDMA -> (video memory) -> file or memory.
//
// The data are cut into pieces. Each end has memory for some pieces, which is reused in
// turn: while one is read, another is copied to the GPU, others are on the wire, and
// others are written at the far end. The receiver grants memory for a piece at a time:
// a piece is sent only to memory that waits for it, so nothing is dropped or retried.
// The receiver revokes the right to write before it looks at a piece.
//
//	receiver                               sender
//	GRANT address, key of a piece ------>
//	                  <------------------- RDMA writes, then PIECE: where the piece
//	                                       belongs, its length, a CRC for each chunk
//	takes the right away, checks,
//	copies, writes; ACK ---------------->  the memory of the piece is free again
//
// docs/wire.md has the messages.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/device.hpp"
#include "sluice/digest.hpp"
#include "sluice/endpoint.hpp"
#include "sluice/nic.hpp"
#include "sluice/task.hpp"

namespace sluice {

/// The path that the bytes of a piece take between memory and the card.
enum class data_path : uint8_t {
	device_alias,  ///< the card reads or writes video memory in place, on demand
	device_dmabuf, ///< the same through a dma-buf
	host,	       ///< host memory was asked for
	staged,	       ///< video memory was asked for, but data go through host memory
};

const char *name(data_path path) noexcept;

struct stream_options {
	/// Bytes of a piece: the unit of grants and acknowledgments. Whole pages, up
	/// to 1 GiB.
	size_t piece = size_t{4} << 20;
	/// Bytes of one RDMA write, and of what one CRC covers. Whole pages, at most a
	/// piece; a piece has at most 128. The sender decides. Of `piece`, the smaller one
	/// of both ends counts, in whole chunks of the sender; a receiver whose piece has
	/// no room for one of these is errc::usage in receive().
	size_t chunk = size_t{1} << 20;
	/// Pieces that this end has memory for. 2 to 64. A sender needs
	/// pieces * (piece / chunk + 2) + 8 operations of its context, a receiver
	/// 3 * pieces + 8.
	unsigned pieces = 4;
	/// Keep pieces in this GPU, which also copies memory of GPUs; none: in the host.
	device *gpu = nullptr;
	/// Check each chunk by a CRC-32C where it arrives. The sender decides.
	bool checksum = true;
	/// Compare a SHA-256 of all data at the end. The sender decides.
	bool digest = true;
	/// Fail with errc::no_path if this end cannot use this path.
	std::optional<data_path> require{};
	/// If nothing moves for that long, or the peer sends or takes no message when
	/// it is its turn: errc::timeout, after twice that time at most. It must be more
	/// than the time in which the receiver's medium takes 512 MiB.
	clock::duration patience = std::chrono::seconds(30);
};

/// Where data come from: a file, or memory. Scattered memory, such as the blocks of a
/// KV cache, is gathered by one batch for each piece. It may be memory of another driver
/// or process (device::import_dmabuf()), or be shown to one (buffer::export_dmabuf()):
/// the GPU of stream_options copies between it and the pieces.
struct stream_source {
	/// For the receiver and in errors: 1 to 255 bytes of UTF-8 without control
	/// characters and '/', not "." or "..".
	std::string name{};
	int file = -1;		   ///< a descriptor; -1: memory
	std::vector<slice> from{}; ///< memory, in this order; it is attached
	static constexpr uint64_t unknown = UINT64_MAX;
	/// Bytes of a file, from its beginning; 0: nothing is sent. unknown: from the
	/// position of the descriptor until it ends, as for a pipe. What has no size goes
	/// into no memory (errc::usage at the receiver), and is not resumed. Not used for
	/// memory.
	uint64_t size = unknown;
	/// Fail with errc::input if the file has another size, or if its modification time
	/// changes before all is sent: what was sent may be a mixture. Only with `size`.
	bool steady = false;
};

/// Where data go to. A regular file that is not written in order is written from its
/// beginning, whatever its position, and truncated behind the data. A file on a medium has
/// been flushed to it when receive() is done.
/// Parts of memory are filled in their order, by one batch for each piece; they may differ
/// from those of the source.
struct stream_sink {
	int file = -1;		 ///< a descriptor; -1: memory
	std::vector<slice> to{}; ///< memory, in this order; it is attached
	/// Bytes at the beginning of a file that are here already from a transfer that
	/// broke off. Their digest is compared, and they are not sent again if it matches:
	/// the file must be open to read, too. They are synced and dropped from the page
	/// cache first, which may have what could not be written: that must take less than
	/// `patience`. Not used if the offer has no size, or less.
	uint64_t have = 0;
	/// `have` is all of the file: if it differs from the offer, or if the source is no
	/// file and so cannot be compared, fail with errc::output, and write nothing. Not
	/// with `in_order`, nor for memory.
	bool complete = false;
	/// Write to the file at its position, one piece after the other, as standard
	/// output needs. This is implied for a pipe, a terminal, and a file that is
	/// open to append. Nothing is resumed then: `have` is 0.
	bool in_order = false;
	/// Let receive() end when all data have come and are right. The sender learns
	/// that only at receiver::confirm(), so steps that bring the data to their
	/// final place may still fail.
	bool confirm = false;
};

/// What a stream did. The total time is from before the offer is made, or accepted, to the
/// last byte in its place and compared. Waiting is included.
struct stream_report {
	std::string name;
	uint64_t bytes = 0;   ///< moved by this stream
	uint64_t resumed = 0; ///< were there already
	uint64_t pieces = 0;
	data_path path = data_path::host; ///< of this end
	std::string path_reason;	  ///< why it is no better one; else empty
	/// The NUMA node of the device that reaches pieces in host memory, -1 if it has
	/// none, and how many of their pages are on another node, as that one was full.
	int numa_node = -1;
	uint64_t pages_elsewhere = 0;
	clock::duration total{};
	clock::duration storage{};	///< reading or writing, summed over pieces
	clock::duration engine{};	///< copies by the GPU's engines, summed
	clock::duration wire{};		///< RDMA, or until a granted piece came, summed
	clock::duration check{};	///< CRC and SHA-256
	uint64_t waits_for_grant = 0;	///< pieces that were ready before their grant
	clock::duration granted_late{}; ///< how long they waited, summed
	unsigned most_in_flight = 0;	///< pieces in flight at once
	std::optional<device_counters> migrations; ///< pages, while it ran
	std::optional<sha256_digest> digest;	   ///< equal at both ends
	uint64_t system_calls = 0;		   ///< of the ring, while it ran
};

/// The path of one end, and why it is no better one.
struct found_path {
	data_path path = data_path::host;
	std::string reason; ///< why it is no better one; else empty
};

/// Which path streams with these options take here, found by a trial: the card accesses
/// a page in the GPU. Each stream does this when it is made. Called before connecting,
/// it tells what is wrong here even if the peer would give up first: errc::usage if the
/// options are, errc::no_path if it is another path than options.require.
result<found_path> find_path(nic &card, const stream_options &options);

/// The progress of a stream, at any time.
struct stream_progress {
	uint64_t bytes = 0;   ///< in their place at the far end
	uint64_t size = 0;    ///< or stream_source::unknown
	uint64_t resumed = 0; ///< of these bytes, were there already
};

namespace detail {
class sending;
class receiving;
} // namespace detail

// Destroying a task of a stream that is not done ends what runs for it, and with it the
// connection: files and memory are free for other use, and the peer is not left
// waiting. An end that fails after it has begun tells the peer why, for a second at most,
// and then ends the connection.

/// The sending end.
class sender {
public:
	/// The context, the endpoint, the card and the GPU of the options must outlive it,
	/// and not be moved meanwhile; the options are copied. Allocates the memory of
	/// the pieces.
	/// errc::usage (the options; the context has too few operations), errc::no_path
	/// (another path than `require`, or the card cannot register a piece), errc::device,
	/// errc::system (no memory).
	static result<sender> make(context &in, endpoint &to, nic &card,
				   const stream_options &options);
	sender(sender &&) noexcept;
	~sender();

	/// Send one source; when it is done, the next one may be sent.
	/// errc::usage (the name, memory outside its buffer, memory of a GPU without
	/// `gpu`), errc::input (a file), errc::device (the GPU), errc::timeout (nothing
	/// moves for `patience`), errc::peer_lost, errc::peer_error (the receiver gave up,
	/// refused it, or found that what arrived differs: it has errc::corrupt),
	/// errc::protocol, errc::corrupt (the receiver says that it has something else),
	/// errc::no_path (it took another path than `require`), errc::busy (no room in the
	/// context).
	task<result<stream_report>> send(stream_source source);
	/// Say that there are no more, and end the connection when the receiver's card
	/// has that message: what is started on the endpoint after it is errc::usage.
	/// errc::peer_lost if the receiver left before.
	task<result<void>> finish();

	const stream_progress &progress() const noexcept;

private:
	explicit sender(std::unique_ptr<detail::sending> s) noexcept;

	std::unique_ptr<detail::sending> sending_;
};

/// What a sender offers to send.
struct stream_offer {
	std::string name;  ///< printable, without '/', not "." or ".."
	uint64_t size = 0; ///< bytes, or stream_source::unknown
};

/// The receiving end.
class receiver {
public:
	/// As sender::make().
	static result<receiver> make(context &in, endpoint &from, nic &card,
				     const stream_options &options);
	receiver(receiver &&) noexcept;
	~receiver();

	/// The next offer, or again the one that was neither received nor refused yet;
	/// none: the sender has no more. In that case it waits until
	/// the sender has ended the connection, or has stayed for `patience`.
	/// errc::timeout if nothing is offered for that long, errc::peer_lost,
	/// errc::peer_error, errc::protocol. Destroying this task alone does not end the
	/// connection.
	task<result<std::optional<stream_offer>>> next();
	/// Receive what was offered. errc::output (a file), errc::usage (the memory of
	/// the sink is smaller than what was offered, or the offer has no size),
	/// errc::corrupt (what arrived differs), errc::no_path also if the card cannot
	/// register a piece, or as sender::send().
	task<result<stream_report>> receive(stream_sink sink);
	/// For a sink with `confirm`: tell the sender that all data are where they
	/// belong, before its patience ends. Nothing else may be done before that.
	/// errc::usage if there is nothing to confirm; errc::peer_error if it gave up
	/// waiting; or as receive().
	task<result<void>> confirm();
	/// Instead of confirm(): tell the sender that this end gives up, and why. After
	/// that the connection is unusable.
	task<result<void>> give_up(error why);
	/// Refuse the offer, and tell the sender why. That ends the stream: the sender's
	/// send() is errc::peer_error, and so is next() after this.
	task<result<void>> refuse(std::string why);

	const stream_progress &progress() const noexcept;

private:
	explicit receiver(std::unique_ptr<detail::receiving> r) noexcept;

	std::unique_ptr<detail::receiving> receiving_;
};

} // namespace sluice
