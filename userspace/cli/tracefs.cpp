// SPDX-License-Identifier: MIT
#include "tracefs.hpp"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <format>
#include <fstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <tuple>
#include <unistd.h>

#include "trace_text.hpp"
#include "try.hpp"

namespace sluice::cli {

namespace {

namespace fs = std::filesystem;

// Events that the kernel lacks are left out. A name without an event is a whole system.
constexpr const char *wanted[] = {
	"amdgpu/amdgpu_sdma_batch_submit", // by the series
	"amdgpu/amdgpu_sdma_batch_job",
	"amdgpu/amdgpu_sdma_batch_run",
	"amdgpu/amdgpu_sdma_batch_done",
	"gpu_scheduler/drm_sched_job_queue",
	"gpu_scheduler/drm_sched_job_run",
	"gpu_scheduler/drm_sched_job_done",
	"hmm", // by the series
	"io_uring/io_uring_submit_req",
	"io_uring/io_uring_complete",
	"rdma_cma",
};

result<void> put(const std::string &path, std::string_view text)
{
	unique_fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));

	if (!fd || ::write(fd.get(), text.data(), text.size()) !=
			   static_cast<ssize_t>(text.size()))
		return fail_errno(path, "write");
	return {};
}

constexpr std::string_view ours = "sluice_"; // a process ID and a number follow

/// What lines look like, and which are kept. A new instance has the options that others
/// have set for the whole machine.
constexpr const char *options[] = {
	"context-info",
	"markers",
	"nouserstacktrace",
	"norecord-tgid",
	"noraw",
	"nohex",
	"nobin",
	"nofields",
	"nostacktrace",
	"noverbose",
	"nolatency-format",
	"overwrite",
};

/// While the instance at @p path is used, its user holds a lock of this file. In
/// contrast to the process ID, the lock tells that in all namespaces.
unique_fd open_marker(const std::string &path)
{
	return unique_fd(
		::open((path + "/trace_marker").c_str(), O_WRONLY | O_CLOEXEC));
}

void empty_instance(const std::string &path)
{
	(void)put(path + "/tracing_on", "0");
	(void)put(path + "/events/enable", "0");
	(void)put(path + "/buffer_size_kb", "1");
}

/// A killed process could not remove its instance.
void remove_left(const std::string &instances)
{
	std::error_code err;

	for (const auto &entry : fs::directory_iterator(instances, err)) {
		if (!entry.path().filename().string().starts_with(ours))
			continue;
		const std::string path = entry.path().string();
		auto marker = open_marker(path);

		if (!marker || ::flock(marker.get(), LOCK_EX | LOCK_NB) < 0)
			continue;
		empty_instance(path);
		marker = {};
		// If another process still has its marker, it stays.
		::rmdir(path.c_str());
	}
}

/// A new instance, and its marker with the lock. The name may be taken by a process that
/// had this ID before, or in another namespace.
result<std::pair<std::string, unique_fd>> new_instance(const std::string &instances)
{
	std::string path;

	for (int i = 0; i < 100; i++) {
		path = std::format("{}/{}{}-{}", instances, ours, ::getpid(), i);
		if (::mkdir(path.c_str(), 0700) < 0) {
			if (errno == EEXIST)
				continue;
			return fail_errno(path, "mkdir");
		}
		auto marker = open_marker(path);
		if (marker && ::flock(marker.get(), LOCK_EX) == 0)
			return std::pair(path, std::move(marker));
		// Until it is open, another process may take it for left.
		if (int number = errno; number != ENOENT) {
			::rmdir(path.c_str());
			return fail_errno(path, "its marker cannot be used", number);
		}
	}
	return fail(errc::busy, path, "it is there already");
}

/// tracefs is mounted at one of two places.
result<std::string> tracing_directory(std::string_view root)
{
	std::string found;
	int err = ENOENT;

	for (const char *place : {"sys/kernel/tracing", "sys/kernel/debug/tracing"}) {
		std::string path = (fs::path(root) / place).string();

		if (::access((path + "/instances").c_str(), W_OK) == 0)
			return path;
		if (found.empty() || err == ENOENT)
			err = errno;
		if (found.empty())
			found = path;
	}
	if (err == EACCES || err == EPERM || ::geteuid() != 0)
		return fail_errno(found, "only root may trace: run it with sudo",
				  err == ENOENT ? EACCES : err);
	// ip netns exec mounts another /sys, without tracefs.
	return fail_errno(found,
			  "there is no tracefs; in a network namespace, trace "
			  "from outside of it",
			  err, errc::unsupported);
}

} // namespace

result<kernel_trace> kernel_trace::make(std::string_view root, unsigned kilobytes)
{
	kernel_trace t;

	SLUICE_TRY(auto top, tracing_directory(root));
	remove_left(top + "/instances");
	SLUICE_TRY(auto made, new_instance(top + "/instances"));
	std::tie(t.path_, t.hold_) = std::move(made);
	const std::string &path = t.path_;
	SLUICE_CHECK(t.run(false));
	for (const char *option : options)
		(void)put(path + "/trace_options", option); // kernels differ
	SLUICE_CHECK(put(path + "/trace_clock", "mono"));
	SLUICE_CHECK(put(path + "/buffer_size_kb", std::to_string(kilobytes)));
	t.enable_events();
	return t;
}

// The instance stays, without its buffers, while a process still has its marker.
result<void> kernel_trace::end()
{
	const std::string path = std::exchange(path_, {});

	if (path.empty())
		return {};
	empty_instance(path);
	hold_ = {};
	if (::rmdir(path.c_str()) < 0 && errno != ENOENT)
		return fail_errno(
			path, "it stays until the next trace, almost without memory",
			errno, errc::busy);
	return {};
}

void kernel_trace::enable_events()
{
	for (const char *name : wanted)
		if (put(std::format("{}/events/{}/enable", path_, name), "1"))
			events_.emplace_back(name);
}

result<void> kernel_trace::run(bool on)
{
	return put(path_ + "/tracing_on", on ? "1" : "0");
}

result<unique_fd> kernel_trace::marker() const
{
	auto fd = open_marker(path_);

	if (!fd)
		return fail_errno(path_ + "/trace_marker", "open");
	return fd;
}

result<void>
kernel_trace::each_line(const std::function<void(std::string_view)> &take) const
{
	std::ifstream file(path_ + "/trace");

	if (!file)
		return fail_errno(path_ + "/trace", "open");
	for (std::string line; std::getline(file, line);)
		take(line);
	return {};
}

uint64_t kernel_trace::lost() const
{
	uint64_t all = 0;
	std::error_code err;

	for (const auto &cpu : fs::directory_iterator(path_ + "/per_cpu", err)) {
		std::ifstream stats(cpu.path() / "stats");

		for (std::string line; std::getline(stats, line);)
			all += lost_events(line);
	}
	return all;
}

} // namespace sluice::cli
