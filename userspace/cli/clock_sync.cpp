// SPDX-License-Identifier: MIT
#include "clock_sync.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "packet.hpp"
#include "try.hpp"

namespace sluice::cli {

namespace {

constexpr unsigned pings_wanted = 64;

int64_t now_ns()
{
	timespec t{};

	::clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

struct free_addresses {
	void operator()(addrinfo *a) const { ::freeaddrinfo(a); }
};

result<unique_fd> connected(const std::string &host, const std::string &port)
{
	addrinfo hints{}, *found = nullptr;

	hints.ai_socktype = SOCK_DGRAM;
	if (int err = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found))
		return fail(errc::usage, "--sync", host + ": " + ::gai_strerror(err));
	std::unique_ptr<addrinfo, free_addresses> all(found);
	for (const addrinfo *one = found; one; one = one->ai_next) {
		unique_fd s(::socket(one->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));

		if (s && ::connect(s.get(), one->ai_addr, one->ai_addrlen) == 0)
			return s;
	}
	return fail_errno(host, "connect");
}

/// The answer to @p number, if one arrives in time.
std::optional<clock_ping> ping(int s, uint64_t number, std::string &boot)
{
	ping_packet ask{.number = number};
	std::array<std::byte, sizeof(ping_packet)> room;
	pollfd ready{.fd = s, .events = POLLIN, .revents = 0};

	int64_t sent = now_ns();
	if (::send(s, &ask, sizeof(ask), 0) < 0)
		return std::nullopt;
	while (::poll(&ready, 1, 20) > 0) {
		ssize_t n = ::recv(s, room.data(), room.size(), MSG_DONTWAIT);

		int64_t received = now_ns();
		if (n < 0)
			break; // no listener there yet
		std::span answer(room.data(), static_cast<size_t>(n));
		auto said = read_ping(answer);
		auto got = ping_of(answer, number, sent, received);
		if (!said || !got)
			continue;
		boot = boot_in(*said);
		return got;
	}
	return std::nullopt;
}

} // namespace

std::optional<ping_packet> read_ping(std::span<const std::byte> of)
{
	return packet_in<ping_packet>(of);
}

std::optional<ping_packet> answer_to(std::span<const std::byte> question,
				     std::string_view boot, int64_t now)
{
	auto p = read_ping(question);

	// A question does not carry the other side's time yet. An answer must not be
	// answered: a forged one would keep two machines answering each other forever.
	if (!p || p->there || p->boot[0])
		return std::nullopt;
	p->boot = {};
	boot.copy(p->boot.data(), p->boot.size() - 1);
	p->there = now;
	return p;
}

std::optional<clock_ping> ping_of(std::span<const std::byte> answer, uint64_t number,
				  int64_t sent, int64_t received)
{
	constexpr int64_t most = int64_t{1} << 62; // 146 years
	auto p = read_ping(answer);

	if (!p || p->number != number || p->there <= 0 || p->there >= most)
		return std::nullopt;
	return clock_ping{.sent = sent, .there = p->there, .received = received};
}

std::string boot_in(const ping_packet &answer)
{
	return {answer.boot.data(),
		::strnlen(answer.boot.data(), answer.boot.size() - 1)};
}

clock_offset offset_of(const std::vector<clock_ping> &pings, std::string boot)
{
	const auto &best = *std::ranges::min_element(
		pings, {}, [](const auto &p) { return p.received - p.sent; });
	int64_t way = best.received - best.sent;

	return {.boot_id = std::move(boot),
		.ns = best.there - best.sent - way / 2,
		.uncertainty_ns = (way + 1) / 2};
}

clock_offset combined(const clock_offset &first, const clock_offset &second)
{
	int64_t apart = second.ns - first.ns;

	return {.boot_id = first.boot_id,
		.ns = first.ns + apart / 2,
		.uncertainty_ns =
			std::max(first.uncertainty_ns, second.uncertainty_ns) +
			(std::abs(apart) + 1) / 2};
}

namespace {

/// For all addresses of IPv4, and also of IPv6 if the family is AF_INET6.
unique_fd bound_to_all(sa_family_t family, uint16_t port)
{
	unique_fd s(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	sockaddr_in6 any{}; // begins as that of IPv4 does
	socklen_t length = family == AF_INET6 ? sizeof(any) : sizeof(sockaddr_in);
	int no = 0;

	any.sin6_family = family;
	any.sin6_port = htons(port);
	if (!s ||
	    (family == AF_INET6 &&
	     ::setsockopt(s.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no)) < 0) ||
	    ::bind(s.get(), reinterpret_cast<sockaddr *>(&any), length) < 0)
		return {};
	return s;
}

} // namespace

result<ping_answerer> ping_answerer::open(uint16_t port)
{
	unique_fd s = bound_to_all(AF_INET6, port);

	// a kernel may have no IPv6
	if (!s && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL))
		s = bound_to_all(AF_INET, port);
	if (!s)
		return fail_errno("--sync-listen", "UDP port " + std::to_string(port));
	return ping_answerer(std::move(s));
}

// An answer is as long as the question, so a third host cannot be flooded through it.
// Who asks without end must not keep the recording from what else it does.
void ping_answerer::answer() const
{
	constexpr int most_at_once = 64;
	std::array<std::byte, sizeof(ping_packet)> room;

	for (int i = 0; i < most_at_once; i++) {
		sockaddr_in6 who{};
		socklen_t length = sizeof(who);
		ssize_t n = ::recvfrom(fd(), room.data(), room.size(), MSG_DONTWAIT,
				       reinterpret_cast<sockaddr *>(&who), &length);

		if (n < 0)
			return;
		if (auto p = answer_to(std::span(room).first(static_cast<size_t>(n)),
				       boot_id(), now_ns()))
			::sendto(fd(), &*p, sizeof(*p), MSG_DONTWAIT,
				 reinterpret_cast<sockaddr *>(&who), length);
	}
}

result<clock_offset> measure_offset(const std::string &peer, uint16_t port,
				    int patience)
{
	std::vector<clock_ping> pings;
	std::string boot;
	int64_t until = now_ns() + patience * 1'000'000LL;

	SLUICE_TRY(auto s, connected(peer, std::to_string(port)));
	for (uint64_t n = 0; pings.size() < pings_wanted && now_ns() < until; n++) {
		if (auto one = ping(s.get(), n, boot))
			pings.push_back(*one);
		else
			::poll(nullptr, 0, 10);
	}
	if (pings.empty())
		return fail(errc::timeout, peer,
			    "no sluice trace --sync-listen "
			    "answers on UDP port " +
				    std::to_string(port));
	return offset_of(pings, boot);
}

std::string boot_id()
{
	std::ifstream file("/proc/sys/kernel/random/boot_id");
	std::string id;

	file >> id;
	return id;
}

} // namespace sluice::cli
