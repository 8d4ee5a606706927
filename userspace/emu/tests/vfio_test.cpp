// SPDX-License-Identifier: MIT
#include "dispatcher.hpp"
#include "fabric.hpp"
#include "fake_device.hpp"
#include "session.hpp"

#include <gtest/gtest.h>

#include <thread>

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

using namespace sluice::emu;
using namespace sluice::emu::vfio;
using sluice::emu::test::FakeDevice;

namespace {

using Payload = std::vector<std::byte>;

template <class... T> Payload bytes_of(const T &...parts)
{
	Payload p;
	(append(p, parts), ...);
	return p;
}

template <class T> T head(const Payload &p)
{
	T v{};
	const_bytes b = p;
	EXPECT_TRUE(take(b, v));
	return v;
}

class DispatcherTest : public testing::Test {
protected:
	FakeDevice device;
	Dispatcher dispatcher{device};

	Reply send(Command c, const Payload &p, std::vector<unique_fd> fds = {})
	{
		Header h{1, static_cast<u16>(c),
			 static_cast<u32>(sizeof(Header) + p.size()), 0, 0};
		return dispatcher.handle(h, p, fds);
	}
	int error(Command c, const Payload &p, std::vector<unique_fd> fds = {})
	{
		return send(c, p, std::move(fds)).error;
	}
};

Payload json(std::string_view text, bool terminated = true)
{
	Payload p = bytes_of(Version{0, 1});
	for (char c : text)
		p.push_back(static_cast<std::byte>(c));
	if (terminated)
		p.push_back(std::byte{0});
	return p;
}

unique_fd memory_file(u64 size)
{
	unique_fd fd(memfd_create("test", MFD_CLOEXEC));
	EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(size)), 0);
	return fd;
}

std::vector<unique_fd> one(unique_fd fd)
{
	std::vector<unique_fd> v;
	v.push_back(std::move(fd));
	return v;
}

// Good requests of every command that has a body.
const std::vector<std::pair<Command, Payload>> requests{
	{Command::version, json("{}")},
	{Command::device_info, bytes_of(DeviceInfo{16, 0, 0, 0})},
	{Command::region_info, bytes_of(RegionInfo{32, 0, 0, 0, 0, 0})},
	{Command::irq_info, bytes_of(IrqInfo{16, 0, irq_msi, 0})},
	{Command::set_irqs, bytes_of(IrqSet{20, 1 | 32, irq_msi, 0, 0})},
	{Command::dma_map, bytes_of(DmaMapRequest{32, 3, 0, 0x10000, 0x1000})},
	{Command::dma_unmap, bytes_of(DmaUnmapRequest{24, 2, 0, 0})},
	{Command::region_read, bytes_of(RegionAccess{0, 5, 4})},
	{Command::region_write, bytes_of(RegionAccess{0, 5, 4}, u32{7})},
};

TEST_F(DispatcherTest, GoodRequests)
{
	for (const auto &[c, p] : requests)
		EXPECT_EQ(error(c, p), 0) << static_cast<int>(c);
}

TEST_F(DispatcherTest, EveryShorterLengthIsRefused)
{
	for (const auto &[c, p] : requests)
		for (size_t n = 0; n < p.size(); n++) {
			if (c == Command::version && n == 4)
				continue; // capabilities are optional
			Payload cut(p.begin(), p.begin() + static_cast<long>(n));
			EXPECT_NE(error(c, cut), 0)
				<< static_cast<int>(c) << " with " << n;
		}
}

TEST_F(DispatcherTest, LongerLengths)
{
	for (Command c : {Command::dma_map, Command::region_write})
		for (const auto &[known, p] : requests)
			if (known == c) {
				Payload longer = p;
				longer.push_back(std::byte{0});
				EXPECT_NE(error(c, longer), 0);
			}
}

