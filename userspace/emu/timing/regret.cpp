// SPDX-License-Identifier: MIT
#include "regret.hpp"

#include "jobs.hpp"
#include "paper.hpp"
#include "report.hpp"

#include <algorithm>
#include <cmath>
#include <format>
#include <random>

namespace sluice::timing {

namespace {

using detail::pattern;

constexpr std::array variants{variant::pcpy, variant::bcst, variant::swap,
			      variant::b2b};
constexpr u64 KiB = 1 << 10;

// Blocks of KV caches.
constexpr u64 least_block = 4 * KiB, most_block = 128 * KiB;
constexpr u32 least_count = 64, most_count = 4096;

class Random {
public:
	// The numbers of standard distributions differ from library to library.
	u64 below(u64 n) { return engine_() % n; }
	// As often between 1 and 2 as between 1000 and 2000.
	u64 between(u64 least, u64 most)
	{
		double part = static_cast<double>(below(1 << 20)) / (1 << 20);
		double ratio = static_cast<double>(most) / static_cast<double>(least);

		return static_cast<u64>(static_cast<double>(least) *
					std::pow(ratio, part));
	}

private:
	// the same cells each time: NOLINTNEXTLINE(bugprone-random-generator-seed)
	std::mt19937_64 engine_{18};
};

// Inference engines move whole KiB.
u64 random_block(Random &random)
{
	return random.between(least_block / KiB, most_block / KiB) * KiB;
}

Exchange random_exchange(Random &random)
{
	Exchange e{.kind = static_cast<pattern>(random.below(6)),
		   .ranks = static_cast<unsigned>(2 + random.below(7)),
		   .block = random_block(random)};
	auto count = static_cast<u32>(random.between(least_count, most_count));

	e.prelaunch = random.below(2);
	if (e.kind == pattern::send) {
		e.messages = std::min(count, 512u); // of each sender: time to compute
		e.senders = random.below(2) ? e.ranks : 1;
		e.receivers = static_cast<unsigned>(1 + random.below(e.ranks - 1));
	} else {
		e.in_place = e.kind == pattern::all_gather && random.below(2);
		e.block = random.below(2) ? e.block : e.block * count / e.ranks;
	}
	return e;
}

template <class Case, class Function>
std::vector<Regret> each(const std::vector<Case> &all, Function regret)
{
	std::vector<Regret> out;

	for (const Case &one : all)
		out.push_back(regret(one));
	return out;
}

Regret library_regret(const Exchange &e, const Machine &m)
{
	const variant how = chosen(e);
	Regret r{name(e), sluice::name(how), "", exchange_time(e, how, m), 0};

	for (variant v : variants) {
		if (!detail::allows(e.kind, e.in_place, v))
			continue;
		Time t = v == how ? r.took : exchange_time(e, v, m);
		if (r.best.empty() || t < r.least) {
			r.best = sluice::name(v);
			r.least = t;
		}
	}
	return r;
}

// Speed-ups of a row by variant, as the columns of the paper have them.
double published(const PaperRow &row, Way way, bool prelaunch)
{
	if (way == Way::pcpy && !prelaunch)
		return 1;
	auto column = std::ranges::find(paper_columns, std::pair{way, prelaunch});
	return row.speedup[static_cast<std::size_t>(column - paper_columns.begin())];
}

// A swap is no choice: memory is in place or not.
std::vector<Way> ways(Collective c)
{
	if (c == Collective::all_gather)
		return {Way::pcpy, Way::pair, Way::b2b};
	return {Way::pcpy, Way::b2b};
}

Regret published_regret(const PaperRow &row, bool prelaunch)
{
	Exchange e = exchange_of(row.collective, Way::pcpy, prelaunch, row.size);
	Regret r{name(e), sluice::name(chosen(e)), "", 0, 0};

	for (Way w : ways(row.collective)) {
		const variant v = variant_of(row.collective, w);
		Time t = 1 / published(row, w, prelaunch);

		if (sluice::name(v) == r.chosen)
			r.took = t;
		if (r.best.empty() || t < r.least) {
			r.best = sluice::name(v);
			r.least = t;
		}
	}
	return r;
}

} // namespace

std::vector<Exchange> paper_exchanges()
{
	std::vector<Exchange> out;

	for (auto kind : {pattern::all_gather, pattern::all_to_all})
		for (bool in_place : {false, true})
			for (bool prelaunch : {false, true})
				for (u64 size = KiB; size <= KiB * KiB * KiB; size *= 2)
					out.push_back({kind, latte_gpus,
						       size / latte_gpus, in_place,
						       prelaunch});
	return out;
}

std::vector<Exchange> random_exchanges(unsigned count)
{
	Random random;
	std::vector<Exchange> out;

	while (out.size() < count)
		out.push_back(random_exchange(random));
	return out;
}

std::vector<Regret> library_regrets(const std::vector<Exchange> &all, const Machine &m)
{
	return each(all, [&](const Exchange &e) { return library_regret(e, m); });
}

std::vector<Regret> published_regrets()
{
	std::vector<Regret> out;

	for (const PaperRow &row : paper_rows())
		for (bool prelaunch : {false, true})
			out.push_back(published_regret(row, prelaunch));
	return out;
}

namespace {

constexpr u32 fabric_engines = all_engines & ~host_engines;

const char *name(Copies::To to)
{
	constexpr std::array names{"itself", "a peer", "seven peers", "the host"};

	return names[static_cast<std::size_t>(to)];
}

// No two copies are neighbours, or the planner would join them.
plan_desc copy_of(const Copies &c, u32 i)
{
	u64 at = u64{2} * i * c.bytes, there = own_memory / 2 + at;

	switch (c.to) {
	case Copies::To::own: there += gpu_memory(0); break;
	case Copies::To::peer: there += gpu_memory(1); break;
	case Copies::To::peers: there += gpu_memory(1 + i % (latte_gpus - 1)); break;
	case Copies::To::host: there += host_memory; break;
	}
	return {PLAN_COPY, gpu_memory(0) + at, there, 0, c.bytes};
}

Program copies_program(const Copies &c, const Placing &how)
{
	Jobs jobs;
	std::vector<plan_desc> descs;

	for (u32 i = 0; i < c.count; i++)
		descs.push_back(copy_of(c, i));
	jobs.submit(0, std::move(descs), how, false);
	return jobs.finish();
}

u32 links(Copies::To to)
{
	return to == Copies::To::peer	 ? 1
	       : to == Copies::To::peers ? latte_gpus - 1
					 : 0;
}

u32 lowest(u32 of, unsigned count)
{
	u32 out = 0;

	for (; count; count--) {
		out |= of & -of;
		of &= of - 1;
	}
	return out;
}

// Time of a batch on so many engines, whose jobs the host prepares one by one.
Time with_jobs(const Program &p, std::size_t engines, const Machine &m)
{
	return measured(p, m) + static_cast<double>(engines - 1) * m.host_job;
}

// Times of the batch on one engine, two, and so on, up to as many as AUTO may use.
std::vector<Time> times_by_engines(const Copies &c, const Machine &m)
{
	const bool to_host = c.to == Copies::To::host;
	const u32 good = to_host ? host_engines : fabric_engines;
	std::vector<Time> out;

	for (unsigned n = 1; n <= static_cast<unsigned>(std::popcount(good)); n++)
		out.push_back(with_jobs(
			copies_program(c, {PLAN_FAN_OUT, lowest(good, n), to_host}), n,
			m));
	return out;
}

Regret kernel_regret(const Copies &c, const Machine &m)
{
	const Program p = copies_program(
		c, {PLAN_AUTO, all_engines, c.to == Copies::To::host, links(c.to)});
	const std::size_t engines = p.lanes.size() - 1;
	auto times = times_by_engines(c, m);
	auto best = std::ranges::min_element(times);

	return {std::format("{} copies of {} bytes to {}", c.count, c.bytes,
			    name(c.to)),
		std::format("{}", engines), std::format("{}", best - times.begin() + 1),
		with_jobs(p, engines, m), *best};
}

constexpr std::array all_places{Copies::To::own, Copies::To::peer, Copies::To::peers,
				Copies::To::host};

} // namespace

std::vector<Copies> kv_copies()
{
	std::vector<Copies> out;

	for (auto to : all_places)
		for (u64 bytes : {4, 8, 32, 128})
			for (u32 count : {7, 64, 512, 4096})
				out.push_back({to, count, bytes * KiB});
	return out;
}

std::vector<Copies> random_copies(unsigned count)
{
	Random random;
	std::vector<Copies> out;

	while (out.size() < count)
		out.push_back({all_places[random.below(all_places.size())],
			       static_cast<u32>(random.between(1, most_count)),
			       random_block(random)});
	return out;
}

std::vector<Regret> kernel_regrets(const std::vector<Copies> &all, const Machine &m)
{
	return each(all, [&](const Copies &c) { return kernel_regret(c, m); });
}

double mean(const std::vector<Regret> &all)
{
	double sum = 0;

	for (const Regret &r : all)
		sum += r.value();
	return sum / static_cast<double>(all.size());
}

namespace {

// A goal of 0 is none.
std::string summary(std::string_view what, const std::vector<Regret> &all, int limit)
{
	const double worst = 100 * std::ranges::max(all, {}, &Regret::value).value();

	return std::format(
		"{}: {}, mean {:.1f} %, worst {:.1f} %{}\n", what, all.size(),
		100 * mean(all), worst,
		limit ? ", " + goal(std::format("{} %", limit), worst <= limit) : "");
}

// The worst ones, if they are above 1 %.
std::string worst(std::vector<Regret> all, std::size_t most)
{
	std::string out;

	std::ranges::stable_sort(all, std::greater(), &Regret::value);
	for (const Regret &r : all)
		if (most && r.value() >= 0.01) {
			out += std::format("  {:+5.1f} %  {}: {}, best {}\n",
					   100 * r.value(), r.what, r.chosen, r.best);
			most--;
		}
	return out + "\n";
}

} // namespace

std::string regret_table(const Machine &m)
{
	constexpr unsigned randomly = 500;
	Machine engines_alone = m;
	auto part = [](std::string_view what, int limit,
		       const std::vector<Regret> &all) {
		return summary(what, all, limit) + worst(all, 8);
	};

	engines_alone.host_job = 0;
	return model_heading(
		       "Time of what is chosen automatically, over the best choice's") +
	       part("libsluice, collectives of the paper", 5,
		    library_regrets(paper_exchanges(), m)) +
	       part("libsluice, random shapes", 10,
		    library_regrets(random_exchanges(randomly), m)) +
	       part("libsluice, by the paper's own figures", 5, published_regrets()) +
	       part("AUTO of the kernel (engines), blocks of KV caches", 10,
		    kernel_regrets(kv_copies(), m)) +
	       part("AUTO of the kernel (engines), random shapes", 10,
		    kernel_regrets(random_copies(randomly), m)) +
	       part("the same, if a job cost the host nothing", 0,
		    kernel_regrets(random_copies(randomly), engines_alone));
}

} // namespace sluice::timing
