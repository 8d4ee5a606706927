// SPDX-License-Identifier: MIT
#include "vram.hpp"

#include <algorithm>

namespace sluice::emu {

constexpr u32 poison_word = 0x5bad5bad;

std::byte *Vram::device(u64 offset, u64 n)
{
	if (offset > size() || n > size() - offset)
		return nullptr;
	return memory_.data() + offset;
}

void Vram::host_read(u64 offset, bytes out)
{
	const std::byte *at = device(offset, out.size());

	if (!at) {
		std::ranges::fill(out, std::byte{0xff});
		return;
	}
	if (!shadow_) {
		copy_shared(out.data(), at, out.size());
		return;
	}
	// memory and held-back writes as one: a flush may come in between
	std::lock_guard guard(lock_);
	copy_shared(out.data(), at, out.size());
	for (std::size_t i = 0; i < out.size(); i++) {
		auto it = pages_.find((offset + i) >> page_shift);
		u64 in_page = (offset + i) & (page_size - 1);
		if (it != pages_.end() && it->second.dirty[in_page])
			out[i] = it->second.data[in_page];
	}
}

void Vram::host_write(u64 offset, const_bytes in)
{
	std::byte *at = device(offset, in.size());

	if (!at)
		return;
	if (!shadow_) {
		copy_shared(at, in.data(), in.size());
		return;
	}
	std::lock_guard guard(lock_);
	for (std::size_t i = 0; i < in.size(); i++) {
		Page &page = pages_[(offset + i) >> page_shift];
		u64 in_page = (offset + i) & (page_size - 1);
		page.data[in_page] = in[i];
		page.dirty[in_page] = true;
	}
}

void Vram::hdp_flush()
{
	std::lock_guard guard(lock_);

	for (auto &[number, page] : pages_) {
		std::byte *at = memory_.data() + (number << page_shift);
		if (page.dirty.all()) {
			copy_shared(at, page.data.data(), page_size);
			continue;
		}
		for (u64 i = 0; i < page_size; i++)
			if (page.dirty[i])
				at[i] = page.data[i];
	}
	pages_.clear();
	std::atomic_thread_fence(std::memory_order_seq_cst);
}

std::size_t Vram::pending_pages() const
{
	std::lock_guard guard(lock_);
	return pages_.size();
}

void Vram::poison(u64 offset, u64 n)
{
	std::byte *at = device(offset, n);

	for (u64 i = 0; at && i + 4 <= n; i += 4)
		std::memcpy(at + i, &poison_word, 4);
}

} // namespace sluice::emu
