// SPDX-License-Identifier: MIT
// Eventfds by which the device interrupts the guest.
#pragma once

#include "protocol.hpp"

#include <array>
#include <mutex>

namespace sluice::emu::vfio {

class Irq {
public:
	explicit Irq(const std::array<u32, irq_count> &vectors);

	u32 vectors(u32 index) const;
	u32 flags(u32 index) const;
	// SET_IRQS; data is what follows the request. An errno value.
	int set(const IrqSet &request, const_bytes data, std::vector<unique_fd> &fds);
	bool trigger(u32 index, u32 vector);
	// MSI-X if the guest uses it, else MSI; vector 0 if it has no other.
	bool raise(u32 vector);
	void clear();

private:
	int set_eventfds(const IrqSet &q, std::vector<unique_fd> &fds);
	int trigger_some(const IrqSet &q, const_bytes data);

	std::mutex lock_;
	std::array<std::vector<unique_fd>, irq_count> events_;
};

} // namespace sluice::emu::vfio
