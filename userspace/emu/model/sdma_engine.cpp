// SPDX-License-Identifier: MIT
// Queues and their registers, the packet loop. What packets do is in
// sdma_execute.cpp.
#include "sdma_engine.hpp"

#include <algorithm>
#include <format>

namespace sluice::emu {

namespace {
constexpr u32 cntl_enable = 1u << 0, cntl_report = 1u << 12;
constexpr u32 doorbell_enable = 1u << 28;
constexpr u32 status_idle = 1u << 0, context_idle = 1u << 2;
constexpr u32 f32_halt = 1u << 0;
// 7.3.4 registers no number for an illegal packet on this part; no other SDMA
// source uses this one.
constexpr u32 source_illegal = 0xf8;
} // namespace

SdmaEngine::SdmaEngine(unsigned index, RegisterFile &regs, VmHub &hub,
		       InterruptRing &ih, Timeline &timeline, u64 seed)
	: index_(index), base_(reg::sdma_base(index)), regs_(regs), hub_(hub), ih_(ih),
	  timeline_(timeline), chaos_(seed), port_(hub)
{
	regs.know(base_, base_ + reg::sdma_size - 1);
	regs.hook(base_ + reg::sdma_status, [this] { return status(); }, [](u32) {});
	for (unsigned i = 0; i < reg::sdma_queues; i++) {
		queues_[i].index = i;
		queues_[i].base = base_ + reg::sdma_queue(i);
		queues_[i].order = chaos_.fork();
		hook_queue(queues_[i]);
	}
}

void SdmaEngine::hook_queue(Queue &q)
{
	u32 b = q.base;

	regs_.hook(b + reg::rb_cntl, {}, [&, this](u32 v) { write_cntl(q, v); });
	regs_.hook(b + reg::rb_rptr, [&q] { return lower(q.rptr); },
		   [&, this](u32 v) { set_rptr(q, 0, v); });
	regs_.hook(b + reg::rb_rptr_hi, [&q] { return upper(q.rptr); },
		   [&, this](u32 v) { set_rptr(q, 1, v); });
	regs_.hook(b + reg::rb_wptr, [&q] { return lower(q.wptr); }, [&, this](u32 v) {
		q.wptr = join(v, upper(q.wptr));
		hub_.host().kick();
	});
	regs_.hook(b + reg::rb_wptr_hi, [&q] { return upper(q.wptr); },
		   [&, this](u32 v) {
		q.wptr = join(lower(q.wptr), v);
		hub_.host().kick();
	});
	regs_.hook(b + reg::rb_status, [&, this] { return busy(q) ? 0 : context_idle; },
		   [](u32) {});
}

// What pends ends soon, unless the engine stands still.
bool SdmaEngine::busy(const Queue &q) const
{
	return active_ == static_cast<int>(q.index) || (q.pends && !stands_still());
}

void SdmaEngine::set_rptr(Queue &q, unsigned half, u32 value)
{
	u64 old = q.programmed;

	q.programmed = half ? join(lower(old), value) : join(value, upper(old));
	q.reload = true;
	// what a driver reads back before the engine looks at it
	if (!q.enabled)
		q.rptr = q.programmed.load();
}

void SdmaEngine::write_cntl(Queue &q, u32 value)
{
	regs_.set(q.base + reg::rb_cntl, value);
	bool on = value & cntl_enable;
	if (on == q.enabled)
		return;
	if (on)
		q.restart = true;
	q.enabled = on;
	hub_.host().log(Log::debug, std::format("sdma{} queue {} {}", index_, q.index,
						on ? "on" : "off"));
	hub_.host().kick();
}

u32 SdmaEngine::status()
{
	bool any = std::ranges::any_of(queues_, [this](Queue &q) {
		return busy(q) || (q.enabled && q.rptr != q.wptr);
	});

	return any ? 0 : status_idle;
}

unsigned SdmaEngine::queue_vmid(const Queue &q) const
{
	if (q.index < 2) // the kernel's own
		return 0;
	return static_cast<unsigned>(field(regs_.get(q.base + reg::rb_cntl), 24, 4));
}

u64 SdmaEngine::ring_bytes(const Queue &q) const
{
	return 4ull << field(regs_.get(q.base + reg::rb_cntl), 1, 5);
}

bool SdmaEngine::doorbell(u32 dword, u64 value, unsigned size)
{
	for (Queue &q : queues_) {
		u32 offset = regs_.get(q.base + reg::rb_doorbell_offset);
		if (!(regs_.get(q.base + reg::rb_doorbell) & doorbell_enable) ||
		    (offset & 0x0ffffffc) >> 2 != dword)
			continue;
		u64 wptr = size == 8 ? value : join(lower(value), upper(q.wptr));
		u64 now = hub_.host().now();
		// before the engine can see it
		timeline_.record({.name = "doorbell",
				  .start = now,
				  .end = now,
				  .track = index_,
				  .queue = q.index,
				  .ring = wptr});
		q.wptr = wptr;
		hub_.host().kick();
		return true;
	}
	return false;
}

void SdmaEngine::reset()
{
	for (Queue &q : queues_) {
		q.enabled = false;
		q.restart = true;
		q.pends = false;
		q.wptr = q.rptr = q.programmed = 0;
	}
	faults_.hang = false;
}

// A user queue runs only while its doorbell is on: the driver enables the
// ring again, with the doorbell off, as the last step of removing it.
bool SdmaEngine::runnable(Queue &q)
{
	if (!q.enabled || (q.halted && !q.restart))
		return false;
	if (q.index >= 2 && !(regs_.get(q.base + reg::rb_doorbell) & doorbell_enable))
		return false;
	return q.reload || q.report_due || q.in_ib || q.rptr != q.wptr;
}

void SdmaEngine::sync(Queue &q)
{
	bool restart = q.restart.exchange(false), reload = q.reload.exchange(false);

	if (restart)
		q.halted = q.flushing = q.report_due = false;
	if (reload)
		q.rptr = q.programmed.load();
	if (!restart && !reload)
		return;
	q.in_ib = false;
	q.next = q.rptr;
	q.work = {};
	q.polling_since.reset();
	drop_pending(q);
}

bool SdmaEngine::stands_still() const
{
	return faults_.hang || regs_.get(base_ + reg::sdma_f32_cntl) & f32_halt;
}

SdmaEngine::Status SdmaEngine::step()
{
	if (stands_still())
		return Status::idle;

	Status result = Status::idle;
	u64 first = chaos_.below(reg::sdma_queues);
	for (unsigned i = 0; i < reg::sdma_queues; i++) {
		Queue &q = queues_[(first + i) % reg::sdma_queues];
		if (!runnable(q) && q.pending.empty())
			continue;
		Status s = run(q);
		if (s == Status::progressed)
			return s;
		if (s == Status::blocked)
			result = s;
	}
	return result;
}

SdmaEngine::Status SdmaEngine::run(Queue &q)
{
	// Say which queue is busy before checking whether it still may be: a
	// driver that disables it reads the status afterwards.
	active_ = static_cast<int>(q.index);
	Status s = runnable(q) ? run_enabled(q) : quiesce(q);
	active_ = -1;
	return s;
}

SdmaEngine::Status SdmaEngine::run_enabled(Queue &q)
{
	Outcome o = Outcome::pends;

	sync(q);
	report_rptr(q);
	if (at_end(q) && q.pending.empty())
		return q.report_due ? Status::blocked : Status::idle;
	while (o == Outcome::pends)
		o = run_next(q);
	return o == Outcome::done || o == Outcome::more ? Status::progressed
							: Status::blocked;
}

SdmaEngine::Context SdmaEngine::context(Queue &q)
{
	if (q.in_ib)
		return {.q = q,
			.work = q.work,
			.vmid = q.ib_vmid,
			.ring = q.next,
			.position = q.ib_pos,
			.words = q.ib_words - q.ib_pos};
	unsigned vmid = queue_vmid(q);
	return {.q = q,
		.work = q.work,
		.vmid = vmid,
		.ring = q.next,
		.privileged = vmid == 0,
		.position = q.next / 4,
		.words = (q.wptr - q.next) / 4};
}

Access SdmaEngine::fetch(Context &c, u64 word, std::span<u32> out)
{
	auto to = std::as_writable_bytes(out);

	if (c.q.in_ib)
		return port_.read(c.vmid, c.q.ib_base + word * 4, to);
	u64 base = regs_.get64(c.q.base + reg::rb_base) << 8;
	u64 offset = word * 4 & (ring_bytes(c.q) - 1);
	u64 first = std::min<u64>(to.size(), ring_bytes(c.q) - offset);
	Access a = port_.read(c.vmid, base + offset, to.first(first));
	if (a != Access::ok || first == to.size())
		return a;
	return port_.read(c.vmid, base, to.subspan(first));
}

void SdmaEngine::raise(Queue &q, u32 source, unsigned vmid, u32 context)
{
	Interrupt irq;

	irq.client = ih_client::sdma[index_ % reg::engines_per_die];
	irq.source = source;
	irq.ring = q.index;
	irq.vmid = vmid;
	irq.vmid_source = 1;
	irq.pasid = hub_.pasid(vmid);
	irq.node = index_ / reg::engines_per_die * 4;
	irq.data[0] = context;
	ih_.push(irq);
}

void SdmaEngine::halt(Queue &q)
{
	q.halted = true;
}

// What came before ends first. A queue that is reset or turned off while the engine
// looks at it has no packets: neither its pointers nor its ring are to be believed.
SdmaEngine::Outcome SdmaEngine::illegal(Context &c, std::string_view why, u32 header)
{
	if (!c.q.enabled || c.q.restart)
		return Outcome::wait;
	if (!c.q.pending.empty())
		return run_pending(c.q);
	hub_.stats().illegal_packets.add();
	hub_.host().log(Log::error,
			std::format("sdma{} queue {}: illegal packet {:#010x} "
				    "at word {:#x} of {}: {}",
				    index_, c.q.index, header, c.position,
				    c.q.in_ib ? "an indirect buffer" : "the ring",
				    why));
	raise(c.q, source_illegal, c.vmid, header);
	halt(c.q);
	return Outcome::illegal;
}

void SdmaEngine::report_rptr(Queue &q)
{
	if (!q.report_due)
		return;
	u64 rptr = q.rptr;
	u64 at = join(regs_.get(q.base + reg::rb_report_lo) & ~3u,
		      regs_.get(q.base + reg::rb_report_hi));
	if (!(regs_.get(q.base + reg::rb_cntl) & cntl_report) ||
	    port_.write(queue_vmid(q), at, as_const_bytes(rptr)) != Access::retry)
		q.report_due = false;
}

void SdmaEngine::advance(Context &c, u64 words)
{
	c.q.work = {};
	c.q.polling_since.reset();
	c.q.flushing = false;
	if (c.q.in_ib) {
		c.q.ib_pos += static_cast<u32>(words);
		if (c.q.ib_pos < c.q.ib_words)
			return;
		// the INDIRECT packet itself
		c.q.in_ib = false;
		words = 6;
	}
	c.q.next += words * 4;
	retire(c.q);
}

void SdmaEngine::retire(Queue &q)
{
	u64 rptr = q.pending.empty() ? q.next : q.pending.front().ring;

	if (rptr == q.rptr)
		return;
	q.rptr = rptr;
	q.report_due = true;
}

SdmaEngine::Outcome SdmaEngine::run_packet(Queue &q)
{
	Context c = context(q);
	std::array<u32, sdma::max_fixed_words> words{};

	if (!q.in_ib && q.wptr - q.next > ring_bytes(q))
		return illegal(c, "write pointer outside the ring", 0);
	std::span head(words.data(), std::min<u64>(c.words, words.size()));
	Access a = fetch(c, c.position, head);
	if (a != Access::ok)
		return stuck(q, outcome(a));
	auto packet = sdma::decode(head);
	if (!packet)
		return illegal(c, packet.error().why, words[0]);
	if (packet->words > c.words)
		return illegal(c, "packet runs past the end", words[0]);
	return order(c, *packet);
}

namespace {

// Bytes that a packet reads or, if it only writes, writes.
struct Bytes {
	u64 operator()(const sdma::Copy &p) { return p.count; }
	u64 operator()(const sdma::Window &p) { return p.width * p.rows; }
	u64 operator()(const sdma::Swap &p) { return p.count; }
	u64 operator()(const sdma::Write &p) { return p.words * 4ull; }
	u64 operator()(const sdma::Fill &p) { return p.count; }
	u64 operator()(const sdma::PtePde &p) { return p.entries * 8ull; }
	u64 operator()(const auto &) { return 0; }
};

} // namespace

void SdmaEngine::note(const Context &c, const sdma::Packet &p)
{
	if (timeline_.enabled())
		timeline_.record({.name = p.name,
				  .start = *c.work.begun,
				  .end = hub_.host().now(),
				  .track = index_,
				  .queue = c.q.index,
				  .ring = c.ring,
				  .words = p.words,
				  .bytes = std::visit(Bytes{}, p.body),
				  .from = c.work.from,
				  .to = c.work.to,
				  .to2 = c.work.to2});
}

SdmaEngine::Outcome SdmaEngine::carry_out(Context &c, const sdma::Packet &p)
{
	if (!c.work.begun)
		c.work.begun = hub_.host().now();
	Outcome o = std::visit([&](const auto &b) { return run_body(c, b); }, p.body);
	if (o == Outcome::done) {
		hub_.stats().packets.add();
		note(c, p);
	}
	return o;
}

SdmaEngine::Outcome SdmaEngine::execute(Context &c, const sdma::Packet &p)
{
	bool enters = std::holds_alternative<sdma::Indirect>(p.body);

	skip_ = 0;
	Outcome o = carry_out(c, p);
	if (o == Outcome::wait || o == Outcome::hang)
		return stuck(c.q, o);
	if (o != Outcome::done)
		return o;
	if (!enters)
		advance(c, p.words + skip_);
	else if (!c.q.in_ib) // an empty indirect buffer
		advance(c, p.words);
	report_rptr(c.q);
	return o;
}

} // namespace sluice::emu
