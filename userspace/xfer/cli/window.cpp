// SPDX-License-Identifier: MIT
#include "window.hpp"

#include <algorithm>

namespace xfer {

Window::Window(const Options &o, const RdmaDevice &device, uint64_t limit,
	       int access)
{
	uint64_t size = std::min<uint64_t>(o.window, limit);

	stats_.memory = o.memory;
	stats_.on_demand = o.on_demand;
	if (o.peer_memory()) {
		peer_ = open_device_memory(o.memory);
		if (o.alias == memory_alias::no_cpu)
			or_throw(peer_->publish_without_cpu());
		else if (o.alias == memory_alias::published)
			or_throw(peer_->publish());
		auto info = or_throw(peer_->info());
		size = std::min(size, info.size);
	}
	buffer_.emplace(round_to_pages(size));
	mr_.emplace(device, buffer_->span(), access, o.on_demand);
}

result<void> Window::to_device(uint64_t bytes) const
{
	if (!peer_)
		return {};
	return peer_->to_device(first(bytes));
}

result<std::vector<Extent>> Window::lookup(uint64_t bytes) const
{
	if (!peer_)
		return fail(errc::usage, "system memory is in no BAR");
	return peer_->lookup(first(bytes));
}

result<void> Window::begin()
{
	if (!peer_)
		return {};
	auto now = peer_->info();
	if (!now)
		return std::unexpected(now.error());
	before_ = *now;
	return {};
}

result<void> Window::end()
{
	if (!peer_)
		return {};
	auto now = peer_->info();
	if (!now)
		return std::unexpected(now.error());
	auto change = *now - before_;
	stats_.by_alias += change.by_alias;
	stats_.fallbacks += change.fallbacks;
	stats_.migrations += change.moved_out;
	return {};
}

} // namespace xfer
