// SPDX-License-Identifier: MIT
// Measurements and their output: medians and percentiles with their n.
#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "power.hpp"
#include "sluice/error.hpp"

namespace sluice::cli {

/// "4K..16M" (each four times the one before, and the last), or "4K,64K,1M": bytes.
/// errc::usage.
result<std::vector<uint64_t>> parse_sizes(std::string_view text);

/// The value that a fraction @p q of all do not exceed; @p all is not empty.
double quantile(std::vector<double> all, double q);

/// Of single operations. A percentile that needs more of them has no value.
struct percentiles {
	size_t n = 0;
	double p50 = 0;
	std::optional<double> p99;  ///< of 100 or more
	std::optional<double> p999; ///< of 1000 or more
};

percentiles percentiles_of(const std::vector<double> &all);

/// One row: operations of one size.
struct figure {
	std::string what;		     ///< "write", "copy", ...
	uint64_t bytes = 0;		     ///< per operation
	std::vector<double> rates;	     ///< bytes per second, one per round
	std::vector<double> latencies;	     ///< microseconds, one per operation
	double calls = 0;		     ///< system calls of the ring per operation
	double cpu_us = 0;		     ///< of this process, per single operation
	std::vector<double> other_rates;     ///< of ib_write_bw, one per round
	std::optional<energy_used> energy{}; ///< of the GPUs, over all rounds

	double rate() const { return rates.empty() ? 0 : quantile(rates, 0.5); }
	std::optional<double> other_rate() const;
	/// Relative to ib_write_bw.
	std::optional<double> ratio() const;
};

/// What all figures have in common.
struct figures {
	std::string title; ///< "write, host to svm of rxe-b"
	std::string note;  ///< what the user notes about the machine
	unsigned depth = 0;
	std::vector<figure> rows;
	std::string no_energy{}; ///< why rows have no energy; empty: no GPU used
};

/// The value of the first line "key: value" of a file such as /proc/cpuinfo; empty if
/// there is none.
std::string first_of(std::istream &from, std::string_view key);

/// The kernel and the CPU: a figure without them says nothing.
std::string environment_text();

/// A plot: throughput above, latency below.
std::string svg_of(const figures &all);

std::string figures_text(const figures &all);
nlohmann::ordered_json energy_json(const energy_used &of);
nlohmann::ordered_json figures_json(const figures &all);

} // namespace sluice::cli
