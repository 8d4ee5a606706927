// SPDX-License-Identifier: MIT
#include "resolve.hpp"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <poll.h>
#include <string>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>

#include "sluice/unique_fd.hpp"
#include "try.hpp"

namespace sluice::detail {

struct lookup::query {
	std::string host, port;
	unique_fd done;
	int status = 0, number = 0; ///< of getaddrinfo(), and of errno for EAI_SYSTEM
	std::vector<sockaddr_storage> found;
	/// Set before @done, of which io_uring tells: the sanitizer of threads does not
	/// see that.
	std::atomic_bool answered = false;

	void ask(int flags)
	{
		addrinfo hints{}, *list = nullptr;

		hints.ai_flags = flags | AI_NUMERICSERV;
		hints.ai_socktype = SOCK_STREAM;
		status = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &list);
		number = errno;
		for (addrinfo *a = list; !status && a; a = a->ai_next) {
			std::memcpy(&found.emplace_back(), a->ai_addr, a->ai_addrlen);
		}
		if (!status)
			::freeaddrinfo(list);
	}
};

lookup::lookup(context &in, std::string_view host, uint16_t port)
	: query_(std::make_shared<query>(std::string(host), std::to_string(port)))
{
	query_->ask(AI_NUMERICHOST);
	if (!query_->status)
		return;
	query_->done = unique_fd(::eventfd(0, EFD_CLOEXEC));
	if (!query_->done) {
		query_->status = EAI_SYSTEM;
		query_->number = errno;
		return;
	}
	told_ = in.ready(query_->done.get(), POLLIN);
	// The thread may outlive this object.
	std::thread([q = query_] {
		uint64_t one = 1;

		q->ask(0);
		q->answered.store(true, std::memory_order_release);
		[[maybe_unused]] auto n = ::write(q->done.get(), &one, sizeof(one));
	}).detach();
}

result<std::vector<sockaddr_storage>> lookup::take()
{
	if (!told_.done())
		return fail(errc::timeout, query_->host,
			    "its address is not found in time");
	if (query_->done) {
		SLUICE_CHECK(told_.wait());
		(void)query_->answered.load(std::memory_order_acquire);
	}
	if (query_->status == EAI_SYSTEM)
		return fail_errno(query_->host, "its address cannot be looked up",
				  query_->number);
	if (query_->status)
		return fail(errc::peer_lost, query_->host,
			    ::gai_strerror(query_->status));
	return std::move(query_->found);
}

result<std::vector<sockaddr_storage>> resolve(context &in, std::string_view host,
					      uint16_t port, deadline until)
{
	lookup one(in, host, port);

	if (!one.told().done())
		(void)one.told().wait_until(until);
	return one.take();
}

} // namespace sluice::detail
