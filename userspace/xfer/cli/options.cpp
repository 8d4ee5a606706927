// SPDX-License-Identifier: MIT
#include "options.hpp"

#include <format>
#include <map>
#include <sstream>

#include <CLI/CLI.hpp>

#include "xfer/credit.hpp"
#include "xfer/plan.hpp"

namespace xfer {

namespace {

constexpr const char *footer = R"(Sizes are in bytes and take the suffixes K, M and G, of 1024.

Exit status:
  0  all of FILE arrived and was found to be the same
  1  a system call failed
  2  bad arguments
  3  FILE is missing, empty, not a regular file, or cannot be read
  4  an RDMA or memory device is missing or refuses
  5  the other side went away
  6  no progress within --timeout
  7  what arrived differs from FILE
  8  the other side does not speak the protocol)";

const std::map<std::string, memory_alias> aliases = {
	{"published", memory_alias::published},
	{"no-cpu", memory_alias::no_cpu},
};

const std::map<std::string, bool> registrations = {
	{"odp", true},
	{"pinned", false},
};

struct Raw {
	Options options;
	unsigned timeout_s = 30;
	unsigned delay_ms = 0;
};

void add_common(CLI::App &app, Raw &raw)
{
	Options &o = raw.options;

	app.add_option("--port", o.port, "TCP port of the control connection")
		->check(CLI::Range(1, 65535))->capture_default_str();
	app.add_option("--device", o.device,
		       "RDMA device; default: the only one");
	app.add_option("--memory", o.memory,
		       "system, a peer memory device: /dev/peer_mem0, or a "
		       "GPU: gpu:0000:03:00.0")
		->capture_default_str();
	app.add_option("--alias", o.alias,
		       "published, or no-cpu: not reachable by a software "
		       "RDMA device, so that pages fall back; default: as "
		       "the device is now")
		->transform(CLI::CheckedTransformer(aliases));
	app.add_option("--registration", o.on_demand,
		       "odp: on demand, or pinned")
		->transform(CLI::CheckedTransformer(registrations));
	app.add_option("--window", o.window,
		       "bytes of memory to transfer from or to")
		->transform(CLI::AsSizeValue(false))->capture_default_str();
	app.add_option("--timeout", raw.timeout_s,
		       "seconds without progress until it gives up")
		->check(CLI::Range(1, 3600))->capture_default_str();
	app.add_option("--delay", raw.delay_ms,
		       "for tests: ms to stop before each chunk")->group("");
}

CLI::App *add_send(CLI::App &app, Raw &raw)
{
	CLI::App *send = app.add_subcommand("send", "send a file");
	Options &o = raw.options;

	send->add_option("FILE", o.file, "file to send")->required();
	send->add_option("--to", o.host, "host of the receiver")->required();
	send->add_option("--chunk", o.chunk,
			 "bytes of one RDMA write, a multiple of 4K")
		->transform(CLI::AsSizeValue(false))->capture_default_str();
	send->add_option("--depth", o.depth, "writes under way at most")
		->check(CLI::Range(1u, max_credits))->capture_default_str();
	send->add_option("--json", o.json,
			 "write the report as JSON to this file, - for stdout");
	add_common(*send, raw);
	return send;
}

CLI::App *add_receive(CLI::App &app, Raw &raw)
{
	CLI::App *receive = app.add_subcommand("receive", "receive one file");
	Options &o = raw.options;

	receive->add_option("--credits", o.credits,
			    "receives that the sender may use at once")
		->check(CLI::Range(1u, max_credits))->capture_default_str();
	receive->add_option("--verify", o.verify,
			    "self, or the virtio port of an oracle that reads "
			    "the device's memory from outside")
		->capture_default_str();
	add_common(*receive, raw);
	return receive;
}

// What one option alone cannot tell.
std::string complaint(const Options &o)
{
	if (o.window < min_chunk || o.window % min_chunk)
		return std::format("--window {}: not a multiple of 4K", o.window);
	if (o.role == Options::role::send)
		if (auto plan = Plan::make(1, o.window, o.chunk); !plan)
			return plan.error().what();
	if (o.alias != memory_alias::as_is && !o.peer_memory())
		return "--alias is for peer memory";
	if (o.peer_memory() && !o.on_demand)
		return "device memory cannot be pinned: --registration odp";
	return {};
}

} // namespace

exit_status status_of(errc code) noexcept
{
	switch (code) {
	case errc::system:	return exit_status::failure;
	case errc::usage:	return exit_status::usage;
	case errc::input:	return exit_status::input;
	case errc::device:	return exit_status::device;
	case errc::peer_lost:	return exit_status::peer;
	case errc::peer_error:	return exit_status::peer;
	case errc::protocol:	return exit_status::protocol;
	case errc::timeout:	return exit_status::timeout;
	case errc::corrupt:	return exit_status::corrupt;
	}
	return exit_status::failure;
}

Parsed parse_options(int argc, const char *const *argv)
{
	CLI::App app("Send a file between the memories of two devices by RDMA",
		     "sluice-xfer");
	Raw raw;
	CLI::App *send = add_send(app, raw);

	add_receive(app, raw);
	app.require_subcommand(1);
	app.footer(footer);
	try {
		app.parse(argc, argv);
	} catch (const CLI::ParseError &e) {
		std::ostringstream out, err;
		bool help = app.exit(e, out, err) == 0;

		return {{}, help ? out.str() : err.str(),
			help ? exit_status::ok : exit_status::usage};
	}
	Options &o = raw.options;
	o.role = send->parsed() ? Options::role::send : Options::role::receive;
	o.timeout = std::chrono::seconds(raw.timeout_s);
	o.delay = std::chrono::milliseconds(raw.delay_ms);
	if (auto text = complaint(o); !text.empty())
		return {{}, text + "\n", exit_status::usage};
	return {o, {}, exit_status::ok};
}

} // namespace xfer
