// SPDX-License-Identifier: MIT
#include "dma_map.hpp"

#include <algorithm>
#include <cerrno>
#include <mutex>

#include <sys/mman.h>
#include <sys/stat.h>

namespace sluice::emu::vfio {

namespace {
constexpr u32 map_readable = 1, map_writable = 2;
constexpr u32 unmap_dirty_bitmap = 1, unmap_all = 2;

// A mapping that ends beyond the file would kill us on the first access.
bool inside_file(int fd, u64 offset, u64 size)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	u64 length = static_cast<u64>(st.st_size);
	return offset <= length && size <= length - offset;
}
} // namespace

void DmaMap::Unmapper::operator()(std::byte *p) const
{
	munmap(p, size);
}

bool DmaMap::covers(const std::pair<const u64, Entry> &e, u64 address)
{
	return address - e.first < e.second.size;
}

bool DmaMap::overlaps(u64 address, u64 size) const
{
	auto next = entries_.lower_bound(address);

	if (next != entries_.end() && next->first - address < size)
		return true;
	if (next == entries_.begin())
		return false;
	return covers(*std::prev(next), address);
}

int DmaMap::map(const DmaMapRequest &q, unique_fd file)
{
	Entry e{q.size,
		(q.flags & map_readable) != 0,
		(q.flags & map_writable) != 0,
		{}};

	if (q.argsz < sizeof(q) || q.flags & ~(map_readable | map_writable))
		return EINVAL;
	if (!q.size || q.address + q.size < q.address ||
	    !aligned(q.address | q.size | q.offset, page_size))
		return EINVAL;
	std::unique_lock guard(lock_);
	if (overlaps(q.address, q.size))
		return EEXIST;
	if (file) {
		int prot = (e.readable ? PROT_READ : 0) | (e.writable ? PROT_WRITE : 0);
		if (!inside_file(file.get(), q.offset, q.size))
			return EINVAL;
		void *p = mmap(nullptr, q.size, prot, MAP_SHARED, file.get(),
			       static_cast<off_t>(q.offset));
		if (p == MAP_FAILED)
			return errno;
		e.memory = {static_cast<std::byte *>(p), Unmapper{q.size}};
	}
	entries_.emplace(q.address, std::move(e));
	return 0;
}

int DmaMap::unmap(const DmaUnmapRequest &q)
{
	if (q.argsz < sizeof(q) || q.flags & ~unmap_all)
		return q.flags & unmap_dirty_bitmap ? ENOTSUP : EINVAL;
	if (q.flags & unmap_all) {
		if (q.address || q.size)
			return EINVAL;
		clear();
		return 0;
	}
	// a range may end where the address space does
	if (!q.size || q.address + (q.size - 1) < q.address)
		return EINVAL;
	// exclusive: waits for every use() in flight
	std::unique_lock guard(lock_);
	auto first = entries_.lower_bound(q.address);
	auto last = first;
	while (last != entries_.end() && last->first - q.address < q.size) {
		if (last->second.size > q.size - (last->first - q.address))
			return EINVAL;
		++last;
	}
	// Nothing there is fine: under an IOMMU QEMU clears whole ranges.
	if (first != entries_.begin() && covers(*std::prev(first), q.address))
		return EINVAL;
	entries_.erase(first, last);
	return 0;
}

void DmaMap::clear()
{
	std::unique_lock guard(lock_);
	entries_.clear();
}

DmaMap::Kind DmaMap::use(u64 address, u64 n, bool write, u64 &length, const Use &fn)
{
	std::shared_lock guard(lock_);
	auto it = entries_.upper_bound(address);

	if (it == entries_.begin())
		return Kind::none;
	--it;
	u64 offset = address - it->first;
	const Entry &e = it->second;
	if (offset >= e.size || !(write ? e.writable : e.readable))
		return Kind::none;
	length = std::min(n, e.size - offset);
	if (!e.memory)
		return Kind::message;
	fn(e.memory.get() + offset, length);
	return Kind::memory;
}

size_t DmaMap::count() const
{
	std::shared_lock guard(lock_);
	return entries_.size();
}

} // namespace sluice::emu::vfio
