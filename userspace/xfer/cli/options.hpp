// SPDX-License-Identifier: MIT
// Command line of sluice-xfer.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "xfer/error.hpp"

namespace xfer {

/// Exit statuses of sluice-xfer. The manual and --help list them.
enum class exit_status {
	ok = 0,
	failure = 1,	///< a system call failed
	usage = 2,	///< bad arguments
	input = 3,	///< FILE is missing, empty, or cannot be read
	device = 4,	///< an RDMA or memory device is missing or refuses
	peer = 5,	///< the other side went away or gave up
	timeout = 6,	///< no progress in the time given
	corrupt = 7,	///< the data that arrived differ from FILE
	protocol = 8,	///< the other side does not speak the protocol
};

exit_status status_of(errc code) noexcept;

enum class memory_alias {
	as_is,		///< whatever it is now
	published,	///< all of the device's memory, to everybody
	no_cpu,		///< not to devices that use the CPU: they fall back
};

struct Options {
	enum class role { send, receive } role = role::send;
	std::string file;		///< send
	std::string host;		///< send: where the receiver is
	uint16_t port = 18515;
	std::string device;		///< RDMA device, empty: the only one
	/// "system", the path of a peer memory device, or gpu:PCI-ADDRESS
	std::string memory = "system";
	memory_alias alias = memory_alias::as_is;
	bool on_demand = true;		///< else pinned
	uint64_t chunk = uint64_t{1} << 20;	///< send, bytes
	uint64_t window = uint64_t{64} << 20;	///< bytes
	uint32_t depth = 16;		///< send: writes under way at most
	uint32_t credits = 16;		///< receive: receives posted
	/// receive: who hashes what arrived. "self": this program, with the
	/// CPU; else the name of the virtio port of an oracle.
	std::string verify = "self";
	std::chrono::milliseconds timeout{30000};
	std::string json;		///< write the report here, "-": stdout
	/// Tests: stop for this long before each chunk, as a slow peer would.
	std::chrono::milliseconds delay{0};

	bool peer_memory() const { return memory != "system"; }
};

/// What parsing came to: options, or text to print and a status to exit with.
struct Parsed {
	std::optional<Options> options;
	std::string text;
	exit_status status = exit_status::ok;
};

Parsed parse_options(int argc, const char *const *argv);

} // namespace xfer
