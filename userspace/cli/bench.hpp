// SPDX-License-Identifier: MIT
// sluice bench: declarations shared by its modes and by both sides of a connection.
#pragma once

#include <format>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "exit_status.hpp"
#include "figures.hpp"
#include "sluice/device.hpp"
#include "sluice/endpoint.hpp"
#include "sluice/error.hpp"

namespace sluice::cli {

struct bench_options {
	std::string host; ///< the listening side; empty: bench this machine
	bool listen = false;
	std::string address; ///< to listen on; empty: all
	std::string nic, gpu;
	uint16_t port = 7472;
	std::string token;
	std::string memory = "host"; ///< on this side: host, gpu, svm
	std::string operation = "write";
	bool perftest = false;	///< run ib_write_bw, too
	std::string from, to;	///< on this machine: memory, or a file
	unsigned gather = 0;	///< blocks per batch
	std::string collective; ///< over all GPUs of this machine; empty: none
	std::string variant;	///< of the collective; empty: all it has
	bool prelaunch = false;
	bool direct = false, overwrite = false;
	std::vector<uint64_t> sizes;
	uint64_t total = uint64_t{64} << 20; ///< bytes per round
	unsigned samples = 1000;	     ///< single operations, at most
	unsigned rounds = 5, depth = 16;
	unsigned timeout_s = 30;
	std::string note, plot;
	std::vector<std::string> metered; ///< GPUs whose energy is reported

	uint64_t largest() const;
	/// Operations per round: at least enough to fill the depth.
	uint64_t count(uint64_t bytes) const;
	/// Operations that are timed one by one.
	unsigned singles(uint64_t bytes) const;
};

/// Memory of one kind, and the counters of its GPU.
class bench_memory {
public:
	/// @param kind "host", "gpu" or "svm"; the last two need a GPU
	/// @param gpu nullptr: none
	static result<bench_memory> make(device *gpu, const std::string &kind,
					 uint64_t size);

	const buffer &all() const { return all_; }
	/// errc::device if pages of it have left the GPU since it was made: a figure
	/// for a path other than the requested one is worse than none.
	result<void> verify() const;

private:
	device *gpu_ = nullptr;
	buffer all_;
	std::optional<device_counters> before_;
};

/// The named GPU, or the first one if memory of a GPU is wanted.
result<std::optional<device>> bench_gpu(context &in, const bench_options &o,
					bool wanted);

bool is_memory(const std::string &name);

/// A repeated operation. A slot holds one of the operations that are in flight.
class bench_work {
public:
	virtual ~bench_work() = default;
	virtual result<void> start(unsigned slot, uint64_t index) = 0;
	/// Wait for the operation last started in @p slot; an empty slot is done.
	virtual result<void> wait(unsigned slot) = 0;
};

/// An operation, in flight or not, that must move all of its bytes.
template <typename Operation> class moving {
public:
	void start(Operation &&what, uint64_t bytes)
	{
		what_.emplace(std::move(what));
		bytes_ = bytes;
	}
	/// @param of what the error names
	result<void> wait(const std::string &of)
	{
		if (!what_)
			return {};
		auto n = what_->wait();
		what_.reset();
		if (!n)
			return std::unexpected(n.error());
		if (*n != bytes_)
			return fail(
				errc::input, of,
				std::format("{} of {} bytes were moved", *n, bytes_));
		return {};
	}

private:
	std::optional<Operation> what_;
	uint64_t bytes_ = 0;
};

/// Why the energy of the GPUs of @p o is not reported; empty: it is, or no GPUs.
std::string why_no_energy(const bench_options &o);

/// An alternative implementation: bytes per second over @p count operations.
using bench_other = std::function<result<double>(uint64_t bytes, uint64_t count)>;

/// Warm up, then measure throughput, alternating round by round with @p other if
/// there is one, and then latencies.
result<figure> measure(context &in, bench_work &work, const std::string &what,
		       uint64_t bytes, const bench_options &o,
		       const bench_other &other = {});

/// The modes.
result<figures> bench_local(const bench_options &o);
result<figures> bench_group(const bench_options &o);
result<figures> bench_connect(const bench_options &o);
/// Serve until the peer is done.
result<void> bench_listen(const bench_options &o);

} // namespace sluice::cli
