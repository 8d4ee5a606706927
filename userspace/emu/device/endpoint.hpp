// SPDX-License-Identifier: MIT
// One GPU on the bus: the model, its BARs and configuration space, its engine
// threads, and the session with QEMU.
#pragma once

#include "fabric.hpp"
#include "gpu.hpp"
#include "irq_gate.hpp"
#include "session.hpp"

#include <condition_variable>
#include <string>
#include <thread>

namespace sluice::emu {

struct EndpointConfig {
	unsigned index = 0;
	std::string socket;
	u64 vram = 1ull << 30;
	std::string vram_file; ///< file for the memory; empty: one without a name
	Log verbosity = Log::info;
	std::string monitor; ///< QEMU's; empty: none
	bool poison = false;
	GpuConfig gpu;
};

// Memory shared with QEMU.
class SharedMemory {
public:
	/// @param path file that backs it; empty: one without a name
	SharedMemory(u64 size, const std::string &path);
	~SharedMemory();
	SharedMemory(const SharedMemory &) = delete;
	SharedMemory &operator=(const SharedMemory &) = delete;

	bytes span() const { return {at_, size_}; }
	int fd() const { return fd_.get(); }

private:
	u64 size_;
	vfio::unique_fd fd_;
	std::byte *at_;
};

class Endpoint final : public vfio::Device, public vfio::BarTarget, public Host {
public:
	Endpoint(const EndpointConfig &config, vfio::Fabric &fabric);
	~Endpoint() override;

	// Accepts one client after another until stop().
	void serve();
	void stop();

	Gpu &gpu() { return gpu_; }
	IrqGate &irq_gate() { return gate_; }
	unsigned index() const { return config_.index; }
	// As if pulled out of its slot: vanish() makes it dead, then
	// empty_slot() reports the slot empty, or returns why it cannot.
	void vanish();
	std::string empty_slot();
	bool removed() const { return removed_; }

	// vfio::Device
	const vfio::RegionDescription &region(u32 index) const override;
	void region_read(u32 index, u64 offset, bytes out) override;
	void region_write(u32 index, u64 offset, const_bytes in) override;
	void device_reset() override;
	vfio::DmaMap &dma() override { return dma_; }
	vfio::Irq &irq() override { return irq_; }

	// vfio::BarTarget
	bool bar_read(unsigned bar, u64 offset, bytes out) override;
	bool bar_write(unsigned bar, u64 offset, const_bytes in) override;
	bool bar_update(unsigned bar, u64 offset, unsigned size, const AtomicUpdate &fn,
			u64 &old) override;

	// Host
	Path read(u64 address, bytes out) override;
	Path write(u64 address, const_bytes in) override;
	Path update(u64 address, unsigned size, const AtomicUpdate &fn,
		    u64 &old) override;
	void interrupt() override;
	u64 now() override;
	void log(Log level, std::string_view text) override;
	void kick() override;

private:
	void build_config();
	void config_written(u32 offset, u64 length);
	void place_bars();
	void leave_hive();
	void mmio_read(u64 offset, bytes out);
	void mmio_write(u64 offset, const_bytes in);
	bool may_dma() const;
	Path transfer(u64 address, std::byte *at, u64 n, bool write);
	Path transfer_once(u64 address, std::byte *at, u64 n, bool write, u64 &length);
	bool by_message(u64 address, std::byte *at, u64 n, bool write);

	template <class Step>
	void engine_loop(const std::stop_token &stop, Chaos *chaos,
			 const EngineFaults *faults, Step step);
	void start_engines();
	void wait_for_work(u64 seen, unsigned idle_rounds, bool blocked,
			   const std::stop_token &stop);

	EndpointConfig config_;
	vfio::Fabric &fabric_;
	SharedMemory vram_;
	vfio::PciConfig pci_;
	vfio::DmaMap dma_;
	vfio::Irq irq_;
	IrqGate gate_;
	std::array<vfio::RegionDescription, vfio::region_count> regions_;
	std::atomic<bool> removed_{false}, stopping_{false}, master_{false};

	std::mutex wake_lock_;
	std::condition_variable_any wake_;
	u64 kicks_ = 0;

	std::mutex session_lock_;
	std::shared_ptr<vfio::Session> session_;
	vfio::unique_fd listener_;
	Gpu gpu_;
	std::vector<std::jthread> threads_; // last: they use all of the above
};

} // namespace sluice::emu
