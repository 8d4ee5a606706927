// SPDX-License-Identifier: MIT
#include "rdma_tools.hpp"

#include <csignal>
#include <deque>
#include <dlfcn.h>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <grp.h>
#include <map>
#include <rdma/rdma_cma.h>
#include <sys/resource.h>
#include <unistd.h>

#include "sluice/unique_fd.hpp"

namespace rdma_tests {

using namespace sluice;

namespace {

constexpr size_t offered_size = size_t{1} << 20;

/// Stop this process behind this call of the library, so many times.
std::string stop_behind;
int stops_left = 1;

void stop_if_behind(std::string_view call)
{
	if (stop_behind == call && stops_left-- > 0)
		::raise(SIGSTOP);
}

/// The function that ours stands in front of.
template <class F> F *next_of(F *, const char *name)
{
	return reinterpret_cast<F *>(::dlsym(RTLD_NEXT, name));
}

std::string flood_failed(const char *what, unsigned i, std::string_view why)
{
	return std::string(what) + " " + std::to_string(i) + ": " + std::string(why);
}

struct flow_in {
	std::vector<std::byte> memory = std::vector<std::byte>(max_message);
	operation op;
	unsigned done = 0;
};

// Start the next receive when the previous one is done, and check what it received.
std::string take(flow_in &in, endpoint &with, unsigned count)
{
	while (in.done < count && in.op.poll()) {
		auto got = in.op.wait();
		size_t expected = in.done * 37 % (max_message + 1);

		if (!got)
			return flood_failed("receive", in.done, got.error().message());
		if (*got != expected || !filled({in.memory.data(), *got}, in.done))
			return flood_failed("receive", in.done, "wrong data");
		if (++in.done < count)
			in.op = with.receive(in.memory);
	}
	return {};
}

} // namespace

bool is_slow()
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return true;
#else
	std::ifstream file("/proc/cmdline");
	std::string line;

	std::getline(file, line);
	return line.contains("sluice.flavour=debug");
#endif
}

void raise_limit_of_files()
{
	rlimit files{};

	::getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	::setrlimit(RLIMIT_NOFILE, &files);
}

std::string flood(endpoint &with, unsigned count)
{
	std::deque<operation> sends;
	std::vector<std::byte> text(max_message);
	flow_in in;
	unsigned started = 0, sent = 0;

	in.op = with.receive(in.memory);
	while (sent < count || in.done < count) {
		for (; started < count && sends.size() < 16; started++) {
			auto size = started * 37 % (max_message + 1);

			fill({text.data(), size}, started);
			sends.push_back(with.send({text.data(), size}));
		}
		for (; !sends.empty() && sends.front().poll();
		     sends.pop_front(), sent++)
			if (auto ok = sends.front().wait(); !ok)
				return flood_failed("send", sent, ok.error().message());
		if (auto why = take(in, with, count); !why.empty())
			return why;
		// Sleep until something more is done.
		operation &next = sends.empty() ? in.op : sends.front();
		if (auto ok = next.wait_until(after(1ms));
		    !ok && ok.error().code() != errc::timeout)
			return std::string(ok.error().message());
	}
	return {};
}

namespace {

struct peer {
	peer() : ring(*context::open()), card(*nic::open(ring, card_b)) {}

	result<endpoint> connect(const words &args, endpoint_options options = {},
				 clock::duration limit = 20s)
	{
		auto port = static_cast<uint16_t>(std::stoi(args.at(1)));

		if (options.token.empty())
			options.token = token;
		options.silence = silence;
		return endpoint::connect(ring, card, address_a, port, options,
					 after(limit));
	}

