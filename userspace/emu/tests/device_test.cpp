// SPDX-License-Identifier: MIT
// The endpoint, its control commands and the generated files.
#include "control.hpp"
#include "firmware.hpp"
#include "monitor.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <format>
#include <future>
#include <numeric>
#include <thread>

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

using namespace sluice::emu;

namespace {

class DeviceTest : public testing::Test {
protected:
	vfio::Fabric fabric;
	Control::Endpoints endpoints;

	void SetUp() override
	{
		for (unsigned i = 0; i < 2; i++) {
			EndpointConfig c;
			c.index = i;
			c.vram = 16 << 20;
			c.verbosity = Log::error;
			c.socket = std::format("{}emu-test-{}-{}", testing::TempDir(),
					       getpid(), i);
			endpoints.push_back(std::make_unique<Endpoint>(c, fabric));
		}
	}
	std::string run(std::string_view line)
	{
		return Control::execute(line, endpoints);
	}
	void config(unsigned gpu, u64 offset, u32 value)
	{
		endpoints[gpu]->region_write(vfio::region_config, offset,
					     as_const_bytes(value));
	}
	u32 read(unsigned gpu, u32 region, u64 offset)
	{
		u32 v;
		endpoints[gpu]->region_read(region, offset, as_mutable_bytes(v));
		return v;
	}
};

TEST_F(DeviceTest, Identity)
{
	EXPECT_EQ(read(0, vfio::region_config, 0), 0x74a11002u);
	EXPECT_EQ(read(0, vfio::region_config, 8) >> 24, 0x12u);
	EXPECT_EQ(read(0, 5, reg::memory_size * 4), 16u);
}

TEST_F(DeviceTest, PeersReachEachOther)
{
	u32 v = 77, got = 0;
	Endpoint &a = *endpoints[0], &b = *endpoints[1];
	EXPECT_EQ(a.write(0x800000010, as_const_bytes(v)), Path::off);
	config(1, 0x10, 0);
	config(1, 0x14, 8);
	config(1, 4, 6);
	EXPECT_EQ(a.write(0x800000010, as_const_bytes(v)), Path::off)
		<< "without bus mastering";
	config(0, 4, 6);
	EXPECT_EQ(a.write(0x800000010, as_const_bytes(v)), Path::peer);
	b.region_read(0, 16, as_mutable_bytes(got));
	EXPECT_EQ(got, 77u);
	u64 old;
	EXPECT_EQ(a.update(0x800000010, 4, [](u64 x) { return x + 1; }, old),
		  Path::peer);
	EXPECT_EQ(read(1, 0, 16), 78u);
	config(1, 4, 4);
	EXPECT_EQ(a.read(0x800000010, as_mutable_bytes(v)), Path::none)
		<< "memory decoding is off";
}

TEST_F(DeviceTest, SurpriseRemoval)
{
	EXPECT_EQ(run("gpu1 vanish"), "ok\n");
	EXPECT_EQ(read(1, vfio::region_config, 0), ~0u);
	EXPECT_EQ(read(1, 5, reg::memory_size * 4), ~0u);
	EXPECT_EQ(read(0, 5, reg::memory_size * 4), 16u);
	u32 v = 0;
	u64 old;
	EXPECT_EQ(endpoints[1]->read(0x1000, as_mutable_bytes(v)), Path::off);
	EXPECT_EQ(endpoints[1]->update(0x1000, 4, [](u64 x) { return x; }, old),
		  Path::off);
	EXPECT_EQ(run("gpu1 remove"), "error: no monitor\n");
	EXPECT_EQ(read(1, 5, reg::memory_size * 4), ~0u);
}

void set(Endpoint &e, u32 r, u32 value)
{
	e.region_write(5, r * 4ull, as_const_bytes(value));
}

// Lets an engine read a ring in the guest's memory: 64 KiB of zeros, which are NOPs.
void start_reading(Endpoint &e)
{
	constexpr u64 guest = 0x100000000, size = 64 << 10, fb_offset = 0x40ull << 24;
	constexpr u32 hub = reg::mmhub_base(0);
	constexpr u32 queue = reg::sdma_base(0) + reg::sdma_queue(0);
	vfio::unique_fd file(memfd_create("guest", MFD_CLOEXEC));
	vfio::DmaMapRequest all{sizeof(all), 3, 0, guest, size};

	ASSERT_EQ(ftruncate(file.get(), size), 0);
	ASSERT_EQ(e.dma().map(all, std::move(file)), 0);
	for (u64 i = 0; i < size / page_size; i++) {
		u64 entry = (guest + i * page_size) | pte::valid | pte::system |
			    pte::readable;
		std::memcpy(e.gpu().vram().device(8 * i, 8), &entry, 8);
	}
	set(e, hub + reg::mm_layout.context_cntl, 1);
	set(e, hub + reg::mm_layout.page_table_base, fb_offset | pte::valid);
	set(e, hub + reg::mm_layout.page_table_end, size / page_size - 1);
	set(e, queue + reg::rb_cntl, 1 | 14 << 1);
	set(e, queue + reg::rb_wptr, size);
}

// Reads give ones before the engine is reset. These are not taken for packets.
TEST_F(DeviceTest, GoesAwayWhileAnEngineReads)
{
	u64 packets = 0;

	for (int i = 0; i < 200; i++) {
		EndpointConfig c;
		c.vram = 16 << 20;
		c.verbosity = Log::error;
		c.socket = std::format("{}emu-test-{}-x", testing::TempDir(), getpid());
		c.gpu.seed = i % 2;
		Endpoint e(c, fabric);
		e.region_write(vfio::region_config, 4, as_const_bytes(u16{6}));
		start_reading(e);
		std::this_thread::sleep_for(std::chrono::microseconds(i * 5));
		if (i % 4 < 2)
			e.vanish();
		else // how the driver's reset begins
			e.region_write(vfio::region_config, 4, as_const_bytes(u16{2}));
		std::this_thread::sleep_for(std::chrono::microseconds(300));
		packets += e.gpu().stats().packets.get();
		ASSERT_EQ(e.gpu().stats().illegal_packets.get(), 0u) << i;
		ASSERT_EQ(e.gpu().stats().faults.get(), 0u) << i;
	}
	EXPECT_GT(packets, 0u);
}

// A monitor that sends these lines, each except the first after a command.
static std::string talk(const std::string &path,
			std::initializer_list<std::string_view> lines,
			std::string &heard)
{
	vfio::unique_fd listener = vfio::listen_at(path);
	std::jthread monitor([&] {
		vfio::unique_fd fd(accept(listener.get(), nullptr, nullptr));
		char text[256];
		bool first = true;
		for (std::string_view line : lines) {
			ssize_t n = first ? 0 : recv(fd.get(), text, sizeof(text), 0);
			heard.append(text, static_cast<size_t>(std::max(n, 0l)));
			send(fd.get(), line.data(), line.size(), MSG_NOSIGNAL);
			first = false;
		}
	});
	return unplug(path, "gpu3");
}

TEST_F(DeviceTest, Monitor)
{
	std::string path =
		std::format("{}emu-monitor-{}", testing::TempDir(), getpid());
	std::string heard;

	EXPECT_EQ(talk(path,
		       {"{\"QMP\": {}}\n", "{\"return\": {}}\n",
			"{\"event\": \"X\"}\n{\"return\": {}}\n"},
		       heard),
		  "");
	EXPECT_TRUE(heard.contains("device_del")) << heard;
	EXPECT_TRUE(heard.contains("\"gpu3\"")) << heard;
	EXPECT_EQ(talk(path,
		       {"{\"QMP\": {}}\n", "{\"return\": {}}\n", "{\"error\": {}}\n"},
		       heard),
		  "QEMU refuses");
	EXPECT_EQ(talk(path, {"{\"QMP\": {}}\n"}, heard), "no QEMU at the monitor");
	EXPECT_NE(unplug("/nonexistent/monitor", "gpu3"), "");
}

// A QEMU that hangs does not hang its caller, whatever it has sent by then.
TEST_F(DeviceTest, MonitorThatHangs)
{
	using namespace std::chrono_literals;
	std::string path = std::format("{}emu-hung-{}", testing::TempDir(), getpid());
	vfio::unique_fd listener = vfio::listen_at(path);
	auto ask = [&] {
		auto answer = std::async(std::launch::async,
					 [&] { return unplug(path, "gpu3", 200ms); });
		bool came = answer.wait_for(10s) == std::future_status::ready;
		if (!came) // end it anyway
			listener = {};
		EXPECT_TRUE(came);
		return answer.get();
	};

	EXPECT_EQ(ask(), "QEMU does not answer within 200 ms") << "nobody accepts";
	fcntl(listener.get(), F_SETFL, O_NONBLOCK);
	std::jthread chatter([&](std::stop_token stop) {
		std::vector<vfio::unique_fd> clients;
		while (!stop.stop_requested()) {
			vfio::unique_fd fd(accept(listener.get(), nullptr, nullptr));
			if (fd)
				clients.push_back(std::move(fd));
			for (auto &c : clients)
				send(c.get(), "x", 1, MSG_NOSIGNAL);
			std::this_thread::sleep_for(5ms);
		}
	});
	EXPECT_EQ(ask(), "QEMU does not answer within 200 ms")
		<< "one that only chatters";
	chatter.request_stop();
	chatter.join();
	std::vector<vfio::unique_fd> waiting;
	for (int i = 0; i < 5; i++) // one more than may wait
		waiting.push_back(vfio::connect_to(path));
	EXPECT_NE(ask(), "") << "too many wait already";
}

TEST_F(DeviceTest, RegisterAccessSizes)
{
	u32 v = 0x11223344;
	u16 half = 0;
	u64 wide = 0;
	Endpoint &e = *endpoints[0];
	e.region_write(5, 0xe0000, as_const_bytes(v));
	e.region_read(5, 0xe0002, as_mutable_bytes(half));
	EXPECT_EQ(half, 0x1122);
	e.region_write(5, 0xe0000, as_const_bytes(half));
	EXPECT_EQ(read(0, 5, 0xe0000), v) << "half a register";
	e.region_read(5, 0xe0000, as_mutable_bytes(wide));
	EXPECT_EQ(wide, v);
}

TEST_F(DeviceTest, ControlCommands)
{
	EXPECT_EQ(run("list"), "2\nok\n");
	EXPECT_EQ(run(""), "ok\n");
	EXPECT_TRUE(run("help").ends_with("ok\n"));
	EXPECT_TRUE(run("stats").starts_with("{\"engines\":2,\"packets\":0,"));
	EXPECT_EQ(run("gpu1 irq drop 3"), "ok\n");
	EXPECT_EQ(endpoints[1]->irq_gate().drop, 3u);
	EXPECT_EQ(run("engine 1 hang"), "ok\n");
	EXPECT_TRUE(endpoints[0]->gpu().engine(1).faults().hang);
	EXPECT_EQ(run("engine 1 resume"), "ok\n");
	EXPECT_FALSE(endpoints[0]->gpu().engine(1).faults().hang);
	EXPECT_EQ(run("engine all hang"), "ok\n");
	EXPECT_TRUE(endpoints[0]->gpu().engine(0).faults().hang);
	EXPECT_TRUE(endpoints[0]->gpu().engine(1).faults().hang);
	EXPECT_EQ(run("engine all resume"), "ok\n");
	EXPECT_EQ(run("engine 0 slow 50"), "ok\n");
	EXPECT_EQ(endpoints[0]->gpu().engine(0).faults().slow_ns, 50000u);
	EXPECT_EQ(run("engine 0 corrupt-fences 2"), "ok\n");
	EXPECT_EQ(run("xnack all"), "ok\n");
	EXPECT_EQ(run("xnack off"), "ok\n");
	EXPECT_EQ(run("poison 0x1000 8"), "ok\n");
	EXPECT_EQ(run("peek 0x1000 4"), "ad5bad5b\nok\n");
	EXPECT_NE(run("hash 0x1000 8"), run("hash 0x2000 8"));
	EXPECT_EQ(run("timeline start"), "ok\n");
	EXPECT_TRUE(run("timeline dump").starts_with("[{\"ph\":\"M\""));
	EXPECT_EQ(run("reset-stats"), "ok\n");
}

TEST_F(DeviceTest, PausesAreBounded)
{
	EXPECT_EQ(run("irq delay 10000000"), "ok\n");
	EXPECT_EQ(run("irq delay 10000001"), "error: at most 10000000 us\n");
	EXPECT_EQ(run("engine 0 slow 18446744073709551615"),
		  "error: at most 10000000 us\n");
	EXPECT_EQ(endpoints[0]->gpu().engine(0).faults().slow_ns, 0u);
}

size_t entries(const char *directory)
{
	auto all = std::filesystem::directory_iterator(directory);
	return static_cast<size_t>(std::distance(begin(all), end(all)));
}

// All descriptors that this process may have.
class FullTable {
public:
	FullTable()
	{
		getrlimit(RLIMIT_NOFILE, &before_);
		rlimit few{256, before_.rlim_max};
		setrlimit(RLIMIT_NOFILE, &few);
		for (int fd; (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;)
			fds_.emplace_back(fd);
		EXPECT_EQ(errno, EMFILE);
	}
	~FullTable() { setrlimit(RLIMIT_NOFILE, &before_); }

private:
	rlimit before_{};
	std::vector<vfio::unique_fd> fds_;
};

class SocketTest : public DeviceTest {
protected:
	std::string path = std::format("{}emu-socket-{}", testing::TempDir(), getpid());

