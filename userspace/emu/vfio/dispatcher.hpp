// SPDX-License-Identifier: MIT
// From a request to its reply: all of the protocol that needs no socket, and
// so what the fuzzer feeds.
#pragma once

#include "device.hpp"

namespace sluice::emu::vfio {

struct Reply {
	int error = 0; // errno
	std::vector<std::byte> data;
	int fd = -1; // borrowed
};

class Dispatcher {
public:
	explicit Dispatcher(Device &device) : device_(device) {}

	Reply handle(const Header &header, const_bytes payload,
		     std::vector<unique_fd> &fds);
	// How much the client said it accepts in one message. From any thread:
	// threads that do DMA do not wait for the client to say so.
	u32 peer_transfer() const { return peer_transfer_; }

private:
	Reply version(const_bytes payload);
	Reply device_info(const_bytes payload);
	Reply region_info(const_bytes payload);
	Reply irq_info(const_bytes payload);
	Reply set_irqs(const_bytes payload, std::vector<unique_fd> &fds);
	Reply map(const_bytes payload, std::vector<unique_fd> &fds);
	Reply unmap(const_bytes payload);
	Reply read(const_bytes payload);
	Reply write(const_bytes payload);
	bool in_region(const RegionAccess &a) const;

	Device &device_;
	std::atomic<u32> peer_transfer_{max_dma_message};
	bool agreed_ = false;
};

} // namespace sluice::emu::vfio
