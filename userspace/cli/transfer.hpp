// SPDX-License-Identifier: MIT
// What `sluice send` and `sluice recv` have in common.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "command.hpp"
#include "sluice/stream.hpp"

namespace sluice::cli {

struct transfer_options {
	std::string nic; ///< RDMA device; empty: the only one
	std::string gpu; ///< keep pieces in its memory; empty: in the host's
	uint16_t port = 7471;
	std::string token_file; ///< has the secret that both sides know
	uint64_t piece = 4 << 20, chunk = 1 << 20;
	unsigned pieces = 4;
	std::string require; ///< name of a data_path
	unsigned timeout_s = 30;
	std::string report; ///< file for the report as JSON
	bool quiet = false;
};

struct send_options : transfer_options {
	std::vector<std::string> files; ///< - is standard input
	std::string host;
	bool checksum = true, digest = true;
};

struct recv_options : transfer_options {
	std::string to = "."; ///< a directory, a file, or - for stdout
	std::string listen;   ///< address; empty: all
	bool overwrite = false;
};

/// Options that both commands have.
void add_transfer_options(CLI::App &to, transfer_options &o);

/// The sender's.
void add_chunk_option(CLI::App &to, transfer_options &o);

/// What both commands need to begin.
struct session {
	sluice::context context;
	std::optional<device> gpu;
	nic card;
	stream_options stream;
	endpoint_options endpoint;

	static result<session> open(const transfer_options &o);

	/// stream, with the GPU where it is now.
	stream_options stream_of()
	{
		stream.gpu = gpu ? &*gpu : nullptr;
		return stream;
	}

private:
	session(sluice::context &&c, std::optional<device> &&g, nic &&n)
		: context(std::move(c)), gpu(std::move(g)), card(std::move(n))
	{
	}
};

/// The first peer that connects to @p address (empty: all that the card has). No other can
/// connect after it: nobody would answer it, and strangers would take memory.
result<endpoint> accept_one(session &s, const transfer_options &o,
			    const std::string &address);

/// Run @p t to its end, and show its progress on a terminal.
template <class T>
T run_task(session &s, task<T> &&t, const std::string &name,
	   const stream_progress &progress, bool quiet);

/// A line of progress on a terminal, a few times a second, and nothing elsewhere.
class progress_line {
public:
	progress_line(std::string_view name, bool quiet);
	~progress_line();
	void show(const stream_progress &progress);

private:
	std::string name_;
	bool on_;
	clock::time_point began_ = clock::now(), shown_{};
};

template <class T>
T run_task(session &s, task<T> &&t, const std::string &name,
	   const stream_progress &progress, bool quiet)
{
	progress_line line(name, quiet);
	auto running = std::move(t);

	while (!running.done()) {
		auto ran = s.context.run_once(after(std::chrono::milliseconds(200)));

		if (!ran)
			return std::unexpected(ran.error());
		line.show(progress);
	}
	return running.run(s.context);
}

/// Reports on what was moved: text or one JSON document, and a file if one is named.
class reports {
public:
	reports(const settings &with, const transfer_options &o);
	/// Call before anything is moved: the file says so. errc::output; errc::usage if
	/// it is that of the token.
	result<void> begin() const;
	void add(const stream_report &r);
	result<exit_status> end();
	/// To return when one has failed: the file has the reports before it.
	std::unexpected<error> failed(const error &why);

private:
	result<void> write_file() const;

	const settings &with_;
	const transfer_options &options_;
	nlohmann::ordered_json all_;
};

} // namespace sluice::cli
