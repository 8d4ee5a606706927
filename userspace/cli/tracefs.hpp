// SPDX-License-Identifier: MIT
// A private trace of the kernel: an instance in tracefs, which is removed with this
// object. Other users of tracing are not disturbed.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/error.hpp"
#include "sluice/unique_fd.hpp"

namespace sluice::cli {

class kernel_trace {
public:
	/// Create it, with those useful events that this kernel has. It does not run yet.
	/// Instances of processes that have died are removed. errc::system: only root
	/// may.
	/// @param root where sys is
	/// @param kilobytes for each CPU
	static result<kernel_trace> make(std::string_view root, unsigned kilobytes);
	kernel_trace(kernel_trace &&other) noexcept
		: path_(std::exchange(other.path_, {})), hold_(std::move(other.hold_)),
		  events_(std::move(other.events_))
	{
	}
	kernel_trace &operator=(kernel_trace &&) = delete;
	~kernel_trace() { (void)end(); }

	result<void> run(bool on);
	/// Remove it. errc::busy: a process still has its marker, and it stays, with
	/// little memory.
	result<void> end();
	/// A descriptor to write lines into it.
	result<unique_fd> marker() const;
	/// What was enabled: "gpu_scheduler/drm_sched_job_run", "rdma_cma".
	const std::vector<std::string> &events() const { return events_; }
	result<void> each_line(const std::function<void(std::string_view)> &take) const;
	/// Events for which there was no room.
	uint64_t lost() const;

private:
	kernel_trace() = default;
	void enable_events();

	std::string path_; ///< of the instance
	unique_fd hold_;   ///< of its marker, locked: no other process removes it
	std::vector<std::string> events_;
};

} // namespace sluice::cli
