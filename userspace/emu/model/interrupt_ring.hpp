// SPDX-License-Identifier: MIT
// The interrupt handler (OSSSYS): a ring of 32-byte entries in host memory, a
// write pointer copied beside it, one MSI; and the CAM that keeps one retry
// fault per page until the driver has answered it.
#pragma once

#include "register_file.hpp"
#include "stats.hpp"

#include <array>
#include <map>
#include <mutex>
#include <optional>

namespace sluice::emu {

struct Interrupt {
	u32 client = 0, source = 0, ring = 0, vmid = 0;
	u32 vmid_source = 0; // 0: graphics, 1: multimedia hub
	u32 pasid = 0, node = 0;
	std::array<u32, 4> data{};
};

namespace ih_client {
constexpr u32 vmc = 0x12, utcl2 = 0x1b;
constexpr std::array<u32, 4> sdma{8, 9, 1, 4};
} // namespace ih_client

class InterruptRing {
public:
	static constexpr u32 entry_size = 32;

	InterruptRing(RegisterFile &regs, Host &host, Stats &stats);

	void push(const Interrupt &irq);

	// A new retry fault gets a CAM index; one already there gets none, and
	// neither does any while the CAM is full.
	std::optional<u32> cam_enter(u32 vmid, u64 page, bool write);
	void cam_leave(u32 index);

	// A doorbell write for the ring or the CAM. False: for neither.
	bool doorbell(u32 dword, u32 value);
	void reset();

private:
	static constexpr u32 cam_entries = 1024;

	// Where the next entry goes, and in which setup of the ring.
	struct Place {
		u64 setup;
		bool enabled;
		u32 mask;
		u64 base;
		u32 wptr;
	};

	void write_cntl(u32 value);
	Place next_place();
	std::optional<u32> advance(const Place &p);
	void publish_wptr(u32 wptr);

	RegisterFile &regs_;
	Host &host_;
	Stats &stats_;
	// Writing memory may be slow, and may wait for the thread that writes
	// our registers. So only this lock, which orders the threads that push,
	// is held meanwhile; no register access takes it.
	std::mutex push_lock_;
	std::mutex state_lock_, cam_lock_; // held briefly
	u64 setups_ = 0;
	std::map<std::pair<u64, bool>, u32> cam_;
	u32 next_cam_ = 0;
};

} // namespace sluice::emu
