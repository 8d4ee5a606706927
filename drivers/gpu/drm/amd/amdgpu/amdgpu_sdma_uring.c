// SPDX-License-Identifier: MIT
/**
 * DOC: SDMA batches by io_uring
 *
 * IORING_OP_URING_CMD on a file of the device submits a batch like the ioctl.
 * It completes when the batch's fence has signaled, with the fence's error.
 *
 * The task that submits the command tries it at once, as a call of the ioctl
 * with AMDGPU_SDMA_BATCH_NONBLOCK would. If that would wait for earlier
 * batches, if the device is asleep, or if a signal is pending, it ends with
 * -EAGAIN and io_uring makes the next attempt in a worker, which may wait. A
 * worker gets no signal except that of a cancellation.
 *
 * Ownership once a batch is submitted:
 *
 * - io_uring's request holds the file until the command is completed, so the
 *   file, its VM and the module outlive all that is done here;
 * - the command's private data hold a reference to the fence, and the callback
 *   that is in the fence's list. The fence knows neither the file nor the ring:
 *   if it signals without the callback, it touches nothing of them;
 * - the command is completed once: by task work that the callback queues, or by
 *   a cancellation that has removed the callback from the list before the fence
 *   called it. dma_fence_remove_callback() decides which, under the fence's
 *   lock. The code that completes the command drops the fence's reference only
 *   afterwards: until then, a cancellation may look at the fence.
 *
 * io_uring cancels a command when it is asked to, when the ring ends, or when
 * the submitting process calls exec. That completes the command with -ECANCELED
 * and does not stop the batch: the engine goes on with it, and its out-fences
 * tell when it has ended. So the end of a ring waits for no engine.
 */

#include <linux/dma-fence.h>
#include <linux/io_uring/cmd.h>
#include <linux/pm_runtime.h>
#include <linux/uaccess.h>

#include <drm/amdgpu_drm.h>
#include <drm/drm_file.h>
#include <drm/drm_ioctl.h>

#include "amdgpu.h"
#include "amdgpu_sdma_batch.h"
#include "amdgpu_sdma_uring.h"

/*
 * The first version of the arguments: there was never a smaller one. It must
 * not grow with the structure, or programs of today would be refused.
 */
#define SIZE_MIN	128

/* Lives in the command until the command is completed. */
struct uring_wait {
	struct dma_fence_cb cb;
	struct dma_fence *fence;
};

static struct uring_wait *to_wait(struct io_uring_cmd *cmd)
{
	return io_uring_cmd_to_pdu(cmd, struct uring_wait);
}

/* 0 for a batch that ended well, as from the call that submits it. */
static int fence_result(struct dma_fence *fence)
{
	return min(dma_fence_get_status(fence), 0);
}

/* In the task that submitted, or for it if that is gone: no difference here. */
static void uring_done(struct io_tw_req tw_req, io_tw_token_t tw)
{
	struct io_uring_cmd *cmd = io_uring_cmd_from_tw(tw_req);
	struct dma_fence *fence = to_wait(cmd)->fence;
	int result = fence_result(fence);

	io_uring_cmd_done(cmd, result, IO_URING_CMD_TASK_WORK_ISSUE_FLAGS);
	dma_fence_put(fence);
}

/* Runs in any context, under the fence's lock. */
static void uring_fence_signaled(struct dma_fence *fence,
				 struct dma_fence_cb *cb)
{
	struct uring_wait *wait = container_of(cb, struct uring_wait, cb);
	struct io_uring_cmd *cmd = container_of((void *)wait,
						struct io_uring_cmd, pdu);

	io_uring_cmd_complete_in_task(cmd, uring_done);
}

static int uring_cancel(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	struct uring_wait *wait = to_wait(cmd);
	struct dma_fence *fence = wait->fence;

	/*
	 * Not in the list: it was called, and its task work will complete the
	 * command; or it is about to be added: see uring_wait().
	 */
	if (!dma_fence_remove_callback(fence, &wait->cb))
		return -EALREADY;
	io_uring_cmd_done(cmd, -ECANCELED, issue_flags);
	dma_fence_put(fence);
	return 0;
}

/*
 * Has a worker been told to give up? It may have been too late for the batch,
 * and too early for the callback, and a linked timeout tells once.
 */
static bool is_cancelled(unsigned int issue_flags)
{
	return issue_flags & IO_URING_F_IOWQ &&
	       test_thread_flag(TIF_NOTIFY_SIGNAL);
}

/* Completes the command when @fence, whose reference it takes, is signaled. */
static int uring_wait(struct io_uring_cmd *cmd, struct dma_fence *fence,
		      unsigned int issue_flags)
{
	struct uring_wait *wait = to_wait(cmd);

	wait->fence = fence;
	INIT_LIST_HEAD(&wait->cb.node);
	/*
	 * Before the callback is added: after that, the command may be gone,
	 * except in a worker, which has a reference to it. A cancellation in
	 * between finds an empty list and does nothing.
	 */
	io_uring_cmd_mark_cancel_one(cmd, issue_flags);
	dma_fence_get(fence);
	if (dma_fence_add_callback(fence, &wait->cb, uring_fence_signaled)) {
		/* Signaled already: nothing else completes the command. */
		io_uring_cmd_done(cmd, fence_result(fence), issue_flags);
		dma_fence_put(fence);
	} else if (is_cancelled(issue_flags)) {
		uring_cancel(cmd, issue_flags);
	}
	dma_fence_put(fence);
	return -EIOCBQUEUED;
}