TEST_F(DispatcherTest, Versions)
{
	EXPECT_EQ(error(Command::version, bytes_of(Version{1, 0})), ENOTSUP);
	EXPECT_EQ(error(Command::version, json("{}", false)), EINVAL);
	EXPECT_EQ(error(Command::version, json(std::string_view("{}\0x", 4))), EINVAL);
	auto r = send(Command::version, bytes_of(Version{0, 9}));
	EXPECT_EQ(head<Version>(r.data).minor, 9);
	EXPECT_EQ(r.data.back(), std::byte{0});
	auto limit = [&](std::string_view text) {
		Dispatcher other(device);
		Payload p = json(text);
		Header h{1, 1, static_cast<u32>(sizeof(Header) + p.size()), 0, 0};
		std::vector<unique_fd> none;
		EXPECT_EQ(other.handle(h, p, none).error, 0);
		return other.peer_transfer();
	};
	EXPECT_EQ(limit(R"({"capabilities":{"max_data_xfer_size":8192}})"), 8192u);
	EXPECT_EQ(limit(R"({"max_data_xfer_size" : 99999999})"), max_dma_message);
	EXPECT_EQ(limit(R"({"max_data_xfer_size":1})"), 4096u);
	EXPECT_EQ(limit(R"({"max_data_xfer_size":"a 8192"})"), max_dma_message);
	EXPECT_EQ(limit(R"({"max_data_xfer_size":99999999999999999999})"),
		  max_dma_message);
}

// What was agreed on stays: engines rely on it.
TEST_F(DispatcherTest, VersionsAreAgreedOnOnce)
{
	Payload p = json(R"({"max_data_xfer_size":8192})");
	Payload again = json(R"({"max_data_xfer_size":4096})");
	EXPECT_NE(error(Command::version, json("{}", false)), 0);
	EXPECT_EQ(error(Command::version, p), 0);
	EXPECT_EQ(error(Command::version, again), EINVAL);
	EXPECT_EQ(error(Command::version, bytes_of(Version{0, 1})), EINVAL);
	EXPECT_EQ(dispatcher.peer_transfer(), 8192u);
}

TEST_F(DispatcherTest, UnknownCommand)
{
	EXPECT_EQ(error(static_cast<Command>(0), {}), ENOSYS);
	EXPECT_EQ(error(static_cast<Command>(15), {}), ENOSYS);
	EXPECT_EQ(error(Command::region_io_fds, Payload(64)), ENOSYS);
}

TEST_F(DispatcherTest, RegionInfoInTwoSteps)
{
	device.regions[0].fd = 0;
	device.regions[0].areas = {{0, 0x1000}, {0x3000, 0x1000}};
	auto r = send(Command::region_info, bytes_of(RegionInfo{32, 0, 0, 0, 0, 0}));
	auto info = head<RegionInfo>(r.data);
	EXPECT_EQ(r.data.size(), 32u);
	EXPECT_EQ(info.argsz, 32 + 16 + 32u);
	EXPECT_EQ(info.cap_offset, 32u);
	EXPECT_EQ(r.fd, -1) << "the file goes with the whole answer";
	r = send(Command::region_info, bytes_of(RegionInfo{info.argsz, 0, 0, 0, 0, 0}));
	EXPECT_EQ(r.data.size(), info.argsz);
	EXPECT_EQ(r.fd, 0);
	EXPECT_EQ(error(Command::region_info,
			bytes_of(RegionInfo{32, 0, region_count, 0, 0, 0})),
		  EINVAL);
	EXPECT_EQ(error(Command::region_info, bytes_of(RegionInfo{31, 0, 0, 0, 0, 0})),
		  EINVAL);
}

TEST_F(DispatcherTest, RegionAccessIsBounded)
{
	auto read = [&](u64 offset, u32 region, u32 count) {
		return error(Command::region_read,
			     bytes_of(RegionAccess{offset, region, count}));
	};
	u64 size = device.regions[5].size;
	EXPECT_EQ(read(size - 4, 5, 4), 0);
	EXPECT_EQ(read(size - 3, 5, 4), EINVAL);
	EXPECT_EQ(read(size, 5, 1), EINVAL);
	EXPECT_EQ(read(~0ull, 5, 2), EINVAL);
	EXPECT_EQ(read(0, region_count, 4), EINVAL);
	EXPECT_EQ(read(0, 0xffffffff, 4), EINVAL);
	EXPECT_EQ(read(0, 5, 0), EINVAL);
	EXPECT_EQ(read(0, 1, 1), EINVAL) << "a region of no size";
	EXPECT_EQ(read(0, 0, max_transfer), 0);
	EXPECT_EQ(read(0, 0, max_transfer + 1), EINVAL);
	device.regions[5].writable = false;
	EXPECT_EQ(error(Command::region_write, bytes_of(RegionAccess{0, 5, 4}, u32{1})),
		  EPERM);
}

