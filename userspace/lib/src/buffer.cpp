// SPDX-License-Identifier: MIT
#include "sluice/buffer.hpp"

#include <cstdio>
#include <fcntl.h>
#include <new>
#include <numaif.h>
#include <sys/mman.h>

namespace sluice {

namespace {

constexpr size_t huge_page = size_t{2} << 20;

/// Anonymous memory at a multiple of the huge page size.
class host_block : public detail::memory_block {
public:
	host_block(void *map, size_t map_size, std::byte *data, size_t size) noexcept
		: memory_block(memory::host, data, size), map_(map), map_size_(map_size)
	{
	}
	~host_block() override { ::munmap(map_, map_size_); }

private:
	void *map_;
	size_t map_size_;
};

result<buffer> map_host(size_t size)
{
	size_t whole = round_to_pages(size), map_size = whole + huge_page;

	if (whole < size || map_size < whole)
		return fail(errc::usage, "buffer", "too large");
	void *map = ::mmap(nullptr, map_size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return fail_errno("buffer", "mmap");
	auto start = reinterpret_cast<uintptr_t>(map);
	start = (start + huge_page - 1) & ~(huge_page - 1);
	return buffer(new host_block(map, map_size,
				     reinterpret_cast<std::byte *>(start), whole));
}

// Prefer the node, so that a lack of memory there does not kill a process;
// verify_node() says whether it worked.
result<void> place_on_node(const buffer &memory, int node)
{
	constexpr size_t bits = 8 * sizeof(unsigned long), words = 16;
	unsigned long mask[words] = {};
	auto n = static_cast<size_t>(node);

	if (node < 0 || n >= bits * words)
		return fail(errc::device, "NUMA", "there is no such node");
	mask[n / bits] = 1ul << n % bits;
	if (::mbind(memory.data(), memory.size(), MPOL_PREFERRED, mask, bits * words,
		    0) < 0)
		return fail_errno("NUMA", "mbind", errno, errc::device);
	if (::madvise(memory.data(), memory.size(), MADV_POPULATE_WRITE) < 0)
		return fail_errno("buffer", "populate");
	return {};
}

} // namespace

const char *name(memory kind) noexcept
{
	switch (kind) {
	case memory::host: return "host";
	case memory::svm: return "svm";
	case memory::vram: return "vram";
	}
	return "?";
}

result<buffer> buffer::host(size_t size, host_options options)
{
	if (size == 0)
		return fail(errc::usage, "buffer", "a size of 0");
	auto memory = map_host(size);
	if (!memory)
		return memory;
	if (options.huge_pages)
		::madvise(memory->data(), memory->size(), MADV_HUGEPAGE);
	if (options.numa_node != -1)
		if (auto placed = place_on_node(*memory, options.numa_node); !placed)
			return std::unexpected(placed.error());
	return memory;
}

result<std::vector<int>> buffer::nodes() const
{
	size_t pages = size() / page_size;
	std::vector<void *> addresses(pages);
	std::vector<int> status(pages, -1);

	for (size_t i = 0; i < pages; i++)
		addresses[i] = data() + i * page_size;
	// Without a list of nodes it moves nothing and says where they are.
	if (::move_pages(0, pages, addresses.data(), nullptr, status.data(), 0) < 0)
		return fail_errno("buffer", "move_pages");
	for (int &node : status)
		node = std::max(node, -1);
	return status;
}

result<unique_fd> buffer::export_dmabuf() const
{
	if (!block_)
		return fail(errc::usage, "buffer", "no buffer to export");
	if (kind() != memory::vram)
		return fail(errc::unsupported, "buffer",
			    "only video memory is a "
			    "dma-buf; take it from device::vram()");
	int own = block_->dmabuf();
	unique_fd copy(own < 0 ? -1 : ::fcntl(own, F_DUPFD_CLOEXEC, 0));
	if (!copy)
		return fail_errno("buffer", "export as a dma-buf", errno, errc::device);
	return copy;
}

result<void> buffer::verify_node(int node) const
{
	auto where = nodes();

	if (!where)
		return std::unexpected(where.error());
	for (size_t i = 0; i < where->size(); i++)
		if ((*where)[i] != node) {
			char text[80];

			std::snprintf(text, sizeof(text),
				      "page %zu is on node %d, not on %d", i,
				      (*where)[i], node);
			return std::unexpected(error(errc::device, "buffer", text)
						       .at(static_cast<uint32_t>(i)));
		}
	return {};
}

} // namespace sluice
