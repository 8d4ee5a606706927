// SPDX-License-Identifier: MIT
// How processes meet, and give each other memory. All connect to rank 0, which then
// gives each pair of the others a socket of its own.
#include "sluice/processes.hpp"

#include <cstring>
#include <format>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "process_set.hpp"
#include "try.hpp"

namespace sluice {

namespace {

using detail::note;
using detail::process_set;

constexpr auto between_trials = std::chrono::milliseconds(20);

result<sockaddr_un> address_of(const std::string &path)
{
	sockaddr_un address{};

	address.sun_family = AF_UNIX;
	if (path.empty() || path.size() >= sizeof(address.sun_path))
		return fail(errc::usage, path,
			    std::format("a path of {} bytes, a socket's has 1 to {}",
					path.size(), sizeof(address.sun_path) - 1));
	std::memcpy(address.sun_path, path.data(), path.size());
	return address;
}

result<unique_fd> new_socket(int flags)
{
	unique_fd made(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));

	if (!made)
		return fail_errno("processes", "socket");
	return made;
}

/// Processes share and overwrite each other's memory: only for those of one user.
result<void> check_user(const unique_fd &other)
{
	ucred its{};
	socklen_t size = sizeof(its);

	if (::getsockopt(other.get(), SOL_SOCKET, SO_PEERCRED, &its, &size) < 0)
		return fail_errno("processes", "SO_PEERCRED");
	if (its.uid != ::geteuid())
		return fail(errc::denied, "processes",
			    std::format("a process of uid {} cannot meet one of uid {}",
					its.uid, ::geteuid()));
	return {};
}

/// A socket that others connect to, as long as this object exists.
class meeting_place {
public:
	static result<meeting_place> open(const std::string &path, unsigned ranks)
	{
		meeting_place made;

		SLUICE_TRY(auto address, address_of(path));
		SLUICE_TRY(made.socket_, new_socket(SOCK_NONBLOCK));
		if (::bind(made.socket_.get(), reinterpret_cast<sockaddr *>(&address),
			   sizeof(address)) < 0)
			return fail_errno(path, "a socket there");
		made.path_ = path;
		if (::listen(made.socket_.get(), static_cast<int>(ranks)) < 0)
			return fail_errno(path, "listen");
		return made;
	}
	meeting_place(meeting_place &&other) noexcept
		: socket_(std::move(other.socket_)),
		  path_(std::exchange(other.path_, {}))
	{
	}
	~meeting_place()
	{
		if (!path_.empty())
			::unlink(path_.c_str());
	}

	/// The next process that comes by @p until, also if this process looks later:
	/// then not at many.
	result<unique_fd> accept(context &in, deadline until)
	{
		for (;;) {
			const bool last = clock::now() >= until;
			unique_fd came(::accept4(socket_.get(), nullptr, nullptr,
						 SOCK_CLOEXEC));

			if (came && (!last || late_++ < processes::most))
				return came;
			if (!came && errno != EAGAIN)
				return fail_errno(path_, "accept");
			if (last)
				return fail(errc::timeout, path_, "nobody comes");
			auto waited = in.ready(socket_.get(), POLLIN).wait_until(until);
			if (!waited && waited.error().code() != errc::timeout)
				return std::unexpected(std::move(waited.error()));
		}
	}

private:
	meeting_place() = default;

