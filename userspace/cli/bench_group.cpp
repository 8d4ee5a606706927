// SPDX-License-Identifier: MIT
// Collectives over the GPUs of this machine, by their SDMA engines.
#include <algorithm>
#include <array>
#include <format>

#include "bench.hpp"
#include "group_plan.hpp"
#include "try.hpp"

namespace sluice::cli {

namespace {

using detail::pattern;

constexpr std::array variants = {variant::pcpy, variant::bcst, variant::swap,
				 variant::b2b};

/// One run at a time: runs are not ordered with respect to each other.
class collective_work : public bench_work {
public:
	explicit collective_work(collective &what) : what_(what) {}
	result<void> start(unsigned, uint64_t) override
	{
		running_.start(what_.run(), what_.bytes());
		what_.release();
		return {};
	}
	result<void> wait(unsigned) override { return running_.wait("--collective"); }

private:
	collective &what_;
	moving<collective_run> running_;
};

/// The GPUs, and video memory of each, with room for one block of every GPU.
class collective_bench {
public:
	collective_bench(const bench_options &o, context &in)
		: options_(o), context_(in)
	{
		options_.depth = 1;
	}
	result<figures> run();

private:
	result<void> open();
	result<collective> prepare(group &by, size_t block, variant how) const;
	result<void> measure_size(figures &all, group &by, size_t block);
	pattern kind() const;
	std::vector<slice> parts(const std::vector<buffer> &all, size_t size) const;
	bool has(variant how) const
	{
		return detail::allows(kind(), how == variant::swap, how) &&
		       (options_.variant.empty() || options_.variant == name(how));
	}

	bench_options options_;
	context &context_;
	std::vector<device> gpus_;
	std::vector<buffer> to_, from_;
};

pattern collective_bench::kind() const
{
	constexpr std::array all = {pattern::all_gather, pattern::all_to_all,
				    pattern::broadcast, pattern::gather,
				    pattern::scatter};

	return *std::ranges::find_if(
		all, [&](pattern k) { return options_.collective == detail::name(k); });
}

std::vector<slice> collective_bench::parts(const std::vector<buffer> &all,
					   size_t size) const
{
	std::vector<slice> some;

	for (const buffer &one : all)
		some.push_back(one.part(0, size));
	return some;
}

result<void> collective_bench::open()
{
	for (const auto &info : list_devices()) {
		if (gpus_.size() == group::most_ranks)
			break;
		SLUICE_TRY(auto gpu, device::open(context_, info.address));
		gpus_.push_back(std::move(gpu));
	}
	if (gpus_.size() < 2)
		return fail(errc::device, "--collective",
			    std::format("{} GPUs: it wants 2 or more", gpus_.size()));
	for (device &gpu : gpus_)
		for (auto *all : {&to_, &from_}) {
			SLUICE_TRY(auto made, bench_memory::make(&gpu, "gpu",
								 options_.largest() *
									 gpus_.size()));
			all->push_back(made.all());
		}
	return {};
}

result<collective> collective_bench::prepare(group &by, size_t block, variant how) const
{
	const size_t whole = block * by.ranks();
	const collective_options o{how, options_.prelaunch, {}};
	const auto to = parts(to_, whole), from = parts(from_, block);

	switch (kind()) {
	case pattern::all_gather: return by.all_gather(to, from, o);
	case pattern::all_to_all:
		return by.all_to_all(
			to, how == variant::swap ? to : parts(from_, whole), o);
	case pattern::broadcast: return by.broadcast(0, from, o);
	case pattern::gather: return by.gather(0, to[0], from, o);
	default: return by.scatter(0, from, to[0], o);
	}
}

result<void> collective_bench::measure_size(figures &all, group &by, size_t block)
{
	for (variant how : variants) {
		if (!has(how))
			continue;
		SLUICE_TRY(auto made, prepare(by, block, how));
		collective_work work(made);
		SLUICE_TRY(auto f,
			   measure(context_, work, name(how), made.bytes(), options_));
		all.rows.push_back(std::move(f));
	}
	return {};
}

result<figures> collective_bench::run()
{
	if (std::ranges::none_of(variants, [&](variant how) { return has(how); }))
		return fail(errc::usage, "--variant",
			    std::format("{} has no variant {}", options_.collective,
					options_.variant));
	SLUICE_CHECK(open());
	SLUICE_TRY(auto by, group::make(context_, gpus_));
	for (const device &gpu : gpus_)
		options_.metered.push_back(gpu.info().address);
	figures all{.title = std::format("{} of {} GPUs{}, bytes of all",
					 options_.collective, by.ranks(),
					 options_.prelaunch ? ", prelaunched" : ""),
		    .note = options_.note,
		    .depth = 1,
		    .rows = {},
		    .no_energy = why_no_energy(options_)};
	for (uint64_t block : options_.sizes)
		SLUICE_CHECK(measure_size(all, by, block));
	return all;
}

} // namespace

result<figures> bench_group(const bench_options &o)
{
	SLUICE_TRY(auto in, context::open());
	return collective_bench(o, in).run();
}

} // namespace sluice::cli
