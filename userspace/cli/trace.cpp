// SPDX-License-Identifier: MIT
// sluice trace: what rings of GPUs, io_uring, cards and streams do, on one timeline.
#include <array>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <format>
#include <fstream>
#include <iostream>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "child.hpp"
#include "clock_sync.hpp"
#include "command.hpp"
#include "json_text.hpp"
#include "part_file.hpp"
#include "text.hpp"
#include "tracefs.hpp"
#include "try.hpp"

namespace sluice::cli {

namespace {

using json = nlohmann::ordered_json;

constexpr auto between_samples = std::chrono::milliseconds(50);
constexpr uint16_t default_port = 7473;

struct trace_options {
	std::string out, node, sync;
	std::vector<std::string> words;
	unsigned seconds = 0, kilobytes = 8192;
	std::optional<uint16_t> answer;
	uint16_t port = default_port;
};

struct merge_options {
	std::string a, b, out;
	std::optional<int64_t> offset_ns;
};

int64_t realtime_less_monotonic()
{
	timespec real{}, mono{};

	::clock_gettime(CLOCK_REALTIME, &real);
	::clock_gettime(CLOCK_MONOTONIC, &mono);
	return (real.tv_sec - mono.tv_sec) * 1'000'000'000LL + real.tv_nsec -
	       mono.tv_nsec;
}

/// How long a command has to end after it was asked to.
constexpr auto grace = std::chrono::seconds(5);

/// Collects, while it lives, the signals that ask a program to end: what the program has
/// made has to be removed first. Signals ignored, as under nohup, stay ignored.
class ends_asked_for {
public:
	ends_asked_for()
	{
		sigset_t set;

		::sigemptyset(&set);
		for (int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
			if (!is_ignored(number))
				::sigaddset(&set, number);
		::sigprocmask(SIG_BLOCK, &set, &before_);
		fd_ = unique_fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
	}
	ends_asked_for(const ends_asked_for &) = delete;
	~ends_asked_for()
	{
		while (next())
			;
		::sigprocmask(SIG_SETMASK, &before_, nullptr);
	}

	int fd() const { return fd_.get(); }
	std::optional<signalfd_siginfo> next() const
	{
		signalfd_siginfo info{};

		if (::read(fd(), &info, sizeof(info)) != sizeof(info))
			return {};
		return info;
	}

private:
	static bool is_ignored(int number)
	{
		struct sigaction now{};

		return ::sigaction(number, nullptr, &now) == 0 &&
		       now.sa_handler == SIG_IGN;
	}

	sigset_t before_{};
	unique_fd fd_;
};

result<void> write_file(const std::string &path, const json &all)
{
	std::ofstream file(path);

	if (!(file << all.dump(-1, ' ', false, json::error_handler_t::replace) << "\n")
		     .flush())
		return fail_errno(path, "write", errno, errc::output);
	return {};
}

/// One recording.
class recorder {
public:
	recorder(const trace_options &o, const settings &with)
		: options_(o), with_(with)
	{
	}
	/// The exit status of the command, if there is one.
	result<int> run();

private:
	result<void> start(kernel_trace &trace);
	/// Until the command has ended (true), the time is up, or a signal arrives.
	bool wait();
	result<void> sync();
	result<void> collect(const kernel_trace &trace);
	result<void> write();
	void sample();
	void pass_on();
	void tell(const trace_node &node) const;

