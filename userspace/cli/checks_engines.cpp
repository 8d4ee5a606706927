// SPDX-License-Identifier: MIT
// What UCX, Open MPI and libfabric are told in this environment, if anything.
#include <algorithm>
#include <format>

#include "doctor.hpp"
#include "env.hpp"

namespace sluice::cli {

namespace {

/// The prefix of the variables that this engine reads.
std::string_view prefix_of(std::string_view engine)
{
	return engine == "openmpi" ? "OMPI_MCA_" : engine == "ucx" ? "UCX_" : "FI_";
}

/// "UCX_TLS is not set, UCX_ZCOPY_THRESH is inf and not 0"
std::string differences(const facts &of, const std::vector<variable> &wanted)
{
	std::string text;

	for (const variable &v : wanted) {
		auto set = of.environment.find(v.name);
		if (set != of.environment.end() && set->second == v.value)
			continue;
		text += (text.empty() ? "" : ", ") + v.name +
			(set == of.environment.end()
				 ? " is not set"
				 : std::format(" is {} and not {}", set->second,
					       v.value));
	}
	return text;
}

check engine_check(const facts &of, const std::string &engine)
{
	bool soft = std::ranges::any_of(of.machine.nics(),
					[](const auto &n) { return !n.pci; });
	auto wanted = variables_for(engine, "", soft);
	bool told = std::ranges::any_of(wanted, [&](const variable &v) {
		return v.name.starts_with(prefix_of(engine)) &&
		       of.environment.contains(v.name);
	});
	std::string wrong = differences(of, wanted), all = "sluice env " + engine;

	if (!told)
		return {engine, verdict::ok,
			std::format("told nothing here; for memory "
				    "in a GPU, {} prints what it must be told",
				    all),
			""};
	if (wrong.empty())
		return {engine, verdict::ok, "leaves memory in a GPU", ""};
	return {engine, verdict::slower,
		"moves memory in a GPU to the host, or copies it: " + wrong,
		std::format("eval \"$({})\"", all)};
}

} // namespace

void check_engines(const facts &of, checks &to)
{
	for (const std::string &engine : engines())
		to.push_back(engine_check(of, engine));
}

} // namespace sluice::cli
