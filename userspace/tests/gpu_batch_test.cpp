// SPDX-License-Identifier: MIT
// Batches on GPUs: their effect on memory, and how they fail.
#include <atomic>
#include <cerrno>
#include <csignal>
#include <deque>
#include <fcntl.h>
#include <numeric>
#include <openssl/evp.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "gpu_test.hpp"
#include "sluice/unique_fd.hpp"

using namespace sluice;
using namespace std::chrono_literals;

namespace {

using way = detail::gpu::way;

/// Tests that run in each way in which batches get to the kernel.
struct GpuCopyTest : GpuTest, ::testing::WithParamInterface<way> {
	void SetUp() override
	{
		if (GetParam() != way::command)
			WANTS_BATCHES();
		GpuTest::SetUp();
		if (IsSkipped())
			return;
		// This way requires memory to be attached.
		host = good(buffer::host(size));
		out = good(buffer::host(size));
		put_random(host, 1);
		for (auto &gpu : gpus) {
			auto used = gpu.inside().use(GetParam());
			ASSERT_GOOD(used);
		}
		attach(host);
		attach(out);
	}
};

std::string name_of(const ::testing::TestParamInfo<way> &info)
{
	constexpr const char *names[] = {"ring", "call", "command"};

	return names[static_cast<int>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Way, GpuCopyTest,
			 ::testing::Values(way::ring, way::call, way::command),
			 name_of);

/// A fence that signals when it is told to.
class told_fence {
public:
	told_fence() : timeline_(::open(path, O_RDWR | O_CLOEXEC)) {}
	bool there() const { return bool(timeline_); }
	/// Its file, a new descriptor each time.
	unique_fd file() const
	{
		struct {
			uint32_t value = 1;
			char name[32] = "told";
			int32_t fence = -1;
		} made;

		::ioctl(timeline_.get(), _IOWR('W', 0, decltype(made)), &made);
		return unique_fd(made.fence);
	}
	void signal() const
	{
		uint32_t one = 1;

		::ioctl(timeline_.get(), _IOW('W', 1, uint32_t), &one);
	}

private:
	static constexpr auto path = "/sys/kernel/debug/sync/sw_sync";
	unique_fd timeline_;
};

/// Batches that have not begun.
struct held_batches {
	~held_batches() { fence.signal(); }

	told_fence fence;
	std::deque<batch> all;
	std::vector<operation> running;
};

struct GpuBatchTest : GpuTest {
	void SetUp() override
	{
		WANTS_BATCHES();
		GpuTest::SetUp();
	}
	uint64_t word_at(size_t offset) const
	{
		uint64_t word;

		std::memcpy(&word, host.data() + offset, 8);
		return word;
	}
	void put_word(size_t offset, uint64_t word)
	{
		std::memcpy(host.data() + offset, &word, 8);
	}
	/// A wait that is over at once: it still counts as much as an engine could move.
	batch &long_wait(batch &in)
	{
		put_word(0, 3);
		return in.wait(host.part(0, 4), compare::equal, 3,
			       gpus[0].limits().wait);
	}
	/// Submits waits until the GPU has no room for another one.
	void fill_up(held_batches &held)
	{
		while (held.all.size() < 1000) {
			batch &one = held.all.emplace_back();

			long_wait(one).after(held.fence.file().get()).nonblocking();
			auto op = gpus[0].submit(one);
			ASSERT_TRUE(ring.submit());
			if (op.poll()) {
				auto end = op.wait();
				ASSERT_FALSE(end);
				ASSERT_EQ(end.error().code(), errc::busy)
					<< end.error().message();
				return;
			}
			held.running.push_back(std::move(op));
		}
		FAIL() << "there is always room";
	}
};

} // namespace

TEST_P(GpuCopyTest, BeginsAfterFences)
{
	buffer memory = good(gpus[0].vram(size));
	batch clear, copy;
	told_fence early, late;

	if (!early.there() || !late.there())
		GTEST_SKIP() << "there is no sw_sync";
	run(gpus[0], clear.fill(memory, 0));
	copy.copy(memory, host).after(early.file().get()).after(late.file().get());
	auto running = gpus[0].submit(copy);
	early.signal();
	auto waited = running.wait_until(after(500ms));
	ASSERT_FALSE(waited);
	EXPECT_EQ(waited.error().code(), errc::timeout);
	EXPECT_EQ(std::ranges::count(memory.bytes(), std::byte{0}),
		  static_cast<ptrdiff_t>(size));
	late.signal();
	auto moved = running.wait();
	ASSERT_GOOD(moved);
	EXPECT_BYTES(memory.bytes(), host.bytes());
	// Again: the fences have signaled.
	run(gpus[0], clear);
	run(gpus[0], copy);
	EXPECT_BYTES(memory.bytes(), host.bytes());
}

TEST_P(GpuCopyTest, BeginsAfterSoManyFencesAndNoMore)
{
	const uint32_t most = gpus[0].limits().fences;
	told_fence fence;
	batch copy;

	if (!fence.there())
		GTEST_SKIP() << "there is no sw_sync";
	ASSERT_GT(most, 0u);
	auto file = fence.file();
	fence.signal();
	copy.copy(out, host);
	for (uint32_t i = 0; i < most; i++)
		copy.after(file.get());
	run(gpus[0], copy);
	EXPECT_BYTES(out.bytes(), host.bytes());
	copy.after(file.get());
	auto failed = gpus[0].submit(copy).wait();
	ASSERT_FALSE(failed);
	EXPECT_EQ(failed.error().code(), errc::usage) << failed.error().message();
}

TEST_F(GpuBatchTest, AFileThatHasNoFenceIsAMistake)
{
	unique_fd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
	batch copy;

	copy.copy(out, host).after(file.get());
	ASSERT_FALSE(copy.check());
	EXPECT_EQ(copy.check().error().code(), errc::usage);
	EXPECT_EQ(copy.check().error().where(), "after");
}

// Host to the first GPU, to the last one, and back, in pieces of odd sizes.
TEST_P(GpuCopyTest, CopiesAcrossGpusAtAnyAlignment)
{
	device &first = gpus.front(), &last = gpus.back();
	buffer near = good(first.vram(size)), far = good(last.vram(size));
	std::mt19937 random(7);
	batch in, across, back;
	auto attached = first.attach(far);

	ASSERT_GOOD(attached);
	std::ranges::fill(out.bytes(), std::byte{0x5a});
	std::vector<std::byte> expected(size, std::byte{0x5a});
	for (size_t at = 0; at < size - 9000; at += 9000) {
		size_t n = 1 + random() % 4000, from = at + random() % 64;
		size_t mid = at + random() % 64, to = at + random() % 64;

		in.copy(near.part(mid, n), host.part(from, n));
		across.copy(far.part(to, n), near.part(mid, n));
		back.copy(out.part(mid, n), far.part(to, n));
		std::copy_n(host.data() + from, n,
			    expected.begin() + static_cast<ptrdiff_t>(mid));
	}
	run(first, in);
	run(first, across);
	run(last, back);
	EXPECT_BYTES(out.bytes(), expected);
}

TEST_P(GpuCopyTest, CopiesALot)
{
	buffer from = good(gpus[0].vram(9 << 20)), to = good(gpus[0].vram(9 << 20));
	batch all;

	put_random(from, 3);
	all.copy(to.part(0, to.size() - 3), from.part(3, from.size() - 3));
	run(gpus[0], all);
	EXPECT_BYTES(to.bytes().first(to.size() - 3), from.bytes().subspan(3));
}

TEST_P(GpuCopyTest, HintsChangeNoBytes)
{
	for (hint what : {hint::background, hint::bandwidth, hint::latency}) {
		batch all;

		put_random(host, static_cast<uint32_t>(what));
		all.copy(out, host).hinted(what);
		run(gpus[0], all);
		EXPECT_BYTES(out.bytes(), host.bytes());
	}
}

TEST_P(GpuCopyTest, Broadcasts)
{
	std::vector<buffer> all;
	std::vector<slice> to;
	batch once;

	for (int i = 0; i < 8; i++) {
		all.push_back(good(gpus[0].vram(2 * page_size)));
		to.push_back(all.back().part(static_cast<size_t>(i), 5001));
	}
	once.broadcast(to, host.part(77, 5001));
	EXPECT_EQ(once.bytes(), 8 * 5001u);
	run(gpus[0], once);
	for (const slice &one : to)
		EXPECT_BYTES(one.bytes(), host.part(77, 5001).bytes());
}

TEST_P(GpuCopyTest, Fills)
{
	buffer memory = good(gpus[0].vram(2 * page_size));
	std::vector<std::byte> expected(2 * page_size);
	batch once;

	once.fill(memory.part(5, 1003), 0x44332211).fill(memory.part(4096, 1024), ~0u);
	run(gpus[0], once);
	for (size_t i = 0; i < 1003; i++)
		expected[5 + i] = static_cast<std::byte>(0x11 * (i % 4 + 1));
	std::fill_n(expected.begin() + 4096, 1024, std::byte{0xff});
	EXPECT_BYTES(memory.bytes(), expected);
}

TEST_P(GpuCopyTest, CopiesRectangles)
{
	buffer memory = good(gpus[0].vram(size));
	std::vector<std::byte> expected(size);
	batch once;

	once.copy_rectangle(memory.part(3, 90000), host.part(11, 70000),
			    {100, 50, 1003, 777});
	run(gpus[0], once);
	for (size_t row = 0; row < 50; row++)
		std::copy_n(host.data() + 11 + row * 777, 100,
			    expected.begin() + static_cast<ptrdiff_t>(3 + row * 1003));
	EXPECT_BYTES(memory.bytes(), expected);
}

// Blocks of attention: 512 of them at any place, to one piece.
TEST_P(GpuCopyTest, GathersBlocks)
{
	constexpr size_t blocks = 512, bytes = 1024;
	buffer scattered = good(gpus[0].vram(2 * blocks * bytes));
	std::vector<size_t> order(2 * blocks);
	batch gather(blocks);

	put_random(scattered, 5);
	std::iota(order.begin(), order.end(), 0u);
	std::ranges::shuffle(order, std::mt19937(9));
	for (size_t i = 0; i < blocks; i++)
		gather.copy(out.part(i * bytes, bytes),
			    scattered.part(order[i] * bytes, bytes));
	run(gpus[0], gather);
	for (size_t i = 0; i < blocks; i++)
		ASSERT_BYTES(out.part(i * bytes, bytes).bytes(),
			     scattered.part(order[i] * bytes, bytes).bytes());
	EXPECT_EQ(scattered.users(), 2u);
}

TEST_P(GpuCopyTest, MemoryThatIsNotAttachedIsAnError)
{
	buffer strange = good(buffer::host(page_size));
	buffer memory = good(gpus[0].vram(page_size));
	batch all;

	all.copy(memory, strange);
	auto failed = gpus[0].submit(all).wait();
	ASSERT_FALSE(failed);
	EXPECT_EQ(failed.error().code(), errc::usage);
	EXPECT_TRUE(failed.error().message().contains("attach it"))
		<< failed.error().message();
	// The batch can be used again.
	ASSERT_TRUE(gpus[0].attach(strange));
	run(gpus[0], all);
}

TEST_F(GpuBatchTest, Swaps)
{
	buffer a = good(gpus[0].vram(size)), b = good(gpus[0].vram(size));
	batch once;

	put_random(a, 1);
	put_random(b, 2);
	once.swap(a.part(13, 50001), b.part(100, 50001));
	run(gpus[0], once);
	auto was_a = random_bytes(size, 1), was_b = random_bytes(size, 2);
	std::swap_ranges(was_a.begin() + 13, was_a.begin() + 13 + 50001,
			 was_b.begin() + 100);
	EXPECT_BYTES(a.bytes(), was_a);
	EXPECT_BYTES(b.bytes(), was_b);
}

TEST_F(GpuBatchTest, WaitsWritesAndAdds)
{
	buffer memory = good(gpus[0].vram(page_size));
	batch first, second;

	put_word(0, 0);
	put_word(8, 40);
	first.wait(host.part(0, 4), compare::greater_equal, 3,
		   gpus[0].limits().wait / 4)
		.copy(memory, host.part(page_size, page_size))
		.write(host.part(16, 8), 0x123456789abcdef0)
		.add(memory.part(0, 8), 2);
	auto waiting = gpus[0].submit(first);
	EXPECT_FALSE(waiting.poll());
	second.write(host.part(0, 8), 3);
	run(gpus.back(), second);
	ASSERT_TRUE(waiting.wait()) << waiting.wait().error().message();
	EXPECT_EQ(word_at(16), 0x123456789abcdef0u);
	uint64_t added, before;
	std::memcpy(&added, memory.data(), 8);
	std::memcpy(&before, host.data() + page_size, 8);
	EXPECT_EQ(added, before + 2);
}

TEST_F(GpuBatchTest, AWaitGivesUp)
{
	batch all;

	put_word(0, 0);
	put_word(8, 1);
	all.wait(host.part(0, 4), compare::equal, 3, 1ms).write(host.part(8, 8), 2);
	auto gone = gpus[0].submit(all).wait();
	ASSERT_FALSE(gone);
	EXPECT_EQ(gone.error().code(), errc::timeout);
	EXPECT_EQ(word_at(8), 1u);
	// The device is not at fault, and works.
	all.clear();
	all.write(host.part(8, 8), 5);
	run(gpus[0], all);
	EXPECT_EQ(word_at(8), 5u);
}

TEST_F(GpuBatchTest, Records)
{
	buffer memory = good(gpus[0].vram(size));
	batch all;
	batch_record notes[2];

	std::memset(out.data(), 0, 2 * sizeof(notes[0]));
	all.record(out.part(0, 64))
		.copy(memory, host)
		.barrier()
		.record(out.part(64, 64))
		.fill(memory.part(0, 4096), 7);
	run(gpus[0], all);
	std::memcpy(notes, out.data(), sizeof(notes));
	for (const auto &note : notes) {
		EXPECT_EQ(note.status, batch_record::done);
		EXPECT_GE(note.end, note.start);
		EXPECT_TRUE(gpus[0].limits().engines >> note.engine & 1);
	}
	EXPECT_GE(notes[1].start, notes[0].end);
	EXPECT_EQ(static_cast<unsigned>(memory.data()[0]), 7u);
}

TEST_F(GpuBatchTest, FansOut)
{
	buffer memory = good(gpus[0].vram(size));
	batch all;

	for (size_t at = 0; at < size; at += size / 64)
		all.copy(memory.part(at, size / 64), host.part(at, size / 64));
	all.placed(place::fan_out);
	run(gpus[0], all);
	EXPECT_EQ(all.outcome().engines, gpus[0].limits().engines);
	EXPECT_EQ(all.outcome().vram_bytes, size);
	EXPECT_EQ(all.outcome().system_bytes, size);
	EXPECT_EQ(all.outcome().peer_bytes, 0u);
	EXPECT_BYTES(memory.bytes(), host.bytes());
	all.clear();
	all.copy(memory, host).placed(place::one_engine).engines(2);
	run(gpus[0], all);
	EXPECT_EQ(all.outcome().engines, 2u);
}

// They may alternate: buffers are listed, not operations.
TEST_P(GpuCopyTest, BuffersThatAreNamedOftenAreFew)
{
	constexpr size_t many = 6, times = 250, bytes = 64;
	std::vector<buffer> to;
	batch all;

	for (size_t i = 0; i < many; i++) {
		to.push_back(good(buffer::host(times * bytes)));
		attach(to.back());
	}
	for (size_t n = 0; n < times; n++)
		for (const buffer &one : to)
			all.copy(one.part(n * bytes, bytes),
				 host.part(n * bytes, bytes));
	run(gpus[0], all);
	for (const buffer &one : to)
		EXPECT_BYTES(one.bytes().first(times * bytes),
			     host.bytes().first(times * bytes));
}

// Its result cannot be queried without a descriptor; it still counts as run.
TEST_P(GpuCopyTest, RunsWithoutADescriptorLeft)
{
	std::vector<unique_fd> taken;
	batch all;

	all.copy(out, host);
	run(gpus[0], all);
	std::memset(out.data(), 0, size);
	for (;;) {
		unique_fd one(::fcntl(0, F_DUPFD_CLOEXEC, 0));
		if (!one)
			break;
		taken.push_back(std::move(one));
	}
	auto moved = gpus[0].submit(all).wait();
	taken.clear();
	EXPECT_BYTES(out.bytes(), host.bytes());
	if (moved)
		return;
	EXPECT_EQ(moved.error().code(), errc::system) << moved.error().message();
	EXPECT_EQ(moved.error().number(), EMFILE) << moved.error().message();
}

TEST_F(GpuBatchTest, HintsChooseEngines)
{
	batch all;

	for (size_t at = 0; at < size; at += size / 64)
		all.copy(out.part(at, size / 64), host.part(at, size / 64));
	all.hinted(hint::bandwidth);
	run(gpus[0], all);
	EXPECT_EQ(all.outcome().engines, gpus[0].limits().engines);
	all.hinted(hint::background);
	run(gpus[0], all);
	EXPECT_EQ(std::popcount(all.outcome().engines), 1);
	auto prepared = good(gpus[0].prepare(all));
	auto ran = prepared.run().wait();
	EXPECT_GOOD(ran);
	all.placed(place::fan_out);
	run(gpus[0], all);
	EXPECT_EQ(all.outcome().engines, gpus[0].limits().engines);
	// A batch with an order has no such placement; the hint is still valid.
	all.hinted(hint::bandwidth).barrier().copy(out.part(0, 4), host.part(0, 4));
	run(gpus[0], all);
	EXPECT_EQ(std::popcount(all.outcome().engines), 1);
}

// The engine waits until all are queued. Its ring already has two of the jobs.
TEST_F(GpuBatchTest, BackgroundWorkIsBehindWhatComesLater)
{
	constexpr size_t behind = 8;
	const auto &limits = gpus[0].limits();
	const uint32_t engine = limits.wait_engines & -limits.wait_engines;
	std::vector<batch> queued(behind + 1); // the last one is not in the background
	auto note = [&](size_t i) {
		batch_record one;

		std::memcpy(&one, out.data() + 64 * i, sizeof(one));
		return one;
	};

	for (size_t i = 0; i < queued.size(); i++)
		queued[i]
			.record(out.part(64 * i, 64))
			.copy(out.part(page_size, page_size), host.part(0, page_size))
			.hinted(i == behind ? hint::latency : hint::background)
			.placed(place::one_engine)
			.engines(engine);
	for (int tries = 20; tries; tries--) {
		batch hold;
		std::vector<operation> running;

		put_word(0, 0);
		hold.wait(host.part(0, 4), compare::equal, 3, limits.wait / 2)
			.placed(place::one_engine)
			.engines(engine);
		running.push_back(gpus[0].submit(hold));
		for (batch &one : queued)
			running.push_back(gpus[0].submit(one));
		auto given = ring.submit();
		put_word(0, 3);
		ASSERT_GOOD(given);
		bool held = bool(running[0].wait());
		for (size_t i = 1; i < running.size(); i++)
			ASSERT_GOOD(running[i].wait());
		if (!held) // the machine was too busy
			continue;
		for (size_t i = 2; i < behind; i++)
			EXPECT_GT(note(i).start, note(behind).start) << i;
		return;
	}
	FAIL() << "the engine never waited for all of them";
}

TEST_F(GpuBatchTest, ErrorsNameTheOperation)
{
	buffer memory = good(gpus[0].vram(size));
	batch all;

	all.copy(memory.part(0, 100), host.part(0, 100))
		.fill(memory.part(200, 100), 1)
		.copy(memory.part(50, 100), host.part(0, 100));
	auto failed = gpus[0].submit(all).wait();
	ASSERT_FALSE(failed);
	EXPECT_EQ(failed.error().code(), errc::usage);
	EXPECT_EQ(failed.error().number(), EEXIST);
	EXPECT_EQ(failed.error().index(), 2u);
	EXPECT_EQ(failed.error().where(), gpus[0].info().address);
	EXPECT_TRUE(failed.error().message().ends_with("operation 0"))
		<< failed.error().message();
	all.clear();
	all.copy(memory.part(0, 8), host.part(0, 8)).write(memory.part(4, 8), 1);
	failed = gpus[0].submit(all).wait();
	ASSERT_FALSE(failed);
	EXPECT_EQ(failed.error().number(), EINVAL);
	EXPECT_EQ(failed.error().index(), 1u);
	EXPECT_EQ(gpus[0].submit(all).wait().error().index(), 1u);
	all.clear();
	EXPECT_EQ(gpus[0].submit(all).wait().error().code(), errc::usage);
	all.fill({}, 1);
	EXPECT_EQ(gpus[0].submit(all).wait().error().index(), 0u);
}

TEST_F(GpuBatchTest, ABatchThatIsUnderWayIsNotTakenAgain)
{
	batch all;

	hold(all);
	auto first = gpus[0].submit(all), second = gpus[0].submit(all);
	ASSERT_FALSE(second.wait());
	EXPECT_EQ(second.wait().error().code(), errc::usage);
	all.fill(out, 1);
	EXPECT_FALSE(all.check());
	EXPECT_EQ(all.size(), 1u);
	release();
	ASSERT_TRUE(first.wait()) << first.wait().error().message();
	all.clear();
	all.fill(out.part(0, 4), 1);
	run(gpus[0], all);
}

TEST_F(GpuBatchTest, PreparedBatchesRunAgain)
{
	buffer memory = good(gpus[0].vram(size)), counter = good(gpus[0].vram(16));
	std::vector<operation> runs;
	uint64_t count;
	batch all;

	all.copy(memory, out).add(counter.part(8, 8), 1);
	auto made = gpus[0].prepare(all);
	ASSERT_GOOD(made);
	for (int i = 0; i < 8; i++)
		runs.push_back(made->run());
	for (auto &one : runs)
		EXPECT_EQ(one.wait(), size + 8);
	std::memcpy(&count, counter.data() + 8, 8);
	EXPECT_EQ(count, 8u);
	// The batch is no longer needed.
	all.clear();
	for (uint32_t i = 0; i < 3; i++) {
		put_random(out, 100 + i);
		EXPECT_EQ(made->run().wait(), size + 8);
		EXPECT_BYTES(memory.bytes(), random_bytes(size, 100 + i));
	}
	runs.clear();
	for (int i = 0; i < 64; i++)
		runs.push_back(made->run());
	EXPECT_EQ(made->run().wait().error().code(), errc::busy);
}

// A run would only wait for the old fence, whatever happened since.
TEST_F(GpuBatchTest, WhatBeginsAfterAFenceIsNotPrepared)
{
	told_fence fence;
	batch all;

	if (!fence.there())
		GTEST_SKIP() << "there is no sw_sync";
	all.copy(out, host).after(fence.file().get());
	auto made = gpus[0].prepare(all);
	ASSERT_FALSE(made);
	EXPECT_EQ(made.error().code(), errc::usage);
}

TEST_F(GpuBatchTest, RunsOfANonblockingBatchDoNotWait)
{
	held_batches held;
	batch all;

	if (!held.fence.there())
		GTEST_SKIP() << "there is no sw_sync";
	long_wait(all).copy(out.part(0, 64), host.part(64, 64)).nonblocking();
	auto made = gpus[0].prepare(all);
	ASSERT_GOOD(made);
	ASSERT_NO_FATAL_FAILURE(fill_up(held));
	auto end = made->run().wait_until(after(10s));
	ASSERT_FALSE(end);
	EXPECT_EQ(end.error().code(), errc::busy) << end.error().message();
	held.fence.signal();
	for (auto &one : held.running)
		EXPECT_GOOD(one.wait());
	EXPECT_GOOD(made->run().wait());
}

namespace {

/// Stops this process for a moment, as ^Z, a debugger or the freezer does: the kernel
/// interrupts waits for room. Make it before batches are held back: fork() waits for
/// batches on the process's memory.
class stopper {
public:
	stopper() : child_(::fork())
	{
		if (child_ == 0) {
			::raise(SIGSTOP);
			::kill(::getppid(), SIGSTOP);
			::usleep(200000);
			::kill(::getppid(), SIGCONT);
			::_exit(0);
		}
		::waitpid(child_, nullptr, WUNTRACED);
	}
	~stopper()
	{
		// If it were killed after it was told, nobody might let us go on.
		if (!told_ && child_ > 0)
			::kill(child_, SIGKILL);
		::waitpid(child_, nullptr, 0);
	}
	stopper(const stopper &) = delete;

