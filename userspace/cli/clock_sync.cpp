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

#include "try.hpp"

namespace sluice::cli {

namespace {

constexpr unsigned pings_wanted = 64;
constexpr uint64_t magic_number = 0x31474e504c53;	// "SLPNG1"

/// The question, and the answer with the last two filled in.
struct packet {
	uint64_t magic = magic_number, number = 0;
	int64_t there = 0;
	std::array<char, 40> boot{};
};

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
	unique_fd s(::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	if (!s || ::connect(s.get(), found->ai_addr, found->ai_addrlen) < 0)
		return fail_errno(host, "connect");
	return s;
}

/// One answer to @p number, or none for a while.
bool ping(int s, uint64_t number, clock_ping &to, packet &answer)
{
	packet ask{.number = number};
	pollfd ready{.fd = s, .events = POLLIN, .revents = 0};

	to.sent = now_ns();
	if (::send(s, &ask, sizeof(ask), 0) < 0)
		return false;
	while (::poll(&ready, 1, 20) > 0) {
		ssize_t n = ::recv(s, &answer, sizeof(answer), MSG_DONTWAIT);

		to.received = now_ns();
		if (n < 0)
			return false;	// nobody listens there yet
		to.there = answer.there;
		if (n == sizeof(answer) && answer.magic == magic_number &&
		    answer.number == number)
			return true;
	}
	return false;
}

} // namespace

clock_offset offset_of(const std::vector<clock_ping> &pings, std::string boot)
{
	const auto &best = *std::ranges::min_element(pings, {}, [](const auto &p) {
		return p.received - p.sent;
	});
	int64_t way = best.received - best.sent;

	return {.boot_id = std::move(boot), .ns = best.there - best.sent - way / 2,
		.uncertainty_ns = (way + 1) / 2};
}

clock_offset combined(const clock_offset &first, const clock_offset &second)
{
	int64_t apart = second.ns - first.ns;

	return {.boot_id = first.boot_id, .ns = first.ns + apart / 2,
		.uncertainty_ns = std::max(first.uncertainty_ns,
					   second.uncertainty_ns) +
				  (std::abs(apart) + 1) / 2};
}

result<ping_answerer> ping_answerer::open(uint16_t port)
{
	unique_fd s(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	sockaddr_in6 any{};
	int no = 0;

	any.sin6_family = AF_INET6;
	any.sin6_port = htons(port);
	any.sin6_addr = in6addr_any;
	if (!s ||
	    ::setsockopt(s.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no)) < 0 ||
	    ::bind(s.get(), reinterpret_cast<sockaddr *>(&any), sizeof(any)) < 0)
		return fail_errno("--sync-listen", "UDP port " + std::to_string(port));
	return ping_answerer(std::move(s));
}

// An answer is as long as the question: nobody can be made to flood a third one.
void ping_answerer::answer() const
{
	packet p;
	sockaddr_in6 who{};
	socklen_t length = sizeof(who);

	while (::recvfrom(fd(), &p, sizeof(p), MSG_DONTWAIT,
			  reinterpret_cast<sockaddr *>(&who), &length) ==
	       sizeof(p)) {
		std::string id = boot_id();

		if (p.magic != magic_number)
			continue;
		std::memcpy(p.boot.data(), id.data(),
			    std::min(id.size(), p.boot.size() - 1));
		p.there = now_ns();
		::sendto(fd(), &p, sizeof(p), MSG_DONTWAIT,
			 reinterpret_cast<sockaddr *>(&who), length);
		length = sizeof(who);
	}
}

result<clock_offset> measure_offset(const std::string &peer, uint16_t port,
				    int patience)
{
	std::vector<clock_ping> pings;
	packet answer;
	int64_t until = now_ns() + patience * 1'000'000LL;

	SLUICE_TRY(auto s, connected(peer, std::to_string(port)));
	for (uint64_t n = 0; pings.size() < pings_wanted && now_ns() < until; n++) {
		clock_ping one;

		if (ping(s.get(), n, one, answer))
			pings.push_back(one);
		else
			::poll(nullptr, 0, 10);
	}
	if (pings.empty())
		return fail(errc::timeout, peer, "no sluice trace --sync-listen "
			    "answers on UDP port " + std::to_string(port));
	answer.boot.back() = 0;
	return offset_of(pings, answer.boot.data());
}

std::string boot_id()
{
	std::ifstream file("/proc/sys/kernel/random/boot_id");
	std::string id;

	file >> id;
	return id;
}

} // namespace sluice::cli
