// SPDX-License-Identifier: MIT
// How far another machine's CLOCK_MONOTONIC is ahead. It answers pings at once with its
// time. For the fastest answer, that time lies between sending and receiving: the
// offset assumes the middle, and half of the round trip is the uncertainty.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>

#include "sluice/unique_fd.hpp"
#include "timeline.hpp"

namespace sluice::cli {

/// The question, and the answer with the last two fields filled in.
struct ping_packet {
	uint64_t magic = magic_number, number = 0;
	int64_t there = 0;
	std::array<char, 40> boot{};

	static constexpr uint64_t magic_number = 0x31474e504c53; // "SLPNG1"
};

/// No value: a packet of another program.
std::optional<ping_packet> read_ping(std::span<const std::byte> of);

/// No value: @p question is not one.
std::optional<ping_packet> answer_to(std::span<const std::byte> question,
				     std::string_view boot, int64_t now);

/// The boot id of the machine that answered: any bytes.
std::string boot_in(const ping_packet &answer);

/// One ping, all in nanoseconds.
struct clock_ping {
	int64_t sent = 0, there = 0, received = 0;
};

/// No value: not an answer to the question with this number.
std::optional<clock_ping> ping_of(std::span<const std::byte> answer, uint64_t number,
				  int64_t sent, int64_t received);

/// The offset from the fastest ping. @p pings is not empty.
clock_offset offset_of(const std::vector<clock_ping> &pings, std::string boot_id);

/// The middle of two measurements of the same clock. If the clock ran at another rate,
/// or was set, the difference adds to the uncertainty.
clock_offset combined(const clock_offset &first, const clock_offset &second);

/// Answers pings when told that some have arrived.
class ping_answerer {
public:
	/// @param port UDP
	static result<ping_answerer> open(uint16_t port);
	/// Readable when a ping has arrived.
	int fd() const { return socket_.get(); }
	void answer() const;

private:
	explicit ping_answerer(unique_fd &&s) : socket_(std::move(s)) {}

	unique_fd socket_;
};

/// Ping @p peer, "host" or "host:port", several times within @p patience milliseconds.
/// errc::timeout: it does not answer.
result<clock_offset> measure_offset(const std::string &peer, uint16_t port,
				    int patience);

/// The id of the running kernel's boot, which is unique.
std::string boot_id();

} // namespace sluice::cli
