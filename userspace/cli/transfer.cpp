// SPDX-License-Identifier: MIT
#include "transfer.hpp"

#include <cstdio>
#include <format>
#include <sys/stat.h>
#include <unistd.h>

#include "json_text.hpp"
#include "part_file.hpp"
#include "silence.hpp"
#include "text.hpp"
#include "token.hpp"
#include "try.hpp"

namespace sluice::cli {

namespace {

constexpr data_path paths[] = {data_path::device_alias, data_path::device_dmabuf,
			       data_path::host, data_path::staged};

double seconds(clock::duration d)
{
	return std::chrono::duration<double>(d).count();
}

double megabytes_a_second(uint64_t bytes, clock::duration in)
{
	return in.count() ? static_cast<double>(bytes) / seconds(in) / 1e6 : 0;
}

std::string row(const char *name, const std::string &value)
{
	return std::format("{:<20} {}\n", name, printable(value));
}

result<std::optional<data_path>> required(const std::string &path)
{
	std::string all;

	if (path.empty())
		return std::nullopt;
	for (data_path p : paths) {
		if (path == name(p))
			return p;
		all += std::format(" {}", name(p));
	}
	return fail(errc::usage, "--require", path + " is none of" + all);
}

std::string table(const stream_report &r)
{
	std::string t;

	t += row("name", r.name);
	t += row("bytes", r.resumed ? std::format("{} and {} that were there", r.bytes,
						  r.resumed)
				    : std::to_string(r.bytes));
	t += row("path", r.path_reason.empty()
				 ? std::string(name(r.path))
				 : std::format("{}: {}", name(r.path), r.path_reason));
	t += row("whole time", std::format("{:.3f} s, {:.1f} MB/s", seconds(r.total),
					   megabytes_a_second(r.bytes, r.total)));
	t += row(
		"of all pieces",
		std::format(
			"storage {:.3f} s, engines {:.3f} s, wire {:.3f} s, checks {:.3f} s",
			seconds(r.storage), seconds(r.engine), seconds(r.wire),
			seconds(r.check)));
	t += row("pieces",
		 std::format("{}, {} at once at most", r.pieces, r.most_in_flight));
	t += row("waits for a grant", std::format("{} ({:.3f} s)", r.waits_for_grant,
						  seconds(r.granted_late)));
	if (r.migrations)
		t += row("migrations",
			 std::format("{} pages in, {} out{}", r.migrations->migrated_in,
				     r.migrations->migrated_out,
				     r.migrations->lost_events ? ", at least" : ""));
	if (r.numa_node >= 0)
		t += row("memory", std::format("near node{}, {} pages elsewhere",
					       r.numa_node, r.pages_elsewhere));
	t += row("system calls", std::to_string(r.system_calls));
	if (r.digest)
		t += row("SHA-256", to_string(*r.digest) + ", equal at both ends");
	return t;
}

nlohmann::ordered_json json_of(const stream_report &r)
{
	nlohmann::ordered_json j = {
		{"name", r.name},
		{"bytes", r.bytes},
		{"resumed_bytes", r.resumed},
		{"path", name(r.path)},
		{"path_reason", r.path_reason},
		{"seconds",
		 {{"total", seconds(r.total)},
		  {"storage", seconds(r.storage)},
		  {"engine", seconds(r.engine)},
		  {"wire", seconds(r.wire)},
		  {"check", seconds(r.check)},
		  {"grant_wait", seconds(r.granted_late)}}},
		{"mb_per_s", megabytes_a_second(r.bytes, r.total)},
		{"pieces", r.pieces},
		{"most_in_flight", r.most_in_flight},
		{"grant_waits", r.waits_for_grant},
		{"system_calls", r.system_calls},
	};

	if (r.numa_node >= 0)
		j["memory"] = {{"numa_node", r.numa_node},
			       {"pages_elsewhere", r.pages_elsewhere}};
	if (r.migrations)
		j["migrations"] = {{"in", r.migrations->migrated_in},
				   {"out", r.migrations->migrated_out},
				   {"lost_events", r.migrations->lost_events}};
	if (r.digest)
		j["sha256"] = to_string(*r.digest);
	return j;
}

} // namespace

result<endpoint> accept_one(session &s, const transfer_options &o,
			    const std::string &address)
{
	auto door = listener::open(s.context, s.card, address, o.port, s.endpoint);

	if (!door)
		return std::unexpected(door.error());
	return door->accept(after(std::chrono::seconds(o.timeout_s)));
}

result<session> session::open(const transfer_options &o)
{
	auto path = required(o.require);
	if (!path)
		return std::unexpected(path.error());
	auto c = context::open();
	if (!c)
		return std::unexpected(c.error());
	std::optional<device> gpu;
	if (!o.gpu.empty()) {
		auto opened = device::open(*c, o.gpu);
		if (!opened)
			return std::unexpected(opened.error());
		gpu.emplace(std::move(*opened));
	}
	auto card = nic::open(*c, o.nic);
	if (!card)
		return std::unexpected(card.error());
	session s(std::move(*c), std::move(gpu), std::move(*card));
	s.stream = {.piece = o.piece,
		    .chunk = o.chunk,
		    .pieces = o.pieces,
		    .gpu = nullptr,
		    .require = *path,
		    .patience = std::chrono::seconds(o.timeout_s)};
	s.endpoint.silence = silence_for(o.timeout_s);
	if (!o.token_file.empty()) {
		auto token = read_token(o.token_file);
		if (!token)
			return std::unexpected(token.error());
		s.endpoint.token = *token;
	}
	// Check before there is a peer: if it gave up first, it would only count as lost.
	if (auto found = find_path(s.card, s.stream_of()); !found)
		return std::unexpected(found.error());
	return s;
}

progress_line::progress_line(std::string_view name, bool quiet)
	: name_(printable(name)), on_(!quiet && ::isatty(STDERR_FILENO))
{
}

progress_line::~progress_line()
{
	if (on_)
		std::fputs("\r\033[K", stderr);
}

void progress_line::show(const stream_progress &p)
{
	auto now = clock::now();

	if (!on_ || now - shown_ < std::chrono::milliseconds(200))
		return;
	shown_ = now;
	// Bytes that were there already are read and compared, but not moved.
	const uint64_t moved = p.bytes - p.resumed;
	if (!moved)
		began_ = now;
	double rate = megabytes_a_second(moved, now - began_);
	std::string text = std::format("{}  {:.1f} MB  {:.1f} MB/s", name_,
				       static_cast<double>(p.bytes) / 1e6, rate);
	if (p.size != stream_source::unknown && p.size && rate > 0)
		text += std::format("  {} %  {:.0f} s left", p.bytes * 100 / p.size,
				    static_cast<double>(p.size - p.bytes) / 1e6 / rate);
	std::fprintf(stderr, "\r\033[K%s", text.c_str());
	std::fflush(stderr);
}

reports::reports(const settings &with, const transfer_options &o)
	: with_(with), options_(o), all_(nlohmann::ordered_json::array())
{
}

void reports::add(const stream_report &r)
{
	all_.push_back(json_of(r));
	if (!with_.json && !options_.quiet)
		*with_.out << table(r) << "\n";
}

// A reader of a pipe or a terminal gets one document, at the end.
result<void> reports::begin() const
{
	struct stat st{};

	if (is_same_file(options_.token_file, options_.report))
		return fail(errc::usage, "--report", "it would replace the token");
	if (::stat(options_.report.c_str(), &st) == 0 &&
	    (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)))
		return {};
	return write_file();
}

