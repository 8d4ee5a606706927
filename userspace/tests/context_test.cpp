// SPDX-License-Identifier: MIT
#include <algorithm>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "sluice/context.hpp"
#include "sluice/task.hpp"
#include "sluice/unique_fd.hpp"

using namespace sluice;
using namespace std::chrono_literals;

namespace {

struct ContextTest : ::testing::Test {
	void SetUp() override
	{
		auto opened = context::open({.operations = 8});

		// A kernel may forbid io_uring altogether.
		if (!opened && opened.error().code() == errc::unsupported)
			GTEST_SKIP() << opened.error().message();
		ASSERT_TRUE(opened) << opened.error().message();
		ring = std::make_unique<context>(std::move(*opened));
		int fds[2];
		ASSERT_EQ(::pipe(fds), 0);
		out = unique_fd(fds[0]);
		in = unique_fd(fds[1]);
		memory = *buffer::host(2 * page_size);
		ASSERT_EQ(memory.users(), 1u);
	}

	void put(const char *text)
	{
		auto size = static_cast<ssize_t>(std::strlen(text));
		ASSERT_EQ(::write(in.get(), text, std::strlen(text)), size);
	}

	operation start() { return ring->read(out.get(), memory, context::current); }

	unique_fd temporary()
	{
		return unique_fd(::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
	}

	unique_fd out, in;
	buffer memory;
	std::unique_ptr<context> ring;
};

} // namespace

TEST_F(ContextTest, NoMemoryIsNoPlaceForData)
{
	auto moved = memory;
	auto there = std::move(moved);

	for (const slice &none : {slice(buffer()), slice(moved)}) {
		EXPECT_EQ(ring->read(out.get(), none, 0).wait().error().code(),
			  errc::usage);
		EXPECT_EQ(ring->write(in.get(), none, 0).wait().error().code(),
			  errc::usage);
	}
}

TEST_F(ContextTest, Reads)
{
	put("abc");
	EXPECT_EQ(start().wait(), 3u);
	EXPECT_EQ(static_cast<char>(memory.data()[2]), 'c');
}

TEST_F(ContextTest, PollDoesNotWait)
{
	auto op = start();

	EXPECT_FALSE(op.poll());
	put("x");
	ASSERT_TRUE(op.wait_until(after(10s)));
	EXPECT_TRUE(op.poll());
}

TEST_F(ContextTest, WaitEndsInTimeAndTheOperationGoesOn)
{
	auto op = start();
	auto early = op.wait_until(after(10ms));

	ASSERT_FALSE(early);
	EXPECT_EQ(early.error().code(), errc::timeout);
	put("later");
	EXPECT_EQ(op.wait(), 5u);
}

TEST_F(ContextTest, CancelIsSaid)
{
	auto op = start();

	op.cancel();
	auto end = op.wait_until(after(10s));
	ASSERT_FALSE(end);
	EXPECT_EQ(end.error().code(), errc::cancelled);
}

TEST_F(ContextTest, DestroyingDrains)
{
	{
		auto op = start();
	}
	// If the read had been left behind, it would take this.
	put("kept");
	char text[5] = {};
	EXPECT_EQ(::read(out.get(), text, 4), 4);
	EXPECT_STREQ(text, "kept");
	EXPECT_EQ(memory.users(), 1u);
}

TEST_F(ContextTest, AnOperationKeepsItsMemory)
{
	auto op = start();

	EXPECT_EQ(memory.users(), 2u);
	memory = {};
	put("abc");
	EXPECT_EQ(op.wait(), 3u);
}

TEST_F(ContextTest, TooManyAreRefusedAndNoneIsLost)
{
	std::vector<operation> all;

	for (int i = 0; i < 8; i++)
		all.push_back(start());
	auto more = start();
	ASSERT_FALSE(more.wait());
	EXPECT_EQ(more.wait().error().code(), errc::busy);
	for (auto &op : all)
		EXPECT_FALSE(op.poll());
	// One operation takes it all.
	put("12345678");
	EXPECT_EQ(ring->run_once(after(10s)), 1u);
	EXPECT_EQ(std::ranges::count_if(all, &operation::poll), 1);
}

TEST_F(ContextTest, BadArgumentsAreErrors)
{
	auto outside = ring->read(out.get(), memory.part(page_size, 2 * page_size), 0);
	ASSERT_FALSE(outside.wait());
	EXPECT_EQ(outside.wait().error().code(), errc::usage);
	auto closed = ring->read(-1, memory, 0).wait();
	ASSERT_FALSE(closed);
	EXPECT_EQ(closed.error().code(), errc::input);
	EXPECT_EQ(closed.error().number(), EBADF);
	EXPECT_EQ(operation().wait().error().code(), errc::usage);
	EXPECT_FALSE(context::open({.operations = 0}));
	EXPECT_FALSE(buffer::host(0));
	EXPECT_FALSE(buffer::host(SIZE_MAX));
}

namespace {

/// 5 GiB of addresses, without memory.
struct large_block : detail::memory_block {
	static constexpr size_t bytes = size_t{5} << 30;

