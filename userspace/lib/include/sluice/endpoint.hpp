// SPDX-License-Identifier: MIT
// Connections between peers: reliable, by rdma_cm, on InfiniBand and RoCE.
//
// An endpoint carries messages, up to max_message bytes each, in order, which the other
// side receives; and RDMA writes and reads of memory that the other side registered and
// announced. All of it is in one order: a message arrives after the writes before it
// are in place.
//
// Flow: each side has receives posted for `messages` messages of the other, and
// everything it sends tells how many were posted again (docs/wire.md). send() waits for
// such a credit; nothing is ever dropped or retried for lack of a receive.
//
// An endpoint carries either messages, writes and reads, or one stream (stream.hpp).
//
// Peers are not trusted: lengths, opcodes, immediate data and credits are checked,
// and errc::protocol ends the connection.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "sluice/context.hpp"
#include "sluice/nic.hpp"

namespace sluice {

namespace detail {
class connection;
class connector;
class door;
} // namespace detail

inline constexpr size_t max_message = 1024;

// Limits of options.
inline constexpr unsigned most_messages = 1024;
inline constexpr unsigned most_depth = 4096;
inline constexpr unsigned most_handshakes = 128;
inline constexpr size_t most_token = 1024;
inline constexpr clock::duration least_silence = std::chrono::milliseconds(30);
inline constexpr clock::duration most_silence = std::chrono::hours(24);

/// Memory of a peer, as the peer announced it.
struct remote_memory {
	uint64_t address = 0;
	uint64_t size = 0; ///< bytes
	uint32_t key = 0;
};

struct endpoint_options {
	/// A secret that both sides know, at most most_token bytes; not sent in the
	/// clear. Whoever reaches the listener, or listens in, can try guesses offline:
	/// so it should be long and random. Empty: none.
	std::string token{};
	/// Messages of the peer that are received at once. 1 to 1024.
	unsigned messages = 32;
	/// Writes and reads in flight at once. 1 to 4096.
	unsigned depth = 128;
	/// Without a sign of life for that long, the peer is lost. Signs are sent and
	/// received when the context waits or is polled. least_silence to most_silence, and
	/// at least twice the time that 48 MiB take (for each connection): signs of life queue
	/// after data. A peer that lives, and whose card takes nothing for twice that
	/// long, is lost, too.
	clock::duration silence = std::chrono::seconds(10);
	/// Of a listener: peers that have not proved themselves yet; one more throws
	/// out the one that began first. Each has memory for messages, which the card
	/// may pin. 1 to 128.
	unsigned handshakes = most_handshakes;
};

class endpoint {
public:
	/// Connect to a listener at any address of @p host; retried until there is one.
	/// errc::peer_lost if nothing listened there until then, it left, rdma_cm had no
	/// answer, or @p host is not found; errc::timeout if it did not answer or finish in
	/// time;
	/// errc::denied (another token); errc::device if no RDMA device has a route to it,
	/// or another one than @p card; errc::protocol (another version); errc::usage if
	/// a chain is open.
	/// @param host a name or address that an RDMA device can reach
	static result<endpoint> connect(context &in, nic &card, std::string_view host,
					uint16_t port, const endpoint_options &options,
					deadline until);

	endpoint(endpoint &&) noexcept;
	endpoint &operator=(endpoint &&) noexcept;
	/// Ends the connection. Remaining operations end with errc::cancelled.
	~endpoint();

	/// "10.0.0.1:7471", for messages.
	std::string_view peer() const noexcept;

	/// Send a message; it is copied. Done when the peer's card has it.
	/// errc::usage if it is too long; errc::busy if twice `messages`, or 64 if that
	/// is more, are in flight or wait for a credit.
	operation send(std::span<const std::byte> message);

	/// Receive a message into @p to, which must exist until then. Returns its
	/// length.
	/// errc::protocol if it is longer, which ends the connection; or what ended it.
	operation receive(std::span<std::byte> to);

	/// Write @p from, which @p local covers, to @p offset of @p to. Done when it
	/// is in the peer's memory. errc::usage if it does not fit; errc::denied if the
	/// peer revoked its memory, or errc::peer_lost if the end of the connection
	/// overtakes the refusal of its card; errc::peer_error if its card refuses for
	/// another reason. All of these but errc::usage end the connection. It has 1 byte
	/// at least, and at most what the card takes as one message (max_msg_sz). A
	/// cancelled write may have written a part; operations started after it continue.
	operation write(const slice &from, const registration &local,
			const remote_memory &to, uint64_t offset);
	/// Read into @p to. Errors are those of write(), and errc::unsupported if the
	/// peer's card answers no reads.
	operation read(const slice &to, const registration &local,
		       const remote_memory &from, uint64_t offset);

	/// Is it up? Else the error that ended it.
	result<void> alive() const noexcept;

	detail::connection &inside() noexcept { return *connection_; }

private:
	friend class listener;
	friend class detail::connector;
	explicit endpoint(std::unique_ptr<detail::connection> c) noexcept;

	std::unique_ptr<detail::connection> connection_;
};

/// Where peers connect to.
class listener {
public:
	/// @param host the address to listen on; empty: all that @p card has
	/// @param port 0: any; see port()
	/// errc::device if the address is not one of the card, or cannot be bound, e.g.
	/// as another program has the port; errc::peer_lost or errc::timeout if @p host
	/// is not found; errc::usage if a chain is open.
	static result<listener> open(context &in, nic &card, std::string_view host,
				     uint16_t port, const endpoint_options &options);

	listener(listener &&) noexcept;
	listener &operator=(listener &&) noexcept;
	~listener();

	uint16_t port() const noexcept;

	/// Wait for a peer that proves that it knows the token. Others are rejected,
	/// and do not end the wait. errc::timeout. A peer may have left already: it is
	/// given if it said something, which can be received.
	result<endpoint> accept(deadline until);

	/// The same as an operation: take() gives the endpoint when it is done;
	/// errc::usage if the peer has left since and said nothing, or was taken
	/// already.
	operation arrival();
	result<endpoint> take();

private:
	explicit listener(std::unique_ptr<detail::door> d) noexcept;

	std::unique_ptr<detail::door> door_;
};

} // namespace sluice
