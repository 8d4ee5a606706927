// SPDX-License-Identifier: MIT
// sluice-emu: the GPUs of one virtual machine.
#include "control.hpp"

#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <format>
#include <optional>

#include <getopt.h>

using namespace sluice::emu;

namespace {

struct Options {
	std::string directory;
	std::string vram_dir;
	unsigned gpus = 1;
	bool viommu = false, xgmi = false;
	EndpointConfig endpoint;
};

constexpr const char *usage_text =
	"usage: sluice-emu [options] DIRECTORY\n"
	"Serve emulated MI300X GPUs to one QEMU, at DIRECTORY/gpu0, gpu1, ...\n"
	"Commands are taken at DIRECTORY/control (sluice-emu-ctl).\n"
	"\n"
	"  --gpus N       how many (default 1, at most 64)\n"
	"  --engines N    SDMA engines of each: 1 to 4, 8, 12 or 16 (default 2)\n"
	"  --vram MB      video memory of each, a power of two (default 1024)\n"
	"  --vram-dir DIR make it of the files DIR/vram0, vram1, ...: to be looked at\n"
	"  --seed N       disorder between queues, and between the packets of one,\n"
	"                 repeatable (default 0: none)\n"
	"  --hdp-shadow   hold host writes back until flushed: BAR 0 is trapped,\n"
	"                 thousands of times slower\n"
	"  --poison       fill video memory with a pattern at power-on and resets\n"
	"  --monitor PATH where QEMU's monitor (QMP) is, for \"remove\"\n"
	"  --viommu       the guest has an IOMMU: no peer look-up by address\n"
	"  --xgmi         the GPUs, 2 to 8, are a hive: linked by xGMI\n"
	"  --no-xnack     never answer a fault with a retry\n"
	"  --verbose      log faults and resets; twice: queues as well\n";

[[noreturn]] void usage(int status)
{
	std::fputs(usage_text, status ? stderr : stdout);
	std::exit(status);
}

// So much of each segment stays empty behind its GPU's memory.
constexpr u64 hive_gap = 1ull << 30;

u64 number(const char *text, u64 low, u64 high)
{
	u64 v = 0;
	const char *end = text + std::char_traits<char>::length(text);
	auto [stop, error] = std::from_chars(text, end, v);

	if (error != std::errc() || stop != end || v < low || v > high) {
		std::fprintf(stderr, "sluice-emu: bad number '%s'\n", text);
		std::exit(2);
	}
	return v;
}

// Dies are complete, except a lone one.
bool good_engines(u64 n)
{
	return n <= reg::engines_per_die || n % reg::engines_per_die == 0;
}

Options parse(int argc, char **argv)
{
	static const option options[]{
		{"gpus", 1, nullptr, 'g'},     {"engines", 1, nullptr, 'e'},
		{"vram", 1, nullptr, 'm'},     {"vram-dir", 1, nullptr, 'f'},
		{"seed", 1, nullptr, 's'},     {"hdp-shadow", 0, nullptr, 'd'},
		{"poison", 0, nullptr, 'p'},   {"monitor", 1, nullptr, 'q'},
		{"viommu", 0, nullptr, 'i'},   {"xgmi", 0, nullptr, 'l'},
		{"no-xnack", 0, nullptr, 'x'}, {"verbose", 0, nullptr, 'v'},
		{"help", 0, nullptr, 'h'},     {}};
	Options o;
	int c;

	o.endpoint.verbosity = Log::notice;
	while ((c = getopt_long(argc, argv, "hv", options, nullptr)) >= 0) {
		EndpointConfig &e = o.endpoint;
		switch (c) {
		case 'g': o.gpus = static_cast<unsigned>(number(optarg, 1, 64)); break;
		case 'e':
			e.gpu.engines = static_cast<unsigned>(
				number(optarg, 1, reg::max_engines));
			break;
		case 'm': e.vram = number(optarg, 512, 1 << 20) << 20; break;
		case 'f': o.vram_dir = optarg; break;
		case 's': e.gpu.seed = number(optarg, 0, ~0ull); break;
		case 'd': e.gpu.hdp_shadow = true; break;
		case 'p': e.poison = true; break;
		case 'q': e.monitor = optarg; break;
		case 'i': o.viommu = true; break;
		case 'l': o.xgmi = true; break;
		case 'x': e.gpu.vm.retry = false; break;
		case 'v':
			e.verbosity = static_cast<Log>(
				std::min(static_cast<int>(e.verbosity) + 1,
					 static_cast<int>(Log::debug)));
			break;
		default: usage(c == 'h' ? 0 : 2);
		}
	}
	if (optind != argc - 1 || !good_engines(o.endpoint.gpu.engines) ||
	    (o.endpoint.vram & (o.endpoint.vram - 1)) ||
	    (o.xgmi && (o.gpus < 2 || o.gpus > Hive::most_nodes)))
		usage(2);
	o.directory = argv[optind];
	return o;
}

Control::Endpoints make_endpoints(const Options &o, vfio::Fabric &fabric, Hive &hive)
{
	Control::Endpoints endpoints;

	for (unsigned i = 0; i < o.gpus; i++) {
		EndpointConfig e = o.endpoint;
		e.index = i;
		e.socket = std::format("{}/gpu{}", o.directory, i);
		if (!o.vram_dir.empty())
			e.vram_file = std::format("{}/vram{}", o.vram_dir, i);
		if (o.xgmi)
			e.gpu.member = {&hive, i};
		if (e.gpu.seed)
			e.gpu.seed += u64{1000} * i;
		endpoints.push_back(std::make_unique<Endpoint>(e, fabric));
	}
	return endpoints;
}

int run(const Options &o)
{
	sigset_t signals;
	int signal;

	// blocked before any thread starts, so that only this one gets them
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	pthread_sigmask(SIG_BLOCK, &signals, nullptr);

	std::filesystem::create_directories(o.directory);
	vfio::Fabric fabric(!o.viommu);
	Hive hive(o.gpus, o.endpoint.vram + hive_gap);
	Control::Endpoints endpoints = make_endpoints(o, fabric, hive);
	Control control(o.directory + "/control", endpoints);
	std::vector<std::jthread> servers;
	for (auto &e : endpoints)
		servers.emplace_back([&e] { e->serve(); });
	std::puts("ready");
	std::fflush(stdout);
	sigwait(&signals, &signal);
	for (auto &e : endpoints)
		e->stop();
	return 0;
}

} // namespace

int main(int argc, char **argv)
{
	Options o = parse(argc, argv);

	try {
		return run(o);
	} catch (const std::exception &e) {
		std::fprintf(stderr, "sluice-emu: %s\n", e.what());
		return 1;
	}
}
