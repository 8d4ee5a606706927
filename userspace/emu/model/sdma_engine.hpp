// SPDX-License-Identifier: MIT
// One SDMA engine: up to ten queues, run one packet at a time by one thread.
// Register writes and doorbells come from other threads and only ever change
// atomics here; they never wait for the engine, which may be waiting for the
// very thread that delivers them.
//
// With a seed, packets that move data pend for a while, and end in any order:
// sdma_pending.cpp.
#pragma once

#include "chaos.hpp"
#include "memory_port.hpp"
#include "sdma_packet.hpp"
#include "timeline.hpp"

#include <optional>
#include <vector>

namespace sluice::emu {

// Set by the control socket, read by the engine.
struct EngineFaults {
	std::atomic<bool> hang{false}; // until the next reset
	std::atomic<u64> slow_ns{0};   // after each packet
	std::atomic<u32> corrupt_fences{0};
};

class SdmaEngine {
public:
	enum class Status : u8 { idle, progressed, blocked };

	SdmaEngine(unsigned index, RegisterFile &regs, VmHub &hub, InterruptRing &ih,
		   Timeline &timeline, u64 seed);

	// The engine thread's: run at most one packet.
	Status step();

	// From any thread.
	bool doorbell(u32 dword, u64 value, unsigned size);
	void reset();
	EngineFaults &faults() { return faults_; }
	Chaos &chaos() { return chaos_; }
	unsigned index() const { return index_; }

private:
	// more: a long packet has done a slice and goes on, or one that pends did
	// pends: the packet will be carried out later
	enum class Outcome : u8 { done, more, wait, hang, illegal, pends };

	// What was done of a packet that has not ended.
	struct Work {
		u64 progress = 0;	  // bytes
		std::optional<u64> begun; // ns
		Place from, to, to2;	  // of its first bytes
		// the second half of an exchange that faulted between halves
		std::vector<std::byte> owed;
	};

	struct Pending {
		sdma::Packet packet;
		unsigned vmid;
		u64 ring;	       // bytes, before it
		std::vector<u32> data; // of a WRITE
		Work work;
	};
	static constexpr std::size_t most_pending = 8;

	struct Queue {
		// shared with the register writers
		std::atomic<bool> enabled{false};
		std::atomic<u64> wptr{0}, rptr{0}, programmed{0};
		std::atomic<bool> reload{false}, restart{false};
		std::atomic<bool> pends{false}; // something in the list does
		// the engine's own
		unsigned index = 0;
		u32 base = 0;
		bool in_ib = false, report_due = false, flushing = false;
		bool halted = false; // until it is set up again
		u64 ib_base = 0;
		u32 ib_words = 0, ib_pos = 0;
		unsigned ib_vmid = 0;
		// Bytes of the ring before the present packet. rptr is where the
		// oldest packet is that has not ended.
		u64 next = 0;
		Work work;			   // on the present packet
		std::optional<u64> polling_since;  // ns, its first look
		std::vector<Pending> pending;	   // in the order of the ring
		std::optional<std::size_t> chosen; // of these, the one that has begun
		Chaos order{0};
	};

	// Where the present packet comes from and whom it acts for.
	struct Context {
		Queue &q;
		Work &work;
		unsigned vmid;
		u64 ring; // bytes of the ring before it, or before its INDIRECT
		bool privileged = false;
		u64 position = 0;	     // in words, of the packet's header
		u64 words = 0;		     // left in the ring or indirect buffer
		std::span<const u32> data{}; // of a WRITE that pends
	};

	void hook_queue(Queue &q);
	void write_cntl(Queue &q, u32 value);
	void set_rptr(Queue &q, unsigned half, u32 value);
	u32 status();

	bool busy(const Queue &q) const;
	bool stands_still() const;

	bool runnable(Queue &q);
	void sync(Queue &q);
	Status run(Queue &q);
	Status run_enabled(Queue &q);
	Outcome run_next(Queue &q);
	Outcome run_packet(Queue &q);
	Outcome execute(Context &c, const sdma::Packet &p);
	Outcome carry_out(Context &c, const sdma::Packet &p);
	void note(const Context &c, const sdma::Packet &p);
	void advance(Context &c, u64 words);
	void retire(Queue &q);
	void report_rptr(Queue &q);
	Outcome illegal(Context &c, std::string_view why, u32 header);
	void halt(Queue &q);
	void raise(Queue &q, u32 source, unsigned vmid, u32 context);

	static bool at_end(const Queue &q) { return !q.in_ib && q.next == q.wptr; }
	Outcome order(Context &c, const sdma::Packet &p);
	Outcome pend(Context &c, const sdma::Packet &p);
	Outcome stuck(Queue &q, Outcome o);
	Outcome run_pending(Queue &q);
	Status quiesce(Queue &q);
	static void drop_pending(Queue &q);

	unsigned queue_vmid(const Queue &q) const;
	u64 ring_bytes(const Queue &q) const;
	Context context(Queue &q);
	Access fetch(Context &c, u64 word, std::span<u32> out);
	Access fetch_data(Context &c, u64 word, std::span<u32> out);

	Outcome run_body(Context &c, const sdma::Nop &);
	Outcome run_body(Context &c, const sdma::Copy &);
	Outcome run_body(Context &c, const sdma::Window &);
	Outcome run_body(Context &c, const sdma::Swap &);
	Outcome exchange(Context &c, u64 a, u64 b, u64 n);
	Outcome run_body(Context &c, const sdma::Write &);
	Outcome run_body(Context &c, const sdma::Indirect &);
	Outcome run_body(Context &c, const sdma::Fence &);
	Outcome run_body(Context &c, const sdma::Trap &);
	Outcome run_body(Context &c, const sdma::Poll &);
	Outcome run_body(Context &c, const sdma::CondExe &);
	Outcome run_body(Context &c, const sdma::Atomic &);
	Outcome run_body(Context &c, const sdma::Fill &);
	Outcome run_body(Context &c, const sdma::PtePde &);
	Outcome run_body(Context &c, const sdma::Timestamp &);
	Outcome run_body(Context &c, const sdma::SrbmWrite &);
	Outcome read_poll(Context &c, const sdma::Poll &p, u32 &value);
	Outcome stream(Context &c, u64 count, u64 destination,
		       const std::function<void(u64 offset, bytes)> &fill);
	static Outcome outcome(Access a);

	unsigned index_;
	u32 base_;
	RegisterFile &regs_;
	VmHub &hub_;
	InterruptRing &ih_;
	Timeline &timeline_;
	Chaos chaos_;
	MemoryPort port_;
	EngineFaults faults_;
	std::array<Queue, reg::sdma_queues> queues_;
	std::atomic<int> active_{-1};
	std::vector<std::byte> buffer_, second_;
	u64 skip_ = 0; // words that COND_EXE jumps over
};

} // namespace sluice::emu
