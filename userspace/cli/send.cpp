// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <filesystem>
#include <format>
#include <set>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "part_file.hpp"
#include "sluice/unique_fd.hpp"
#include "stream_wire.hpp"
#include "transfer.hpp"
#include "try.hpp"

namespace sluice::cli {

namespace {

struct opened_file {
	unique_fd fd;
	stream_source source;
};

// Closing a file that does not respond would hang, too: the process closes it, after it
// has reported why it gives up.
void leave_open(std::vector<opened_file> &files)
{
	for (opened_file &f : files)
		f.fd.release();
}

// Standard input is duplicated, so that all files are closed alike. Files of /proc and the
// like have a size of 0 and content: one without a size is read to its end.
result<opened_file> open_source(const std::string &path)
{
	opened_file f;
	struct stat st{};

	f.fd = unique_fd(path == "-" ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
				     : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
	if (!f.fd || ::fstat(f.fd.get(), &st) < 0)
		return fail_errno(path, "open", errno, errc::input);
	if (S_ISDIR(st.st_mode))
		return fail(errc::input, path, "it is a directory; name its files");
	f.source.name =
		path == "-" ? "stdin" : std::filesystem::path(path).filename().string();
	if (!wire::is_name(f.source.name))
		return std::unexpected(wire::is_no_name(f.source.name));
	f.source.file = f.fd.get();
	// Standard input may be in the middle of a file: it is read from there.
	const bool whole = S_ISREG(st.st_mode) && st.st_size > 0 &&
			   (path != "-" || ::lseek(f.fd.get(), 0, SEEK_CUR) == 0);
	f.source.size =
		whole ? static_cast<uint64_t>(st.st_size) : stream_source::unknown;
	f.source.steady = true;
	return f;
}

// The usual limit is 1024, and far more may be had for the asking.
void open_as_many_as_allowed()
{
	rlimit files{};

	if (::getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = files.rlim_max;
	::setrlimit(RLIMIT_NOFILE, &files);
}

class send_command : public command {
public:
	void add_options(CLI::App &to) override;
	result<exit_status> run(const settings &with) override;

private:
	result<exit_status> send_all(session &s, reports &told,
				     std::vector<opened_file> files);

	send_options options_;
};

void send_command::add_options(CLI::App &to)
{
	to.add_option("FILE", options_.files, "files, or - for standard input")
		->required();
	to.add_option("--to", options_.host, "host of the receiver")
		->type_name("HOST")
		->required();
	to.add_flag("!--no-checksum", options_.checksum, "no CRC-32C for each chunk");
	to.add_flag("!--no-digest", options_.digest,
		    "do not compare a SHA-256 in the end");
	add_chunk_option(to, options_);
	add_transfer_options(to, options_);
}

result<exit_status> send_command::run(const settings &with)
{
	std::vector<opened_file> files;
	std::set<std::string> names;
	reports told(with, options_);

	for (const std::string &path : options_.files)
		if (is_same_file(path == "-" ? "/dev/stdin" : path, options_.report))
			return fail(errc::usage, "--report",
				    path + " is one of the files to send");
	SLUICE_CHECK(told.begin());
	// All files are opened before a peer has to wait: what is missing is told at once,
	// and what is removed meanwhile is sent.
	open_as_many_as_allowed();
	for (const std::string &path : options_.files) {
		auto f = open_source(path);
		if (!f)
			return std::unexpected(f.error());
		if (!names.insert(f->source.name).second)
			return fail(errc::usage, path,
				    "another file of this name is sent, too");
		files.push_back(std::move(*f));
	}
	auto s = session::open(options_);
	if (!s)
		return std::unexpected(s.error());
	s->stream.checksum = options_.checksum;
	s->stream.digest = options_.digest;
	return send_all(*s, told, std::move(files));
}

result<exit_status> send_command::send_all(session &s, reports &told,
					   std::vector<opened_file> files)
{
	auto to = endpoint::connect(s.context, s.card, options_.host, options_.port,
				    s.endpoint,
				    after(std::chrono::seconds(options_.timeout_s)));
	if (!to)
		return std::unexpected(to.error());
	auto out = sender::make(s.context, *to, s.card, s.stream_of());
	if (!out)
		return std::unexpected(out.error());
	for (opened_file &f : files) {
		auto name = f.source.name;
		auto report = run_task(s, out->send(std::move(f.source)), name,
				       out->progress(), options_.quiet);
		if (!report && s.context.left_behind())
			leave_open(files);
		if (!report)
			return told.failed(report.error());
		told.add(*report);
	}
	if (auto done = out->finish().run(s.context); !done)
		return told.failed(done.error());
	return told.end();
}

} // namespace

std::unique_ptr<command> make_send()
{
	return std::make_unique<send_command>();
}

} // namespace sluice::cli
