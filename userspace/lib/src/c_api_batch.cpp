// SPDX-License-Identifier: MIT
// The C API: batches.
#include "c_api.hpp"

using namespace sluice;
using namespace sluice::c;

static_assert(sizeof(sluice_record) == sizeof(batch_record));
static_assert(offsetof(sluice_record, status) == offsetof(batch_record, status));
static_assert(static_cast<int>(compare::less_equal) == SLUICE_LESS_EQUAL &&
	      static_cast<int>(place::fan_out) == SLUICE_PLACE_FAN_OUT);

namespace {

// A larger number is a mistake: no driver takes as many in one batch.
constexpr uint32_t most_expected = 1 << 20;

/// Change a batch, and return its first mistake. What cannot be added is one too.
template <class Change> int change(sluice_batch *what, Change &&add) noexcept
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(given(what, "batch"));
		SLUICE_CHECK(what->it.check());
		if (auto added = add(what->it); !added)
			what->it.refuse(std::move(added.error()));
		return what->it.check();
	});
}

/// An operation with one slice.
template <class Add>
int add_one(sluice_batch *what, const sluice_slice *memory, const char *name,
	    Add &&add) noexcept
{
	return change(what, [&](batch &b) -> result<void> {
		SLUICE_TRY(auto part, slice_of(memory, name));
		add(b, part);
		return {};
	});
}

/// An operation with two.
template <class Add>
int add_two(sluice_batch *what, const sluice_slice *to, const sluice_slice *from,
	    Add &&add) noexcept
{
	return change(what, [&](batch &b) -> result<void> {
		SLUICE_TRY(auto there, slice_of(to, "to"));
		SLUICE_TRY(auto here, slice_of(from, "from"));
		add(b, there, here);
		return {};
	});
}

/// Slices of operations that are added next: of one, or one of each.
result<std::vector<slice>> next_slices(const batch &b, const sluice_slice *first,
				       size_t count, const char *name, bool each)
{
	auto all = slices_of(first, count, name);

	if (all)
		return all;
	uint32_t later = all.error().index();
	if (!each || later == error::no_index)
		later = 0;
	return std::unexpected(
		std::move(all.error()).at(static_cast<uint32_t>(b.size()) + later));
}

/// An operation with scattered memory, and with as much contiguous memory.
template <class Add>
int add_parts(sluice_batch *what, const sluice_slice *parts, size_t count,
	      const sluice_slice *row, const char *name, Add &&add) noexcept
{
	return change(what, [&](batch &b) -> result<void> {
		SLUICE_TRY(auto scattered, next_slices(b, parts, count, "parts", true));
		SLUICE_TRY(auto together, slice_of(row, name));
		add(b, scattered, together);
		return {};
	});
}

/// Change how a batch runs.
template <class Set> int set(sluice_batch *what, Set &&how) noexcept
{
	return change(what, [&](batch &b) -> result<void> {
		how(b);
		return {};
	});
}

} // namespace

int sluice_batch_create(uint32_t expected, sluice_batch **to)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(given(to, "batch"));
		if (expected > most_expected)
			return fail(errc::usage, "expected",
				    std::format("{} operations are more than {}",
						expected, most_expected));
		hand_out(to, batch(expected));
		return {};
	});
}

void sluice_batch_free(sluice_batch *what)
{
	delete what;
}

int sluice_batch_clear(sluice_batch *what)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(given(what, "batch"));
		what->it.clear();
		return {};
	});
}

int sluice_batch_copy(sluice_batch *what, const struct sluice_slice *to,
		      const struct sluice_slice *from)
{
	return add_two(what, to, from,
		       [](batch &b, auto &there, auto &here) { b.copy(there, here); });
}

int sluice_batch_swap(sluice_batch *what, const struct sluice_slice *a,
		      const struct sluice_slice *b)
{
	return add_two(what, a, b, [](batch &all, auto &one, auto &other) {
		all.swap(one, other);
	});
}

int sluice_batch_copy_many(sluice_batch *what, const struct sluice_slice *to,
			   const uint64_t *to_offsets, const struct sluice_slice *from,
			   const uint64_t *from_offsets, const uint64_t *sizes,
			   size_t count)
{
	return change(what, [&](batch &b) -> result<void> {
		SLUICE_TRY(auto there, slice_of(to, "to"));
		SLUICE_TRY(auto here, slice_of(from, "from"));
		SLUICE_CHECK(all_given("to_offsets from_offsets sizes", to_offsets,
				       from_offsets, sizes));
		b.copy_many(there, {to_offsets, count}, here, {from_offsets, count},
			    {sizes, count});
		return {};
	});
}

int sluice_batch_gather(sluice_batch *what, const struct sluice_slice *to,
			const struct sluice_slice *parts, size_t count)
{
	return add_parts(what, parts, count, to, "to",
			 [](batch &b, auto &from, auto &row) { b.gather(row, from); });
}

int sluice_batch_scatter(sluice_batch *what, const struct sluice_slice *parts,
			 size_t count, const struct sluice_slice *from)
{
	return add_parts(what, parts, count, from, "from",
			 [](batch &b, auto &to, auto &row) { b.scatter(to, row); });
}

