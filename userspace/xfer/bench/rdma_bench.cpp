// SPDX-License-Identifier: MIT
// rdma-bench: what RDMA into device private memory costs, compared with
// ordinary memory, in one run.
//
// Two queue pairs of one process write to and read from a target buffer:
//
//   system    ordinary anonymous memory, on demand, mapped by the RDMA device
//   alias     device private memory, by its alias, mapped
//   system0   as system, but no page is mapped yet: the first touch
//   alias0    as alias, first touch
//   fallback  device private memory that the RDMA device cannot reach: every
//             page is migrated to system memory at its first touch
//
// The series take turns within each round, so that a disturbance of the
// machine meets all of them, and medians over the rounds are printed.
#include <algorithm>
#include <array>
#include <format>
#include <fstream>
#include <iostream>
#include <map>
#include <thread>
#include <vector>

#include <sys/utsname.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "xfer/buffer.hpp"
#include "xfer/peer_memory.hpp"
#include "xfer/verbs.hpp"

using namespace xfer;

namespace {

struct Options {
	std::string device, peer_device, memory, json, note;
	unsigned rounds = 5;
	uint32_t depth = 16;
	uint64_t span = uint64_t{4} << 20;	// bytes moved in a sample
	uint64_t min_size = 4096, max_size = uint64_t{16} << 20;
};

constexpr std::array series = {"system", "alias", "system0", "alias0",
			       "fallback"};
constexpr std::array operations = {"write", "read"};

/// Samples of one size, operation and series.
struct Samples {
	std::vector<double> rate;	///< MB/s (10^6), one a round
	std::vector<double> latency;	///< microseconds, one an operation
};

double quantile(std::vector<double> v, double q)
{
	if (v.empty())
		return 0;
	auto at = static_cast<size_t>(q * static_cast<double>(v.size() - 1) + 0.5);

	std::ranges::nth_element(v, v.begin() + static_cast<ptrdiff_t>(at));
	return v[at];
}

double median(const std::vector<double> &v)
{
	return quantile(v, 0.5);
}

/// One connection of this process with itself.
class Link {
public:
	explicit Link(const Options &o)
		: near(o.device), far(o.peer_device),
		  cq_(near, static_cast<int>(o.depth)), far_cq_(far, 1),
		  qp_(near, cq_, o.depth, 1), far_qp_(far, far_cq_, 1, 1)
	{
		or_throw(qp_.connect(far_qp_.address()));
		or_throw(far_qp_.connect(qp_.address()));
	}

	/// Do @p count operations, at most @p depth at once. Each goes to where
	/// the one before it ended in the target, from or to the same local
	/// bytes. With a depth of 1, their times go to @p latency.
	void run(QueuePair::Rdma rdma, unsigned count, uint32_t depth,
		 std::vector<double> *latency);

	RdmaDevice near, far;

private:
	unsigned reap();

	CompletionQueue cq_, far_cq_;
	QueuePair qp_, far_qp_;
};

unsigned Link::reap()
{
	std::array<ibv_wc, 16> done;
	auto n = or_throw(cq_.next(done, -1, after(std::chrono::seconds(60))));

	for (const auto &wc : std::span(done).first(n))
		if (wc.status != IBV_WC_SUCCESS)
			throw completion_error(wc, "itself", near.name());
	return static_cast<unsigned>(n);
}

void Link::run(QueuePair::Rdma rdma, unsigned count, uint32_t depth,
	       std::vector<double> *latency)
{
	unsigned posted = 0, complete = 0;
	auto start = clock::now();

	while (complete < count) {
		while (posted < count && posted - complete < depth) {
			rdma.wr_id = posted++;
			or_throw(qp_.post(rdma));
			rdma.address += rdma.local.size();
		}
		complete += reap();
		if (latency) {
			auto now = clock::now();
			latency->push_back(std::chrono::duration<double,
					   std::micro>(now - start).count());
			start = now;
		}
	}
}

class Bench {
public:
	explicit Bench(const Options &o);

	void run();
	std::string table() const;
	nlohmann::ordered_json json() const;

private:
	using Key = std::tuple<uint64_t, std::string, std::string>;

	bool wanted(const std::string &name) const;
	void sample(uint64_t size, const std::string &operation,
		    const std::string &name);
	void prepare(const std::string &name, std::span<std::byte> range,
		     const QueuePair::Rdma &warm);
	void check(const std::string &name, const PeerInfo &change,
		   uint64_t pages) const;
	QueuePair::Rdma request(const std::string &operation, uint64_t size) const;
	unsigned count(uint64_t size) const;
	double ratio(uint64_t size, const std::string &operation,
		     const std::string &a, const std::string &b) const;

