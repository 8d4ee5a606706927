// SPDX-License-Identifier: MIT
// The process's share in a GPU: one open file, which is one GPU address space.
//
// All that the process does with a GPU goes through this file, whichever device object
// it belongs to. If amdkfd knows the GPU, it has taken the file's address space for the
// process, and keeps it until the process ends: it cannot be replaced. So nodes are
// never freed either, and references to them stay valid.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include <amdgpu_drm.h>
#include <linux/kfd_ioctl.h>

#include "gpu_list.hpp"
#include "sluice/unique_fd.hpp"

namespace sluice::detail {

struct gpu_node {
	gpu_entry what;
	pid_t process = ::getpid(); ///< that opened it
	unique_fd file;		    ///< render node
	int kfd = -1;		    ///< amdkfd has this address space; -1: it does not
	bool batches = false;	    ///< the kernel runs batches
	drm_amdgpu_info_sdma_batch caps{}; ///< of batches
	/// Why it cannot be used, if it cannot.
	result<void> usable;
	/// How many use an object of the file: importing an object that is in the file
	/// already gives its existing number.
	std::map<uint32_t, unsigned> users;
	std::mutex users_lock;
	/// Held while attaching memory: all threads share buffers.
	std::mutex attach_lock;

	const std::string &name() const noexcept { return what.address; }
	/// False in a child of fork(): the objects of the file are the parent's.
	/// Destructors that run there must leave them alone.
	bool is_ours() const noexcept { return process == ::getpid(); }
	/// Does it share memory of the process?
	bool shares() const noexcept { return kfd >= 0 && what.svm; }
};

/// The node of a GPU, an address or an index. Thread-safe.
result<gpu_node *> find_node(std::string_view name);

/// A duplicate of a file of @p render_node that the process has open already and that
/// @p accepts approves.
unique_fd find_open_file(const std::string &render_node, bool (*accepts)(void *, int),
			 void *data);

/// An object of a node's file, mapped in its address space. The destructor ends the
/// mapping, and with the last mapping the object.
class gem_mapping : public attachment {
public:
	/// For an object that is new in the file.
	gem_mapping(gpu_node &node, uint32_t object);
	/// For a dma-buf. @p what names it in errors
	static result<std::unique_ptr<gem_mapping>> import(gpu_node &node, int dmabuf,
							   std::string_view what);
	~gem_mapping() override;

	/// Map all of it. -EADDRINUSE if the process shares memory there.
	int map(uint64_t address, size_t size) noexcept;
	gpu_node &node() const noexcept { return node_; }

	const uint32_t handle;

private:
	gpu_node &node_;
	uint64_t address_ = 0;
	size_t size_ = 0;
};

/// Set attributes of memory that is shared with GPUs. errc::device.
result<void> set_svm(const gpu_node &node, uint64_t address, size_t size,
		     std::span<const kfd_ioctl_svm_attribute> attributes) noexcept;

} // namespace sluice::detail
