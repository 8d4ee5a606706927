// SPDX-License-Identifier: MIT
// Collectives over several hosts. SDMA engines move data inside each host, and a
// transport of the user's, such as MPI, moves it between one GPU of each, the leader.
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

/// Which call a host makes, and how it went there, as it tells the others.
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

/// How memory gets from host to host, by the user's means: this library does not know
/// MPI. All hosts make the same calls in the same order. A call is over when the memory
/// holds on this host what it has to, and may be used again.
///
/// The memory is the leader's, or host memory of the library, and stays where it is if
/// the transport leaves it there. Errors are the transport's own; one about another
/// host, such as errc::peer_lost, has that host as index(). After an error, hosts may
/// be at different calls: all must create the transport and the group again. A
/// transport serves one group, as groups cannot tell their calls apart.
class host_transport {
public:
	virtual ~host_transport() = default;

	virtual unsigned hosts() const noexcept = 0;
	virtual unsigned host() const noexcept = 0; ///< this one; 0 to hosts() - 1

	// Parts for each host are of one size, in the order of hosts. A host's own part
	// is already in place, and need not be moved.

	/// @p all has a part for each host. Send each host's own part to all others.
	virtual result<void> all_gather(const slice &all) = 0;
	/// Both have a part for each host. Send the part of host h in @p from to this
	/// host's part in @p to there.
	virtual result<void> all_to_all(const slice &to, const slice &from) = 0;
	/// Send @p memory of host @p root to @p memory of all others.
	virtual result<void> broadcast(unsigned root, const slice &memory) = 0;
	/// @p memory has a part for each host on host @p root, and is one part on all
	/// others, which is sent to the root.
	virtual result<void> gather(unsigned root, const slice &memory) = 0;
	/// The reverse: send each part of the root to its host.
	virtual result<void> scatter(unsigned root, const slice &memory) = 0;
};

/// A collective that is prepared on all hosts.
class host_collective {
public:
	/// Run it, and wait until the GPUs of this host have their data. All hosts must
	/// call this. Returns the bytes that GPUs of this host have moved.
	///
	/// An error of a GPU of this host has its rank among those of this host as
	/// index(), as in the group of this host. errc::usage: a chain is open. If it
	/// occurs before the hosts exchange data, nothing is exchanged, and all others
	/// get errc::peer_error with this host as index(). After that the others have
	/// their data, and are not told. errc::protocol: the host at index() runs
	/// another collective. Other errors are the transport's.
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

/// The same number of GPUs on each of one or more hosts. Ranks of all hosts are
/// numbered host by host, in the order of each host's group.
///
/// Spans have one slice for each rank of this host, and all hosts have the same sizes.
/// Memory is as for groups; the leader's must be in reach of the transport. Variants
/// are chosen automatically.
///
/// Staging memory is the leader's. It holds data on the way to and from other hosts; no
/// other memory of the operation may overlap it.
///
/// errc::usage: a mistake in this call; index() is the rank among those of this host, if
/// one is at fault. Preparation
/// is compared: if another host prepares a different operation or size, or has a
/// different number of ranks, the result is errc::protocol with that host as index();
/// if it failed there, errc::peer_error. No host has the collective then.
class host_group {
public:
	static constexpr unsigned most_hosts = 4096;

	/// @param local all GPUs of this process, which is the only one on its host;
	///	must not be moved while this exists
	/// @param over must outlive this and what it has prepared; used by no other
	///	group
	/// @param leader rank of @p local whose memory the transport works on; best the
	///	GPU that is next to the network card
	static result<host_group> make(group &local, host_transport &over,
				       unsigned leader = 0);

	unsigned ranks() const noexcept;      ///< of all hosts
	unsigned first_rank() const noexcept; ///< of this host

	/// Copy each rank's @p from to its block of each rank's @p to, on all hosts.
	/// In place: from[r] may be its block of to[r].
	result<host_collective> all_gather(std::span<const slice> to,
					   std::span<const slice> from);
	/// Copy block j of rank i's @p from to block i of rank j's @p to, on all hosts.
	/// In place: to and from may be the same for all ranks of this host.
	/// @param staging as large as all of @p to and @p from together
	result<host_collective> all_to_all(std::span<const slice> to,
					   std::span<const slice> from,
					   const slice &staging);
	/// Copy the memory of rank @p root of all to that of all others.
	result<host_collective> broadcast(unsigned root, std::span<const slice> memory);
	/// Copy each rank's @p from to its block of @p to, which is rank @p root's of
	/// all.
	/// In place: the root's @p from may be its block.
	/// @param to of the root; ignored on other hosts
	/// @param staging as large as @p to on the root's host, which needs none if the
	///	root is its leader; as all of @p from on other hosts
	result<host_collective> gather(unsigned root, const slice &to,
				       std::span<const slice> from,
				       const slice &staging);
	/// Copy each block of @p from, which is rank @p root's of all, to the rank's
	/// @p to: the reverse of gather().
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