TEST_F(DispatcherTest, ReadReturnsWhatTheDeviceSays)
{
	auto r = send(Command::region_read, bytes_of(RegionAccess{8, 5, 2}));
	ASSERT_EQ(r.data.size(), 18u);
	EXPECT_EQ(r.data[16], std::byte{8});
	EXPECT_EQ(r.data[17], std::byte{9});
	send(Command::region_write, bytes_of(RegionAccess{12, 5, 4}, u32{77}));
	EXPECT_EQ(device.last_write, 77u);
	send(Command::device_reset, {});
	EXPECT_EQ(device.resets, 1u);
}

TEST_F(DispatcherTest, DmaMapChecks)
{
	auto map = [&](DmaMapRequest q, std::vector<unique_fd> fds = {}) {
		return error(Command::dma_map, bytes_of(q), std::move(fds));
	};
	EXPECT_EQ(map({32, 3, 0, 0x10000, 0}), EINVAL);
	EXPECT_EQ(map({32, 3, 0, 0x10001, 0x1000}), EINVAL);
	EXPECT_EQ(map({32, 3, 0, ~0ull << 12, 0x2000}), EINVAL);
	EXPECT_EQ(map({32, 7, 0, 0x10000, 0x1000}), EINVAL);
	EXPECT_EQ(map({31, 3, 0, 0x10000, 0x1000}), EINVAL);
	EXPECT_EQ(map({32, 3, 0x1000, 0x10000, 0x1000}, one(memory_file(0x1000))),
		  EINVAL)
		<< "beyond the end of the file";
	EXPECT_EQ(map({32, 3, 0x1000, 0x10000, 0x1000}, one(memory_file(0x2000))), 0);
	EXPECT_EQ(map({32, 3, 0, 0xf000, 0x2000}), EEXIST);
	EXPECT_EQ(map({32, 3, 0, 0x10000, 0x1000}), EEXIST);
	EXPECT_EQ(map({32, 3, 0, 0x11000, 0x1000}), 0);
	std::vector<unique_fd> two;
	two.push_back(memory_file(0x1000));
	two.push_back(memory_file(0x1000));
	EXPECT_EQ(map({32, 3, 0, 0x20000, 0x1000}, std::move(two)), EINVAL);
}

TEST_F(DispatcherTest, DmaUnmapChecks)
{
	auto unmap = [&](DmaUnmapRequest q) {
		return error(Command::dma_unmap, bytes_of(q));
	};
	for (u64 a : {0x10000, 0x11000, 0x13000})
		EXPECT_EQ(device.map.map({32, 3, 0, a, 0x1000}, {}), 0);
	EXPECT_EQ(unmap({24, 0, 0x20000, 0x1000}), 0) << "nothing there";
	EXPECT_EQ(unmap({24, 0, 0x10800, 0x1000}), EINVAL) << "from the middle";
	EXPECT_EQ(unmap({24, 0, 0x10000, 0x800}), EINVAL) << "half a mapping";
	EXPECT_EQ(unmap({24, 1, 0x10000, 0x1000}), ENOTSUP);
	EXPECT_EQ(unmap({24, 2, 0x10000, 0x1000}), EINVAL);
	EXPECT_EQ(unmap({24, 0, ~0ull, 0x1000}), EINVAL);
	EXPECT_EQ(unmap({24, 0, 0x10000, 0}), EINVAL);
	EXPECT_EQ(unmap({24, 0, 1ull << 63, 1ull << 63}), 0);
	EXPECT_EQ(unmap({24, 0, 0x10000, 0x2000}), 0);
	EXPECT_EQ(device.map.count(), 1u);
	EXPECT_EQ(unmap({24, 2, 0, 0}), 0);
	EXPECT_EQ(device.map.count(), 0u);
}

