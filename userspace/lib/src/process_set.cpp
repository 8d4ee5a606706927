// SPDX-License-Identifier: MIT
#include "process_set.hpp"

#include <algorithm>
#include <cstring>
#include <format>
#include <poll.h>
#include <sys/socket.h>

#include "try.hpp"

namespace sluice::detail {

namespace {

/// A rank that sends many notes does not keep the caller from other work.
constexpr unsigned most_at_once = 64;

/// One descriptor, as it travels.
union ancillary {
	cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(int))];
};

msghdr message_of(iovec &data, ancillary &with) noexcept
{
	msghdr m{};

	m.msg_iov = &data;
	m.msg_iovlen = 1;
	m.msg_control = with.bytes;
	// Not more: CMSG_SPACE() has room for a second one.
	m.msg_controllen = CMSG_LEN(sizeof(int));
	return m;
}

void attach(msghdr &to, int fd) noexcept
{
	cmsghdr *head = CMSG_FIRSTHDR(&to);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(fd));
	std::memcpy(CMSG_DATA(head), &fd, sizeof(fd));
}

/// The one that came along, or none.
unique_fd attached_to(msghdr &got) noexcept
{
	cmsghdr *head = CMSG_FIRSTHDR(&got);
	int fd = -1;

	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
		std::memcpy(&fd, CMSG_DATA(head), sizeof(fd));
	return unique_fd(fd);
}

std::string where(unsigned rank)
{
	return rank == process_set::newcomer ? "a newcomer"
					     : std::format("rank {}", rank);
}

uint32_t index_of(unsigned rank)
{
	return rank == process_set::newcomer ? error::no_index : rank;
}

std::unexpected<error> wrong(errc code, unsigned rank, std::string_view what)
{
	return std::unexpected(error(code, where(rank), what).at(index_of(rank)));
}

/// Calls are counted without end, so the numbers wrap around.
bool before(uint32_t a, uint32_t b) noexcept
{
	return static_cast<int32_t>(a - b) < 0;
}

std::unexpected<error> elsewhere(unsigned rank, const note &n, note::kind here)
{
	if (n.what == here)
		return wrong(errc::protocol, rank,
			     std::format("it is at a later {} than this process",
					 name(here)));
	return wrong(errc::protocol, rank,
		     std::format("it is at {}, this process at {}", name(n.what),
				 name(here)));
}

bool makes_sense(const note &n) noexcept
{
	return n.magic == note::right_magic && n.what <= note::kind::run &&
	       n.failed <= 1 + static_cast<uint32_t>(errc::corrupt) &&
	       n.text_size <= n.text.size() && n.where_size <= n.text_size;
}

/// The value, or the error that the other process had.
result<uint64_t> value_of(const note &n, unsigned rank)
{
	std::string_view text(n.text.data(), n.text_size);

	if (!n.failed)
		return n.value;
	size_t skipped = n.where_size ? n.where_size + 2u : 0u;
	return std::unexpected(
		error(static_cast<errc>(n.failed - 1), text.substr(0, n.where_size),
		      text.substr(std::min(skipped, text.size())), n.error_number)
			.at(index_of(rank)));
}

} // namespace

const char *name(note::kind what) noexcept
{
	constexpr std::array names = {"meet",	 "meet",    "exchange",
				      "prepare", "barrier", "run"};

	return names[static_cast<size_t>(what)];
}

note note_of(note::kind what, const result<uint64_t> &value) noexcept
{
	note n;

	n.what = what;
	if (value) {
		n.value = *value;
		return n;
	}
	std::string_view text = value.error().message();
	text = text.substr(0, n.text.size());
	n.failed = 1 + static_cast<uint32_t>(value.error().code());
	n.error_number = value.error().number();
	n.where_size = static_cast<uint16_t>(value.error().where().size());
	n.text_size = static_cast<uint16_t>(text.size());
	std::ranges::copy(text, n.text.begin());
	return n;
}

