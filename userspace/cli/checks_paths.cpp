// SPDX-License-Identifier: MIT
// The paths that data will take: the best one of each GPU, since that is the one to
// use.
#include <algorithm>
#include <format>
#include <map>
#include <optional>
#include <tuple>

#include "doctor.hpp"

namespace sluice::cli {

namespace {

using kind = location::kind;

struct way {
	std::string to;
	route by;
	bool usable; ///< its port is up
};

// Among equal ways, the one with fewer objections comes first.
std::tuple<bool, path, size_t, double> rank(const way &w)
{
	return {!w.usable, w.by.how, w.by.why_not_better.size(),
		-w.by.bytes_per_second};
}

// Several devices may lack the same thing: report it once.
std::string joined(const std::vector<std::string> &texts)
{
	std::string all;

	for (auto text = texts.begin(); text != texts.end(); ++text)
		if (std::find(texts.begin(), text, *text) == text)
			all += (all.empty() ? "" : "; ") + *text;
	return all;
}

/// From a place to all NICs or all disks, best first.
std::vector<way> ways(const topology &t, location from, kind to)
{
	std::vector<way> all;

	for (location where : t.locations()) {
		if (where.what != to)
			continue;
		if (auto by = t.explain(from, where))
			all.push_back(
				{t.name_of(where), std::move(*by),
				 to != kind::nic || t.nics()[where.index].active});
	}
	std::ranges::stable_sort(all, {}, rank);
	return all;
}

/// From the memory that reaches its NIC best: pieces are made there.
std::vector<way> ways_from_host(const topology &t)
{
	std::vector<way> best;

	for (size_t i = 0; i < t.nodes().size(); i++)
		if (auto all = ways(t, {kind::node, i}, kind::nic);
		    !all.empty() &&
		    (best.empty() || rank(all.front()) < rank(best.front())))
			best = std::move(all);
	return best;
}

/// GPUs that move data.
std::vector<size_t> gpus_of(const facts &of)
{
	std::vector<size_t> all;

	for (size_t i = 0; i < of.gpus.size(); i++)
		if (of.machine.gpus()[i].has_amdgpu() && !is_withheld(of, of.gpus[i]))
			all.push_back(i);
	return all;
}

verdict verdict_on(const route &by)
{
	return by.how == path::unreachable ? verdict::missing
	       : !by.remedies.empty()	   ? verdict::slower
	       : !by.not_known.empty()	   ? verdict::not_known
					   : verdict::ok;
}

check judge(std::string name, const std::vector<way> &all)
{
	const way &best = all.front();
	std::string found = std::format("{} {}. Limit: {}", best.to,
					sluice::name(best.by.how), best.by.limit);

	if (!best.by.why_not_better.empty())
		found += ". Because: " + joined(best.by.why_not_better);
	if (!best.by.not_known.empty())
		found += ". Not known: " + joined(best.by.not_known);
	std::string others;
	for (const way &other : std::span(all).subspan(1))
		others += std::format("{}{} {}", others.empty() ? "" : ", ", other.to,
				      sluice::name(other.by.how));
	if (!others.empty())
		found += ". Others: " + others;
	return {std::move(name), verdict_on(best.by), found, joined(best.by.remedies)};
}

/// All pairs of GPUs at once: there may be many, and most are alike.
std::optional<check> between_gpus(const topology &t, const std::vector<size_t> &gpus)
{
	std::map<path, unsigned> pairs;
	check all{.name = "GPU to GPU"};

	for (size_t i = 0; i < gpus.size(); i++)
		for (size_t j = i + 1; j < gpus.size(); j++) {
			auto by = t.explain({kind::gpu, gpus[i]}, {kind::gpu, gpus[j]});
			if (!by)
				continue;
			pairs[by->how]++;
			if (verdict_on(*by) <= all.is)
				continue;
			all.is = verdict_on(*by);
			all.remedy = joined(by->remedies);
		}
	if (pairs.empty())
		return std::nullopt;
	for (auto [how, n] : pairs)
		all.found +=
			std::format("{}{} {} by {}", all.found.empty() ? "" : ", ", n,
				    n == 1 ? "pair" : "pairs", sluice::name(how));
	return all;
}

} // namespace

void check_paths(const facts &of, checks &to)
{
	const topology &t = of.machine;
	auto gpus = gpus_of(of);

	for (size_t i : gpus) {
		if (auto all = ways(t, {kind::gpu, i}, kind::nic); !all.empty())
			to.push_back(judge(t.gpus()[i].name + " to NIC", all));
		// No better path to a disk exists: it is reported, but is no fault.
		if (auto all = ways(t, {kind::gpu, i}, kind::disk); !all.empty())
			to.push_back(judge(t.gpus()[i].name + " to disk", all));
	}
	if (gpus.empty())
		if (auto all = ways_from_host(t); !all.empty())
			to.push_back(judge("host to NIC", all));
	if (auto all = between_gpus(t, gpus))
		to.push_back(std::move(*all));
}

} // namespace sluice::cli
