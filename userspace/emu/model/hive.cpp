// SPDX-License-Identifier: MIT
#include "hive.hpp"

#include <mutex>
#include <utility>

namespace sluice::emu {

void Hive::join(unsigned node, Vram &vram)
{
	std::unique_lock guard(lock_);
	members_.at(node) = &vram;
	left_.at(node) = false;
}

void Hive::leave(unsigned node)
{
	std::unique_lock guard(lock_);
	if (std::exchange(members_.at(node), nullptr))
		left_.at(node) = true;
}

Vram *Hive::member(u64 offset) const
{
	u64 node = offset / segment_;

	return node < members_.size() ? members_[node] : nullptr;
}

u64 Hive::room(u64 offset) const
{
	std::shared_lock guard(lock_);
	const Vram *vram = member(offset);
	u64 inside = offset % segment_;

	return vram && inside < vram->size() ? vram->size() - inside : 0;
}

bool Hive::lost(u64 offset) const
{
	std::shared_lock guard(lock_);
	u64 node = offset / segment_;

	return node < left_.size() && left_[node];
}

bool Hive::use(u64 offset, u64 n, const Use &fn) const
{
	std::shared_lock guard(lock_);
	Vram *vram = member(offset);
	std::byte *at = vram ? vram->device(offset % segment_, n) : nullptr;

	if (at)
		fn(at);
	return at;
}

} // namespace sluice::emu
