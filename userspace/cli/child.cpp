// SPDX-License-Identifier: MIT
#include "child.hpp"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace sluice::cli {

namespace {

std::vector<char *> pointers(const std::vector<std::string> &words)
{
	std::vector<char *> all;

	for (const std::string &word : words)
		all.push_back(const_cast<char *>(word.c_str()));
	all.push_back(nullptr);
	return all;
}

error not_run(const std::string &program, int err)
{
	return error(err == ENOENT ? errc::input : errc::system, program,
		     "cannot be run", err);
}

/// The child blocks no signals, whatever this process blocks.
int unblock_signals(posix_spawnattr_t &attributes)
{
	sigset_t none;

	::sigemptyset(&none);
	int err = posix_spawnattr_setsigmask(&attributes, &none);

	return err ? err
		   : posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
}

/// Redirect standard output and standard error.
int redirect(posix_spawn_file_actions_t &actions, int to)
{
	int err = posix_spawn_file_actions_adddup2(&actions, to, STDOUT_FILENO);

	return err ? err
		   : posix_spawn_file_actions_adddup2(&actions, to, STDERR_FILENO);
}

} // namespace

result<child> child::start(const std::vector<std::string> &words, options with)
{
	child c;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;

	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	int err = unblock_signals(attributes);
	if (!err && with.aside)
		err = posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO,
						       STDOUT_FILENO);
	if (!err && with.capture) {
		c.output_ = unique_fd(::memfd_create("output", MFD_CLOEXEC));
		err = c.output_ ? redirect(actions, c.output_.get()) : errno;
	}
	// A dup2() onto itself keeps the descriptor open in the child.
	if (!err && with.keep >= 0)
		err = posix_spawn_file_actions_adddup2(&actions, with.keep, with.keep);
	if (!err)
		err = ::posix_spawnp(&c.pid_, words[0].c_str(), &actions, &attributes,
				     pointers(words).data(), environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	if (err) {
		c.pid_ = -1;
		return std::unexpected(not_run(words[0], err));
	}
	c.pidfd_ = unique_fd(static_cast<int>(::syscall(SYS_pidfd_open, c.pid_, 0)));
	if (!c.pidfd_)
		return fail_errno(words[0], "pidfd_open");
	return c;
}

error become(const std::vector<std::string> &words)
{
	::execvp(words[0].c_str(), pointers(words).data());
	return not_run(words[0], errno);
}

child::~child()
{
	if (pid_ < 0)
		return;
	::kill(pid_, SIGKILL);
	::waitpid(pid_, nullptr, 0);
}

void child::signal(int number) const
{
	if (pid_ >= 0)
		::kill(pid_, number);
}

result<int> child::end(deadline until)
{
	pollfd ended{pidfd(), POLLIN, 0};

	signal(SIGTERM);
	while (!ended.revents && clock::now() < until)
		::poll(&ended, 1, 10);
	if (!ended.revents)
		signal(SIGKILL);
	return reap();
}

result<int> child::wait(context &in, deadline until)
{
	auto ended = in.ready(pidfd(), POLLIN).wait_until(until);

	if (!ended)
		return std::unexpected(ended.error());
	return reap();
}

result<int> child::reap()
{
	int status = 0;

	while (::waitpid(pid_, &status, 0) < 0)
		if (errno != EINTR)
			return fail_errno("child", "waitpid");
	pid_ = -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string child::output() const
{
	std::string all;
	char part[4096];
	off_t at = 0;

	for (ssize_t n; (n = ::pread(output_.get(), part, sizeof(part), at)) > 0;
	     at += n)
		all.append(part, static_cast<size_t>(n));
	return all;
}

} // namespace sluice::cli
