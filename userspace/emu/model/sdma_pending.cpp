// SPDX-License-Identifier: MIT
// Packets of one queue that are pending together. Mesa's ac_cmdbuf_sdma.c says
// that a NOP acts as a fence and waits for pending copies; so copies without one
// between them may overlap. How they do is not public. With a seed, packets that
// move data go to a list and end in any order, so that a driver that leaves a
// barrier out gets wrong data, sooner or later.
#include "sdma_engine.hpp"

namespace sluice::emu {

namespace {

enum class Order : u8 {
	pends, // after those before it, or before them
	free,  // does not wait for what pends
	last,  // after all that pends
};

// Drivers rely on it that a fence, an atomic (ROCr's signals) or a trap comes last,
// and on a write of a register, which may change what translates addresses. A
// time is not known to wait: the driver puts a fence before it. A poll must not,
// as it may be for what a pending packet writes.
struct OrderOf {
	Order operator()(const sdma::Copy &) { return Order::pends; }
	Order operator()(const sdma::Window &) { return Order::pends; }
	Order operator()(const sdma::Write &) { return Order::pends; }
	Order operator()(const sdma::Fill &) { return Order::pends; }
	Order operator()(const sdma::PtePde &) { return Order::pends; }
	Order operator()(const sdma::Indirect &) { return Order::free; }
	Order operator()(const sdma::Poll &) { return Order::free; }
	Order operator()(const sdma::CondExe &) { return Order::free; }
	Order operator()(const sdma::Timestamp &) { return Order::free; }
	Order operator()(const sdma::Nop &) { return Order::last; }
	Order operator()(const sdma::Fence &) { return Order::last; }
	Order operator()(const sdma::Trap &) { return Order::last; }
	Order operator()(const sdma::Atomic &) { return Order::last; }
	Order operator()(const sdma::SrbmWrite &) { return Order::last; }
	// A packet that has ended may run again, if one before it is forgotten: see
	// quiesce(). A second swap would undo the first.
	Order operator()(const sdma::Swap &) { return Order::last; }
};

} // namespace

SdmaEngine::Outcome SdmaEngine::order(Context &c, const sdma::Packet &p)
{
	Order o = c.q.order.enabled() ? std::visit(OrderOf{}, p.body) : Order::free;

	if (o == Order::pends)
		return pend(c, p);
	if (o == Order::last && !c.q.pending.empty())
		return run_pending(c.q);
	return execute(c, p);
}

SdmaEngine::Outcome SdmaEngine::pend(Context &c, const sdma::Packet &p)
{
	Pending e{.packet = p, .vmid = c.vmid, .ring = c.ring, .data = {}, .work = {}};

	if (const auto *w = std::get_if<sdma::Write>(&p.body)) {
		e.data.resize(w->words);
		Access a = fetch_data(c, 0, e.data);
		if (a != Access::ok)
			return stuck(c.q, outcome(a));
	}
	c.q.pending.push_back(std::move(e));
	c.q.pends = true;
	advance(c, p.words);
	return Outcome::pends;
}

// The next packet, or one that pends. At the end of the ring all of these end.
SdmaEngine::Outcome SdmaEngine::run_next(Queue &q)
{
	bool must = q.chosen || q.pending.size() == most_pending || at_end(q);

	if (!q.pending.empty() && (must || q.order.one_in(2)))
		return run_pending(q);
	return run_packet(q);
}

// One that has begun goes on until it has ended. So a fault that is retried
// holds all of them, as it holds a queue whose packets do not overlap.
SdmaEngine::Outcome SdmaEngine::run_pending(Queue &q)
{
	if (!q.chosen)
		q.chosen = q.order.below(q.pending.size());
	auto e = q.pending.begin() + static_cast<std::ptrdiff_t>(*q.chosen);
	Context c{.q = q,
		  .work = e->work,
		  .vmid = e->vmid,
		  .ring = e->ring,
		  .data = e->data};
	Outcome o = carry_out(c, e->packet);

	if (o == Outcome::hang)
		halt(q);
	if (o != Outcome::done)
		return o;
	q.pending.erase(e);
	q.pends = !q.pending.empty();
	q.chosen.reset();
	retire(q);
	report_rptr(q);
	return Outcome::more;
}

// The queue's next packet cannot go on. What pends before it can.
SdmaEngine::Outcome SdmaEngine::stuck(Queue &q, Outcome o)
{
	if (!q.pending.empty())
		return run_pending(q);
	if (o == Outcome::hang)
		halt(q);
	return o;
}

// A queue that may not run: what pends ends before the queue is idle. If it
// cannot, it is forgotten: the read pointer is in front of it, and the driver may
// turn the queue on again. A reset forgets it in any case.
SdmaEngine::Status SdmaEngine::quiesce(Queue &q)
{
	if (q.pending.empty() || (q.enabled && q.halted && !q.restart))
		return Status::idle;
	if (q.restart || q.halted || run_pending(q) != Outcome::more)
		drop_pending(q);
	return q.pending.empty() ? Status::idle : Status::progressed;
}

void SdmaEngine::drop_pending(Queue &q)
{
	q.pending.clear();
	q.pends = false;
	q.chosen.reset();
}

} // namespace sluice::emu