	large_block() : large_block(map()) {}
	explicit large_block(std::byte *mapped)
		: memory_block(memory::host, mapped, bytes), at(mapped)
	{
	}
	~large_block() override { ::munmap(at, bytes); }

	static std::byte *map()
	{
		void *mapped =
			::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		return mapped == MAP_FAILED ? nullptr
					    : static_cast<std::byte *>(mapped);
	}

	std::byte *at;
};

} // namespace

// An operation may move fewer bytes than asked for; but not its length modulo 4 GiB, which
// may be 0, and would be taken for the end of the file.
TEST_F(ContextTest, LengthsOfMoreThan32BitsAreCut)
{
	buffer large(new large_block);
	unique_fd none(::open("/dev/null", O_WRONLY | O_CLOEXEC));

	ASSERT_NE(large.data(), nullptr);
	for (size_t over : {size_t{0}, size_t{1}, page_size}) {
		slice much = large.part(0, (size_t{4} << 30) + over);

		put("abc");
		EXPECT_EQ(ring->read(out.get(), much, context::current).wait(), 3u);
		auto written = ring->write(none.get(), much, 0).wait();
		ASSERT_TRUE(written);
		EXPECT_GE(*written, size_t{1} << 30);
	}
}

// What comes behind would take all of it for transferred.
TEST_F(ContextTest, AChainHasNoPartThatIsCut)
{
	buffer large(new large_block);
	unique_fd none(::open("/dev/null", O_WRONLY | O_CLOEXEC));
	auto file = temporary();
	operation much, behind;

	ASSERT_NE(large.data(), nullptr);
	{
		context::chain chain(*ring, 2);
		much = ring->write(none.get(), large.part(0, size_t{2} << 30), 0);
		behind = ring->write(file.get(), memory.part(0, 3), 0);
	}
	ASSERT_FALSE(much.wait());
	EXPECT_EQ(much.wait().error().code(), errc::usage);
	EXPECT_EQ(behind.wait().error().code(), errc::cancelled);
	{
		context::chain chain(*ring, 1);
		much = ring->write(none.get(), large.part(0, size_t{1} << 30), 0);
	}
	EXPECT_TRUE(much.wait());
}

namespace {

volatile sig_atomic_t signals_raised;

/// Counts SIGPIPE while it exists.
struct pipe_signals {
	pipe_signals()
	{
		signals_raised = 0;
		before = std::signal(SIGPIPE,
				     [](int) { signals_raised = signals_raised + 1; });
	}
	~pipe_signals() { std::signal(SIGPIPE, before); }

