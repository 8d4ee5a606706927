// SPDX-License-Identifier: MIT
// The endpoint as QEMU sees it: sockets, regions, configuration space.
#include "endpoint.hpp"

#include "monitor.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <format>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

namespace sluice::emu {

using namespace vfio;

namespace {
constexpr u64 doorbell_bytes = 2 << 20, register_bytes = reg::count * 4ull;
constexpr unsigned bar_vram = 0, bar_doorbell = 2, bar_registers = 5;
constexpr std::array<u32, irq_count> irq_vectors{0, 1, 0, 1, 1};
constexpr u16 vendor = 0x1002, device_id = 0x74a1;
} // namespace

SharedMemory::SharedMemory(u64 size, const std::string &path)
	: size_(size),
	  fd_(path.empty() ? memfd_create("vram", MFD_CLOEXEC)
			   : open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC,
				  0600))
{
	if (!fd_ || ftruncate(fd_.get(), static_cast<off_t>(size)))
		throw std::system_error(errno, std::generic_category(), "vram");
	void *p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
	if (p == MAP_FAILED)
		throw std::system_error(errno, std::generic_category(), "vram");
	at_ = static_cast<std::byte *>(p);
}

SharedMemory::~SharedMemory()
{
	munmap(at_, size_);
}

Endpoint::Endpoint(const EndpointConfig &config, Fabric &fabric)
	: config_(config), fabric_(fabric), vram_(config.vram, config.vram_file),
	  irq_(irq_vectors), gate_([this] { irq_.raise(0); }),
	  listener_(listen_at(config.socket)), gpu_(config.gpu, vram_.span(), *this)
{
	regions_[bar_vram].size = config.vram;
	// with the shadow, every access must pass the host data path
	if (!config.gpu.hdp_shadow)
		regions_[bar_vram].fd = vram_.fd();
	regions_[bar_doorbell].size = doorbell_bytes;
	regions_[bar_registers].size = register_bytes;
	regions_[region_config].size = PciConfig::size;
	build_config();
	if (Hive *hive = config.gpu.member.hive)
		hive->join(config.gpu.member.node, gpu_.vram());
	if (config.poison)
		gpu_.vram().poison(0, config.vram);
	start_engines();
}

Endpoint::~Endpoint()
{
	leave_hive();
	stop();
	for (std::jthread &t : threads_)
		t.request_stop();
	kick();
}

// Offsets of the capabilities are as on the part.
void Endpoint::build_config()
{
	constexpr u32 pm = 0x50, pcie = 0x64, msi = 0xa0;

	pci_.put(0x00, vendor, 2);
	pci_.put(0x02, device_id, 2);
	pci_.put(0x04, 0, 2, 0x0547);
	pci_.put(0x08, 0x12000000, 4); // processing accelerator
	pci_.put(0x0c, 0, 1, 0xff);
	pci_.put(0x2c, vendor, 2);
	pci_.put(0x2e, device_id, 2);
	pci_.put(0x3c, 0, 1, 0xff);
	// No INTx pin: QEMU takes the BAR mappings away while INTx is on.
	pci_.bar(bar_vram, config_.vram, PciConfig::memory64_prefetchable);
	pci_.bar(bar_doorbell, doorbell_bytes, PciConfig::memory64_prefetchable);
	pci_.bar(bar_registers, register_bytes, PciConfig::memory32);

	pci_.capability(0x01, pm);
	pci_.put(pm + 2, 0x0003, 2);
	pci_.put(pm + 4, 0x0008, 2, 0x8103); // no soft reset
	pci_.capability(0x10, pcie);
	pci_.put(pcie + 2, 0x0002, 2); // endpoint, version 2
	pci_.put(pcie + 4, 0x00008fa1, 4);
	pci_.put(pcie + 8, 0x2910, 2, 0x7fff);
	pci_.put(pcie + 0x0c, 0x00000105, 4); // 32 GT/s, x16
	pci_.put(pcie + 0x10, 0, 2, 0x0fff);
	pci_.put(pcie + 0x12, 0x1105, 2);
	pci_.capability(0x05, msi);
	pci_.put(msi + 2, 0x0080, 2, 0x0001); // one vector, 64 bits
	pci_.put(msi + 4, 0, 4, 0xfffffffc);
	pci_.put(msi + 8, 0, 4, 0xffffffff);
	pci_.put(msi + 12, 0, 2, 0xffff);
	// Vendor-specific and empty: without any extended capability the driver
	// considers extended configuration space unreachable.
	pci_.put(0x100, 0x0001000b, 4);
	pci_.put(0x104, 0x01000000, 4);
}

void Endpoint::serve()
{
	while (!stopping_) {
		unique_fd client = accept_at(listener_);
		if (!client)
			return;
		log(Log::info, "client connected");
		auto session = std::make_shared<Session>(std::move(client), *this);
		{
			std::lock_guard guard(session_lock_);
			if (stopping_) // which stop() could not tell this one
				return;
			session_ = session;
		}
		session->run();
		{
			std::lock_guard guard(session_lock_);
			session_.reset();
		}
		log(Log::info, "client gone");
		device_reset();
		dma_.clear();
		irq_.clear();
	}
}

void Endpoint::stop()
{
	stopping_ = true;
	::shutdown(listener_.get(), SHUT_RDWR);
	std::lock_guard guard(session_lock_);
	if (session_)
		session_->stop();
}

