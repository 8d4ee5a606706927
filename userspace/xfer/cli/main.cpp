// SPDX-License-Identifier: MIT
// sluice-xfer: send a file between the memories of two devices by RDMA.
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <new>

#include "xfer/file_reader.hpp"
#include "transfer.hpp"

namespace xfer {

namespace {

int give_up(const Error &error)
{
	std::cerr << "sluice-xfer: " << error.what() << "\n";
	return static_cast<int>(status_of(error.code()));
}

int write_json(const Options &o, const Report &report)
{
	if (o.json.empty())
		return 0;
	if (o.json == "-") {
		std::cout << report.json();
		return 0;
	}
	std::ofstream out(o.json);
	out << report.json();
	if (!out.flush())
		return give_up(system_error(o.json));
	return 0;
}

int send(const Options &o)
{
	// Complain about the file before anybody is bothered.
	FileReader probe(o.file);
	auto control = or_throw(connect_to(o.host, o.port, after(o.timeout)));

	try {
		auto report = send_file(o, control);

		if (!report)
			throw report.error();
		if (o.json != "-")
			std::cout << report->table();
		return write_json(o, *report);
	} catch (const Error &error) {
		control.send_error(error);
		throw;
	}
}

int receive(const Options &o)
{
	auto control = or_throw(accept_one(o.port, after(o.timeout)));

	try {
		or_throw(receive_file(o, control));
		return 0;
	} catch (const Error &error) {
		control.send_error(error);
		throw;
	}
}

} // namespace

} // namespace xfer

int main(int argc, char **argv)
try {
	auto parsed = xfer::parse_options(argc, argv);

	if (!parsed.options) {
		(parsed.status == xfer::exit_status::ok ? std::cout : std::cerr)
			<< parsed.text;
		return static_cast<int>(parsed.status);
	}
	// A write to a connection that the peer closed is an error, not a death.
	std::signal(SIGPIPE, SIG_IGN);
	return parsed.options->role == xfer::Options::role::send
		? xfer::send(*parsed.options)
		: xfer::receive(*parsed.options);
} catch (const xfer::Error &error) {
	return xfer::give_up(error);
} catch (const std::bad_alloc &) {
	return xfer::give_up({xfer::errc::system, "out of memory"});
}
