// SPDX-License-Identifier: MIT
// vfio-user messages, as QEMU's docs/interop/vfio-user.rst defines them, and
// the only way this server looks into one: take(), which checks the length.
#pragma once

#include "sluice/unique_fd.hpp"
#include "types.hpp"

#include <vector>

namespace sluice::emu::vfio {

using sluice::unique_fd;

enum class Command : u16 {
	version = 1,
	dma_map,
	dma_unmap,
	device_info,
	region_info,
	region_io_fds,
	irq_info,
	set_irqs,
	region_read,
	region_write,
	dma_read,
	dma_write,
	device_reset,
};

struct Header {
	u16 id, command;
	u32 size, flags, error;
};
static_assert(sizeof(Header) == 16);

constexpr u32 flag_reply = 1, flag_type = 0xf, flag_no_reply = 0x10, flag_error = 0x20;

struct Version {
	u16 major, minor;
};
struct DmaMapRequest {
	u32 argsz, flags;
	u64 offset, address, size;
};
struct DmaUnmapRequest {
	u32 argsz, flags;
	u64 address, size;
};
struct DeviceInfo {
	u32 argsz, flags, regions, irqs;
};
struct RegionInfo {
	u32 argsz, flags, index, cap_offset;
	u64 size, offset;
};
struct SparseCapability {
	u16 id, version;
	u32 next, areas, reserved;
};
struct Area {
	u64 offset, size;
};
struct IrqInfo {
	u32 argsz, flags, index, count;
};
struct IrqSet {
	u32 argsz, flags, index, start, count;
};
struct RegionAccess {
	u64 offset;
	u32 region, count;
};
struct DmaAccess {
	u64 address, count;
};

enum Region : u32 {
	region_bar0 = 0,
	region_rom = 6,
	region_config = 7,
	region_vga = 8,
	region_count = 9
};
enum IrqIndex : u32 { irq_intx, irq_msi, irq_msix, irq_error, irq_request, irq_count };

constexpr u32 max_transfer = 1 << 20; // bytes of data in a message
constexpr u32 max_message = max_transfer + 4096;
constexpr bool frame_size_ok(u32 size)
{
	return size >= sizeof(Header) && size <= max_message;
}
constexpr unsigned max_fds = 16;
// QEMU hangs on a DMA_READ of 256 KiB; what it surely accepts:
constexpr u32 max_dma_message = 32 << 10;

// Move a T from the front of the payload; false if it is not all there.
template <class T> bool take(const_bytes &payload, T &out)
{
	if (payload.size() < sizeof(T))
		return false;
	std::memcpy(&out, payload.data(), sizeof(T));
	payload = payload.subspan(sizeof(T));
	return true;
}

template <class T> void append(std::vector<std::byte> &to, const T &v)
{
	auto b = as_const_bytes(v);
	to.insert(to.end(), b.begin(), b.end());
}

} // namespace sluice::emu::vfio