	unique_fd socket_;
	std::string path_;
	unsigned late_ = 0; ///< processes that it found too late to wait for more
};

/// Has it come, and is it still there? It may have died, and be started again.
bool is_here(process_set &set, unsigned rank)
{
	if (set.linked(rank) && set.has_left(rank))
		(void)set.unlink(rank);
	return set.linked(rank);
}

/// The first rank that has not come yet.
unsigned missing(process_set &set)
{
	unsigned rank = 1;

	while (rank < set.ranks() && is_here(set, rank))
		rank++;
	return rank;
}

uint64_t hello_of(unsigned rank, unsigned ranks)
{
	return uint64_t{ranks} << 32 | rank;
}

/// A process that comes tells its rank.
result<void> greet(process_set &set, deadline until)
{
	SLUICE_TRY(const uint64_t said,
		   set.hear(process_set::newcomer, note::kind::hello, until));
	const auto rank = static_cast<unsigned>(said);
	if (said != hello_of(rank, set.ranks()))
		return fail(errc::usage, "processes",
			    std::format("rank {} knows of {} ranks, rank 0 of {}", rank,
					said >> 32, set.ranks()));
	if (!rank || rank >= set.ranks() || is_here(set, rank))
		return fail(errc::usage, "processes",
			    std::format("there are two of rank {}", rank));
	set.link(rank, set.unlink(process_set::newcomer));
	return {};
}

/// @param refused an error if a process was refused
std::unexpected<error> not_come(unsigned rank, const result<void> &refused)
{
	return std::unexpected(
		error(errc::timeout, std::format("rank {}", rank),
		      std::format("it has not come{}{}", refused ? "" : "; ",
				  refused ? "" : refused.error().message()))
			.at(rank));
}

// A process that is refused does not keep others from coming.
result<void> wait_for_all(context &in, process_set &set, meeting_place place,
			  deadline until)
{
	result<void> refused;

	while (missing(set) != set.ranks()) {
		auto came = place.accept(in, until);

		if (!came && came.error().code() == errc::timeout)
			return not_come(missing(set), refused);
		if (!came)
			return std::unexpected(std::move(came.error()));
		// it finds out itself that it came to another user's
		if (auto may = check_user(*came); !may) {
			refused = std::move(may);
			continue;
		}
		set.link(process_set::newcomer, *std::move(came));
		auto greeted = greet(set, until);
		// it died before it had said who it is
		if (!greeted && greeted.error().code() == errc::peer_lost) {
			(void)set.unlink(process_set::newcomer);
			refused = std::move(greeted);
			continue;
		}
		SLUICE_CHECK(greeted);
	}
	return {};
}

/// The two ends of a socket to the two ranks. If one of them has died meanwhile, the other
/// finds its end closed: so all get to the first barrier, and see there who is missing.
result<void> introduce(process_set &set, unsigned a, unsigned b)
{
	int ends[2];

	if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return fail_errno("processes", "socketpair");
	unique_fd first(ends[0]), second(ends[1]);
	(void)set.tell(a, note_of(note::kind::link, b), first.get());
	(void)set.tell(b, note_of(note::kind::link, a), second.get());
	return {};
}

result<void> introduce_all(process_set &set)
{
	for (unsigned a = 1; a < set.ranks(); a++)
		for (unsigned b = a + 1; b < set.ranks(); b++)
			SLUICE_CHECK(introduce(set, a, b));
	return {};
}

// All that have come are told whether all have, even one that came to the wrong place.
result<void> bring_together(context &in, process_set &set, const std::string &path,
			    deadline until)
{
	SLUICE_TRY(auto place, meeting_place::open(path, set.ranks()));
	auto met = wait_for_all(in, set, std::move(place), until);
	const note how = note_of(note::kind::hello, met ? result<uint64_t>(0)
							: std::unexpected(met.error()));

	for (unsigned r = 1; r <= process_set::newcomer; r++)
		if (set.linked(r))
			(void)set.tell(r, how);
	SLUICE_CHECK(met);
	return introduce_all(set);
}

/// Rank 0 is not there yet, or has a full backlog.
bool passes(int number)
{
	return number == ENOENT || number == ECONNREFUSED || number == EAGAIN;
}

/// Rank 0 may come later than the others.
result<unique_fd> connect_to(context &in, const std::string &path, deadline until)
{
	SLUICE_TRY(const auto address, address_of(path));
	for (;;) {
		SLUICE_TRY(auto socket, new_socket(SOCK_NONBLOCK));
		if (!::connect(socket.get(),
			       reinterpret_cast<const sockaddr *>(&address),
			       sizeof(address))) {
			SLUICE_CHECK(check_user(socket));
			return socket;
		}
		const int number = errno;
		if (!passes(number))
			return fail_errno(path, "connect", number);
		if (clock::now() >= until)
			return std::unexpected(fail_errno(path, "rank 0 is not there",
							  number, errc::timeout)
						       .error()
						       .at(0));
		SLUICE_CHECK(in.sleep_until(after(between_trials)).wait());
	}
}

result<void> come_to(context &in, process_set &set, const std::string &path,
		     deadline until)
{
	SLUICE_TRY(auto socket, connect_to(in, path, until));
	set.link(0, std::move(socket));
	// If it does not listen any more, it has said why.
	(void)set.tell(0,
		       note_of(note::kind::hello, hello_of(set.rank(), set.ranks())));
	SLUICE_CHECK(set.hear(0, note::kind::hello, until));
	for (unsigned n = 2; n < set.ranks(); n++) {
		unique_fd link;

		SLUICE_TRY(const uint64_t rank,
			   set.hear(0, note::kind::link, until, &link));
		if (rank >= set.ranks() || rank == set.rank() || set.linked(rank) ||
		    !link)
			return std::unexpected(
				error(errc::protocol, "rank 0",
				      "it gives no socket to a rank that is missing")
					.at(0));
		set.link(static_cast<unsigned>(rank), std::move(link));
	}
	return {};
}

} // namespace

result<processes> processes::meet(context &in, const std::string &path, unsigned rank,
				  unsigned ranks, clock::duration patience)
{
	if (ranks < 2 || ranks > most || rank >= ranks)
		return fail(errc::usage, "processes",
			    std::format("rank {} of {}: there are 2 to {}, from 0 on",
					rank, ranks, most));
	detail::engine &ring = detail::engine_of(in);
	SLUICE_CHECK(ring.may_wait("processes"));
	processes made(std::make_shared<process_set>(ring, rank, ranks, patience));
	const deadline until = made.set_->limit();
	SLUICE_CHECK(rank ? come_to(in, *made.set_, path, until)
			  : bring_together(in, *made.set_, path, until));
	SLUICE_CHECK(made.set_->agree(note::kind::barrier, 0, until));
	return made;
}

unsigned processes::rank() const noexcept
{
	return set_->rank();
}

unsigned processes::ranks() const noexcept
{
	return set_->ranks();
}

result<std::vector<buffer>> processes::exchange(device &gpu, const buffer &mine)
{
	return set_->exchange(mine, mine.export_dmabuf(),
			      [&gpu](int dmabuf) { return gpu.import_dmabuf(dmabuf); });
}

result<void> processes::barrier()
{
	SLUICE_CHECK(set_->agree(note::kind::barrier, 0));
	return {};
}

} // namespace sluice
