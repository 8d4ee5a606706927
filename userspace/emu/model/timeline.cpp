// SPDX-License-Identifier: MIT
#include "timeline.hpp"

#include <format>

namespace sluice::emu {

void Timeline::record(const Event &e)
{
	if (!enabled())
		return;
	std::lock_guard guard(lock_);
	if (events_.size() < limit_)
		events_.push_back(e);
	else
		lost_++;
}

namespace {

void put_place(std::string &out, const char *key, const Place &p)
{
	if (p.path != Path::none)
		out += std::format(R"(,"{}":["{}",{},{}])", key,
				   path_names[static_cast<std::size_t>(p.path)], p.gpu,
				   p.address);
}

std::string arguments(const Timeline::Event &e)
{
	std::string out = std::format(R"("queue":{},"ring":{},"words":{},"bytes":{})",
				      e.queue, e.ring, e.words, e.bytes);

	put_place(out, "from", e.from);
	put_place(out, "to", e.to);
	put_place(out, "to2", e.to2);
	return out;
}

} // namespace

std::string Timeline::json(unsigned pid) const
{
	std::lock_guard guard(lock_);
	std::string out = std::format(
		R"({{"ph":"M","name":"process_name","pid":{0},"args":{{"name":"gpu{0}","lost_events":{1}}}}})",
		pid, lost_);

	for (const Event &e : events_)
		out += std::format(
			",\n"
			R"({{"ph":"X","name":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{{}}}}})",
			e.name, pid, e.track, e.start / 1e3, (e.end - e.start) / 1e3,
			arguments(e));
	return out;
}

void Timeline::clear()
{
	std::lock_guard guard(lock_);
	events_.clear();
	lost_ = 0;
}

} // namespace sluice::emu
