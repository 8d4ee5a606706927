// SPDX-License-Identifier: MIT
#include "memory_port.hpp"

#include <algorithm>
#include <format>

namespace sluice::emu {

MemoryPort::MemoryPort(VmHub &hub) : hub_(hub)
{
	hub.attach(*this);
}

void MemoryPort::forget()
{
	u32 vmids = pending_.exchange(0);

	if (!vmids)
		return;
	tlb_.flush(vmids);
	last_fault_ = ~0ull;
}

void MemoryPort::invalidate(u32 vmids)
{
	pending_ |= vmids;
	drain();
}

u32 MemoryPort::drain()
{
	std::unique_lock guard(lock_, std::try_to_lock);

	if (guard)
		forget();
	return guard ? 0 : pending_.load();
}

// Faults in a row on one page are reported once, as an engine that stays in
// the page would otherwise flood the interrupt ring.
Access MemoryPort::faulted(unsigned vmid, u64 va, u64 n, bool write, bool permission,
			   u64 entry, Target &out)
{
	u64 page = static_cast<u64>(vmid) << 48 | va >> page_shift;

	out = {Target::zero, 0, std::min(n, page_size - (va & (page_size - 1)))};
	if (page == last_fault_)
		return Access::ok;
	switch (hub_.fault(vmid, va, write, permission, entry)) {
	case Verdict::retry: return Access::retry;
	case Verdict::hang: return Access::hang;
	case Verdict::default_page: break;
	}
	last_fault_ = page;
	return Access::ok;
}

Access MemoryPort::place(const Translation &t, u64 va, u64 n, Target &out)
{
	u64 in_page = va & ((u64{1} << t.shift) - 1);

	out.length = std::min(n, (u64{1} << t.shift) - in_page);
	if (t.prt) {
		out.kind = Target::zero;
		return Access::ok;
	}
	out.kind = t.system ? Target::system : Target::vram;
	out.address = t.address + in_page;
	if (t.system)
		return Access::ok;
	out.address -= hub_.frame_buffer_offset();
	if (out.length <= hub_.room(out.address)) {
		place_memory(out.address, out);
		return Access::ok;
	}
	// A missing GPU at the other end of a link is not the driver's fault.
	if (!hub_.lost(out.address))
		hub_.host().log(Log::warning,
				std::format("access outside video memory: va {:#x} "
					    "offset {:#x}",
					    va, out.address));
	out.kind = Target::zero;
	return Access::ok;
}

// The offset is in the frame buffer, where there is memory.
void MemoryPort::place_memory(u64 offset, Target &out)
{
	u64 own = offset - hub_.member().start();
	bool is_own = own < hub_.vram().size();

	out.kind = is_own ? Target::vram : Target::peer;
	out.address = is_own ? own : offset;
}

Access MemoryPort::locate(unsigned vmid, u64 va, u64 n, bool write, Target &out)
{
	u64 left;

	last_ = {};
	va &= 0xffffffffffffull | (vmid ? 0 : ~0ull);
	forget();
	if (auto offset = hub_.aperture(vmid, va, left)) {
		out.length = std::min(n, left);
		place_memory(*offset, out);
		return Access::ok;
	}
	va &= 0xffffffffffffull;
	const Translation *hit = tlb_.find(vmid, va);
	Translation t;
	if (hit) {
		hub_.stats().tlb_hits.add();
		t = *hit;
	} else {
		hub_.stats().tlb_misses.add();
		auto walked = hub_.translate(vmid, va);
		if (!walked && walked.error().cause == WalkError::off)
			return Access::hang;
		if (!walked)
			return faulted(vmid, va, n, write, false, walked.error().value,
				       out);
		t = *walked;
		tlb_.insert(vmid, va, t);
	}
	if (write ? !t.writable : !t.readable)
		return faulted(vmid, va, n, write, true, t.address, out);
	return place(t, va, n, out);
}

// The peer may have gone since the access was placed.
Path MemoryPort::by_link(const Target &t, const Hive::Use &fn)
{
	bool there = hub_.member().hive->use(t.address, t.length, fn);

	return there ? Path::xgmi : Path::none;
}

void MemoryPort::account(const Target &t, Path path, u64 n)
{
	const HiveMember &own = hub_.member();

	hub_.stats().moved(path, n);
	last_ = {path, path == Path::vram ? own.node : 0, t.address};
	if (path == Path::xgmi) {
		last_.gpu = static_cast<unsigned>(t.address / own.hive->segment());
		last_.address %= own.hive->segment();
	}
}

Access MemoryPort::load(const Target &t, std::byte *to)
{
	Path path = Path::vram;

	if (t.kind == Target::zero) {
		std::fill_n(to, t.length, std::byte{0});
		return Access::ok;
	}
	if (t.kind == Target::vram)
		copy_shared(to, hub_.vram().device(t.address, t.length), t.length);
	else if (t.kind == Target::peer)
		path = by_link(
			t, [&](const std::byte *at) { copy_shared(to, at, t.length); });
	else
		path = hub_.host().read(t.address, {to, t.length});
	if (path == Path::off)
		return Access::hang;
	if (path == Path::none)
		// an aborted read, as the bus returns it
		std::fill_n(to, t.length, std::byte{0xff});
	account(t, path, t.length);
	return Access::ok;
}

void MemoryPort::store(const Target &t, const std::byte *from)
{
	Path path = Path::vram;

	if (t.kind == Target::zero)
		return;
	if (t.kind == Target::vram)
		copy_shared(hub_.vram().device(t.address, t.length), from, t.length);
	else if (t.kind == Target::peer)
		path = by_link(t,
			       [&](std::byte *at) { copy_shared(at, from, t.length); });
	else
		path = hub_.host().write(t.address, {from, t.length});
	account(t, path, t.length);
}

Access MemoryPort::read(unsigned vmid, u64 va, bytes out, u64 &done)
{
	for (done = 0; done < out.size();) {
		std::lock_guard guard(lock_);
		Target t;
		Access a = locate(vmid, va + done, std::min(out.size() - done, chunk),
				  false, t);
		if (a == Access::ok)
			a = load(t, out.data() + done);
		if (a != Access::ok)
			return a;
		done += t.length;
	}
	return Access::ok;
}

Access MemoryPort::write(unsigned vmid, u64 va, const_bytes in, u64 &done)
{
	for (done = 0; done < in.size();) {
		std::lock_guard guard(lock_);
		Target t;
		Access a = locate(vmid, va + done, std::min(in.size() - done, chunk),
				  true, t);
		if (a != Access::ok)
			return a;
		store(t, in.data() + done);
		done += t.length;
	}
	return Access::ok;
}

Access MemoryPort::read(unsigned vmid, u64 va, bytes out)
{
	u64 done;

	return read(vmid, va, out, done);
}

Access MemoryPort::write(unsigned vmid, u64 va, const_bytes in)
{
	u64 done;

	return write(vmid, va, in, done);
}

Access MemoryPort::probe(unsigned vmid, u64 va, bool write)
{
	std::lock_guard guard(lock_);
	Target t;

	return locate(vmid, va, 1, write, t);
}

Access MemoryPort::update(unsigned vmid, u64 va, unsigned size, const AtomicUpdate &fn,
			  u64 &old)
{
	std::lock_guard guard(lock_);
	Target t;
	Path path = Path::vram;
	Access a = locate(vmid, va, size, true, t);

	old = 0;
	if (a != Access::ok || t.kind == Target::zero)
		return a;
	if (t.kind == Target::vram)
		old = update_word(hub_.vram().device(t.address, size), size, fn);
	else if (t.kind == Target::peer)
		path = by_link(t,
			       [&](std::byte *at) { old = update_word(at, size, fn); });
	else
		path = hub_.host().update(t.address, size, fn, old);
	if (path == Path::off)
		return Access::hang;
	account(t, path, size);
	return Access::ok;
}

} // namespace sluice::emu
