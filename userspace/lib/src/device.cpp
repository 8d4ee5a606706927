// SPDX-License-Identifier: MIT
#include "sluice/device.hpp"

#include "gpu.hpp"
#include "gpu_memory.hpp"
#include "try.hpp"

namespace sluice {

device::device(std::shared_ptr<detail::gpu> gpu) noexcept : gpu_(std::move(gpu)) {}
device::device(device &&) noexcept = default;
device &device::operator=(device &&) noexcept = default;
device::~device() = default;

result<device> device::open(context &in, std::string_view name)
{
	SLUICE_TRY(auto *node, detail::find_node(name));
	SLUICE_TRY(auto gpu, detail::gpu::open(detail::engine_of(in), *node));
	return device(std::move(gpu));
}

const device_info &device::info() const noexcept
{
	return gpu_->node().what;
}

result<buffer> device::vram(size_t size)
{
	return make_vram(gpu_->node(), size);
}

result<buffer> device::svm(size_t size, bool move)
{
	if (path() == engine_path::command)
		return fail(errc::unsupported, gpu_->name(),
			    "engines reach shared "
			    "memory only with a kernel that has batches");
	SLUICE_TRY(auto memory, make_svm(gpu_->node(), size));
	if (move)
		SLUICE_CHECK(prefetch(memory));
	return memory;
}

result<buffer> device::import_dmabuf(int dmabuf)
{
	return detail::import_dmabuf(gpu_->node(), dmabuf);
}

result<void> device::attach(const buffer &memory)
{
	return attach_memory(gpu_->node(), memory, path() == engine_path::command);
}

result<void> device::prefetch(const slice &memory)
{
	if (!memory.of() || !memory.valid() || memory.of().kind() != memory::svm)
		return fail(errc::usage, gpu_->name(),
			    "only shared memory (SVM) migrates");
	SLUICE_CHECK(attach(memory.of()));
	return move_pages_of(gpu_->node(), memory, true);
}

result<void> device::bring_back(const slice &memory)
{
	if (!memory.of() || !memory.valid() || memory.of().kind() != memory::svm)
		return fail(errc::usage, gpu_->name(),
			    "only shared memory (SVM) migrates");
	return move_pages_of(gpu_->node(), memory, false);
}

operation device::submit(batch &what)
{
	detail::batch_data &b = what.inside();
	detail::engine &ring = gpu_->ring();

	if (b.run.under_way())
		return ring.failed(error(errc::usage, gpu_->name(),
					 "the batch is under way already"));
	if (!b.right)
		return ring.failed(b.right.error());
	if (b.descs.empty())
		return ring.failed(error(errc::usage, gpu_->name(),
					 "there is nothing in the batch"));
	if (path() == engine_path::command)
		return gpu_->start_command(b, what.share());
	b.run.args.descs = reinterpret_cast<uintptr_t>(b.descs.data());
	b.run.args.num_descs = static_cast<uint32_t>(b.descs.size());
	b.run.args.placement = b.placement();
	return gpu_->start(b.run, what.share());
}

const batch_limits &device::limits() const noexcept
{
	return gpu_->limits();
}

engine_path device::path() const noexcept
{
	return gpu_->how() == detail::gpu::way::command ? engine_path::command
							: engine_path::batch;
}

result<device_counters> device::counters() const
{
	return gpu_->counters();
}

} // namespace sluice
