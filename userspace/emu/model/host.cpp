// SPDX-License-Identifier: MIT
#include "host.hpp"

namespace sluice::emu {

template <class T> static u64 update_as(std::byte *at, const AtomicUpdate &fn)
{
	std::atomic_ref<T> word(*reinterpret_cast<T *>(at));
	T old = word.load();

	while (!word.compare_exchange_weak(old, static_cast<T>(fn(old))))
		;
	return old;
}

u64 update_word(std::byte *at, unsigned size, const AtomicUpdate &fn)
{
	return size == 8 ? update_as<u64>(at, fn) : update_as<u32>(at, fn);
}

} // namespace sluice::emu
