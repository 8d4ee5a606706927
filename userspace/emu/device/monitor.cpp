// SPDX-License-Identifier: MIT
#include "monitor.hpp"

#include "transport.hpp"

#include <cerrno>
#include <format>
#include <system_error>

#include <sys/socket.h>

namespace sluice::emu {

namespace {

using Deadline = std::chrono::steady_clock::time_point;

// No such line before the deadline, or before the connection ends.
struct Silence {};

// The next line that holds one of these words. Events may come in between.
std::string answer(int fd, std::string_view good, std::string_view bad,
		   Deadline deadline)
{
	constexpr size_t longest = 65536;
	std::string line;
	char c;

	while (line.size() < longest) {
		ssize_t n = vfio::receive_before(fd, as_mutable_bytes(c), deadline);
		if (n < 0 && errno == ETIMEDOUT)
			throw Silence{};
		if (n <= 0)
			break;
		if (c != '\n')
			line += c;
		else if (line.contains(good) || line.contains(bad))
			return line;
		else
			line.clear();
	}
	return {};
}

bool execute(int fd, std::string_view command, Deadline deadline)
{
	if (send(fd, command.data(), command.size(), MSG_NOSIGNAL) !=
	    static_cast<ssize_t>(command.size()))
		return false;
	return answer(fd, "\"return\"", "\"error\"", deadline).contains("\"return\"");
}

} // namespace

std::string unplug(const std::string &monitor, const std::string &id,
		   std::chrono::milliseconds patience)
try {
	Deadline deadline = std::chrono::steady_clock::now() + patience;
	vfio::unique_fd fd = vfio::connect_to(monitor, patience);

	if (answer(fd.get(), "\"QMP\"", "\"error\"", deadline).empty() ||
	    !execute(fd.get(), "{\"execute\":\"qmp_capabilities\"}\n", deadline))
		return "no QEMU at the monitor";
	if (!execute(fd.get(),
		     std::format("{{\"execute\":\"device_del\","
				 "\"arguments\":{{\"id\":\"{}\"}}}}\n",
				 id),
		     deadline))
		return "QEMU refuses";
	return {};
} catch (const Silence &) {
	return std::format("QEMU does not answer within {} ms", patience.count());
} catch (const std::system_error &e) {
	return e.what();
}

} // namespace sluice::emu
