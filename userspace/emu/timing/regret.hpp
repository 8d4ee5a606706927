// SPDX-License-Identifier: MIT
// How far automatic choices are from the best ones, by the model: the library's choice
// of a variant, and the kernel's of a number of engines.
#pragma once

#include "exchange.hpp"

namespace sluice::timing {

struct Regret {
	std::string what, chosen, best;
	Time took, least;

	double value() const { return took / least - 1; }
};

// The collectives of the paper at each size of 1 KB to 1 GB, as eight ranks, in place
// or not, prelaunched or not.
std::vector<Exchange> paper_exchanges();
// Any number of ranks; blocks of KV caches as messages, and collectives of as many
// bytes. The same ones each time.
std::vector<Exchange> random_exchanges(unsigned count);

std::vector<Regret> library_regrets(const std::vector<Exchange> &all, const Machine &m);
// By the published speed-ups, not by the model: for each row of the paper, without and
// with prelaunch.
std::vector<Regret> published_regrets();

// A batch of one GPU, all of whose copies have the same size.
struct Copies {
	enum class To : u8 { own, peer, peers, host } to;
	u32 count;
	u64 bytes;
};

std::vector<Copies> kv_copies();
std::vector<Copies> random_copies(unsigned count);
// The time of AUTO against that of the best number of engines that it may use. What
// each further job costs the host (host_job) counts.
std::vector<Regret> kernel_regrets(const std::vector<Copies> &all, const Machine &m);

double mean(const std::vector<Regret> &all);
std::string regret_table(const Machine &m);

} // namespace sluice::timing
