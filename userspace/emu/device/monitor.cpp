// SPDX-License-Identifier: MIT
#include "monitor.hpp"

#include "transport.hpp"

#include <format>
#include <system_error>

#include <sys/socket.h>

namespace sluice::emu {

namespace {

// The next line that holds one of these words. Events come in between.
std::string answer(int fd, std::string_view good, std::string_view bad)
{
	constexpr size_t longest = 65536;
	std::string line;
	char c;

	while (line.size() < longest && recv(fd, &c, 1, 0) == 1) {
		if (c != '\n')
			line += c;
		else if (line.contains(good) || line.contains(bad))
			return line;
		else
			line.clear();
	}
	return {};
}

bool execute(int fd, std::string_view command)
{
	if (send(fd, command.data(), command.size(), MSG_NOSIGNAL) !=
	    static_cast<ssize_t>(command.size()))
		return false;
	return answer(fd, "\"return\"", "\"error\"").contains("\"return\"");
}

} // namespace

std::string unplug(const std::string &monitor, const std::string &id)
try {
	vfio::UniqueFd fd = vfio::connect_to(monitor);

	if (answer(fd.get(), "\"QMP\"", "\"error\"").empty() ||
	    !execute(fd.get(), "{\"execute\":\"qmp_capabilities\"}\n"))
		return "no QEMU at the monitor";
	if (!execute(fd.get(), std::format("{{\"execute\":\"device_del\","
					   "\"arguments\":{{\"id\":\"{}\"}}}}\n",
					   id)))
		return "QEMU refuses";
	return {};
} catch (const std::system_error &e) {
	return e.what();
}

} // namespace sluice::emu
