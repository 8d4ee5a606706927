// SPDX-License-Identifier: MIT
// The parts of the GPU code that need no GPU.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sys/resource.h>

#include <gtest/gtest.h>

#include "command_queue.hpp"
#include "gpu_list.hpp"
#include "migrations.hpp"
#include "sluice/batch.hpp"

using namespace sluice;
using namespace sluice::detail;
using namespace std::chrono_literals;

namespace {

namespace fs = std::filesystem;

/// A sysfs with two GPUs of amdgpu, one of which amdkfd knows, and another card.
struct GpuListTest : ::testing::Test {
	void SetUp() override
	{
		char name[] = "/tmp/sysfsXXXXXX";

		root = ::mkdtemp(name);
		card("0000:83:00.0", "renderD129", "amdgpu");
		card("0000:03:00.0", "renderD128", "amdgpu");
		card("0000:00:02.0", "renderD130", "i915");
		put("class/kfd/kfd/topology/nodes/0/gpu_id", "0\n");
		put("class/kfd/kfd/topology/nodes/1/gpu_id", "4711\n");
		put("class/kfd/kfd/topology/nodes/1/properties",
		    "simd_count 1216\ndrm_render_minor 129\n"
		    "gfx_target_version 90402\ncapability 2823266944\n");
	}
	void TearDown() override { fs::remove_all(root); }

	void put(const fs::path &file, std::string_view text)
	{
		fs::create_directories((root / file).parent_path());
		std::ofstream(root / file) << text;
	}

	void card(const std::string &address, const std::string &node,
		  const std::string &driver)
	{
		fs::path device = "devices/pci0000:00/" + address;

		put(device / "device", "0x74a1\n");
		put(device / "numa_node", "1\n");
		put(device / "mem_info_vram_total", "1073741824\n");
		put(device / "mem_info_vis_vram_total", "268435456\n");
		fs::create_directories(root / "bus/pci/drivers" / driver);
		fs::create_directories(root / "class/drm" / node);
		fs::create_symlink(root / device, root / "class/drm" / node / "device");
		fs::create_symlink(root / "bus/pci/drivers" / driver,
				   root / device / "driver");
	}

	fs::path root;
};

} // namespace

TEST_F(GpuListTest, FindsWhatSysfsTells)
{
	auto all = find_gpus(root);

	ASSERT_EQ(all.size(), 2u);
	EXPECT_EQ(all[0].address, "0000:03:00.0");
	EXPECT_EQ(all[0].render_node, "/dev/dri/renderD128");
	EXPECT_EQ(all[0].kfd_id, 0u);
	EXPECT_FALSE(all[0].svm);
	EXPECT_EQ(all[0].product, "PCI device 0x74a1");
	EXPECT_EQ(all[1].kfd_id, 4711u);
	EXPECT_TRUE(all[1].svm);
	EXPECT_EQ(all[1].product, "gfx942");
	EXPECT_EQ(all[1].numa_node, 1);
	EXPECT_EQ(all[1].vram_bytes, 1u << 30);
	EXPECT_EQ(all[1].visible_vram_bytes, 256u << 20);
	EXPECT_TRUE(find_gpus("/nonexistent").empty());
}

TEST_F(GpuListTest, ChoosesByAddressAndIndex)
{
	auto all = find_gpus(root);

	EXPECT_EQ(choose_gpu(all, "1"), &all[1]);
	EXPECT_EQ(choose_gpu(all, "0000:03:00.0"), &all[0]);
	for (auto name : {"2", "", "-1", "1x", "0000:00:02.0", "99999999999999999999"})
		EXPECT_EQ(choose_gpu(all, name), nullptr) << name;
}

