// SPDX-License-Identifier: MIT
// The inside of a device: what it alone owns in the GPU, which the process shares.
#pragma once

#include <memory>

#include "engine.hpp"
#include "gpu_node.hpp"
#include "migrations.hpp"
#include "submission.hpp"

namespace sluice::detail {

class command_queue;

class gpu : public std::enable_shared_from_this<gpu> {
public:
	/// How batches go to the kernel.
	enum class way : uint8_t {
		ring,	 ///< a request of the ring
		call,	 ///< the ioctl, and its fence in the ring
		command, ///< AMDGPU_CS, and its fence in the ring
	};

	gpu(engine &in, gpu_node &node) noexcept;
	~gpu();
	static result<std::shared_ptr<gpu>> open(engine &in, gpu_node &node);

	engine &ring() const noexcept { return ring_; }
	gpu_node &node() const noexcept { return node_; }
	const std::string &name() const noexcept { return node_.name(); }
	const batch_limits &limits() const noexcept { return limits_; }
	way how() const noexcept { return how_; }
	/// For tests: behave as on a kernel that has no better way. Call it before
	/// anything is attached. errc::unsupported if the kernel lacks even that way.
	result<void> use(way how);
	result<device_counters> counters() noexcept;

	/// Run what @p run has in its arguments. Allocates nothing.
	operation start(submission &run, std::shared_ptr<const void> owner) noexcept;
	/// The same by AMDGPU_CS.
	operation start_command(batch_data &what,
				std::shared_ptr<const void> owner) noexcept;
	void release_commands(int slot) noexcept;
	/// Retry a command that was interrupted before it did anything.
	void put_command_again(op_state &op, submission &run) noexcept;
	/// A call that runs nothing: PREPARE, FORGET. 0 or -errno.
	int configure(drm_amdgpu_sdma_batch &args) noexcept;

private:
	result<uint32_t> allocate_context(int priority);
	operation no_chain() noexcept;
	result<void> make_fences(submission &run) noexcept;
	/// An operation that completes by finish_run() or await_fence().
	op_state *begin(submission &run, std::shared_ptr<const void> owner) noexcept;
	void put_command(op_state &op, submission &run, io_uring_sqe *sqe) noexcept;

	engine &ring_;
	gpu_node &node_;
	uint32_t context_ = 0, background_ = 0; ///< by priority
	way how_ = way::ring;
	batch_limits limits_;
	std::unique_ptr<migration_watch> watch_;
	std::unique_ptr<command_queue> commands_;
};

/// End a run.
void finish_run(op_state &op, submission &run, result<size_t> outcome) noexcept;
/// The same, with 0 or an errno.
void finish_run(op_state &op, submission &run, int number) noexcept;
/// End it when its fence has signaled.
void await_fence(op_state &op, submission &run) noexcept;

} // namespace sluice::detail
