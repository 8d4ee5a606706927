// SPDX-License-Identifier: MIT
// What each SDMA packet does. Long ones keep their progress in the queue, so
// that after a retry fault they go on where they stopped.
#include "sdma_engine.hpp"

#include <algorithm>
#include <cstring>
#include <format>

namespace sluice::emu {

namespace {
constexpr u64 chunk = 64 << 10;
// After this much of one packet, check whether the queue was removed.
constexpr u64 slice = 4 << 20;
constexpr u32 source_trap = 0xe0, source_poll_timeout = 0xf6, source_srbm_write = 0xf7;
constexpr u32 cntl_trap = 1u << 0;
// The clock in which intervals of polls are counted. The driver is not told the
// clock of this part, so it assumes 100 to 2500 MHz. At the slowest clock a wait
// lasts longest: a busy guest has time to do what the wait is for, and the wait
// takes no longer than half of a job's time.
constexpr u64 poll_clock_mhz = 100;

// The first access of a packet says where it reads, or writes.
void first(Place &where, const MemoryPort &port)
{
	if (where.path == Path::none)
		where = port.last();
}
} // namespace

SdmaEngine::Outcome SdmaEngine::outcome(Access a)
{
	switch (a) {
	case Access::ok: return Outcome::done;
	case Access::retry: return Outcome::wait;
	case Access::hang: return Outcome::hang;
	}
	return Outcome::hang;
}

// Write count bytes that fill() makes, from where the packet stopped.
SdmaEngine::Outcome SdmaEngine::stream(Context &c, u64 count, u64 destination,
				       const std::function<void(u64, bytes)> &fill)
{
	u64 end = std::min(count, c.work.progress + slice);

	buffer_.resize(chunk);
	while (c.work.progress < end) {
		bytes part(buffer_.data(), std::min(chunk, end - c.work.progress));
		u64 done;
		fill(c.work.progress, part);
		Access a =
			port_.write(c.vmid, destination + c.work.progress, part, done);
		first(c.work.to, port_);
		c.work.progress += done;
		if (a != Access::ok)
			return outcome(a);
	}
	return end == count ? Outcome::done : Outcome::more;
}

SdmaEngine::Outcome SdmaEngine::run_body(Context &, const sdma::Nop &)
{
	return Outcome::done;
}

SdmaEngine::Outcome SdmaEngine::run_body(Context &c, const sdma::Copy &p)
{
	u64 end = std::min(p.count, c.work.progress + slice);

	buffer_.resize(chunk);
	while (c.work.progress < end) {
		bytes part(buffer_.data(), std::min(chunk, end - c.work.progress));
		u64 ready, done;
		Access a = port_.read(c.vmid, p.source + c.work.progress, part, ready);
		first(c.work.from, port_);
		for (unsigned d = 0; d < p.destinations && ready; d++) {
			Access w =
				port_.write(c.vmid, p.destination[d] + c.work.progress,
					    part.first(ready), done);
			first(d ? c.work.to2 : c.work.to, port_);
			ready = std::min(ready, done);
			if (w != Access::ok)
				a = w;
		}
		c.work.progress += ready;
		if (a != Access::ok)
			return outcome(a);
	}
	return end == p.count ? Outcome::done : Outcome::more;
}

SdmaEngine::Outcome SdmaEngine::run_body(Context &c, const sdma::Window &p)
{
	u64 count = p.width * p.rows;
	u64 end = std::min(count, c.work.progress + slice);

	buffer_.resize(chunk);
	while (c.work.progress < end) {
		u64 row = c.work.progress / p.width, at = c.work.progress % p.width;
		bytes part(buffer_.data(), std::min(chunk, p.width - at));
		u64 ready, done = 0;
		Access a = port_.read(c.vmid, p.source + row * p.source_pitch + at,
				      part, ready);
		first(c.work.from, port_);
		if (ready) {
			Access w = port_.write(
				c.vmid, p.destination + row * p.destination_pitch + at,
				part.first(ready), done);
			first(c.work.to, port_);
			if (w != Access::ok)
				a = w;
		}
		c.work.progress += done;
		if (a != Access::ok)
			return outcome(a);
	}
	return c.work.progress >= count ? Outcome::done : Outcome::more;
}

// An exchange cannot be repeated once one half is stored. If the page of the
// other half goes away between the two stores, its data is kept until the
// page is back.
SdmaEngine::Outcome SdmaEngine::exchange(Context &c, u64 a, u64 b, u64 n)
{
	bytes x(buffer_.data(), n), y(second_.data(), n);

	if (c.work.owed.empty()) {
		Access r = port_.read(c.vmid, a, x);
		first(c.work.from, port_);
		if (r == Access::ok)
			r = port_.read(c.vmid, b, y);
		first(c.work.to, port_);
		if (r == Access::ok)
			r = port_.probe(c.vmid, b, true);
		if (r == Access::ok)
			r = port_.write(c.vmid, a, y);
		if (r != Access::ok)
			return outcome(r);
		c.work.owed.assign(x.begin(), x.end());
	}
	Access r = port_.write(c.vmid, b, c.work.owed);
	if (r == Access::ok)
		c.work.owed.clear();
	return outcome(r);
}

SdmaEngine::Outcome SdmaEngine::run_body(Context &c, const sdma::Swap &p)
{
	u64 end = std::min(p.count, c.work.progress + slice);

	buffer_.resize(page_size);
	second_.resize(page_size);
	while (c.work.progress < end) {
		u64 a = p.a + c.work.progress, b = p.b + c.work.progress;
		u64 n = std::min({page_size - a % page_size, page_size - b % page_size,
				  p.count - c.work.progress});
		Outcome o = exchange(c, a, b, n);
		if (o != Outcome::done)
			return o;
		c.work.progress += n;
	}
	return c.work.progress == p.count ? Outcome::done : Outcome::more;
}

// Of a packet that pends, the ring may have other words by now.
Access SdmaEngine::fetch_data(Context &c, u64 word, std::span<u32> out)
{
	if (c.data.empty())
		return fetch(c, c.position + sdma::write_header_words + word, out);
	std::ranges::copy(c.data.subspan(word, out.size()), out.begin());
	return Access::ok;
}

SdmaEngine::Outcome SdmaEngine::run_body(Context &c, const sdma::Write &p)
{
	Access fetched = Access::ok;
	auto data = [&](u64 offset, bytes out) {
		std::span words(reinterpret_cast<u32 *>(out.data()), out.size() / 4);
		Access a = fetch_data(c, offset / 4, words);
		if (a != Access::ok)
			fetched = a;
	};
	// whole words: a partial write of one is repeated
	c.work.progress &= ~3ull;
	if (port_.probe(c.vmid, p.address + c.work.progress, true) == Access::retry)
		return Outcome::wait;
	Outcome o = stream(c, p.words * 4ull, p.address, data);
	if (fetched != Access::ok) {
		c.work.progress = 0;
		return outcome(fetched);
	}
	return o;
}

SdmaEngine::Outcome SdmaEngine::run_body(Context &c, const sdma::Indirect &p)
{
	if (c.q.in_ib)
		return illegal(c, "INDIRECT inside an indirect buffer", p.words);
	if ((c.position + 6) % 8)
		return illegal(c, "INDIRECT does not end at eight words", p.words);
	if (!c.privileged && p.vmid && p.vmid != c.vmid)
		return illegal(c, "INDIRECT for another VMID", p.vmid);
	c.q.in_ib = p.words != 0;
	c.q.ib_base = p.base;
	c.q.ib_words = p.words;
	c.q.ib_pos = 0;
	c.q.ib_vmid = c.privileged ? p.vmid : c.vmid;
	return Outcome::done;
}

SdmaEngine::Outcome SdmaEngine::run_body(Context &c, const sdma::Fence &p)
{
	u32 value = p.value, left = faults_.corrupt_fences;

	if (left && faults_.corrupt_fences.compare_exchange_strong(left, left - 1)) {
		value ^= 0x80000000;
		hub_.host().log(Log::info, std::format("sdma{}: fence {:#x} corrupted",
						       index_, p.value));
	}
	Access a = port_.write(c.vmid, p.address, as_const_bytes(value));
	first(c.work.to, port_);
	return outcome(a);
}

SdmaEngine::Outcome SdmaEngine::run_body(Context &c, const sdma::Trap &p)
{
	if (regs_.get(base_ + reg::sdma_cntl) & cntl_trap)
		raise(c.q, source_trap, c.vmid, p.context);
	return Outcome::done;
}

SdmaEngine::Outcome SdmaEngine::read_poll(Context &c, const sdma::Poll &p, u32 &value)
{
	if (p.kind == sdma::Poll::nothing)
		return Outcome::done;
	if (p.kind == sdma::Poll::memory) {
		Access a = port_.read(c.vmid, p.address, as_mutable_bytes(value));
		first(c.work.from, port_);
		return outcome(a);
	}
	u32 index = static_cast<u32>(p.address);
	if (p.kind == sdma::Poll::hdp_flush) {
		if (p.request != reg::hdp_flush_req || index != reg::hdp_flush_done)
			return illegal(c, "HDP flush of another register", index);
		if (!c.q.flushing)
			regs_.write(p.request, p.reference);
		c.q.flushing = true;
	} else if (!c.privileged) {
		return illegal(c, "register poll by a user", index);
	}
	value = regs_.read(index);
	return Outcome::done;
}

// How long a poll goes on after its first look. The engine looks whenever its
// thread gets to it, so time counts, not the number of looks.
static u64 patience_ns(const sdma::Poll &p)
{
	return u64{p.retries} * p.interval * 1000 / poll_clock_mhz;
}

SdmaEngine::Outcome SdmaEngine::run_body(Context &c, const sdma::Poll &p)
{
	u32 value = 0;
	Outcome o = read_poll(c, p, value);

	if (o != Outcome::done)
		return o;
	if (sdma::satisfied(p.compare, value & p.mask, p.reference))
		return Outcome::done;
	if (p.retries == sdma::poll_for_ever)
		return Outcome::wait;
	u64 now = hub_.host().now();
	if (!c.q.polling_since)
		c.q.polling_since = now;
	if (now - *c.q.polling_since < patience_ns(p))
		return Outcome::wait;
	raise(c.q, source_poll_timeout, c.vmid, 0);
	return Outcome::done;
}

SdmaEngine::Outcome SdmaEngine::run_body(Context &c, const sdma::CondExe &p)
{
	u32 value = 0;

	if (p.words > c.words - 5)
		return illegal(c, "COND_EXE skips past the end", p.words);
	Access a = port_.read(c.vmid, p.address, as_mutable_bytes(value));
	if (a == Access::ok && value != p.reference)
		skip_ = p.words;
	return outcome(a);
}

SdmaEngine::Outcome SdmaEngine::run_body(Context &c, const sdma::Atomic &p)
{
	u64 old;
	Access a = port_.update(c.vmid, p.address, p.size,
				[&](u64 v) { return sdma::apply(p, v); }, old);
	first(c.work.to, port_);

	if (a != Access::ok || !p.loop)
		return outcome(a);
	u64 mask = p.size == 8 ? ~0ull : 0xffffffff;
	return (old & mask) == (p.compare & mask) ? Outcome::done : Outcome::wait;
}

SdmaEngine::Outcome SdmaEngine::run_body(Context &c, const sdma::Fill &p)
{
	// Words are aligned, so each part begins with a whole one.
	return stream(c, p.count, p.address, [&](u64, bytes out) {
		u32 value = p.words ? p.value : (p.value & 0xff) * 0x01010101;
		u64 n = std::min<u64>(sizeof(value), out.size());
		std::memcpy(out.data(), &value, n);
		// then twice as much of it each time
		for (u64 more; n < out.size(); n += more) {
			more = std::min(n, out.size() - n);
			std::memcpy(&out[n], out.data(), more);
		}
	});
}

SdmaEngine::Outcome SdmaEngine::run_body(Context &c, const sdma::PtePde &p)
{
	c.work.progress &= ~7ull;
	return stream(c, p.entries * 8ull, p.address, [&](u64 offset, bytes out) {
		for (u64 i = 0; i < out.size(); i += 8) {
			u64 entry = p.mask | (p.value + (offset + i) / 8 * p.increment);
			std::memcpy(out.data() + i, &entry, 8);
		}
	});
}

SdmaEngine::Outcome SdmaEngine::run_body(Context &c, const sdma::Timestamp &p)
{
	u64 ticks = hub_.host().now() / 10;

	if (p.set)
		return Outcome::done;
	return outcome(port_.write(c.vmid, p.address, as_const_bytes(ticks)));
}

SdmaEngine::Outcome SdmaEngine::run_body(Context &c, const sdma::SrbmWrite &p)
{
	u32 mask = 0;

	if (!c.privileged) {
		hub_.host().log(Log::warning,
				std::format("sdma{}: register write by vmid {}", index_,
					    c.vmid));
		raise(c.q, source_srbm_write, c.vmid, p.index);
		return Outcome::done;
	}
	for (unsigned i = 0; i < 4; i++)
		if (p.byte_enable >> i & 1)
			mask |= 0xffu << 8 * i;
	u32 value = p.value & mask;
	if (~mask)
		value |= regs_.get(p.index) & ~mask;
	regs_.write(p.index, value);
	return Outcome::done;
}

} // namespace sluice::emu
