// SPDX-License-Identifier: MIT
#include "migrations.hpp"

#include <algorithm>
#include <charconv>
#include <exception>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

#include "call.hpp"
#include "try.hpp"

namespace sluice::detail {

namespace {

/// Takes a number from the front of a text, and what has to follow it.
class number_reader {
public:
	explicit number_reader(std::string_view text) noexcept : text_(text) {}

	template <class T>
	number_reader &take(T &to, std::string_view behind, int base = 16) noexcept
	{
		const char *first = text_.data(), *last = first + text_.size();
		auto [end, err] = std::from_chars(first, last, to, base);

		ok_ = ok_ && err == std::errc();
		text_.remove_prefix(static_cast<size_t>(end - first));
		ok_ = ok_ && text_.starts_with(behind);
		text_.remove_prefix(ok_ ? behind.size() : 0);
		return *this;
	}
	bool ok() const noexcept { return ok_; }

private:
	std::string_view text_;
	bool ok_ = true;
};

} // namespace

// "5 <ns> -<pid> @<start>(<pages>) <from>-><to> ...", all in hex except the time and
// the process. Only the super user sees events of other processes.
std::optional<migration> parse_migration(std::string_view line) noexcept
{
	unsigned event = 0, process = 0;
	uint64_t ns = 0, start = 0;
	migration m{};

	number_reader numbers(line);
	numbers.take(event, " ")
		.take(ns, " -", 10)
		.take(process, " @", 10)
		.take(start, "(")
		.take(m.pages, ") ")
		.take(m.from, "->")
		.take(m.to, "");
	if (!numbers.ok() || event != KFD_SMI_EVENT_MIGRATE_START ||
	    !std::in_range<pid_t>(process))
		return {};
	m.process = static_cast<pid_t>(process);
	return m;
}

void count_migrations(device_counters &counters, std::string_view text, pid_t process,
		      uint32_t gpu_id) noexcept
{
	while (!text.empty()) {
		size_t end = std::min(text.find('\n'), text.size());
		auto m = parse_migration(text.substr(0, end));

		text.remove_prefix(std::min(end + 1, text.size()));
		if (!m || m->process != process)
			continue;
		if (m->to == gpu_id)
			counters.migrated_in += m->pages;
		if (m->from == gpu_id)
			counters.migrated_out += m->pages;
	}
}

migration_watch::migration_watch(engine &ring, unique_fd events,
				 uint32_t gpu_id) noexcept
	: ring_(ring), events_(std::move(events)), gpu_id_(gpu_id)
{
	complete = [](request &self, int res, unsigned flags) noexcept {
		auto &watch = static_cast<migration_watch &>(self);

		watch.look();
		if (flags & IORING_CQE_F_MORE)
			return;
		// It may end on its own, as when the ring had no room.
		watch.watching_ = !watch.ending_ && res >= 0;
		if (watch.watching_)
			watch.ring_.watch(watch.events_.get(), watch);
	};
	ring_.watch(events_.get(), *this);
}

result<unique_fd> open_migrations(const gpu_node &node)
{
	uint64_t mask = KFD_SMI_EVENT_MASK_FROM_INDEX(KFD_SMI_EVENT_MIGRATE_START);
	kfd_ioctl_smi_events_args args{};

	args.gpuid = node.what.kfd_id;
	if (int err = call(node.kfd, AMDKFD_IOC_SMI_EVENTS, &args))
		return fail_errno(node.name(), "AMDKFD_IOC_SMI_EVENTS", -err,
				  errc::device);
	unique_fd events(static_cast<int>(args.anon_fd));
	// No flag of the call does this.
	if (::fcntl(events.get(), F_SETFD, FD_CLOEXEC) < 0 ||
	    ::write(events.get(), &mask, sizeof(mask)) < 0)
		return fail_errno(node.name(), "events of amdkfd", errno, errc::device);
	return events;
}

result<std::unique_ptr<migration_watch>> migration_watch::open(engine &ring,
							       gpu_node &node)
{
	SLUICE_TRY(unique_fd events, open_migrations(node));
	return std::unique_ptr<migration_watch>(
		new migration_watch(ring, std::move(events), node.what.kfd_id));
}

// The ring must not refer to a request that was destroyed.
migration_watch::~migration_watch()
{
	if (!ring_.is_ours())
		return;
	ending_ = true;
	ring_.cancel(*this);
	if (ring_.reap_until([this] { return !watching_; }))
		std::terminate(); // the ring is broken
}

// Does not wait: the file says EAGAIN if there is nothing.
void migration_watch::look() noexcept
{
	ssize_t n = ::read(events_.get(), text_.data(), text_.size());

	if (n <= 0)
		return;
	auto got = static_cast<size_t>(n);
	count_migrations(counters_, {text_.data(), got}, ::getpid(), gpu_id_);
	if (got > room - longest_event)
		counters_.lost_events++;
}

device_counters migration_watch::counters() noexcept
{
	look();
	return counters_;
}

} // namespace sluice::detail
