// SPDX-License-Identifier: MIT
// Processes of one host with a GPU each, which together are the ranks of a group.
//
//	auto all = processes::meet(ring, "/run/job/socket", rank, ranks);
//	auto memory = all->exchange(gpu, mine);	// of each rank, in reach of gpu
//	auto together = group::make(ring, gpu, *all);
//
// A socket links each pair, and carries video memory as dma-bufs. The kernel closes the
// sockets of a process that ends or is killed: processes that wait for it, then or
// later, get an error. A child that it has forked keeps them open. A process that is
// stopped or hangs is noticed only when the patience of the others ends.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sluice/context.hpp"
#include "sluice/device.hpp"

namespace sluice {

namespace detail {
class process_set;
}

/// Errors have the rank of the process at fault as index(), if another one is at fault. But
/// in meet(), rank 0 tells the others who has not come, or was refused: index() is 0 then,
/// and the message has the rank. errc::usage: a chain is open; except in meet(), this is an
/// error for all. errc::busy: no room in the context.
/// errc::peer_lost: it has ended, or was given up because it does not read what it is
/// told; in that case it loses this process too. errc::timeout: it has not come.
/// errc::protocol: it is in a different call. Any other error is the one that the other
/// process had.
///
/// A call succeeds in all processes, or fails in all. But a process that comes after the
/// patience of another one may succeed where that failed; and nobody is told of a mistake
/// that the C API or Python finds before it asks the others (a handle that is NULL or
/// closed). So after errc::timeout, errc::peer_lost, errc::protocol or such a mistake, all
/// make the processes, and groups of them, anew.
class processes {
public:
	static constexpr unsigned most = 8;

	/// Wait for the others, which must be of the same user and able to reach
	/// @p path. Those of another user, including root, get errc::denied, and do no
	/// harm.
	/// @param path of a socket, which rank 0 makes, and removes when all have come, or
	///	when it gives up. It must not exist yet, and has 107 bytes at most.
	/// @param rank of this process; 0 to @p ranks - 1
	/// @param ranks how many processes there are, including this one; 2 to 8
	/// @param patience how long this and each later call wait for others at most
	/// errc::usage; errc::system if the socket cannot be made, or cannot be reached
	/// for a reason other than that rank 0 is not there yet.
	static result<processes>
	meet(context &in, const std::string &path, unsigned rank, unsigned ranks,
	     clock::duration patience = std::chrono::seconds(30));

	unsigned rank() const noexcept;
	unsigned ranks() const noexcept;

	/// Give video memory to all, and get theirs, by rank; this process's is
	/// @p mine. It lives as long as any process has it. All must call this, at the
	/// same point in the order of calls. If one cannot give or take, all fail, and
	/// none gets anything, except after the errors named above.
	/// @param gpu reaches the memory that this process gets
	/// errc::unsupported if @p mine is not video memory.
	result<std::vector<buffer>> exchange(device &gpu, const buffer &mine);

	/// Wait until all have called this.
	result<void> barrier();

	const std::shared_ptr<detail::process_set> &inside() const noexcept
	{
		return set_;
	}

private:
	explicit processes(std::shared_ptr<detail::process_set> set) noexcept
		: set_(std::move(set))
	{
	}

	std::shared_ptr<detail::process_set> set_;
};

} // namespace sluice
