// SPDX-License-Identifier: MIT
// A GPU in a box: system memory and a peer's window as arrays, page tables
// built by hand, a ring to submit to. Tests and fuzzers share it.
#pragma once

#include "gpu.hpp"

#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace sluice::emu::test {

constexpr u64 MiB = 1 << 20;

// Memory that costs nothing until it is touched: a fuzzer makes a rig for each
// of its inputs, and those touch little.
class Zeroed {
public:
	explicit Zeroed(u64 size)
		: size_(size), at_(static_cast<std::byte *>(calloc(1, size)))
	{
		if (!at_)
			throw std::bad_alloc();
	}

	std::byte *data() const { return at_.get(); }
	u64 size() const { return size_; }
	operator bytes() const { return {at_.get(), size_}; }

private:
	struct Free {
		void operator()(std::byte *p) const { free(p); }
	};

	u64 size_;
	std::unique_ptr<std::byte, Free> at_;
};

class FakeHost : public Host {
public:
	static constexpr u64 system_base = 0x100000000, peer_base = 0x4000000000;

	Zeroed system{4 * MiB}, peer{MiB};
	std::vector<std::string> messages;
	unsigned interrupts = 0, kicks = 0;
	u64 time = 1000;
	unsigned reads_left = ~0u; // then the GPU is off the bus

	std::byte *at(u64 address, u64 n, Path &path)
	{
		path = Path::system;
		if (std::byte *p = window(system, system_base, address, n))
			return p;
		path = Path::peer;
		if (std::byte *p = window(peer, peer_base, address, n))
			return p;
		path = Path::none;
		return nullptr;
	}

	Path read(u64 address, bytes out) override
	{
		Path path;
		if (!reads_left) {
			std::memset(out.data(), 0xff, out.size());
			return Path::off;
		}
		reads_left--;
		if (const std::byte *p = at(address, out.size(), path))
			std::memcpy(out.data(), p, out.size());
		return path;
	}

	Path write(u64 address, const_bytes in) override
	{
		Path path;
		if (std::byte *p = at(address, in.size(), path))
			std::memcpy(p, in.data(), in.size());
		return path;
	}

	Path update(u64 address, unsigned size, const AtomicUpdate &fn,
		    u64 &old) override
	{
		Path path;
		if (std::byte *p = at(address, size, path))
			old = update_word(p, size, fn);
		return path;
	}

	void interrupt() override { interrupts++; }
	u64 now() override { return time += 100; }
	void kick() override { kicks++; }
	void log(Log, std::string_view text) override
	{
		if (messages.size() < 1000)
			messages.emplace_back(text);
	}

private:
	static std::byte *window(const Zeroed &m, u64 base, u64 address, u64 n)
	{
		u64 offset = address - base;
		if (offset > m.size() || n > m.size() - offset)
			return nullptr;
		return m.data() + offset;
	}
};

// Video memory is laid out as: 0-1 MiB free for tests, from 1 MiB the ring,
// from 2 MiB page tables, from 4 MiB free again.
class Rig {
public:
	static constexpr u64 aperture = 0x8000ull << 24;
	static constexpr u64 fb_offset = 0x40ull << 24;
	static constexpr u64 ring_at = MiB, ring_bytes = 64 << 10;
	static constexpr u32 doorbell = 0x100 * 2, ih_doorbell = 0x1a0 * 2,
			     cam_doorbell = 0x1a3 * 2;
	static constexpr u64 ih_at = FakeHost::system_base + 2 * MiB,
			     ih_wptr_at = ih_at + 64 * 1024;
	static constexpr u64 rwx = pte::valid | pte::readable | pte::writable;

	FakeHost host;
	Zeroed memory;
	Gpu gpu;

	explicit Rig(const GpuConfig &config = {}, u64 vram = 16 * MiB)
		: memory(vram), gpu(config, memory, host), start_(config.member.start())
	{
		if (config.member.hive)
			config.member.hive->join(config.member.node, gpu.vram());
		setup_interrupts();
		setup_ring(0);
		set(reg::mmhub_base(0) + reg::mm_layout.fault_cntl, 0x3ffc);
	}

	u32 get(u32 r) { return gpu.mmio_read(r); }
	void set(u32 r, u32 v) { gpu.mmio_write(r, v); }
	void set64(u32 r, u64 v)
	{
		set(r, lower(v));
		set(r + 1, upper(v));
	}

	template <class T> T &vram(u64 offset)
	{
		return *reinterpret_cast<T *>(memory.data() + offset);
	}
	template <class T> T &system(u64 offset)
	{
		return *reinterpret_cast<T *>(host.system.data() + offset);
	}

