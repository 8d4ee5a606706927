// SPDX-License-Identifier: MIT
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

#include "part_file.hpp"
#include "transfer.hpp"
#include "try.hpp"

namespace sluice::cli {

namespace {

/// The destination of one offer: NAME.part at first, which becomes NAME when complete.
/// A broken transfer is resumed from what it left.
class target {
public:
	/// @param placed what this run has received, which no other file may replace
	static result<target> open(const recv_options &o, const stream_offer &offer,
				   const std::set<std::string> &placed);

	stream_sink sink() const
	{
		return {.file = fd_.get(),
			.to = {},
			.have = have_,
			.complete = complete_,
			.in_order = path_.empty(),
			.confirm = true};
	}
	result<void> keep(context &in, bool overwrite);
	/// Empty: standard output.
	const std::string &path() const { return path_; }
	/// Leave the part that can be resumed.
	void leave(uint64_t size) const;
	/// Leave a file that does not respond as it is, and open: closing it would hang.
	/// The process closes it, after it has reported why it gives up.
	void leave_open() { fd_.release(); }

private:
	/// Write to NAME.part, and go on where it ends.
	result<void> open_remains();
	/// Only compare NAME with what is offered.
	result<void> open_complete(const stream_offer &offer, bool may_compare);

	std::string path_, part_; ///< empty: standard output
	unique_fd fd_, directory_;
	uint64_t have_ = 0;
	bool complete_ = false;
};

// Pieces are written in any order. A receiver that was killed has left holes where some
// were missing, and only the part before the first hole can be resumed.
uint64_t without_holes(int file)
{
	off_t hole = ::lseek(file, 0, SEEK_HOLE);

	return hole < 0 ? 0 : static_cast<uint64_t>(hole);
}

// Shells read .profile and its like when they start, and programs take "-x" for an option.
result<void> may_be_chosen(const std::string &name)
{
	if (!name.starts_with('.') && !name.starts_with('-'))
		return {};
	return fail(
		errc::denied, name,
		"a peer without a token may not choose a name that begins with \".\" or "
		"\"-\": name the file as TO");
}

result<target> target::open(const recv_options &o, const stream_offer &offer,
			    const std::set<std::string> &placed)
{
	target t;

	if (o.to == "-") {
		t.fd_ = unique_fd(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
		if (!t.fd_)
			return fail_errno("standard output", "dup", errno,
					  errc::output);
		return t;
	}
	const bool trusted = !o.token_file.empty();

	SLUICE_TRY(t.path_, place_of(o.to, offer.name, true));
	t.part_ = t.path_ + ".part";
	if (t.path_ != o.to && !trusted)
		SLUICE_CHECK(may_be_chosen(offer.name));
	if (placed.contains(t.path_) || placed.contains(t.part_))
		return fail(errc::output, offer.name,
			    "it would replace a file that came before it");
	if (is_same_file(t.path_, o.report) || is_same_file(t.part_, o.report))
		return fail(errc::output, offer.name, "it would replace the report");
	t.directory_ = directory_of(t.path_);
	if (!o.overwrite && ::access(t.path_.c_str(), F_OK) == 0)
		SLUICE_CHECK(t.open_complete(offer, trusted));
	else
		SLUICE_CHECK(t.open_remains());
	return t;
}

result<void> target::open_remains()
{
	SLUICE_TRY(fd_, open_part(part_, rights_of_part(path_, 0666)));
	have_ = without_holes(fd_.get());
	return {};
}

// A run of several files that broke has left the first ones complete. The sender is told
// the digest of what is here, which is nothing for strangers.
result<void> target::open_complete(const stream_offer &offer, bool may_compare)
{
	struct stat st{};

	fd_ = unique_fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
	if (!may_compare || !fd_ || ::fstat(fd_.get(), &st) < 0 ||
	    !S_ISREG(st.st_mode) || static_cast<uint64_t>(st.st_size) != offer.size)
		return is_there(path_);
	have_ = offer.size;
	complete_ = true;
	return {};
}

// The ring runs on while the name gets to the disk: the peer is waiting.
result<void> target::keep(context &in, bool overwrite)
{
	if (path_.empty() || complete_)
		return {};
	SLUICE_CHECK(put_in_place(fd_.get(), part_, path_, overwrite));
	if (!directory_)
		return {};
	if (auto synced = in.sync(directory_.get()).wait();
	    !synced && synced.error().number() != EINVAL)
		return fail_errno(path_, "sync", synced.error().number(), errc::output);
	return {};
}

// After this size there may be holes, and pieces after them. If nothing has arrived, the
// old content is as good as it was.
void target::leave(uint64_t size) const
{
	if (!path_.empty() && !complete_ && size &&
	    ::ftruncate(fd_.get(), static_cast<off_t>(size)) < 0)
		::unlink(part_.c_str());
}

result<stream_report> take(session &s, receiver &from, const stream_offer &offer,
			   const recv_options &o, std::set<std::string> &placed)
{
	auto to = target::open(o, offer, placed);

	if (!to) {
		(void)from.refuse(std::string(to.error().message())).run(s.context);
		return std::unexpected(to.error());
	}
	auto report = run_task(s, from.receive(to->sink()), offer.name, from.progress(),
			       o.quiet);
	if (!report) {
		if (s.context.left_behind())
			to->leave_open();
		else
			to->leave(from.progress().bytes);
		return report;
	}
	// The sender is told of success once the file has its name.
	auto kept = to->keep(s.context, o.overwrite);
	if (!kept) {
		(void)from.give_up(kept.error()).run(s.context);
		return std::unexpected(kept.error());
	}
	placed.insert(to->path());
	if (auto told = from.confirm().run(s.context); !told)
		return std::unexpected(told.error());
	return report;
}

/// Before a sender has come: can files be made at the place that a user names?
result<void> can_have_files(const std::string &to)
{
	std::error_code none;

	if (to == "-")
		return {};
	const std::string where =
		std::filesystem::is_directory(to, none)
			? to
			: std::filesystem::absolute(to, none).parent_path().string();
	if (::access(where.c_str(), W_OK | X_OK) < 0)
		return fail_errno(where, "cannot get files", errno, errc::output);
	return {};
}

/// The report must not replace what is received. What is offered for a directory is
/// compared when its name is known.
result<void> report_is_apart(const recv_options &o)
{
	const std::string to = o.to == "-" ? "/dev/stdout" : o.to;

	if (is_same_file(to, o.report) || is_same_file(to + ".part", o.report))
		return fail(errc::usage, "--report",
			    "it would replace what is received");
	return {};
}

class recv_command : public command {
public:
	void add_options(CLI::App &to) override;
	result<exit_status> run(const settings &with) override;

private:
	result<exit_status> receive_all(session &s, reports &told, endpoint &peer);

	recv_options options_;
};

void recv_command::add_options(CLI::App &to)
{
	to.add_option("TO", options_.to,
		      "a directory, a file, or - for standard output")
		->check(not_empty)
		->capture_default_str();
	to.add_option("--listen", options_.listen,
		      "listen on this address; default: all")
		->type_name("ADDRESS");
	to.add_flag("--overwrite", options_.overwrite, "replace files that are there");
	add_transfer_options(to, options_);
}

result<exit_status> recv_command::run(const settings &with)
{
	reports told(with, options_);

	SLUICE_CHECK(report_is_apart(options_));
	SLUICE_CHECK(told.begin());
	if (with.json && options_.to == "-")
		return fail(
			errc::usage, "--json",
			"standard output gets the data: --report FILE has the same");
	options_.quiet = options_.quiet || options_.to == "-";
	options_.chunk = options_.piece; // the sender decides
	SLUICE_CHECK(can_have_files(options_.to));
	auto s = session::open(options_);
	if (!s)
		return std::unexpected(s.error());
	auto peer = accept_one(*s, options_, options_.listen);
	if (!peer)
		return std::unexpected(peer.error());
	return receive_all(*s, told, *peer);
}

result<exit_status> recv_command::receive_all(session &s, reports &told, endpoint &peer)
{
	auto in = receiver::make(s.context, peer, s.card, s.stream_of());
	std::set<std::string> placed;

	if (!in)
		return std::unexpected(in.error());
	for (;;) {
		auto offer = in->next().run(s.context);
		if (!offer)
			return told.failed(offer.error());
		if (!*offer)
			return told.end();
		auto report = take(s, *in, **offer, options_, placed);
		if (!report)
			return told.failed(report.error());
		told.add(*report);
	}
}

} // namespace

std::unique_ptr<command> make_recv()
{
	return std::make_unique<recv_command>();
}

} // namespace sluice::cli
