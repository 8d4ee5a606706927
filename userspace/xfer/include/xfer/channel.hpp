// SPDX-License-Identifier: MIT
// Lines of text over a stream: the control connection of a transfer, and the
// virtio serial port of the oracle.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "xfer/deadline.hpp"
#include "xfer/error.hpp"
#include "xfer/unique_fd.hpp"

namespace xfer {

/// A line: a verb and fields, "verb key=value key=value". The field "text", if
/// there is one, comes last and takes the rest of the line.
class Message {
public:
	explicit Message(std::string verb) : verb_(std::move(verb)) {}

	/// errc::protocol if @p line is not of that form.
	static result<Message> parse(std::string_view line);

	const std::string &verb() const noexcept { return verb_; }
	Message &set(const std::string &key, std::string value);
	Message &set(const std::string &key, uint64_t value);

	/// The value of @p key. errc::protocol if it is missing, not a decimal
	/// number, or greater than @p max.
	result<uint64_t> number(const std::string &key,
				uint64_t max = UINT64_MAX) const;
	result<std::string> string(const std::string &key) const;

	std::string line() const;

private:
	std::string verb_;
	std::map<std::string, std::string> fields_;
};

/// A stream of messages. Both ends are bounded: a line has at most max_line
/// bytes, and nothing waits past its deadline.
class Channel {
public:
	static constexpr size_t max_line = 4096;

	/// @param fd a stream; made non-blocking
	/// @param peer what to call the other end in messages
	Channel(UniqueFd fd, std::string peer);

	int fd() const noexcept { return fd_.get(); }
	const std::string &peer() const noexcept { return peer_; }

	/// errc::peer_lost if the other end is gone, errc::timeout.
	result<void> send(const Message &message, deadline until);

	/// The next message. An "error" message comes back as its Error.
	/// errc::peer_lost, errc::peer_error, errc::timeout, errc::protocol.
	result<Message> receive(deadline until);

	/// As receive(), and errc::protocol if its verb is not @p verb.
	result<Message> expect(const std::string &verb, deadline until);

	/// Tell the other end why this one gives up. Best effort.
	void send_error(const Error &error) noexcept;

	/// Is a whole line here already, so that fd() need not become readable?
	bool pending() const noexcept
	{
		return buffer_.find('\n') != std::string::npos;
	}

private:
	result<void> fill(deadline until);
	result<void> wait(short events, deadline until) const;
	std::string take_line();

	UniqueFd fd_;
	std::string peer_;
	std::string buffer_;
};

/// Listen on TCP @p port of all addresses and accept one connection.
/// errc::timeout at @p until.
result<Channel> accept_one(uint16_t port, deadline until);

/// Connect to @p host, trying again until @p until while nobody listens.
result<Channel> connect_to(const std::string &host, uint16_t port,
			   deadline until);

/// The virtio serial port called @p name, e.g. "sluice.oracle". errc::device
/// if there is none.
result<Channel> open_virtio_port(const std::string &name);

} // namespace xfer