	const trace_options &options_;
	const settings &with_;
	std::optional<ends_asked_for> asked_;
	std::optional<child> child_;
	std::optional<ping_answerer> answerer_;
	std::vector<clock_offset> others_;
	std::vector<nic_sample> samples_;
	std::vector<trace_event> events_;
	uint64_t lost_ = 0;   ///< events for which there was no room
	uint64_t unread_ = 0; ///< lines that this program does not understand
};

// The descriptor is passed on because the command may see another /sys, for example in a
// network namespace.
result<void> recorder::start(kernel_trace &trace)
{
	if (options_.words.empty())
		return trace.run(true);
	SLUICE_TRY(auto marker, trace.marker());
	::setenv("SLUICE_TRACE_FD", std::to_string(marker.get()).c_str(), 1);
	SLUICE_CHECK(trace.run(true));
	SLUICE_TRY(auto started, child::start(options_.words, {.aside = with_.json,
							       .keep = marker.get()}));
	child_.emplace(std::move(started));
	return {};
}

void recorder::sample()
{
	for (nic_sample &s : traffic_of(read_nic_counters(with_.root)))
		samples_.push_back(std::move(s));
}

// The terminal itself signals the command for typed keys. A signal sent to this process
// is meant for both. The command decides when it ends.
void recorder::pass_on()
{
	while (auto info = asked_->next())
		if (child_ && info->ssi_code <= SI_USER)
			child_->signal(static_cast<int>(info->ssi_signo));
}

bool recorder::wait()
{
	deadline until = options_.seconds
				 ? after(std::chrono::seconds(options_.seconds))
				 : never;
	std::array fds = {pollfd{asked_->fd(), POLLIN, 0},
			  pollfd{child_ ? child_->pidfd() : -1, POLLIN, 0},
			  pollfd{answerer_ ? answerer_->fd() : -1, POLLIN, 0}};
	deadline next = clock::now();

	while (clock::now() < until) {
		if (clock::now() >= next) {
			sample();
			next = clock::now() + between_samples;
		}
		::poll(fds.data(), fds.size(), 10);
		if (answerer_ && fds[2].revents)
			answerer_->answer();
		if (fds[1].revents || (fds[0].revents && !child_))
			break;
		if (fds[0].revents)
			pass_on();
	}
	sample();
	return fds[1].revents != 0;
}

// Called before and after, as clocks may drift. The other side may be gone by then.
result<void> recorder::sync()
{
	if (options_.sync.empty())
		return {};
	bool first = others_.empty();
	auto offset = measure_offset(options_.sync, options_.port, first ? 5000 : 500);
	if (!offset && first)
		return std::unexpected(offset.error());
	if (first)
		others_.push_back(*offset);
	else if (offset)
		others_[0] = combined(others_[0], *offset);
	return {};
}

void recorder::tell(const trace_node &node) const
{
	if (with_.json) {
		json all = {{"file", options_.out},
			    {"events", events_.size()},
			    {"lost_events", node.lost}};
		if (!node.others.empty())
			all["clock"] = {
				{"offset_ns", node.others[0].ns},
				{"uncertainty_ns", node.others[0].uncertainty_ns}};
		*with_.out << json_text(all);
		return;
	}
	*with_.out << hanging(
		"", std::format("{}: {} events; https://ui.perfetto.dev opens it",
				options_.out, events_.size()));
	if (node.lost)
		*with_.out << hanging(
			"  ",
			std::format(
				"{} events are lost, the oldest: --buffer makes room for more",
				node.lost));
	if (!node.others.empty())
		*with_.out << hanging(
			"  ",
			std::format(
				"the clock of {} is ahead by {} ns, give or take {}",
				options_.sync, node.others[0].ns,
				node.others[0].uncertainty_ns));
}

result<void> recorder::collect(const kernel_trace &trace)
{
	lost_ = trace.lost();
	return trace.each_line([this](std::string_view line) {
		if (auto e = parse_trace_line(line))
			events_.push_back(std::move(*e));
		else if (!is_remark(line))
			unread_++;
	});
}

result<void> recorder::write()
{
	utsname system{};

	::uname(&system);
	trace_node node{.name = options_.node.empty() ? system.nodename : options_.node,
			.boot_id = boot_id(),
			.kernel = system.release,
			.realtime_ns = realtime_less_monotonic(),
			.lost = lost_,
			.others = others_};
	SLUICE_CHECK(
		write_file(options_.out, timeline_of(events_, samples_).json(node)));
	tell(node);
	if (unread_)
		std::cerr << hanging(
			"sluice: ",
			std::format("{} lines of the kernel's trace are not understood",
				    unread_));
	return {};
}

result<int> recorder::run()
{
	SLUICE_CHECK(can_be_written(options_.out));
	if (options_.answer) {
		SLUICE_TRY(auto opened, ping_answerer::open(*options_.answer));
		answerer_.emplace(std::move(opened));
	}
	SLUICE_CHECK(sync());
	asked_.emplace();
	SLUICE_TRY(auto trace, kernel_trace::make(with_.root, options_.kilobytes));
	SLUICE_CHECK(start(trace));
	bool ended = wait();
	SLUICE_CHECK(trace.run(false));
	int status = 0;
	// A command that outlasts the trace is ended.
	if (child_) {
		SLUICE_TRY(status, ended ? child_->reap() : child_->end(after(grace)));
	}
	SLUICE_CHECK(collect(trace));
	auto gone = trace.end();
	// What is left to do may be interrupted: the kernel has nothing of ours any more.
	asked_.reset();
	SLUICE_CHECK(sync());
	SLUICE_CHECK(write());
	if (!gone)
		std::cerr << hanging("sluice: ", gone.error().message());
	return status;
}

class trace_command : public command {
public:
	void add_options(CLI::App &to) override;
	std::vector<std::string> *program() override { return &options_.words; }
	result<exit_status> run(const settings &with) override;

private:
	result<exit_status> record(const settings &with);
	result<exit_status> merge(const settings &with);

