// SPDX-License-Identifier: MIT
#include "sluice/context.hpp"

#include <atomic>
#include <sys/mman.h>
#include <sys/uio.h>

#include "engine.hpp"
#include "sluice/unique_fd.hpp"

#ifndef RWF_NOSIGNAL
#define RWF_NOSIGNAL 0x00000100
#endif

namespace sluice {

namespace {

// The kernel takes lengths of 32 bits, and transfers less than 2 GiB at once.
constexpr size_t most_at_once = size_t{1} << 30;

unsigned length_of(const slice &memory)
{
	return static_cast<unsigned>(std::min(memory.size(), most_at_once));
}

// Since Linux 6.18 a write can ask for no SIGPIPE if there is no reader. A kernel that
// does not know the flag would refuse each write.
// Without a file to try it with, nothing is known yet.
int flags_of_writes()
{
	static std::atomic<int> known = -1;
	char byte = 0;
	iovec one = {&byte, 1};

	if (known >= 0)
		return known;
	unique_fd file(::memfd_create("sluice", MFD_CLOEXEC));
	if (!file)
		return 0;
	known = ::pwritev2(file.get(), &one, 1, 0, RWF_NOSIGNAL) == 1 ? RWF_NOSIGNAL
								      : 0;
	return known;
}

// What follows in a chain takes it for granted that all was transferred.
result<void> check_transfer(const detail::engine &in, const char *what,
			    const slice &memory)
{
	if (!memory.of() || !memory.valid())
		return fail(errc::usage, what, "outside of its buffer");
	if (in.chaining() && memory.size() > most_at_once)
		return fail(
			errc::usage, what,
			"a part of a chain may move 1 GiB of a file at most: make two "
			"parts of it");
	return {};
}

} // namespace

context::context(std::unique_ptr<detail::engine> engine) noexcept
	: engine_(std::move(engine))
{
}

context::context(context &&) noexcept = default;
context &context::operator=(context &&) noexcept = default;
context::~context() = default;

result<context> context::open(options wanted)
{
	if (wanted.operations == 0 || wanted.operations > 65536)
		return fail(errc::usage, "context",
			    "operations must be between 1 and 65536");
	auto engine = std::make_unique<detail::engine>(wanted.operations);
	int err = engine->open(wanted.operations);

	if (err == -ENOSYS || err == -EPERM)
		return fail_errno("io_uring",
				  "this process may not use it, or the kernel lacks it",
				  -err, errc::unsupported);
	if (err)
		return fail_errno("io_uring", "setup", -err);
	return context(std::move(engine));
}

operation context::read(int file, slice to, uint64_t offset)
{
	if (auto right = check_transfer(*engine_, "read", to); !right)
		return engine_->failed(right.error());
	return engine_->start_on_file("read", errc::input, to, [&](io_uring_sqe *sqe) {
		io_uring_prep_read(sqe, file, to.data(), length_of(to), offset);
	});
}

operation context::write(int file, slice from, uint64_t offset)
{
	if (auto right = check_transfer(*engine_, "write", from); !right)
		return engine_->failed(right.error());
	return engine_->start_on_file("write", errc::output, from,
				      [&](io_uring_sqe *sqe) {
		io_uring_prep_write(sqe, file, from.data(), length_of(from), offset);
		sqe->rw_flags = flags_of_writes();
	});
}

operation context::sync(int file)
{
	return engine_->start_on_file("sync", errc::output, {}, [&](io_uring_sqe *sqe) {
		io_uring_prep_fsync(sqe, file, 0);
	});
}

operation context::ready(int fd, short events)
{
	return engine_->start("poll", errc::system, {}, [&](io_uring_sqe *sqe) {
		io_uring_prep_poll_add(sqe, fd, static_cast<unsigned>(events));
	});
}

operation context::sleep_until(deadline until)
{
	return engine_->sleep_until(until);
}

context::chain::chain(context &in, unsigned length) : engine_(in.engine_.get())
{
	engine_->begin_chain(length);
}

context::chain::~chain()
{
	engine_->end_chain();
}

result<void> context::submit()
{
	if (int err = engine_->submit_and_listen(); err < 0)
		return detail::ring_failed("context", -err);
	return {};
}

result<unsigned> context::run_once(deadline until)
{
	int n;

	// What comes may not belong to an operation. A caller that does not wait here
	// waits for fd(), and needs all completions to be taken.
	do
		n = engine_->run(until);
	while (n == 0 && until == deadline{});
	if (n < 0 && n != -ETIME)
		return detail::ring_failed("context", -n);
	return n < 0 ? 0u : static_cast<unsigned>(n);
}

int context::fd() const noexcept
{
	return engine_->fd();
}

unsigned context::left_behind() const noexcept
{
	return engine_->left_behind();
}

uint64_t context::system_calls() const noexcept
{
	return engine_->entered();
}

} // namespace sluice
