// SPDX-License-Identifier: MIT
// A group of two processes, each with its GPU. The test is rank 0. It starts itself once
// more, as rank 1, which does the same or misbehaves.
#include <csignal>
#include <filesystem>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>

#include "emulator.hpp"
#include "gpu_test.hpp"
#include "process_set.hpp"
#include "sluice/hosts.hpp"
#include "try.hpp"

using namespace sluice;
using namespace std::chrono_literals;

namespace {

constexpr size_t block = 5000, size = 64 << 10;
constexpr unsigned ranks = 2;

/// The state of one process: its GPU, its memory, and the other's memory.
struct member {
	member(const std::string &path, unsigned own, clock::duration patience)
		: rank(own),
		  gpu(good(device::open(ring, list_devices().at(own).address))),
		  all(good(processes::meet(ring, path, own, ranks, patience))),
		  memory(good(all.exchange(gpu, good(gpu.vram(size))))),
		  by(good(group::make(ring, gpu, all)))
	{
	}

	/// The data of rank @p r in @p round, from its block @p first on.
	static std::vector<std::byte> data(unsigned r, unsigned round,
					   unsigned first = 0, unsigned blocks = 1)
	{
		auto all = random_bytes(ranks * block, 10 * round + r);

		all.erase(all.begin(), all.begin() + first * block);
		all.resize(blocks * block);
		return all;
	}
	std::vector<slice> parts(size_t offset, size_t length) const
	{
		std::vector<slice> some;

		for (const buffer &one : memory)
			some.push_back(one.part(offset, length));
		return some;
	}

	result<collective> gather_to(size_t offset, const collective_options &how)
	{
		return by.all_gather(parts(offset, ranks * block), parts(1, block),
				     how);
	}
	/// Each puts its data into its source, and waits until the other has done so.
	void fill(unsigned round, unsigned blocks)
	{
		std::ranges::copy(data(rank, round, 0, blocks),
				  memory[rank].data() + 1);
		EXPECT_GOOD(all.barrier());
	}
	/// A busy machine may release it too late: all ranks are told, and try again.
	static result<size_t> run(collective &what)
	{
		for (int tries = what.prelaunched() ? 20 : 0;; tries--) {
			auto running = what.run();

			what.release();
			auto moved = running.wait();
			if (moved || moved.error().code() != errc::timeout || !tries)
				return moved;
		}
	}

