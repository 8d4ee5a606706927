// SPDX-License-Identifier: MIT
#include "fabric.hpp"

#include <mutex>

namespace sluice::emu::vfio {

void Fabric::place(BarTarget &target, unsigned bar, u64 address, u64 size)
{
	std::unique_lock guard(lock_);

	std::erase_if(windows_, [&](const auto &w) {
		return w.second.target == &target && w.second.bar == bar;
	});
	windows_[address] = {&target, bar, size};
}

void Fabric::remove(BarTarget &target, unsigned bar)
{
	std::unique_lock guard(lock_);

	std::erase_if(windows_, [&](const auto &w) {
		return w.second.target == &target && w.second.bar == bar;
	});
}

void Fabric::remove(BarTarget &target)
{
	std::unique_lock guard(lock_);

	std::erase_if(windows_,
		      [&](const auto &w) { return w.second.target == &target; });
}

bool Fabric::with(u64 address, u64 n, const Use &fn)
{
	std::shared_lock guard(lock_);
	auto it = windows_.upper_bound(address);

	if (!enabled_ || it == windows_.begin())
		return false;
	--it;
	u64 offset = address - it->first;
	if (offset >= it->second.size || n > it->second.size - offset)
		return false;
	return fn(it->second, offset);
}

bool Fabric::read(u64 address, bytes out)
{
	return with(address, out.size(), [&](const Window &w, u64 offset) {
		return w.target->bar_read(w.bar, offset, out);
	});
}

bool Fabric::write(u64 address, const_bytes in)
{
	return with(address, in.size(), [&](const Window &w, u64 offset) {
		return w.target->bar_write(w.bar, offset, in);
	});
}

bool Fabric::update(u64 address, unsigned size, const std::function<u64(u64)> &fn,
		    u64 &old)
{
	return with(address, size, [&](const Window &w, u64 offset) {
		return w.target->bar_update(w.bar, offset, size, fn, old);
	});
}

} // namespace sluice::emu::vfio
