// SPDX-License-Identifier: MIT
// Collectives of GPUs: their effect on memory, as the CPU sees it, how they are started,
// and how they fail.
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "group_test.hpp"

using namespace sluice;
using namespace std::chrono_literals;
using detail::pattern;

namespace {

struct GroupOperationTest : GroupTest, ::testing::WithParamInterface<pattern> {
	void run(const collective_case &c)
	{
		group by = all();
		world w(memory, ++seed_);
		auto made = do_collective(w, by, c);

		ASSERT_TRUE(made) << c.text() << ": " << made.error().message();
		auto moved = run_in_time(*made, [&] { w.restore(); });
		ASSERT_TRUE(moved) << c.text() << ": " << moved.error().message();
		EXPECT_EQ(*moved, made->bytes()) << c.text();
		ASSERT_TRUE(w.right()) << c.text();
	}

private:
	uint32_t seed_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Operation, GroupOperationTest,
			 ::testing::ValuesIn(all_patterns), name_of_pattern);

} // namespace

TEST_P(GroupOperationTest, DoesWhatItIsDefinedToDo)
{
	const pattern kind = GetParam();
	const unsigned root = has_root(kind) ? ranks() - 1 : 0;

	for (size_t block : {1, 1003, 4096})
		for (bool in_place : {false, true})
			for (variant how : all_variants)
				for (bool prelaunch : {false, true})
					if (detail::allows(kind, in_place, how) &&
					    (!in_place || has_in_place(kind)))
						run({kind, ranks(), root, block,
						     in_place, how, prelaunch});
}

namespace {

/// 64 MiB for each rank, in blocks of an odd size.
struct GroupOfMuchTest : GroupTest {
	void SetUp() override
	{
		GroupTest::SetUp();
		if (IsSkipped())
			return;
		block = (64 << 20) / ranks() + 3;
		noise = random_bytes(block + 1000, 1);
		for (unsigned r = 0; r < ranks(); r++) {
			much.push_back(good(gpus[r].vram((ranks() + 1) * block + 1)));
			all_blocks.push_back(much[r].part(1, ranks() * block));
			own.push_back(much[r].part(1 + ranks() * block, block));
		}
	}
	slice part(unsigned rank, unsigned which) const
	{
		return all_blocks[rank].part(which * block, block);
	}
	/// Each @p n gives different bytes.
	void fill(const slice &to, unsigned n) const
	{
		std::memcpy(to.data(), noise.data() + n, block);
	}
	bool holds(const slice &one, unsigned n) const
	{
		return !std::memcmp(one.data(), noise.data() + n, block);
	}

	size_t block;
	std::vector<std::byte> noise;
	std::vector<buffer> much;
	slices all_blocks, own;
};

} // namespace

TEST_F(GroupOfMuchTest, AllGather)
{
	unsigned first = 0;

	for (variant how : {variant::automatic, variant::bcst, variant::b2b})
		for (bool prelaunch : {false, true}) {
			first += ranks();
			for (unsigned r = 0; r < ranks(); r++)
				fill(own[r], first + r);
			auto made = good(all().all_gather(all_blocks, own,
							  {how, prelaunch, {}}));
			if (how == variant::automatic) {
				EXPECT_EQ(made.how(), variant::pcpy);
			}
			auto moved = run_in_time(made);
			ASSERT_GOOD(moved);
			for (unsigned r = 0; r < ranks(); r++)
				for (unsigned from = 0; from < ranks(); from++)
					EXPECT_TRUE(holds(part(r, from), first + from))
						<< name(how) << ", " << from << " to "
						<< r;
		}
}

TEST_F(GroupOfMuchTest, AllToAllInPlace)
{
	const unsigned n = ranks();

	for (bool prelaunch : {false, true}) {
		const unsigned first = prelaunch * n * n;

		auto fill_all = [&] {
			for (unsigned r = 0; r < n; r++)
				for (unsigned to = 0; to < n; to++)
					fill(part(r, to), first + r * n + to);
		};

		fill_all();
		auto made = good(all().all_to_all(all_blocks, all_blocks,
						  {variant::swap, prelaunch, {}}));
		auto moved = run_in_time(made, fill_all);
		ASSERT_GOOD(moved);
		for (unsigned r = 0; r < n; r++)
			for (unsigned from = 0; from < n; from++)
				EXPECT_TRUE(holds(part(r, from), first + from * n + r))
					<< from << " to " << r;
	}
}

