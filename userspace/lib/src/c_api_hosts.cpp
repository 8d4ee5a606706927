// SPDX-License-Identifier: MIT
// The C API: collectives over several hosts.
#include "c_api_group.hpp"
#include "sluice/hosts.hpp"

using namespace sluice;
using namespace sluice::c;

namespace {

/// Memory in the form that the user's functions get, for the time of a call.
struct shown {
	explicit shown(const slice &part)
		: of{part.of()}, it{&of, part.offset(), part.size()}
	{
	}
	shown(const shown &) = delete;
	shown &operator=(const shown &) = delete;

	sluice_buffer of;
	sluice_slice it;
};

/// The user's functions.
class transport final : public host_transport {
public:
	explicit transport(const sluice_host_transport &calls) noexcept : calls_(calls)
	{
	}

	unsigned hosts() const noexcept override { return calls_.hosts; }
	unsigned host() const noexcept override { return calls_.host; }

	result<void> all_gather(const slice &all) override
	{
		const shown memory(all);

		return outcome("all_gather",
			       calls_.all_gather(calls_.user, &memory.it));
	}
	result<void> all_to_all(const slice &to, const slice &from) override
	{
		const shown there(to), here(from);

		return outcome("all_to_all",
			       calls_.all_to_all(calls_.user, &there.it, &here.it));
	}
	result<void> broadcast(unsigned root, const slice &memory) override
	{
		return outcome("broadcast", rooted(calls_.broadcast, root, memory));
	}
	result<void> gather(unsigned root, const slice &memory) override
	{
		return outcome("gather", rooted(calls_.gather, root, memory));
	}
	result<void> scatter(unsigned root, const slice &memory) override
	{
		return outcome("scatter", rooted(calls_.scatter, root, memory));
	}

private:
	int rooted(int (*function)(void *user, uint32_t root,
				   const sluice_slice *memory),
		   unsigned root, const slice &memory) const
	{
		const shown part(memory);

		return function(calls_.user, root, &part.it);
	}
	static result<void> outcome(std::string_view function, int returned)
	{
		if (!returned)
			return {};
		if (returned > 0 || returned < -4095)
			return fail(
				errc::usage, function,
				std::format("it returned {}, and not 0 or a negative "
					    "number of errno",
					    returned));
		return fail_errno(function, "the transport's", -returned);
	}

	sluice_host_transport calls_;
};

result<transport> transport_of(const sluice_host_transport *from)
{
	SLUICE_CHECK(given(from, "transport"));
	SLUICE_TRY(auto t, taken(from, "transport"));
	if (!t.all_gather || !t.all_to_all || !t.broadcast || !t.gather || !t.scatter)
		return fail(errc::usage, "transport", "a function of it is NULL");
	return transport(t);
}

} // namespace

struct sluice_host_group {
	/// Destroyed in reverse order.
	struct inside {
		inside(std::shared_ptr<sluice_group::inside> group,
		       const transport &calls) noexcept
			: local(std::move(group)), over(calls)
		{
		}

		std::shared_ptr<sluice_group::inside> local;
		transport over;
		std::optional<host_group> it;
	};
	std::shared_ptr<inside> it;
};

struct sluice_host_collective {
	struct inside {
		std::shared_ptr<sluice_host_group::inside> on;
		host_collective it;
	};
	std::shared_ptr<inside> it;
};

namespace {

/// Memory of each rank of this host.
std::vector<slice> each(const sluice_host_group &in, const sluice_slice *memory)
{
	return unchecked_all(memory, in.it->local->it.ranks());
}

/// Prepare what @p make makes of a group, and hand it out.
template <class Make>
int prepare(sluice_host_group *in, sluice_host_collective **to, Make &&make) noexcept
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(all_given("group collective", in, to));
		SLUICE_TRY(auto made, make(*in->it->it));
		hand_out(to, std::make_shared<sluice_host_collective::inside>(
				     in->it, std::move(made)));
		return {};
	});
}

} // namespace

int sluice_host_group_create(sluice_group *local,
			     const struct sluice_host_transport *over, uint32_t leader,
			     sluice_host_group **to)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(all_given("local group", local, to));
		SLUICE_TRY(auto calls, transport_of(over));
		auto made =
			std::make_shared<sluice_host_group::inside>(local->it, calls);
		SLUICE_TRY(made->it,
			   host_group::make(local->it->it, made->over, leader));
		hand_out(to, std::move(made));
		return {};
	});
}

void sluice_host_group_free(sluice_host_group *of)
{
	delete of;
}

uint32_t sluice_host_group_ranks(const sluice_host_group *of)
{
	return of ? of->it->it->ranks() : 0;
}

uint32_t sluice_host_group_first_rank(const sluice_host_group *of)
{
	return of ? of->it->it->first_rank() : 0;
}

int sluice_host_group_all_gather(sluice_host_group *in, const struct sluice_slice *to,
				 const struct sluice_slice *from,
				 sluice_host_collective **out)
{
	return prepare(in, out, [&](host_group &all) {
		return all.all_gather(each(*in, to), each(*in, from));
	});
}

int sluice_host_group_all_to_all(sluice_host_group *in, const struct sluice_slice *to,
				 const struct sluice_slice *from,
				 const struct sluice_slice *staging,
				 sluice_host_collective **out)
{
	return prepare(in, out, [&](host_group &all) {
		return all.all_to_all(each(*in, to), each(*in, from),
				      unchecked(staging));
	});
}

int sluice_host_group_broadcast(sluice_host_group *in, uint32_t root,
				const struct sluice_slice *memory,
				sluice_host_collective **out)
{
	return prepare(in, out, [&](host_group &all) {
		return all.broadcast(root, each(*in, memory));
	});
}

int sluice_host_group_gather(sluice_host_group *in, uint32_t root,
			     const struct sluice_slice *to,
			     const struct sluice_slice *from,
			     const struct sluice_slice *staging,
			     sluice_host_collective **out)
{
	return prepare(in, out, [&](host_group &all) {
		return all.gather(root, unchecked(to), each(*in, from),
				  unchecked(staging));
	});
}

int sluice_host_group_scatter(sluice_host_group *in, uint32_t root,
			      const struct sluice_slice *to,
			      const struct sluice_slice *from,
			      const struct sluice_slice *staging,
			      sluice_host_collective **out)
{
	return prepare(in, out, [&](host_group &all) {
		return all.scatter(root, each(*in, to), unchecked(from),
				   unchecked(staging));
	});
}

int sluice_host_collective_run(sluice_host_collective *what, uint64_t *bytes)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(given(what, "collective"));
		SLUICE_TRY(const size_t moved, what->it->it.run());
		if (bytes)
			*bytes = moved;
		return {};
	});
}

void sluice_host_collective_free(sluice_host_collective *what)
{
	delete what;
}
