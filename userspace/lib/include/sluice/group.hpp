// SPDX-License-Identifier: MIT
// Collectives: GPUs of one host, the ranks of a group, exchange data by their SDMA
// engines alone. No shader runs, and the CPU copies nothing.
//
// A collective is prepared once, as a batch for each GPU that has something to do, and
// run as often as wanted. To run it is one system call for all GPUs; see collective.
//
//	auto all = group::make(ring, gpus);
//	auto gather = all->all_gather(to, from);	// to[r], from[r]: of rank r
//	gather->run().wait();
//
// Each rank writes to the memory of the others (it pushes), so what a rank is to get is
// there when all ranks are done. docs/collectives.md has more.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sluice/batch.hpp"
#include "sluice/device.hpp"
#include "sluice/processes.hpp"

namespace sluice {

namespace detail {
struct plan;

/// While a run is under way that other processes are part of: they are told when it is
/// over here, or given up.
class shared_run {
public:
	shared_run() noexcept = default;
	explicit shared_run(std::shared_ptr<process_set> with) noexcept
		: with_(std::move(with))
	{
	}
	shared_run(shared_run &&) noexcept = default;
	shared_run &operator=(shared_run &&other) noexcept
	{
		std::swap(with_, other.with_);
		return *this;
	}
	~shared_run() { end(); }

	void end() noexcept;
	process_set *with() const noexcept { return with_.get(); }

private:
	std::shared_ptr<process_set> with_;
};
} // namespace detail

/// What a rank's data go by. The names are DMA-Latte's (arXiv 2511.06605).
enum class variant : uint8_t {
	automatic, ///< what is quickest for this operation and size
	pcpy,	   ///< a copy for each destination, each on its own engine
	bcst,	   ///< the same bytes to two destinations by one packet
	swap,	   ///< two ranks exchange memory in place, by one packet
	b2b,	   ///< copies back to back on one engine
};

/// "automatic", "pcpy", ...
const char *name(variant how) noexcept;
/// errc::usage names what @p text is not.
result<variant> variant_of(std::string_view text);

struct collective_options {
	variant how = variant::automatic;
	/// Let the engines hold what run() has given to them until
	/// collective::release(), which is a store to memory.
	bool prelaunch = false;
	/// How long they hold it at most, then the ranks are errc::timeout. 0: as long
	/// as all GPUs allow, which is batch_limits::wait.
	clock::duration hold{};
};

/// Data that one rank sends to another, or to itself.
struct message {
	unsigned from, to;    ///< ranks
	slice target, source; ///< of the same size
};

/// A collective under way. Destroyed, it is cancelled, and waited for until no GPU
/// touches its memory any more. That ends: batches do, and so does what was not released.
/// Other processes have the patience of processes::meet() from when this one's rank is
/// seen to be done. Then the run is over here, and theirs is errc::timeout; it may go on.
class [[nodiscard]] collective_run {
public:
	unsigned ranks() const noexcept { return ranks_; }

	/// Are all ranks done? Does not wait.
	bool poll() noexcept;
	/// The same, but takes in no new completions.
	bool done() noexcept;
	/// Wait until all ranks are done, also if some fail. The bytes that all of them
	/// have moved; or the error of the first rank that has one, whose index() is
	/// the rank.
	result<size_t> wait() noexcept { return wait_until(never); }
	/// The same, or errc::timeout without an index() at @p until; it goes on then.
	result<size_t> wait_until(deadline until) noexcept;
	/// Ask all ranks of this process to stop; other processes are not told before
	/// that is over, and go on with theirs. What engines have got they finish.
	void cancel() noexcept;

	/// What @p rank has moved to others, in bytes, or its error; errc::timeout while
	/// it is under way. If it failed, what it was to write may be missing
	/// everywhere. If its GPU was lost, so is what others wrote there.
	result<size_t> of(unsigned rank) noexcept;

private:
	friend class collective;
	explicit collective_run(unsigned ranks) noexcept : ranks_(ranks) {}
	bool over(unsigned rank) noexcept;
	void hear_of(unsigned rank) noexcept;
	void give_up(unsigned rank) noexcept;
	void wake_when_late() noexcept;
	void end() noexcept;

	detail::shared_run shared_; ///< outlives what is under way here
	std::array<operation, 8> parts_;
	uint32_t unheard_ = 0;	///< ranks of other processes that are to be heard of
	uint32_t given_up_ = 0; ///< those that were not, in time
	std::shared_ptr<const buffer> held_; ///< what a prelaunched one waits for
	deadline late_ = never;		     ///< for other processes
	std::optional<operation> timer_;     ///< wakes who does not wait here
	unsigned ranks_;
};

/// A collective that is prepared: packets for each GPU, which name its memory, and keep
/// it alive. It may outlive its group.
class collective {
public:
	/// Begin on all GPUs, by one call of io_uring_enter(2). No other system call is
	/// made, and nothing is allocated. (Where batch_limits::ring is false it is an
	/// ioctl for each GPU; within a context::chain, what ends the chain submits.)
	/// Runs are not ordered: wait for one before the next, if that one uses its
	/// memory. Of a prelaunched one, one run may be under way: errc::busy.
	/// Other errors are those of batches, for each rank. errc::stale: memory was
	/// unmapped.
	collective_run run();

