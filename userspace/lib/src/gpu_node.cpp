// SPDX-License-Identifier: MIT
#include "gpu_node.hpp"

#include <array>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <sys/stat.h>

#include "call.hpp"
#include "sysfs.hpp"

namespace sluice::detail {

namespace {

/// Ask amdkfd to take the address space of a file as the process's on a GPU. It agrees
/// again for a file that it has taken before, and returns -EBUSY for any other one
/// then.
int acquire(int kfd, uint32_t gpu_id, int file)
{
	kfd_ioctl_acquire_vm_args args{};

	args.drm_fd = static_cast<uint32_t>(file);
	args.gpu_id = gpu_id;
	return call(kfd, AMDKFD_IOC_ACQUIRE_VM, &args);
}

/// Have amdkfd take the node's file, or use the file that it has already. That belongs
/// to HIP, or to whatever was first in this process.
result<void> join_kfd(gpu_node &node, int kfd)
{
	int err = acquire(kfd, node.what.kfd_id, node.file.get());

	if (err == -EBUSY) {
		std::pair ask(kfd, node.what.kfd_id);
		auto theirs =
			find_open_file(node.what.render_node, [](void *data, int file) {
			auto [fd, id] = *static_cast<decltype(ask) *>(data);
			return acquire(fd, id, file) == 0;
		}, &ask);
		if (!theirs)
			return fail(errc::device, node.name(),
				    "its address space "
				    "is taken by a file that nobody in this "
				    "process has open",
				    EBUSY);
		node.file = std::move(theirs);
	} else if (err) {
		return fail_errno(node.name(), "AMDKFD_IOC_ACQUIRE_VM", -err,
				  errc::device);
	}
	node.kfd = kfd;
	return {};
}

/// A kernel without batches does not know the query; for a GPU without them, all is 0.
result<void> ask_for_batches(gpu_node &node)
{
	drm_amdgpu_info args{};

	args.return_pointer = reinterpret_cast<uintptr_t>(&node.caps);
	args.return_size = sizeof(node.caps);
	args.query = AMDGPU_INFO_SDMA_BATCH;
	int err = call(node.file.get(), DRM_IOCTL_AMDGPU_INFO, &args);
	if (err && err != -EINVAL)
		return fail_errno(node.name(), "AMDGPU_INFO_SDMA_BATCH", -err,
				  errc::device);
	node.batches = !err && node.caps.ops && node.caps.engine_mask;
	return {};
}

/// Is it only that there is no room for a file now? Without amdkfd, a GPU would do less
/// for as long as the process lives.
bool is_for_now(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM;
}

/// @param kfd amdkfd's descriptor, or -errno
std::unique_ptr<gpu_node> make_node(const gpu_entry &what, int kfd)
{
	auto node = std::make_unique<gpu_node>();

	node->what = what;
	node->file = unique_fd(::open(what.render_node.c_str(), O_RDWR | O_CLOEXEC));
	if (!node->file) {
		node->usable = fail_errno(what.render_node, "cannot be opened", errno,
					  errc::device);
		return node;
	}
	if (kfd >= 0 && what.kfd_id)
		node->usable = join_kfd(*node, kfd);
	else if (what.kfd_id && is_for_now(kfd))
		node->usable =
			fail_errno("/dev/kfd", "cannot be opened", -kfd, errc::device);
	if (node->usable)
		node->usable = ask_for_batches(*node);
	return node;
}

/// All GPUs that the process has. Memory of a process is shared with all of them or
/// none: amdkfd needs an address space on each before it takes queues away.
struct process_nodes {
	pid_t process = ::getpid();
	unique_fd kfd;
	std::vector<gpu_entry> entries = find_gpus();
	std::vector<std::unique_ptr<gpu_node>> nodes;

	process_nodes()
	{
		for (const auto &entry : entries)
			nodes.push_back(make_node(entry, open_kfd()));
	}

	/// A descriptor, or -errno.
	int open_kfd()
	{
		if (!kfd)
			kfd = unique_fd(::open("/dev/kfd", O_RDWR | O_CLOEXEC));
		return kfd ? kfd.get() : -errno;
	}

