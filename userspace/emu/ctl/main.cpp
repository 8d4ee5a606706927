// SPDX-License-Identifier: MIT
// sluice-emu-ctl SOCKET COMMAND...: send one command to sluice-emu.
#include "transport.hpp"

#include <cstdio>
#include <exception>
#include <string>

#include <sys/socket.h>

using namespace sluice::emu::vfio;

static bool send_all(int fd, const std::string &text)
{
	for (size_t done = 0; done < text.size();) {
		ssize_t n = send(fd, text.data() + done, text.size() - done,
				 MSG_NOSIGNAL);
		if (n <= 0)
			return false;
		done += static_cast<size_t>(n);
	}
	return true;
}

// The answer's last line is "ok" or "error: ...".
static int print_answer(int fd)
{
	std::string pending;
	char chunk[4096];
	ssize_t n;

	while ((n = recv(fd, chunk, sizeof(chunk), 0)) > 0) {
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
	std::fputs("sluice-emu-ctl: the emulator is gone\n", stderr);
	return 1;
}

int main(int argc, char **argv)
{
	std::string line;

	if (argc < 3) {
		std::fputs("usage: sluice-emu-ctl SOCKET [gpuN] COMMAND...\n"
			   "'sluice-emu-ctl SOCKET help' lists the commands.\n",
			   stderr);
		return 2;
	}
	for (int i = 2; i < argc; i++)
		line += std::string(i > 2 ? " " : "") + argv[i];
	try {
		UniqueFd fd = connect_to(argv[1]);
		if (!send_all(fd.get(), line + "\n"))
			return 1;
		return print_answer(fd.get());
	} catch (const std::exception &e) {
		std::fprintf(stderr, "sluice-emu-ctl: %s\n", e.what());
		return 1;
	}
}
