// SPDX-License-Identifier: MIT
// The control socket: one command a line, an answer that ends with a line
// "ok" or "error: ...". Any number of clients, one thread each.
#pragma once

#include "endpoint.hpp"

#include <list>
#include <memory>

namespace sluice::emu {

class Control {
public:
	using Endpoints = std::vector<std::unique_ptr<Endpoint>>;

	Control(const std::string &path, Endpoints &endpoints);
	~Control();

	// One command; everything but the socket, for the tests.
	static std::string execute(std::string_view line, Endpoints &endpoints);

private:
	struct Client {
		vfio::unique_fd socket; // under the lock; none: it is gone
		std::jthread thread;
	};

	void serve();
	void admit(vfio::unique_fd socket);
	void bury();
	void serve_client(int fd);

	Endpoints &endpoints_;
	vfio::unique_fd listener_;
	std::mutex lock_;
	std::list<Client> clients_;
	std::jthread acceptor_;
};

} // namespace sluice::emu