	unsigned rank;
	context ring = good(context::open());
	device gpu;
	processes all;
	std::vector<buffer> memory;
	group by;
};

void all_gather(member &m, bool prelaunch)
{
	constexpr size_t at = 20000;
	auto made = good(m.gather_to(at, {variant::automatic, prelaunch, {}}));

	for (unsigned round = 0; round < 5; round++) {
		m.fill(round, 1);
		auto moved = member::run(made);
		ASSERT_GOOD(moved);
		EXPECT_EQ(*moved, ranks * ranks * block);
		for (unsigned r = 0; r < ranks; r++)
			EXPECT_BYTES(
				m.memory[m.rank].part(at + r * block, block).bytes(),
				member::data(r, round));
		EXPECT_GOOD(m.all.barrier());
	}
}

void swap_in_place(member &m)
{
	auto parts = m.parts(1, ranks * block);
	auto made = good(m.by.all_to_all(parts, parts));

	EXPECT_EQ(made.how(), variant::swap);
	m.fill(0, ranks);
	auto moved = member::run(made);
	ASSERT_GOOD(moved);
	EXPECT_EQ(*moved, made.bytes());
	for (unsigned r = 0; r < ranks; r++)
		EXPECT_BYTES(parts[m.rank].part(r * block, block).bytes(),
			     member::data(r, 0, m.rank));
	EXPECT_GOOD(m.all.barrier());
}

// Only rank 0 has work to do; both have the data when it is done.
void broadcast(member &m)
{
	auto made = good(m.by.broadcast(0, m.parts(1, block)));

	m.fill(3, 1);
	auto moved = member::run(made);
	ASSERT_GOOD(moved);
	EXPECT_EQ(*moved, block);
	EXPECT_BYTES(m.memory[m.rank].part(1, block).bytes(), member::data(0, 3));
}

struct alone : host_transport {
	unsigned hosts() const noexcept override { return 1; }
	unsigned host() const noexcept override { return 0; }
	result<void> all_gather(const slice &) override { return {}; }
	result<void> all_to_all(const slice &, const slice &) override { return {}; }
	result<void> broadcast(unsigned, const slice &) override { return {}; }
	result<void> gather(unsigned, const slice &) override { return {}; }
	result<void> scatter(unsigned, const slice &) override { return {}; }
};

void is_no_host(member &m)
{
	alone over;
	auto made = host_group::make(m.by, over);

	ASSERT_FALSE(made);
	EXPECT_EQ(made.error().code(), errc::usage);
	EXPECT_EQ(made.error().message(),
		  "host_group: the group is of several processes of this host");
}

void one_run_at_a_time(member &m)
{
	auto made = good(m.gather_to(20000, {}));
	auto first = made.run(), second = made.run();

	for (unsigned r = 0; r < ranks; r++) {
		ASSERT_FALSE(second.of(r));
		EXPECT_EQ(second.of(r).error().code(), errc::busy);
		EXPECT_EQ(second.of(r).error().index(), r);
	}
	EXPECT_GOOD(first.wait());
	// A run that is not waited for ends, and the next one gets its results.
	{
		auto dropped = made.run();
	}
	EXPECT_GOOD(m.all.barrier());
	EXPECT_GOOD(made.run().wait());
}

void differs(member &m)
{
	const size_t length = m.rank ? 100 : 200;
	auto made = m.by.broadcast(0, m.parts(1, length));

	ASSERT_FALSE(made);
	EXPECT_EQ(made.error().code(), errc::usage);
	EXPECT_EQ(made.error().index(), 1 - m.rank);
	// and those that name different roots or receivers of the same bytes
	made = m.by.gather(m.rank, m.memory[0].part(1, ranks * 100),
			   m.parts(20000, 100));
	ASSERT_FALSE(made);
	EXPECT_EQ(made.error().code(), errc::usage);
	EXPECT_EQ(made.error().index(), 1 - m.rank);
	made = m.by.broadcast(m.rank ? 7 : 0, m.parts(1, length));
	ASSERT_FALSE(made);
	EXPECT_EQ(made.error().code(), errc::usage);
	EXPECT_EQ(made.error().message(),
		  "broadcast: rank 7 is the root, the group has 2 ranks");
	// and both are at the same call
	EXPECT_GOOD(m.all.barrier());
}

// Rank 1 enters the barrier while rank 0 only polls the run.
void asks_of_the_run(member &m)
{
	auto made = good(m.gather_to(20000, {}));
	auto running = made.run();

	// Rank 1 has not told how its run ended.
	if (!m.rank)
		for (auto end = after(1s); clock::now() < end;)
			running.poll();
	EXPECT_GOOD(m.all.barrier());
	EXPECT_GOOD(running.wait());
}

// Rank 1 has said something, and rank 0 asks while a chain is open.
void asks_in_a_chain(member &m)
{
	auto made = good(m.gather_to(20000, {}));
	auto running = made.run();

	if (!m.rank) {
		operation first, second;

		for (auto end = after(1s); clock::now() < end;)
			(void)m.ring.run_once(after(10ms));
		{
			context::chain all(m.ring, 2);
			first = m.ring.sleep_until(after(1ms));
			EXPECT_FALSE(running.done());
			EXPECT_FALSE(running.of(1));
			auto waited = running.wait_until(after(10ms));
			ASSERT_FALSE(waited);
			EXPECT_EQ(waited.error().code(), errc::usage);
			EXPECT_EQ(waited.error().index(), error::no_index);
			second = m.ring.sleep_until(after(1ms));
		}
		EXPECT_GOOD(second.wait_until(after(5s)));
	}
	EXPECT_GOOD(m.all.barrier());
	EXPECT_GOOD(running.wait());
}

// The child of rank 1 drops the run, which goes on.
void forks(member &m)
{
	auto made = good(m.gather_to(20000, {}));
	auto running = made.run();

	if (m.rank) {
		pid_t child = ::fork();

		if (child == 0) {
			{
				auto dropped = std::move(running);
			}
			::_exit(0);
		}
		EXPECT_EQ(::waitpid(child, nullptr, 0), child);
	}
	EXPECT_GOOD(running.wait());
	EXPECT_GOOD(m.all.barrier());
}

void expect_lost(const auto &got, unsigned rank)
{
	ASSERT_FALSE(got);
	EXPECT_EQ(got.error().code(), errc::peer_lost) << got.error().message();
	EXPECT_EQ(got.error().index(), rank);
}

// The engines of rank 1 hold the run that it has begun when it is killed.
void is_killed(member &m)
{
	auto made = good(m.gather_to(20000, {variant::b2b, true, {}}));
	auto running = made.run();

	if (m.rank) {
		ASSERT_GOOD(m.ring.submit());
		::kill(::getpid(), SIGKILL);
	}
	made.release();
	auto begun = clock::now();
	auto moved = running.wait_until(after(60s));
	EXPECT_LT(clock::now() - begun, 30s);
	ASSERT_FALSE(moved);
	EXPECT_TRUE(running.poll());
	expect_lost(running.of(1), 1);
	auto again = made.run();
	EXPECT_FALSE(again.wait_until(after(30s)));
	expect_lost(again.of(1), 1);
	expect_lost(m.all.barrier(), 1);
	// Its memory exists as long as it has a user.
	put_random(m.memory[1].part(0, 100), 5);
	EXPECT_BYTES(m.memory[1].part(0, 100).bytes(), random_bytes(100, 5));
}

// Work that begins before the reset is over fails, too.
void expect_works_again(const device_info &info)
{
	const deadline patience = after(30s);

	for (;;) {
		context ring = good(context::open());
		batch one(1);
		auto moved = [&]() -> result<size_t> {
			SLUICE_TRY(auto gpu, device::open(ring, info.address));
			SLUICE_TRY(auto memory, gpu.vram(4096));
			one.fill(memory.part(0, 4096), 1);
			return gpu.submit(one).wait();
		}();

		if (moved)
			return;
		ASSERT_LT(clock::now(), patience) << moved.error().message();
		std::this_thread::sleep_for(100ms);
	}
}

// The driver resets the GPU of rank 1. Both are told whose it was.
void a_gpu_hangs(member &m)
{
	auto made = good(m.gather_to(20000, {variant::b2b, false, {}}));

	ASSERT_GOOD(made.run().wait());
	if (m.rank)
		emulator().tell(m.rank, "engine all hang");
	ASSERT_GOOD(m.all.barrier());
	auto running = made.run();
	auto moved = running.wait_until(after(50s));
	ASSERT_FALSE(moved);
	EXPECT_EQ(moved.error().code(), errc::device) << moved.error().message();
	EXPECT_EQ(moved.error().index(), 1u);
	EXPECT_GOOD(running.of(0));
	EXPECT_FALSE(running.of(1));
	if (m.rank)
		expect_works_again(m.gpu.info());
}

// Rank 1 continues when the test is over.
void stop_rank_1(member &m, result<size_t> (*wait)(member &, collective_run &))
{
	auto made = good(m.gather_to(20000, {}));
	auto running = made.run();

	if (m.rank) {
		ASSERT_GOOD(m.ring.submit());
		::raise(SIGSTOP);
		return;
	}
	auto moved = wait(m, running);
	ASSERT_FALSE(moved);
	EXPECT_EQ(moved.error().code(), errc::timeout) << moved.error().message();
	EXPECT_EQ(moved.error().number(), 0);
	EXPECT_EQ(moved.error().index(), 1u);
	EXPECT_TRUE(running.done());
	EXPECT_GOOD(running.of(0));
}

void is_stopped(member &m)
{
	stop_rank_1(m,
		    [](member &, collective_run &running) { return running.wait(); });
}

void is_stopped_beside_others(member &m)
{
	stop_rank_1(m, [](member &in, collective_run &running) -> result<size_t> {
		while (!running.done())
			SLUICE_CHECK(in.ring.run_once(never));
		return running.of(1);
	});
}

// There is no place for one more operation when rank 1 is late.
void is_stopped_while_all_is_full(member &m)
{
	stop_rank_1(m, [](member &in, collective_run &running) -> result<size_t> {
		const auto begun = clock::now();
		std::vector<operation> more;

		while (!in.all.inside()->ring().full())
			more.push_back(in.ring.sleep_until(after(60s)));
		while (!running.done())
			SLUICE_CHECK(in.ring.run_once(never));
		EXPECT_LT(clock::now() - begun, 30s);
		return running.of(1);
	});
}

// Rank 1 gives a file that is not GPU memory. It is told that rank 0 cannot take it.
void gives_a_file(member &m)
{
	auto import = [&](int dmabuf) { return m.gpu.import_dmabuf(dmabuf); };
	unique_fd file(::memfd_create("file", MFD_CLOEXEC));
	auto got =
		m.rank ? m.all.inside()->exchange(m.memory[1], std::move(file), import)
		       : m.all.exchange(m.gpu, m.memory[0]);

	ASSERT_FALSE(got);
	EXPECT_EQ(got.error().code(), errc::usage) << got.error().message();
	EXPECT_EQ(got.error().index(), 1 - m.rank) << got.error().message();
	EXPECT_GOOD(m.all.barrier());
}

const std::pair<const char *, void (*)(member &)> plays[] = {
	{"all_gather", [](member &m) { all_gather(m, false); }},
	{"prelaunched", [](member &m) { all_gather(m, true); }},
	{"swap_in_place", swap_in_place},
	{"broadcast", broadcast},
	{"is_no_host", is_no_host},
	{"one_run_at_a_time", one_run_at_a_time},
	{"asks_of_the_run", asks_of_the_run},
	{"asks_in_a_chain", asks_in_a_chain},
	{"forks", forks},
	{"differs", differs},
	{"gives_a_file", gives_a_file},
	{"is_stopped", is_stopped},
	{"is_stopped_beside_others", is_stopped_beside_others},
	{"is_stopped_while_all_is_full", is_stopped_while_all_is_full},
	{"is_killed", is_killed},
	{"a_gpu_hangs", a_gpu_hangs},
};

void play(const std::string &name, const std::string &path, unsigned rank)
{
	member m(path, rank, name.starts_with("is_stopped") ? 10s : 60s);

	for (auto &[title, run] : plays)
		if (title == name)
			run(m);
}

struct GroupProcessesTest : ::testing::TestWithParam<const char *> {
	void SetUp() override
	{
		WANTS_BATCHES();
		if (list_devices().size() < ranks)
			GTEST_SKIP() << "there are no two GPUs";
		if (GetParam() == std::string_view("a_gpu_hangs") &&
		    !emulator().there())
			GTEST_SKIP() << "nobody can disturb these GPUs";
	}
};

INSTANTIATE_TEST_SUITE_P(Play, GroupProcessesTest, ::testing::ValuesIn([] {
				 std::vector<const char *> names;

				 for (auto &[name, run] : plays)
					 names.push_back(name);
				 return names;
			 }()),
			 [](const auto &one) { return std::string(one.param); });

} // namespace

TEST_P(GroupProcessesTest, EndsWellForBoth)
{
	char directory[] = "/tmp/group-XXXXXX";
	ASSERT_TRUE(::mkdtemp(directory));
	std::string path = std::string(directory) + "/socket", name = GetParam();
	const char *words[] = {"rank-1", "--play", name.c_str(), path.c_str(), nullptr};
	pid_t child;
	int status = 0;

	ASSERT_EQ(::posix_spawn(&child, "/proc/self/exe", nullptr, nullptr,
				const_cast<char **>(words), environ),
		  0);
	play(name, path, 0);
	::kill(child, SIGCONT);
	EXPECT_EQ(::waitpid(child, &status, 0), child);
	if (name == "is_killed")
		EXPECT_TRUE(WIFSIGNALED(status));
	else
		EXPECT_EQ(status, 0);
	std::filesystem::remove_all(directory);
}

int main(int argc, char **argv)
{
	::testing::InitGoogleTest(&argc, argv);
	if (argc != 4 || std::string_view(argv[1]) != "--play")
		return RUN_ALL_TESTS();
	::alarm(120);
	play(argv[2], argv[3], 1);
	return ::testing::UnitTest::GetInstance()->Failed();
}
