// SPDX-License-Identifier: MIT
// Energy of the parts of a GPU: its firmware adds it up, and the driver shows the sums in
// pm_metrics of sysfs. Source: smu_v13_0_6_get_pm_metrics(), smu_v13_0_6_pmfw.h and
// kgd_pp_interface.h of amdgpu. A test compares with these. NOT verified on hardware.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/error.hpp"

namespace sluice::cli {

/// Bytes of pm_metrics of an MI300X: a header, followed by the table.
namespace pm_metrics {
inline constexpr size_t mp1_version = 4;
inline constexpr size_t table = 16;
inline constexpr size_t updates = table;
inline constexpr size_t time = table + 52;
inline constexpr size_t socket = table + 60;
inline constexpr size_t xcd = table + 76;
inline constexpr size_t aid = table + 84;
inline constexpr size_t hbm = table + 92;
inline constexpr size_t end = hbm + 8;
/// 13.0.6. Tables of other versions start differently.
inline constexpr uint32_t mi300 = 13 << 24 | 0 << 16 | 6 << 8;
} // namespace pm_metrics

struct energy_sample {
	std::string gpu;      ///< PCI address
	uint32_t updates = 0; ///< how often the firmware has updated the sums
	uint64_t time = 0;    ///< of the last update, in 10 ns
	uint64_t socket = 0, xcd = 0, aid = 0, hbm = 0; ///< in 2^-16 J
};

/// errc::unsupported: the table of another kind of GPU. errc::input: it ends early.
result<energy_sample> parse_pm_metrics(std::string_view bytes, const std::string &gpu);

/// errc::unsupported: the driver shows none.
/// @param root where sys is
result<energy_sample> read_energy(std::string_view root, const std::string &gpu);

/// The devices that amdgpu drives.
std::vector<std::string> amdgpu_addresses(std::string_view root);

/// Energy of the whole GPU between two samples, in joules.
struct energy_used {
	double seconds = 0; ///< between the updates at both ends
	/// The fraction of the joules that may be from before or after. Each end is off by
	/// one update interval at most.
	double uncertainty = 0;
	double socket = 0, xcd = 0, aid = 0, hbm = 0;

	/// The parts that copies use: AIDs have the engines and the links, HBM the memory.
	double copies() const { return aid + hbm; }
};

/// No value: the firmware made no update in the meantime, or was restarted.
std::optional<energy_used> energy_between(const energy_sample &before,
					  const energy_sample &now);

/// "XCD 1.2, AID 3.4, HBM 5.6, socket 12.0 J in 812 ms +- 0.3 %"
std::string energy_text(const energy_used &of);

/// The energy of some GPUs since this object was made.
class energy_meter {
public:
	energy_meter(std::string_view root, std::span<const std::string> gpus);

	/// The sum of all of them, or why it is not known.
	result<energy_used> used() const;

private:
	using samples = result<std::vector<energy_sample>>;
	samples look() const;

	std::string root_;
	std::vector<std::string> gpus_;
	samples before_;
};

} // namespace sluice::cli
