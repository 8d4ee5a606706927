// SPDX-License-Identifier: MIT
// sluice-emu-ctl [--timeout SECONDS] SOCKET COMMAND...: send one command to
// sluice-emu.
#include "transport.hpp"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>

#include <sys/socket.h>

using namespace sluice::emu::vfio;

static bool send_text(int fd, std::string text)
{
	iovec data{text.data(), text.size()};
	msghdr message{};

	message.msg_iov = &data;
	message.msg_iovlen = 1;
	return send_all(fd, message);
}

static int no_answer(ssize_t received, long seconds)
{
	if (received < 0 && errno == ETIMEDOUT)
		std::fprintf(stderr,
			     "sluice-emu-ctl: no answer within %ld s; "
			     "--timeout sets how long to wait\n",
			     seconds);
	else
		std::fputs("sluice-emu-ctl: the emulator is gone\n", stderr);
	return 1;
}

// The answer's last line is "ok" or "error: ...".
static int print_answer(int fd, long seconds)
{
	auto deadline =
		std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
	std::string pending;
	char chunk[4096];
	ssize_t n;

	while ((n = receive_before(fd, std::as_writable_bytes(std::span(chunk)),
				   deadline)) > 0) {
		pending.append(chunk, static_cast<size_t>(n));
		for (size_t end; (end = pending.find('\n')) != pending.npos;) {
			std::string line = pending.substr(0, end);
			pending.erase(0, end + 1);
			if (line == "ok")
				return 0;
			if (line.starts_with("error: ")) {
				std::fprintf(stderr, "sluice-emu-ctl: %s\n",
					     line.c_str() + 7);
				return 1;
			}
			std::puts(line.c_str());
		}
	}
	return no_answer(n, seconds);
}

static bool whole_seconds(std::string_view text, long &to)
{
	constexpr long most = 86400;
	auto [end, bad] = std::from_chars(text.begin(), text.end(), to);

	return bad == std::errc() && end == text.end() && to > 0 && to <= most;
}

int main(int argc, char **argv)
{
	std::string line;
	long seconds = 60;
	bool good = true;

	if (argc > 2 && !std::strcmp(argv[1], "--timeout")) {
		good = whole_seconds(argv[2], seconds);
		argc -= 2;
		argv += 2;
	}
	if (!good || argc < 3) {
		std::fputs("usage: sluice-emu-ctl [--timeout SECONDS] SOCKET "
			   "[gpuN] COMMAND...\n"
			   "SECONDS: how long to wait, 1 to 86400 (default 60).\n"
			   "'sluice-emu-ctl SOCKET help' lists the commands.\n",
			   stderr);
		return 2;
	}
	for (int i = 2; i < argc; i++)
		line += std::string(i > 2 ? " " : "") + argv[i];
	try {
		unique_fd fd = connect_to(argv[1], std::chrono::seconds(seconds));
		if (!send_text(fd.get(), line + "\n"))
			return 1;
		return print_answer(fd.get(), seconds);
	} catch (const std::exception &e) {
		std::fprintf(stderr, "sluice-emu-ctl: %s\n", e.what());
		return 1;
	}
}
