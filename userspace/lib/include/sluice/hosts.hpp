// SPDX-License-Identifier: MIT
// Collectives over several hosts. SDMA engines move data inside of each host, and what
// the user gives, such as MPI, moves it between one GPU of each, the leader.
//
//	auto all = host_group::make(local, over);	// a group; a host_transport
//	auto gather = all->all_gather(to, from);	// to[r], from[r]: of rank r here
//	gather->run();
//
// docs/collectives.md has more.
#pragma once

#include "sluice/group.hpp"

namespace sluice {

namespace detail {
struct host_place;
struct host_plan;
class host_set;

/// What a host calls, and how it goes there, as it tells the others.
struct host_call {
	enum class step : uint64_t { prepare, run };

	step what = step::prepare;
	uint64_t number = 0;			 ///< of what is prepared, from 1 on
	uint64_t kind = 0;			 ///< a pattern
	uint64_t ranks = 0, bytes = 0, root = 0; ///< here; of the leader; of all ranks
	uint64_t failed = 0;			 ///< 0, or 1 + errc

	bool operator==(const host_call &) const = default;
};
} // namespace detail

/// How memory gets from host to host, by somebody else: this library knows no MPI. All
/// hosts make the same calls in the same order. A call is over when its memory is right
/// here and may be used again.
///
/// The memory is the leader's, or host memory of the library, and stays where it is if the transport
/// leaves it there. Errors are the transport's own; one about another host, such as
/// errc::peer_lost, has that host as index(). After one, hosts may be at different calls:
/// all make the transport and the group anew. A transport has one group, as groups do not
/// tell their calls from each other's.
class host_transport {
public:
	virtual ~host_transport() = default;

	virtual unsigned hosts() const noexcept = 0;
	virtual unsigned host() const noexcept = 0; ///< this one; 0 to hosts() - 1

	// Parts for each host are in the order of hosts, of one size. What is a host's own
	// is where it should be, and need not be moved.

	/// @p all has a part for each host. Each host's own to all others.
	virtual result<void> all_gather(const slice &all) = 0;
	/// Both have a part for each host. That of host h in @p from to the part of this
	/// host in @p to there.
	virtual result<void> all_to_all(const slice &to, const slice &from) = 0;
	/// What host @p root has in @p memory to that of all others.
	virtual result<void> broadcast(unsigned root, const slice &memory) = 0;
	/// @p memory has a part for each host on host @p root, and is one part on all
	/// others, which goes to the root.
	virtual result<void> gather(unsigned root, const slice &memory) = 0;
	/// The same the other way: each part of the root to its host.
	virtual result<void> scatter(unsigned root, const slice &memory) = 0;
};

/// A collective that is prepared on all hosts.
class host_collective {
public:
	/// Do it, and wait for it: over when the GPUs of this host have what is for
	/// them. All hosts must call it. The bytes that GPUs of this host have moved.
	///
	/// An error of a GPU of this host is its rank's, as a group says it. If it comes
	/// before the hosts exchange, nothing is exchanged, and all others say
	/// errc::peer_error with this host as index(). After that the others have what
	/// is for them, and do not hear of it. errc::protocol, with that host as index():
	/// it runs another collective. Other errors are the transport's.
	result<size_t> run();

private:
	friend class host_group;
	host_collective() noexcept = default;

	detail::engine *ring_ = nullptr;
	std::shared_ptr<detail::host_set> set_;
	std::vector<collective> before_, after_; ///< the leaders exchange
	slice shared_;				 ///< by them
	detail::host_call call_;
};

/// The same number of GPUs on each of one host or more. A rank among all is that of its
/// host's group, behind those of the hosts before.
///
/// Spans have one slice for each rank of this host, and all hosts have the same sizes.
/// Memory is as groups want it; the leader's must be in reach of the transport. Variants
/// are chosen automatically.
///
/// Staging memory is the leader's. What goes to other hosts and comes from them is there in
/// between; no other memory of the operation may overlap it.
///
/// errc::usage: a mistake in this call; index() is the rank of this host. Preparation is
/// compared: if another host prepares another operation or size, or has another number
/// of ranks, it is errc::protocol with that host as index(), and errc::peer_error if it
/// has failed there. No host has the collective then.
class host_group {
public:
	static constexpr unsigned most_hosts = 4096;

	/// @param local all GPUs of this process, which is its host's only one; stays
	///	where it is as long as this
	/// @param over as long as this, and what it has prepared; no other group's
	/// @param leader rank of @p local whose memory the transport works on; best the
	///	GPU that is next to the network card
	static result<host_group> make(group &local, host_transport &over,
				       unsigned leader = 0);

	unsigned ranks() const noexcept;      ///< of all hosts
	unsigned first_rank() const noexcept; ///< of this host

	/// Each rank's @p from to its block of each rank's @p to, on all hosts.
	/// In place: from[r] may be its block of to[r].
	result<host_collective> all_gather(std::span<const slice> to,
					   std::span<const slice> from);
	/// Block j of rank i's @p from to block i of rank j's @p to, on all hosts.
	/// In place: to and from may be the same for all ranks of this host.
	/// @param staging as large as all of @p to and @p from together
	result<host_collective> all_to_all(std::span<const slice> to,
					   std::span<const slice> from,
					   const slice &staging);
	/// What rank @p root of all has in its memory to that of all others.
	result<host_collective> broadcast(unsigned root, std::span<const slice> memory);
	/// Each rank's @p from to its block of @p to, which is rank @p root's of all.
	/// In place: the root's @p from may be its block.
	/// @param to of the root; other hosts' is not looked at
	/// @param staging as large as @p to on the root's host, which needs none if the
	///	root is its leader; as all of @p from on other hosts
	result<host_collective> gather(unsigned root, const slice &to,
				       std::span<const slice> from,
				       const slice &staging);
	/// Each block of @p from, which is rank @p root's of all, to the rank's @p to: the
	/// same the other way.
	result<host_collective> scatter(unsigned root, std::span<const slice> to,
					const slice &from, const slice &staging);

private:
	host_group(group &local, unsigned leader,
		   std::shared_ptr<detail::host_set> set) noexcept
		: local_(&local), set_(std::move(set)), leader_(leader)
	{
	}
	detail::host_place place() const noexcept;
	result<host_collective> prepare(const result<detail::host_plan> &what);
	result<host_collective> prepare_own(const detail::host_plan &what);
	result<std::vector<collective>>
	prepare_all(const std::vector<detail::plan> &plans);

	group *local_;
	std::shared_ptr<detail::host_set> set_;
	unsigned leader_;
};

} // namespace sluice