	void stop_us()
	{
		ASSERT_GT(child_, 0);
		told_ = true;
		::kill(child_, SIGCONT);
	}

private:
	pid_t child_;
	bool told_ = false;
};

} // namespace

TEST_F(GpuBatchTest, AProcessThatIsStoppedLosesNoBatch)
{
	stopper other;
	held_batches held;
	batch waits;

	if (!held.fence.there())
		GTEST_SKIP() << "there is no sw_sync";
	ASSERT_NO_FATAL_FAILURE(fill_up(held));
	long_wait(waits).copy(out.part(64, 64), host.part(64, 64));
	auto copied = gpus[0].submit(waits);
	EXPECT_FALSE(copied.poll());
	other.stop_us();
	// It waits, unless earlier batches have made room in the meantime.
	auto early = copied.wait_until(after(2s));
	if (!early) {
		EXPECT_EQ(early.error().code(), errc::timeout)
			<< early.error().message();
	}
	held.fence.signal();
	auto end = copied.wait_until(after(10s));
	EXPECT_GOOD(end);
	for (auto &one : held.running)
		EXPECT_GOOD(one.wait());
	EXPECT_BYTES(out.bytes().subspan(64, 64), host.bytes().subspan(64, 64));
}

TEST_F(GpuBatchTest, PreparingABadBatchNamesTheOperation)
{
	batch all;

	all.fill(out.part(0, 4), 1).add(out.part(12, 8), 1);
	auto made = gpus[0].prepare(all);
	ASSERT_FALSE(made);
	EXPECT_EQ(made.error().index(), 1u);
	EXPECT_EQ(gpus[0].prepare(batch()).error().code(), errc::usage);
}

namespace {

std::string digest(std::span<const std::byte> bytes)
{
	unsigned char out[EVP_MAX_MD_SIZE];
	unsigned n = 0;

	EVP_Digest(bytes.data(), bytes.size(), out, &n, EVP_sha256(), nullptr);
	return {reinterpret_cast<char *>(out), n};
}

unique_fd file_of(std::span<const std::byte> bytes)
{
	unique_fd file(::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));

