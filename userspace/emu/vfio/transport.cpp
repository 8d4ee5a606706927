// SPDX-License-Identifier: MIT
#include "transport.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <thread>

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

namespace sluice::emu::vfio {

// Descriptors arrive with the first byte of their message. Reading the header
// and nothing beyond it therefore gets all of this message's and none of the
// next one's.
bool Transport::receive_header(Message &m)
{
	alignas(cmsghdr) char control[CMSG_SPACE(max_fds * sizeof(int))];
	iovec iov{&m.header, sizeof(m.header)};
	msghdr msg{};
	ssize_t n;

	msg.msg_iov = &iov;
	msg.msg_iovlen = 1;
	msg.msg_control = control;
	msg.msg_controllen = sizeof(control);
	do
		n = recvmsg(socket_.get(), &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return false;
	for (cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;
			std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			m.fds.emplace_back(fd);
		}
	}
	if (msg.msg_flags & MSG_CTRUNC)
		return false;
	bytes rest = as_mutable_bytes(m.header);
	return receive_exactly(rest.subspan(static_cast<size_t>(n)));
}

bool Transport::receive_exactly(bytes out)
{
	while (!out.empty()) {
		ssize_t n = recv(socket_.get(), out.data(), out.size(), 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		out = out.subspan(static_cast<size_t>(n));
	}
	return true;
}

std::optional<Message> Transport::receive()
{
	Message m;

	if (!receive_header(m))
		return std::nullopt;
	if (!frame_size_ok(m.header.size))
		return std::nullopt;
	m.payload.resize(m.header.size - sizeof(Header));
	if (!receive_exactly(m.payload))
		return std::nullopt;
	return m;
}

bool send_all(int socket, msghdr msg)
{
	while (msg.msg_iovlen) {
		ssize_t n = sendmsg(socket, &msg, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		msg.msg_control = nullptr;
		msg.msg_controllen = 0;
		size_t sent = static_cast<size_t>(n);
		while (msg.msg_iovlen && sent >= msg.msg_iov->iov_len) {
			sent -= msg.msg_iov->iov_len;
			msg.msg_iov++;
			msg.msg_iovlen--;
		}
		if (msg.msg_iovlen) {
			auto *base = static_cast<char *>(msg.msg_iov->iov_base);
			msg.msg_iov->iov_base = base + sent;
			msg.msg_iov->iov_len -= sent;
		}
	}
	return true;
}

bool Transport::send(Header header, std::initializer_list<const_bytes> parts, int fd)
{
	std::array<iovec, 4> iov{};
	alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
	msghdr msg{};
	size_t count = 1;

	header.size = sizeof(header);
	for (const_bytes p : parts) {
		header.size += static_cast<u32>(p.size());
		if (!p.empty())
			iov[count++] = {const_cast<std::byte *>(p.data()), p.size()};
	}
	iov[0] = {&header, sizeof(header)};
	msg.msg_iov = iov.data();
	msg.msg_iovlen = count;
	if (fd >= 0) {
		msg.msg_control = control;
		msg.msg_controllen = sizeof(control);
		cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fd));
		std::memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	std::lock_guard guard(send_lock_);
	return send_all(socket_.get(), msg);
}

void Transport::shutdown()
{
	::shutdown(socket_.get(), SHUT_RDWR);
}

namespace {

sockaddr_un address(const std::string &path)
{
	sockaddr_un a{};

	a.sun_family = AF_UNIX;
	if (path.size() >= sizeof(a.sun_path))
		throw std::system_error(ENAMETOOLONG, std::generic_category(), path);
	std::memcpy(a.sun_path, path.c_str(), path.size() + 1);
	return a;
}

unique_fd unix_socket()
{
	unique_fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));

	if (!fd)
		throw std::system_error(errno, std::generic_category(), "socket");
	return fd;
}

} // namespace

unique_fd listen_at(const std::string &path)
{
	sockaddr_un a = address(path);
	unique_fd fd = unix_socket();

	unlink(path.c_str());
	if (bind(fd.get(), reinterpret_cast<sockaddr *>(&a), sizeof(a)) ||
	    listen(fd.get(), 4))
		throw std::system_error(errno, std::generic_category(), path);
	return fd;
}

unique_fd connect_to(const std::string &path, std::chrono::milliseconds patience)
{
	sockaddr_un a = address(path);
	unique_fd fd = unix_socket();
	timeval t{patience.count() / 1000, patience.count() % 1000 * 1000};

	// of connect(), too, which waits while too many others do
	setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
	if (connect(fd.get(), reinterpret_cast<sockaddr *>(&a), sizeof(a)))
		throw std::system_error(errno, std::generic_category(), path);
	return fd;
}

unique_fd accept_at(const unique_fd &listener)
{
	constexpr auto pause = std::chrono::milliseconds(20);

	for (;;) {
		unique_fd client(
			accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
		if (client)
			return client;
		switch (errno) {
		case EINTR:
		case ECONNABORTED: break;
		case EMFILE:
		case ENFILE:
		case ENOBUFS:
		case ENOMEM: std::this_thread::sleep_for(pause); break;
		default: return client;
		}
	}
}

ssize_t receive_before(int socket, bytes out,
		       std::chrono::steady_clock::time_point deadline)
{
	using namespace std::chrono;

	for (;;) {
		auto left = ceil<milliseconds>(deadline - steady_clock::now());
		pollfd p{socket, POLLIN, 0};
		int n = poll(&p, 1, static_cast<int>(std::max(left.count(), 0l)));
		if (n > 0)
			n = static_cast<int>(
				recv(socket, out.data(), out.size(), MSG_DONTWAIT));
		else if (n == 0)
			return errno = ETIMEDOUT, -1;
		if (n >= 0 || (errno != EINTR && errno != EAGAIN))
			return n;
	}
}

} // namespace sluice::emu::vfio