	void setup_interrupts()
	{
		set(reg::ih_base, lower(ih_at >> 8));
		set(reg::ih_base_hi, upper(ih_at >> 8));
		set(reg::ih_wptr_addr_lo, lower(ih_wptr_at));
		set(reg::ih_wptr_addr_hi, upper(ih_wptr_at));
		set(reg::ih_doorbell, 1u << 28 | ih_doorbell);
		set(reg::ih_cam_doorbell, 1u << 28 | cam_doorbell);
		set(reg::ih_cntl, 1 | 14 << 1 | 1u << 17); // 64 KiB
	}

	// A kernel ring in video memory, seen at the aperture.
	void setup_ring(unsigned engine)
	{
		u32 b = reg::sdma_base(engine) + reg::sdma_queue(0);
		set(b + reg::rb_cntl, 0);
		set64(b + reg::rb_base, (aperture + start_ + ring_at) >> 8);
		set(b + reg::rb_rptr, 0);
		set(b + reg::rb_wptr, 0);
		set(b + reg::rb_doorbell, 1u << 28);
		set(b + reg::rb_doorbell_offset, (doorbell + 20 * engine) << 2);
		set(reg::sdma_base(engine) + reg::sdma_cntl, 1);
		set(b + reg::rb_cntl, 1 | 14 << 1);
		wptr_ = 0;
	}

	void push(std::initializer_list<u32> words)
	{
		for (u32 w : words) {
			vram<u32>(ring_at + (wptr_ % ring_bytes)) = w;
			wptr_ += 4;
		}
	}

	void ring(unsigned engine = 0)
	{
		gpu.doorbell((doorbell + 20 * engine) * 4, wptr_, 8);
		gpu.run();
	}

	void submit(std::initializer_list<u32> words)
	{
		push(words);
		ring();
	}

	// Through an indirect buffer at 512 KiB, so that VMIDs matter.
	void submit_ib(unsigned vmid, u64 va, u32 words)
	{
		while (wptr_ / 4 % 8 != 2)
			push({0});
		submit({4 | vmid << 16, lower(va), upper(va), words, 0, 0});
	}

	u64 rptr()
	{
		return get(reg::sdma_base(0) + reg::sdma_queue(0) + reg::rb_rptr);
	}
	u64 wptr() const { return wptr_; }
	bool idle() { return rptr() == wptr_; }

	// Three levels and a last one, 9 bits each, for a VMID of hub 0.
	void enable_vmid(unsigned vmid, bool retry = false, u32 hub = 0)
	{
		u32 base = hub ? hub : reg::mmhub_base(0);
		const auto &l = hub ? reg::gfx_layout : reg::mm_layout;
		roots_[vmid] = new_table();
		set(base + l.context_cntl + vmid, 1 | 3 << 1 | retry << 7);
		set64(base + l.page_table_base + 2 * vmid,
		      physical(roots_[vmid]) | pte::valid);
		set64(base + l.page_table_end + 2 * vmid, (1ull << 36) - 1);
	}

	u64 &entry(unsigned vmid, u64 va)
	{
		u64 table = roots_[vmid];
		for (unsigned shift = 39; shift > 12; shift -= 9) {
			u64 &e = vram<u64>(table + (va >> shift & 511) * 8);
			if (!(e & 1))
				e = physical(new_table()) | pte::valid;
			table = (e & pte::directory_mask) - physical(0);
		}
		return vram<u64>(table + (va >> 12 & 511) * 8);
	}

	void map_vram(unsigned vmid, u64 va, u64 offset, u64 flags = rwx)
	{
		entry(vmid, va) = physical(offset) | flags;
	}
	// Memory of any GPU of the hive, by its offset there.
	void map_hive(unsigned vmid, u64 va, u64 offset, u64 flags = rwx)
	{
		entry(vmid, va) = (offset + fb_offset) | flags;
	}
	void map_bus(unsigned vmid, u64 va, u64 address, u64 flags = rwx)
	{
		entry(vmid, va) = address | flags | pte::system;
	}

	void invalidate(u32 vmids)
	{
		set(reg::mmhub_base(0) + reg::mm_layout.inv_req, vmids);
	}

	// The n-th interrupt entry's words.
	std::array<u32, 8> interrupt(unsigned n)
	{
		return system<std::array<u32, 8>>(2 * MiB + 32 * n);
	}
	unsigned interrupts() { return system<u32>(2 * MiB + 64 * 1024) / 32; }

private:
	// An entry's address for an offset in this GPU's memory.
	u64 physical(u64 offset) const { return offset + fb_offset + start_; }

	u64 new_table()
	{
		u64 t = next_table_;
		next_table_ += page_size;
		return t;
	}

	u64 start_;
	u64 wptr_ = 0, next_table_ = 2 * MiB;
	std::array<u64, 16> roots_{};
};

} // namespace sluice::emu::test
