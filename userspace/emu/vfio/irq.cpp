// SPDX-License-Identifier: MIT
#include "irq.hpp"

#include <cerrno>

namespace sluice::emu::vfio {

namespace {
constexpr u32 data_none = 1, data_bool = 2, data_eventfd = 4, data_all = 7;
constexpr u32 action_mask = 8, action_unmask = 16, action_trigger = 32, action_all = 56;
constexpr u32 info_eventfd = 1, info_maskable = 2, info_automasked = 4,
	      info_noresize = 8;
} // namespace

Irq::Irq(const std::array<u32, irq_count> &vectors)
{
	for (u32 i = 0; i < irq_count; i++)
		events_[i].resize(vectors[i]);
}

u32 Irq::vectors(u32 index) const
{
	return static_cast<u32>(events_[index].size());
}

u32 Irq::flags(u32 index) const
{
	switch (index) {
	case irq_intx: return info_eventfd | info_maskable | info_automasked;
	case irq_msi: return info_eventfd | info_noresize;
	default: return info_eventfd;
	}
}

// Eventfds without descriptors de-assign.
int Irq::set_eventfds(const IrqSet &q, std::vector<unique_fd> &fds)
{
	if (!fds.empty() && fds.size() != q.count)
		return EINVAL;
	for (u32 i = 0; i < q.count; i++)
		events_[q.index][q.start + i] =
			i < fds.size() ? std::move(fds[i]) : unique_fd();
	return 0;
}

int Irq::trigger_some(const IrqSet &q, const_bytes data)
{
	bool some = q.flags & data_bool;

	if (some && data.size() < q.count)
		return EINVAL;
	for (u32 i = 0; i < q.count; i++)
		if (!some || data[i] != std::byte{0})
			trigger(q.index, q.start + i);
	return 0;
}

int Irq::set(const IrqSet &q, const_bytes data, std::vector<unique_fd> &fds)
{
	u32 kind = q.flags & data_all, action = q.flags & action_all;

	if (q.argsz < sizeof(q) || q.flags & ~(data_all | action_all) ||
	    q.index >= irq_count)
		return EINVAL;
	if (q.start > vectors(q.index) || q.count > vectors(q.index) - q.start)
		return EINVAL;
	if (kind != data_none && kind != data_bool && kind != data_eventfd)
		return EINVAL;
	if (action == action_mask || action == action_unmask)
		return 0; // QEMU masks by itself
	if (action != action_trigger)
		return EINVAL;
	if (kind == data_none && q.count == 0) {
		std::lock_guard guard(lock_);
		for (unique_fd &e : events_[q.index])
			e = unique_fd();
		return 0;
	}
	if (kind != data_eventfd)
		return trigger_some(q, data);
	std::lock_guard guard(lock_);
	return set_eventfds(q, fds);
}

bool Irq::trigger(u32 index, u32 vector)
{
	std::lock_guard guard(lock_);
	const u64 one = 1;

	if (index >= irq_count || vector >= events_[index].size() ||
	    !events_[index][vector])
		return false;
	return ::write(events_[index][vector].get(), &one, sizeof(one)) == sizeof(one);
}

bool Irq::raise(u32 vector)
{
	for (u32 index : {irq_msix, irq_msi})
		if (trigger(index, vector) || (vector && trigger(index, 0)))
			return true;
	return false;
}

void Irq::clear()
{
	std::lock_guard guard(lock_);

	for (auto &index : events_)
		for (unique_fd &e : index)
			e = unique_fd();
}

} // namespace sluice::emu::vfio