	EXPECT_EQ(::pwrite(file.get(), bytes.data(), bytes.size(), 0),
		  static_cast<ssize_t>(bytes.size()));
	return file;
}

} // namespace

TEST_F(GpuBatchTest, ChainsWithFiles)
{
	auto content = random_bytes(size, 42);
	unique_fd from = file_of(content), to = file_of({});
	buffer memory = good(gpus[0].vram(size));
	batch in, back;
	operation read, first, second, write;

	in.copy(memory, host);
	back.copy(out, memory);
	{
		context::chain all(ring, 4);
		read = ring.read(from.get(), host, 0);
		first = gpus[0].submit(in);
		second = gpus[0].submit(back);
		write = ring.write(to.get(), out, 0);
	}
	auto before = ring.system_calls();
	EXPECT_EQ(write.wait(), size);
	// each completion may wake the waiter, and the kernel's own work for it once more
	EXPECT_LE(ring.system_calls() - before, 8u);
	EXPECT_EQ(read.wait(), size);
	EXPECT_EQ(first.wait(), size);
	EXPECT_EQ(second.wait(), size);
	std::vector<std::byte> copy(size);
	EXPECT_EQ(::pread(to.get(), copy.data(), size, 0), static_cast<ssize_t>(size));
	EXPECT_EQ(digest(copy), digest(content));
}

