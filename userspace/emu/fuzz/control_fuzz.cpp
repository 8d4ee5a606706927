// SPDX-License-Identifier: MIT
// Any bytes over the control socket. Each whole line gets one answer, which ends
// with a line "ok" or "error: ...", and the server goes on.
#include "control.hpp"

#include <algorithm>
#include <filesystem>
#include <ranges>
#include <string>

#include <stdlib.h>
#include <sys/socket.h>

using namespace sluice::emu;

namespace {

constexpr long longest_line = 4096; // the server hangs up on longer ones

// Two small GPUs, the same for all inputs: making them takes long.
struct Server {
	Server()
	{
		for (unsigned i = 0; i < 2; i++) {
			EndpointConfig c;

			c.index = i;
			c.vram = 1 << 20;
			c.verbosity = Log::error;
			c.socket = path("gpu") + std::to_string(i);
			endpoints.push_back(std::make_unique<Endpoint>(c, fabric));
		}
		control = std::make_unique<Control>(path("control"), endpoints);
	}
	~Server() { std::filesystem::remove_all(directory); }

	std::string path(const char *name) const { return directory + "/" + name; }

	char made[24] = "/tmp/sluice-fuzz-XXXXXX";
	std::string directory = mkdtemp(made);
	vfio::Fabric fabric;
	Control::Endpoints endpoints;
	std::unique_ptr<Control> control;
};

// All of it fits into the socket, so the server need not read meanwhile.
std::string ask(const std::string &path, std::string_view text)
{
	vfio::unique_fd to = vfio::connect_to(path);
	std::string answers;
	char some[4096];

	(void)send(to.get(), text.data(), text.size(), MSG_NOSIGNAL);
	shutdown(to.get(), SHUT_WR);
	for (ssize_t n; (n = recv(to.get(), some, sizeof(some), 0)) > 0;)
		answers.append(some, static_cast<size_t>(n));
	return answers;
}

bool is_end(std::string_view line)
{
	return line == "ok" || line.starts_with("error: ");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static Server server;
	std::string_view text(reinterpret_cast<const char *>(data), size);
	long asked = std::ranges::count(text, '\n'), answered = 0;
	bool cut = false;

	for (auto line : text | std::views::split('\n'))
		cut = cut || std::ranges::distance(line) >= longest_line;
	std::string answers = ask(server.path("control"), text);
	for (auto line : answers | std::views::split('\n'))
		answered += is_end(std::string_view(line));
	if (cut ? answered > asked : answered != asked)
		__builtin_trap();
	return 0;
}
