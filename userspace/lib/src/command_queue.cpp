// SPDX-License-Identifier: MIT
#include "command_queue.hpp"

#include <algorithm>
#include <bit>

#include "call.hpp"
#include "try.hpp"

namespace sluice::detail {

namespace {

// Source: drivers/gpu/drm/amd/amdgpu/vega10_sdma_pkt_open.h and its successors.
enum : uint32_t { op_nop = 0, op_copy = 1, op_fill = 11, fill_words = 2u << 30 };
constexpr uint64_t most_per_packet = 4 << 20;
constexpr ptrdiff_t copy_words = 7, fill_packet_words = 5;

uint32_t low(uint64_t n)
{
	return static_cast<uint32_t>(n);
}
uint32_t high(uint64_t n)
{
	return static_cast<uint32_t>(n >> 32);
}

uint32_t *put_fill_packet(uint32_t *at, const uint32_t *end, uint32_t header,
			  uint64_t to, uint32_t value, uint64_t size) noexcept
{
	if (!at || end - at < fill_packet_words)
		return nullptr;
	for (uint32_t word :
	     {op_fill | header, low(to), high(to), value, low(size - 1)})
		*at++ = word;
	return at;
}

/// The same bytes to each destination.
uint32_t *put_broadcast(uint32_t *at, const uint32_t *end,
			const drm_amdgpu_sdma_desc &d) noexcept
{
	at = put_copy(at, end, d.dst, d.src, d.size);
	for (uint64_t to : d.dst_more)
		if (to)
			at = put_copy(at, end, to, d.src, d.size);
	return at;
}

uint32_t *put_rows(uint32_t *at, const uint32_t *end,
		   const drm_amdgpu_sdma_desc &d) noexcept
{
	for (uint32_t row = 0; at && row < d.rows; row++)
		at = put_copy(at, end, d.dst + row * d.dst_pitch,
			      d.src + row * d.src_pitch, d.size);
	return at;
}

} // namespace

uint32_t *put_copy(uint32_t *at, const uint32_t *end, uint64_t to, uint64_t from,
		   uint64_t size) noexcept
{
	while (at && size) {
		uint64_t n = std::min(size, most_per_packet);

		if (end - at < copy_words)
			return nullptr;
		for (uint32_t word : {uint32_t{op_copy}, low(n - 1), 0u, low(from),
				      high(from), low(to), high(to)})
			*at++ = word;
		to += n;
		from += n;
		size -= n;
	}
	return at;
}

// Words where addresses are multiples of 4, and bytes before and after them. The value
// begins at the first byte.
uint32_t *put_fill(uint32_t *at, const uint32_t *end, uint64_t to, uint32_t value,
		   uint64_t size) noexcept
{
	while (at && size) {
		bool words = to % 4 == 0 && size >= 4;
		uint64_t n = 1;

		if (words)
			n = std::min(size & ~uint64_t{3}, most_per_packet);

		at = put_fill_packet(at, end, words ? uint32_t{fill_words} : 0, to,
				     words ? value : value & 0xff, n);
		if (!words)
			value = std::rotr(value, 8);
		to += n;
		size -= n;
	}
	return at;
}

result<uint32_t *> put_operation(uint32_t *at, const uint32_t *end,
				 const drm_amdgpu_sdma_desc &what) noexcept
{
	if (what.flags & AMDGPU_SDMA_DESC_BARRIER)
		return fail(errc::unsupported, "barrier",
			    "needs a kernel with batches: without one, wait for the "
			    "operation before it");
	if (what.flags & AMDGPU_SDMA_DESC_RECORD)
		return fail(errc::unsupported, "record", "needs a kernel with batches");
	const bool moves = what.op == AMDGPU_SDMA_OP_COPY ||
			   what.op == AMDGPU_SDMA_OP_FILL ||
			   what.op == AMDGPU_SDMA_OP_BROADCAST;
	if (moves && what.size == 0)
		return fail(errc::usage, "operation", "of no bytes");
	switch (what.op) {
	case AMDGPU_SDMA_OP_COPY:
		return put_copy(at, end, what.dst, what.src, what.size);
	case AMDGPU_SDMA_OP_FILL:
		return put_fill(at, end, what.dst, low(what.value), what.size);
	case AMDGPU_SDMA_OP_BROADCAST: return put_broadcast(at, end, what);
	case AMDGPU_SDMA_OP_COPY_RECT: return put_rows(at, end, what);
	}
	return fail(errc::unsupported, "operation", "needs a kernel with batches");
}

result<std::unique_ptr<command_queue>> command_queue::open(gpu_node &node)
{
	std::unique_ptr<command_queue> made(new command_queue(node));

	SLUICE_CHECK(made->ask_for_engines());
	SLUICE_CHECK(made->map());
	return made;
}

result<void> command_queue::ask_for_engines()
{
	drm_amdgpu_info_hw_ip ip{};
	drm_amdgpu_info args{};

	args.return_pointer = reinterpret_cast<uintptr_t>(&ip);
	args.return_size = sizeof(ip);
	args.query = AMDGPU_INFO_HW_IP_INFO;
	args.query_hw_ip.type = AMDGPU_HW_IP_DMA;
	int err = call(node_.file.get(), DRM_IOCTL_AMDGPU_INFO, &args);
	if (err || !ip.available_rings)
		return fail(errc::device, node_.name(),
			    "it has no SDMA engine for "
			    "user space",
			    -err);
	// SDMA 7 has another form of copies, and 3 other limits.
	if (ip.hw_ip_version_major < 4 || ip.hw_ip_version_major > 6)
		return fail(errc::unsupported, node_.name(),
			    "an SDMA engine that "
			    "only a kernel with batches can use");
	// half as many parts of scattered memory may each be a buffer of its own
	limits_.operations = 2000;
	limits_.broadcast = 8;
	limits_.engines = ip.available_rings;
	limits_.fences = most_fences;
	limits_.batches = slots;
	limits_.bytes = most_bytes;
	limits_.queued_bytes = most_bytes;
	limits_.user_memory = true;
	return {};
}

result<void> command_queue::map()
{
	constexpr size_t size = slots * slot_bytes;
	drm_amdgpu_gem_create args{};

	args.in.bo_size = size;
	args.in.domains = AMDGPU_GEM_DOMAIN_GTT;
	int err = call(node_.file.get(), DRM_IOCTL_AMDGPU_GEM_CREATE, &args);
	if (err)
		return fail_errno(node_.name(), "memory for packets", -err);
	packets_ = std::make_unique<gem_mapping>(node_, args.out.handle);
	SLUICE_TRY(range_, map_somewhere(*packets_, size));
	return map_for_cpu(*packets_, range_, size);
}

uint32_t *command_queue::slot_at(int slot) const noexcept
{
	return reinterpret_cast<uint32_t *>(range_.data() +
					    static_cast<size_t>(slot) * slot_bytes);
}

bool command_queue::lists(uint32_t handle) const noexcept
{
	return std::ranges::contains(std::span(list_).first(objects_), handle,
				     &drm_amdgpu_bo_list_entry::bo_handle);
}

/// List what the packets use, so that it is resident when they run.
result<void> command_queue::list_objects(const batch_data &what) noexcept
{
	objects_ = 0;
	list_[objects_++] = {packets_->handle, 0};
	for (const buffer &memory : what.buffers) {
		const gem_mapping *object = object_of(node_, *memory.block());

		if (!object)
			return fail(errc::usage, node_.name(),
				    "memory that this "
				    "GPU does not reach: attach it");
		// A batch may name the same few repeatedly.
		if (lists(object->handle))
			continue;
		if (objects_ == most_objects)
			return fail(errc::usage, node_.name(),
				    "more than 1023 buffers in one batch: split it");
		list_[objects_++] = {object->handle, 0};
	}
	return {};
}

/// @return their length in bytes
result<uint32_t> command_queue::put_packets(const batch_data &what, int slot) noexcept
{
	constexpr ptrdiff_t words = slot_bytes / 4;
	uint32_t *begin = slot_at(slot), *at = begin;
	uint32_t index = 0;

	for (const auto &desc : what.descs) {
		auto put = put_operation(at, begin + words - 8, desc);

		if (!put)
			return std::unexpected(std::move(put.error()).at(index));
		if (!*put)
			return std::unexpected(
				error(errc::usage, node_.name(),
				      "more packets than one batch may have: make two "
				      "of it",
				      EMSGSIZE)
					.at(index));
		at = *put;
		index++;
	}
	while ((at - begin) % 8)
		*at++ = op_nop;
	return static_cast<uint32_t>((at - begin) * 4);
}

int command_queue::submit(int slot, uint32_t bytes, const submission &run) noexcept
{
	drm_amdgpu_cs_chunk_ib ib{};
	drm_amdgpu_cs_chunk_sem out{.handle = run.sync.handle()};
	drm_amdgpu_bo_list_in list{};
	drm_amdgpu_cs args{};

	ib.va_start = reinterpret_cast<uintptr_t>(slot_at(slot));
	ib.ib_bytes = bytes;
	ib.ip_type = AMDGPU_HW_IP_DMA;
	list.operation = ~0u;
	list.list_handle = ~0u;
	list.bo_number = static_cast<uint32_t>(objects_);
	list.bo_info_size = sizeof(list_[0]);
	list.bo_info_ptr = reinterpret_cast<uintptr_t>(list_.data());
	std::array<drm_amdgpu_cs_chunk_sem, most_fences> in;
	for (size_t i = 0; i < run.in.size(); i++)
		in[i].handle = run.in[i].handle;
	drm_amdgpu_cs_chunk chunks[] = {
		{AMDGPU_CHUNK_ID_IB, sizeof(ib) / 4, reinterpret_cast<uintptr_t>(&ib)},
		{AMDGPU_CHUNK_ID_BO_HANDLES, sizeof(list) / 4,
		 reinterpret_cast<uintptr_t>(&list)},
		{AMDGPU_CHUNK_ID_SYNCOBJ_OUT, sizeof(out) / 4,
		 reinterpret_cast<uintptr_t>(&out)},
		{AMDGPU_CHUNK_ID_SYNCOBJ_IN,
		 static_cast<uint32_t>(run.in.size() * sizeof(in[0]) / 4),
		 reinterpret_cast<uintptr_t>(in.data())}};
	uint64_t pointers[std::size(chunks)];
	std::ranges::transform(chunks, pointers, [](auto &chunk) {
		return reinterpret_cast<uintptr_t>(&chunk);
	});
	args.in.ctx_id = run.args.ctx_id;
	// The last one only if it is not empty.
	args.in.num_chunks = static_cast<uint32_t>(std::size(chunks) - run.in.empty());
	args.in.chunks = reinterpret_cast<uintptr_t>(pointers);
	return call_again(node_.file.get(), DRM_IOCTL_AMDGPU_CS, &args);
}

result<void> command_queue::send(batch_data &what) noexcept
{
	int slot = std::countr_one(busy_);

	if (slot >= slots)
		return fail(errc::busy, node_.name(), "32 batches are on their way");
	if (what.run.bytes > most_bytes)
		return fail(errc::usage, node_.name(),
			    "more than 1 GiB in one batch: split it", EMSGSIZE);
	SLUICE_CHECK(list_objects(what));
	SLUICE_TRY(uint32_t bytes, put_packets(what, slot));
	int err = submit(slot, bytes, what.run);
	if (err == -ECANCELED)
		return fail(errc::device, node_.name(),
			    "a reset has ended this use of the GPU: open it again",
			    ECANCELED);
	if (err)
		return fail_errno(node_.name(), "DRM_AMDGPU_CS", -err, errc::device);
	busy_ |= uint64_t{1} << slot;
	what.run.commands = slot;
	return {};
}

} // namespace sluice::detail
