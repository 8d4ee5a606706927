// SPDX-License-Identifier: MIT
// Framed messages with file descriptors over a UNIX socket.
#pragma once

#include "protocol.hpp"

#include <chrono>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <string>

#include <sys/socket.h>

namespace sluice::emu::vfio {

struct Message {
	Header header{};
	std::vector<std::byte> payload;
	std::vector<unique_fd> fds;
};

class Transport {
public:
	explicit Transport(unique_fd socket) : socket_(std::move(socket)) {}

	// The next message; nothing when the peer is gone or sends what cannot
	// be a message.
	std::optional<Message> receive();
	// From any thread. The header's size is filled in.
	bool send(Header header, std::initializer_list<const_bytes> parts, int fd = -1);
	// Make a blocked receive() return.
	void shutdown();

private:
	bool receive_header(Message &m);
	bool receive_exactly(bytes out);

	unique_fd socket_;
	std::mutex send_lock_;
};

// Both throw std::system_error. connect_to() waits for `patience` for a
// server that does not accept, 0: for ever.
unique_fd listen_at(const std::string &path);
unique_fd connect_to(const std::string &path, std::chrono::milliseconds patience = {});
// The next client. While there is no descriptor or memory for it, wait for some.
// None: the listener was shut down.
unique_fd accept_at(const unique_fd &listener);
// Sends all that it names, however long it takes; false: the other side is gone.
bool send_all(int socket, msghdr what);
// Reads what is there before a deadline. Returns as recv(), or with ETIMEDOUT.
ssize_t receive_before(int socket, bytes out,
		       std::chrono::steady_clock::time_point deadline);

} // namespace sluice::emu::vfio
