// SPDX-License-Identifier: MIT
// Connections between peers: reliable, by rdma_cm, on InfiniBand and RoCE.
//
// What an endpoint carries: messages, up to max_message bytes each, in order, which
// the other side receives; and RDMA writes and reads of memory that the other side
// registered and told about. All of it is in one order: a message arrives after the
// writes before it are in place.
//
// Flow: each side has receives posted for `messages` messages of the other, and says
// how many are posted anew with whatever it sends (docs/wire.md). send() waits for
// such a credit; nothing is ever dropped or retried for lack of a receive.
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
inline constexpr size_t most_token = 1024;
inline constexpr clock::duration least_silence = std::chrono::milliseconds(30);

/// Memory of a peer, as the peer told of it.
struct remote_memory {
	uint64_t address = 0;
	uint64_t size = 0; ///< bytes
	uint32_t key = 0;
};

struct endpoint_options {
	/// What both sides have to know, most_token bytes at most; not sent in the
	/// clear. Who listens in may guess it: let it be long and random. Empty: none.
	std::string token{};
	/// Messages of the peer that are received at once. 1 to 1024.
	unsigned messages = 32;
	/// Writes and reads under way at once. 1 to 4096.
	unsigned depth = 128;
	/// Without a sign of life for that long, the peer is lost. Signs are given
	/// and taken where the context waits or is polled. least_silence or more, and
	/// twice what 48 MiB take (of each connection): signs of life are behind data.
	clock::duration silence = std::chrono::seconds(10);
};

class endpoint {
public:
	/// Connect to a listener at any address of @p host; while nobody listens, again.
	/// errc::peer_lost (nobody answers), errc::denied, errc::timeout.
	/// @param host a name or address that an RDMA device has a way to
	static result<endpoint> connect(context &in, nic &card, std::string_view host,
					uint16_t port, const endpoint_options &options,
					deadline until);

	endpoint(endpoint &&) noexcept;
	endpoint &operator=(endpoint &&) noexcept;
	/// Ends the connection. Operations that are left end with errc::cancelled.
	~endpoint();

	/// "10.0.0.1:7471", for messages.
	std::string_view peer() const noexcept;

	/// Send a message; it is copied. Done when the peer's card has it.
	/// errc::usage if it is too long; errc::busy if as many are under way or wait
	/// for a credit as twice `messages`, and 64 at least.
	operation send(std::span<const std::byte> message);

	/// Receive a message into @p to, which must stay until then: its length.
	/// errc::protocol if it is longer; or what ended the connection.
	operation receive(std::span<std::byte> to);

	/// Write @p from, which @p local covers, to @p offset of @p to. Done when it
	/// is in the peer's memory. errc::usage if it does not fit; errc::denied if
	/// the peer revoked its memory, or errc::peer_lost if the end of the connection
	/// overtakes the refusal of its card. One that is cancelled may have written a
	/// part; what was started behind it goes on.
	operation write(const slice &from, const registration &local,
			const remote_memory &to, uint64_t offset);
	/// Read into @p to. Errors as write() has.
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
	/// errc::device if the address is not one of the card, or cannot be bound, as
	/// where another program has the port; errc::peer_lost or errc::timeout if
	/// @p host is not found.
	static result<listener> open(context &in, nic &card, std::string_view host,
				     uint16_t port, const endpoint_options &options);

	listener(listener &&) noexcept;
	listener &operator=(listener &&) noexcept;
	~listener();

	uint16_t port() const noexcept;

	/// Wait for a peer that proves that it knows the token. Others are turned
	/// away, and do not end the wait. errc::timeout.
	result<endpoint> accept(deadline until);

	/// The same as an operation: take() gives the endpoint when it is done;
	/// errc::usage if the peer has died since, or somebody else took it.
	operation arrival();
	result<endpoint> take();

private:
	explicit listener(std::unique_ptr<detail::door> d) noexcept;

	std::unique_ptr<detail::door> door_;
};

} // namespace sluice