	void (*before)(int);
};

} // namespace

TEST_F(ContextTest, WritingToNobodyIsAnError)
{
	pipe_signals counted;
	iovec one = {memory.data(), 1};

	out = {};
	if (::pwritev2(in.get(), &one, 1, -1, 0x100 /* RWF_NOSIGNAL */) < 0 &&
	    errno != EPIPE)
		GTEST_SKIP() << "this kernel cannot leave the signal out";
	auto written = ring->write(in.get(), memory, context::current).wait();
	ASSERT_FALSE(written);
	EXPECT_EQ(written.error().code(), errc::output);
	EXPECT_EQ(written.error().number(), EPIPE);
	EXPECT_EQ(signals_raised, 0);
}

TEST_F(ContextTest, ChainRunsInOrder)
{
	auto file = temporary();
	buffer copy = *buffer::host(page_size);
	operation w, r;

	std::memset(memory.data(), 'y', page_size);
	{
		context::chain chain(*ring, 2);
		w = ring->write(file.get(), memory.part(0, page_size), 0);
		r = ring->read(file.get(), copy, 0);
	}
	EXPECT_EQ(r.wait(), page_size);
	EXPECT_EQ(w.wait(), page_size);
	EXPECT_EQ(static_cast<char>(copy.data()[page_size - 1]), 'y');
}

TEST_F(ContextTest, ChainEndsAtAFailure)
{
	auto file = temporary();
	operation bad, behind;

	{
		context::chain chain(*ring, 2);
		bad = ring->read(-1, memory, 0);
		behind = ring->write(file.get(), memory, 0);
	}
	ASSERT_FALSE(behind.wait());
	EXPECT_EQ(behind.wait().error().code(), errc::cancelled);
	EXPECT_FALSE(bad.wait());
	EXPECT_EQ(::lseek(file.get(), 0, SEEK_END), 0);
}

// An operation that fails before it becomes a request is part of the chain, too.
TEST_F(ContextTest, ChainEndsAtWhatCouldNotBeStarted)
{
	auto file = temporary();
	operation first, bad, behind;

	{
		context::chain chain(*ring, 3);
		first = ring->write(file.get(), memory.part(0, 10), 0);
		bad = ring->write(file.get(), memory.part(1, 2 * page_size), 10);
		behind = ring->write(file.get(), memory.part(0, 10), 20);
	}
	ASSERT_FALSE(behind.wait());
	EXPECT_EQ(behind.wait().error().code(), errc::cancelled);
	EXPECT_EQ(bad.wait().error().code(), errc::usage);
	EXPECT_EQ(first.wait(), 10u);
	EXPECT_EQ(::lseek(file.get(), 0, SEEK_END), 10);
}

// It does not depend on the operations before it.
TEST_F(ContextTest, WhatCouldNotBeStartedInAChainIsDone)
{
	operation first, bad;

	{
		context::chain chain(*ring, 2);
		first = start();
		bad = ring->write(in.get(), memory.part(1, 2 * page_size), 0);
	}
	EXPECT_TRUE(bad.done());
	EXPECT_EQ(bad.wait().error().code(), errc::usage);
	first.cancel();
	EXPECT_EQ(first.wait().error().code(), errc::cancelled);
}

// The kernel links requests only within one call.
TEST_F(ContextTest, AChainThatIsOpenIsNotSubmitted)
{
	auto file = temporary();
	operation first, other = ring->sleep_until(after(1h)), behind;

	{
		context::chain chain(*ring, 2);
		first = ring->read(out.get(), memory.part(0, 3), context::current);
		EXPECT_FALSE(first.poll());
		EXPECT_FALSE(other.poll());
		EXPECT_TRUE(ring->submit());
		EXPECT_EQ(ring->run_once(deadline{}), 0u);
		behind = ring->write(file.get(), memory.part(0, 3), 0);
	}
	while (ring->run_once(after(20ms)).value_or(0))
		;
	EXPECT_FALSE(behind.poll());
	put("abc");
	EXPECT_EQ(behind.wait_until(after(10s)), 3u);
	EXPECT_EQ(first.wait(), 3u);
}

TEST_F(ContextTest, ToCancelCutsAChainThatIsOpen)
{
	auto file = temporary();
	operation first, other = ring->sleep_until(after(1h)), behind;

	{
		context::chain chain(*ring, 2);
		first = ring->read(out.get(), memory.part(0, 3), context::current);
		other.cancel();
		behind = ring->write(file.get(), memory.part(0, 3), 0);
	}
	ASSERT_FALSE(behind.wait());
	EXPECT_EQ(behind.wait().error().code(), errc::usage);
	EXPECT_EQ(other.wait().error().code(), errc::cancelled);
	put("abc");
	EXPECT_EQ(first.wait_until(after(10s)), 3u);
	EXPECT_EQ(::lseek(file.get(), 0, SEEK_END), 0);
}

TEST_F(ContextTest, ATimeBeforeAllTimeIsOver)
{
	EXPECT_TRUE(ring->sleep_until(deadline::min()).wait_until(after(10s)));
	EXPECT_FALSE(start().wait_until(deadline::min()));
}

namespace {

/// A chain of three: a read of the pipe, which waits, and two writes to a file.
struct ChainTest : ContextTest {
	void SetUp() override
	{
		ContextTest::SetUp();
		if (!ring)
			return;
		context::chain chain(*ring, 3);
		first = ring->read(out.get(), memory.part(0, 3), context::current);
		second = ring->write(file.get(), memory.part(0, 3), 0);
		third = ring->write(file.get(), memory.part(0, 3), 3);
	}

