// SPDX-License-Identifier: MIT
// Memory that GPUs reach: how it is made, mapped and moved.
#pragma once

#include <mutex>

#include "gpu_node.hpp"
#include "sluice/buffer.hpp"

namespace sluice::detail {

/// Addresses of the process that are unused, and that nothing else can take.
class reserved_range {
public:
	reserved_range() noexcept = default;
	reserved_range(reserved_range &&other) noexcept
		: start_(std::exchange(other.start_, nullptr)), size_(other.size_)
	{
	}
	reserved_range &operator=(reserved_range &&other) noexcept
	{
		std::swap(start_, other.start_);
		std::swap(size_, other.size_);
		return *this;
	}
	~reserved_range();

	static result<reserved_range> make(size_t size) noexcept;
	std::byte *data() const noexcept;

private:
	std::byte *start_ = nullptr;
	size_t size_ = 0;
};

/// Map an object at addresses that the process does not use.
result<reserved_range> map_somewhere(gem_mapping &object, size_t size);
/// Let the CPU reach it, at the same addresses.
result<void> map_for_cpu(const gem_mapping &object, const reserved_range &range,
			 size_t size);

/// Video memory.
class vram_block : public memory_block {
public:
	/// @param seen the CPU may touch it
	vram_block(gpu_node &node, reserved_range range,
		   std::unique_ptr<gem_mapping> object, size_t size,
		   bool seen) noexcept;
	int dmabuf() noexcept override;
	bool mapped() const noexcept override { return seen_; }
	const gem_mapping &object() const noexcept { return *object_; }

private:
	gpu_node &node_;
	// Unmapped before the addresses are released.
	reserved_range range_;
	std::unique_ptr<gem_mapping> object_;
	std::mutex lock_;
	unique_fd dmabuf_;
	const bool seen_;
};

result<buffer> make_vram(gpu_node &node, size_t size);
/// Memory of another driver or process.
result<buffer> import_dmabuf(gpu_node &node, int dmabuf);
/// Memory of the process that prefers to be in the GPU; not moved there yet.
result<buffer> make_svm(gpu_node &node, size_t size);

/// Let the GPU reach it in place.
/// @param as_object host memory as an object of the file, which AMDGPU_CS needs,
///	instead of by sharing
result<void> attach_memory(gpu_node &node, const buffer &memory, bool as_object);
/// The object of that memory in the node's file, or nullptr.
const gem_mapping *object_of(gpu_node &node, memory_block &block) noexcept;

/// Does the GPU share memory of the process? errc::unsupported.
result<void> can_share(const gpu_node &node) noexcept;
/// Have the GPU share memory of the process, which prefers to be there from now on.
result<void> prefer_gpu(gpu_node &node, uint64_t address, size_t size) noexcept;
/// Of shared memory, bring back only pages that the CPU touches. By default amdkfd
/// brings back all of a range that are in the same 2 MiB.
result<void> return_by_page(gpu_node &node, uint64_t address, size_t size) noexcept;

/// Move pages to the GPU, or to the host. Returns how many are elsewhere afterwards.
/// @param address, size whole pages
result<size_t> try_to_move(gpu_node &node, uint64_t address, size_t size, bool to_gpu);
/// Move all of the pages there. Retried for about a second.
/// @param address, size whole pages
result<void> move_pages(gpu_node &node, uint64_t address, size_t size, bool to_gpu);
/// The same for pages that a slice touches.
result<void> move_pages_of(gpu_node &node, const slice &memory, bool to_gpu);

/// How many pages are not where they are wanted: in any GPU, or in the host.
result<size_t> misplaced_pages(uint64_t address, size_t size, bool in_gpu) noexcept;

} // namespace sluice::detail
