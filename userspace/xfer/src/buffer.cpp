// SPDX-License-Identifier: MIT
#include "xfer/buffer.hpp"

#include <cstdint>
#include <sys/mman.h>

namespace xfer {

Buffer::Buffer(size_t size, size_t align) : map_size_(size + align), size_(size)
{
	map_ = ::mmap(nullptr, map_size_, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map_ == MAP_FAILED)
		throw system_error("mmap of " + std::to_string(size) + " bytes");
	auto start = reinterpret_cast<uintptr_t>(map_);
	start = (start + align - 1) & ~(align - 1);
	data_ = reinterpret_cast<std::byte *>(start);
}

Buffer::~Buffer()
{
	::munmap(map_, map_size_);
}

result<void> Buffer::discard() const
{
	if (::madvise(data_, size_, MADV_DONTNEED) < 0)
		return fail_errno("madvise(MADV_DONTNEED)");
	return {};
}

} // namespace xfer
