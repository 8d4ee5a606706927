// SPDX-License-Identifier: MIT
// A bounded record of what every engine did, written as a Chrome trace that
// chrome://tracing and Perfetto open.
#pragma once

#include "types.hpp"

#include <mutex>
#include <string>
#include <vector>

namespace sluice::emu {

class Timeline {
public:
	explicit Timeline(std::size_t limit = 1u << 18) : limit_(limit) {}

	// What an engine did. Times are in nanoseconds.
	struct Event {
		const char *name; // a string literal
		u64 start = 0, end = 0;
		unsigned track = 0, queue = 0;
		// for a packet in the ring: bytes of the ring before it; for a
		// doorbell: bytes that the engine may use
		u64 ring = 0;
		u64 words = 0, bytes = 0;
		Place from{}, to{}, to2{};
	};

	void enable(bool on) { on_.store(on, std::memory_order_relaxed); }
	bool enabled() const { return on_.load(std::memory_order_relaxed); }

	void record(const Event &e);
	// Events as a JSON array's elements, tagged with process id pid.
	std::string json(unsigned pid) const;
	void clear();

private:
	std::size_t limit_;
	std::atomic<bool> on_{false};
	mutable std::mutex lock_;
	std::vector<Event> events_;
	u64 lost_ = 0;
};

} // namespace sluice::emu
