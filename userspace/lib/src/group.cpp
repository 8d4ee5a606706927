// SPDX-License-Identifier: MIT
#include "sluice/group.hpp"

#include <algorithm>
#include <atomic>
#include <format>

#include "gpu.hpp"
#include "group_plan.hpp"
#include "try.hpp"

namespace sluice {

namespace {

// Collectives of one process begin at different engines: several may run at once, and
// an engine makes one wait at a time.
std::atomic<unsigned> engines_given;

/// Of each GPU the same number of engines is passed by.
unsigned first_engine(const detail::plan &what)
{
	unsigned most = 0;

	for (const auto &steps : what.ranks)
		most = std::max(most, detail::engines_wanted(what.how, steps));
	return engines_given.fetch_add(most);
}

/// Those of @p on that face the host are left to others.
uint32_t choose_engines(device &on, unsigned count, bool waits, unsigned first)
{
	const batch_limits &limits = on.limits();

	return detail::pick_engines(waits ? limits.wait_engines : limits.engines,
				    on.inside().node().caps.host_engine_mask, count,
				    first);
}

void add_step(batch &to, const detail::step &what)
{
	if (what.swaps)
		to.swap(what.to[0], what.from);
	else if (what.to.size() == 1)
		to.copy(what.to[0], what.from);
	else
		to.broadcast(what.to, what.from);
}

result<void> attach_all(device &gpu, std::span<const detail::step> steps)
{
	for (const detail::step &s : steps) {
		SLUICE_CHECK(gpu.attach(s.from.of()));
		for (const slice &to : s.to)
			SLUICE_CHECK(gpu.attach(to.of()));
	}
	return {};
}

/// What the batches of a collective have in common.
struct preparation {
	variant how;
	unsigned first_engine;
	const buffer *word = nullptr; ///< to wait for; nullptr: none
	clock::duration hold{};	      ///< so long at most
};

// One batch, in which nothing needs an order but the wait in front. The kernel cuts it
// in as many shares as it may have engines: with as many engines as steps, of about the
// same size, each has an engine of its own.
result<prepared_batch> prepare_rank(device &gpu, std::span<const detail::step> steps,
				    const preparation &with)
{
	const buffer *word = with.word;
	batch all(steps.size() + 1);

	SLUICE_CHECK(attach_all(gpu, steps));
	all.fault_in();
	if (word) {
		SLUICE_CHECK(gpu.attach(*word));
		all.wait(word->part(0, 4), compare::greater_equal, 1, with.hold);
	}
	for (const detail::step &s : steps)
		add_step(all, s);
	all.placed(with.how == variant::b2b ? place::one_engine : place::fan_out);
	all.engines(choose_engines(gpu, detail::engines_wanted(with.how, steps), word,
				   with.first_engine));
	return gpu.prepare(all);
}

std::atomic_ref<uint32_t> word_in(const buffer &memory)
{
	return std::atomic_ref(*reinterpret_cast<uint32_t *>(memory.data()));
}

} // namespace

result<group> group::make(context &in, std::span<device> gpus)
{
	group made(in);

	if (gpus.empty() || gpus.size() > most_ranks)
		return fail(errc::usage, "group",
			    std::format("{} GPUs: a group has 1 to {}", gpus.size(),
					most_ranks));
	for (device &gpu : gpus) {
		if (&gpu.inside().ring() != made.ring_)
			return fail(
				errc::usage, gpu.info().address,
				"it was opened on another context than its group's");
		made.gpus_.push_back(&gpu);
	}
	return made;
}

result<collective> group::all_gather(std::span<const slice> to,
				     std::span<const slice> from,
				     const collective_options &how)
{
	return prepare(detail::plan_all_gather(ranks(), to, from, how), how);
}

result<collective> group::all_to_all(std::span<const slice> to,
				     std::span<const slice> from,
				     const collective_options &how)
{
	return prepare(detail::plan_all_to_all(ranks(), to, from, how), how);
}

result<collective> group::broadcast(unsigned root, std::span<const slice> memory,
				    const collective_options &how)
{
	return prepare(detail::plan_broadcast(ranks(), root, memory, how), how);
}

result<collective> group::gather(unsigned root, const slice &to,
				 std::span<const slice> from,
				 const collective_options &how)
{
	return prepare(detail::plan_gather(ranks(), root, to, from, how), how);
}

result<collective> group::scatter(unsigned root, std::span<const slice> to,
				  const slice &from, const collective_options &how)
{
	return prepare(detail::plan_scatter(ranks(), root, to, from, how), how);
}

result<collective> group::send(std::span<const message> all,
			       const collective_options &how)
{
	return prepare(detail::plan_send(ranks(), all, how), how);
}

result<clock::duration> group::longest_hold(clock::duration wanted) const
{
	using milliseconds = std::chrono::duration<double, std::milli>;
	clock::duration most = clock::duration::max();

	for (const device *gpu : gpus_)
		most = std::min(most, gpu->limits().wait);
	if (wanted < clock::duration::zero() || wanted > most)
		return fail(errc::usage, "hold",
			    std::format("{}, the GPUs allow 0 to {}",
					milliseconds(wanted), milliseconds(most)));
	return wanted == clock::duration::zero() ? most : wanted;
}

result<collective> group::prepare(result<detail::plan> what,
				  const collective_options &how)
{
	SLUICE_TRY(const auto plan, std::move(what));
	collective made(*ring_, plan.how);
	preparation with{plan.how, first_engine(plan)};

	if (how.prelaunch) {
		SLUICE_TRY(with.hold, longest_hold(how.hold));
		SLUICE_TRY(auto word, buffer::host(page_size));
		made.word_ = std::make_shared<const buffer>(std::move(word));
		with.word = made.word_.get();
	}
	made.parts_.resize(ranks());
	for (unsigned r = 0; r < ranks(); r++) {
		if (plan.ranks[r].empty())
			continue;
		auto part = prepare_rank(*gpus_[r], plan.ranks[r], with);
		if (!part)
			return std::unexpected(std::move(part.error()).at(r));
		made.parts_[r].emplace(*std::move(part));
	}
	return made;
}

collective_run collective::run()
{
	collective_run made(static_cast<unsigned>(parts_.size()));

	if (word_.use_count() > 1) {
		for (unsigned r = 0; r < parts_.size(); r++)
			made.parts_[r] = ring_->failed(
				error(errc::busy, "collective",
				      "a run is under way, and a prelaunched one has one at "
				      "a time")
					.at(r));
		return made;
	}
	if (word_)
		word_in(*word_).store(0);
	made.held_ = word_;
	for (unsigned r = 0; r < parts_.size(); r++)
		made.parts_[r] = parts_[r] ? parts_[r]->run() : ring_->done(0);
	// What fails here is tried again by who waits, and said there.
	if (!ring_->chaining())
		ring_->submit_and_listen();
	return made;
}

void collective::release() noexcept
{
	if (word_)
		word_in(*word_).store(1);
}

uint64_t collective::bytes() const noexcept
{
	uint64_t all = 0;

	for (const auto &part : parts_)
		all += part ? part->bytes() : 0;
	return all;
}

bool collective_run::poll() noexcept
{
	bool all = true;

	for (operation &part : std::span(parts_).first(ranks_))
		all &= part.poll();
	if (all)
		held_.reset();
	return all;
}

result<size_t> collective_run::wait_until(deadline until) noexcept
{
	size_t bytes = 0;

	for (operation &part : std::span(parts_).first(ranks_))
		if (auto waited = part.wait_until(until); !part.done())
			return waited;
	held_.reset();
	for (unsigned r = 0; r < ranks_; r++) {
		SLUICE_TRY(size_t moved, of(r));
		bytes += moved;
	}
	return bytes;
}

void collective_run::cancel() noexcept
{
	for (operation &part : std::span(parts_).first(ranks_))
		part.cancel();
}

result<size_t> collective_run::of(unsigned rank) noexcept
{
	if (rank >= ranks_)
		return fail(errc::usage, "collective",
			    std::format("rank {}, it has {}", rank, ranks_));
	auto moved = parts_[rank].wait_until({});
	if (!moved)
		return std::unexpected(std::move(moved.error()).at(rank));
	return moved;
}

} // namespace sluice
