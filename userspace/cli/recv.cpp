// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <unistd.h>

#include "part_file.hpp"
#include "transfer.hpp"

namespace sluice::cli {

namespace {

/// Where one offer goes: to NAME.part first, which becomes NAME when all is there.
/// What a broken transfer has left is taken up again.
class target {
public:
	static result<target> open(const recv_options &o, const stream_offer &offer);

	stream_sink sink() const
	{
		return {.file = fd_.get(), .to = {}, .have = have_};
	}
	result<void> keep(uint64_t size, bool overwrite);
	/// Leave what may be taken up again.
	void leave(uint64_t size) const;
	/// Leave a file that does not answer as it is, and open: to close it would not
	/// end. The process does it, when it has said why it gives up.
	void leave_open() { fd_.release(); }

private:
	std::string path_, part_; ///< empty: standard output
	unique_fd fd_;
	uint64_t have_ = 0;
};

// Pieces are written in any order. Who was killed has left holes where some were
// missing, and only what is before the first one can be taken up again.
uint64_t without_holes(int file)
{
	off_t hole = ::lseek(file, 0, SEEK_HOLE);

	return hole < 0 ? 0 : static_cast<uint64_t>(hole);
}

result<target> target::open(const recv_options &o, const stream_offer &offer)
{
	target t;

	if (o.to == "-") {
		t.fd_ = unique_fd(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
		return t;
	}
	auto place = place_of(o.to, offer.name, o.overwrite);
	if (!place)
		return std::unexpected(place.error());
	t.path_ = *place;
	t.part_ = t.path_ + ".part";
	auto file = open_part(t.part_, 0);
	if (!file)
		return std::unexpected(file.error());
	t.fd_ = std::move(*file);
	t.have_ = without_holes(t.fd_.get());
	return t;
}

// Pieces may have been written behind the end of what was there before.
result<void> target::keep(uint64_t size, bool overwrite)
{
	if (path_.empty())
		return {};
	if (::ftruncate(fd_.get(), static_cast<off_t>(size)) < 0)
		return fail_errno(part_, "truncate", errno, errc::output);
	return put_in_place(part_, path_, overwrite);
}

// Behind this may be holes, and pieces behind them. If nothing has come, all that was
// there is as good as it was.
void target::leave(uint64_t size) const
{
	if (!path_.empty() && size &&
	    ::ftruncate(fd_.get(), static_cast<off_t>(size)) < 0)
		::unlink(part_.c_str());
}

result<stream_report> take(session &s, receiver &from, const stream_offer &offer,
			   const recv_options &o)
{
	auto to = target::open(o, offer);

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
	if (auto kept = to->keep(report->bytes + report->resumed, o.overwrite); !kept)
		return std::unexpected(kept.error());
	return report;
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
		->capture_default_str();
	to.add_option("--listen", options_.listen, "address; default: all")
		->type_name("ADDRESS");
	to.add_flag("--overwrite", options_.overwrite, "replace files that are there");
	add_transfer_options(to, options_);
}

result<exit_status> recv_command::run(const settings &with)
{
	reports told(with, options_);

	options_.quiet = options_.quiet || options_.to == "-";
	auto s = session::open(options_);
	if (!s)
		return std::unexpected(s.error());
	auto door = listener::open(s->context, s->card, options_.listen, options_.port,
				   s->endpoint);
	if (!door)
		return std::unexpected(door.error());
	auto peer = door->accept(after(std::chrono::seconds(options_.timeout_s)));
	if (!peer)
		return std::unexpected(peer.error());
	return receive_all(*s, told, *peer);
}

result<exit_status> recv_command::receive_all(session &s, reports &told, endpoint &peer)
{
	auto in = receiver::make(s.context, peer, s.card, s.stream_of());

	if (!in)
		return std::unexpected(in.error());
	for (;;) {
		auto offer = in->next().run(s.context);
		if (!offer)
			return std::unexpected(offer.error());
		if (!*offer)
			return told.end();
		auto report = take(s, *in, **offer, options_);
		if (!report)
			return std::unexpected(report.error());
		told.add(*report);
	}
}

} // namespace

std::unique_ptr<command> make_recv()
{
	return std::make_unique<recv_command>();
}

} // namespace sluice::cli
