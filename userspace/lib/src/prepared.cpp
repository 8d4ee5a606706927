// SPDX-License-Identifier: MIT
#include <algorithm>

#include "gpu.hpp"
#include "try.hpp"

namespace sluice {

namespace detail {

prepared_data::~prepared_data()
{
	drm_amdgpu_sdma_batch args{};

	args.op = AMDGPU_SDMA_BATCH_FORGET;
	args.handle = handle;
	if (handle && on->node().is_ours())
		(void)on->configure(args);
}

} // namespace detail

prepared_batch::prepared_batch(std::shared_ptr<detail::prepared_data> data) noexcept
	: data_(std::move(data))
{
}

prepared_batch::prepared_batch(prepared_batch &&) noexcept = default;
prepared_batch &prepared_batch::operator=(prepared_batch &&) noexcept = default;
prepared_batch::~prepared_batch() = default;

result<prepared_batch> device::prepare(const batch &what)
{
	detail::batch_data &b = what.inside();
	auto made = std::make_shared<detail::prepared_data>();
	detail::submission asked;

	if (!limits().prepared)
		return fail(errc::unsupported, gpu_->name(),
			    "this kernel cannot prepare batches");
	SLUICE_CHECK(b.right);
	if (!b.run.after.empty())
		return fail(
			errc::usage, gpu_->name(),
			"a batch that begins after a fence cannot be prepared: each "
			"run would have to wait for another one");
	asked.args.op = AMDGPU_SDMA_BATCH_PREPARE;
	asked.args.descs = reinterpret_cast<uintptr_t>(b.descs.data());
	asked.args.num_descs = static_cast<uint32_t>(b.descs.size());
	asked.args.desc_stride = sizeof(b.descs[0]);
	asked.args.placement = b.placement();
	asked.args.engine_mask = b.run.args.engine_mask;
	asked.faults = b.run.faults;
	if (int err = gpu_->configure(asked.args))
		return std::unexpected(batch_error(asked, gpu_->name(), -err));
	made->on = gpu_;
	made->handle = asked.args.handle;
	made->buffers = b.buffers;
	for (auto &run : made->runs) {
		run.args.op = AMDGPU_SDMA_BATCH_RUN;
		run.args.handle = made->handle;
		run.args.flags = b.run.args.flags & AMDGPU_SDMA_BATCH_NONBLOCK;
		run.bytes = b.run.bytes;
		run.waits = b.run.waits;
		run.faults = b.run.faults;
		run.background = b.run.background;
	}
	// So that even the first run is only a request of the ring.
	if (int err = made->runs[0].sync.make(gpu_->node()))
		return fail_errno(gpu_->name(), "DRM_IOCTL_SYNCOBJ_CREATE", -err);
	return prepared_batch(std::move(made));
}

operation prepared_batch::run()
{
	auto free =
		std::ranges::find_if_not(data_->runs, &detail::submission::under_way);

	if (free == data_->runs.end())
		return data_->on->ring().failed(
			error(errc::busy, data_->on->name(),
			      "64 runs of the prepared batch are under way"));
	return data_->on->start(*free, data_);
}

uint64_t prepared_batch::bytes() const noexcept
{
	return data_->runs[0].bytes;
}

} // namespace sluice
