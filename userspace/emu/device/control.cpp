// SPDX-License-Identifier: MIT
#include "control.hpp"

#include <charconv>
#include <format>
#include <optional>
#include <ranges>
#include <system_error>

#include <sys/socket.h>

namespace sluice::emu {

namespace {

using Words = std::vector<std::string_view>;
struct Failure {
	std::string why;
};

constexpr std::string_view help_text =
	"[gpuN] stats | reset-stats\n"
	"[gpuN] irq drop N | irq duplicate N | irq delay MICROSECONDS\n"
	"[gpuN] engine N|all hang | resume | slow MICROSECONDS |\n"
	"                     corrupt-fences N\n"
	"[gpuN] xnack on | off | all\n"
	"[gpuN] vanish | remove\n"
	"[gpuN] timeline start | stop | dump\n"
	"[gpuN] poison OFFSET LENGTH\n"
	"[gpuN] peek OFFSET LENGTH\n"
	"[gpuN] hash OFFSET LENGTH\n"
	"list\n";

u64 number(const Words &w, size_t i)
{
	u64 v = 0;

	if (i >= w.size())
		throw Failure{"a number is missing"};
	std::string_view s = w[i];
	int base = s.starts_with("0x") ? 16 : 10;
	if (base == 16)
		s.remove_prefix(2);
	auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v, base);
	if (error != std::errc() || end != s.data() + s.size())
		throw Failure{std::format("not a number: {}", w[i])};
	return v;
}

std::string_view word(const Words &w, size_t i)
{
	if (i >= w.size())
		throw Failure{"a word is missing"};
	return w[i];
}

u32 small_number(const Words &w, size_t i)
{
	u64 v = number(w, i);

	if (v > 0xffffffff)
		throw Failure{"the number is too large"};
	return static_cast<u32>(v);
}

// Longer than any limit of the driver. A thread that pauses does nothing else.
constexpr u64 longest_pause_us = 10'000'000;

u64 pause_us(const Words &w, size_t i)
{
	u64 v = number(w, i);

	if (v > longest_pause_us)
		throw Failure{std::format("at most {} us", longest_pause_us)};
	return v;
}

std::string stats(Endpoint &e)
{
	std::string out = std::format("{{\"engines\":{},", e.gpu().engines());
	const Stats &s = e.gpu().stats();

	for (auto [name, member] : Stats::entries)
		out += std::format("\"{}\":{},", name, (s.*member).get());
	out += std::format("\"unknown_registers\":{}}}\n",
			   e.gpu().registers().unknown_touched());
	return out;
}

std::string reset_stats(Endpoint &e)
{
	for (auto [name, member] : Stats::entries)
		(e.gpu().stats().*member).clear();
	return {};
}

std::string irq(Endpoint &e, const Words &w)
{
	std::string_view what = word(w, 1);

	if (what == "drop")
		e.irq_gate().drop = small_number(w, 2);
	else if (what == "duplicate")
		e.irq_gate().duplicate = small_number(w, 2);
	else if (what == "delay")
		e.irq_gate().delay_us = pause_us(w, 2);
	else
		throw Failure{"irq: drop, duplicate or delay"};
	return {};
}

void disturb(Endpoint &e, EngineFaults &f, const Words &w)
{
	std::string_view what = word(w, 2);

	if (what == "hang") {
		f.hang = true;
	} else if (what == "resume") {
		f.hang = false;
		f.slow_ns = 0;
		e.kick();
	} else if (what == "slow") {
		f.slow_ns = pause_us(w, 3) * 1000;
	} else if (what == "corrupt-fences") {
		f.corrupt_fences = small_number(w, 3);
	} else {
		throw Failure{"engine: hang, resume, slow or corrupt-fences"};
	}
}

std::string engine(Endpoint &e, const Words &w)
{
	bool all = word(w, 1) == "all";
	u64 first = all ? 0 : number(w, 1);
	u64 last = all ? e.gpu().engines() - 1 : first;

	if (last >= e.gpu().engines())
		throw Failure{"no such engine"};
	for (u64 i = first; i <= last; i++)
		disturb(e, e.gpu().engine(static_cast<unsigned>(i)).faults(), w);
	return {};
}

std::string xnack(Endpoint &e, const Words &w)
{
	std::string_view what = word(w, 1);

	if (what != "on" && what != "off" && what != "all")
		throw Failure{"xnack: on, off or all"};
	VmPolicy policy{.retry = what != "off"};
	// also for the jobs of the graphics driver
	if (what == "all")
		policy.retry_from = 0;
	e.gpu().set_retry(policy);
	return {};
}

std::string timeline(Endpoint &e, const Words &w)
{
	Timeline &t = e.gpu().timeline();
	std::string_view what = word(w, 1);

	if (what == "start") {
		t.clear();
		t.enable(true);
	} else if (what == "stop") {
		t.enable(false);
	} else if (what == "dump") {
		return "[" + t.json(e.index()) + "]\n";
	} else {
		throw Failure{"timeline: start, stop or dump"};
	}
	return {};
}

std::byte *memory(Endpoint &e, u64 offset, u64 length)
{
	std::byte *p = e.gpu().vram().device(offset, length);

	if (!p)
		throw Failure{"outside video memory"};
	return p;
}

std::string peek(Endpoint &e, const Words &w)
{
	u64 offset = number(w, 1), length = number(w, 2);
	const std::byte *p = memory(e, offset, length);
	std::string out;

	if (length > 65536)
		throw Failure{"at most 65536 bytes"};
	for (u64 i = 0; i < length; i++)
		out += std::format("{:02x}{}", static_cast<u8>(p[i]),
				   i % 32 == 31 || i + 1 == length ? "\n" : "");
	return out;
}

// FNV-1a, 64 bits: for comparing memory without moving it.
std::string hash(Endpoint &e, const Words &w)
{
	u64 offset = number(w, 1), length = number(w, 2);
	const std::byte *p = memory(e, offset, length);
	u64 h = 0xcbf29ce484222325;

	for (u64 i = 0; i < length; i++)
		h = (h ^ static_cast<u8>(p[i])) * 0x100000001b3;
	return std::format("{:016x}\n", h);
}

std::string poison(Endpoint &e, const Words &w)
{
	u64 offset = number(w, 1), length = number(w, 2);

	memory(e, offset, length);
	e.gpu().vram().poison(offset, length);
	return {};
}

std::string dispatch(Endpoint &e, const Words &w)
{
	std::string_view c = w[0];

	if (c == "stats")
		return stats(e);
	if (c == "reset-stats")
		return reset_stats(e);
	if (c == "irq")
		return irq(e, w);
	if (c == "engine")
		return engine(e, w);
	if (c == "xnack")
		return xnack(e, w);
	if (c == "timeline")
		return timeline(e, w);
	if (c == "peek")
		return peek(e, w);
	if (c == "hash")
		return hash(e, w);
	if (c == "poison")
		return poison(e, w);
	if (c == "vanish" || c == "remove") {
		e.vanish();
		std::string why = c == "remove" ? e.empty_slot() : "";
		if (!why.empty())
			throw Failure{why};
		return {};
	}
	throw Failure{std::format("unknown command: {}", c)};
}

Endpoint &select(Words &w, Control::Endpoints &endpoints)
{
	u64 index = 0;

	if (w[0].starts_with("gpu")) {
		Words digits{w[0].substr(3)};
		index = number(digits, 0);
		w.erase(w.begin());
	}
	if (index >= endpoints.size())
		throw Failure{"no such GPU"};
	if (w.empty())
		throw Failure{"a command is missing"};
	return *endpoints[index];
}

} // namespace

