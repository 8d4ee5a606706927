// SPDX-License-Identifier: MIT
#include "timeline.hpp"

#include <format>

namespace sluice::emu {

void Timeline::record(unsigned track, const char *name, u64 start, u64 end,
		      u64 amount)
{
	if (!enabled())
		return;
	std::lock_guard guard(lock_);
	if (events_.size() < limit_)
		events_.push_back({name, start, end, amount, track});
	else
		lost_++;
}

std::string Timeline::json(unsigned pid) const
{
	std::lock_guard guard(lock_);
	std::string out = std::format(
		R"({{"ph":"M","name":"process_name","pid":{0},"args":{{"name":"gpu{0}","lost_events":{1}}}}})",
		pid, lost_);

	for (const Event &e : events_)
		out += std::format(
			",\n"
			R"({{"ph":"X","name":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{"amount":{}}}}})",
			e.name, pid, e.track, e.start / 1e3,
			(e.end - e.start) / 1e3, e.amount);
	return out;
}

void Timeline::clear()
{
	std::lock_guard guard(lock_);
	events_.clear();
	lost_ = 0;
}

} // namespace sluice::emu
