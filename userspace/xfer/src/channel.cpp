// SPDX-License-Identifier: MIT
#include "xfer/channel.hpp"

#include <arpa/inet.h>
#include <charconv>
#include <dirent.h>
#include <fcntl.h>
#include <fstream>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>

namespace xfer {

namespace {

std::string_view take_word(std::string_view &rest)
{
	auto end = rest.find(' ');
	auto word = rest.substr(0, end);

	rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
	return word;
}

// No control characters: a peer's text ends up on a terminal.
bool printable(std::string_view text)
{
	return text.find_first_not_of(
		" !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~") == text.npos;
}

std::string cleaned(std::string text)
{
	for (char &c : text)
		if (!printable({&c, 1}))
			c = '?';
	return text.substr(0, 1000);
}

} // namespace

result<Message> Message::parse(std::string_view line)
{
	auto bad = [] { return fail(errc::protocol, "not a message"); };

	if (line.empty() || !printable(line))
		return bad();
	Message message{std::string(take_word(line))};
	while (!line.empty()) {
		auto all = line;
		auto word = take_word(line);
		auto equals = word.find('=');

		if (equals == word.npos || equals == 0)
			return bad();
		auto key = std::string(word.substr(0, equals));
		if (key == "text") {
			message.fields_[key] = all.substr(equals + 1);
			break;
		}
		message.fields_[key] = word.substr(equals + 1);
	}
	return message;
}

Message &Message::set(const std::string &key, std::string value)
{
	fields_[key] = std::move(value);
	return *this;
}

Message &Message::set(const std::string &key, uint64_t value)
{
	return set(key, std::to_string(value));
}

result<std::string> Message::string(const std::string &key) const
{
	auto field = fields_.find(key);

	if (field == fields_.end())
		return fail(errc::protocol, "\"" + verb_ + "\" lacks " + key);
	return field->second;
}

result<uint64_t> Message::number(const std::string &key, uint64_t max) const
{
	uint64_t value = 0;
	auto text = string(key);

	if (!text)
		return std::unexpected(text.error());
	auto end = text->data() + text->size();
	auto parsed = std::from_chars(text->data(), end, value);
	if (parsed.ec != std::errc{} || parsed.ptr != end || value > max)
		return fail(errc::protocol, "\"" + verb_ + "\" has " + key + "=" +
			    *text);
	return value;
}

std::string Message::line() const
{
	std::string text = verb_;

	for (const auto &[key, value] : fields_)
		if (key != "text")
			text += " " + key + "=" + value;
	if (auto field = fields_.find("text"); field != fields_.end())
		text += " text=" + cleaned(field->second);
	return text;
}

Channel::Channel(UniqueFd fd, std::string peer)
	: fd_(std::move(fd)), peer_(std::move(peer))
{
	::fcntl(fd_.get(), F_SETFL, ::fcntl(fd_.get(), F_GETFL) | O_NONBLOCK);
}

result<void> Channel::wait(short events, deadline until) const
{
	pollfd p = {fd_.get(), events, 0};
	int n;

	do
		n = ::poll(&p, 1, poll_timeout(until));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return fail_errno("poll");
	if (n == 0)
		return fail(errc::timeout, peer_ + ": no answer in time");
	return {};
}

result<void> Channel::send(const Message &message, deadline until)
{
	std::string line = message.line() + "\n";
	std::string_view rest = line;

	while (!rest.empty()) {
		// A port is no socket: without SIGPIPE for both, see main().
		ssize_t n = ::write(fd_.get(), rest.data(), rest.size());

		if (n > 0) {
			rest.remove_prefix(static_cast<size_t>(n));
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			return fail_errno(peer_ + ": connection lost", errno,
					  errc::peer_lost);
		if (auto ready = wait(POLLOUT, until); !ready)
			return ready;
	}
	return {};
}

void Channel::send_error(const Error &error) noexcept
try {
	auto until = after(std::chrono::seconds(1));

	if (!send(Message("error").set("kind", name(error.code()))
				  .set("text", error.what()), until))
		return;
	// Closed with something unread, a connection is reset, and the message
	// lost: read until the other end has closed it too.
	::shutdown(fd_.get(), SHUT_WR);
	while (fill(until))
		buffer_.clear();
} catch (...) {
	// Out of memory while giving up: the closed connection says enough.
}

result<void> Channel::fill(deadline until)
{
	char bytes[1024];

	for (;;) {
		ssize_t n = ::read(fd_.get(), bytes, sizeof(bytes));

		if (n > 0) {
			buffer_.append(bytes, static_cast<size_t>(n));
			return {};
		}
		if (n == 0)
			return fail(errc::peer_lost,
				    peer_ + ": closed the connection");
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return fail_errno(peer_ + ": connection lost", errno,
					  errc::peer_lost);
		if (auto ready = wait(POLLIN, until); !ready)
			return ready;
	}
}

std::string Channel::take_line()
{
	auto end = buffer_.find('\n');
	auto line = buffer_.substr(0, end);

	buffer_.erase(0, end + 1);
	return line;
}

result<Message> Channel::receive(deadline until)
{
	while (!pending()) {
		if (buffer_.size() > max_line)
			return fail(errc::protocol, peer_ + ": line too long");
		if (auto filled = fill(until); !filled)
			return std::unexpected(filled.error());
	}
	auto message = Message::parse(take_line());
	if (!message)
		return fail(errc::protocol, peer_ + ": " +
			    message.error().what());
	if (message->verb() == "error")
		return fail(errc_from_name(message->string("kind").value_or("")),
			    peer_ + ": " +
			    message->string("text").value_or("an error"));
	return message;
}

result<Message> Channel::expect(const std::string &verb, deadline until)
{
	auto message = receive(until);

	if (message && message->verb() != verb)
		return fail(errc::protocol, peer_ + ": said \"" +
			    message->verb() + "\", not \"" + verb + "\"");
	return message;
}

namespace {

// Notice within seconds if the other host vanishes without a word.
void keep_alive(int fd)
{
	int on = 1, idle = 3, interval = 1, count = 5;
	unsigned limit = 8000;	// ms for unacknowledged data

	::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
	::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof(limit));
	::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

std::string text_of(const sockaddr *address, socklen_t length)
{
	char host[NI_MAXHOST], port[NI_MAXSERV];

	if (::getnameinfo(address, length, host, sizeof(host), port,
			  sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV))
		return "?";
	// An IPv4 address as an IPv6 socket sees it.
	std::string_view name = host;
	if (name.starts_with("::ffff:"))
		name.remove_prefix(7);
	return std::string(name) + ":" + port;
}

UniqueFd listen_on(uint16_t port)
{
	UniqueFd fd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
	int on = 1;
	sockaddr_in6 any{};

	any.sin6_family = AF_INET6;
	any.sin6_port = htons(port);
	if (!fd)
		return fd;
	::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (::bind(fd.get(), reinterpret_cast<sockaddr *>(&any), sizeof(any)) ||
	    ::listen(fd.get(), 1))
		return UniqueFd();
	return fd;
}

// One try at one address, up to @until.
result<UniqueFd> try_connect(const addrinfo &to, deadline until)
{
	UniqueFd fd(::socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC |
			     SOCK_NONBLOCK, 0));
	int err = 0;
	socklen_t length = sizeof(err);

	if (!fd)
		return fail_errno("socket");
	if (::connect(fd.get(), to.ai_addr, to.ai_addrlen) == 0)
		return fd;
	if (errno != EINPROGRESS)
		return fail_errno("connect");
	pollfd p = {fd.get(), POLLOUT, 0};
	if (::poll(&p, 1, poll_timeout(until)) <= 0)
		return fail(errc::timeout, "no answer in time");
	::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &err, &length);
	if (err)
		return fail_errno("connect", err);
	return fd;
}

} // namespace

