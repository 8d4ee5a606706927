// SPDX-License-Identifier: MIT
// What the tests of RDMA have in common: a card and a listener in the node a, and peers,
// which are processes in the node b.
#pragma once

#include "rdma_tools.hpp"

#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <optional>
#include <sched.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "sluice/unique_fd.hpp"

namespace rdma_tests {

using namespace sluice;

/// A process in the node b.
class process {
public:
	explicit process(words args)
	{
		std::vector<char *> argv = {const_cast<char *>("rdma-tests"),
					    const_cast<char *>("--peer")};
		for (auto &a : args)
			argv.push_back(a.data());
		argv.push_back(nullptr);
		pid_ = ::fork();
		if (pid_ == 0) {
			int node = ::open(node_b, O_RDONLY | O_CLOEXEC);

			if (::setns(node, CLONE_NEWNET) == 0)
				::execv("/proc/self/exe", argv.data());
			::_exit(exit_wrong);
		}
	}
	~process()
	{
		if (pid_ > 0) {
			::kill(pid_, SIGKILL);
			::waitpid(pid_, nullptr, 0);
		}
	}
	process(const process &) = delete;

	void signal(int number)
	{
		if (pid_ > 0)
			::kill(pid_, number);
	}

	/// Wait until it has stopped itself. Our context runs in the meantime, if it may.
	bool stops(context *ring = nullptr)
	{
		int status = 0;

		for (auto until = after(20s); clock::now() < until;) {
			if (::waitpid(pid_, &status, WUNTRACED | WNOHANG) == pid_)
				return WIFSTOPPED(status);
			if (ring)
				(void)ring->run_once(after(10ms));
			else
				std::this_thread::sleep_for(10ms);
		}
		return false;
	}
	/// Wait until it has stopped itself, and let it go on.
	bool resume(context *ring = nullptr)
	{
		if (!stops(ring))
			return false;
		signal(SIGCONT);
		return true;
	}

	/// Its exit status; -1: it did not end within 2 minutes, or a signal ended it. Our
	/// context runs in the meantime.
	int wait(context &ring)
	{
		int status = 0;

		for (auto until = after(120s); clock::now() < until;
		     (void)ring.run_once(after(10ms)))
			if (::waitpid(pid_, &status, WNOHANG) == pid_) {
				pid_ = -1;
				return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
			}
		return -1;
	}

private:
	pid_t pid_;
};

/// A pipe that holds up who writes to it: it has room for one page, and is full.
struct full_pipe {
	void open()
	{
		int ends[2];

		ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
		out = unique_fd(ends[0]);
		in = unique_fd(ends[1]);
		ASSERT_EQ(::fcntl(in.get(), F_SETPIPE_SZ, page_size),
			  static_cast<int>(page_size));
		ASSERT_EQ(::write(in.get(), page.data(), page_size),
			  static_cast<ssize_t>(page_size));
	}
	/// It takes one page then.
	void drain()
	{
		ASSERT_EQ(::read(out.get(), page.data(), page_size),
			  static_cast<ssize_t>(page_size));
	}

	std::vector<std::byte> page = std::vector<std::byte>(page_size);
	unique_fd out, in;
};

struct RdmaTest : ::testing::Test {
	void SetUp() override
	{
		auto all = list_nics();

		if (!std::filesystem::exists(node_b) || all.size() < 2)
			GTEST_SKIP() << "no two nodes with RDMA devices";
		ring = std::make_unique<context>(*context::open());
		auto opened = nic::open(*ring, card_a);
		ASSERT_TRUE(opened) << opened.error().message();
		card = std::make_unique<nic>(std::move(*opened));
	}

	void listen(endpoint_options options = {})
	{
		if (options.token.empty())
			options.token = token;
		auto opened = listener::open(*ring, *card, address_a, 0,
					     with_silence(std::move(options)));
		ASSERT_TRUE(opened) << opened.error().message();
		door = std::make_unique<listener>(std::move(*opened));
	}

	/// For options that leave it at its default: short, as many tests wait for it.
	clock::duration silence = 3s;
	endpoint_options with_silence(endpoint_options options) const
	{
		if (options.silence == endpoint_options().silence)
			options.silence = silence;
		return options;
	}

	std::string port() const { return std::to_string(door->port()); }

	endpoint accept()
	{
		auto with = door->accept(after(20s));

		if (!with)
			ADD_FAILURE() << with.error().message();
		return std::move(with.value()); // throws: the test ends
	}

	/// With a peer that runs "chat".
	void chat(endpoint with, unsigned count)
	{
		std::byte last;

		EXPECT_EQ(flood(with, count), "");
		EXPECT_EQ(with.receive({&last, 1}).wait(), 1u);
	}

	/// The result of a task, or no value if it does not end within @p limit.
	template <class T>
	std::optional<T> within(clock::duration limit, task<T> &what)
	{
		for (auto until = after(limit); !what.done() && clock::now() < until;)
			(void)ring->run_once(after(10ms));
		if (!what.done())
			return {};
		return what.run(*ring);
	}

	void run_for(clock::duration how_long)
	{
		for (auto until = after(how_long); clock::now() < until;)
			(void)ring->run_once(until);
	}

	/// A new peer can still connect.
	void works()
	{
		process good({"chat", port(), "8", "20"});

		chat(accept(), 20);
		EXPECT_EQ(good.wait(*ring), 0);
	}

	/// The error with which an endpoint ends.
	error end_of(endpoint &with)
	{
		std::byte memory[max_message];

		for (auto until = after(20s);;) {
			auto got = with.receive(memory).wait_until(until);
			if (!got)
				return got.error();
		}
	}

	std::unique_ptr<context> ring;
	std::unique_ptr<nic> card;
	std::unique_ptr<listener> door;
};

} // namespace rdma_tests