TEST_F(GroupTest, RunsAgain)
{
	slices to, from;

	for (const buffer &one : memory) {
		from.push_back(one.part(0, 3000));
		to.push_back(one.part(4096, ranks() * 3000));
	}
	auto gather = good(all().all_gather(to, from));
	for (uint32_t round = 0; round < 20; round++) {
		for (unsigned r = 0; r < ranks(); r++)
			put_random(from[r], 100 * round + r);
		auto moved = gather.run().wait();
		ASSERT_GOOD(moved);
		for (unsigned r = 0; r < ranks(); r++)
			for (const slice &one : to)
				ASSERT_BYTES(one.part(r * 3000, 3000).bytes(),
					     from[r].bytes())
					<< round;
	}
}

// Host memory, and SVM memory that is in the host.
TEST_F(GroupTest, ReachesTheHostsMemory)
{
	std::vector<buffer> shared;
	group by = all();

	for (device &gpu : gpus)
		shared.push_back(
			good(ranks() % 2 ? buffer::host(size) : gpu.svm(size, false)));
	shared[0] = good(buffer::host(size));
	world w(shared, 1);
	auto made = do_collective(w, by, a_case(variant::automatic, false));
	ASSERT_GOOD(made);
	auto moved = made->run().wait();
	ASSERT_GOOD(moved);
	EXPECT_TRUE(w.right());
}

namespace {

/// SVM memory in the GPUs. Other GPUs reach it there only by xGMI.
struct SharedInGpusTest : GroupTest {
	void SetUp() override
	{
		GroupTest::SetUp();
		if (IsSkipped())
			return;
		if (!gpus[0].inside().node().what.svm || !std::getenv("XGMI"))
			GTEST_SKIP()
				<< "nothing links the GPUs (XGMI= says that something does)";
		for (device &gpu : gpus)
			shared.push_back(good(gpu.svm(size)));
	}

	/// The memory stays where it is.
	void run(const collective_case &c)
	{
		std::vector<device_counters> before;
		group by = all();
		world w(shared, 1);
		auto made = do_collective(w, by, c);
		auto bring = [&] {
			w.restore();
			before.clear();
			for (unsigned r = 0; r < ranks(); r++) {
				auto there = gpus[r].prefetch(shared[r]);
				EXPECT_GOOD(there);
				before.push_back(good(gpus[r].counters()));
			}
		};

		ASSERT_GOOD(made);
		bring();
		auto moved = run_in_time(*made, bring);
		ASSERT_TRUE(moved) << c.text() << ": " << moved.error().message();
		for (unsigned r = 0; r < ranks(); r++) {
			auto now = good(gpus[r].counters());

			EXPECT_EQ(now.migrated_in, before[r].migrated_in) << r;
			EXPECT_EQ(now.migrated_out, before[r].migrated_out) << r;
		}
		EXPECT_TRUE(w.right()) << c.text();
	}

	std::vector<buffer> shared;
};

} // namespace

TEST_F(SharedInGpusTest, AllVariants)
{
	for (variant how : {variant::pcpy, variant::bcst, variant::b2b})
		for (bool prelaunch : {false, true})
			run(a_case(how, prelaunch));
}

TEST_F(SharedInGpusTest, SwapsInPlace)
{
	for (bool prelaunch : {false, true})
		run({pattern::all_to_all, ranks(), 0, 4096, true, variant::swap,
		     prelaunch});
}

TEST_F(GroupTest, AllGpusBeginByOneSystemCall)
{
	for (bool prelaunch : {false, true}) {
		group by = all();
		world w(memory, 1);
		auto made =
			good(do_collective(w, by, a_case(variant::pcpy, prelaunch)));
		auto moved = in_time(made, [&] {
			auto before = ring.system_calls();
			auto running = made.run();

			EXPECT_EQ(ring.system_calls() - before, 1u);
			made.release();
			EXPECT_EQ(ring.system_calls() - before, 1u);
			return running.wait();
		});
		ASSERT_GOOD(moved);
	}
}