	/// A node that could not be used has no users, and may be usable by now.
	gpu_node &at(size_t i)
	{
		if (!nodes[i]->usable)
			nodes[i] = make_node(entries[i], open_kfd());
		return *nodes[i];
	}
};

/// Is @p all valid for this process? A child has an address space of its own, and
/// leaves its parent's alone. If there was no GPU, one may be there by now.
bool stands(const process_nodes *all)
{
	return all && all->process == ::getpid() && !all->entries.empty();
}

} // namespace

result<gpu_node *> find_node(std::string_view name)
{
	static std::mutex lock;
	static process_nodes *all;
	std::lock_guard guard(lock);

	if (!stands(all)) {
		// One without GPUs has no users.
		if (all && all->process == ::getpid())
			delete all;
		all = new process_nodes;
	}
	const gpu_entry *entry = choose_gpu(all->entries, name);
	if (!entry)
		return fail(errc::device, name,
			    all->entries.empty()
				    ? "this machine has no GPU of amdgpu"
				    : "there is no such GPU of amdgpu: give its "
				      "PCI address, or its index from 0");
	gpu_node &node = all->at(static_cast<size_t>(entry - all->entries.data()));
	if (!node.usable)
		return std::unexpected(node.usable.error());
	return &node;
}

unique_fd find_open_file(const std::string &render_node, bool (*accepts)(void *, int),
			 void *data)
{
	struct stat wanted, found;
	std::error_code none;

	if (::stat(render_node.c_str(), &wanted) < 0)
		return {};
	for (const auto &entry :
	     std::filesystem::directory_iterator("/proc/self/fd", none)) {
		int fd = sysfs::integer(entry.path().filename().string(), -1);

		if (::fstat(fd, &found) < 0 || !S_ISCHR(found.st_mode) ||
		    found.st_rdev != wanted.st_rdev || !accepts(data, fd))
			continue;
		return unique_fd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
	}
	return {};
}

gem_mapping::gem_mapping(gpu_node &node, uint32_t object)
	: attachment(&node), handle(object), node_(node)
{
	std::lock_guard guard(node.users_lock);

	node.users[object]++;
}

// No descriptor, or one of something else.
static bool is_no_dmabuf(int number) noexcept
{
	return number == EBADF || number == EINVAL;
}

// Under the lock: no thread closes the object before it is counted.
result<std::unique_ptr<gem_mapping>> gem_mapping::import(gpu_node &node, int dmabuf,
							 std::string_view what)
{
	drm_prime_handle args{};

	args.fd = dmabuf;
	std::unique_lock guard(node.users_lock);
	if (int err = call(node.file.get(), DRM_IOCTL_PRIME_FD_TO_HANDLE, &args))
		return fail_errno(node.name(),
				  std::string(what) + ": DRM_IOCTL_PRIME_FD_TO_HANDLE",
				  -err,
				  is_no_dmabuf(-err) ? errc::usage : errc::device);
	node.users[args.handle]++;
	guard.unlock();
	auto object = std::make_unique<gem_mapping>(node, args.handle);
	guard.lock();
	node.users[args.handle]--;
	return object;
}

int gem_mapping::map(uint64_t address, size_t size) noexcept
{
	drm_amdgpu_gem_va args{};

	args.handle = handle;
	args.operation = AMDGPU_VA_OP_MAP;
	args.flags = AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE;
	args.va_address = address;
	args.map_size = size;
	int err = call(node_.file.get(), DRM_IOCTL_AMDGPU_GEM_VA, &args);
	if (!err) {
		address_ = address;
		size_ = size;
	}
	return err;
}

gem_mapping::~gem_mapping()
{
	drm_amdgpu_gem_va args{};
	drm_gem_close gone{.handle = handle};

	if (!node_.is_ours())
		return;
	// After the batches that were submitted before: closing alone would do too,
	// except for an object that is open elsewhere.
	if (size_) {
		args.handle = handle;
		args.operation = AMDGPU_VA_OP_UNMAP;
		args.flags = AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE;
		args.va_address = address_;
		args.map_size = size_;
		(void)call(node_.file.get(), DRM_IOCTL_AMDGPU_GEM_VA, &args);
	}
	std::lock_guard guard(node_.users_lock);
	auto it = node_.users.find(handle);
	if (--it->second)
		return;
	node_.users.erase(it);
	(void)call(node_.file.get(), DRM_IOCTL_GEM_CLOSE, &gone);
}

// The arguments end with the list, and its length is part of the request's number.
result<void> set_svm(const gpu_node &node, uint64_t address, size_t size,
		     std::span<const kfd_ioctl_svm_attribute> attributes) noexcept
{
	constexpr size_t most = 4;
	constexpr size_t longest =
		sizeof(kfd_ioctl_svm_args) + most * sizeof(kfd_ioctl_svm_attribute);
	alignas(kfd_ioctl_svm_args) std::array<std::byte, longest> room;
	kfd_ioctl_svm_args args{};
	size_t bytes = sizeof(args) + attributes.size_bytes();

	if (attributes.size() > most)
		return fail(errc::usage, node.name(), "more than 4 attributes");
	args.start_addr = address;
	args.size = size;
	args.op = KFD_IOCTL_SVM_OP_SET_ATTR;
	args.nattr = static_cast<uint32_t>(attributes.size());
	std::memcpy(room.data(), &args, sizeof(args));
	std::memcpy(room.data() + sizeof(args), attributes.data(),
		    attributes.size_bytes());
	int err = call_again(node.kfd,
			     _IOC(_IOC_READ | _IOC_WRITE, AMDKFD_IOCTL_BASE,
				  _IOC_NR(AMDKFD_IOC_SVM), bytes),
			     room.data());
	if (err)
		return fail_errno(node.name(), "AMDKFD_IOC_SVM", -err, errc::device);
	return {};
}

} // namespace sluice::detail
