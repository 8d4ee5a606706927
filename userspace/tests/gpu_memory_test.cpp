// SPDX-License-Identifier: MIT
// Memory of GPUs, and the references that keep it alive.
#include <fcntl.h>
#include <filesystem>
#include <grp.h>
#include <optional>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <linux/kfd_ioctl.h>

#include "call.hpp"
#include "gpu_memory.hpp"
#include "gpu_test.hpp"

using namespace sluice;
using namespace std::chrono_literals;

namespace {

using way = detail::gpu::way;

struct GpuMemoryTest : GpuTest {
	/// The number of pages of @p memory that are in a GPU.
	size_t away(const buffer &memory)
	{
		return good(detail::misplaced_pages(memory.address(), memory.size(),
						    false));
	}
	bool mapped(uint64_t address)
	{
		unsigned char there;

		return ::mincore(reinterpret_cast<void *>(address), page_size,
				 &there) == 0;
	}
};

constexpr size_t pages(size_t bytes)
{
	return bytes / page_size;
}

} // namespace

TEST_F(GpuMemoryTest, IsWhatItSays)
{
	buffer memory = good(gpus[0].vram(10000));

	EXPECT_EQ(memory.kind(), memory::vram);
	EXPECT_EQ(memory.size(), 3 * page_size);
	EXPECT_TRUE(std::ranges::all_of(memory.bytes(),
					[](std::byte b) { return b == std::byte{0}; }));
	EXPECT_GE(memory.block()->dmabuf(), 0);
	EXPECT_EQ(memory.block()->dmabuf(), memory.block()->dmabuf());
	uint64_t address = memory.address();
	EXPECT_TRUE(mapped(address));
	memory = {};
	EXPECT_FALSE(mapped(address));
	EXPECT_EQ(gpus[0].vram(0).error().code(), errc::usage);
	for (size_t much :
	     {SIZE_MAX, size_t{1} << 40, size_t{gpus[0].info().vram_bytes}}) {
		auto none = gpus[0].vram(much);

		ASSERT_FALSE(none) << much;
		EXPECT_EQ(none.error().code(), errc::device);
	}
}

TEST_F(GpuMemoryTest, DevicesAreNamed)
{
	EXPECT_EQ(device::open(ring, "0")->info().address, gpus[0].info().address);
	for (auto name : {"99", "0000:ff:1f.7", "", "x"}) {
		auto none = device::open(ring, name);

		ASSERT_FALSE(none);
		EXPECT_EQ(none.error().code(), errc::device);
	}
	EXPECT_EQ(gpus[0].info().product, "gfx942");
	EXPECT_EQ(gpus[0].path(),
		  base_kernel() ? engine_path::command : engine_path::batch);
	if (base_kernel())
		return;
	EXPECT_TRUE(gpus[0].limits().svm);
	EXPECT_GT(gpus[0].limits().operations, 512u);
}

// The file has one object for a GPU's own memory, which lives as long as it has users.
TEST_F(GpuMemoryTest, DmabufsAreExportedAndImported)
{
	for (device &by : gpus) {
		buffer memory = good(gpus[0].vram(size));
		unique_fd dmabuf = good(memory.export_dmabuf());
		buffer again = good(by.import_dmabuf(dmabuf.get()));
		batch in, back;

		dmabuf = {};
		EXPECT_EQ(again.kind(), memory::vram);
		EXPECT_EQ(again.size(), size);
		EXPECT_NE(again.address(), memory.address());
		in.copy(memory, host);
		run(gpus[0], in);
		ASSERT_TRUE(again.mapped());
		EXPECT_BYTES(again.bytes(), host.bytes());
		back.copy(out, again);
		run(by, back);
		EXPECT_BYTES(out.bytes(), host.bytes());
		// Either may be freed first.
		again = {};
		std::memset(out.data(), 0, size);
		back.clear();
		back.copy(out, memory);
		run(gpus[0], back);
		EXPECT_BYTES(out.bytes(), host.bytes());
		again = good(by.import_dmabuf(good(memory.export_dmabuf()).get()));
		back.clear();
		in.clear();
		memory = {};
		std::memset(out.data(), 0, size);
		back.copy(out, again);
		run(by, back);
		EXPECT_BYTES(out.bytes(), host.bytes());
	}
}

