// SPDX-License-Identifier: MIT
// The paths that data will take: the best one of each GPU, since that is the one to
// use.
#include <algorithm>
#include <format>
#include <map>
#include <optional>

#include "doctor.hpp"

namespace sluice::cli {

namespace {

using kind = location::kind;

struct way {
	std::string to;
	route by;
	bool usable; ///< its port is up
};

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
	// Among equal ways, the one with fewer objections comes first.
	std::ranges::stable_sort(all, {}, [](const way &w) {
		return std::tuple(!w.usable, w.by.how, w.by.why_not_better.size(),
				  -w.by.bytes_per_second);
	});
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
std::optional<check> between_gpus(const topology &t)
{
	std::map<path, unsigned> pairs;
	check all{.name = "GPU to GPU"};

	for (size_t i = 0; i < t.gpus().size(); i++)
		for (size_t j = i + 1; j < t.gpus().size(); j++) {
			auto by = t.explain({kind::gpu, i}, {kind::gpu, j});
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

	for (size_t i = 0; i < t.gpus().size(); i++) {
		if (auto all = ways(t, {kind::gpu, i}, kind::nic); !all.empty())
			to.push_back(judge(t.gpus()[i].name + " to NIC", all));
		// No better path to a disk exists: it is reported, but is no fault.
		if (auto all = ways(t, {kind::gpu, i}, kind::disk); !all.empty())
			to.push_back(judge(t.gpus()[i].name + " to disk", all));
	}
	if (t.gpus().empty())
		if (auto all = ways(t, {kind::node, 0}, kind::nic); !all.empty())
			to.push_back(judge("host to NIC", all));
	if (auto all = between_gpus(t))
		to.push_back(std::move(*all));
}

} // namespace sluice::cli
