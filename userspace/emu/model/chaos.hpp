// SPDX-License-Identifier: MIT
// Seeded disorder: the same seed and the same calls give the same choices.
#pragma once

#include "types.hpp"

namespace sluice::emu {

class Chaos {
public:
	explicit Chaos(u64 seed) : state_(seed) {}

	bool enabled() const { return state_ != 0; }

	// A number below n; 0 if disorder is off.
	u64 below(u64 n) { return enabled() && n ? next() % n : 0; }

	bool one_in(u64 n) { return enabled() && next() % n == 0; }

	// Disorder of its own for a part; none if there is none here.
	Chaos fork() { return Chaos(enabled() ? next() | 1 : 0); }

private:
	// splitmix64, the usual constants
	u64 next()
	{
		u64 z = state_ += 0x9e3779b97f4a7c15ull;

		z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
		z = (z ^ z >> 27) * 0x94d049bb133111ebull;
		return z ^ z >> 31;
	}

	u64 state_;
};

} // namespace sluice::emu
