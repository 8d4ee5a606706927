// SPDX-License-Identifier: MIT
#include "dispatcher.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <format>
#include <string_view>

namespace sluice::emu::vfio {

namespace {

constexpr u32 device_reset_flag = 1, device_pci_flag = 2;
constexpr u32 info_read = 1, info_write = 2, info_mmap = 4, info_caps = 8;
constexpr u16 sparse_id = 1, sparse_version = 1;

Reply fail(int error)
{
	Reply r;
	r.error = error;
	return r;
}

template <class T> Reply reply(const T &v)
{
	Reply r;
	append(r.data, v);
	return r;
}

// The one number of the client's capabilities that matters here. A full JSON
// parser would be more code that untrusted bytes reach.
u32 find_number(std::string_view json, std::string_view key, u32 fallback)
{
	auto at = json.find(key);
	u32 value;

	if (at == json.npos)
		return fallback;
	json.remove_prefix(at + key.size());
	auto digit = json.find_first_of("0123456789");
	if (digit == json.npos || json.find_first_not_of("\": \t\n\r") != digit)
		return fallback;
	auto [end, error] =
		std::from_chars(json.data() + digit, json.data() + json.size(), value);
	return error == std::errc() ? value : fallback;
}

} // namespace

Reply Dispatcher::version(const_bytes p)
{
	Version v;
	Reply r;

	if (agreed_ || !take(p, v))
		return fail(EINVAL);
	if (v.major != 0)
		return fail(ENOTSUP);
	if (!p.empty()) {
		std::string_view json(reinterpret_cast<const char *>(p.data()),
				      p.size());
		if (json.find('\0') != json.size() - 1)
			return fail(EINVAL);
		peer_transfer_ = std::clamp(
			find_number(json, "\"max_data_xfer_size\"", max_dma_message),
			4096u, max_dma_message);
	}
	agreed_ = true;
	append(r.data, v);
	std::string json = std::format(
		R"({{"capabilities":{{"max_msg_fds":{},"max_data_xfer_size":{},)"
		R"("max_dma_maps":65535,"pgsizes":4096,"write_multiple":false}}}})",
		max_fds, max_transfer);
	auto text = std::as_bytes(std::span(json.c_str(), json.size() + 1));
	r.data.insert(r.data.end(), text.begin(), text.end());
	return r;
}

Reply Dispatcher::device_info(const_bytes p)
{
	DeviceInfo info;

	if (!take(p, info) || info.argsz < sizeof(info))
		return fail(EINVAL);
	return reply(DeviceInfo{sizeof(info), device_reset_flag | device_pci_flag,
				region_count, irq_count});
}

// A client asks with room for the plain structure first, learns from argsz
// how much it needs for the list of areas, and asks again. The file goes with
// the complete answer only.
Reply Dispatcher::region_info(const_bytes p)
{
	RegionInfo q;

	if (!take(p, q) || q.argsz < sizeof(q) || q.index >= region_count)
		return fail(EINVAL);
	const RegionDescription &d = device_.region(q.index);
	RegionInfo info{sizeof(info), 0, q.index, 0, d.size, 0};
	if (d.size)
		info.flags = info_read | (d.writable ? info_write : 0) |
			     (d.fd >= 0 ? info_mmap : 0);
	bool sparse = d.fd >= 0 && !d.areas.empty();
	if (sparse) {
		info.flags |= info_caps;
		info.cap_offset = sizeof(info);
		info.argsz += static_cast<u32>(sizeof(SparseCapability) +
					       d.areas.size() * sizeof(Area));
	}
	Reply r = reply(info);
	if (q.argsz < info.argsz)
		return r;
	if (sparse) {
		append(r.data, SparseCapability{sparse_id, sparse_version, 0,
						static_cast<u32>(d.areas.size()), 0});
		for (const Area &a : d.areas)
			append(r.data, a);
	}
	r.fd = d.fd;
	return r;
}

Reply Dispatcher::irq_info(const_bytes p)
{
	IrqInfo q;

	if (!take(p, q) || q.argsz < sizeof(q) || q.index >= irq_count)
		return fail(EINVAL);
	Irq &irq = device_.irq();
	return reply(
		IrqInfo{sizeof(q), irq.flags(q.index), q.index, irq.vectors(q.index)});
}

Reply Dispatcher::set_irqs(const_bytes p, std::vector<unique_fd> &fds)
{
	IrqSet q;

	if (!take(p, q))
		return fail(EINVAL);
	return fail(device_.irq().set(q, p, fds));
}

Reply Dispatcher::map(const_bytes p, std::vector<unique_fd> &fds)
{
	DmaMapRequest q;

	if (!take(p, q) || !p.empty() || fds.size() > 1)
		return fail(EINVAL);
	return fail(
		device_.dma().map(q, fds.empty() ? unique_fd() : std::move(fds[0])));
}

Reply Dispatcher::unmap(const_bytes p)
{
	DmaUnmapRequest q;

	if (!take(p, q))
		return fail(EINVAL);
	if (int error = device_.dma().unmap(q))
		return fail(error);
	return reply(q);
}

bool Dispatcher::in_region(const RegionAccess &a) const
{
	if (a.region >= region_count || !a.count || a.count > max_transfer)
		return false;
	u64 size = device_.region(a.region).size;
	return a.offset <= size && a.count <= size - a.offset;
}

Reply Dispatcher::read(const_bytes p)
{
	RegionAccess a;

	if (!take(p, a) || !in_region(a))
		return fail(EINVAL);
	Reply r = reply(a);
	r.data.resize(sizeof(a) + a.count);
	device_.region_read(a.region, a.offset, bytes(r.data).subspan(sizeof(a)));
	return r;
}

Reply Dispatcher::write(const_bytes p)
{
	RegionAccess a;

	if (!take(p, a) || !in_region(a) || p.size() != a.count)
		return fail(EINVAL);
	if (!device_.region(a.region).writable)
		return fail(EPERM);
	device_.region_write(a.region, a.offset, p);
	return reply(a);
}

Reply Dispatcher::handle(const Header &h, const_bytes p, std::vector<unique_fd> &fds)
{
	switch (static_cast<Command>(h.command)) {
	case Command::version: return version(p);
	case Command::dma_map: return map(p, fds);
	case Command::dma_unmap: return unmap(p);
	case Command::device_info: return device_info(p);
	case Command::region_info: return region_info(p);
	case Command::irq_info: return irq_info(p);
	case Command::set_irqs: return set_irqs(p, fds);
	case Command::region_read: return read(p);
	case Command::region_write: return write(p);
	case Command::device_reset: device_.device_reset(); return {};
	default: return fail(ENOSYS);
	}
}

} // namespace sluice::emu::vfio