namespace {

/// Counts the system calls of this process between two calls of getppid(2), by a child
/// that traces it: its exit status is the count, or 255.
class call_counter {
public:
	call_counter()
	{
		int ready[2];

		EXPECT_EQ(::pipe(ready), 0);
		child_ = ::fork();
		if (!child_)
			::_exit(trace(::getppid(), ready[1]));
		char byte;
		EXPECT_EQ(::read(ready[0], &byte, 1), 1);
		::close(ready[0]);
		::close(ready[1]);
		::getppid();
	}
	int stop()
	{
		int status = 0;

		::getppid();
		::waitpid(child_, &status, 0);
		return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
	}

private:
	static bool next_call(pid_t of, int &signal, uint64_t &number)
	{
		__ptrace_syscall_info info{};
		int status;

		do {
			if (::ptrace(PTRACE_SYSCALL, of, 0, signal) ||
			    ::waitpid(of, &status, 0) != of || !WIFSTOPPED(status))
				return false;
			signal = WSTOPSIG(status);
			if (signal != (SIGTRAP | 0x80)) {
				signal = status >> 16 ? 0 : signal;
				continue;
			}
			signal = 0;
			::ptrace(PTRACE_GET_SYSCALL_INFO, of, sizeof(info), &info);
		} while (info.op != PTRACE_SYSCALL_INFO_ENTRY);
		number = info.entry.nr;
		return true;
	}
	static int trace(pid_t of, int ready)
	{
		int status, signal = 0, calls = 0;
		uint64_t number = 0;

		if (::ptrace(PTRACE_SEIZE, of, 0, PTRACE_O_TRACESYSGOOD) ||
		    ::ptrace(PTRACE_INTERRUPT, of, 0, 0) ||
		    ::waitpid(of, &status, 0) != of || ::write(ready, "", 1) != 1)
			return 255;
		while (number != SYS_getppid)
			if (!next_call(of, signal, number))
				return 255;
		while (next_call(of, signal, number) && number != SYS_getppid)
			calls++;
		return number == SYS_getppid ? calls : 255;
	}

	pid_t child_;
};

} // namespace

// Not even the first run makes more than one, and releasing it makes none.
TEST_F(GroupTest, MakesNoOtherSystemCall)
{
	group by = all();
	world w(memory, 1);
	auto made = good(do_collective(w, by, a_case(variant::b2b, true)));
	auto moved = in_time(made, [&] {
		call_counter counter;
		auto running = made.run();

		made.release();
		EXPECT_EQ(counter.stop(), 1);
		return running.wait();
	});
	ASSERT_GOOD(moved);
	EXPECT_TRUE(w.right());
}

static void expect_error(const result<size_t> &got, errc code, uint32_t index)
{
	ASSERT_FALSE(got);
	EXPECT_EQ(got.error().code(), code);
	EXPECT_EQ(got.error().index(), index);
}

TEST_F(GroupTest, PrelaunchedHoldsUntilReleased)
{
	for (variant how : {variant::pcpy, variant::bcst, variant::b2b}) {
		group by = all();
		world w(memory, 1);
		auto made = good(do_collective(w, by, a_case(how, true)));

		for (int round = 0; round < 3; round++) {
			auto moved = in_time(made, [&] {
				const bool untouched = w.untouched();
				auto running = made.run();
				auto held = running.wait_until(after(20ms));

				// on a busy machine, some ranks have given up
				if (!held && held.error().index() != error::no_index)
					return held;
				expect_error(held, errc::timeout, error::no_index);
				EXPECT_FALSE(running.of(0));
				EXPECT_EQ(bool(w.untouched()), untouched);
				made.release();
				return running.wait();
			});
			ASSERT_GOOD(moved);
			EXPECT_TRUE(w.right());
		}
	}
}

TEST_F(GroupTest, PrelaunchedHasOneRunAtATime)
{
	group by = all();
	world w(memory, 1);
	auto made = good(do_collective(w, by, a_case(variant::b2b, true)));
	auto moved = in_time(made, [&] {
		auto first = made.run(), second = made.run();

		expect_error(second.wait(), errc::busy, 0);
		made.release();
		return first.wait();
	});

	ASSERT_GOOD(moved);
	EXPECT_TRUE(w.right());
	moved = run_in_time(made);
	ASSERT_GOOD(moved);
}

TEST_F(GroupTest, ARunEndsWithTheRankThatIsAskedLast)
{
	group by = all();
	world w(memory, 1);
	auto made = good(do_collective(w, by, a_case(variant::b2b, true)));
	auto first = made.run();

	made.release();
	for (unsigned r = 0; r < ranks(); r++)
		EXPECT_TRUE(ends(first, r, 30s)) << r;
	// the first run still exists
	auto moved = run_in_time(made);
	ASSERT_GOOD(moved);
}

// Each rank reports it. Then the collective runs again.
TEST_F(GroupTest, PrelaunchedGivesUp)
{
	group by = all();
	world w(memory, 1);
	slices to, from;

	for (unsigned r = 0; r < ranks(); r++) {
		to.push_back(w.take(r, ranks() * 100));
		from.push_back(w.take(r, 100));
	}
	auto made = good(by.all_gather(to, from, {variant::pcpy, true, 1ms}));
	auto running = made.run();
	auto gone = running.wait();
	ASSERT_FALSE(gone);
	EXPECT_EQ(gone.error().code(), errc::timeout);
	EXPECT_EQ(gone.error().index(), 0u);
	for (unsigned r = 0; r < ranks(); r++) {
		ASSERT_FALSE(running.of(r));
		EXPECT_EQ(running.of(r).error().code(), errc::timeout);
		EXPECT_EQ(running.of(r).error().index(), r);
		EXPECT_EQ(running.of(r).error().where(), gpus[r].info().address);
	}
	EXPECT_TRUE(w.untouched());
	// The engines give up a run that is not waited for, too.
	{
		auto dropped = made.run();
	}
	EXPECT_TRUE(w.untouched());
}

