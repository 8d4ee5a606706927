// SPDX-License-Identifier: MIT
// Another program: started, watched by its pidfd, and ended with this object at the
// latest. It can also replace this process.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sluice/context.hpp"
#include "sluice/unique_fd.hpp"

namespace sluice::cli {

class child {
public:
	struct options {
		bool capture = false; ///< keep what it prints
		bool aside = false;   ///< what it prints goes to standard error
		int keep = -1;	      ///< a descriptor that it inherits
	};

	/// @param words the program, looked up in $PATH, and its arguments
	/// errc::input if there is no such program.
	static result<child> start(const std::vector<std::string> &words, options with);
	static result<child> start(const std::vector<std::string> &words)
	{
		return start(words, options{});
	}

	child(child &&other) noexcept
		: pid_(std::exchange(other.pid_, -1)), pidfd_(std::move(other.pidfd_)),
		  output_(std::move(other.output_))
	{
	}
	child &operator=(child &&) = delete;
	/// Kills it.
	~child();

	int pid() const { return pid_; }
	/// Send it a signal.
	void signal(int number) const;
	/// Ask it to end, and kill it if it has not ended by then.
	result<int> end(deadline until);
	/// Readable when it has ended.
	int pidfd() const { return pidfd_.get(); }

	/// Wait in @p in, so that other pending work goes on. Returns the exit status,
	/// or 128 plus the signal. errc::timeout.
	result<int> wait(context &in, deadline until);
	/// The same without a context, after the child has ended.
	result<int> reap();
	/// What it printed on standard output and error, after it has ended.
	std::string output() const;

private:
	child() = default;

	int pid_ = -1;
	unique_fd pidfd_, output_; ///< output is an unnamed file
};

/// Replace this process with another program, in this environment. Returns only on
/// failure: errc::input if there is no such program.
error become(const std::vector<std::string> &words);

} // namespace sluice::cli
