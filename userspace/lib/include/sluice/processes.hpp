// SPDX-License-Identifier: MIT
// Processes of one host that have a GPU each, the ranks of a group together.
//
//	auto all = processes::meet(ring, "/run/job/socket", rank, ranks);
//	auto memory = all->exchange(gpu, mine);	// of each rank, in reach of gpu
//	auto together = group::make(ring, gpu, *all);
//
// They are linked by a socket for each pair, and video memory goes by it as a dma-buf.
// The kernel closes the sockets of a process that ends or is killed: who is waiting for
// it then, or does so later, hears it. A child that it has forked keeps them open. One
// that is stopped or hangs is noticed only when patience ends.
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

/// What fails is said with the rank of the process at fault as index().
/// errc::peer_lost: it has ended, or does not read what it is told and was given up; then
/// it loses this process. errc::timeout: it has not come. errc::protocol: it is at another
/// call than this one. Else it is the error that the other one had.
class processes {
public:
	static constexpr unsigned most = 8;

	/// Wait for the others, which are processes of this one's user, if they reach
	/// @p path. Another user's, root's too, are errc::denied, and do not disturb.
	/// @param path of a socket, which rank 0 makes, and removes in the end. There
	///	must be nothing yet.
	/// @param rank of this process; 0 to @p ranks - 1
	/// @param ranks how many processes there are, this one too; 2 to 8
	/// @param patience so long this, and each later call, waits for others at most
	/// errc::usage; errc::system if the socket cannot be made, or not be reached for
	/// another reason than that rank 0 is not there yet.
	static result<processes>
	meet(context &in, const std::string &path, unsigned rank, unsigned ranks,
	     clock::duration patience = std::chrono::seconds(30));

	unsigned rank() const noexcept;
	unsigned ranks() const noexcept;

	/// Give video memory to all, and get theirs, by rank; this process's is @p mine.
	/// It lives as long as somebody has it. All must call this, each at its turn. If
	/// one cannot give or take, all hear it, and nobody has got anything.
	/// @param gpu reaches what it gets
	/// errc::unsupported if @p mine is no video memory.
	result<std::vector<buffer>> exchange(device &gpu, const buffer &mine);

	/// Wait until all have come here.
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