TEST(DmaMapTest, UseStopsAtTheMappingsEnd)
{
	DmaMap m;
	unique_fd file = memory_file(0x4000);
	EXPECT_EQ(m.map({32, 3, 0x1000, 0x10000, 0x2000}, unique_fd(dup(file.get()))),
		  0);
	EXPECT_EQ(m.map({32, 1, 0, 0x12000, 0x1000}, unique_fd(dup(file.get()))), 0);
	EXPECT_EQ(m.map({32, 3, 0, 0x20000, 0x1000}, {}), 0);
	u64 length = 0;
	auto put = [](std::byte *at, u64) { *at = std::byte{5}; };
	EXPECT_EQ(m.use(0x11ff0, 0x100, true, length, put), DmaMap::Kind::memory);
	EXPECT_EQ(length, 0x10u);
	std::byte seen{};
	EXPECT_EQ(pread(file.get(), &seen, 1, 0x2ff0), 1);
	EXPECT_EQ(seen, std::byte{5});
	EXPECT_EQ(m.use(0x12000, 8, true, length, put), DmaMap::Kind::none)
		<< "not writable";
	EXPECT_EQ(m.use(0x20000, 8, true, length, put), DmaMap::Kind::message);
	EXPECT_EQ(m.use(0x13000, 8, false, length, put), DmaMap::Kind::none);
	EXPECT_EQ(m.use(0xffff, 8, false, length, put), DmaMap::Kind::none);
}

TEST(DmaMapTest, UnmapWaitsForUsers)
{
	DmaMap m;
	std::atomic<bool> inside{false}, leave{false}, unmapped{false};
	EXPECT_EQ(m.map({32, 3, 0, 0, 0x1000}, memory_file(0x1000)), 0);
	std::jthread user([&] {
		u64 length;
		m.use(0, 8, true, length, [&](std::byte *at, u64) {
			inside = true;
			leave.wait(false);
			EXPECT_FALSE(unmapped);
			*at = std::byte{1}; // would crash if it were gone
		});
	});
	while (!inside)
		std::this_thread::yield();
	std::jthread other([&] {
		EXPECT_EQ(m.unmap({24, 0, 0, 0x1000}), 0);
		unmapped = true;
	});
	std::this_thread::sleep_for(std::chrono::milliseconds(20));
	EXPECT_FALSE(unmapped);
	leave = true;
	leave.notify_all();
}

u64 count_of(const unique_fd &fd)
{
	u64 v = 0;
	return ::read(fd.get(), &v, sizeof(v)) == sizeof(v) ? v : 0;
}

TEST_F(DispatcherTest, Irqs)
{
	unique_fd e(eventfd(0, EFD_NONBLOCK));
	auto set = [&](IrqSet q, std::vector<unique_fd> fds = {}, Payload data = {}) {
		Payload p = bytes_of(q);
		p.insert(p.end(), data.begin(), data.end());
		return error(Command::set_irqs, p, std::move(fds));
	};
	auto copy = [&] { return one(unique_fd(dup(e.get()))); };

	EXPECT_FALSE(device.irqs.raise(0));
	EXPECT_EQ(set({20, 4 | 32, irq_msi, 0, 1}, copy()), 0);
	EXPECT_TRUE(device.irqs.raise(0));
	EXPECT_TRUE(device.irqs.raise(7)) << "falls back to vector 0";
	EXPECT_EQ(count_of(e), 2u);
	EXPECT_EQ(set({20, 1 | 32, irq_msi, 0, 1}), 0) << "a loop-back trigger";
	EXPECT_EQ(count_of(e), 1u);
	EXPECT_EQ(set({20, 2 | 32, irq_msi, 0, 1}, {}, {std::byte{0}}), 0);
	EXPECT_EQ(count_of(e), 0u);
	EXPECT_EQ(set({20, 2 | 32, irq_msi, 0, 1}), EINVAL) << "no flags";
	EXPECT_EQ(set({20, 4 | 32, irq_msi, 0, 1}), 0) << "de-assigns";
	EXPECT_FALSE(device.irqs.raise(0));

	EXPECT_EQ(set({20, 4 | 32, irq_msi, 0, 2}, copy()), EINVAL);
	EXPECT_EQ(set({20, 4 | 32, irq_msi, 0xffffffff, 2}, copy()), EINVAL);
	EXPECT_EQ(set({20, 4 | 32, irq_count, 0, 1}, copy()), EINVAL);
	EXPECT_EQ(set({20, 6 | 32, irq_msi, 0, 1}, copy()), EINVAL);
	EXPECT_EQ(set({20, 4 | 32 | 8, irq_msi, 0, 1}, copy()), EINVAL);
	EXPECT_EQ(set({20, 4 | 32 | 64, irq_msi, 0, 1}, copy()), EINVAL);
	EXPECT_EQ(set({19, 4 | 32, irq_msi, 0, 1}, copy()), EINVAL);
}