TEST_F(GpuMemoryTest, WhatIsNoDmabufIsRefused)
{
	unique_fd file(::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));

	EXPECT_EQ(gpus[0].import_dmabuf(-1).error().code(), errc::usage);
	EXPECT_EQ(gpus[0].import_dmabuf(file.get()).error().code(), errc::usage);
	ASSERT_EQ(::ftruncate(file.get(), size), 0);
	EXPECT_EQ(gpus[0].import_dmabuf(file.get()).error().code(), errc::usage);
	EXPECT_EQ(::lseek(file.get(), 0, SEEK_CUR), 0) << "it has moved";
	EXPECT_EQ(host.export_dmabuf().error().code(), errc::unsupported);
	EXPECT_EQ(buffer().export_dmabuf().error().code(), errc::usage);
}

// Destructors in a forked child work on the parent's files.
TEST_F(GpuMemoryTest, AChildThatEndsTakesNothingFromItsParent)
{
	std::optional<buffer> memory = good(gpus[0].vram(size));
	batch in, back;
	int status = 0;

	in.copy(*memory, host);
	run(gpus[0], in);
	pid_t child = ::fork();
	if (child == 0) {
		memory.reset();
		gpus.clear();
		::_exit(0);
	}
	ASSERT_EQ(::waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
	back.copy(out, *memory);
	run(gpus[0], back);
	EXPECT_BYTES(out.bytes(), host.bytes());
}

TEST_F(GpuMemoryTest, OneGpuIsOpenedTwice)
{
	buffer memory = good(gpus[0].vram(size));
	context other = good(context::open());
	batch a, b;
	{
		device again = good(device::open(other, gpus[0].info().address));

		a.copy(memory, host);
		auto moved = again.submit(a).wait();
		ASSERT_GOOD(moved);
	}
	b.copy(out, memory);
	run(gpus[0], b);
	EXPECT_BYTES(out.bytes(), host.bytes());
}

TEST_F(GpuMemoryTest, SharedMemoryStaysWhileBatchesRun)
{
	WANTS_BATCHES();
	buffer shared = good(gpus[0].svm(size));
	batch in, back;

	EXPECT_EQ(shared.kind(), memory::svm);
	EXPECT_EQ(away(shared), pages(size));
	auto at_first = good(gpus[0].counters());
	EXPECT_GE(at_first.migrated_in, pages(size));
	in.copy(shared.part(0, size - 7), host.part(7, size - 7));
	run(gpus[0], in);
	EXPECT_EQ(in.outcome().vram_bytes, size - 7);
	back.copy(out, shared);
	run(gpus[0], back);
	auto behind = good(gpus[0].counters());
	EXPECT_EQ(behind.migrated_in, at_first.migrated_in);
	EXPECT_EQ(behind.migrated_out, 0u);
	EXPECT_EQ(behind.lost_events, 0u);
	EXPECT_EQ(away(shared), pages(size));
	EXPECT_BYTES(out.bytes().first(size - 7), host.bytes().subspan(7));

	auto came = gpus[0].bring_back(shared);
	ASSERT_GOOD(came);
	EXPECT_EQ(away(shared), 0u);
	EXPECT_EQ(good(gpus[0].counters()).migrated_out, pages(size));
	EXPECT_BYTES(shared.bytes().first(size - 7), host.bytes().subspan(7));
}

TEST_F(GpuMemoryTest, PartsOfSharedMemoryMigrate)
{
	WANTS_BATCHES();
	buffer shared = good(gpus[0].svm(size, false));

	EXPECT_EQ(away(shared), 0u);
	put_random(shared, 5);
	auto moved = gpus[0].prefetch(shared.part(page_size + 1, page_size));
	ASSERT_GOOD(moved);
	EXPECT_GE(away(shared), 2u);
	// The CPU touches one page.
	auto before = good(gpus[0].counters());
	EXPECT_EQ(shared.data()[page_size], random_bytes(size, 5)[page_size]);
	EXPECT_GE(good(gpus[0].counters()).migrated_out, before.migrated_out + 1);
	EXPECT_EQ(gpus[0].prefetch(host).error().code(), errc::usage);
	EXPECT_EQ(gpus[0].bring_back(slice()).error().code(), errc::usage);
}

static result<void> there_and_back(device &gpu, const slice &memory)
{
	auto there = gpu.prefetch(memory);

	return there ? gpu.bring_back(memory) : there;
}

TEST_F(GpuMemoryTest, EventsAreTakenInAsTheyCome)
{
	WANTS_BATCHES();
	buffer shared = good(gpus[0].svm(size, false));

	for (int i = 0; i < 100; i++) {
		auto moved = there_and_back(gpus[0], shared.part(0, page_size));
		ASSERT_GOOD(moved);
		ASSERT_TRUE(ring.run_once(deadline{}));
	}
	auto counted = good(gpus[0].counters());
	EXPECT_EQ(counted.lost_events, 0u);
	EXPECT_GE(counted.migrated_out, 100u);
}

// A pipe holds one of the pages.
TEST_F(GpuMemoryTest, PagesThatAreHeldAreTold)
{
	WANTS_BATCHES();
	buffer shared = good(gpus[0].svm(size, false));
	iovec page = {shared.data() + 3 * page_size, page_size};
	int fds[2];

	ASSERT_EQ(::pipe(fds), 0);
	unique_fd in(fds[1]), end(fds[0]);
	ASSERT_EQ(::vmsplice(in.get(), &page, 1, 0), static_cast<ssize_t>(page_size));
	auto failed = gpus[0].prefetch(shared);
	ASSERT_FALSE(failed);
	EXPECT_EQ(failed.error().code(), errc::device);
	EXPECT_TRUE(failed.error().message().contains(": 1 pages do not migrate"))
		<< failed.error().message();
	in = {};
	end = {};
	auto moved = gpus[0].prefetch(shared);
	EXPECT_GOOD(moved);
}

TEST_F(GpuMemoryTest, NothingIsLeftOfWhatWasAttached)
{
	size_t much = gpus[0].info().vram_bytes / 4;

	for (int i = 0; i < 6; i++) {
		buffer memory = good(gpus[0].vram(much));

		attach(memory);
		EXPECT_GE(memory.block()->dmabuf(), 0);
	}
}

// No events are taken in meanwhile, and the 8 KiB overflow.
TEST_F(GpuMemoryTest, LostEventsAreReported)
{
	WANTS_BATCHES();
	buffer shared = good(gpus[0].svm(size, false));

	for (int i = 0; i < 150; i++) {
		auto moved = there_and_back(gpus[0], shared.part(0, page_size));
		ASSERT_GOOD(moved);
	}
	EXPECT_GE(good(gpus[0].counters()).lost_events, 1u);
}

// Another user sees the same data; without retry faults and a link, the memory comes
// back to where both reach it.
TEST_F(GpuMemoryTest, TwoGpusShareMemory)
{
	WANTS_BATCHES();
	buffer shared = good(gpus.back().svm(size));
	buffer memory = good(gpus[0].vram(size));
	batch all;

	put_random(shared, 3);
	ASSERT_TRUE(gpus.back().prefetch(shared));
	ASSERT_TRUE(gpus[0].attach(shared));
	all.copy(memory, shared);
	run(gpus[0], all);
	EXPECT_BYTES(memory.bytes(), random_bytes(size, 3));
}

TEST_F(GpuMemoryTest, MemoryLivesUntilTheBatchIsDone)
{
	WANTS_BATCHES();
	uint64_t address;
	operation running;
	{
		buffer memory = good(gpus[0].vram(size));
		buffer shared = good(gpus[0].svm(size));
		batch all;

		address = memory.address();
		hold(all);
		all.copy(memory, shared).barrier().copy(out, memory);
		all.barrier().copy(shared, host);
		running = gpus[0].submit(all);
		ASSERT_TRUE(ring.submit());
	}
	EXPECT_TRUE(mapped(address));
	EXPECT_FALSE(running.poll());
	release();
	EXPECT_TRUE(running.wait()) << running.wait().error().message();
	EXPECT_FALSE(mapped(address));
	EXPECT_EQ(out.users(), 1u);
}

TEST_F(GpuMemoryTest, TheDeviceMayGoBeforeAllElse)
{
	WANTS_BATCHES();
	device again = good(device::open(ring, gpus[0].info().address));
	buffer memory = good(again.vram(size));
	batch all, simple;

	hold(all);
	all.copy(memory, host);
	simple.copy(memory, host);
	auto running = again.submit(all);
	auto made = again.prepare(simple);
	ASSERT_GOOD(made);
	{
		device gone = std::move(again);
	}
	release();
	EXPECT_TRUE(running.wait()) << running.wait().error().message();
	EXPECT_EQ(made->run().wait(), size);
	simple.clear();
	simple.copy(out, memory);
	run(gpus[0], simple);
	EXPECT_BYTES(out.bytes(), host.bytes());
}

TEST_F(GpuMemoryTest, NoDescriptorGoesToAnotherProgram)
{
	const size_t before = std::ranges::distance(
		std::filesystem::directory_iterator("/proc/self/fd"));
	device another = good(device::open(ring, "0"));
	buffer memory = good(another.vram(size)), shared;

	if (!base_kernel())
		shared = good(another.svm(size));
	unique_fd exported = good(memory.export_dmabuf());
	size_t open = 0;
	for (const auto &one : std::filesystem::directory_iterator("/proc/self/fd")) {
		const int fd = std::stoi(one.path().filename().string());
		const int flags = ::fcntl(fd, F_GETFD);

		open++;
		EXPECT_TRUE(fd <= STDERR_FILENO || flags < 0 || flags & FD_CLOEXEC)
			<< fd << " is " << std::filesystem::read_symlink(one);
	}
	EXPECT_GT(open, before);
}

// The command is over at once, the batch is not: its memory must stay.
TEST_F(GpuMemoryTest, CancellingWaitsForTheEngine)
{
	WANTS_BATCHES();
	batch all;

	hold(all);
	all.fill(out.part(0, 4), 0x11223344);
	auto running = gpus[0].submit(all);
	ASSERT_TRUE(ring.submit());
	running.cancel();
	auto early = running.wait_until(after(2ms));
	ASSERT_FALSE(early);
	EXPECT_EQ(early.error().code(), errc::timeout);
	release();
	EXPECT_EQ(running.wait(), all.bytes());
	EXPECT_EQ(static_cast<unsigned>(out.data()[0]), 0x44u);
	// One that gives up, destroyed in flight.
	std::memset(host.data(), 0, 8);
	auto before = clock::now();
	{
		auto dropped = gpus[0].submit(all);
	}
	EXPECT_GE(clock::now() - before, gpus[0].limits().wait / 4);
	EXPECT_EQ(out.users(), 2u);
	all.clear();
	EXPECT_EQ(out.users(), 1u);
}

TEST_F(GpuMemoryTest, CancellingWhatGaveUpTellsWhy)
{
	WANTS_BATCHES();
	batch all;

	std::memset(host.data(), 0, 8);
	all.wait(host.part(0, 4), compare::equal, 1, 10ms);
	auto running = gpus[0].submit(all);
	ASSERT_TRUE(ring.submit());
	running.cancel();
	ASSERT_FALSE(running.wait());
	EXPECT_EQ(running.wait().error().code(), errc::timeout)
		<< running.wait().error().message();
}

// By objects of the file instead of shared memory, as without amdkfd.
TEST_F(GpuMemoryTest, HostMemoryCanBeAnObject)
{
	buffer memory = good(gpus[0].vram(size)), user = good(buffer::host(size));
	auto &node = gpus[0].inside().node();
	batch all;

	put_random(user, 8);
	auto attached = detail::attach_memory(node, user, true);
	ASSERT_GOOD(attached);
	EXPECT_NE(detail::object_of(node, *user.block()), nullptr);
	all.copy(memory, user);
	run(gpus[0], all);
	EXPECT_BYTES(memory.bytes(), user.bytes());
}

namespace {

/// Run @p child in its own process, without the parent's address space.
template <class Child> int in_a_process(Child child)
{
	int status = -1;
	pid_t pid = ::fork();

	if (pid == 0)
		::_exit(child());
	::waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/// 0, or the number of the step that failed.
int use_a_gpu(bool shares)
{
	auto ring = context::open();
	auto gpu = device::open(*ring, "0");
	auto host = buffer::host(page_size);
	batch all;

	if (!gpu)
		return 1;
	auto memory = shares ? gpu->svm(page_size) : gpu->vram(page_size);
	if (!memory)
		return 2;
	if (!gpu->attach(*host))
		return 3;
	put_random(*host, 1);
	all.copy(*memory, *host);
	if (!gpu->submit(all).wait())
		return 4;
	if (shares && gpu->counters()->migrated_out)
		return 5;
	return std::ranges::equal(memory->bytes(), host->bytes()) ? 0 : 6;
}

int use_as_nobody(bool shares)
{
	const rlimit none{0, 0};

	EXPECT_EQ(::setrlimit(RLIMIT_MEMLOCK, &none), 0);
	EXPECT_EQ(::setgroups(0, nullptr), 0);
	EXPECT_EQ(::setgid(65534), 0);
	EXPECT_EQ(::setuid(65534), 0);
	// As another program would be from its start
	EXPECT_EQ(::prctl(PR_SET_DUMPABLE, 1), 0);
	return use_a_gpu(shares);
}

} // namespace

// With retry faults, amdkfd does not keep memory mapped: it waits for faults.
TEST(GpuProcess, FaultsInIfAskedTo)
{
	WANTS_BATCHES();
	if (list_devices().empty())
		GTEST_SKIP() << "there is no GPU";
	EXPECT_EQ(in_a_process([] {
		auto ring = context::open();
		auto gpu = device::open(*ring, "0");
		kfd_ioctl_set_xnack_mode_args xnack{.xnack_enabled = 1};
		batch all;

		if (!gpu || detail::call(gpu->inside().node().kfd,
					 AMDKFD_IOC_SET_XNACK_MODE, &xnack))
			return 1;
		auto shared = gpu->svm(page_size), memory = gpu->vram(page_size);
		put_random(*memory, 1);
		::madvise(shared->data(), page_size, MADV_DONTNEED);
		all.copy(*memory, *shared);
		auto failed = gpu->submit(all).wait();
		if (failed || failed.error().number() != ENXIO ||
		    failed.error().index() != 0 || failed.error().code() != errc::usage)
			return 2;
		if (!gpu->submit(all.fault_in()).wait())
			return 3;
		return std::ranges::all_of(
			       memory->bytes(),
			       [](std::byte b) { return b == std::byte{0}; })
			       ? 0
			       : 4;
	}),
		  0);
}

TEST(GpuProcess, AChildHasItsOwn)
{
	WANTS_BATCHES();
	if (list_devices().empty())
		GTEST_SKIP() << "there is no GPU";
	EXPECT_EQ(use_a_gpu(true), 0);
	EXPECT_EQ(in_a_process([] { return use_a_gpu(true); }), 0);
}

namespace {

/// Let another process go first, then count: 0, or the number of the failed step.
int count_beside(int ready, int go)
{
	auto ring = context::open();
	auto gpu = device::open(*ring, "0");
	auto memory = gpu->svm(64 * page_size, false);
	eventfd_t any;

	if (!memory || ::eventfd_write(ready, 1) || ::eventfd_read(go, &any))
		return 1;
	auto before = gpu->counters();
	if (!before || before->migrated_in || before->migrated_out)
		return 2;
	put_random(*memory, 1);
	if (!gpu->prefetch(*memory))
		return 3;
	return gpu->counters()->migrated_in >= 64 ? 0 : 4;
}

} // namespace

// Root gets the events of all processes.
TEST(GpuProcess, CountsItsOwnPagesAlone)
{
	WANTS_BATCHES();
	if (list_devices().empty())
		GTEST_SKIP() << "there is no GPU";
	unique_fd ready(::eventfd(0, EFD_CLOEXEC)), go(::eventfd(0, EFD_CLOEXEC));
	pid_t other = ::fork();

	if (other == 0)
		::_exit(count_beside(ready.get(), go.get()));
	pollfd come = {ready.get(), POLLIN, 0};
	EXPECT_EQ(::poll(&come, 1, 60000), 1);
	{
		context ring = good(context::open());
		device gpu = good(device::open(ring, "0"));
		buffer memory = good(gpu.svm(32 * page_size));
		auto before = good(gpu.counters());

		EXPECT_GE(before.migrated_in, 32u);
		EXPECT_EQ(::eventfd_write(go.get(), 1), 0);
		int status = 0;
		EXPECT_EQ(::waitpid(other, &status, 0), other);
		EXPECT_EQ(status, 0);
		auto behind = good(gpu.counters());
		EXPECT_EQ(behind.migrated_in, before.migrated_in);
		EXPECT_EQ(behind.migrated_out, before.migrated_out);
		EXPECT_EQ(behind.lost_events, 0u);
	}
}

TEST(GpuProcess, AnOrdinaryUserMayToo)
{
	WANTS_BATCHES();
	auto all = list_devices();

	if (all.empty() || ::getuid() != 0)
		GTEST_SKIP() << "there is no GPU, or no other user to become";
	for (const auto &info : all)
		ASSERT_EQ(::chmod(info.render_node.c_str(), 0666), 0);
	ASSERT_EQ(::chmod("/dev/kfd", 0666), 0);
	EXPECT_EQ(in_a_process([] { return use_as_nobody(true); }), 0);
	// A user who may not open amdkfd's file gets only video memory.
	ASSERT_EQ(::chmod("/dev/kfd", 0600), 0);
	EXPECT_EQ(in_a_process([] { return use_as_nobody(false); }), 0);
	EXPECT_EQ(in_a_process([] { return use_as_nobody(true); }), 2);
	ASSERT_EQ(::chmod(all[0].render_node.c_str(), 0600), 0);
	EXPECT_EQ(in_a_process([] { return use_as_nobody(false); }), 1);
}

namespace {

/// As HIP does: take the process's address space before the library.
unique_fd take_address_space(const std::string &name, int &kfd)
{
	auto all = detail::find_gpus();
	const auto *gpu = detail::choose_gpu(all, name);
	unique_fd file(::open(gpu->render_node.c_str(), O_RDWR | O_CLOEXEC));
	kfd_ioctl_acquire_vm_args args{};

	kfd = ::open("/dev/kfd", O_RDWR | O_CLOEXEC);
	args.drm_fd = static_cast<uint32_t>(file.get());
	args.gpu_id = gpu->kfd_id;
	return detail::call(kfd, AMDKFD_IOC_ACQUIRE_VM, &args) ? unique_fd()
							       : std::move(file);
}

} // namespace

TEST(GpuProcess, SharesWithWhoeverWasThereBefore)
{
	WANTS_BATCHES();
	if (list_devices().empty())
		GTEST_SKIP() << "there is no GPU";
	EXPECT_EQ(in_a_process([] {
		int kfd;
		auto theirs = take_address_space("0", kfd);

		return theirs ? use_a_gpu(true) : 10;
	}),
		  0);
	// That address space cannot be found any more.
	EXPECT_EQ(in_a_process([] {
		int kfd;
		{
			auto theirs = take_address_space("0", kfd);
		}
		auto ring = context::open();
		auto gpu = device::open(*ring, "0");

		return gpu ? 10
		       : gpu.error().code() == errc::device &&
				       gpu.error().number() == EBUSY
			       ? 0
			       : 11;
	}),
		  0);
}
