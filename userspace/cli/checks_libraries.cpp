// SPDX-License-Identifier: MIT
// What UCX, Open MPI and libfabric are told in this environment, if anything.
#include <algorithm>
#include <format>

#include "doctor.hpp"
#include "env.hpp"

namespace sluice::cli {

namespace {

/// The prefix of the variables that this library reads.
std::string_view prefix_of(std::string_view library)
{
	return library == "openmpi" ? "OMPI_MCA_" : library == "ucx" ? "UCX_" : "FI_";
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

/// Whether the NIC that the library is told to use is software; any, if it is told none.
bool uses_software(const facts &of, const std::string &library)
{
	auto set = of.environment.find(library == "libfabric" ? "FI_VERBS_DEVICE_NAME"
							      : "UCX_NET_DEVICES");
	std::string name = set == of.environment.end() ? "" : set->second;

	name = name.substr(0, name.find(':')); // its port
	auto named = std::ranges::find(of.machine.nics(), name, &topology::nic::name);
	if (named != of.machine.nics().end())
		return !named->pci;
	return std::ranges::any_of(of.machine.nics(),
				   [](const auto &n) { return !n.pci; });
}

check library_check(const facts &of, const std::string &library)
{
	bool soft = uses_software(of, library);
	auto wanted = variables_for(library, "", soft);
	bool told = std::ranges::any_of(wanted, [&](const variable &v) {
		return v.name.starts_with(prefix_of(library)) &&
		       of.environment.contains(v.name);
	});
	std::string wrong = differences(of, wanted), all = "sluice env " + library;

	if (!told)
		return {library, verdict::ok,
			std::format("told nothing here; for memory "
				    "in a GPU, {} prints what it must be told",
				    all),
			""};
	if (wrong.empty())
		return {library, verdict::ok, "leaves memory in a GPU", ""};
	return {library, verdict::slower,
		"is not told all that memory in a GPU needs: " + wrong,
		std::format("eval \"$({})\"", all)};
}

} // namespace

void check_libraries(const facts &of, checks &to)
{
	for (const std::string &library : libraries())
		to.push_back(library_check(of, library));
}

} // namespace sluice::cli
