// SPDX-License-Identifier: MIT
// The C API: GPUs and what runs on them.
#include "c_api.hpp"

using namespace sluice;
using namespace sluice::c;

struct sluice_prepared {
	/// Destroyed in reverse order: the device is last.
	struct inside {
		std::shared_ptr<gpu> on;
		prepared_batch it;
	};
	std::shared_ptr<inside> it;
};

namespace {

sluice_device_info info_of(const device_info &from)
{
	sluice_device_info info{};

	put_text(info.address, from.address);
	put_text(info.render_node, from.render_node);
	put_text(info.product, from.product);
	info.numa_node = from.numa_node;
	info.kfd_id = from.kfd_id;
	info.vram_bytes = from.vram_bytes;
	info.visible_vram_bytes = from.visible_vram_bytes;
	return info;
}

uint32_t flags_of(const device &of)
{
	const batch_limits &l = of.limits();

	return (l.prepared ? SLUICE_LIMIT_PREPARED : 0) |
	       (l.ring ? SLUICE_LIMIT_RING : 0) |
	       (l.user_memory ? SLUICE_LIMIT_USER_MEMORY : 0) |
	       (l.svm ? SLUICE_LIMIT_SVM : 0) |
	       (of.path() == engine_path::command ? SLUICE_LIMIT_COMMAND : 0);
}

/// Memory that a device allocates.
template <class Make>
int make_memory(sluice_device *on, sluice_buffer **to, Make &&make) noexcept
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(all_given("device buffer", on, to));
		SLUICE_TRY(buffer made, make(on->it->it));
		hand_out(to, std::move(made));
		return {};
	});
}

} // namespace

int sluice_device_count(uint32_t *count)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(given(count, "count"));
		*count = static_cast<uint32_t>(list_devices().size());
		return {};
	});
}

int sluice_device_info_at(uint32_t index, struct sluice_device_info *info)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(given(info, "info"));
		auto all = list_devices();
		if (index >= all.size())
			return fail(errc::device, "device",
				    std::format("there is no GPU {} of {}", index,
						all.size()));
		return give(info, info_of(all[index]), "info");
	});
}

int sluice_device_open(sluice_context *in, const char *name, sluice_device **to)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(all_given("context name device", in, name, to));
		SLUICE_TRY(auto opened, device::open(in->it->it, name));
		hand_out(to, std::make_shared<gpu>(in->it, std::move(opened)));
		return {};
	});
}

void sluice_device_close(sluice_device *on)
{
	delete on;
}

int sluice_device_get_info(const sluice_device *on, struct sluice_device_info *info)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(given(on, "device"));
		return give(info, info_of(on->it->it.info()), "info");
	});
}

int sluice_device_limits(const sluice_device *on, struct sluice_limits *limits)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(given(on, "device"));
		const batch_limits &l = on->it->it.limits();
		return give(limits,
			    sluice_limits{
				    .size = 0,
				    .operations = l.operations,
				    .broadcast = l.broadcast,
				    .engines = l.engines,
				    .wait_engines = l.wait_engines,
				    .bytes = l.bytes,
				    .queued_bytes = l.queued_bytes,
				    .wait_ns = std::chrono::nanoseconds(l.wait).count(),
				    .flags = flags_of(on->it->it),
				    .fences = l.fences},
			    "limits");
	});
}

int sluice_device_counters(const sluice_device *on, struct sluice_counters *counters)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(given(on, "device"));
		SLUICE_TRY(auto now, on->it->it.counters());
		return give(counters,
			    sluice_counters{.size = 0,
					    .migrated_in = now.migrated_in,
					    .migrated_out = now.migrated_out,
					    .lost_events = now.lost_events},
			    "counters");
	});
}

int sluice_device_vram(sluice_device *on, uint64_t size, sluice_buffer **to)
{
	return make_memory(on, to, [&](device &d) { return d.vram(size); });
}

int sluice_device_svm(sluice_device *on, uint64_t size, uint32_t flags,
		      sluice_buffer **to)
{
	return make_memory(on, to, [&](device &d) -> result<buffer> {
		SLUICE_CHECK(known_flags(flags, SLUICE_SVM_STAY, "svm"));
		return d.svm(size, !(flags & SLUICE_SVM_STAY));
	});
}

int sluice_device_import(sluice_device *on, int dmabuf, sluice_buffer **to)
{
	return make_memory(on, to, [&](device &d) { return d.import_dmabuf(dmabuf); });
}

int sluice_device_attach(sluice_device *on, sluice_buffer *memory)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(all_given("device buffer", on, memory));
		return on->it->it.attach(memory->it);
	});
}

int sluice_device_prefetch(sluice_device *on, const struct sluice_slice *memory)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(given(on, "device"));
		SLUICE_TRY(auto part, slice_of(memory, "memory"));
		return on->it->it.prefetch(part);
	});
}

int sluice_device_bring_back(sluice_device *on, const struct sluice_slice *memory)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(given(on, "device"));
		SLUICE_TRY(auto part, slice_of(memory, "memory"));
		return on->it->it.bring_back(part);
	});
}

int sluice_device_submit(sluice_device *on, sluice_batch *what, sluice_operation **op)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(all_given("device batch operation", on, what, op));
		SLUICE_CHECK(what->it.check());
		return start(op, on->it->in, on->it, on->it->it.submit(what->it));
	});
}

int sluice_device_prepare(sluice_device *on, const sluice_batch *what,
			  sluice_prepared **to)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(all_given("device batch prepared", on, what, to));
		SLUICE_TRY(auto made, on->it->it.prepare(what->it));
		hand_out(to, std::make_shared<sluice_prepared::inside>(
				     on->it, std::move(made)));
		return {};
	});
}

int sluice_prepared_run(sluice_prepared *what, sluice_operation **op)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(all_given("prepared operation", what, op));
		return start(op, what->it->on->in, what->it, what->it->it.run());
	});
}

uint64_t sluice_prepared_bytes(const sluice_prepared *what)
{
	return what ? what->it->it.bytes() : 0;
}

void sluice_prepared_free(sluice_prepared *what)
{
	delete what;
}
