// SPDX-License-Identifier: MIT
// How far another machine's CLOCK_MONOTONIC is ahead, by pings: it answers with its time
// as soon as it can. Of the fastest answer, that time lies between sending and receiving:
// the offset is told for the middle, and half of the way is the uncertainty.
#pragma once

#include <optional>
#include <string>

#include "sluice/unique_fd.hpp"
#include "timeline.hpp"

namespace sluice::cli {

/// One ping, all in nanoseconds.
struct clock_ping {
	int64_t sent = 0, there = 0, received = 0;
};

/// What the fastest of them tells. @p pings is not empty.
clock_offset offset_of(const std::vector<clock_ping> &pings, std::string boot_id);

/// Of two measurements of the same clock the middle; if it ran at another rate, or was
/// set, that is uncertainty.
clock_offset combined(const clock_offset &first, const clock_offset &second);

/// Answers pings, when it is told that there are some.
class ping_answerer {
public:
	/// @param port UDP
	static result<ping_answerer> open(uint16_t port);
	/// Readable when somebody asks.
	int fd() const { return socket_.get(); }
	void answer() const;

private:
	explicit ping_answerer(unique_fd &&s) : socket_(std::move(s)) {}

	unique_fd socket_;
};

/// Ask @p peer, "host" or "host:port", some times within @p patience milliseconds.
/// errc::timeout: it does not answer.
result<clock_offset> measure_offset(const std::string &peer, uint16_t port,
				    int patience);

/// Of the running kernel, and nothing else has it.
std::string boot_id();

} // namespace sluice::cli