/*
 * Copies what the call reports: the handle, and all from error_index on, up to
 * the @size bytes that user space has.
 */
static int copy_results(struct drm_amdgpu_sdma_batch __user *to,
			const struct drm_amdgpu_sdma_batch *args, u32 size)
{
	const size_t results = min_t(size_t, size, sizeof(*args)) -
			       offsetof(struct drm_amdgpu_sdma_batch,
					error_index);

	return put_user(args->handle, &to->handle) ||
	       copy_to_user(&to->error_index, &args->error_index, results) ?
		-EFAULT : 0;
}

/* Fails if the device is asleep and the caller must not wait. */
static int wake_device(struct device *dev, bool nonblock)
{
	int r;

	if (!nonblock)
		return pm_runtime_resume_and_get(dev);
	r = pm_runtime_get_if_active(dev);
	/* -EINVAL: the device is never asleep */
	if (r == -EINVAL)
		pm_runtime_get_noresume(dev);
	if (r)
		return 0;
	/* A caller that has no worker finds it awake when it calls again. */
	pm_request_resume(dev);
	return -EAGAIN;
}

/* As amdgpu_drm_ioctl() and drm_ioctl() do, with the same permissions. */
static int submit_batch(struct file *file, struct amdgpu_sdma_batch_call *call)
{
	struct drm_file *file_priv = file->private_data;
	struct device *dev = file_priv->minor->dev->dev;
	int r;

	r = wake_device(dev, call->nonblock);
	if (r)
		return r;
	r = drm_ioctl_kernel(file, amdgpu_sdma_batch_call, call,
			     DRM_AUTH | DRM_RENDER_ALLOW);
	pm_runtime_put_autosuspend(dev);
	if (r != -ERESTARTSYS && r != -EINTR)
		return r;
	/* Nothing was done. A worker tries again. */
	if (call->nonblock)
		return -EAGAIN;
	/* This flag means cancellation; a freezer or a stop interrupts, too. */
	return test_thread_flag(TIF_NOTIFY_SIGNAL) ||
	       fatal_signal_pending(current) ? -ECANCELED : -EINTR;
}

static int uring_batch(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	const struct drm_amdgpu_sdma_uring *sqe =
		io_uring_sqe_cmd(cmd->sqe, struct drm_amdgpu_sdma_uring);
	struct drm_amdgpu_sdma_batch __user *user =
		u64_to_user_ptr(READ_ONCE(sqe->batch));
	u32 size = READ_ONCE(sqe->size);
	struct amdgpu_sdma_batch_call call = {
		.nonblock = issue_flags & IO_URING_F_NONBLOCK,
	};
	bool retry;
	int r;

	BUILD_BUG_ON(sizeof(call.args) < SIZE_MIN);
	if (READ_ONCE(sqe->pad) || size < SIZE_MIN || size > PAGE_SIZE)
		return -EINVAL;
	r = copy_struct_from_user(&call.args, sizeof(call.args), user, size);
	if (r)
		return r;
	/* If this fails, it must fail now: nothing can be undone later. */
	r = copy_results(user, &call.args, size);
	if (r)
		return r;
	/* A caller that asked not to block gets -EAGAIN: no worker retries. */
	retry = call.nonblock && !(call.args.flags & AMDGPU_SDMA_BATCH_NONBLOCK);
	r = submit_batch(cmd->file, &call);
	if (r == -EAGAIN && retry)
		return -EAGAIN;
	copy_results(user, &call.args, size);
	if (!r && call.fence)
		return uring_wait(cmd, call.fence, issue_flags);
	/* If this returned -EAGAIN, io_uring would issue the command again. */
	io_uring_cmd_done(cmd, r, issue_flags);
	return -EIOCBQUEUED;
}

/**
 * amdgpu_sdma_uring_cmd - &file_operations.uring_cmd
 * @cmd: command
 * @issue_flags: flags of io_uring's call
 *
 * Returns: -EIOCBQUEUED if the command is completed separately, -EAGAIN if it
 * should be issued where it may block, or its result; for a cancellation 0, or
 * -EALREADY if it comes too late or too early.
 */
int amdgpu_sdma_uring_cmd(struct io_uring_cmd *cmd, unsigned int issue_flags)
{
	if (issue_flags & IO_URING_F_CANCEL)
		return uring_cancel(cmd, issue_flags);
	if (cmd->cmd_op != DRM_AMDGPU_URING_SDMA_BATCH)
		return -EOPNOTSUPP;
	/* None of the flags has a meaning here. */
	if (cmd->flags & IORING_URING_CMD_MASK)
		return -EINVAL;
	return uring_batch(cmd, issue_flags);
}