	clock::duration silence = 3s;
	context ring;
	nic card;
};

int told(const error &why)
{
	std::fprintf(stderr, "peer: %.*s\n", static_cast<int>(why.message().size()),
		     why.message().data());
	return exit_status(why.code());
}

// Serve until the connection ends; the exit status tells why it did.
int hold(peer &, endpoint &with)
{
	std::byte memory[max_message];

	for (;;)
		if (auto got = with.receive(memory).wait(); !got)
			return told(got.error());
}

int chat(const words &args)
{
	peer p;
	auto with = p.connect(args, {.messages = unsigned(std::stoi(args.at(2)))});

	if (!with)
		return told(with.error());
	if (auto why = flood(*with, unsigned(std::stoi(args.at(3)))); !why.empty()) {
		std::fprintf(stderr, "peer: %s\n", why.c_str());
		return exit_wrong;
	}
	// All our messages are acknowledged: now the other side may leave.
	std::byte last{};
	(void)with->send({&last, 1}).wait();
	auto end = with->receive({&last, 1}).wait();
	return end				       ? exit_wrong
	       : end.error().code() == errc::peer_lost ? 0
						       : told(end.error());
}

int hold_on(const words &args)
{
	peer p;

	if (args.size() > 2)
		p.silence = std::chrono::milliseconds(std::stoi(args[2]));
	auto with = p.connect(args);
	return with ? hold(p, *with) : told(with.error());
}

// As many times as asked for.
int say_and_leave(const words &args)
{
	peer p;

	for (int left = std::stoi(args.at(2)); left; left--) {
		auto with = p.connect(args);

		if (!with)
			return told(with.error());
		for (auto what : {std::byte{1}, std::byte{2}})
			if (auto said = with->send({&what, 1}).wait(); !said)
				return told(said.error());
	}
	return 0;
}

int stop_while_connecting(const words &args)
{
	stop_behind = args.at(2);
	if (args.size() > 3)
		stops_left = std::stoi(args[3]);
	return hold_on({args.at(0), args.at(1)});
}

int with_token(const words &args)
{
	peer p;
	// "" would be replaced by our token.
	auto with = p.connect(args, {.token = args.at(2)}, 10s);

	return with ? hold(p, *with) : told(with.error());
}

// Without a token: not by connect() above, which fills in ours.
int without_token(const words &args)
{
	peer p;
	auto with = endpoint::connect(p.ring, p.card, address_a,
				      static_cast<uint16_t>(std::stoi(args.at(1))), {},
				      after(10s));

	return with ? hold(p, *with) : told(with.error());
}

/// A request to offer(): the first byte of a message, and a seed.
struct request {
	char what;
	uint32_t seed;
};

char serve(const request &asked, const buffer &memory, registration &mine)
{
	switch (asked.what) {
	case 'c': return filled(memory.bytes(), asked.seed) ? 'y' : 'n';
	case 'f': fill(memory.bytes(), asked.seed); return 'f';
	case 'r': mine = {}; return 'r';
	default: return '?';
	}
}

int offer_of(peer &p, endpoint &with)
{
	auto memory = *buffer::host(offered_size);
	auto mine = p.card.register_memory(memory, remote::read | remote::write);

	if (!mine)
		return told(mine.error());
	remote_memory offered{memory.address(), memory.size(), mine->remote_key()};

	if (auto ok = with.send(std::as_bytes(std::span(&offered, 1))).wait(); !ok)
		return told(ok.error());
	for (;;) {
		request asked{};
		auto got = with.receive(std::as_writable_bytes(std::span(&asked, 1)))
				   .wait();

		if (!got)
			return told(got.error());
		char answer = serve(asked, memory, *mine);
		if (auto ok = with.send(std::as_bytes(std::span(&answer, 1))).wait();
		    !ok)
			return told(ok.error());
	}
}

int offer(const words &args)
{
	peer p;
	auto with = p.connect(args);

	return with ? offer_of(p, *with) : told(with.error());
}

// An ordinary user, who may pin nothing.
int as_nobody(const words &args)
{
	rlimit none{0, 0};

	if (::setrlimit(RLIMIT_MEMLOCK, &none) || ::setgroups(0, nullptr) ||
	    ::setgid(65534) || ::setuid(65534))
		return exit_wrong;
	peer p;
	auto memory = *buffer::host(offered_size);

	auto pinned =
		p.card.register_memory(memory, remote::none, registration_path::pinned);
	if (pinned || pinned.error().code() != errc::no_path)
		return exit_wrong;
	auto mine = p.card.register_memory(memory, remote::write);
	if (!mine || mine->path() != registration_path::on_demand)
		return exit_wrong - 1;
	return offer(args);
}

int many(const words &args)
{
	peer p;
	std::vector<endpoint> all;

	for (int i = 0; i < std::stoi(args.at(2)); i++) {
		auto with = p.connect(args, {.messages = 4, .depth = 8}, 60s);

		if (!with)
			return told(with.error());
		uint32_t number = static_cast<uint32_t>(i);
		if (auto ok = with->send(std::as_bytes(std::span(&number, 1))).wait();
		    !ok)
			return told(ok.error());
		all.push_back(std::move(*with));
	}
	std::byte last;
	auto end = all[0].receive({&last, 1}).wait();
	return end ? 0 : told(end.error());
}

struct incoming {
	explicit incoming(endpoint &&e) : with(std::move(e)) {}

