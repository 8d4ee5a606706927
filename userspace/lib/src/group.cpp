// SPDX-License-Identifier: MIT
#include "sluice/group.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <format>

#include "gpu.hpp"
#include "group_plan.hpp"
#include "one_context.hpp"
#include "process_set.hpp"
#include "try.hpp"

namespace sluice {

namespace {

// Collectives of one process begin at different engines: several may run at once, and
// an engine handles one wait at a time.
std::atomic<unsigned> engines_given;

/// The same number of engines is skipped on each GPU.
unsigned first_engine(const detail::plan &what)
{
	unsigned most = 0;

	for (const auto &steps : what.ranks)
		most = std::max(most, detail::engines_wanted(what.how, steps));
	return engines_given.fetch_add(most);
}

/// Engines of @p on that face the host are left for other work.
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
	clock::duration hold{};	      ///< how long at most
};

// One batch, in which only the wait at the beginning needs an order. The kernel cuts
// the batch into as many shares as it may use engines: with as many engines as steps of
// about the same size, each has an engine of its own.
result<prepared_batch> prepare_rank(device &gpu, std::span<const detail::step> steps,
				    const preparation &with)
{
	SLUICE_CHECK(detail::fits(gpu.limits(), steps));
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

/// FNV-1a over numbers.
class summary {
public:
	void add(uint64_t number)
	{
		for (int i = 0; i < 8; i++, number >>= 8)
			sum_ = (sum_ ^ (number & 0xff)) * 0x100000001b3;
	}
	void add(const slice &memory)
	{
		add(memory.offset());
		add(memory.size());
	}
	uint64_t sum() const { return sum_; }

private:
	uint64_t sum_ = 0xcbf29ce484222325;
};

uint64_t bytes_of(const detail::plan &what)
{
	uint64_t all = 0;

	for (const auto &steps : what.ranks)
		all += detail::bytes_of(steps);
	return all;
}

std::atomic_ref<uint32_t> word_in(const buffer &memory)
{
	return std::atomic_ref(*reinterpret_cast<uint32_t *>(memory.data()));
}

} // namespace

// A root is the receiver of all, or has something for all.
uint64_t detail::summary_of(const plan &what, bool prelaunch)
{
	summary s;

	s.add(static_cast<uint64_t>(what.kind));
	s.add(static_cast<uint64_t>(what.how));
	s.add(prelaunch);
	for (const auto &steps : what.ranks) {
		s.add(steps.size());
		for (const step &one : steps) {
			s.add(one.from);
			for (const slice &to : one.to)
				s.add(to);
		}
	}
	for (const auto &ranks : what.receivers) {
		s.add(ranks.size());
		for (unsigned rank : ranks)
			s.add(rank);
	}
	return s.sum();
}

result<group> group::make(context &in, std::span<device> gpus)
{
	std::vector<device *> all;

	for (device &gpu : gpus)
		all.push_back(&gpu);
	return make(in, std::span<device *const>(all));
}

result<group> group::make(context &in, std::span<device *const> gpus)
{
	group made(in);

	SLUICE_CHECK(detail::check_gpus(gpus.size()));
	for (device *gpu : gpus)
		SLUICE_CHECK(detail::check_context(gpu->info().address,
						   gpu->inside().ring(), *made.ring_));
	made.gpus_.assign(gpus.begin(), gpus.end());
	return made;
}

result<group> group::make(context &in, device &gpu, const processes &with)
{
	group made(in);

	SLUICE_CHECK(detail::check_context(gpu.info().address, gpu.inside().ring(),
					   *made.ring_));
	if (&with.inside()->ring() != made.ring_)
		return fail(errc::usage, "group",
			    "the processes have met on another context than its own");
	made.with_ = with.inside();
	made.gpus_.resize(with.ranks());
	made.gpus_[with.rank()] = &gpu;
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

result<collective> group::refuse(const error &why)
{
	return prepare(std::unexpected(why), {});
}

result<clock::duration> group::longest_hold(clock::duration wanted) const
{
	using milliseconds = std::chrono::duration<double, std::milli>;
	clock::duration most = clock::duration::max();

	for (const device *gpu : gpus_)
		if (gpu)
			most = std::min(most, gpu->limits().wait);
	if (wanted < clock::duration::zero() || wanted > most)
		return fail(errc::usage, "hold",
			    std::format("{}, the GPUs allow 0 to {}",
					milliseconds(wanted), milliseconds(most)));
	return wanted == clock::duration::zero() ? most : wanted;
}

result<collective> group::prepare_own(const detail::plan &what,
				      const collective_options &how)
{
	collective made(*ring_, with_, what);
	preparation with{what.how, first_engine(what)};

	if (how.prelaunch) {
		SLUICE_TRY(with.hold, longest_hold(how.hold));
		SLUICE_TRY(auto word, buffer::host(page_size));
		made.word_ = std::make_shared<const buffer>(std::move(word));
		with.word = made.word_.get();
	}
	made.parts_.resize(ranks());
	for (unsigned r = 0; r < ranks(); r++) {
		if (!gpus_[r] || what.ranks[r].empty())
			continue;
		auto part = prepare_rank(*gpus_[r], what.ranks[r], with);
		if (!part)
			return std::unexpected(std::move(part.error()).at(r));
		made.parts_[r].emplace(*std::move(part));
	}
	return made;
}

// All processes have the collective, or none, if all come in time. One that comes after
// the patience of another one may get what that has given up: see processes.
result<collective> group::prepare(const result<detail::plan> &what,
				  const collective_options &how)
{
	auto made = what ? prepare_own(*what, how)
			 : result<collective>(std::unexpected(what.error()));

	if (!with_)
		return made;
	SLUICE_TRY(const auto all,
		   with_->agree(detail::note::kind::plan,
				made ? result<uint64_t>(
					       detail::summary_of(*what, how.prelaunch))
				     : std::unexpected(made.error())));
	for (unsigned r = 0; r < ranks(); r++)
		if (all[r] != all[with_->rank()])
			return std::unexpected(
				error(errc::usage, detail::name(what->kind),
				      std::format("rank {} prepares another operation, "
						  "variant, root, receiver, size or "
						  "place than rank {}",
						  r, with_->rank()))
					.at(r));
	return made;
}

// A child speaks for nobody.
void detail::shared_run::end() noexcept
{
	if (with_ && with_->ring().is_ours())
		with_->end_run();
	with_.reset();
}

collective::collective(detail::engine &ring, std::shared_ptr<detail::process_set> with,
		       const detail::plan &what) noexcept
	: ring_(&ring), with_(std::move(with)), how_(what.how), bytes_(bytes_of(what))
{
}

std::optional<error> collective::cannot_run() const
{
	if (word_.use_count() > 1)
		return error(errc::busy, "collective",
			     "a run is under way, and a prelaunched one has one at a "
			     "time");
	if (!with_)
		return {};
	if (!with_->begin_run())
		return error(errc::busy, "collective",
			     "a run is under way, and processes have one at a time");
	if (!ring_->chaining())
		return {};
	// It counts as a run, as it does in the processes that have begun it.
	error why(errc::usage, "collective",
		  "of several processes, it cannot be part of a chain");
	with_->tell_of_run(std::unexpected(why));
	with_->end_run();
	return why;
}

operation collective::start(unsigned rank)
{
	if (with_ && rank != with_->rank())
		return with_->listen(rank);
	return parts_[rank] ? parts_[rank]->run() : ring_->done(0);
}

collective_run collective::run()
{
	const auto ranks = static_cast<unsigned>(parts_.size());
	collective_run made(ranks);

	if (const auto why = cannot_run()) {
		for (unsigned r = 0; r < ranks; r++)
			made.parts_[r] = ring_->failed(error(*why).at(r));
		return made;
	}
	if (with_) {
		made.shared_ = detail::shared_run(with_);
		made.unheard_ = ((1u << ranks) - 1) & ~(1u << with_->rank());
	}
	if (word_)
		word_in(*word_).store(0);
	made.held_ = word_;
	for (unsigned r = 0; r < ranks; r++)
		made.parts_[r] = start(r);
	if (with_)
		made.timer_ = ring_->done(0);
	// If this fails, a caller that waits retries it, and returns the error.
	if (!ring_->chaining())
		ring_->submit_and_listen();
	return made;
}

void collective::release() noexcept
{
	if (word_)
		word_in(*word_).store(1);
}

/// @p rank's process has something to say.
void collective_run::hear_of(unsigned rank) noexcept
{
	detail::process_set &with = *shared_.with();
	auto said = with.heard_of_run(rank);

	// The operation that listened is freed first: there may be no room for another.
	parts_[rank] = {};
	if (!said) {
		parts_[rank] = with.listen(rank);
		// It cannot listen: that is the rank's error.
		if (parts_[rank].done())
			unheard_ &= ~(1u << rank);
		else
			with.ring().submit_and_listen();
		return;
	}
	unheard_ &= ~(1u << rank);
	parts_[rank] =
		*said ? with.ring().done(**said) : with.ring().failed(said->error());
}

/// An engine always finishes, but a process may not. The listening operation ends
/// later: waiting for it would reap completions that others wait for.
void collective_run::give_up(unsigned rank) noexcept
{
	unheard_ &= ~(1u << rank);
	given_up_ |= 1u << rank;
	parts_[rank].cancel();
}

/// To hear of other ranks, those of the mask @p ranks, may start a request, which would be
/// part of an open chain.
bool collective_run::is_deaf(uint32_t ranks) const noexcept
{
	return unheard_ & ranks && shared_.with()->ring().chaining();
}

/// As far as completions were reaped. Other processes are told what is over here.
bool collective_run::over(unsigned rank) noexcept
{
	const uint32_t bit = 1u << rank;
	const bool late = late_ != never && clock::now() >= late_;

	if (unheard_ & bit &&
	    (parts_[rank].done() || late || shared_.with()->has_ended_run(rank)))
		hear_of(rank);
	if (unheard_ & bit && late)
		give_up(rank);
	if (!(given_up_ & bit) && !parts_[rank].done())
		return false;
	if (shared_.with() && rank == shared_.with()->rank()) {
		shared_.with()->tell_of_run(parts_[rank].wait_until({}));
		if (late_ == never)
			late_ = shared_.with()->limit();
	}
	return true;
}

/// Wake a caller that sleeps until the ring has events when others are late.
void collective_run::wake_when_late() noexcept
{
	if (late_ == never || !timer_.done() || shared_.with()->ring().chaining())
		return;
	// It takes the place that it has kept: there may be no other.
	timer_ = {};
	timer_ = shared_.with()->ring().sleep_until(late_);
	shared_.with()->ring().submit_and_listen();
}

void collective_run::end() noexcept
{
	timer_ = {};
	held_.reset();
	shared_.end();
}

bool collective_run::poll() noexcept
{
	for (unsigned r = 0; r < ranks_; r++)
		parts_[r].poll();
	return done();
}

bool collective_run::done() noexcept
{
	bool all = true;

	for (unsigned r = 0; r < ranks_; r++)
		all &= !is_deaf(1u << r) && over(r);
	if (all)
		end();
	else
		wake_when_late();
	return all;
}

result<size_t> collective_run::wait_until(deadline until) noexcept
{
	const unsigned own = shared_.with() ? shared_.with()->rank() : 0;
	size_t bytes = 0;

	if (is_deaf(unheard_))
		return fail(errc::usage, "collective",
			    "a chain is open, in which other processes are not heard");
	// This process's rank first: others wait to hear of it.
	for (unsigned n = 0; n < ranks_; n++) {
		const unsigned r = (own + n) % ranks_;

		while (!over(r))
			if (auto waited = parts_[r].wait_until(std::min(until, late_));
			    !parts_[r].done() && clock::now() < late_)
				return waited;
	}
	end();
	for (unsigned r = 0; r < ranks_; r++) {
		SLUICE_TRY(size_t moved, of(r));
		bytes += moved;
	}
	return bytes;
}

// Operations that listen to other processes are not cancelled.
void collective_run::cancel() noexcept
{
	for (unsigned r = 0; r < ranks_; r++)
		if (!(unheard_ >> r & 1))
			parts_[r].cancel();
}

result<size_t> collective_run::of(unsigned rank) noexcept
{
	if (rank >= ranks_)
		return fail(errc::usage, "collective",
			    std::format("rank {}, it has {}", rank, ranks_));
	parts_[rank].poll();
	// The run ends when the last rank is asked for.
	(void)done();
	if (given_up_ >> rank & 1)
		return std::unexpected(
			error(errc::timeout, std::format("rank {}", rank),
			      "its process does not say how the run ended")
				.at(rank));
	if (unheard_ >> rank & 1 || !parts_[rank].done())
		return std::unexpected(error(errc::timeout, "collective",
					     std::format("rank {} is under way", rank),
					     EINPROGRESS)
					       .at(rank));
	auto moved = parts_[rank].wait_until({});
	if (!moved)
		return std::unexpected(std::move(moved.error()).at(rank));
	return moved;
}

} // namespace sluice
