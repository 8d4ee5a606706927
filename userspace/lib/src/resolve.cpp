// SPDX-License-Identifier: MIT
#include "resolve.hpp"

#include <cstring>
#include <memory>
#include <netdb.h>
#include <poll.h>
#include <string>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>

#include "sluice/unique_fd.hpp"

namespace sluice::detail {

namespace {

struct query {
	std::string host, port;
	unique_fd done;
	int status = 0;
	std::vector<sockaddr_storage> found;

	void ask(int flags)
	{
		addrinfo hints{}, *list = nullptr;

		hints.ai_flags = flags | AI_NUMERICSERV;
		hints.ai_socktype = SOCK_STREAM;
		status = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &list);
		for (addrinfo *a = list; !status && a; a = a->ai_next) {
			std::memcpy(&found.emplace_back(), a->ai_addr, a->ai_addrlen);
		}
		if (!status)
			::freeaddrinfo(list);
	}
};

} // namespace

std::vector<sockaddr_storage> numeric(std::string_view host, uint16_t port)
{
	query q{std::string(host), std::to_string(port), {}, 0, {}};

	q.ask(AI_NUMERICHOST);
	return std::move(q.found);
}

result<std::vector<sockaddr_storage>> resolve(context &in, std::string_view host,
					      uint16_t port, deadline until)
{
	if (auto found = numeric(host, port); !found.empty())
		return found;
	// The thread may last longer than we do.
	auto q = std::make_shared<query>(std::string(host), std::to_string(port));

	q->done = unique_fd(::eventfd(0, EFD_CLOEXEC));
	if (!q->done)
		return fail_errno(host, "eventfd");
	std::thread([q] {
		uint64_t one = 1;

		q->ask(0);
		[[maybe_unused]] auto n = ::write(q->done.get(), &one, sizeof(one));
	}).detach();
	auto told = in.ready(q->done.get(), POLLIN);
	if (auto ready = told.wait_until(until); !ready) {
		if (ready.error().code() == errc::timeout)
			return fail(errc::timeout, host,
				    "its address is not found in time");
		return std::unexpected(ready.error());
	}
	if (q->status)
		return fail(errc::peer_lost, host, ::gai_strerror(q->status));
	return std::move(q->found);
}

} // namespace sluice::detail
