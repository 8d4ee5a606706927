// SPDX-License-Identifier: MIT
#include "env.hpp"

#include <algorithm>
#include <array>
#include <format>

#include "command.hpp"
#include "json_text.hpp"
#include "sluice/topology.hpp"
#include "text.hpp"
#include "try.hpp"

namespace sluice::cli {

namespace {

constexpr std::array library_names = {"ucx", "openmpi", "libfabric"};
enum : unsigned { ucx = 1, openmpi = 2, libfabric = 4 };

struct row {
	unsigned libraries; ///< which of them read it
	const char *name, *value, *reason;
	bool soft_only = false; ///< only for soft RoCE
};

// "@" in a value is the NIC: such a row applies only if a NIC is named.
constexpr std::array table = {
	row{openmpi, "OMPI_MCA_pml", "ucx",
	    "messages go by UCX. Debian's Open MPI leaves it out in "
	    "/etc/openmpi/openmpi-mca-params.conf"},
	row{openmpi, "OMPI_MCA_osc", "ucx", "so do one-sided puts and gets"},
	row{ucx | openmpi, "UCX_NET_DEVICES", "@:1", "this card and no other network"},
	row{ucx | openmpi, "UCX_TLS", "rc_v",
	    "the card reads and writes memory itself. Other transports have the CPU copy "
	    "it, and memory that the CPU touches leaves the GPU"},
	row{ucx | openmpi, "UCX_REG_NONBLOCK_MEM_TYPES", "host",
	    "memory is registered on demand. To pin it would bring it to the host. UCX "
	    "says \"host\" of memory that a GPU shares with the process"},
	row{ucx | openmpi, "UCX_ZCOPY_THRESH", "0",
	    "no message is so short that it is copied first"},
	row{ucx | openmpi, "UCX_RNDV_THRESH", "0",
	    "a message with a tag waits for its buffer. It would be received in memory of "
	    "UCX otherwise, and copied from there"},
	row{ucx | openmpi, "UCX_RNDV_SCHEME", "get_zcopy",
	    "the receiver's card reads the sender's memory: one step, in place at both "
	    "ends"},
	row{ucx | openmpi, "UCX_RC_VERBS_TX_INLINE_RESP", "0",
	    "no answer is so short that it comes within its completion. The CPU would copy "
	    "it from there"},
	row{ucx | openmpi, "UCX_UD_VERBS_ETH_DGID_CHECK", "n",
	    "soft RoCE does not tell of a packet what UCX looks at to know whose it is: "
	    "UCX would drop its own, and not connect",
	    true},
	row{libfabric, "FI_PROVIDER", "verbs", "the card moves the data, by verbs"},
	row{libfabric, "FI_VERBS_DEVICE_NAME", "@", "this card and no other"},
	row{libfabric, "FI_VERBS_USE_ODP", "1",
	    "memory is registered on demand. To pin it would bring it to the host"},
	row{libfabric, "FI_UNIVERSE_SIZE", "32",
	    "so many peers: completion queues of soft RoCE have no room for those of 256, "
	    "which libfabric expects",
	    true},
};

/// A shell will read the name, and the libraries use other characters as separators.
bool is_plain(std::string_view name)
{
	return name.find_first_not_of("abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") ==
	       name.npos;
}

std::string env_json(const std::string &library, const std::vector<variable> &all)
{
	nlohmann::json list = nlohmann::json::array();

	for (const variable &v : all)
		list.push_back(
			{{"name", v.name}, {"value", v.value}, {"reason", v.reason}});
	return json_text({{"library", library}, {"variables", std::move(list)}});
}

class env : public command {
public:
	void add_options(CLI::App &to) override
	{
		to.add_option("LIBRARY", library_,
			      "print the variables of this library")
			->required()
			->check(CLI::IsMember(libraries()));
		to.add_option("--nic", nic_, "have it use this RDMA device")
			->type_name("NIC");
	}
	result<exit_status> run(const settings &with) override;

private:
	result<bool> is_soft(const topology &machine) const;

	std::string library_, nic_;
};

/// Whether the chosen device, or any candidate if none is chosen, is software.
result<bool> env::is_soft(const topology &machine) const
{
	const auto &all = machine.nics();
	auto software = [](const topology::nic &n) { return !n.pci; };

	if (nic_.empty())
		return std::ranges::any_of(all, software);
	auto found = std::ranges::find(all, nic_, &topology::nic::name);
	if (found == all.end())
		return fail(errc::device, "--nic " + nic_,
			    "there is no such RDMA device");
	if (!is_plain(nic_))
		return fail(errc::device, "--nic " + nic_,
			    "the name may have letters, digits and \"_-.\" only");
	return software(*found);
}

result<exit_status> env::run(const settings &with)
{
	SLUICE_TRY(auto machine, topology::read(with.root));
	SLUICE_TRY(bool soft, is_soft(machine));
	auto all = variables_for(library_, nic_, soft);
	*with.out << (with.json ? env_json(library_, all) : env_text(all));
	return exit_status::ok;
}

} // namespace

std::vector<std::string> libraries()
{
	return {library_names.begin(), library_names.end()};
}

std::vector<variable> variables_for(std::string_view library, const std::string &nic,
				    bool soft)
{
	std::vector<variable> all;
	auto bit = 1u << (std::ranges::find(library_names, library) -
			  library_names.begin());

	for (const row &r : table) {
		std::string value = r.value;
		size_t mark = value.find('@');

		if (!(r.libraries & bit) || (r.soft_only && !soft) ||
		    (mark != value.npos && nic.empty()))
			continue;
		if (mark != value.npos)
			value.replace(mark, 1, nic);
		all.push_back({r.name, value, r.reason});
	}
	return all;
}

std::string env_text(const std::vector<variable> &all)
{
	std::string text;

	// each line of a reason is a comment
	for (const variable &v : all)
		text += std::format("{}export {}={}\n", hanging("# ", v.reason, "# "),
				    v.name, v.value);
	return text;
}

std::unique_ptr<command> make_env()
{
	return std::make_unique<env>();
}

} // namespace sluice::cli