result<void> process_set::tell(unsigned rank, const note &what, int with) noexcept
{
	iovec data{const_cast<note *>(&what), sizeof(what)};
	ancillary more{};
	msghdr m = message_of(data, more);

	if (with >= 0)
		attach(m, with);
	else
		m.msg_controllen = 0;
	if (::sendmsg(sockets_[rank].get(), &m, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
		return {};
	if (errno == EPIPE || errno == ECONNRESET)
		return wrong(errc::peer_lost, rank, "it does not listen any more");
	return give_up(rank, errno);
}

// The socket stays open: a request of the ring may refer to it.
std::unexpected<error> process_set::give_up(unsigned rank, int number) noexcept
{
	const bool full = number == EAGAIN;

	::shutdown(sockets_[rank].get(), SHUT_RDWR);
	auto why = fail_errno(where(rank),
			      full ? "it leaves too much unread" : "it cannot be told",
			      number, full ? errc::peer_lost : errc::system);
	given_up_[rank] = std::move(why.error()).at(index_of(rank));
	return std::unexpected(*given_up_[rank]);
}

std::optional<result<process_set::heard>> process_set::take(unsigned rank) noexcept
{
	heard said;
	iovec data{&said.what, sizeof(said.what)};
	ancillary more{};
	msghdr m = message_of(data, more);
	ssize_t got;

	if (given_up_[rank])
		return std::unexpected(*given_up_[rank]);
	// ECONNRESET comes once, before what is still to be read: the process ended
	// without reading everything.
	do
		got = ::recvmsg(sockets_[rank].get(), &m,
				MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (got < 0 && (errno == EINTR || errno == ECONNRESET));
	if (got < 0 && errno == EAGAIN)
		return {};
	if (got < 0) // which is no fault of the other rank
		return fail_errno(where(rank), "it cannot be heard");
	if (!got)
		return wrong(errc::peer_lost, rank,
			     "it has ended, or has given this process up");
	said.with = attached_to(m);
	if (m.msg_flags & MSG_CTRUNC)
		return said.with ? wrong(errc::protocol, rank, "it gives too much")
				 : wrong(errc::system, rank,
					 "this process has too many files open to take "
					 "what it gives");
	if (got != sizeof(said.what) || m.msg_flags & MSG_TRUNC ||
	    !makes_sense(said.what))
		return wrong(errc::protocol, rank, "it says what makes no sense");
	return said;
}

std::optional<result<process_set::heard>> process_set::next(unsigned rank) noexcept
{
	if (rank < processes::most && early_[rank])
		return *std::exchange(early_[rank], {});
	return take(rank);
}

bool process_set::has_left(unsigned rank) const noexcept
{
	char any;
	ssize_t got = ::recv(sockets_[rank].get(), &any, 1, MSG_PEEK | MSG_DONTWAIT);

	return got == 0 || (got < 0 && errno == ECONNRESET);
}

bool process_set::keep_early(unsigned rank, heard &said) noexcept
{
	const note &n = said.what;

	if (early_[rank] || n.what == note::kind::run || n.number != calls_ + 1)
		return false;
	early_[rank] = std::move(said);
	return true;
}

bool process_set::is_past(const note &n, uint32_t call) const noexcept
{
	if (n.what != note::kind::run)
		return before(n.number, call);
	return before(n.number, runs_) || (n.number == runs_ && !running_);
}

result<void> process_set::await(unsigned rank, deadline until)
{
	auto waited = listen(rank).wait_until(until);

	if (waited || waited.error().code() == errc::timeout)
		return {};
	return std::unexpected(std::move(waited.error()).at(rank));
}

// What has come in time counts, even if this process looks late. But a rank that sends many
// outdated notes does not delay it longer than a silent one.
result<uint64_t> process_set::hear(unsigned rank, note::kind what, deadline until,
				   unique_fd *with)
{
	for (unsigned late = 0; late < most_at_once;) {
		const bool last = clock::now() >= until;
		auto said = next(rank);

		if (!said && last)
			break;
		if (!said) {
			SLUICE_CHECK(await(rank, until));
			continue;
		}
		late += last;
		SLUICE_TRY(heard h, std::move(*said));
		const note &n = h.what;
		if (with)
			*with = std::move(h.with);
		if (is_past(n, calls_))
			continue;
		if (n.what == what && n.number == calls_)
			return value_of(n, rank);
		if (n.what != note::kind::run || n.number != runs_)
			return elsewhere(rank, n, what);
		ended_[rank] = n;
	}
	return wrong(errc::timeout, rank,
		     std::format("it has not come to {} in time", name(what)));
}

result<process_set::values> process_set::agree(note::kind what,
					       const result<uint64_t> &mine,
					       deadline until, int with,
					       std::span<unique_fd> theirs)
{
	std::array<result<void>, processes::most> told;
	values all{};
	result<uint64_t> first = mine;

	// A process that cannot hear the others must not tell them that all is well.
	auto may_wait = ring_.may_wait(where(rank_));
	if (first && !may_wait)
		first = std::unexpected(std::move(may_wait.error()).at(rank_));
	else if (first && ring_.full())
		first = wrong(errc::busy, rank_,
			      "its context has no place for an operation that waits");
	note note_of_mine = note_of(what, first);
	note_of_mine.number = ++calls_;
	for (unsigned r = 0; r < ranks_; r++)
		if (r != rank_)
			told[r] = tell(r, note_of_mine, with);
	if (!may_wait) {
		early_ = {}; // they are of this call
		return std::unexpected(std::move(first.error()));
	}
	// Hear all, even if one has failed: so the others' next note is of the next
	// call.
	for (unsigned r = 0; r < ranks_; r++) {
		auto said = r == rank_ ? first
				       : hear(r, what, until,
					      theirs.empty() ? nullptr : &theirs[r]);

		// It was in this call, and left without hearing from this process.
		if (said && !told[r])
			said = std::unexpected(std::move(told[r].error()));
		if (said)
			all[r] = *said;
		else if (first)
			first = std::move(said);
	}
	if (!first)
		return std::unexpected(std::move(first.error()));
	return all;
}

result<std::vector<buffer>>
process_set::import_all(const buffer &mine, std::span<const unique_fd> theirs,
			const std::function<result<buffer>(int)> &import) const
{
	std::vector<buffer> all;

	for (unsigned r = 0; r < ranks_; r++) {
		if (r != rank_ && !theirs[r])
			return wrong(errc::protocol, r, "it gives no memory");
		auto got = r == rank_ ? mine : import(theirs[r].get());
		if (!got)
			return std::unexpected(std::move(got.error()).at(r));
		all.push_back(*std::move(got));
	}
	return all;
}

result<std::vector<buffer>>
process_set::exchange(const buffer &mine, const result<unique_fd> &own,
		      const std::function<result<buffer>(int)> &import)
{
	constexpr auto in_short = [](const auto &) { return uint64_t{0}; };
	const deadline until = limit();
	std::array<unique_fd, processes::most> theirs;

	auto all = agree(note::kind::memory, own.transform(in_short), until,
			 own ? own->get() : -1, theirs)
			   .and_then([&](const values &) {
		return import_all(mine, theirs, import);
	});
	SLUICE_CHECK(agree(note::kind::memory, all.transform(in_short), until));
	return all;
}

bool process_set::begin_run() noexcept
{
	if (running_)
		return false;
	runs_++;
	ended_ = {};
	running_ = true;
	told_ = false;
	return true;
}

// A process that cannot be told sees that this process is gone.
void process_set::tell_of_run(const result<size_t> &how) noexcept
{
	if (std::exchange(told_, true))
		return;
	note told = note_of(note::kind::run, how);
	told.number = runs_;
	for (unsigned r = 0; r < ranks_; r++)
		if (r != rank_)
			(void)tell(r, told);
}

void process_set::end_run() noexcept
{
	tell_of_run(fail(errc::cancelled, where(rank_), "it has given up the run"));
	running_ = false;
}

operation process_set::listen(unsigned rank) noexcept
{
	return ring_.start("poll", errc::system, {}, [&](io_uring_sqe *sqe) {
		io_uring_prep_poll_add(sqe, sockets_[rank].get(), POLLIN);
	});
}

std::optional<result<size_t>> process_set::heard_of_run(unsigned rank) noexcept
{
	if (has_ended_run(rank))
		return value_of(*std::exchange(ended_[rank], {}), rank);
	for (unsigned some = most_at_once; some; some--) {
		auto said = take(rank);

		if (!said)
			break;
		if (!*said)
			return std::unexpected(std::move(said->error()));
		const note &n = (*said)->what;
		// all calls so far are over
		if (is_past(n, calls_ + 1) || keep_early(rank, **said))
			continue;
		if (n.what == note::kind::run && n.number == runs_)
			return value_of(n, rank);
		return elsewhere(rank, n, note::kind::run);
	}
	return {};
}

} // namespace sluice::detail