	/// Let a prelaunched run begin. A store to host memory; no system call. What the
	/// CPU or a network card writes to video memory must be there before run():
	/// the driver flushes the host data path then, and not here.
	void release() noexcept;

	/// Which variant it is; never automatic.
	variant how() const noexcept { return how_; }
	bool prelaunched() const noexcept { return word_ != nullptr; }
	/// That a run moves, of all ranks; each destination counts, and swaps twice.
	uint64_t bytes() const noexcept { return bytes_; }

private:
	friend class group;
	collective(detail::engine &ring, std::shared_ptr<detail::process_set> with,
		   const detail::plan &what) noexcept;
	/// Why not all ranks can begin, or nothing.
	std::optional<error> cannot_run() const;
	/// Begin what @p rank has to do, or listen to its process.
	operation start(unsigned rank);

	detail::engine *ring_;
	std::shared_ptr<detail::process_set> with_; ///< null: one process has all ranks
	variant how_;
	uint64_t bytes_;
	/// What engines wait for; null: not prelaunched. A run that is under way has it.
	std::shared_ptr<const buffer> word_;
	std::vector<std::optional<prepared_batch>> parts_;
};

/// One to eight GPUs, whose ranks are their places in the array. In all operations, what
/// is for a rank is in its place of a span, and blocks are in the order of ranks.
///
/// Memory is of any kind: video memory, host memory, or SVM memory. It is attached to the
/// GPUs that use it. SVM memory that is in a GPU is written there by GPUs that xGMI
/// links, and else out of their reach (errc::usage or errc::busy at run()).
///
/// errc::usage: memory of a wrong size, outside of its buffer, or that overlaps other
/// memory of the operation other than told below; a variant that the operation has not.
/// index() is the rank at fault. errc::unsupported: the kernel cannot prepare batches.
class group {
public:
	static constexpr unsigned most_ranks = 8;

	/// @param gpus opened on @p in; they stay where they are as long as the group.
	/// errc::usage if they were opened elsewhere, or are too many.
	static result<group> make(context &in, std::span<device> gpus);
	/// The same, of GPUs that are not in a row.
	static result<group> make(context &in, std::span<device *const> gpus);

	/// A group whose ranks are processes. Each calls the same functions in the same
	/// order, with memory of the same sizes at the same places. What takes memory of
	/// a rank takes a part of what processes::exchange() has given for it. To
	/// prepare a collective waits for all; run() waits for nobody, and writes to
	/// the others' memory: processes::barrier() tells that they expect it. One run
	/// is under way at a time. A rank that ends is errc::peer_lost for the others.
	/// @param gpu of this process; it stays where it is as long as the group
	/// @param with of the same context
	static result<group> make(context &in, device &gpu, const processes &with);

	unsigned ranks() const noexcept { return static_cast<unsigned>(gpus_.size()); }

	/// Each rank's @p from to its block of each rank's @p to.
	/// In place: from[r] may be block r of to[r]. Variants pcpy, bcst, b2b.
	result<collective> all_gather(std::span<const slice> to,
				      std::span<const slice> from,
				      const collective_options &how = {});
	/// Block j of rank i's @p from to block i of rank j's @p to.
	/// In place: to and from may be the same for all ranks; then the variant is
	/// swap, and else pcpy or b2b.
	result<collective> all_to_all(std::span<const slice> to,
				      std::span<const slice> from,
				      const collective_options &how = {});
	/// What rank @p root has in its memory to that of all others: always in place.
	/// Variants pcpy, bcst, b2b.
	result<collective> broadcast(unsigned root, std::span<const slice> memory,
				     const collective_options &how = {});
	/// Each rank's @p from to its block of @p to, which is rank @p root's.
	/// In place: from[root] may be its block. Variants pcpy, b2b, which are one.
	result<collective> gather(unsigned root, const slice &to,
				  std::span<const slice> from,
				  const collective_options &how = {});
	/// Each block of @p from, which is rank @p root's, to the rank's @p to.
	/// In place: to[root] may be its block. Variants pcpy, b2b.
	result<collective> scatter(unsigned root, std::span<const slice> to,
				   const slice &from,
				   const collective_options &how = {});
	/// Any number of messages, which may have different sizes: sends, with their
	/// receives. Variants pcpy, b2b.
	result<collective> send(std::span<const message> all,
				const collective_options &how = {});
	/// For who is to prepare a collective with other processes and cannot: they hear
	/// so, as of a mistake in the call. @p why is what it gives.
	result<collective> refuse(const error &why);

private:
	friend class host_group;
	explicit group(context &in) noexcept : ring_(&in.inside()) {}
	result<collective> prepare(const result<detail::plan> &what,
				   const collective_options &how);
	result<collective> prepare_own(const detail::plan &what,
				       const collective_options &how);
	result<clock::duration> longest_hold(clock::duration wanted) const;

	detail::engine *ring_;
	std::shared_ptr<detail::process_set> with_; ///< null: one process has all ranks
	std::vector<device *> gpus_;		    ///< null: another process's
};

} // namespace sluice
