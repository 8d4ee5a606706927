// SPDX-License-Identifier: MIT
// The C API: collectives of GPUs.
#include <format>

#include "c_api_group.hpp"
#include "group_plan.hpp"

using namespace sluice;
using namespace sluice::c;

static_assert(static_cast<int>(variant::swap) == SLUICE_VARIANT_SWAP &&
	      static_cast<int>(variant::b2b) == SLUICE_VARIANT_B2B);
static_assert(group::most_ranks == SLUICE_MAX_RANKS);

struct sluice_collective {
	struct inside {
		std::shared_ptr<sluice_group::inside> on;
		collective it;
	};
	std::shared_ptr<inside> it;
};

namespace {

class running final : public ring_operation<collective_run> {
public:
	using ring_operation::ring_operation;

	result<size_t> of(uint32_t rank) { return it_.of(rank); }
};

result<collective_options> options_of(const sluice_collective_options *from)
{
	collective_options to;

	SLUICE_TRY(auto o, taken(from, "options"));
	SLUICE_CHECK(known_flags(o.flags, SLUICE_COLLECTIVE_PRELAUNCH, "options"));
	if (o.variant > SLUICE_VARIANT_B2B)
		return fail(errc::usage, "options",
			    std::format("{} is no enum sluice_variant", o.variant));
	to.how = static_cast<variant>(o.variant);
	to.prelaunch = o.flags & SLUICE_COLLECTIVE_PRELAUNCH;
	SLUICE_TRY(to.hold, duration_of(o.hold_ns, to.hold, "hold_ns"));
	return to;
}

/// Prepare what @p make makes of a group, and hand it out.
template <class Make>
int prepare(sluice_group *in, const sluice_collective_options *options,
	    sluice_collective **to, Make &&make) noexcept
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(all_given("group collective", in, to));
		group &by = in->it->it;
		const auto how = options_of(options);
		SLUICE_TRY(auto made, how ? make(by, *how) : by.refuse(how.error()));
		hand_out(to, std::make_shared<sluice_collective::inside>(
				     in->it, std::move(made)));
		return {};
	});
}

using all_to_others = result<collective> (group::*)(std::span<const slice> to,
						    std::span<const slice> from,
						    const collective_options &how);

/// A collective with memory of all ranks at both ends.
int prepare_all(sluice_group *in, const sluice_slice *to, const sluice_slice *from,
		const sluice_collective_options *options, sluice_collective **out,
		all_to_others what) noexcept
{
	return prepare(in, options, out, [&](group &g, auto &how) {
		return (g.*what)(unchecked_all(to, g.ranks()),
				 unchecked_all(from, g.ranks()), how);
	});
}

} // namespace

int sluice_group_create(sluice_context *in, sluice_device *const *gpus, size_t count,
			sluice_group **to)
{
	return guarded([&]() -> result<void> {
		std::vector<std::shared_ptr<gpu>> kept;
		std::vector<device *> all;

		SLUICE_CHECK(all_given("context gpus group", in, gpus, to));
		SLUICE_CHECK(detail::check_gpus(count));
		for (uint32_t r = 0; r < count; r++) {
			if (!gpus[r])
				return std::unexpected(
					error(errc::usage, "gpus", "one is NULL")
						.at(r));
			kept.push_back(gpus[r]->it);
			all.push_back(&kept.back()->it);
		}
		const std::span<device *const> ranks(all);
		SLUICE_TRY(auto made, group::make(in->it->it, ranks));
		hand_out(to, std::make_shared<sluice_group::inside>(
				     in->it, std::move(kept), std::move(made)));
		return {};
	});
}

int sluice_group_create_shared(sluice_device *gpu, const sluice_processes *with,
			       sluice_group **to)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(all_given("device processes group", gpu, with, to));
		SLUICE_TRY(auto made,
			   group::make(gpu->it->in->it, gpu->it->it, with->it->it));
		hand_out(to,
			 std::make_shared<sluice_group::inside>(
				 gpu->it->in, std::vector{gpu->it}, std::move(made)));
		return {};
	});
}

void sluice_group_free(sluice_group *of)
{
	delete of;
}

uint32_t sluice_group_ranks(const sluice_group *of)
{
	return of ? of->it->it.ranks() : 0;
}

int sluice_group_all_gather(sluice_group *in, const struct sluice_slice *to,
			    const struct sluice_slice *from,
			    const struct sluice_collective_options *options,
			    sluice_collective **out)
{
	return prepare_all(in, to, from, options, out, &group::all_gather);
}

int sluice_group_all_to_all(sluice_group *in, const struct sluice_slice *to,
			    const struct sluice_slice *from,
			    const struct sluice_collective_options *options,
			    sluice_collective **out)
{
	return prepare_all(in, to, from, options, out, &group::all_to_all);
}

int sluice_group_broadcast(sluice_group *in, uint32_t root,
			   const struct sluice_slice *memory,
			   const struct sluice_collective_options *options,
			   sluice_collective **out)
{
	return prepare(in, options, out, [&](group &g, auto &how) {
		return g.broadcast(root, unchecked_all(memory, g.ranks()), how);
	});
}

int sluice_group_gather(sluice_group *in, uint32_t root, const struct sluice_slice *to,
			const struct sluice_slice *from,
			const struct sluice_collective_options *options,
			sluice_collective **out)
{
	return prepare(in, options, out, [&](group &g, auto &how) {
		return g.gather(root, unchecked(to), unchecked_all(from, g.ranks()),
				how);
	});
}

int sluice_group_scatter(sluice_group *in, uint32_t root, const struct sluice_slice *to,
			 const struct sluice_slice *from,
			 const struct sluice_collective_options *options,
			 sluice_collective **out)
{
	return prepare(in, options, out, [&](group &g, auto &how) {
		return g.scatter(root, unchecked_all(to, g.ranks()), unchecked(from),
				 how);
	});
}

int sluice_group_send(sluice_group *in, const struct sluice_message *messages,
		      size_t count, const struct sluice_collective_options *options,
		      sluice_collective **out)
{
	return prepare(in, options, out,
		       [&](group &g, auto &how) -> result<collective> {
		std::vector<message> all;

		if (!messages && count)
			return g.refuse(given(messages, "messages").error());
		for (const sluice_message &m : std::span(messages, count))
			all.push_back({m.from, m.to, unchecked(&m.target),
				       unchecked(&m.source)});
		return g.send(all, how);
	});
}

int sluice_collective_run(sluice_collective *what, sluice_operation **op)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(all_given("collective operation", what, op));
		*op = new running(what->it->on->in, what->it, what->it->it.run());
		return {};
	});
}

int sluice_collective_release(sluice_collective *what)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(given(what, "collective"));
		what->it->it.release();
		return {};
	});
}

int sluice_collective_of(sluice_operation *op, uint32_t rank, uint64_t *bytes)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(all_given("operation bytes", op, bytes));
		auto *one = dynamic_cast<running *>(op);
		if (!one)
			return fail(errc::usage, "operation",
				    "it is none of sluice_collective_run()");
		SLUICE_TRY(*bytes, one->of(rank));
		return {};
	});
}

int sluice_collective_variant(const sluice_collective *what)
{
	int how = 0;
	int err = guarded([&]() -> result<void> {
		SLUICE_CHECK(given(what, "collective"));
		how = static_cast<int>(what->it->it.how());
		return {};
	});

	return err ? err : how;
}

uint64_t sluice_collective_bytes(const sluice_collective *what)
{
	return what ? what->it->it.bytes() : 0;
}

void sluice_collective_free(sluice_collective *what)
{
	delete what;
}
