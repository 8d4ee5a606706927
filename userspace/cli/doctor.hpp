// SPDX-License-Identifier: MIT
// sluice doctor: facts, which are gathered once, and checks, which only look at the
// facts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <amdgpu_drm.h>

#include "sluice/topology.hpp"

namespace sluice::cli {

struct settings;

/// What an ioctl or a library reports for one GPU. Without a value: not asked.
struct gpu_facts {
	std::optional<int> open_errno; ///< of its render node; 0: it opens
	std::optional<drm_amdgpu_info_sdma_batch> batch; ///< all 0: no batches
};

struct nic_facts {
	std::optional<int> open_errno;
	std::optional<bool> on_demand; ///< RC can write, read and send
	bool on_demand_wrong = false;  ///< offered, but moves wrong bytes
	std::optional<bool> dmabuf;
};

struct facts {
	topology machine;
	std::vector<gpu_facts> gpus; ///< as machine.gpus()
	std::vector<nic_facts> nics; ///< as machine.nics()

	std::optional<int> uring_errno; ///< 0: there is a ring
	std::optional<int> kfd_errno;	///< of /dev/kfd; 0: it opens
	std::optional<bool> xnack;
	std::optional<uint64_t> memlock;	///< bytes; UINT64_MAX: no limit
	bool may_pin_more = false;		///< the limit is not for this user
	std::string huge_pages;			///< "always", "madvise", "never"
	std::optional<uint64_t> numa_balancing; ///< 0: off
	/// Variables that are set here, of those that sluice env knows for any NIC.
	std::map<std::string, std::string> environment;
};

/// Look at the machine, and query its devices if @p with says so.
result<facts> ask(const settings &with);

enum class verdict : uint8_t {
	ok,
	not_known, ///< the program cannot find out
	slower,	   ///< it works, and could be faster
	missing,   ///< something cannot be done without it
};

const char *name(verdict v) noexcept;

struct check {
	std::string name;
	verdict is = verdict::ok;
	std::string found;
	std::string remedy;
};

using checks = std::vector<check>;

/// Whether the container has another GPU, and its device rules leave this one out.
bool is_withheld(const facts &of, const gpu_facts &known);

/// Whether a card uses all lanes that it could have.
check slot_check(const std::string &name, const pci_link &link);

/// Each function adds its checks.
void check_host(const facts &of, checks &to);
void check_gpus(const facts &of, checks &to);
void check_nics(const facts &of, checks &to);
/// The paths between GPUs and the rest, and how data will move in the end.
void check_paths(const facts &of, checks &to);
/// What UCX, Open MPI and libfabric are told.
void check_libraries(const facts &of, checks &to);

} // namespace sluice::cli
