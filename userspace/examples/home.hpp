// SPDX-License-Identifier: MIT
// Where an example has its data: in the memory of a GPU or, if none is named, of the
// host. So each example can be tried and tested without a GPU as well.
#pragma once

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <sluice/device.hpp>
#include <sluice/or_exit.hpp>

class home {
public:
	struct move {
		sluice::slice to, from;
	};

	/// @param gpu an index or a PCI address; empty: host memory
	home(sluice::context &in, const std::string &gpu)
	{
		if (!gpu.empty())
			gpu_ = sluice::or_exit(sluice::device::open(in, gpu));
	}

	sluice::device *gpu() { return gpu_ ? &*gpu_ : nullptr; }

	std::string name() const
	{
		return gpu_ ? "the memory of GPU " + gpu_->info().address
			    : "host memory, as no GPU was named";
	}

	/// Memory there.
	sluice::buffer take(size_t size)
	{
		return sluice::or_exit(gpu_ ? gpu_->vram(size)
					    : sluice::buffer::host(size));
	}

	/// Memory that the CPU may touch, and that a GPU reaches.
	sluice::buffer take_host(size_t size)
	{
		auto memory = sluice::or_exit(sluice::buffer::host(size));

		if (gpu_)
			sluice::or_exit(gpu_->attach(memory));
		return memory;
	}

	/// Make all these copies, in any order: in one batch, or by the CPU.
	void copy(const std::vector<move> &moves)
	{
		sluice::batch all(moves.size());

		for (const auto &[to, from] : moves)
			if (gpu_)
				all.copy(to, from);
			else
				std::memcpy(to.data(), from.data(), from.size());
		if (gpu_)
			sluice::or_exit(gpu_->submit(all.fault_in()).wait());
	}

private:
	std::optional<sluice::device> gpu_;
};
