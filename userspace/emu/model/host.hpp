// SPDX-License-Identifier: MIT
// What the model needs from the world around it. The device implements this
// with vfio-user, the tests and fuzzers with plain arrays.
#pragma once

#include "types.hpp"

#include <functional>
#include <string_view>

namespace sluice::emu {

// A correct driver causes no error and no warning.
enum class Log : u8 { error, warning, notice, info, debug };

// Applied to a word in host memory, atomically against the guest's CPUs.
using AtomicUpdate = std::function<u64(u64 old)>;

class Host {
public:
	virtual ~Host() = default;

	// Bus-address DMA. Path::none: nothing decodes the address; Path::off: the
	// GPU is being reset or is gone, so that nothing of out is data.
	virtual Path read(u64 address, bytes out) = 0;
	virtual Path write(u64 address, const_bytes in) = 0;
	// size is 4 or 8, the address naturally aligned.
	virtual Path update(u64 address, unsigned size, const AtomicUpdate &fn,
			    u64 &old) = 0;
	virtual void interrupt() = 0;
	// Nanoseconds since some fixed point.
	virtual u64 now() = 0;
	virtual void log(Log level, std::string_view text) = 0;
	// An engine has work to look at; may be called from any thread.
	virtual void kick() = 0;
};

// One word of mapped memory, updated by compare and exchange.
u64 update_word(std::byte *at, unsigned size, const AtomicUpdate &fn);

} // namespace sluice::emu
