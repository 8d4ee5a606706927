// SPDX-License-Identifier: MIT
#include "gpu.hpp"

#include <cstring>
#include <format>
#include <linux/sync_file.h>
#include <poll.h>

#include "call.hpp"
#include "command_queue.hpp"
#include "try.hpp"

namespace sluice::detail {

namespace {

submission &run_of(op_state &op) noexcept
{
	return *static_cast<submission *>(op.owner);
}

batch_limits limits_of(const drm_amdgpu_info_sdma_batch &caps)
{
	batch_limits limits;

	limits.operations = caps.max_descs;
	limits.broadcast = caps.max_broadcast;
	limits.fences = caps.max_fences;
	limits.engines = caps.engine_mask;
	limits.wait_engines = caps.wait_engine_mask;
	limits.bytes = caps.max_bytes;
	limits.queued_bytes = caps.max_queued_bytes;
	limits.wait = std::chrono::nanoseconds(caps.max_wait_ns);
	limits.prepared = caps.features & AMDGPU_SDMA_FEATURE_PREPARED;
	limits.ring = caps.features & AMDGPU_SDMA_FEATURE_URING;
	limits.user_memory = caps.features & AMDGPU_SDMA_FEATURE_USERPTR;
	limits.svm = caps.features & AMDGPU_SDMA_FEATURE_SVM;
	return limits;
}

/// The error of a fence that has signaled, as an errno, or 0.
int error_of(const unique_fd &fence) noexcept
{
	sync_file_info info{};

	if (int err = call(fence.get(), SYNC_IOC_FILE_INFO, &info))
		return -err;
	return info.status < 0 ? -info.status : 0;
}

/// The same, when it has signaled. No driver is needed for that.
int error_once_over(const unique_fd &fence) noexcept
{
	pollfd signal{.fd = fence.get(), .events = POLLIN, .revents = 0};

	while (::poll(&signal, 1, -1) < 0 && errno == EINTR)
		;
	return error_of(fence);
}

// A signal that stops the process, a debugger or the freezer interrupts a command that
// waits in the kernel. Nothing was done then, and the kernel expects a retry, but what
// comes after it in a chain has failed by now.
bool was_interrupted(const submission &run, int res) noexcept
{
	return res == -EINTR && !run.given() && !run.stopped && !run.chained;
}

// A command that is cancelled when engines already have the batch completes at once,
// and the engines continue. Its memory must stay until they have ended, so it may
// succeed.
void completed(request &self, int res, unsigned) noexcept
{
	auto &op = static_cast<op_state &>(self);
	submission &run = run_of(op);

	if (was_interrupted(run, res))
		run.on->put_command_again(op, run);
	else if (res == -ECANCELED && run.given())
		await_fence(op, run);
	else
		finish_run(op, run, res < 0 ? -res : 0);
}

// Engines finish what they have. Its command ends then, even if the driver leaves the GPU
// meanwhile; of one that is cancelled only the fence would tell, and nobody could ask for
// that any more. In a chain it is cancelled all the same, which ends the chain.
void stop(op_state &self) noexcept
{
	submission &run = run_of(self);

	run.stopped = true;
	if (run.given() && !run.chained)
		return;
	self.in->cancel(self);
}

} // namespace

void finish_run(op_state &op, submission &run, result<size_t> outcome) noexcept
{
	// Both may hold the last reference to their objects.
	auto on = std::move(run.on);
	auto owner = std::move(run.owner);

	run.outcome = {run.args.engines_used, run.args.vram_bytes,
		       run.args.system_bytes, run.args.peer_bytes};
	on->release_commands(std::exchange(run.commands, -1));
	op.in->finish(op, std::move(outcome));
}

void finish_run(op_state &op, submission &run, int number) noexcept
{
	if (number)
		finish_run(op, run,
			   result<size_t>(std::unexpected(
				   batch_error(run, run.on->name(), number))));
	else
		finish_run(op, run, result<size_t>(run.bytes));
}

// Without a descriptor, or without a ring. A descriptor may have become free meanwhile;
// otherwise it is only known that the batch is over.
static void wait_for_fence(op_state &op, submission &run) noexcept
{
	const int err = run.fence ? 0 : run.sync.wait();

	if (!run.fence)
		run.fence = run.sync.file();
	const int number = errno;
	unique_fd fence = std::move(run.fence);

	if (fence)
		return finish_run(op, run, error_once_over(fence));
	const char *unknown =
		err ? "nobody can wait for the batch, which may not be over"
		    : "the batch is over, and whether it ended well cannot be told";
	finish_run(op, run,
		   result<size_t>(
			   fail_errno(run.on->name(), unknown, err ? -err : number)));
}

void await_fence(op_state &op, submission &run) noexcept
{
	io_uring_sqe *sqe = nullptr;

	op.stop = nullptr;
	op.complete = [](request &self, int res, unsigned) noexcept {
		auto &done = static_cast<op_state &>(self);
		submission &its = run_of(done);

		// Without events, nobody has seen it signal.
		if (res < 0)
			return wait_for_fence(done, its);
		const unique_fd fence = std::move(its.fence);
		finish_run(done, its, error_of(fence));
	};
	run.fence = run.sync.file();
	// Another chain may be open by now: it is no part of that.
	if (run.fence)
		sqe = op.in->entry(static_cast<request &>(op));
	if (sqe) {
		io_uring_prep_poll_add(sqe, run.fence.get(), POLLIN);
		io_uring_sqe_set_data(sqe, static_cast<request *>(&op));
	} else {
		wait_for_fence(op, run);
	}
}

gpu::gpu(engine &in, gpu_node &node) noexcept
	: ring_(in), node_(node), limits_(limits_of(node.caps))
{
}

gpu::~gpu()
{
	if (!node_.is_ours())
		return;
	for (uint32_t id : {context_, background_}) {
		drm_amdgpu_ctx args{};

		args.in.op = AMDGPU_CTX_OP_FREE_CTX;
		args.in.ctx_id = id;
		if (id)
			(void)call(node_.file.get(), DRM_IOCTL_AMDGPU_CTX, &args);
	}
}

result<uint32_t> gpu::allocate_context(int priority)
{
	drm_amdgpu_ctx args{};

	args.in.op = AMDGPU_CTX_OP_ALLOC_CTX;
	args.in.priority = priority;
	if (int err = call(node_.file.get(), DRM_IOCTL_AMDGPU_CTX, &args))
		return fail_errno(name(), "DRM_AMDGPU_CTX", -err, errc::device);
	return args.out.alloc.ctx_id;
}

result<std::shared_ptr<gpu>> gpu::open(engine &in, gpu_node &node)
{
	auto made = std::make_shared<gpu>(in, node);

	SLUICE_TRY(made->context_, made->allocate_context(AMDGPU_CTX_PRIORITY_NORMAL));
	SLUICE_TRY(made->background_, made->allocate_context(AMDGPU_CTX_PRIORITY_LOW));
	if (node.kfd >= 0) {
		SLUICE_TRY(made->watch_, migration_watch::open(in, node));
	}
	SLUICE_CHECK(made->use(!node.batches	    ? way::command
			       : made->limits_.ring ? way::ring
						    : way::call));
	return made;
}

result<void> gpu::use(way how)
{
	how_ = how;
	if (how != way::command)
		return {};
	SLUICE_TRY(commands_, command_queue::open(node_));
	limits_ = commands_->limits();
	return {};
}

result<device_counters> gpu::counters() noexcept
{
	if (!watch_)
		return fail(errc::unsupported, name(),
			    "amdkfd does not tell this process of migrations");
	return watch_->counters();
}

int gpu::configure(drm_amdgpu_sdma_batch &args) noexcept
{
	if (args.op == AMDGPU_SDMA_BATCH_PREPARE)
		args.ctx_id = context_;
	return call(node_.file.get(), DRM_IOCTL_AMDGPU_SDMA_BATCH, &args);
}

// Reset what the kernel writes when it has looked at the arguments.
static void expect_answer(submission &run) noexcept
{
	run.args.engines_used = 0;
	run.args.vram_bytes = run.args.system_bytes = run.args.peer_bytes = 0;
	run.args.error_index = untouched;
	run.args.error_array = AMDGPU_SDMA_ERROR_NONE;
}

op_state *gpu::begin(submission &run, std::shared_ptr<const void> owner) noexcept
{
	op_state *op = ring_.take();

	if (!op)
		return nullptr;
	run.on = shared_from_this();
	run.owner = std::move(owner);
	run.stopped = false;
	run.chained = ring_.chaining();
	run.args.ctx_id = run.background ? background_ : context_;
	expect_answer(run);
	op->what = "batch";
	op->owner = &run;
	op->stop = stop;
	op->complete = completed;
	return op;
}

// As a request of the ring. It is read when the ring is submitted.
void gpu::put_command(op_state &op, submission &run, io_uring_sqe *sqe) noexcept
{
	drm_amdgpu_sdma_uring command{};

	if (!sqe)
		return finish_run(op, run, std::unexpected(ring_.no_entry("batch")));
	command.batch = reinterpret_cast<uintptr_t>(&run.args);
	command.size = sizeof(run.args);
	io_uring_prep_rw(IORING_OP_URING_CMD, sqe, node_.file.get(), nullptr, 0, 0);
	sqe->cmd_op = DRM_AMDGPU_URING_SDMA_BATCH;
	std::memcpy(sqe->cmd, &command, sizeof(command));
	io_uring_sqe_set_data(sqe, static_cast<request *>(&op));
}

void gpu::put_command_again(op_state &op, submission &run) noexcept
{
	expect_answer(run);
	// It is not part of a chain that is being built by now.
	put_command(op, run, ring_.entry(static_cast<request &>(op)));
}

operation gpu::no_chain() noexcept
{
	return ring_.failed(error(errc::usage, name(),
				  "batches cannot be part of "
				  "a chain on this kernel"));
}

// Its own fence, and those that it begins after.
result<void> gpu::make_fences(submission &run) noexcept
{
	if (run.in.size() > limits_.fences)
		return fail(
			errc::usage, name(),
			std::format("a batch begins after at most {} fences, not {}",
				    limits_.fences, run.in.size()));
	if (int err = run.sync.make(node_))
		return fail_errno(name(), "DRM_IOCTL_SYNCOBJ_CREATE", -err);
	if (int err = run.take_fences(node_))
		return fail_errno(name(), "DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE", -err);
	return {};
}

operation gpu::start(submission &run, std::shared_ptr<const void> owner) noexcept
{
	if (how_ != way::ring && ring_.chaining())
		return no_chain();
	if (auto made = make_fences(run); !made)
		return ring_.failed(made.error());
	op_state *op = begin(run, std::move(owner));
	if (!op)
		return ring_.refused();
	run.args.in_fences = reinterpret_cast<uintptr_t>(run.in.data());
	run.args.num_in_fences = static_cast<uint32_t>(run.in.size());
	run.out.handle = run.sync.handle();
	run.args.out_fences = reinterpret_cast<uintptr_t>(&run.out);
	run.args.num_out_fences = 1;
	if (how_ == way::ring)
		put_command(*op, run, ring_.entry(*op));
	else if (int err =
			 call(node_.file.get(), DRM_IOCTL_AMDGPU_SDMA_BATCH, &run.args))
		finish_run(*op, run, -err);
	else
		await_fence(*op, run);
	return operation(op);
}

operation gpu::start_command(batch_data &what,
			     std::shared_ptr<const void> owner) noexcept
{
	submission &run = what.run;

	if (ring_.chaining())
		return no_chain();
	if (auto made = make_fences(run); !made)
		return ring_.failed(made.error());
	op_state *op = begin(run, std::move(owner));
	if (!op)
		return ring_.refused();
	if (auto sent = commands_->send(what); !sent)
		finish_run(*op, run, result<size_t>(std::unexpected(sent.error())));
	else
		await_fence(*op, run);
	return operation(op);
}

void gpu::release_commands(int slot) noexcept
{
	if (slot >= 0)
		commands_->release(slot);
}

} // namespace sluice::detail