TEST(PciConfigTest, SizingAndReadOnlyBits)
{
	PciConfig c;
	auto write = [&](u32 at, u32 v) { c.write(at, as_const_bytes(v)); };
	c.put(0, 0x1002, 2);
	c.put(4, 0, 2, 0x0547);
	c.bar(0, 1ull << 35, PciConfig::memory64_prefetchable);
	c.bar(5, 1 << 21, PciConfig::memory32);
	write(0, 0xffffffff);
	EXPECT_EQ(c.get(0, 2), 0x1002u);
	write(0x10, 0xffffffff);
	write(0x14, 0xffffffff);
	EXPECT_EQ(c.get(0x10, 8), ~((1ull << 35) - 1) | 0xc);
	write(0x24, 0xffffffff);
	EXPECT_EQ(c.get(0x24, 4), 0xffe00000u);
	write(0x10, 0x12345678);
	write(0x14, 0x38);
	EXPECT_EQ(c.bar_address(0), 0x3800000000u);
	write(4, 0xffff);
	EXPECT_TRUE(c.memory_enabled() && c.bus_master());
	c.capability(5, 0xa0);
	c.capability(0x10, 0x64);
	EXPECT_EQ(c.get(0x34, 1), 0xa0u);
	EXPECT_EQ(c.get(0xa0, 2), 0x6405u);
	EXPECT_EQ(c.get(0x64, 2), 0x0010u);
	const u32 v = 0;
	EXPECT_FALSE(c.write(4094, as_const_bytes(v)));
	EXPECT_EQ(c.get(4094, 4), 0xffff0000u);
}

class Bar : public BarTarget {
public:
	std::vector<std::byte> data = std::vector<std::byte>(0x1000);
	bool bar_read(unsigned, u64 o, bytes out) override
	{
		std::memcpy(out.data(), data.data() + o, out.size());
		return true;
	}
	bool bar_write(unsigned, u64 o, const_bytes in) override
	{
		std::memcpy(data.data() + o, in.data(), in.size());
		return true;
	}
	bool bar_update(unsigned, u64 o, unsigned, const std::function<u64(u64)> &fn,
			u64 &old) override
	{
		std::memcpy(&old, data.data() + o, 8);
		u64 v = fn(old);
		std::memcpy(data.data() + o, &v, 8);
		return true;
	}
};

