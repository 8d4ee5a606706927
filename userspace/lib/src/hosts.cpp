// SPDX-License-Identifier: MIT
#include "sluice/hosts.hpp"

#include "engine.hpp"
#include "group_plan.hpp"
#include "host_set.hpp"
#include "try.hpp"

namespace sluice {

namespace {

/// Run all at the same time. All are over when it returns.
result<size_t> run_all(std::vector<collective> &what)
{
	std::vector<collective_run> runs;
	size_t bytes = 0;

	for (collective &one : what)
		runs.push_back(one.run());
	for (collective_run &one : runs) {
		SLUICE_TRY(size_t moved, one.wait());
		bytes += moved;
	}
	return bytes;
}

} // namespace

result<size_t> host_collective::run()
{
	auto before = ring_->may_wait("host_collective").and_then([&] {
		return run_all(before_);
	});

	SLUICE_CHECK(set_->exchange(call_, shared_, before));
	SLUICE_TRY(size_t after, run_all(after_));
	return *before + after;
}

result<host_group> host_group::make(group &local, host_transport &over, unsigned leader)
{
	SLUICE_CHECK(detail::check_place(
		{over.hosts(), over.host(), local.ranks(), leader}));
	if (local.with_)
		return fail(errc::usage, "host_group",
			    "the group is of several processes of this host");
	SLUICE_TRY(auto set, detail::host_set::make(over));
	return host_group(local, leader, std::move(set));
}

detail::host_place host_group::place() const noexcept
{
	const host_transport &over = set_->over();

	return {over.hosts(), over.host(), local_->ranks(), leader_};
}

unsigned host_group::ranks() const noexcept
{
	return place().hosts * place().ranks;
}

unsigned host_group::first_rank() const noexcept
{
	return place().host * place().ranks;
}

result<host_collective> host_group::all_gather(std::span<const slice> to,
					       std::span<const slice> from)
{
	return prepare(detail::plan_all_gather(place(), to, from));
}

result<host_collective> host_group::broadcast(unsigned root,
					      std::span<const slice> memory)
{
	return prepare(detail::plan_broadcast(place(), root, memory));
}

result<host_collective> host_group::all_to_all(std::span<const slice> to,
					       std::span<const slice> from,
					       const slice &staging)
{
	return prepare(detail::plan_all_to_all(place(), to, from, staging));
}

result<host_collective> host_group::gather(unsigned root, const slice &to,
					   std::span<const slice> from,
					   const slice &staging)
{
	return prepare(detail::plan_gather(place(), root, to, from, staging));
}

result<host_collective> host_group::scatter(unsigned root, std::span<const slice> to,
					    const slice &from, const slice &staging)
{
	return prepare(detail::plan_scatter(place(), root, to, from, staging));
}

result<std::vector<collective>>
host_group::prepare_all(const std::vector<detail::plan> &plans)
{
	std::vector<collective> made;

	for (const detail::plan &one : plans) {
		SLUICE_TRY(auto part, local_->prepare(one, {}));
		made.push_back(std::move(part));
	}
	return made;
}

result<host_collective> host_group::prepare_own(const detail::host_plan &what)
{
	host_collective made;

	SLUICE_TRY(made.before_, prepare_all(what.before));
	SLUICE_TRY(made.after_, prepare_all(what.after));
	made.ring_ = local_->ring_;
	made.set_ = set_;
	made.shared_ = what.shared;
	made.call_.kind = static_cast<uint64_t>(what.kind);
	made.call_.ranks = local_->ranks();
	made.call_.bytes = what.bytes;
	made.call_.root = what.root;
	return made;
}

// Either all hosts have the collective, or none.
result<host_collective> host_group::prepare(const result<detail::host_plan> &what)
{
	auto made = what ? prepare_own(*what)
			 : result<host_collective>(std::unexpected(what.error()));
	detail::host_call call = made ? made->call_ : detail::host_call{};

	call.number = set_->next();
	SLUICE_CHECK(set_->agree(call, made));
	call.what = detail::host_call::step::run;
	made->call_ = call;
	return made;
}

} // namespace sluice