	/// The read goes on, and nothing else was done.
	void expect_the_read_alone()
	{
		EXPECT_FALSE(first.poll());
		put("abc");
		EXPECT_EQ(first.wait_until(after(10s)), 3u);
		while (ring->run_once(after(20ms)).value_or(0))
			;
		EXPECT_EQ(::lseek(file.get(), 0, SEEK_END), 0);
		EXPECT_EQ(ring->left_behind(), 0u);
		EXPECT_EQ(memory.users(), 1u);
	}

	unique_fd file = temporary();
	operation first, second, third;
};

void expect_cancelled(operation &op)
{
	auto end = op.wait_until(after(10s));

	ASSERT_FALSE(end) << "it was done";
	EXPECT_EQ(end.error().code(), errc::cancelled);
	EXPECT_EQ(end.error().number(), ECANCELED);
}

} // namespace

TEST_F(ChainTest, APartThatIsCancelledWhileItWaitsNeverBegins)
{
	ASSERT_TRUE(ring->submit());
	second.cancel();
	expect_the_read_alone();
	expect_cancelled(second);
	expect_cancelled(third);
}

TEST_F(ChainTest, TheLastPartIsCancelledAlone)
{
	ASSERT_TRUE(ring->submit());
	third.cancel();
	put("abc");
	expect_cancelled(third);
	EXPECT_EQ(second.wait(), 3u);
	EXPECT_EQ(first.wait(), 3u);
	EXPECT_EQ(::lseek(file.get(), 0, SEEK_END), 3);
}

TEST_F(ChainTest, ThePartThatRunsIsCancelledWithAllBehindIt)
{
	ASSERT_TRUE(ring->submit());
	first.cancel();
	for (operation *op : {&first, &second, &third})
		expect_cancelled(*op);
	put("kept");
	EXPECT_EQ(::lseek(file.get(), 0, SEEK_END), 0);
}

// Destroying it does not wait for the parts before it.
TEST_F(ChainTest, APartThatIsDestroyedWhileItWaitsNeverBegins)
{
	auto begun = clock::now();

	ASSERT_TRUE(ring->submit());
	second = {};
	third = {};
	EXPECT_LT(clock::now() - begun, 5s);
	EXPECT_EQ(ring->left_behind(), 2u);
	expect_the_read_alone();
}

// The same for an operation without a file, where destruction otherwise has no time limit.
TEST_F(ContextTest, ASleepThatIsDestroyedWhileItWaitsNeverBegins)
{
	auto begun = clock::now();
	operation first, sleep;

	{
		context::chain chain(*ring, 2);
		first = start();
		sleep = ring->sleep_until(after(1h));
	}
	ASSERT_TRUE(ring->submit());
	sleep = {};
	EXPECT_LT(clock::now() - begun, 5s);
	put("abc");
	// It reads fewer bytes than asked for: that alone ends a chain, too.
	EXPECT_EQ(first.wait_until(after(10s)), 3u);
	while (ring->run_once(after(20ms)).value_or(0))
		;
	EXPECT_EQ(ring->left_behind(), 0u);
}

TEST_F(ContextTest, ASleepInAChainHoldsUpWhatIsBehindIt)
{
	auto file = temporary();
	auto start = clock::now();
	operation sleep, behind;

	{
		context::chain chain(*ring, 2);
		sleep = ring->sleep_until(after(50ms));
		behind = ring->write(file.get(), memory, 0);
	}
	EXPECT_EQ(behind.wait(), memory.size());
	EXPECT_GE(clock::now() - start, 50ms);
	EXPECT_EQ(sleep.wait(), 0u);
}

TEST_F(ContextTest, TimersEnd)
{
	auto start_of_test = clock::now();
	auto timer = ring->sleep_until(after(20ms));

	EXPECT_EQ(timer.wait(), 0u);
	EXPECT_GE(clock::now() - start_of_test, 20ms);
	EXPECT_EQ(ring->sleep_until(clock::now() - 1s).wait(), 0u);
}

TEST_F(ContextTest, ReadyTellsWhatIsThere)
{
	auto input = ring->ready(out.get(), POLLIN);

	EXPECT_FALSE(input.poll());
	put("x");
	auto events = input.wait_until(after(10s));
	ASSERT_TRUE(events);
	EXPECT_TRUE(*events & POLLIN);
}

TEST_F(ContextTest, FdIsReadableWhenSomethingIsThere)
{
	auto op = start();
	pollfd p = {ring->fd(), POLLIN, 0};

	ASSERT_TRUE(ring->submit());
	EXPECT_EQ(::poll(&p, 1, 0), 0);
	put("x");
	EXPECT_EQ(::poll(&p, 1, 10000), 1);
	EXPECT_TRUE(op.poll());
}

namespace {

task<result<size_t>> copy_once(context &c, int from, int to, buffer memory)
{
	auto n = co_await c.read(from, memory, context::current);

	if (!n)
		co_return n;
	co_return co_await c.write(to, memory.part(0, *n), 0);
}

task<void> read_often(context &c, int file, slice to, int &count)
{
	for (int i = 0; i < 5; i++)
		if ((co_await c.read(file, to, 0)).value_or(0))
			count++;
}

task<void> nap(context &c, clock::duration d, int &count)
{
	(void)co_await c.sleep_until(after(d));
	count++;
}

task<void> await(operation &op, int &count)
{
	(void)co_await op;
	count++;
}

task<void> await_task(task<void> &other, int &count)
{
	co_await other;
	count++;
}

task<int> two_naps(context &c)
{
	int count = 0;

	co_await nap(c, 1ms, count);
	co_await nap(c, 1ms, count);
	co_return count;
}

} // namespace

// Somebody else's poll() takes in what a coroutine waits for, and may resume nobody.
TEST_F(ContextTest, TheDescriptorTellsOfACoroutineThatMayGoOn)
{
	auto file = temporary();
	operation other = ring->sleep_until(after(1h));
	int count = 0;

	ASSERT_EQ(::write(file.get(), "abc", 3), 3);
	auto reads = read_often(*ring, file.get(), memory.part(0, 3), count);
	pollfd fd = {ring->fd(), POLLIN, 0};
	for (int i = 0; i < 100 && !reads.done(); i++) {
		ASSERT_TRUE(ring->run_once(deadline{}));
		EXPECT_FALSE(other.poll());
		ASSERT_TRUE(ring->submit());
		if (!reads.done()) {
			ASSERT_EQ(::poll(&fd, 1, 10000), 1) << count << " reads";
		}
	}
	EXPECT_EQ(count, 5);
}

// What a coroutine starts when it goes on has to reach the kernel before a loop sleeps.
TEST_F(ContextTest, RunOnceLeavesNothingToSubmit)
{
	operation other = ring->sleep_until(after(1h));
	auto naps = two_naps(*ring);
	pollfd fd = {ring->fd(), POLLIN, 0};

	ASSERT_TRUE(ring->submit());
	for (auto until = after(50ms); clock::now() < until;)
		EXPECT_FALSE(other.poll());
	ASSERT_TRUE(ring->run_once(deadline{}));
	if (!naps.done()) {
		EXPECT_EQ(::poll(&fd, 1, 10000), 1);
	}
	EXPECT_EQ(naps.run(*ring), 2);
}

TEST_F(ContextTest, CoroutinesCopy)
{
	auto file = temporary();
	auto copying = copy_once(*ring, out.get(), file.get(), memory);

	EXPECT_FALSE(copying.done());
	put("hello");
	EXPECT_EQ(copying.run(*ring), 5u);
}

// Each coroutine waits by itself, without polling first.
TEST_F(ContextTest, CoroutinesEnterTheKernelOnceForEachWait)
{
	auto before = ring->system_calls();
	int count = 0;

	for (int i = 0; i < 20; i++)
		nap(*ring, 1ms, count).run(*ring);
	EXPECT_EQ(count, 20);
	EXPECT_LE(ring->system_calls() - before, 20u);
}

TEST_F(ContextTest, CoroutinesNest)
{
	EXPECT_EQ(two_naps(*ring).run(*ring), 2);
}

// Waiting cuts the chain; the waiter of the task is not left waiting.
TEST_F(ContextTest, ATaskGoesOnWhileAChainIsOpen)
{
	int count = 0;
	auto napping = nap(*ring, 1ms, count);
	auto file = temporary();
	operation late;

	{
		context::chain all(*ring, 2);
		napping.run(*ring);
		late = ring->write(file.get(), memory.part(0, 1), 0);
	}
	EXPECT_EQ(count, 1);
	EXPECT_EQ(late.wait().error().code(), errc::usage);
	EXPECT_TRUE(ring->write(file.get(), memory.part(0, 1), 0).wait());
}

// What a coroutine starts then is not part of the chain that is cut.
TEST_F(ContextTest, ATaskMayStartMoreWhileAChainIsOpen)
{
	auto napping = two_naps(*ring);
	context::chain all(*ring, 2);

	EXPECT_EQ(napping.run(*ring), 2);
}

// The chain may be the coroutine's own.
TEST_F(ContextTest, AChainThatACoroutineEndsHasEnded)
{
	auto chained = [](context &with) -> task<int> {
		context::chain all(with, 2);
		auto one = with.sleep_until(after(1ms));

		co_await one;
		co_return 1;
	}(*ring);

	EXPECT_EQ(chained.run(*ring), 1);
	EXPECT_TRUE(ring->sleep_until(after(1ms)).wait());
}

TEST_F(ContextTest, AnOperationMayBeMovedWhileItIsAwaited)
{
	int count = 0;
	auto op = std::make_unique<operation>(start());
	auto waiting = await(*op, count);
	operation moved = std::move(*op);

	put("abc");
	for (auto until = after(5s); !waiting.done() && clock::now() < until;)
		(void)ring->run_once(after(10ms));
	EXPECT_EQ(count, 1);
	EXPECT_EQ(moved.wait(), 3u);
}

// Its operation is gone, and another operation has its place.
TEST_F(ContextTest, ATaskThatIsDestroyedLateTakesNobodysPlace)
{
	int first = 0, second = 0;
	auto op = start();
	auto left = std::make_unique<task<void>>(await(op, first));

	op = operation();
	op = start();
	auto waiting = await(op, second);
	left.reset();
	put("abc");
	for (auto until = after(5s); !waiting.done() && clock::now() < until;)
		(void)ring->run_once(after(10ms));
	EXPECT_EQ(second, 1);
	EXPECT_EQ(first, 0);
}

TEST_F(ContextTest, ATaskThatIsDestroyedDrains)
{
	{
		auto copying = copy_once(*ring, out.get(), -1, memory);
	}
	EXPECT_EQ(memory.users(), 1u);
}

// Its operation is done, and the task is destroyed before it is resumed.
TEST_F(ContextTest, ATaskThatIsDestroyedInTheQueueIsNotResumed)
{
	int count = 0;
	{
		auto napping = nap(*ring, 1ms, count);
		(void)ring->sleep_until(after(50ms)).wait();
	}
	ASSERT_TRUE(ring->run_once(deadline{}));
	EXPECT_EQ(count, 0);
}

// The operation has another owner, and lives on.
TEST_F(ContextTest, AnOperationDoesNotResumeATaskThatIsDestroyed)
{
	int count = 0;
	auto op = start();

	{
		auto waiting = await(op, count);
	}
	put("abc");
	EXPECT_EQ(op.wait(), 3u);
	ASSERT_TRUE(ring->run_once(deadline{}));
	EXPECT_EQ(count, 0);
}

TEST_F(ContextTest, AnOperationThatIsDoneDoesNotResumeATaskThatIsDestroyed)
{
	int count = 0;
	auto op = start();
	{
		auto waiting = await(op, count);

		put("abc");
		EXPECT_EQ(op.wait(), 3u);
	}
	ASSERT_TRUE(ring->run_once(deadline{}));
	EXPECT_EQ(count, 0);
}

// The task that it waits for has another owner, and goes on.
TEST_F(ContextTest, ATaskDoesNotResumeOneThatIsDestroyed)
{
	int count = 0, late = 0;
	auto napping = nap(*ring, 1ms, count);
	{
		auto waiting = await_task(napping, late);
	}
	napping.run(*ring);
	EXPECT_EQ(count, 1);
	EXPECT_EQ(late, 0);
}

// The other order: nobody resumes the one that waits.
TEST_F(ContextTest, ATaskThatIsAwaitedMayBeDestroyedFirst)
{
	int count = 0, late = 0;
	std::optional<task<void>> napping(nap(*ring, 1ms, count));
	{
		auto waiting = await_task(*napping, late);

		napping.reset();
		EXPECT_FALSE(waiting.done());
	}
	EXPECT_EQ(count + late, 0);
}

TEST_F(ContextTest, ATaskMayBeMovedWhileItIsAwaited)
{
	int count = 0, after_it = 0;
	auto napping = nap(*ring, 1ms, count);
	auto waiting = await_task(napping, after_it);
	auto moved = std::move(napping);

	waiting.run(*ring);
	EXPECT_TRUE(moved.done());
	EXPECT_EQ(after_it, 1);
}

TEST_F(ContextTest, MovingAnOperationMovesTheOwnership)
{
	auto a = start();
	auto b = std::move(a);

	put("abc");
	EXPECT_EQ(b.wait(), 3u);
	EXPECT_EQ(a.wait().error().code(), errc::usage);
	b = start();
	EXPECT_FALSE(b.poll());
}

TEST(Error, ALongPathKeepsItsEnd)
{
	const std::string path = "/" + std::string(300, 'd') + "/données/file.bin";
	error why(errc::input, path, "open: No such file or directory");

	EXPECT_TRUE(why.where().starts_with("/ddd"));
	EXPECT_TRUE(why.where().ends_with("/données/file.bin")) << why.where();
	EXPECT_TRUE(why.message().ends_with("No such file or directory"));
}

TEST(Error, NoCharacterIsCut)
{
	std::string accents;

	for (int i = 0; i < 100; i++)
		accents += "é";
	for (size_t n = 0; n < 4; n++) {
		error why(errc::input, std::string(n, 'x') + accents, "");

		EXPECT_EQ(std::ranges::count(why.where(), '\xc3'),
			  std::ranges::count(why.where(), '\xa9'));
	}
}

TEST(Error, KeepsItsText)
{
	error e(errc::device, "rxe0", "it is gone", ENODEV);

	EXPECT_EQ(e.message(), "rxe0: it is gone");
	EXPECT_EQ(e.where(), "rxe0");
	EXPECT_EQ(std::move(e).at(7).index(), 7u);
	error cut(errc::usage, std::string(1000, 'w'), std::string(1000, 'x'));
	EXPECT_LE(cut.message().size(), 200u);
	EXPECT_NE(cut.message().find('x'), std::string_view::npos);
}

TEST(Buffer, SaysWherePagesAre)
{
	auto memory = *buffer::host(4 * page_size);

	memory.data()[0] = std::byte{1};
	auto nodes = memory.nodes();
	ASSERT_TRUE(nodes) << nodes.error().message();
	EXPECT_GE((*nodes)[0], 0);
	auto near = buffer::host(4 * page_size, {.numa_node = 0});
	ASSERT_TRUE(near) << near.error().message();
	EXPECT_TRUE(near->verify_node(0));
	EXPECT_FALSE(near->verify_node(1));
	EXPECT_FALSE(buffer::host(page_size, {.numa_node = 999}));
}