TEST(OpenFile, IsFoundByWhatItIs)
{
	int accepted = -1;
	unique_fd other(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
	unique_fd open(::open("/dev/null", O_RDWR | O_CLOEXEC));
	auto take = [](void *data, int fd) {
		*static_cast<int *>(data) = fd;
		return true;
	};
	auto refuse = [](void *, int) { return false; };

	auto found = find_open_file("/dev/full", take, &accepted);
	EXPECT_FALSE(found);
	EXPECT_EQ(accepted, -1);
	found = find_open_file("/dev/zero", take, &accepted);
	EXPECT_EQ(accepted, other.get());
	EXPECT_NE(found.get(), other.get());
	EXPECT_FALSE(find_open_file("/dev/zero", refuse, nullptr));
	EXPECT_FALSE(find_open_file("/nonexistent", take, &accepted));
}

// As the kernel prints them: KFD_EVENT_FMT_MIGRATE_START and others.
TEST(Migrations, AreParsed)
{
	auto m = parse_migration("5 1234567 -42 @7f0000000(200) 0->ab12 ab12:0 2");

	ASSERT_TRUE(m);
	EXPECT_EQ(m->process, 42);
	EXPECT_EQ(m->pages, 0x200u);
	EXPECT_EQ(m->from, 0u);
	EXPECT_EQ(m->to, 0xab12u);
	EXPECT_FALSE(parse_migration("6 1234567 -42 @7f0000000(200) 0->ab12 2 0"));
	EXPECT_FALSE(parse_migration("5 123 -42 @7f0"));
	EXPECT_FALSE(parse_migration(""));
	EXPECT_FALSE(parse_migration(std::string(5000, '5')));
}

TEST(Migrations, NumbersThatDoNotFitAreNone)
{
	for (const char *line :
	     {"5 1 -42 @7f(-1) 0->a1 0:0 2",
	      "5 1 -42 @7f(10000000000000000) 0->a1 0:0 2",
	      "5 1 -42 @7f(1) 0->100000000 0:0 2", "5 1 -4294967338 @7f(1) 0->a1 0:0 2",
	      "5 1 --42 @7f(1) 0->a1", "5 1 -42 @7f( 1) 0->a1", "5 1 -42 @7f(1) 0->"})
		EXPECT_FALSE(parse_migration(line)) << line;
}

TEST(Migrations, AreCountedForOneProcessAndGpu)
{
	device_counters counted;

	count_migrations(counted,
			 "5 1 -42 @7f(10) 0->a1 0:0 2\n"
			 "6 1 -42 @7f(10) 0->a1 2 0\n"
			 "5 1 -42 @7f(3) a1->0 0:0 1\n"
			 "5 1 -43 @7f(100) 0->a1 0:0 2\n"
			 "5 1 -42 @7f(1000) 0->b2 0:0 2\n"
			 "5 1 -42 @7f(1) a1->b2 0:0 2",
			 42, 0xa1);
	EXPECT_EQ(counted.migrated_in, 0x10u);
	EXPECT_EQ(counted.migrated_out, 4u);
	EXPECT_EQ(counted.lost_events, 0u);
}

namespace {

error explained(int number, bool given = false)
{
	submission run;

	run.args.error_index = given ? AMDGPU_SDMA_NO_INDEX : 3;
	run.args.error_index2 = 1;
	run.args.error_array = AMDGPU_SDMA_ERROR_DESC;
	run.args.engines_used = given;
	return batch_error(run, "gpu", number);
}

} // namespace

TEST(BatchError, NamesTheOperation)
{
	auto e = explained(ENOENT);

	EXPECT_EQ(e.code(), errc::usage);
	EXPECT_EQ(e.index(), 3u);
	EXPECT_EQ(e.number(), ENOENT);
	EXPECT_EQ(e.message(), "gpu: operation 3: memory that this GPU does not "
			       "reach: attach it");
	e = explained(EEXIST);
	EXPECT_TRUE(e.message().ends_with("at the same time: operation 1"))
		<< e.message();
	EXPECT_EQ(explained(EIO, true).index(), error::no_index);
}

// docs/uapi.md has one table for the call, and one for the fence.
TEST(BatchError, KnowsCallsFromFences)
{
	submission run;

	EXPECT_EQ(explained(ETIME).code(), errc::device);
	EXPECT_EQ(explained(EMSGSIZE).code(), errc::usage);
	EXPECT_EQ(explained(EAGAIN).code(), errc::busy);
	EXPECT_EQ(explained(ESTALE).code(), errc::stale);
	EXPECT_EQ(explained(EOPNOTSUPP).code(), errc::unsupported);
	EXPECT_EQ(explained(ECANCELED).code(), errc::device);
	EXPECT_EQ(explained(12345).code(), errc::system);
	run.args.error_index = untouched;
	EXPECT_EQ(batch_error(run, "gpu", ECANCELED).code(), errc::cancelled);
	EXPECT_EQ(batch_error(run, "gpu", ECANCELED).index(), error::no_index);
	run.args.engines_used = 1;
	EXPECT_EQ(batch_error(run, "gpu", ECANCELED).code(), errc::device);
	EXPECT_EQ(batch_error(run, "gpu", ETIME).code(), errc::device);
	EXPECT_EQ(batch_error(run, "gpu", EINVAL).code(), errc::device);
	EXPECT_EQ(batch_error(run, "gpu", EHWPOISON).code(), errc::device);
	run.waits = true;
	EXPECT_EQ(batch_error(run, "gpu", ETIME).code(), errc::timeout);
}

namespace {

struct BatchTest : ::testing::Test {
	buffer a = *buffer::host(2 * page_size), b = *buffer::host(2 * page_size);
	batch all{4};

	void expect_mistake(uint32_t index)
	{
		auto right = all.check();

		ASSERT_FALSE(right);
		EXPECT_EQ(right.error().code(), errc::usage);
		EXPECT_EQ(right.error().index(), index);
		EXPECT_EQ(all.size(), index);
		all.clear();
		EXPECT_TRUE(all.check());
	}
};

} // namespace

TEST_F(BatchTest, CountsBytesAndKeepsBuffers)
{
	const slice to[] = {a.part(0, 10), a.part(10, 10), b.part(0, 10)};

	all.copy(a, b)
		.broadcast(to, b.part(100, 10))
		.swap(a.part(0, 8), b.part(0, 8))
		.fill(a.part(1, 7), 1)
		.copy_rectangle(a, b, {100, 3, 200, 100})
		.write(a.part(0, 8), 1);
	ASSERT_TRUE(all.check()) << all.check().error().message();
	EXPECT_EQ(all.size(), 6u);
	EXPECT_EQ(all.bytes(), 2 * page_size + 30 + 16 + 7 + 300 + 8);
	EXPECT_EQ(a.users(), 3u + 1);
	all.clear();
	EXPECT_EQ(a.users(), 3u);
	EXPECT_EQ(all.bytes(), 0u);
}

TEST_F(BatchTest, FindsMistakes)
{
	const slice one[] = {a.part(0, 10)};
	const slice uneven[] = {a.part(0, 10), a.part(10, 11)};

	all.copy(a, b.part(0, page_size)).copy(a, b);
	expect_mistake(0);
	all.copy(a, b).copy(a, b.part(page_size, 2 * page_size));
	expect_mistake(1);
	all.fill({}, 1);
	expect_mistake(0);
	all.fill(a.part(0, 0), 1);
	expect_mistake(0);
	all.copy(a.part(0, 0), b.part(0, 0));
	expect_mistake(0);
	const uint64_t at[] = {0}, nothing[] = {0};
	all.copy_many(a, at, b, at, nothing);
	expect_mistake(0);
	all.broadcast(one, b.part(0, 10));
	expect_mistake(0);
	all.broadcast(uneven, b.part(0, 10));
	expect_mistake(0);
	all.wait(a, compare::equal, 1, 0s);
	expect_mistake(0);
	all.write(a.part(0, 4), 1);
	expect_mistake(0);
	all.record(a.part(0, 63));
	expect_mistake(0);
}

// That the process has too many files open is no mistake of this one.
TEST_F(BatchTest, AFenceNeedsADescriptor)
{
	rlimit before{}, none{};

	// UBSan opens a pipe to look at an object whose type is new to it. So it
	// gets to see what makes the message while it can.
	EXPECT_EQ(fail_errno("here", "dup", EMFILE, errc::system).error().code(),
		  errc::system);
	ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 3;
	ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
	all.after(0);
	ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
	ASSERT_FALSE(all.check());
	EXPECT_EQ(all.check().error().code(), errc::system);
	all.clear();
	all.after(0);
	ASSERT_FALSE(all.check());
	EXPECT_EQ(all.check().error().code(), errc::usage);
}

TEST_F(BatchTest, FindsRectanglesThatDoNotFit)
{
	const batch::rectangle bad[] = {
		{0, 1, 1, 1},
		{1, 0, 1, 1},
		{10, 2, 9, 10},
		{10, 2, 10, 9},
		{2 * page_size + 1, 1, 9999, 9999},
		{page_size, 3, page_size, page_size},
		{10, UINT32_MAX, UINT64_MAX, 10},
		{10, 2, 2 * page_size - 9, 10},
	};
	for (const auto &shape : bad) {
		all.copy_rectangle(a, b, shape);
		expect_mistake(0);
	}
	all.copy_rectangle(a, b, {10, 2, 2 * page_size - 10, 10});
	EXPECT_TRUE(all.check());
}

namespace {

/// A model of how an SDMA engine executes packets: addresses are used as pointers of
/// this process.
struct PacketTest : ::testing::Test {
	std::array<uint32_t, 512> words{};
	uint32_t *end = words.data() + words.size();

	void run(const uint32_t *stop)
	{
		for (const uint32_t *p = words.data(); p < stop;)
			p = (*p & 0xff) == 1 ? copy(p) : fill(p);
	}
	const uint32_t *copy(const uint32_t *p)
	{
		std::memcpy(at(p[5], p[6]), at(p[3], p[4]), p[1] + size_t{1});
		return p + 7;
	}
	const uint32_t *fill(const uint32_t *p)
	{
		bool whole = p[0] >> 30 == 2;
		auto *to = reinterpret_cast<char *>(at(p[1], p[2]));

		EXPECT_EQ(p[0] & 0xff, 11u);
		EXPECT_FALSE(whole && (p[1] % 4 || (p[4] + 1) % 4));
		for (uint32_t i = 0; i <= p[4]; i++)
			to[i] = static_cast<char>(p[3] >> 8 * (whole ? i % 4 : 0));
		return p + 5;
	}
	void *at(uint32_t low, uint32_t high)
	{
		return reinterpret_cast<void *>(uint64_t{high} << 32 | low);
	}
};

} // namespace

TEST_F(PacketTest, FillsAtAnyAlignment)
{
	for (size_t offset = 0; offset < 8; offset++)
		for (size_t size = 1; size < 20; size++) {
			std::array<unsigned char, 64> memory{}, expected{};

			for (size_t i = 0; i < size; i++)
				expected[offset + i] = static_cast<unsigned char>(
					0x44332211u >> 8 * (i % 4));
			run(put_fill(words.data(), end,
				     reinterpret_cast<uintptr_t>(&memory[offset]),
				     0x44332211, size));
			ASSERT_EQ(memory, expected) << offset << ' ' << size;
		}
}

TEST_F(PacketTest, CopiesInSteps)
{
	std::vector<unsigned char> from((9 << 20) + 5), to(from.size());

	std::ranges::generate(from, [n = 0u]() mutable {
		return static_cast<unsigned char>((n++ * 2654435761u) >> 24);
	});
	uint32_t *stop =
		put_copy(words.data(), end, reinterpret_cast<uintptr_t>(to.data()),
			 reinterpret_cast<uintptr_t>(from.data()), from.size());
	ASSERT_EQ(stop, words.data() + 3 * 7);
	run(stop);
	EXPECT_EQ(from, to);
	EXPECT_EQ(put_copy(words.data(), words.data() + 20, 0, 0, from.size()),
		  nullptr);
}

TEST_F(PacketTest, WhatWantsTheDriverIsUnsupported)
{
	drm_amdgpu_sdma_desc d{};

	// Nor does the driver take an operation of no bytes.
	for (uint32_t op :
	     {AMDGPU_SDMA_OP_COPY, AMDGPU_SDMA_OP_FILL, AMDGPU_SDMA_OP_BROADCAST}) {
		d.op = op;
		EXPECT_EQ(put_operation(words.data(), end, d).error().code(),
			  errc::usage);
	}
	d = {.size = 4};
	EXPECT_TRUE(put_operation(words.data(), end, d));
	d.flags = AMDGPU_SDMA_DESC_BARRIER;
	EXPECT_EQ(put_operation(words.data(), end, d).error().code(),
		  errc::unsupported);
	for (uint32_t op : {AMDGPU_SDMA_OP_SWAP, AMDGPU_SDMA_OP_WAIT,
			    AMDGPU_SDMA_OP_WRITE, AMDGPU_SDMA_OP_ADD}) {
		d = {};
		d.op = op;
		EXPECT_EQ(put_operation(words.data(), end, d).error().code(),
			  errc::unsupported);
	}
}