TEST_F(GpuBatchTest, ABatchThatIsCancelledWhileItWaitsInAChainNeverBegins)
{
	int ends[2];
	batch changes;
	operation read, fill;

	WANTS_BATCHES();
	ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
	unique_fd from(ends[0]), to(ends[1]);
	std::memset(out.data(), 0, size);
	changes.fill(out, 1);
	run(gpus[0], changes);
	EXPECT_EQ(changes.outcome().system_bytes, size);
	std::memset(out.data(), 0, size);
	{
		context::chain all(ring, 2);
		read = ring.read(from.get(), host.part(0, 1), context::current);
		fill = gpus[0].submit(changes);
	}
	EXPECT_FALSE(fill.poll());
	fill.cancel();
	EXPECT_FALSE(read.poll());
	ASSERT_EQ(::write(to.get(), "x", 1), 1);
	auto end = fill.wait_until(after(10s));
	ASSERT_FALSE(end);
	EXPECT_EQ(end.error().code(), errc::cancelled) << end.error().message();
	EXPECT_EQ(end.error().number(), ECANCELED);
	EXPECT_EQ(changes.outcome().system_bytes, 0u);
	EXPECT_EQ(read.wait(), 1u);
	EXPECT_EQ(out.data()[0], std::byte{0});
	// The batch can still run later.
	EXPECT_EQ(gpus[0].submit(changes).wait(), size);
	EXPECT_EQ(out.data()[0], std::byte{1});
}