	endpoint with;
	std::optional<receiver> in;
	buffer memory = *buffer::host(streamed);
};

// Checks that the stream with this number arrives as it was sent.
task<int> take_one(incoming &from, uint32_t number)
{
	auto offered = co_await from.in->next();
	if (!offered)
		co_return told(offered.error());
	if (!*offered || (*offered)->size != streamed)
		co_return exit_wrong;
	stream_sink sink{.file = -1, .to = {from.memory.part(0, streamed)}, .have = 0};
	auto report = co_await from.in->receive(std::move(sink));
	if (!report)
		co_return told(report.error());
	co_return filled(from.memory.bytes().first(streamed), number) ? 0 : exit_wrong;
}

// As many connections as asked for, and a stream on each, all at once.
int streams(const words &args)
{
	raise_limit_of_files();
	auto ring = *context::open(many_operations);
	auto card = *nic::open(ring, card_b);
	auto port = static_cast<uint16_t>(std::stoi(args.at(1)));
	std::deque<incoming> all;
	std::deque<task<int>> running;
	int worst = 0;

	for (int i = 0; i < std::stoi(args.at(2)); i++) {
		auto with = endpoint::connect(ring, card, address_a, port,
					      small_endpoint, after(120s));
		if (!with)
			return told(with.error());
		auto &from = all.emplace_back(std::move(*with));
		auto in = receiver::make(ring, from.with, card, small_stream);
		if (!in)
			return told(in.error());
		from.in.emplace(std::move(*in));
	}
	for (auto &from : all)
		running.push_back(
			take_one(from, static_cast<uint32_t>(running.size())));
	for (auto &one : running)
		worst = std::max(worst, one.run(ring));
	return worst;
}

task<void> take_any(receiver &in, int file)
{
	auto offered = co_await in.next();

	if (offered && *offered)
		(void)co_await in.receive({.file = file, .to = {}, .have = 0});
}

// Connections one after the other, with a stream on each, which may break off.
int take_some(const words &args)
{
	peer p;

	p.silence = 20s;
	for (int i = 0; i < std::stoi(args.at(2)); i++) {
		unique_fd file(::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
		auto with = p.connect(args);

		// The other side may leave before it has said welcome.
		if (!with && with.error().code() == errc::peer_lost)
			continue;
		if (!with || !file)
			return with ? exit_wrong : told(with.error());
		auto in = receiver::make(p.ring, *with, p.card, small_stream);
		if (!in)
			return told(in.error());
		take_any(*in, file.get()).run(p.ring);
	}
	return 0;
}

// The sending end of a stream.
int give(const words &args)
{
	peer p;
	auto with = p.connect(args);
	auto memory = *buffer::host(streamed);

	if (!with)
		return told(with.error());
	auto out = sender::make(p.ring, *with, p.card, small_stream);
	if (!out)
		return told(out.error());
	fill(memory.bytes().first(streamed), 1);
	auto sent = out->send({.name = "given",
			       .file = -1,
			       .from = {memory.part(0, streamed)},
			       .size = 0})
			    .run(p.ring);
	return sent ? 0 : told(sent.error());
}

} // namespace

int be_peer(const words &args)
{
	static const std::map<std::string, std::function<int(const words &)>> parts = {
		{"chat", chat},
		{"hold", hold_on},
		{"say-and-leave", say_and_leave},
		{"stop", stop_while_connecting},
		{"token", with_token},
		{"no-token", without_token},
		{"offer", offer},
		{"nobody", as_nobody},
		{"many", many},
		{"streams", streams},
		{"take", take_some},
		{"give", give},
		{"hostile", be_hostile},
		{"hostile-listener", be_hostile_listener},
		{"hostile-stream", be_hostile_stream},
	};

	return parts.at(args.at(0))(args);
}

} // namespace rdma_tests

// What stands in front of librdmacm's functions.

extern "C" int rdma_connect(rdma_cm_id *id, rdma_conn_param *with)
{
	int failed = rdma_tests::next_of(&rdma_connect, "rdma_connect")(id, with);

	rdma_tests::stop_if_behind("rdma_connect");
	return failed;
}

extern "C" int rdma_establish(rdma_cm_id *id)
{
	int failed = rdma_tests::next_of(&rdma_establish, "rdma_establish")(id);

	rdma_tests::stop_if_behind("rdma_establish");
	return failed;
}

// It stops when the library has answered the listener and looks for what comes next.
extern "C" int rdma_get_cm_event(rdma_event_channel *channel, rdma_cm_event **event)
{
	static bool answered = false;

	if (answered)
		rdma_tests::stop_if_behind("answer");
	int failed = rdma_tests::next_of(&rdma_get_cm_event,
					 "rdma_get_cm_event")(channel, event);
	answered = !failed && (*event)->event == RDMA_CM_EVENT_CONNECT_RESPONSE;
	return failed;
}
