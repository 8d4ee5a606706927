// SPDX-License-Identifier: MIT
#include "register_file.hpp"

#include <format>

namespace sluice::emu {

RegisterFile::RegisterFile(Host &host)
	: host_(host), words_(new std::atomic<u32>[reg::count]()),
	  seen_(new std::atomic<bool>[reg::count]())
{
}

void RegisterFile::touch(u32 index, const char *how, u32 value)
{
	if (seen_[index].load(std::memory_order_relaxed) || seen_[index].exchange(true))
		return;
	unknown_++;
	host_.log(Log::notice, std::format("first touch: register {:#x} {} {:#x}",
					   index, how, value));
}

u32 RegisterFile::read(u32 index)
{
	if (index >= reg::count)
		return ~0u;
	auto it = hooks_.find(index);
	if (it == hooks_.end()) {
		touch(index, "read", get(index));
		return get(index);
	}
	return it->second.read ? it->second.read() : get(index);
}

void RegisterFile::write(u32 index, u32 value)
{
	if (index >= reg::count)
		return;
	auto it = hooks_.find(index);
	if (it == hooks_.end())
		touch(index, "written", value);
	else if (it->second.write)
		return it->second.write(value);
	set(index, value);
}

u32 RegisterFile::get(u32 index) const
{
	return words_[index].load(std::memory_order_acquire);
}

void RegisterFile::set(u32 index, u32 value)
{
	words_[index].store(value, std::memory_order_release);
}

void RegisterFile::set_bits(u32 index, u32 bits)
{
	words_[index].fetch_or(bits, std::memory_order_acq_rel);
}

void RegisterFile::hook(u32 index, Read read, Write write)
{
	Hook &h = hooks_[index];

	if (read)
		h.read = std::move(read);
	if (write)
		h.write = std::move(write);
	seen_[index] = true;
}

void RegisterFile::know(u32 first, u32 last)
{
	for (u32 i = first; i <= last; i++)
		seen_[i] = true;
}

void RegisterFile::reset()
{
	for (u32 i = 0; i < reg::count; i++)
		words_[i].store(0, std::memory_order_relaxed);
}

} // namespace sluice::emu