	const Options &options_;
	Link link_;
	std::optional<PeerMemory> memory_;
	Buffer local_, target_;
	MemoryRegion local_mr_, target_mr_;
	std::map<Key, Samples> samples_;
};

Bench::Bench(const Options &o)
	: options_(o), link_(o), local_(o.max_size),
	  target_(std::max(o.max_size, o.span)),
	  local_mr_(link_.near, local_.span(), IBV_ACCESS_LOCAL_WRITE, false),
	  target_mr_(link_.far, target_.span(), IBV_ACCESS_LOCAL_WRITE |
		     IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ, true)
{
	if (!o.memory.empty())
		memory_.emplace(o.memory);
}

bool Bench::wanted(const std::string &name) const
{
	return memory_ || name.starts_with("system");
}

unsigned Bench::count(uint64_t size) const
{
	return static_cast<unsigned>(std::max<uint64_t>(
		options_.span / size, 1));
}

QueuePair::Rdma Bench::request(const std::string &operation,
			       uint64_t size) const
{
	return {
		.opcode = operation == "write" ? IBV_WR_RDMA_WRITE
					       : IBV_WR_RDMA_READ,
		.wr_id = 0,
		.local = local_.span().first(size),
		.lkey = local_mr_.lkey(),
		.address = reinterpret_cast<uintptr_t>(target_.data()),
		.rkey = target_mr_.rkey(),
	};
}

// Put the target's pages where the series wants them. @warm touches them once.
void Bench::prepare(const std::string &name, std::span<std::byte> range,
		    const QueuePair::Rdma &warm)
{
	or_throw(target_.discard());
	for (size_t at = 0; at < range.size(); at += page_size)
		range[at] = std::byte{1};
	if (memory_ && !name.starts_with("system")) {
		or_throw(name == "fallback" ? memory_->publish_without_cpu()
					    : memory_->publish());
		or_throw(memory_->to_device(range));
	}
	if (name == "system" || name == "alias")
		link_.run(warm, static_cast<unsigned>(range.size() /
						      warm.local.size()),
			  options_.depth, nullptr);
}

// A figure of a path that was not taken is worse than none.
void Bench::check(const std::string &name, const PeerInfo &change,
		  uint64_t pages) const
{
	uint64_t want_fallbacks = name == "fallback" ? pages : 0;
	uint64_t want_alias = name == "alias0" ? pages : 0;

	if (change.fallbacks != want_fallbacks ||
	    change.moved_out != want_fallbacks ||
	    change.by_alias < want_alias)
		throw Error(errc::device, std::format(
			"{}: {} pages: {} fell back, {} moved out, {} by alias",
			name, pages, change.fallbacks, change.moved_out,
			change.by_alias));
}

void Bench::sample(uint64_t size, const std::string &operation,
		   const std::string &name)
{
	auto &samples = samples_[{size, operation, name}];
	auto rdma = request(operation, size);
	unsigned n = count(size);
	auto range = target_.span().first(n * size);
	PeerInfo before;

	for (bool latency : {false, true}) {
		// Single operations take longer: fewer of them will do.
		unsigned some = latency ? std::min(n, 64u) : n;

		range = target_.span().first(some * size);
		prepare(name, range, rdma);
		if (memory_)
			before = or_throw(memory_->info());
		auto start = clock::now();
		link_.run(rdma, some, latency ? 1 : options_.depth,
			  latency ? &samples.latency : nullptr);
		if (!latency)
			samples.rate.push_back(static_cast<double>(range.size()) /
					       seconds_since(start) / 1e6);
		if (memory_)
			check(name, or_throw(memory_->info()) - before,
			      range.size() / page_size);
	}
}

void Bench::run()
{
	for (unsigned round = 0; round < options_.rounds; round++)
		for (uint64_t size = options_.min_size;
		     size <= options_.max_size; size *= 4)
			for (const char *operation : operations)
				for (const char *name : series)
					if (wanted(name))
						sample(size, operation, name);
	if (memory_)
		or_throw(memory_->publish());
}

double Bench::ratio(uint64_t size, const std::string &operation,
		    const std::string &a, const std::string &b) const
{
	auto x = samples_.find({size, operation, a});
	auto y = samples_.find({size, operation, b});

	if (x == samples_.end() || y == samples_.end())
		return 0;
	return median(x->second.rate) / median(y->second.rate);
}

std::string Bench::table() const
{
	std::string t;

	for (const char *operation : operations) {
		t += std::format("RDMA {}, MB/s (10^6), median of {} rounds of "
				 "{} KiB or one operation; depth {}\n"
				 "{:>10}", operation, options_.rounds,
				 options_.span >> 10, options_.depth, "bytes");
		for (const char *name : series)
			if (wanted(name))
				t += std::format("{:>10}", name);
		t += "  alias/system\n";
		for (uint64_t size = options_.min_size;
		     size <= options_.max_size; size *= 4) {
			t += std::format("{:>10}", size);
			for (const char *name : series)
				if (wanted(name))
					t += std::format("{:>10.1f}", median(
						samples_.at({size, operation,
							     name}).rate));
			t += std::format("{:>14.2f}\n", ratio(size, operation,
							      "alias", "system"));
		}
		t += std::format("RDMA {}, us an operation, depth 1: median / "
				 "p99 (n)\n{:>10}", operation, "bytes");
		for (const char *name : series)
			if (wanted(name))
				t += std::format("{:>26}", name);
		t += "\n";
		for (uint64_t size = options_.min_size;
		     size <= options_.max_size; size *= 4) {
			t += std::format("{:>10}", size);
			for (const char *name : series) {
				if (!wanted(name))
					continue;
				const auto &v = samples_.at({size, operation,
							     name}).latency;
				t += std::format("{:>26}", std::format(
					"{:.0f} / {:.0f} ({})", median(v),
					quantile(v, 0.99), v.size()));
			}
			t += "\n";
		}
		t += "\n";
	}
	return t;
}

nlohmann::ordered_json Bench::json() const
{
	nlohmann::ordered_json j;
	utsname system{};

	::uname(&system);
	j["environment"] = {
		{"kernel", std::string(system.release) + " " + system.version},
		{"machine", system.machine},
		{"cpus", std::thread::hardware_concurrency()},
		{"note", options_.note},
		{"depth", options_.depth},
		{"rounds", options_.rounds},
		{"span_bytes", options_.span},
	};
	for (const auto &[key, samples] : samples_) {
		const auto &[size, operation, name] = key;
		j["results"].push_back({
			{"operation", operation},
			{"memory", name},
			{"bytes", size},
			{"mb_per_s", {{"median", median(samples.rate)},
				      {"samples", samples.rate}}},
			{"latency_us", {{"median", median(samples.latency)},
					{"p99", quantile(samples.latency, 0.99)},
					{"n", samples.latency.size()}}},
		});
	}
	return j;
}

void parse(Options &o, int argc, char **argv)
{
	CLI::App app("RDMA to device private memory, compared with ordinary "
		     "memory", "rdma-bench");

	app.add_option("--device", o.device, "RDMA device")->required();
	app.add_option("--peer-device", o.peer_device,
		       "the target's RDMA device; default: the same");
	app.add_option("--memory", o.memory,
		       "peer memory device; default: only ordinary memory");
	app.add_option("--rounds", o.rounds)->check(CLI::Range(1, 10000))
		->capture_default_str();
	app.add_option("--depth", o.depth)->check(CLI::Range(1, 1024))
		->capture_default_str();
	app.add_option("--min", o.min_size, "smallest operation, bytes")
		->transform(CLI::AsSizeValue(false))->capture_default_str();
	app.add_option("--max", o.max_size, "largest operation, bytes")
		->transform(CLI::AsSizeValue(false))->capture_default_str();
	app.add_option("--json", o.json, "write all samples to this file");
	app.add_option("--note", o.note, "say this about the machine in JSON");
	try {
		app.parse(argc, argv);
		if (o.min_size < page_size || o.min_size % page_size ||
		    o.max_size < o.min_size)
			throw CLI::ValidationError("--min, --max",
						   "whole pages, in order");
	} catch (const CLI::ParseError &e) {
		std::exit(app.exit(e) ? 2 : 0);
	}
	if (o.peer_device.empty())
		o.peer_device = o.device;
}

} // namespace

int main(int argc, char **argv)
try {
	Options o;

	parse(o, argc, argv);
	Bench bench(o);
	bench.run();
	std::cout << bench.table();
	if (!o.json.empty()) {
		std::ofstream out(o.json);
		out << bench.json().dump(2) << "\n";
		if (!out.flush())
			throw system_error(o.json);
	}
	return 0;
} catch (const Error &e) {
	std::cerr << "rdma-bench: " << e.what() << "\n";
	return e.code() == errc::device ? 4 : 1;
}