std::string Control::execute(std::string_view line, Endpoints &endpoints)
{
	Words w;

	for (auto part : line | std::views::split(' '))
		if (!part.empty())
			w.emplace_back(part.begin(), part.end());
	if (w.empty())
		return "ok\n";
	try {
		if (w[0] == "help")
			return std::string(help_text) + "ok\n";
		if (w[0] == "list")
			return std::format("{}\nok\n", endpoints.size());
		Endpoint &e = select(w, endpoints);
		return dispatch(e, w) + "ok\n";
	} catch (const Failure &f) {
		return std::format("error: {}\n", f.why);
	}
}

Control::Control(const std::string &path, Endpoints &endpoints)
	: endpoints_(endpoints), listener_(vfio::listen_at(path)),
	  acceptor_([this] { serve(); })
{
}

Control::~Control()
{
	::shutdown(listener_.get(), SHUT_RDWR);
	acceptor_.join();
	{
		std::lock_guard guard(lock_);
		for (Client &c : clients_)
			if (c.socket)
				::shutdown(c.socket.get(), SHUT_RDWR);
	}
	clients_.clear(); // waits for their threads
}

void Control::serve()
{
	while (vfio::unique_fd socket = vfio::accept_at(listener_)) {
		bury();
		admit(std::move(socket));
	}
}

void Control::admit(vfio::unique_fd socket)
{
	std::lock_guard guard(lock_);
	Client &c = clients_.emplace_back(std::move(socket));

	try {
		c.thread = std::jthread([this, &c, fd = c.socket.get()] {
			serve_client(fd);
			std::lock_guard over(lock_);
			c.socket = {};
		});
	} catch (const std::system_error &) { // too many threads
		clients_.pop_back();
	}
}

// Joins threads of clients that are gone. They have nothing left to wait for.
void Control::bury()
{
	std::list<Client> gone;
	std::lock_guard guard(lock_);

	for (auto c = clients_.begin(); c != clients_.end();) {
		auto next = std::next(c);
		if (!c->socket)
			gone.splice(gone.end(), clients_, c);
		c = next;
	}
}

void Control::serve_client(int fd)
{
	constexpr size_t longest_line = 4096;
	std::string pending;
	char chunk[512];

	while (pending.size() < longest_line) {
		ssize_t n = recv(fd, chunk, sizeof(chunk), 0);
		if (n <= 0)
			return;
		pending.append(chunk, static_cast<size_t>(n));
		for (size_t end; (end = pending.find('\n')) != pending.npos;) {
			std::string out = execute(
				std::string_view(pending).substr(0, end), endpoints_);
			pending.erase(0, end + 1);
			for (size_t done = 0; done < out.size();) {
				ssize_t sent = send(fd, out.data() + done,
						    out.size() - done, MSG_NOSIGNAL);
				if (sent <= 0)
					return;
				done += static_cast<size_t>(sent);
			}
		}
	}
}

} // namespace sluice::emu
