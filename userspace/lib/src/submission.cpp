// SPDX-License-Identifier: MIT
#include "submission.hpp"

#include "call.hpp"

namespace sluice::detail {

int syncobj::make(const gpu_node &node) noexcept
{
	drm_syncobj_create args{};

	if (node_ == &node)
		return 0;
	drop();
	int err = call(node.file.get(), DRM_IOCTL_SYNCOBJ_CREATE, &args);
	if (!err) {
		node_ = &node;
		handle_ = args.handle;
	}
	return err;
}

void syncobj::drop() noexcept
{
	drm_syncobj_destroy args{.handle = handle_};

	if (node_ && node_->is_ours())
		(void)call(node_->file.get(), DRM_IOCTL_SYNCOBJ_DESTROY, &args);
	node_ = nullptr;
}

unique_fd syncobj::file() const noexcept
{
	drm_syncobj_handle args{};

	args.handle = handle_;
	args.flags = DRM_SYNCOBJ_HANDLE_TO_FD_FLAGS_EXPORT_SYNC_FILE;
	args.fd = -1;
	if (call(node_->file.get(), DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD, &args))
		return {};
	return unique_fd(args.fd);
}

int syncobj::take(const unique_fd &sync_file) noexcept
{
	drm_syncobj_handle args{};

	args.handle = handle_;
	args.flags = DRM_SYNCOBJ_FD_TO_HANDLE_FLAGS_IMPORT_SYNC_FILE;
	args.fd = sync_file.get();
	return call(node_->file.get(), DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE, &args);
}

int syncobj::wait() const noexcept
{
	drm_syncobj_wait args{};

	args.handles = reinterpret_cast<uintptr_t>(&handle_);
	args.count_handles = 1;
	args.timeout_nsec = INT64_MAX;
	return call(node_->file.get(), DRM_IOCTL_SYNCOBJ_WAIT, &args);
}

// For each run: the files say what to wait for, and a syncobj belongs to one node.
int submission::take_fences(const gpu_node &node) noexcept
{
	for (size_t i = 0; i < after.size(); i++) {
		int err = after[i].sync.make(node);

		if (!err)
			err = after[i].sync.take(after[i].file);
		if (err)
			return err;
		in[i].handle = after[i].sync.handle();
	}
	return 0;
}

} // namespace sluice::detail
