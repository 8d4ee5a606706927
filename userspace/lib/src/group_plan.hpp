// SPDX-License-Identifier: MIT
// Which rank copies what from where to where in a collective. It knows ranks and
// memory, but no GPU.
#pragma once

#include <vector>

#include "sluice/group.hpp"

namespace sluice::detail {

enum class pattern : uint8_t {
	all_gather,
	all_to_all,
	broadcast,
	gather,
	scatter,
	send,
};

const char *name(pattern kind) noexcept;

/// One operation of a batch: a copy, to several destinations a broadcast; or a swap.
struct step {
	std::vector<slice> to;
	slice from;
	bool swaps = false;
};

/// All of a collective. Steps run in any order and in parallel, including those of one
/// rank.
struct plan {
	pattern kind;
	variant how;			      ///< not automatic
	std::vector<std::vector<step>> ranks; ///< no step: nothing to do
	/// Whose memory each rank writes to, as steps do not tell.
	std::vector<std::vector<unsigned>> receivers;
};

/// What the choice of a variant depends on.
struct question {
	pattern kind;
	bool in_place;
	bool prelaunch;
	size_t senders; ///< ranks that have something for others
	size_t copies;	///< of one rank, at most
	size_t for_one; ///< of these, for the same rank
	uint64_t block; ///< bytes of a copy, at most
};

/// Which variant is the quickest.
variant choose(const question &about) noexcept;
/// Does the operation have it?
bool allows(pattern kind, bool in_place, variant how) noexcept;

/// What the operations of sluice::group do among @p ranks; see there.
/// errc::usage, with index() of the rank at fault.
result<plan> plan_all_gather(unsigned ranks, std::span<const slice> to,
			     std::span<const slice> from,
			     const collective_options &how);
result<plan> plan_all_to_all(unsigned ranks, std::span<const slice> to,
			     std::span<const slice> from,
			     const collective_options &how);
result<plan> plan_broadcast(unsigned ranks, unsigned root,
			    std::span<const slice> memory,
			    const collective_options &how);
result<plan> plan_gather(unsigned ranks, unsigned root, const slice &to,
			 std::span<const slice> from, const collective_options &how);
result<plan> plan_scatter(unsigned ranks, unsigned root, std::span<const slice> to,
			  const slice &from, const collective_options &how);
result<plan> plan_send(unsigned ranks, std::span<const message> all,
		       const collective_options &how);

/// One of several hosts, which have the same number of ranks each.
struct host_place {
	unsigned hosts, host;
	unsigned ranks;	 ///< of each host
	unsigned leader; ///< rank of this host
};

/// errc::usage, if there is no such place.
result<void> check_place(const host_place &at);

/// Can so many GPUs form a group?
result<void> check_gpus(size_t count);

/// What one host does in a collective over all: plans of its GPUs before the leaders
/// exchange, and after that. Plans of one phase run in any order and in parallel.
struct host_plan {
	pattern kind;
	unsigned root; ///< of the ranks of all hosts; 0: there is none
	size_t bytes;  ///< must be the same on all hosts
	slice shared;  ///< of the leader, which the leaders exchange
	std::vector<plan> before, after;
};

/// What the operations of sluice::host_group do on the host @p at; see there.
result<host_plan> plan_all_gather(const host_place &at, std::span<const slice> to,
				  std::span<const slice> from);
result<host_plan> plan_all_to_all(const host_place &at, std::span<const slice> to,
				  std::span<const slice> from, const slice &staging);
result<host_plan> plan_broadcast(const host_place &at, unsigned root,
				 std::span<const slice> memory);
result<host_plan> plan_gather(const host_place &at, unsigned root, const slice &to,
			      std::span<const slice> from, const slice &staging);
result<host_plan> plan_scatter(const host_place &at, unsigned root,
			       std::span<const slice> to, const slice &from,
			       const slice &staging);

/// What must be the same in all processes that prepare it. Their addresses differ.
uint64_t summary_of(const plan &what, bool prelaunch);

/// Bytes that @p steps move; each destination counts, swaps twice.
uint64_t bytes_of(std::span<const step> steps) noexcept;

/// Is that one batch? Else errc::usage.
result<void> fits(const batch_limits &most, std::span<const step> steps);

/// How many engines of a GPU @p steps need.
unsigned engines_wanted(variant how, std::span<const step> steps) noexcept;

/// Engines for @p count operations at once, of the mask @p usable: those not of
/// @p avoid first, beginning after the first @p skip of them, round robin. All of them
/// if there are not more.
uint32_t pick_engines(uint32_t usable, uint32_t avoid, unsigned count,
		      unsigned skip) noexcept;

} // namespace sluice::detail
