// SPDX-License-Identifier: MIT
#include "gpu_memory.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <fcntl.h>
#include <sys/mman.h>
#include <thread>

#include "call.hpp"
#include "try.hpp"

namespace sluice::detail {

namespace {

constexpr size_t huge_page = size_t{2} << 20;

std::byte *align_up(std::byte *p, size_t to)
{
	auto address = reinterpret_cast<uintptr_t>(p);

	return p + (-address & (to - 1));
}

std::string no_room(size_t size)
{
	return "no room for " + std::to_string(size) + " bytes of video memory";
}

/// All video memory or none: if only part of it is visible, the driver would move a
/// buffer there, or to the host, when the CPU touches it.
bool visible(const gpu_node &node)
{
	return node.what.visible_vram_bytes >= node.what.vram_bytes;
}

/// If there is not enough of the requested memory, the driver takes memory of the host
/// instead. It says so afterwards.
result<drm_amdgpu_gem_create_in> what_became_of(const gem_mapping &object)
{
	drm_amdgpu_gem_create_in made{};
	drm_amdgpu_gem_op args{};

	args.handle = object.handle;
	args.op = AMDGPU_GEM_OP_GET_GEM_CREATE_INFO;
	args.value = reinterpret_cast<uintptr_t>(&made);
	if (int err = call(object.node().file.get(), DRM_IOCTL_AMDGPU_GEM_OP, &args))
		return fail_errno(object.node().name(), "DRM_AMDGPU_GEM_OP", -err,
				  errc::device);
	return made;
}

result<std::unique_ptr<gem_mapping>> create_vram(gpu_node &node, size_t size)
{
	drm_amdgpu_gem_create args{};

	args.in.bo_size = size;
	args.in.alignment = size < huge_page ? page_size : huge_page;
	args.in.domains = AMDGPU_GEM_DOMAIN_VRAM;
	// Users order their accesses by operations. The driver's own order would make
	// one GPU wait for another when they use parts of one buffer.
	args.in.domain_flags = AMDGPU_GEM_CREATE_EXPLICIT_SYNC |
			       (visible(node) ? AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED
					      : AMDGPU_GEM_CREATE_NO_CPU_ACCESS);
	int err = call(node.file.get(), DRM_IOCTL_AMDGPU_GEM_CREATE, &args);
	if (err)
		return fail_errno(node.name(), no_room(size), -err, errc::device);
	return std::make_unique<gem_mapping>(node, args.out.handle);
}

/// Shared memory is a host buffer that prefers to be elsewhere.
class svm_block : public memory_block {
public:
	explicit svm_block(buffer memory) noexcept
		: memory_block(memory::svm, memory.data(), memory.size()),
		  memory_(std::move(memory))
	{
	}

private:
	buffer memory_;
};

/// Host memory as an object of the file.
result<std::unique_ptr<gem_mapping>> import_host(gpu_node &node, memory_block &block)
{
	drm_amdgpu_gem_userptr args{};

	args.addr = reinterpret_cast<uintptr_t>(block.data_);
	args.size = block.size_;
	args.flags = AMDGPU_GEM_USERPTR_ANONONLY | AMDGPU_GEM_USERPTR_REGISTER |
		     AMDGPU_GEM_USERPTR_VALIDATE;
	if (int err = call_again(node.file.get(), DRM_IOCTL_AMDGPU_GEM_USERPTR, &args))
		return fail_errno(node.name(), "DRM_AMDGPU_GEM_USERPTR", -err,
				  errc::device);
	return std::make_unique<gem_mapping>(node, args.handle);
}

/// Another GPU's video memory, as an object of the file.
result<std::unique_ptr<gem_mapping>> import_vram(gpu_node &node, memory_block &block)
{
	int dmabuf = block.dmabuf();

	if (dmabuf < 0)
		return fail_errno(node.name(),
				  "another GPU's memory: DRM_IOCTL_PRIME_HANDLE_TO_FD",
				  errno, errc::device);
	return gem_mapping::import(node, dmabuf, "another GPU's memory");
}

result<void> attach_object(gpu_node &node, memory_block &block)
{
	SLUICE_TRY(auto object, block.kind_ == memory::vram ? import_vram(node, block)
							    : import_host(node, block));
	int err = object->map(reinterpret_cast<uintptr_t>(block.data_), block.size_);
	if (err)
		return fail_errno(node.name(), "DRM_AMDGPU_GEM_VA", -err, errc::device);
	block.attach(std::move(object));
	return {};
}

// Shared memory stays shared until it is unmapped. Host memory also stays in the host.
result<void> attach_shared(gpu_node &node, memory_block &block)
{
	const std::array<kfd_ioctl_svm_attribute, 2> attributes{
		{{KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE, node.what.kfd_id},
		 {KFD_IOCTL_SVM_ATTR_PREFERRED_LOC, KFD_IOCTL_SVM_LOCATION_SYSMEM}}};
	std::span all(attributes);

	SLUICE_CHECK(set_svm(node, reinterpret_cast<uintptr_t>(block.data_),
			     block.size_,
			     block.kind_ == memory::svm ? all.first(1) : all));
	block.attach(std::make_unique<attachment>(&node));
	return {};
}

} // namespace

// The addresses may have been shared with GPUs a moment ago, and the kernel forgets
// such memory a little after munmap() returns: then take others.
result<reserved_range> map_somewhere(gem_mapping &object, size_t size)
{
	std::array<reserved_range, 8> tried;
	int err = -EADDRINUSE;

	for (auto &range : tried) {
		SLUICE_TRY(range, reserved_range::make(size));
		err = object.map(reinterpret_cast<uintptr_t>(range.data()), size);
		if (!err)
			return std::move(range);
		if (err != -EADDRINUSE)
			break;
	}
	return fail_errno(object.node().name(), "DRM_AMDGPU_GEM_VA", -err,
			  errc::device);
}

result<void> map_for_cpu(const gem_mapping &object, const reserved_range &range,
			 size_t size)
{
	drm_amdgpu_gem_mmap args{};
	const gpu_node &node = object.node();

	args.in.handle = object.handle;
	if (int err = call(node.file.get(), DRM_IOCTL_AMDGPU_GEM_MMAP, &args))
		return fail_errno(node.name(), "DRM_AMDGPU_GEM_MMAP", -err,
				  errc::device);
	if (::mmap(range.data(), size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		   node.file.get(),
		   static_cast<off_t>(args.out.addr_ptr)) == MAP_FAILED)
		return fail_errno(node.name(), "mmap", errno, errc::device);
	return {};
}

result<reserved_range> reserved_range::make(size_t size) noexcept
{
	reserved_range range;

	void *map = ::mmap(nullptr, size + huge_page, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return fail_errno("buffer", "mmap");
	range.start_ = static_cast<std::byte *>(map);
	range.size_ = size + huge_page;
	return range;
}

reserved_range::~reserved_range()
{
	if (start_)
		::munmap(start_, size_);
}

std::byte *reserved_range::data() const noexcept
{
	return align_up(start_, huge_page);
}

vram_block::vram_block(gpu_node &node, reserved_range range,
		       std::unique_ptr<gem_mapping> object, size_t size,
		       bool seen) noexcept
	: memory_block(memory::vram, range.data(), size), node_(node),
	  range_(std::move(range)), object_(std::move(object)), seen_(seen)
{
}

int vram_block::dmabuf() noexcept
{
	std::lock_guard guard(lock_);
	drm_prime_handle args{};

	if (!dmabuf_) {
		args.handle = object_->handle;
		args.flags = DRM_CLOEXEC | DRM_RDWR;
		if (!call(node_.file.get(), DRM_IOCTL_PRIME_HANDLE_TO_FD, &args))
			dmabuf_ = unique_fd(args.fd);
	}
	return dmabuf_.get();
}

result<buffer> make_vram(gpu_node &node, size_t size)
{
	size_t whole = round_to_pages(size);

	if (size == 0)
		return fail(errc::usage, node.name(), "a size of 0");
	if (whole < size || whole > node.what.vram_bytes)
		return fail(errc::device, node.name(), no_room(size), ENOMEM);
	SLUICE_TRY(auto object, create_vram(node, whole));
	SLUICE_TRY(auto made, what_became_of(*object));
	if (made.domains != AMDGPU_GEM_DOMAIN_VRAM)
		return fail(errc::device, node.name(), no_room(size), ENOMEM);
	SLUICE_TRY(auto range, map_somewhere(*object, whole));
	if (visible(node))
		SLUICE_CHECK(map_for_cpu(*object, range, whole));
	return buffer(new vram_block(node, std::move(range), std::move(object), whole,
				     visible(node)));
}

namespace {

// The exporter may refuse the CPU's mapping: the GPU reaches the memory all the same. A
// mapping that is refused at the final place might leave a hole there.
bool map_dmabuf(int dmabuf, const reserved_range &range, size_t size)
{
	constexpr int access = PROT_READ | PROT_WRITE;
	void *trial = ::mmap(nullptr, size, access, MAP_SHARED, dmabuf, 0);

	if (trial == MAP_FAILED)
		return false;
	::munmap(trial, size);
	return ::mmap(range.data(), size, access, MAP_SHARED | MAP_FIXED, dmabuf, 0) !=
	       MAP_FAILED;
}

} // namespace

result<buffer> import_dmabuf(gpu_node &node, int dmabuf)
{
	// First, as only a dma-buf has a size that can be read without moving anything.
	SLUICE_TRY(auto object, gem_mapping::import(node, dmabuf, "the dma-buf"));
	off_t end = ::lseek(dmabuf, 0, SEEK_END);
	auto size = static_cast<size_t>(std::max<off_t>(end, 0));

	if (!size || size % page_size)
		return fail(errc::usage, node.name(),
			    "the descriptor is no dma-buf "
			    "of whole pages");
	SLUICE_TRY(auto range, map_somewhere(*object, size));
	bool seen = map_dmabuf(dmabuf, range, size);
	return buffer(
		new vram_block(node, std::move(range), std::move(object), size, seen));
}

result<void> can_share(const gpu_node &node) noexcept
{
	if (node.shares())
		return {};
	return fail(errc::unsupported, node.name(),
		    node.kfd < 0 ? "amdkfd does not share memory of this process"
				 : "amdkfd cannot share memory with it");
}

result<void> prefer_gpu(gpu_node &node, uint64_t address, size_t size) noexcept
{
	const std::array<kfd_ioctl_svm_attribute, 2> attributes{
		{{KFD_IOCTL_SVM_ATTR_PREFERRED_LOC, node.what.kfd_id},
		 {KFD_IOCTL_SVM_ATTR_ACCESS, node.what.kfd_id}}};

	return set_svm(node, address, size, attributes);
}

result<void> return_by_page(gpu_node &node, uint64_t address, size_t size) noexcept
{
	const kfd_ioctl_svm_attribute one_page{KFD_IOCTL_SVM_ATTR_GRANULARITY, 0};

	return set_svm(node, address, size, {&one_page, 1});
}

result<buffer> make_svm(gpu_node &node, size_t size)
{
	SLUICE_CHECK(can_share(node));
	// Pages that are not there yet could not be moved. The kernel moves small
	// pages.
	SLUICE_TRY(auto memory, buffer::host(size, {.huge_pages = false}));
	if (::madvise(memory.data(), memory.size(), MADV_POPULATE_WRITE) < 0)
		return fail_errno("buffer", "populate");
	SLUICE_CHECK(prefer_gpu(node, memory.address(), memory.size()));
	buffer shared(new svm_block(std::move(memory)));
	shared.block()->attach(std::make_unique<attachment>(&node));
	return shared;
}

result<void> attach_memory(gpu_node &node, const buffer &memory, bool as_object)
{
	if (!memory)
		return fail(errc::usage, node.name(), "no buffer to attach");
	memory_block &block = *memory.block();
	std::scoped_lock alone(node.attach_lock);

	if (block.attached(&node) || object_of(node, block))
		return {};
	if (block.kind_ == memory::vram)
		return attach_object(node, block);
	if (node.shares() && !as_object)
		return attach_shared(node, block);
	if (block.kind_ == memory::svm)
		return fail(errc::unsupported, node.name(),
			    "shared memory is out "
			    "of its reach");
	return attach_object(node, block);
}

const gem_mapping *object_of(gpu_node &node, memory_block &block) noexcept
{
	if (block.kind_ == memory::vram) {
		const auto &own = static_cast<vram_block &>(block).object();

		if (&own.node() == &node)
			return &own;
	}
	return dynamic_cast<const gem_mapping *>(block.attached(&node));
}

// Without privileges, an entry that is not present shows only as "swapped". Memory in a
// GPU is such an entry, and mincore() says that it is there. Memory in swap is one too,
// and mincore() says that it is not, unless the swap cache has it still: nothing tells such
// a page from one in a GPU.
result<size_t> misplaced_pages(uint64_t address, size_t size, bool in_gpu) noexcept
{
	constexpr uint64_t swapped = uint64_t{1} << 62;
	constexpr size_t at_once = 512;
	unique_fd map(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
	std::array<uint64_t, at_once> entries;
	std::array<unsigned char, at_once> there;
	size_t misplaced = 0;

	if (!map)
		return fail_errno("/proc/self/pagemap", "cannot be opened");
	for (size_t done = 0; done < size;) {
		size_t n = std::min((size - done) / page_size, at_once);
		auto at = address + done;
		auto bytes = static_cast<ssize_t>(n * sizeof(entries[0]));

		if (::pread(map.get(), entries.data(), static_cast<size_t>(bytes),
			    static_cast<off_t>(at / page_size * 8)) != bytes)
			return fail_errno("/proc/self/pagemap", "read");
		if (::mincore(reinterpret_cast<void *>(at), n * page_size,
			      there.data()) < 0)
			return fail_errno("buffer", "mincore");
		for (size_t i = 0; i < n; i++)
			misplaced +=
				in_gpu != ((entries[i] & swapped) && (there[i] & 1));
		done += n * page_size;
	}
	return misplaced;
}

result<size_t> try_to_move(gpu_node &node, uint64_t address, size_t size, bool to_gpu)
{
	const kfd_ioctl_svm_attribute where{KFD_IOCTL_SVM_ATTR_PREFETCH_LOC,
					    to_gpu ? node.what.kfd_id : 0};

	SLUICE_CHECK(set_svm(node, address, size, {&where, 1}));
	return misplaced_pages(address, size, to_gpu);
}

// Migration is best effort: a page that is held for a moment stays behind, and only a
// look at where the pages are tells. Then retry, for about a second; a page that does
// not move by then is held for good.
result<void> move_pages(gpu_node &node, uint64_t address, size_t size, bool to_gpu)
{
	using namespace std::chrono_literals;

	for (auto pause = 1ms;; pause *= 2) {
		SLUICE_TRY(size_t left, try_to_move(node, address, size, to_gpu));
		if (!left)
			return {};
		if (pause > 512ms)
			return fail(errc::device, node.name(),
				    std::to_string(left) +
					    " pages do not migrate: "
					    "somebody holds them, or there is no room",
				    EBUSY);
		std::this_thread::sleep_for(pause);
	}
}

result<void> move_pages_of(gpu_node &node, const slice &memory, bool to_gpu)
{
	uint64_t start = memory.address() & ~(page_size - 1);

	return move_pages(node, start,
			  round_to_pages(memory.address() + memory.size()) - start,
			  to_gpu);
}

} // namespace sluice::detail