TEST_F(GroupTest, SeveralAtOnce)
{
	std::vector<std::vector<buffer>> own(3);
	std::vector<group> groups;
	std::vector<std::unique_ptr<world>> worlds;
	std::vector<collective> made;
	std::vector<collective_run> running;

	for (unsigned i = 0; i < 3; i++) {
		for (device &gpu : gpus)
			own[i].push_back(good(gpu.vram(size)));
		groups.push_back(all());
		worlds.push_back(std::make_unique<world>(own[i], i));
		made.push_back(good(do_collective(
			*worlds[i], groups[i],
			a_case(i ? variant::b2b : variant::pcpy, i == 1))));
	}
	auto held = in_time(made[1], [&] {
		running.clear();
		for (collective &one : made)
			running.push_back(one.run());
		made[1].release();
		return running[1].wait();
	});
	ASSERT_GOOD(held);
	for (collective_run &one : running) {
		auto moved = one.wait();
		ASSERT_GOOD(moved);
	}
	for (const auto &one : worlds)
		EXPECT_TRUE(one->right());
}

// Each has its own engine, so the second one need not wait.
TEST_F(GroupTest, TwoThatArePrelaunchedGoInAnyOrder)
{
	group by = all();
	std::vector<buffer> others;

	for (device &gpu : gpus)
		others.push_back(good(gpu.vram(size)));
	world w(memory, 1), v(others, 2);
	auto first = good(do_collective(w, by, a_case(variant::b2b, true)));
	auto second = good(do_collective(v, by, a_case(variant::b2b, true)));
	bool held = true;
	auto moved = in_time(first, [&] {
		auto one = first.run(), two = second.run();

		second.release();
		auto released = two.wait();
		EXPECT_TRUE(!released || v.right());
		EXPECT_TRUE(!held || w.untouched());
		first.release();
		auto later = one.wait();
		held = !later;
		return released ? std::move(later) : std::move(released);
	});
	ASSERT_GOOD(moved);
	EXPECT_TRUE(v.right());
	EXPECT_TRUE(w.right());
}

TEST_F(GroupTest, MemoryGoesWithItsLastUser)
{
	std::optional<collective> made;
	buffer from = good(gpus[0].vram(4096)), to = good(gpus[1].vram(4096));

	{
		group by = all();
		const message one[] = {{0, 1, to, from}};
		made.emplace(good(by.send(one)));
	}
	unsigned users = from.users();
	EXPECT_GT(users, 1u);
	auto running = made->run();
	made.reset();
	auto moved = running.wait();
	ASSERT_GOOD(moved);
	EXPECT_EQ(from.users(), 1u);
}

TEST_F(GroupTest, SaysWhatIsWrong)
{
	context other = good(context::open());
	std::vector<device> nine, none;
	auto made = group::make(ring, none);

	ASSERT_FALSE(made);
	EXPECT_EQ(made.error().message(), "group: 0 GPUs: a group has 1 to 8");
	while (nine.size() < 9)
		nine.push_back(good(device::open(ring, gpus[0].info().address)));
	made = group::make(ring, nine);
	ASSERT_FALSE(made);
	EXPECT_EQ(made.error().message(), "group: 9 GPUs: a group has 1 to 8");
	made = group::make(other, gpus);
	ASSERT_FALSE(made);
	EXPECT_EQ(made.error().code(), errc::usage);
	group by = all();
	slices wrong(ranks(), memory[0]);
	auto bad = by.broadcast(0, wrong);
	ASSERT_FALSE(bad);
	EXPECT_EQ(bad.error().code(), errc::usage);
	bad = by.broadcast(0, slices(memory.begin(), memory.end()),
			   {variant::b2b, true, 1h});
	ASSERT_FALSE(bad);
	EXPECT_EQ(bad.error().where(), "hold");
}

// One GPU is a group, too, and it may have nothing to do.
TEST_F(GroupTest, OneRankAlone)
{
	group by = good(group::make(ring, std::span(gpus).first(1)));
	const slice one[] = {memory[0].part(0, 100)},
		    two[] = {memory[0].part(200, 100)};
	auto idle = good(by.broadcast(0, one));
	auto gather = good(by.all_gather(one, two));

	EXPECT_EQ(idle.bytes(), 0u);
	EXPECT_EQ(idle.run().wait(), 0u);
	put_random(two[0], 7);
	EXPECT_EQ(gather.run().wait(), 100u);
	EXPECT_BYTES(one[0].bytes(), two[0].bytes());
}
