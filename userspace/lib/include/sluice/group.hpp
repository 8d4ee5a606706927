// SPDX-License-Identifier: MIT
// Collectives: GPUs of one host, the ranks of a group, exchange data by their SDMA
// engines alone. No shader runs, and the CPU copies nothing.
//
// A collective is prepared once, as a batch for each GPU that has something to do, and
// run any number of times. A run is one system call for all GPUs; see collective.
//
//	auto all = group::make(ring, gpus);
//	auto gather = all->all_gather(to, from);	// to[r], from[r]: of rank r
//	gather->run().wait();
//
// Each rank writes to the memory of the others (it pushes), so a rank has its data when
// all ranks are done. docs/collectives.md has more.
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

/// Exists while a run with other processes is in flight; they are told when it is over
/// here, or given up.
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

/// How a rank's data are moved. The names are DMA-Latte's (arXiv 2511.06605).
enum class variant : uint8_t {
	automatic, ///< the quickest for this operation and size
	pcpy,	   ///< a copy for each destination, each on its own engine
	bcst,	   ///< the same bytes to two destinations by one packet
	swap,	   ///< two ranks exchange memory in place, by one packet
	b2b,	   ///< copies back to back on one engine
};

/// "automatic", "pcpy", ...
const char *name(variant how) noexcept;
/// errc::usage names the variants that there are.
result<variant> variant_of(std::string_view text);

struct collective_options {
	variant how = variant::automatic;
	/// Let the engines hold a run until collective::release(), which is a store to
	/// memory.
	bool prelaunch = false;
	/// How long they hold it at least; then the ranks are errc::timeout. At a low
	/// clock of the GPU it is up to 25 times as long. 0: as long as all GPUs allow
	/// (batch_limits::wait).
	clock::duration hold{};
};

/// Data that one rank sends to another, or to itself.
struct message {
	unsigned from, to;    ///< ranks
	slice target, source; ///< of the same size
};

/// A collective in flight. Destroying it cancels it, and waits until no GPU of this
/// process accesses its memory any more. The wait is bounded: batches end, also those
/// that were not released.
///
/// The GPUs of other processes write to this process's memory until wait() says that
/// their ranks are done. If it was not called, or another rank has an error that its
/// process did not report (errc::timeout, errc::peer_lost, errc::protocol, errc::busy,
/// errc::system), they may still write. Others have the patience of processes::meet(),
/// counted from when this process's rank is seen to be done. After that, the run is over
/// here, and their ranks are errc::timeout; they may continue.
class [[nodiscard]] collective_run {
public:
	unsigned ranks() const noexcept { return ranks_; }

	/// Are all ranks done? Does not wait.
	bool poll() noexcept;
	/// The same without reaping completions, unless it stops listening to another
	/// process, or the timer for that: so ask other operations after it. While a
	/// chain is open, other processes are not heard: ask again after it.
	bool done() noexcept;
	/// Wait until all ranks are done, even if some fail. Returns the bytes that all
	/// of them have moved, or the error of the first rank that has one, with that
	/// rank as index().
	result<size_t> wait() noexcept { return wait_until(never); }
	/// The same, or errc::timeout without an index() at @p until; the run then
	/// continues. It also does so after errc::usage without an index(): a chain is
	/// open, and another process has not been heard yet.
	result<size_t> wait_until(deadline until) noexcept;
	/// Ask all ranks of this process to stop. Other processes are told only when
	/// that is done, and continue with their ranks. Engines finish what they were
	/// given.
	void cancel() noexcept;

	/// The bytes that @p rank has moved to others, or its error; errc::timeout
	/// until it is done. If it failed, the data that it had to write may be missing
	/// everywhere; those of variant::swap may have been exchanged or not, so running
	/// it again does not mend them. If its GPU was lost, so are the data that others
	/// wrote there.
	result<size_t> of(unsigned rank) noexcept;

private:
	friend class collective;
	explicit collective_run(unsigned ranks) noexcept : ranks_(ranks) {}
	bool over(unsigned rank) noexcept;
	bool is_deaf(uint32_t ranks) const noexcept;
	void hear_of(unsigned rank) noexcept;
	void give_up(unsigned rank) noexcept;
	void wake_when_late() noexcept;
	void end() noexcept;

	detail::shared_run shared_; ///< outlives what is in flight here
	std::array<operation, 8> parts_;
	uint32_t unheard_ = 0;	///< ranks of other processes that have not reported
	uint32_t given_up_ = 0; ///< those that did not in time
	std::shared_ptr<const buffer> held_; ///< what a prelaunched one waits for
	deadline late_ = never;		     ///< for other processes
	/// Wakes a caller that waits elsewhere. Until it is needed, it keeps a place.
	operation timer_;
	unsigned ranks_;
};

/// A prepared collective: packets for each GPU, which refer to its memory, and keep it
/// alive. It may outlive its group.
class collective {
public:
	/// Begin on all GPUs, by one call of io_uring_enter(2). No other system call is
	/// made, and nothing is allocated. (If batch_limits::ring is false, it is an
	/// ioctl for each GPU. If more runs of it overlap than before, each GPU needs
	/// one more, for another fence.) Within a context::chain, each rank that has
	/// something to do is a part, so they run one after the other; errc::usage there
	/// if batch_limits::ring is false, or for a group of processes.
	/// Runs are not ordered: if the next one uses the same memory, wait for this
	/// one first. A prelaunched collective may have one run in flight, else
	/// errc::busy. Other errors are those of batches, for each rank. errc::stale:
	/// memory was unmapped.
	collective_run run();

