// SPDX-License-Identifier: MIT
// Framed messages with file descriptors over a UNIX socket.
#pragma once

#include "protocol.hpp"

#include <initializer_list>
#include <mutex>
#include <optional>
#include <string>

namespace sluice::emu::vfio {

struct Message {
	Header header{};
	std::vector<std::byte> payload;
	std::vector<UniqueFd> fds;
};

class Transport {
public:
	explicit Transport(UniqueFd socket) : socket_(std::move(socket)) {}

	// The next message; nothing when the peer is gone or sends what cannot
	// be a message.
	std::optional<Message> receive();
	// From any thread. The header's size is filled in.
	bool send(Header header, std::initializer_list<const_bytes> parts,
		  int fd = -1);
	// Make a blocked receive() return.
	void shutdown();

private:
	bool receive_header(Message &m);
	bool receive_exactly(bytes out);

	UniqueFd socket_;
	std::mutex send_lock_;
};

// Both throw std::system_error.
UniqueFd listen_at(const std::string &path);
UniqueFd connect_to(const std::string &path);

} // namespace sluice::emu::vfio
