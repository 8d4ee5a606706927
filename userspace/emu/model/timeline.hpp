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

	void enable(bool on) { on_.store(on, std::memory_order_relaxed); }
	bool enabled() const { return on_.load(std::memory_order_relaxed); }

	// name must be a string literal. Times are in nanoseconds.
	void record(unsigned track, const char *name, u64 start, u64 end,
		    u64 amount);
	// Events as a JSON array's elements, tagged with process id pid.
	std::string json(unsigned pid) const;
	void clear();

private:
	struct Event {
		const char *name;
		u64 start, end, amount;
		unsigned track;
	};

	std::size_t limit_;
	std::atomic<bool> on_{false};
	mutable std::mutex lock_;
	std::vector<Event> events_;
	u64 lost_ = 0;
};

} // namespace sluice::emu