	/// Let a prelaunched run begin. A store to host memory; no system call. Data
	/// that the CPU or a network card writes to video memory must be there before
	/// run(): the driver flushes the host data path of each GPU that has something
	/// to do at that point, and not here. See group for other GPUs.
	void release() noexcept;

	/// Its variant; never automatic.
	variant how() const noexcept { return how_; }
	bool prelaunched() const noexcept { return word_ != nullptr; }
	/// Bytes that all ranks move in a run; each destination counts, swaps twice.
	uint64_t bytes() const noexcept { return bytes_; }

private:
	friend class group;
	collective(detail::engine &ring, std::shared_ptr<detail::process_set> with,
		   const detail::plan &what) noexcept;
	/// Why some rank cannot begin, or nothing.
	std::optional<error> cannot_run() const;
	/// Begin the work of @p rank, or listen to its process.
	operation start(unsigned rank);

	detail::engine *ring_;
	std::shared_ptr<detail::process_set> with_; ///< null: one process has all ranks
	variant how_;
	uint64_t bytes_;
	/// What engines wait for; null: not prelaunched. A run in flight holds it.
	std::shared_ptr<const buffer> word_;
	std::vector<std::optional<prepared_batch>> parts_;
};

/// One to eight GPUs, whose ranks are their positions in the array. In all operations,
/// spans have an element for each rank, and blocks are in the order of ranks.
///
/// Memory is of any kind: video memory, host memory, or SVM memory. It is attached to the
/// GPUs that use it. SVM memory that is in a GPU is written there by GPUs that xGMI
/// links to it, and is out of reach of others (errc::usage or errc::busy at run()).
///
/// The driver flushes the host data path of a GPU for the batches of that GPU only. If
/// the CPU or a card has written to video memory that another rank swaps or overwrites
/// by xGMI, wait for a batch on its own GPU first, whatever that does.
///
/// What a rank does is one batch: errc::usage if that moves more than batch_limits::bytes
/// or has as many operations as batch_limits::operations. Larger blocks can be moved in
/// parts, by send(). errc::busy if a GPU has 256 prepared batches of this process.
///
/// errc::usage: memory has a wrong size, is outside its buffer, or overlaps other
/// memory of the operation in a way not mentioned below; or the operation lacks the
/// variant. index() is the rank at fault, if one is. errc::unsupported: the kernel cannot prepare
/// batches.
class group {
public:
	static constexpr unsigned most_ranks = 8;

	/// @param gpus opened on @p in; they must not be moved while the group exists.
	/// errc::usage if they were opened on another context, or are too many.
	static result<group> make(context &in, std::span<device> gpus);
	/// The same for GPUs that are not contiguous in memory.
	static result<group> make(context &in, std::span<device *const> gpus);

	/// A group whose ranks are processes. All call the same functions in the same
	/// order, with memory of the same sizes at the same places. Memory of a rank is
	/// part of what processes::exchange() returned for it. Preparing a collective
	/// waits for all ranks. run() waits for none, and writes to the others' memory:
	/// processes::barrier() tells that they expect it. One run is in flight at a
	/// time. If a rank ends, the others get errc::peer_lost. Either all have the
	/// collective, or none, except after some errors: see processes.
	/// @param gpu of this process; it must not be moved while the group exists
	/// @param with of the same context
	static result<group> make(context &in, device &gpu, const processes &with);

	unsigned ranks() const noexcept { return static_cast<unsigned>(gpus_.size()); }

	/// Copy each rank's @p from to its block of each rank's @p to.
	/// In place: from[r] may be block r of to[r]. Variants pcpy, bcst, b2b.
	result<collective> all_gather(std::span<const slice> to,
				      std::span<const slice> from,
				      const collective_options &how = {});
	/// Copy block j of rank i's @p from to block i of rank j's @p to.
	/// In place: to and from may be the same for all ranks; then the variant is
	/// swap, and else pcpy or b2b.
	result<collective> all_to_all(std::span<const slice> to,
				      std::span<const slice> from,
				      const collective_options &how = {});
	/// Copy the memory of rank @p root to that of all others: always in place.
	/// Variants pcpy, bcst, b2b.
	result<collective> broadcast(unsigned root, std::span<const slice> memory,
				     const collective_options &how = {});
	/// Copy each rank's @p from to its block of @p to, which is rank @p root's.
	/// In place: from[root] may be its block. Variants pcpy, b2b, which are the
	/// same here.
	result<collective> gather(unsigned root, const slice &to,
				  std::span<const slice> from,
				  const collective_options &how = {});
	/// Copy each block of @p from, which is rank @p root's, to the rank's @p to.
	/// In place: to[root] may be its block. Variants pcpy, b2b.
	result<collective> scatter(unsigned root, std::span<const slice> to,
				   const slice &from,
				   const collective_options &how = {});
	/// Any number of messages, which may differ in size: sends with their receives.
	/// Variants pcpy, b2b.
	result<collective> send(std::span<const message> all,
				const collective_options &how = {});
	/// For a process that should prepare a collective with others and cannot: they
	/// are told, as of a mistake in the call. Returns @p why.
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