result<void> reports::write_file() const
{
	if (options_.report.empty())
		return {};
	std::ofstream file(options_.report);
	if (!(file << json_text(all_)).flush())
		return fail_errno(options_.report, "report", errno, errc::output);
	return {};
}

// Write the file first: standard output has one document, which may be an error.
result<exit_status> reports::end()
{
	SLUICE_CHECK(write_file());
	if (with_.json)
		*with_.out << json_text(all_);
	return exit_status::ok;
}

std::unexpected<error> reports::failed(const error &why)
{
	(void)write_file();
	return std::unexpected(why);
}

void add_chunk_option(CLI::App &to, transfer_options &o)
{
	to.add_option("--chunk", o.chunk, "bytes of one RDMA write, and of a CRC")
		->transform(CLI::AsSizeValue(false))
		->capture_default_str();
}

void add_transfer_options(CLI::App &to, transfer_options &o)
{
	to.add_option("--nic", o.nic, "RDMA device; default: the only one")
		->type_name("NIC");
	to.add_option("--gpu", o.gpu,
		      "keep pieces in this GPU's memory: 0000:03:00.0, or 0")
		->type_name("GPU");
	to.add_option("--port", o.port, "port of the receiver")
		->check(CLI::Range(1, 65535))
		->capture_default_str();
	to.add_option("--token-file", o.token_file,
		      "its first line is the token, which both sides must have")
		->type_name("FILE");
	to.add_option("--piece", o.piece, "bytes of memory granted at a time")
		->transform(CLI::AsSizeValue(false))
		->capture_default_str();
	to.add_option("--pieces", o.pieces, "pieces that this side has memory for")
		->check(CLI::Range(2, 64))
		->capture_default_str();
	to.add_option("--require", o.require,
		      "fail unless this side takes exactly this path: device-alias, "
		      "device-dmabuf, host or staged")
		->type_name("PATH");
	to.add_option(
		  "--timeout", o.timeout_s,
		  "give up if nothing moves for so many seconds; a peer that is silent "
		  "for a third of that, but at least 10 seconds, is lost")
		->check(CLI::Range(1, 86400))
		->capture_default_str();
	to.add_option("--report", o.report, "write what was moved to this file")
		->type_name("FILE");
	to.add_flag("--quiet", o.quiet, "print no table and no progress");
}

} // namespace sluice::cli
