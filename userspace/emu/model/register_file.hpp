// SPDX-License-Identifier: MIT
// The register aperture: a word reads back what was written unless a block
// hooked it. Any thread may call read() and write(); hooks are set up before.
#pragma once

#include "host.hpp"
#include "regs.hpp"

#include <functional>
#include <memory>
#include <unordered_map>

namespace sluice::emu {

class RegisterFile {
public:
	using Read = std::function<u32()>;
	using Write = std::function<void(u32 value)>;

	explicit RegisterFile(Host &host);

	// An access by a driver or a packet, with side effects. Out of range
	// reads give all ones, as on the bus.
	u32 read(u32 index);
	void write(u32 index, u32 value);

	// The plain word, for the blocks themselves.
	u32 get(u32 index) const;
	void set(u32 index, u32 value);
	void set_bits(u32 index, u32 bits);
	u64 get64(u32 index) const { return join(get(index), get(index + 1)); }

	void hook(u32 index, Read read, Write write);
	// Registers with no behaviour that the driver is known to use.
	void know(u32 first, u32 last);
	void reset();
	u32 unknown_touched() const { return unknown_.load(); }

private:
	struct Hook {
		Read read;
		Write write;
	};

	void touch(u32 index, const char *how, u32 value);

	Host &host_;
	std::unique_ptr<std::atomic<u32>[]> words_;
	std::unique_ptr<std::atomic<bool>[]> seen_;
	std::unordered_map<u32, Hook> hooks_;
	std::atomic<u32> unknown_{0};
};

} // namespace sluice::emu