const RegionDescription &Endpoint::region(u32 index) const
{
	return regions_[index];
}

void Endpoint::region_read(u32 index, u64 offset, bytes out)
{
	if (removed_) {
		std::ranges::fill(out, std::byte{0xff});
		return;
	}
	switch (index) {
	case bar_vram: gpu_.vram().host_read(offset, out); break;
	case bar_registers: mmio_read(offset, out); break;
	case region_config: pci_.read(static_cast<u32>(offset), out); break;
	default: std::ranges::fill(out, std::byte{0}); break;
	}
}

void Endpoint::region_write(u32 index, u64 offset, const_bytes in)
{
	u64 value = 0;

	if (removed_)
		return;
	switch (index) {
	case bar_vram: gpu_.vram().host_write(offset, in); break;
	case bar_registers: mmio_write(offset, in); break;
	case bar_doorbell:
		if (in.size() != 4 && in.size() != 8)
			break;
		std::memcpy(&value, in.data(), in.size());
		gpu_.doorbell(offset, value, static_cast<unsigned>(in.size()));
		break;
	case region_config:
		if (pci_.write(static_cast<u32>(offset), in))
			config_written(static_cast<u32>(offset), in.size());
		break;
	}
}

void Endpoint::mmio_read(u64 offset, bytes out)
{
	for (u64 i = 0; i < out.size();) {
		u64 at = offset + i, in_word = at % 4;
		u64 n = std::min<u64>(4 - in_word, out.size() - i);
		u32 v = gpu_.mmio_read(static_cast<u32>(at / 4));
		std::ranges::copy(as_const_bytes(v).subspan(in_word, n),
				  out.begin() + static_cast<std::ptrdiff_t>(i));
		i += n;
	}
}

// Whole words only: the part's registers take nothing else.
void Endpoint::mmio_write(u64 offset, const_bytes in)
{
	if (!aligned(offset | in.size(), 4)) {
		log(Log::warning, std::format("register write of {} bytes at {:#x}",
					      in.size(), offset));
		return;
	}
	for (u64 i = 0; i < in.size(); i += 4) {
		u32 v;
		std::memcpy(&v, in.data() + i, 4);
		gpu_.mmio_write(static_cast<u32>((offset + i) / 4), v);
	}
}

// Turning bus mastering off is how the driver's reset begins; a part that may
// not reach memory has to stop anyway. Until the reset comes, engines may find that
// they read nothing any more: that stops their queues (Path::off).
void Endpoint::config_written(u32 offset, u64 length)
{
	bool master = pci_.bus_master();

	if (offset < 0x28 && offset + length > 4)
		place_bars();
	if (master == master_.exchange(master))
		return;
	if (!master) {
		gpu_.reset();
		if (config_.poison)
			gpu_.vram().poison(0, config_.vram);
	} else {
		kick();
	}
}

void Endpoint::place_bars()
{
	for (unsigned bar : {bar_vram, bar_doorbell}) {
		u64 address = pci_.bar_address(bar);
		if (pci_.memory_enabled() && address)
			fabric_.place(*this, bar, address, regions_[bar].size);
		else
			fabric_.remove(*this, bar);
	}
}

void Endpoint::device_reset()
{
	const u16 off = 0;

	log(Log::info, "device reset");
	pci_.write(4, as_const_bytes(off));
	master_ = false;
	fabric_.remove(*this);
	gpu_.power_on();
	if (config_.poison)
		gpu_.vram().poison(0, config_.vram);
}

void Endpoint::vanish()
{
	log(Log::info, "vanishes");
	removed_ = true;
	fabric_.remove(*this);
	leave_hive();
	gpu_.reset();
	master_ = false;
}

void Endpoint::leave_hive()
{
	const HiveMember &m = config_.gpu.member;

	if (m.hive)
		m.hive->leave(m.node);
}

std::string Endpoint::empty_slot()
{
	if (config_.monitor.empty())
		return "no monitor";
	return unplug(config_.monitor, std::format("gpu{}", config_.index));
}

bool Endpoint::bar_read(unsigned bar, u64 offset, bytes out)
{
	if (removed_ || bar != bar_vram)
		return false;
	gpu_.vram().host_read(offset, out);
	return true;
}

bool Endpoint::bar_write(unsigned bar, u64 offset, const_bytes in)
{
	if (removed_ || bar != bar_vram)
		return false;
	gpu_.vram().host_write(offset, in);
	return true;
}

bool Endpoint::bar_update(unsigned bar, u64 offset, unsigned size,
			  const AtomicUpdate &fn, u64 &old)
{
	std::byte *at = gpu_.vram().device(offset, size);

	if (removed_ || bar != bar_vram || !at)
		return false;
	old = update_word(at, size, fn);
	return true;
}

void Endpoint::log(Log level, std::string_view text)
{
	static constexpr const char *names[]{"error", "warning", "notice", "info",
					     "debug"};

	if (level > config_.verbosity)
		return;
	std::string line = std::format("[{:12.6f}] gpu{} {}: {}\n",
				       static_cast<double>(now()) / 1e9, config_.index,
				       names[static_cast<unsigned>(level)], text);
	std::fwrite(line.data(), 1, line.size(), stderr);
}

} // namespace sluice::emu