TEST(FabricTest, FindsBars)
{
	Fabric f;
	Bar a, b;
	u64 v = 42, old;
	f.place(a, 0, 0x10000, 0x1000);
	f.place(b, 0, 0x20000, 0x1000);
	EXPECT_TRUE(f.write(0x20ff8, as_const_bytes(v)));
	EXPECT_EQ(b.data[0xff8], std::byte{42});
	EXPECT_FALSE(f.write(0x20ff9, as_const_bytes(v))) << "past the end";
	EXPECT_FALSE(f.write(0x11000, as_const_bytes(v)));
	EXPECT_FALSE(f.write(0xffff, as_const_bytes(v)));
	EXPECT_TRUE(f.update(0x20ff8, 8, [](u64 x) { return x + 1; }, old));
	EXPECT_EQ(old, 42u);
	f.place(b, 0, 0x30000, 0x1000);
	EXPECT_FALSE(f.read(0x20ff8, as_mutable_bytes(v))) << "moved away";
	EXPECT_TRUE(f.read(0x30ff8, as_mutable_bytes(v)));
	EXPECT_EQ(v, 43u);
	f.remove(b);
	EXPECT_FALSE(f.read(0x30ff8, as_mutable_bytes(v)));
	f.remove(a, 1);
	EXPECT_TRUE(f.read(0x10000, as_mutable_bytes(v)));
}

TEST(FabricTest, OffUnderAnIommu)
{
	Fabric f(false);
	Bar a;
	u64 v;
	f.place(a, 0, 0x10000, 0x1000);
	EXPECT_FALSE(f.read(0x10000, as_mutable_bytes(v)));
}

class SessionTest : public testing::Test {
protected:
	FakeDevice device;
	std::unique_ptr<Session> session;
	std::unique_ptr<Transport> client;
	std::jthread reader;

	void SetUp() override
	{
		int pair[2];
		ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
		raw = pair[1];
		session = std::make_unique<Session>(unique_fd(pair[0]), device);
		client = std::make_unique<Transport>(unique_fd(pair[1]));
		reader = std::jthread([this] { session->run(); });
	}
	void TearDown() override { session->stop(); }
	int raw = -1;
};

TEST_F(SessionTest, AnswersAndErrors)
{
	RegionAccess a{0, 5, 4};
	client->send({7, 9, 0, 0, 0}, {as_const_bytes(a)});
	auto m = client->receive();
	ASSERT_TRUE(m);
	EXPECT_EQ(m->header.id, 7);
	EXPECT_EQ(m->header.flags, flag_reply);
	EXPECT_EQ(m->payload.size(), 20u);
	a.region = 99;
	client->send({8, 9, 0, 0, 0}, {as_const_bytes(a)});
	m = client->receive();
	ASSERT_TRUE(m);
	EXPECT_EQ(m->header.flags, flag_reply | flag_error);
	EXPECT_EQ(m->header.error, static_cast<u32>(EINVAL));
}

TEST_F(SessionTest, PostedWritesGetNoReply)
{
	RegionAccess a{0, 5, 4};
	u32 v = 5;
	client->send({1, 10, 0, flag_no_reply, 0},
		     {as_const_bytes(a), as_const_bytes(v)});
	client->send({2, 9, 0, 0, 0}, {as_const_bytes(a)});
	auto m = client->receive();
	ASSERT_TRUE(m);
	EXPECT_EQ(m->header.id, 2);
	EXPECT_EQ(device.last_write, 5u);
}

TEST_F(SessionTest, DescriptorsArriveWithTheirMessage)
{
	unique_fd file = memory_file(0x2000);
	DmaMapRequest q{32, 3, 0, 0x1000, 0x1000}, r{32, 3, 0, 0x8000, 0x1000};
	client->send({1, 2, 0, 0, 0}, {as_const_bytes(q)}, file.get());
	client->send({2, 2, 0, 0, 0}, {as_const_bytes(r)});
	EXPECT_TRUE(client->receive());
	EXPECT_TRUE(client->receive());
	u64 length;
	auto nothing = [](std::byte *, u64) {};
	EXPECT_EQ(device.map.use(0x1000, 1, true, length, nothing),
		  DmaMap::Kind::memory);
	EXPECT_EQ(device.map.use(0x8000, 1, true, length, nothing),
		  DmaMap::Kind::message);
}

