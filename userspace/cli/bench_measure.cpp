// SPDX-License-Identifier: MIT
#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <format>

#include "bench.hpp"
#include "try.hpp"

namespace sluice::cli {

namespace {

constexpr uint32_t pattern = 0x5a5aa5a5;

double seconds(clock::duration d)
{
	return std::chrono::duration<double>(d).count();
}

/// Time @p count operations, @p depth at once, from before the first to after the last.
result<clock::duration> round_of(bench_work &work, uint64_t count, unsigned depth)
{
	auto began = clock::now();

	for (uint64_t i = 0; i < count; i++) {
		auto slot = static_cast<unsigned>(i % depth);

		SLUICE_CHECK(work.wait(slot));
		SLUICE_CHECK(work.start(slot, i));
	}
	for (unsigned slot = 0; slot < depth; slot++)
		SLUICE_CHECK(work.wait(slot));
	return clock::now() - began;
}

result<std::vector<double>> singles_of(bench_work &work, unsigned count)
{
	std::vector<double> all;

	all.reserve(count);
	for (unsigned i = 0; i < count; i++) {
		auto began = clock::now();

		SLUICE_CHECK(work.start(0, i));
		SLUICE_CHECK(work.wait(0));
		all.push_back(seconds(clock::now() - began) * 1e6);
	}
	return all;
}

/// CPU time of all threads, and of the kernel on their behalf, in microseconds.
double cpu_us()
{
	timespec t{};

	::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return static_cast<double>(t.tv_sec * 1'000'000'000LL + t.tv_nsec) / 1e3;
}

/// Untouched memory is one page of zeros, mapped again and again.
result<void> touch(device *gpu, const buffer &all)
{
	if (all.kind() == memory::host) {
		std::memset(all.data(), 0x5a, all.size());
		return {};
	}
	for (size_t at = 0, n = 0; at < all.size(); at += n) {
		batch fill(1);

		n = std::min<uint64_t>(all.size() - at, gpu->limits().bytes);
		fill.fill(all.part(at, n), pattern);
		if (auto filled = gpu->submit(fill).wait(); !filled)
			return std::unexpected(filled.error());
	}
	return {};
}

result<buffer> allocate(device *gpu, const std::string &kind, uint64_t size)
{
	if (kind == "host")
		return buffer::host(size);
	return kind == "gpu" ? gpu->vram(size) : gpu->svm(size);
}

} // namespace

uint64_t bench_options::largest() const
{
	return *std::ranges::max_element(sizes);
}

uint64_t bench_options::count(uint64_t bytes) const
{
	return std::max<uint64_t>(total / bytes, depth);
}

unsigned bench_options::singles(uint64_t bytes) const
{
	return static_cast<unsigned>(
		std::clamp<uint64_t>(total / bytes, std::min(samples, 16u), samples));
}

bool is_memory(const std::string &name)
{
	return name == "host" || name == "gpu" || name == "svm";
}

result<std::optional<device>> bench_gpu(context &in, const bench_options &o,
					bool wanted)
{
	std::optional<device> none;

	if (o.gpu.empty() && !wanted)
		return none;
	SLUICE_TRY(auto opened, device::open(in, o.gpu.empty() ? "0" : o.gpu));
	return std::optional<device>(std::move(opened));
}

result<bench_memory> bench_memory::make(device *gpu, const std::string &kind,
					uint64_t size)
{
	bench_memory m;

	if (gpu && kind != "host")
		m.gpu_ = gpu;
	SLUICE_TRY(m.all_, allocate(gpu, kind, size));
	if (gpu)
		SLUICE_CHECK(gpu->attach(m.all_));
	SLUICE_CHECK(touch(gpu, m.all_));
	if (kind == "svm") {
		SLUICE_TRY(m.before_, gpu->counters());
	}
	return m;
}

result<void> bench_memory::verify() const
{
	if (!before_)
		return {};
	SLUICE_TRY(auto now, gpu_->counters());
	if (uint64_t left = now.migrated_out - before_->migrated_out)
		return fail(
			errc::device, gpu_->info().address,
			std::format(
				"{} pages left video memory meanwhile: there is no result",
				left));
	return {};
}

std::string why_no_energy(const bench_options &o)
{
	for (const std::string &gpu : o.metered)
		if (auto sample = read_energy("/", gpu); !sample)
			return std::string(sample.error().message());
	return {};
}

result<figure> measure(context &in, bench_work &work, const std::string &what,
		       uint64_t bytes, const bench_options &o, const bench_other &other)
{
	figure f{.what = what, .bytes = bytes};
	uint64_t count = o.count(bytes), calls = 0;

	// Run each slot once, to fault in the pages and wake the queues.
	SLUICE_CHECK(round_of(work, o.depth, o.depth));
	energy_meter meter("/", o.metered);
	for (unsigned i = 0; i < o.rounds; i++) {
		uint64_t before = in.system_calls();
		SLUICE_TRY(auto took, round_of(work, count, o.depth));
		calls += in.system_calls() - before;
		f.rates.push_back(static_cast<double>(count * bytes) / seconds(took));
		if (!other)
			continue;
		SLUICE_TRY(auto rate, other(bytes, count));
		f.other_rates.push_back(rate);
	}
	if (auto used = meter.used(); used && !o.metered.empty())
		f.energy = *used;
	f.calls = static_cast<double>(calls) / static_cast<double>(count * o.rounds);
	double began = cpu_us();
	SLUICE_TRY(f.latencies, singles_of(work, o.singles(bytes)));
	f.cpu_us = (cpu_us() - began) / static_cast<double>(f.latencies.size());
	return f;
}

} // namespace sluice::cli
