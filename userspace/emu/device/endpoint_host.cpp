// SPDX-License-Identifier: MIT
// The endpoint as the model sees it: DMA, interrupts, time, engine threads.
#include "endpoint.hpp"

#include <algorithm>
#include <chrono>
#include <format>

namespace sluice::emu {

using namespace vfio;

bool Endpoint::may_dma() const
{
	return master_ && !removed_;
}

bool Endpoint::by_message(u64 address, std::byte *at, u64 n, bool write)
{
	std::shared_ptr<Session> session;
	{
		std::lock_guard guard(session_lock_);
		session = session_;
	}
	if (!session)
		return false;
	return write ? session->dma_write(address, {at, n})
		     : session->dma_read(address, {at, n});
}

// Guest memory first, then another device's BAR, then a message to QEMU,
// which knows what lies behind a virtual IOMMU.
Path Endpoint::transfer_once(u64 address, std::byte *at, u64 n, bool write, u64 &length)
{
	length = n;
	auto kind =
		dma_.use(address, n, write, length, [&](std::byte *memory, u64 part) {
		if (write)
			copy_shared(memory, at, part);
		else
			copy_shared(at, memory, part);
	});
	if (kind == DmaMap::Kind::memory)
		return Path::system;
	if (write ? fabric_.write(address, {at, length})
		  : fabric_.read(address, {at, length}))
		return Path::peer;
	if (kind == DmaMap::Kind::message && by_message(address, at, length, write))
		return Path::message;
	return Path::none;
}

// A reset, or removal, may come between an engine and its memory at any time, and
// then it does not matter what failed.
Path Endpoint::transfer(u64 address, std::byte *at, u64 n, bool write)
{
	Path path = Path::none;

	for (u64 done = 0, length = 0; done < n; done += length) {
		path = may_dma() ? transfer_once(address + done, at + done, n - done,
						 write, length)
				 : Path::off;
		if (!reached(path))
			break;
	}
	if (path != Path::none)
		return path;
	if (!may_dma())
		return Path::off;
	log(Log::warning, std::format("DMA {} of {} bytes at {:#x} fails",
				      write ? "write" : "read", n, address));
	return path;
}

Path Endpoint::read(u64 address, bytes out)
{
	return transfer(address, out.data(), out.size(), false);
}

Path Endpoint::write(u64 address, const_bytes in)
{
	return transfer(address, const_cast<std::byte *>(in.data()), in.size(), true);
}

Path Endpoint::update(u64 address, unsigned size, const AtomicUpdate &fn, u64 &old)
{
	u64 length;

	if (!may_dma())
		return Path::off;
	auto kind = dma_.use(address, size, true, length, [&](std::byte *memory, u64) {
		old = update_word(memory, size, fn);
	});
	if (kind == DmaMap::Kind::memory)
		return Path::system;
	if (fabric_.update(address, size, fn, old))
		return Path::peer;
	if (!may_dma())
		return Path::off;
	// vfio-user has no message for it
	log(Log::warning,
	    std::format("DMA update of {} bytes at {:#x} fails", size, address));
	return Path::none;
}

void Endpoint::interrupt()
{
	if (may_dma()) // an MSI is a memory write
		gate_.raise();
}

u64 Endpoint::now()
{
	auto t = std::chrono::steady_clock::now().time_since_epoch();

	return static_cast<u64>(
		std::chrono::duration_cast<std::chrono::nanoseconds>(t).count());
}

void Endpoint::kick()
{
	std::lock_guard guard(wake_lock_);
	kicks_++;
	wake_.notify_all();
}

// An engine that waits for memory to change must poll, less often the longer
// it waits; an idle one sleeps until the next kick.
void Endpoint::wait_for_work(u64 seen, unsigned rounds, bool blocked,
			     const std::stop_token &stop)
{
	std::unique_lock guard(wake_lock_);
	auto kicked = [&] { return kicks_ != seen; };

	if (!blocked) {
		wake_.wait(guard, stop, kicked);
		return;
	}
	auto pause = std::chrono::microseconds(20) * (1 << std::min(rounds, 6u));
	wake_.wait_for(guard, stop, pause, kicked);
}

template <class Step>
void Endpoint::engine_loop(const std::stop_token &stop, Chaos *chaos,
			   const EngineFaults *faults, Step step)
{
	unsigned rounds = 0;

	while (!stop.stop_requested()) {
		u64 seen;
		{
			std::lock_guard guard(wake_lock_);
			seen = kicks_;
		}
		auto status = step();
		using Status = decltype(status);
		if (status != Status::progressed || !may_dma()) {
			wait_for_work(seen, rounds++, status == Status::blocked, stop);
			continue;
		}
		rounds = 0;
		u64 pause = faults ? faults->slow_ns.load() : 0;
		if (chaos && chaos->one_in(16))
			pause += chaos->below(200'000);
		if (pause)
			std::this_thread::sleep_for(std::chrono::nanoseconds(pause));
	}
}

void Endpoint::start_engines()
{
	for (unsigned i = 0; i < gpu_.engines(); i++)
		threads_.emplace_back([this, i](const std::stop_token &stop) {
			SdmaEngine &e = gpu_.engine(i);
			engine_loop(stop, &e.chaos(), &e.faults(),
				    [&e] { return e.step(); });
		});
	threads_.emplace_back([this](const std::stop_token &stop) {
		engine_loop(stop, nullptr, nullptr,
			    [this] { return gpu_.kiq().step(); });
	});
}

} // namespace sluice::emu