// What comes behind it was cancelled by then, and must not come before it.
TEST_F(GpuBatchTest, ABatchOfAChainThatIsInterruptedEnds)
{
	stopper other;
	held_batches held;
	batch waits;
	unique_fd to = file_of({});
	operation copied, write;

	if (!held.fence.there())
		GTEST_SKIP() << "there is no sw_sync";
	ASSERT_NO_FATAL_FAILURE(fill_up(held));
	long_wait(waits).copy(out.part(64, 64), host.part(64, 64));
	{
		context::chain all(ring, 2);
		copied = gpus[0].submit(waits);
		write = ring.write(to.get(), out.part(64, 64), 0);
	}
	EXPECT_FALSE(copied.poll());
	other.stop_us();
	auto end = copied.wait_until(after(5s));
	held.fence.signal();
	if (end) { // earlier batches have made room in the meantime
		EXPECT_EQ(write.wait(), 64u);
		return;
	}
	EXPECT_EQ(end.error().number(), EINTR) << end.error().message();
	EXPECT_EQ(write.wait().error().code(), errc::cancelled);
	EXPECT_EQ(::lseek(to.get(), 0, SEEK_END), 0);
}

// Engines still have it, and a chain is open: its fence is no part of that.
TEST_F(GpuBatchTest, ACancelledBatchHoldsUpNothingElse)
{
	told_fence early;
	std::atomic<bool> told = false;
	batch held;
	operation part;

	if (!early.there())
		GTEST_SKIP() << "there is no sw_sync";
	auto running = gpus[0].submit(held.fill(out, 1).after(early.file().get()));
	EXPECT_FALSE(running.wait_until(after(100ms)));
	std::jthread teller([&] {
		std::this_thread::sleep_for(5s);
		told = true;
		early.signal();
	});
	auto soon = ring.sleep_until(after(10ms));
	running.cancel();
	{
		context::chain all(ring, 2);
		part = ring.sleep_until(after(10ms));
		EXPECT_TRUE(soon.wait());
		EXPECT_FALSE(told);
	}
	EXPECT_TRUE(running.wait());
}

TEST_F(GpuBatchTest, AChainEndsAtABadBatch)
{
	unique_fd to = file_of({});
	batch wrong, empty;
	operation first, write;

	wrong.write(out.part(4, 8), 1);
	for (batch *bad : {&wrong, &empty}) {
		{
			context::chain all(ring, 2);
			first = gpus[0].submit(*bad);
			write = ring.write(to.get(), out, 0);
		}
		EXPECT_EQ(write.wait().error().code(), errc::cancelled);
		EXPECT_EQ(first.wait().error().code(), errc::usage);
	}
	EXPECT_EQ(::lseek(to.get(), 0, SEEK_END), 0);
	wrong.clear();
	wrong.fill(out, 1);
	{
		context::chain all(ring, 2);
		first = ring.read(-1, host, 0);
		write = gpus[0].submit(wrong);
	}
	EXPECT_EQ(write.wait().error().code(), errc::cancelled);
}