int sluice_batch_copy_rectangle(sluice_batch *what, const struct sluice_slice *to,
				const struct sluice_slice *from,
				const struct sluice_rectangle *shape)
{
	return change(what, [&](batch &b) -> result<void> {
		SLUICE_TRY(auto there, slice_of(to, "to"));
		SLUICE_TRY(auto here, slice_of(from, "from"));
		SLUICE_CHECK(given(shape, "shape"));
		SLUICE_TRY(auto s, taken(shape, "shape"));
		if (s.rows > UINT32_MAX)
			return fail(errc::usage, "shape", "2^32 rows or more");
		b.copy_rectangle(there, here,
				 {.row_bytes = s.row_bytes,
				  .rows = static_cast<uint32_t>(s.rows),
				  .to_pitch = s.to_pitch,
				  .from_pitch = s.from_pitch});
		return {};
	});
}

int sluice_batch_broadcast(sluice_batch *what, const struct sluice_slice *to,
			   size_t count, const struct sluice_slice *from)
{
	return change(what, [&](batch &b) -> result<void> {
		if (count < 2 || count > 8)
			return fail(errc::usage, "broadcast",
				    "it wants 2 to 8 destinations");
		SLUICE_TRY(auto there, next_slices(b, to, count, "to", false));
		SLUICE_TRY(auto here, slice_of(from, "from"));
		b.broadcast(there, here);
		return {};
	});
}

int sluice_batch_fill(sluice_batch *what, const struct sluice_slice *to, uint32_t value)
{
	return add_one(what, to, "to",
		       [&](batch &b, auto &part) { b.fill(part, value); });
}

int sluice_batch_wait(sluice_batch *what, const struct sluice_slice *word, int how,
		      uint32_t value, uint32_t mask, int64_t limit_ns)
{
	return change(what, [&](batch &b) -> result<void> {
		SLUICE_TRY(auto part, slice_of(word, "word"));
		if (how < SLUICE_EQUAL || how > SLUICE_LESS_EQUAL)
			return fail(errc::usage, "how",
				    std::format("{} is no enum sluice_compare", how));
		b.wait(part, static_cast<compare>(how), value,
		       std::chrono::nanoseconds(limit_ns), mask);
		return {};
	});
}

int sluice_batch_write(sluice_batch *what, const struct sluice_slice *word,
		       uint64_t value)
{
	return add_one(what, word, "word",
		       [&](batch &b, auto &part) { b.write(part, value); });
}

int sluice_batch_add(sluice_batch *what, const struct sluice_slice *word,
		     uint64_t value)
{
	return add_one(what, word, "word",
		       [&](batch &b, auto &part) { b.add(part, value); });
}

int sluice_batch_barrier(sluice_batch *what)
{
	return set(what, [](batch &b) { b.barrier(); });
}

int sluice_batch_record(sluice_batch *what, const struct sluice_slice *where)
{
	return add_one(what, where, "where",
		       [](batch &b, auto &part) { b.record(part); });
}

int sluice_batch_fault_in(sluice_batch *what, int yes)
{
	return set(what, [&](batch &b) { b.fault_in(yes); });
}

int sluice_batch_place(sluice_batch *what, int how, uint32_t engines)
{
	return change(what, [&](batch &b) -> result<void> {
		if (how < SLUICE_PLACE_AUTOMATIC || how > SLUICE_PLACE_FAN_OUT)
			return fail(errc::usage, "how",
				    std::format("{} is no enum sluice_place", how));
		b.placed(static_cast<place>(how)).engines(engines);
		return {};
	});
}

int sluice_batch_hint(sluice_batch *what, int how)
{
	return change(what, [&](batch &b) -> result<void> {
		if (how < SLUICE_HINT_LATENCY || how > SLUICE_HINT_BACKGROUND)
			return fail(errc::usage, "how",
				    std::format("{} is no enum sluice_hint", how));
		b.hinted(static_cast<hint>(how));
		return {};
	});
}

int sluice_batch_after(sluice_batch *what, int sync_file)
{
	return set(what, [&](batch &b) { b.after(sync_file); });
}

int sluice_batch_nonblocking(sluice_batch *what, int yes)
{
	return set(what, [&](batch &b) { b.nonblocking(yes); });
}

uint64_t sluice_batch_count(const sluice_batch *what)
{
	return what ? what->it.size() : 0;
}

uint64_t sluice_batch_bytes(const sluice_batch *what)
{
	return what ? what->it.bytes() : 0;
}

int sluice_batch_outcome(const sluice_batch *what, struct sluice_outcome *outcome)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(given(what, "batch"));
		const batch_outcome &o = what->it.outcome();
		return give(outcome,
			    sluice_outcome{.size = 0,
					   .engines = o.engines,
					   .vram_bytes = o.vram_bytes,
					   .system_bytes = o.system_bytes,
					   .peer_bytes = o.peer_bytes},
			    "outcome");
	});
}
