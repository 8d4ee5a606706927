// SPDX-License-Identifier: MIT
#include "sluice/batch.hpp"

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <format>
#include <linux/sync_file.h>

#include "call.hpp"
#include "gpu.hpp"

namespace sluice {

namespace detail {

// An operation refers to at most ten buffers: a broadcast with a record.
constexpr size_t most_buffers = 10;

batch_data::batch_data(size_t expected)
{
	descs.reserve(expected);
	buffers.reserve(expected * most_buffers);
	run.args.desc_stride = sizeof(descs[0]);
	run.args.flags = AMDGPU_SDMA_BATCH_PATH;
}

} // namespace detail

namespace {

using detail::batch_data;

/// A mistake in the next operation, or in one that would come so many later.
void mistake(batch_data &b, const char *what, std::string_view why, size_t later = 0)
{
	if (b.right)
		b.right = std::unexpected(
			error(errc::usage, what, why)
				.at(static_cast<uint32_t>(b.descs.size() + later)));
}

/// May an operation on @p memory be added?
bool allows(batch_data &b, const char *what, std::initializer_list<slice> memory)
{
	if (b.run.under_way())
		mistake(b, what, "the batch is under way");
	else if (!std::ranges::all_of(
			 memory, [](const slice &s) { return s.of() && s.valid(); }))
		mistake(b, what, "outside of its buffer");
	else
		return b.right.has_value();
	return false;
}

/// The kernel refuses the whole batch if an operation moves nothing.
bool has_bytes(batch_data &b, const char *what, const slice &memory)
{
	if (!memory.size())
		mistake(b, what, "of no bytes");
	return memory.size();
}

void keep(batch_data &b, const slice &memory)
{
	// Usually a few buffers take turns.
	auto first = b.buffers.size() > 4 ? b.buffers.end() - 4 : b.buffers.begin();
	auto same = [&](const buffer &other) {
		return other.block() == memory.of().block();
	};

	if (std::none_of(first, b.buffers.end(), same))
		b.buffers.push_back(memory.of());
}

drm_amdgpu_sdma_desc &put(batch_data &b, uint32_t op, uint64_t bytes)
{
	auto &d = b.descs.emplace_back();

	d.op = op;
	d.flags = b.flags | std::exchange(b.next_flags, 0);
	d.record = std::exchange(b.next_record, 0);
	b.run.bytes += bytes;
	return d;
}

/// An operation from one range to another of the same size.
drm_amdgpu_sdma_desc *put_pair(batch_data &b, const char *what, uint32_t op,
			       const slice &to, const slice &from, uint64_t times)
{
	if (!allows(b, what, {to, from}) || !has_bytes(b, what, to))
		return nullptr;
	if (to.size() != from.size()) {
		mistake(b, what,
			std::format("to {} bytes from {} bytes", to.size(),
				    from.size()));
		return nullptr;
	}
	keep(b, to);
	keep(b, from);
	auto &d = put(b, op, times * to.size());
	d.dst = to.address();
	d.src = from.address();
	d.size = to.size();
	return &d;
}

/// Does a rectangle lie inside @p memory?
bool holds(const slice &memory, const batch::rectangle &shape, uint64_t pitch)
{
	uint64_t behind; // the last row's beginning

	return pitch >= shape.row_bytes && shape.row_bytes <= memory.size() &&
	       !__builtin_mul_overflow(pitch, shape.rows - 1, &behind) &&
	       behind <= memory.size() - shape.row_bytes;
}

/// Do all these ranges lie inside @p memory?
bool hold_all(batch_data &b, const char *name, const slice &memory,
	      std::span<const uint64_t> at, std::span<const uint64_t> sizes)
{
	uint64_t end = memory.size();

	for (size_t i = 0; i < sizes.size(); i++) {
		if (at[i] <= end && sizes[i] <= end - at[i])
			continue;
		mistake(b, "copy_many",
			std::format(
				"copy {}: {} bytes at {} are outside of the {} bytes of `{}`",
				i, sizes[i], at[i], end, name),
			i);
		return false;
	}
	return true;
}

/// Copy each part of scattered memory to or from its place in contiguous memory.
template <class Copy>
void pair_up(batch_data &b, const char *what, std::span<const slice> parts,
	     const slice &row, Copy &&copy)
{
	uint64_t bytes = 0;

	for (const slice &part : parts)
		bytes += part.size();
	if (bytes != row.size())
		return mistake(
			b, what,
			std::format(
				"{} parts have {} bytes, and the memory in a row {}",
				parts.size(), bytes, row.size()));
	for (size_t at = 0; const slice &part : parts) {
		copy(part, row.part(at, part.size()));
		at += part.size();
	}
}

void put_word(batch_data &b, const char *what, uint32_t op, const slice &word,
	      uint64_t value)
{
	if (!allows(b, what, {word}))
		return;
	if (word.size() < 8)
		return mistake(b, what, "the word has less than 8 bytes");
	keep(b, word);
	b.ordered = true;
	auto &d = put(b, op, 8);
	d.dst = word.address();
	d.value = value;
}

} // namespace

batch::batch(size_t expected) : data_(std::make_shared<detail::batch_data>(expected)) {}

batch::batch(batch &&) noexcept = default;
batch &batch::operator=(batch &&) noexcept = default;
batch::~batch() = default;

batch &batch::copy(const slice &to, const slice &from)
{
	put_pair(*data_, "copy", AMDGPU_SDMA_OP_COPY, to, from, 1);
	return *this;
}

batch &batch::copy_many(const slice &to, std::span<const uint64_t> to_at,
			const slice &from, std::span<const uint64_t> from_at,
			std::span<const uint64_t> sizes)
{
	auto &b = *data_;

	if (!allows(b, "copy_many", {to, from}))
		return *this;
	if (to_at.size() != sizes.size() || from_at.size() != sizes.size()) {
		mistake(b, "copy_many",
			std::format(
				"{} places to copy to, {} to copy from, and {} sizes",
				to_at.size(), from_at.size(), sizes.size()));
		return *this;
	}
	if (auto none = std::ranges::find(sizes, 0u); none != sizes.end()) {
		const auto i = static_cast<size_t>(none - sizes.begin());

		mistake(b, "copy_many", std::format("copy {} is of no bytes", i), i);
		return *this;
	}
	if (!hold_all(b, "to", to, to_at, sizes) ||
	    !hold_all(b, "from", from, from_at, sizes))
		return *this;
	keep(b, to);
	keep(b, from);
	for (size_t i = 0; i < sizes.size(); i++) {
		auto &d = put(b, AMDGPU_SDMA_OP_COPY, sizes[i]);
		d.dst = to.address() + to_at[i];
		d.src = from.address() + from_at[i];
		d.size = sizes[i];
	}
	return *this;
}

batch &batch::gather(const slice &to, std::span<const slice> from)
{
	pair_up(*data_, "gather", from, to,
		[&](const slice &part, const slice &place) { copy(place, part); });
	return *this;
}

batch &batch::scatter(std::span<const slice> to, const slice &from)
{
	pair_up(*data_, "scatter", to, from,
		[&](const slice &part, const slice &place) { copy(part, place); });
	return *this;
}

batch &batch::swap(const slice &a, const slice &b)
{
	put_pair(*data_, "swap", AMDGPU_SDMA_OP_SWAP, a, b, 2);
	return *this;
}

batch &batch::copy_rectangle(const slice &to, const slice &from, const rectangle &shape)
{
	if (!allows(*data_, "rectangle", {to, from}))
		return *this;
	if (!shape.rows || !shape.row_bytes || !holds(to, shape, shape.to_pitch) ||
	    !holds(from, shape, shape.from_pitch)) {
		mistake(*data_, "rectangle",
			"it is empty, its rows overlap, or it "
			"does not fit in its memory");
		return *this;
	}
	keep(*data_, to);
	keep(*data_, from);
	auto &d = put(*data_, AMDGPU_SDMA_OP_COPY_RECT, shape.row_bytes * shape.rows);
	d.dst = to.address();
	d.src = from.address();
	d.size = shape.row_bytes;
	d.rows = shape.rows;
	d.dst_pitch = shape.to_pitch;
	d.src_pitch = shape.from_pitch;
	return *this;
}

batch &batch::broadcast(std::span<const slice> to, const slice &from)
{
	constexpr size_t most = 1 + std::size(drm_amdgpu_sdma_desc{}.dst_more);

	if (to.size() < 2 || to.size() > most) {
		mistake(*data_, "broadcast", "it wants 2 to 8 destinations");
		return *this;
	}
	for (const slice &one : to) {
		if (!allows(*data_, "broadcast", {one, from}))
			return *this;
		if (one.size() != from.size()) {
			mistake(*data_, "broadcast", "sizes differ");
			return *this;
		}
	}
	auto *d = put_pair(*data_, "broadcast", AMDGPU_SDMA_OP_BROADCAST, to[0], from,
			   to.size());
	for (size_t i = 1; d && i < to.size(); i++) {
		keep(*data_, to[i]);
		d->dst_more[i - 1] = to[i].address();
	}
	return *this;
}

batch &batch::fill(const slice &to, uint32_t value)
{
	if (!allows(*data_, "fill", {to}) || !has_bytes(*data_, "fill", to))
		return *this;
	keep(*data_, to);
	auto &d = put(*data_, AMDGPU_SDMA_OP_FILL, to.size());
	d.dst = to.address();
	d.size = to.size();
	d.value = value;
	return *this;
}

batch &batch::wait(const slice &word, compare how, uint32_t value,
		   clock::duration limit, uint32_t mask)
{
	if (!allows(*data_, "wait", {word}))
		return *this;
	if (word.size() < 4 || limit <= clock::duration::zero()) {
		mistake(*data_, "wait",
			"the word has less than 4 bytes, or "
			"there is no time");
		return *this;
	}
	keep(*data_, word);
	auto &d = put(*data_, AMDGPU_SDMA_OP_WAIT, 0);
	d.src = word.address();
	d.value = value;
	d.mask = mask;
	d.compare = static_cast<uint32_t>(how);
	d.timeout_ns = static_cast<uint64_t>(std::chrono::nanoseconds(limit).count());
	data_->run.waits = data_->ordered = true;
	return *this;
}

batch &batch::write(const slice &word, uint64_t value)
{
	put_word(*data_, "write", AMDGPU_SDMA_OP_WRITE, word, value);
	return *this;
}

batch &batch::add(const slice &word, uint64_t value)
{
	put_word(*data_, "add", AMDGPU_SDMA_OP_ADD, word, value);
	return *this;
}

batch &batch::barrier()
{
	data_->next_flags |= AMDGPU_SDMA_DESC_BARRIER;
	data_->ordered = true;
	return *this;
}

batch &batch::record(const slice &where)
{
	if (!allows(*data_, "record", {where}))
		return *this;
	if (where.size() < sizeof(batch_record)) {
		mistake(*data_, "record", "there is no room for 64 bytes");
		return *this;
	}
	keep(*data_, where);
	data_->next_flags |= AMDGPU_SDMA_DESC_RECORD;
	data_->next_record = where.address();
	return *this;
}

batch &batch::fault_in(bool yes)
{
	if (!allows(*data_, "fault_in", {}))
		return *this;
	data_->run.faults = yes;
	data_->flags = yes ? AMDGPU_SDMA_DESC_FAULT : 0;
	for (auto &d : data_->descs)
		d.flags = (d.flags & ~AMDGPU_SDMA_DESC_FAULT) | data_->flags;
	return *this;
}

batch &batch::placed(place how)
{
	if (!allows(*data_, "placed", {}))
		return *this;
	data_->placed = how;
	data_->wide = false;
	return *this;
}

batch &batch::hinted(hint what)
{
	constexpr std::array places = {place::automatic, place::fan_out,
				       place::one_engine};

	if (!allows(*data_, "hinted", {}))
		return *this;
	if (static_cast<size_t>(what) >= places.size()) {
		mistake(*data_, "hinted", "there is no such hint");
		return *this;
	}
	placed(places[static_cast<size_t>(what)]);
	data_->run.background = what == hint::background;
	data_->wide = what == hint::bandwidth;
	return *this;
}

batch &batch::engines(uint32_t mask)
{
	if (allows(*data_, "engines", {}))
		data_->run.args.engine_mask = mask;
	return *this;
}

batch &batch::after(int sync_file)
{
	if (!allows(*data_, "after", {}))
		return *this;
	unique_fd kept(::fcntl(sync_file, F_DUPFD_CLOEXEC, 0));
	sync_file_info info{};
	if (!kept && errno != EBADF) {
		refuse(fail_errno("after", "dup", errno, errc::system).error());
		return *this;
	}
	if (!kept || detail::call(kept.get(), SYNC_IOC_FILE_INFO, &info)) {
		mistake(*data_, "after", "the file has no fence");
		return *this;
	}
	data_->run.after.emplace_back(std::move(kept));
	data_->run.in.emplace_back();
	return *this;
}

batch &batch::nonblocking(bool yes)
{
	if (allows(*data_, "nonblocking", {}))
		data_->run.args.flags = AMDGPU_SDMA_BATCH_PATH |
					(yes ? AMDGPU_SDMA_BATCH_NONBLOCK : 0u);
	return *this;
}

// Operations in flight continue with the data that they have.
void batch::clear()
{
	auto &b = *data_;
	size_t expected = b.descs.capacity();

	if (b.run.under_way()) {
		data_ = std::make_shared<detail::batch_data>(expected);
		return;
	}
	b.descs.clear();
	b.buffers.clear();
	b.right = {};
	b.flags = b.next_flags = 0;
	b.next_record = 0;
	b.run.bytes = 0;
	b.run.waits = b.run.faults = b.run.background = false;
	b.run.after.clear();
	b.run.in.clear();
	b.ordered = b.wide = false;
	b.placed = place::automatic;
	b.run.args.engine_mask = 0;
	b.run.args.flags = AMDGPU_SDMA_BATCH_PATH;
}

size_t batch::size() const noexcept
{
	return data_->descs.size();
}

uint64_t batch::bytes() const noexcept
{
	return data_->run.bytes;
}

result<void> batch::check() const noexcept
{
	return data_->right;
}

void batch::refuse(error why) noexcept
{
	if (!data_->right)
		return;
	if (why.index() == error::no_index)
		why = std::move(why).at(static_cast<uint32_t>(data_->descs.size()));
	data_->right = std::unexpected(std::move(why));
}

const batch_outcome &batch::outcome() const noexcept
{
	return data_->run.outcome;
}

} // namespace sluice