	trace_options options_;
	merge_options merge_;
	CLI::App *merge_app_ = nullptr;
};

void trace_command::add_options(CLI::App &to)
{
	to.usage("Usage: sluice trace --out FILE [OPTIONS] [-- COMMAND...]\n"
		 "  or:  sluice trace merge A B --out FILE [--offset-ns N]");
	to.add_option("COMMAND", options_.words, "trace while it runs; none: until ^C");
	to.add_option("--out", options_.out, "the file, for https://ui.perfetto.dev")
		->type_name("FILE");
	to.add_option(
		  "--seconds", options_.seconds,
		  "end after this long; COMMAND gets SIGTERM then, and 5 s later SIGKILL")
		->check(CLI::Range(1, 86400));
	to.add_option("--buffer", options_.kilobytes, "KiB of events for each CPU")
		->check(CLI::Range(64, 1 << 20))
		->capture_default_str();
	to.add_option("--node", options_.node, "name of this machine in the file")
		->type_name("NAME");
	to.add_option("--sync-listen", options_.answer,
		      "answer another machine's pings on this UDP port")
		->check(CLI::Range(1, 65535));
	to.add_option("--sync", options_.sync,
		      "measure by pings how far the clock of HOST is ahead of this one")
		->type_name("HOST");
	to.add_option("--sync-port", options_.port, "UDP port of --sync")
		->check(CLI::Range(1, 65535))
		->capture_default_str();
	merge_app_ = to.add_subcommand("merge", "put two traces on the first one's "
						"clock");
	merge_app_->add_option("A", merge_.a)->required();
	merge_app_->add_option("B", merge_.b)->required();
	merge_app_->add_option("--out", merge_.out, "the file")
		->type_name("FILE")
		->required();
	merge_app_->add_option("--offset-ns", merge_.offset_ns,
			       "add this to the times of B");
}

result<json> open_trace(const std::string &path)
{
	std::ifstream file(path);

	if (!file)
		return fail_errno(path, "open", errno, errc::input);
	return read_trace(file, path);
}

result<exit_status> trace_command::merge(const settings &with)
{
	if (!options_.words.empty())
		return fail(errc::usage, "trace merge", "it runs no program");
	for (const std::string &read : {merge_.a, merge_.b})
		if (is_same_file(read, merge_.out))
			return fail(errc::usage, "--out", "it would replace " + read);
	SLUICE_TRY(auto a, open_trace(merge_.a));
	SLUICE_TRY(auto b, open_trace(merge_.b));
	SLUICE_TRY(auto both, merge_traces(a, b, merge_.offset_ns));
	SLUICE_CHECK(write_file(merge_.out, both.json));
	if (with.json)
		*with.out << json_text(both.json["otherData"]);
	else
		*with.out << hanging(
			"",
			std::format(
				"{}: {} ns were added to the times of {}; uncertainty {}; {}",
				merge_.out, both.offset.ns, merge_.b,
				both.bounded ? std::format("{} ns",
							   both.offset.uncertainty_ns)
					     : "not known",
				both.how));
	return exit_status::ok;
}

result<exit_status> trace_command::record(const settings &with)
{
	if (options_.out.empty())
		return fail(errc::usage, "--out", "name a file for the trace");
	SLUICE_TRY(int status, recorder(options_, with).run());
	// Like time(1), it exits with the status of the command.
	return static_cast<exit_status>(status);
}

result<exit_status> trace_command::run(const settings &with)
{
	return merge_app_->parsed() ? merge(with) : record(with);
}

} // namespace

std::unique_ptr<command> make_trace()
{
	return std::make_unique<trace_command>();
}

} // namespace sluice::cli