result<Channel> accept_one(uint16_t port, deadline until)
{
	UniqueFd listener = listen_on(port);
	sockaddr_storage from{};
	socklen_t length = sizeof(from);

	if (!listener)
		return fail_errno("TCP port " + std::to_string(port));
	pollfd p = {listener.get(), POLLIN, 0};
	if (::poll(&p, 1, poll_timeout(until)) <= 0)
		return fail(errc::timeout, "nobody connected to TCP port " +
			    std::to_string(port));
	UniqueFd fd(::accept4(listener.get(),
			      reinterpret_cast<sockaddr *>(&from), &length,
			      SOCK_CLOEXEC));
	if (!fd)
		return fail_errno("accept");
	keep_alive(fd.get());
	return Channel(std::move(fd), "sender " +
		       text_of(reinterpret_cast<sockaddr *>(&from), length));
}

result<Channel> connect_to(const std::string &host, uint16_t port,
			   deadline until)
{
	std::string name = "receiver " + host + ":" + std::to_string(port);
	addrinfo hints{}, *found = nullptr;

	hints.ai_socktype = SOCK_STREAM;
	if (int err = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(),
				    &hints, &found))
		return fail(errc::peer_lost, name + ": " + ::gai_strerror(err));
	std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>
		owner(found, ::freeaddrinfo);

	for (;;) {
		auto fd = try_connect(*found, until);

		if (fd) {
			keep_alive(fd->get());
			return Channel(std::move(*fd), name);
		}
		if (clock::now() >= until)
			return fail(errc::peer_lost, name + ": " +
				    fd.error().what());
		// It may not have started yet.
		std::this_thread::sleep_for(std::chrono::milliseconds(50));
	}
}

// Without udev nobody makes links by name, so look where the kernel says it.
result<Channel> open_virtio_port(const std::string &name)
{
	const std::string dir = "/sys/class/virtio-ports";
	std::unique_ptr<DIR, int (*)(DIR *)> list(::opendir(dir.c_str()),
						  ::closedir);

	while (const dirent *entry = list ? ::readdir(list.get()) : nullptr) {
		std::string port = entry->d_name, found;

		std::getline(std::ifstream(dir + "/" + port + "/name"), found);
		if (found != name)
			continue;
		UniqueFd fd(::open(("/dev/" + port).c_str(),
				   O_RDWR | O_CLOEXEC));
		if (!fd)
			return fail_errno("/dev/" + port, errno, errc::device);
		return Channel(std::move(fd), "oracle");
	}
	return fail(errc::device, "there is no virtio port " + name);
}

} // namespace xfer