TEST_F(SessionTest, DmaByMessageInChunks)
{
	std::vector<std::byte> got(100000);
	std::jthread worker([&] {
		EXPECT_TRUE(session->dma_read(0x5000, got));
		EXPECT_TRUE(session->dma_write(0x9000, const_bytes(got).first(10)));
	});
	u64 at = 0x5000;
	while (at < 0x5000 + 100000) {
		auto m = client->receive();
		ASSERT_TRUE(m);
		auto a = head<DmaAccess>(m->payload);
		EXPECT_EQ(m->header.command, 11);
		EXPECT_EQ(a.address, at);
		EXPECT_LE(a.count, max_dma_message);
		std::vector<std::byte> data(a.count, std::byte{9});
		client->send({m->header.id, 11, 0, flag_reply, 0},
			     {as_const_bytes(a), data});
		at += a.count;
	}
	auto m = client->receive();
	ASSERT_TRUE(m);
	EXPECT_EQ(m->header.command, 12);
	EXPECT_EQ(m->payload.size(), 16 + 10u);
	client->send({m->header.id, 12, 0, flag_reply, 0},
		     {as_const_bytes(head<DmaAccess>(m->payload))});
	worker.join();
	EXPECT_EQ(got[99999], std::byte{9});
}

// Engines do not wait for the client to say how much it accepts. The thread
// sanitizer checks this one.
TEST_F(SessionTest, DmaDuringTheVersion)
{
	constexpr unsigned versions = 500;
	Payload p = json(R"({"max_data_xfer_size":8192})");
	std::array<std::byte, 8> data{};
	std::vector<std::jthread> workers;
	for (int i = 0; i < 3; i++)
		workers.emplace_back([this] {
			std::array<std::byte, 8> got;
			while (session->dma_read(0x5000, got))
				;
		});
	client->send({0, 1, 0, 0, 0}, {p});
	for (unsigned replies = 0; replies < versions;) {
		auto m = client->receive();
		ASSERT_TRUE(m);
		if (m->header.command == 1) {
			replies++;
			client->send({0, 1, 0, 0, 0}, {p});
		} else {
			client->send(
				{m->header.id, 11, 0, flag_reply, 0},
				{as_const_bytes(head<DmaAccess>(m->payload)), data});
		}
	}
	client->shutdown();
}

TEST_F(SessionTest, ShortAndFailedDmaReplies)
{
	std::array<std::byte, 8> got;
	for (u32 flags : {flag_reply, flag_reply | flag_error}) {
		std::jthread worker(
			[&] { EXPECT_FALSE(session->dma_read(0x5000, got)); });
		auto m = client->receive();
		ASSERT_TRUE(m);
		client->send({m->header.id, 11, 0, flags, 5},
			     {as_const_bytes(DmaAccess{0x5000, 8})});
	}
	// a reply that no thread waits for
	client->send({0x7777, 11, 0, flag_reply, 0}, {});
}

TEST_F(SessionTest, ClientGoesAwayDuringDma)
{
	std::array<std::byte, 8> got;
	std::jthread worker([&] {
		EXPECT_FALSE(session->dma_read(0x5000, got));
		EXPECT_FALSE(session->dma_read(0x5000, got));
	});
	ASSERT_TRUE(client->receive());
	client->shutdown();
}

TEST_F(SessionTest, BadFramesEndTheSession)
{
	Header h{1, 9, 15, 0, 0};
	ASSERT_EQ(::write(raw, &h, sizeof(h)), static_cast<ssize_t>(sizeof(h)));
	EXPECT_FALSE(client->receive());
}

TEST_F(SessionTest, OversizedFrame)
{
	Header h{1, 9, max_message + 1, 0, 0};
	ASSERT_EQ(::write(raw, &h, sizeof(h)), static_cast<ssize_t>(sizeof(h)));
	EXPECT_FALSE(client->receive());
}

TEST_F(SessionTest, FrameInPieces)
{
	RegionAccess a{0, 5, 4};
	Header h{3, 9, sizeof(h) + sizeof(a), 0, 0};
	Payload all = bytes_of(h, a);
	for (std::byte b : all)
		ASSERT_EQ(::write(raw, &b, 1), 1);
	auto m = client->receive();
	ASSERT_TRUE(m);
	EXPECT_EQ(m->header.id, 3);
}

} // namespace