	// A client that gives up rather than hang.
	static vfio::unique_fd client()
	{
		vfio::unique_fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
		timeval patience{10, 0};
		setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience,
			   sizeof(patience));
		return fd;
	}
	static bool connect(int fd, const std::string &to)
	{
		sockaddr_un a{AF_UNIX, {}};
		to.copy(a.sun_path, sizeof(a.sun_path) - 1);
		return ::connect(fd, reinterpret_cast<sockaddr *>(&a), sizeof(a)) == 0;
	}
	static std::string ask(int fd, std::string_view line)
	{
		char answer[64];
		send(fd, line.data(), line.size(), MSG_NOSIGNAL);
		ssize_t n = recv(fd, answer, sizeof(answer), 0);
		return {answer, static_cast<size_t>(std::max<ssize_t>(n, 0))};
	}
};

TEST_F(SocketTest, ClientsLeaveNothingBehind)
{
	Control control(path, endpoints);
	size_t fds = entries("/proc/self/fd"), threads = entries("/proc/self/task");
	for (int i = 0; i < 100; i++) {
		vfio::unique_fd fd = client();
		ASSERT_TRUE(connect(fd.get(), path));
		ASSERT_EQ(ask(fd.get(), "list\n"), "2\nok\n");
	}
	auto settled = [&] {
		return entries("/proc/self/fd") <= fds &&
		       entries("/proc/self/task") <= threads + 1;
	};
	for (int i = 0; i < 1000 && !settled(); i++)
		std::this_thread::sleep_for(std::chrono::milliseconds(5));
	EXPECT_LE(entries("/proc/self/fd"), fds);
	EXPECT_LE(entries("/proc/self/task"), threads + 1);
}

TEST_F(SocketTest, EndsWithClientsThatStay)
{
	vfio::unique_fd a = client(), b = client();
	{
		Control control(path, endpoints);
		ASSERT_TRUE(connect(a.get(), path));
		ASSERT_TRUE(connect(b.get(), path));
		EXPECT_EQ(ask(a.get(), "list\n"), "2\nok\n");
	}
	EXPECT_EQ(ask(a.get(), "list\n"), "") << "it is gone";
}

// A descriptor is kept for the first client: accept() takes it before it waits.
TEST_F(SocketTest, ControlOutlivesAFullTable)
{
	Control control(path, endpoints);
	vfio::unique_fd first = client(), second = client();
	{
		FullTable full;
		ASSERT_TRUE(connect(first.get(), path));
		ASSERT_TRUE(connect(second.get(), path));
		std::this_thread::sleep_for(std::chrono::milliseconds(100));
	}
	EXPECT_EQ(ask(first.get(), "list\n"), "2\nok\n");
	EXPECT_EQ(ask(second.get(), "list\n"), "2\nok\n");
}

int ctl(const std::string &arguments)
{
	int status = std::system(
		std::format("timeout 20 {} {} 2>/dev/null", CTL, arguments).c_str());
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(SocketTest, CtlGivesUp)
{
	vfio::unique_fd silent = vfio::listen_at(path);
	EXPECT_EQ(ctl(std::format("--timeout 1 {} list", path)), 1);
	for (const char *seconds : {"0", "x", "1s", "-1", "86401", ""})
		EXPECT_EQ(ctl(std::format("--timeout '{}' {} list", seconds, path)), 2)
			<< seconds;
	EXPECT_EQ(ctl(std::format("--timeout 1 {}", path)), 2);
	Control control(path, endpoints);
	EXPECT_EQ(ctl(std::format("{} list >/dev/null", path)), 0);
	EXPECT_EQ(ctl(std::format("--timeout 10 {} gpu1 stats >/dev/null", path)), 0);
	EXPECT_EQ(ctl(std::format("{} gpu9 stats", path)), 1);
}

TEST_F(SocketTest, DeviceOutlivesAFullTable)
{
	std::jthread server;
	vfio::unique_fd fd = client();
	{
		FullTable full;
		server = std::jthread([this] { endpoints[0]->serve(); });
		ASSERT_TRUE(
			connect(fd.get(), std::format("{}emu-test-{}-0",
						      testing::TempDir(), getpid())));
		std::this_thread::sleep_for(std::chrono::milliseconds(100));
	}
	vfio::Header version{1, 1, sizeof(version) + 4, 0, 0};
	std::string request(reinterpret_cast<char *>(&version), sizeof(version));
	EXPECT_NE(ask(fd.get(), request + std::string{0, 0, 1, 0}), "");
	fd = {};
	endpoints[0]->stop();
}

// Starts the program and returns when it is ready.
pid_t start_emulator(const std::string &directory)
{
	int out[2];
	char text[6];

	if (pipe(out))
		return -1;
	pid_t child = fork();
	if (!child) {
		dup2(out[1], 1);
		close(out[0]);
		close(out[1]);
		execl(EMU, EMU, "--gpus", "2", "--vram", "512", directory.c_str(),
		      nullptr);
		_exit(127);
	}
	close(out[1]);
	EXPECT_EQ(::read(out[0], text, sizeof(text)), 6) << "not ready";
	close(out[0]);
	return child;
}

// With clients or without, it ends well when it is told to.
TEST_F(SocketTest, EmulatorEndsOnSignals)
{
	for (int signal : {SIGTERM, SIGINT}) {
		std::string directory =
			std::format("{}emu-program-{}", testing::TempDir(), getpid());
		pid_t child = start_emulator(directory);
		int status = -1;
		vfio::unique_fd a = client(), b = client();
		if (signal == SIGTERM) {
			ASSERT_TRUE(connect(a.get(), directory + "/gpu0"));
			ASSERT_TRUE(connect(b.get(), directory + "/control"));
			EXPECT_EQ(ask(b.get(), "list\n"), "2\nok\n");
		}
		ASSERT_GT(child, 0);
		kill(child, signal);
		for (int i = 0; i < 1000 && !waitpid(child, &status, WNOHANG); i++)
			std::this_thread::sleep_for(std::chrono::milliseconds(10));
		EXPECT_TRUE(WIFEXITED(status)) << status;
		EXPECT_EQ(WEXITSTATUS(status), 0);
		std::filesystem::remove_all(directory);
	}
}

// Destroying a gate does not wait for interrupts that are late.
TEST(IrqGateTest, EndsInTheMiddleOfADelay)
{
	auto start = std::chrono::steady_clock::now();
	{
		IrqGate gate([] {});
		gate.delay_us = 10'000'000;
		gate.raise();
	}
	EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST_F(DeviceTest, ControlErrors)
{
	for (const char *line : {"gpu2 stats",
				 "gpu stats",
				 "gpux stats",
				 "gpu0",
				 "nonsense",
				 "irq",
				 "irq drop",
				 "irq drop x",
				 "irq drop 0x",
				 "irq lose 1",
				 "irq drop 4294967296",
				 "engine",
				 "engine 2 hang",
				 "engine 0",
				 "engine all",
				 "engine 0 stop",
				 "engine 0 slow",
				 "xnack",
				 "xnack maybe",
				 "peek 0 70000",
				 "peek 0x1000000 1",
				 "peek 0xffffffffffffffff 2",
				 "poison 0 0x1000001",
				 "timeline",
				 "timeline maybe",
				 "hash 99999999999999999999 1"})
		EXPECT_TRUE(run(line).starts_with("error: ")) << line;
}

TEST(IrqGateTest, DropDuplicateDelay)
{
	std::atomic<unsigned> n{0};
	IrqGate gate([&n] { n++; });
	gate.raise();
	EXPECT_EQ(n, 1u);
	gate.drop = 2;
	for (int i = 0; i < 3; i++)
		gate.raise();
	EXPECT_EQ(n, 2u);
	gate.duplicate = 1;
	gate.raise();
	gate.raise();
	EXPECT_EQ(n, 5u);
	gate.delay_us = 20000;
	gate.raise();
	EXPECT_EQ(n, 5u);
	for (int i = 0; i < 200 && n == 5; i++)
		std::this_thread::sleep_for(std::chrono::milliseconds(5));
	EXPECT_EQ(n, 6u);
}

u32 le(const std::vector<u8> &d, size_t at, unsigned width)
{
	u32 v = 0;
	for (unsigned i = 0; i < width; i++)
		v |= static_cast<u32>(d.at(at + i)) << 8 * i;
	return v;
}

u32 sum(const std::vector<u8> &d, size_t at, size_t n)
{
	return std::accumulate(d.begin() + static_cast<long>(at),
			       d.begin() + static_cast<long>(at + n), 0u) &
	       0xffff;
}

// As the driver checks it.
TEST(Firmware, DiscoveryIsConsistent)
{
	for (unsigned engines : {1u, 2u, 16u}) {
		auto d = make_discovery(engines);
		EXPECT_EQ(le(d, 0, 4), 0x28211407u);
		EXPECT_EQ(le(d, 10, 2), d.size());
		EXPECT_EQ(le(d, 8, 2), sum(d, 10, d.size() - 10));
		for (size_t t : {0, 1, 2, 4}) {
			u32 at = le(d, 12 + 8 * t, 2), n = le(d, 16 + 8 * t, 2);
			EXPECT_EQ(le(d, 14 + 8 * t, 2), sum(d, at, n)) << t;
		}
		EXPECT_EQ(le(d, 60, 4), 0x53445049u);
		u32 ips = le(d, 142, 2), at = 144, sdma = 0;
		for (u32 i = 0; i < ips; i++) {
			sdma += le(d, at, 2) == 42;
			at += 8 + 4 * d[at + 3];
		}
		EXPECT_EQ(sdma, engines);
		EXPECT_EQ(at, 60 + le(d, 66, 2));
	}
}

// KFD's users rely on these; the word's place is that of gc_info_v2_1.
TEST(Firmware, DiscoveryTellsOfCaches)
{
	auto d = make_discovery(16);
	u32 gc = le(d, 12 + 8, 2), mall = le(d, 12 + 8 * 4, 2), channels = 0;
	auto word = [&](u32 n) { return le(d, gc + 12 + 4 * n, 4); };

	EXPECT_EQ(le(d, gc + 8, 4), 12 + 24 * 4u);
	EXPECT_EQ(le(d, 16 + 8, 2), 12 + 24 * 4u);
	EXPECT_EQ(word(11), 64u) << "lanes of a wavefront";
	EXPECT_EQ(word(12), 8u) << "waves of a SIMD";
	EXPECT_EQ(word(14), 64u) << "LDS, KB";
	EXPECT_EQ(word(18), 32u) << "L1, KB";
	EXPECT_EQ(word(20), 2u) << "CUs that share the scalar caches";
	EXPECT_EQ(word(21), 64u) << "instruction cache, KB";
	EXPECT_EQ(word(22), 16u) << "scalar data cache, KB";
	EXPECT_EQ(word(23), 4096u) << "L2, KB";
	for (u32 i = le(d, 142, 2), at = 144; i; at += 8 + 4 * d[at + 3], i--)
		channels += le(d, at, 2) == 150;
	EXPECT_EQ(le(d, mall, 4), 0x4c4c414du);
	EXPECT_EQ(channels * le(d, mall + 12, 4), 256u << 20);
}

TEST(Firmware, ImagesMatchTheirHeaders)
{
	for (const File &f : make_firmware(2)) {
		if (f.name == "ip_discovery.bin")
			continue;
		EXPECT_EQ(le(f.data, 0, 4), f.data.size()) << f.name;
		EXPECT_EQ(le(f.data, 4, 4) + le(f.data, 20, 4), f.data.size());
	}
}

} // namespace
