// SPDX-License-Identifier: MIT
#include "host_set.hpp"

#include <format>

#include "group_plan.hpp"
#include "try.hpp"

namespace sluice::detail {

namespace {

using step = host_call::step;

/// Calls come from another host: numbers may have any value.
std::string text_of(const host_call &call)
{
	const bool known = call.kind <= static_cast<uint64_t>(pattern::send);

	return std::format("{} {}, {} of {} ranks, root {}, {} bytes",
			   call.what == step::run ? "run of" : "preparation",
			   call.number,
			   known ? name(static_cast<pattern>(call.kind)) : "?",
			   call.ranks, call.root, call.bytes);
}

std::unexpected<error> wrong(errc code, unsigned host, std::string_view what)
{
	return std::unexpected(
		error(code, std::format("host {}", host), what).at(host));
}

result<void> check_failed(const host_call &said, unsigned host)
{
	if (!said.failed)
		return {};
	if (said.failed > 1 + static_cast<uint64_t>(errc::corrupt))
		return wrong(errc::protocol, host, "it says what makes no sense");
	return wrong(errc::peer_error, host,
		     std::format("it failed there: {}",
				 name(static_cast<errc>(said.failed - 1))));
}

} // namespace

result<std::shared_ptr<host_set>> host_set::make(host_transport &over)
{
	SLUICE_TRY(auto words, buffer::host(over.hosts() * sizeof(host_call),
					    {.huge_pages = false}));
	return std::shared_ptr<host_set>(new host_set(over, std::move(words)));
}

// The failure of a host counts first: what else it says may be due to that.
result<void> host_set::compare(const host_call &mine)
{
	const slice said(words_, 0, over_.hosts() * sizeof(host_call));
	const std::span all(reinterpret_cast<host_call *>(said.data()), over_.hosts());

	all[over_.host()] = mine;
	SLUICE_CHECK(over_.all_gather(said));
	for (unsigned h = 0; h < all.size(); h++)
		SLUICE_CHECK(check_failed(all[h], h));
	for (unsigned h = 0; h < all.size(); h++)
		if (all[h] != mine)
			return wrong(errc::protocol, h,
				     std::format("{}; here: {}", text_of(all[h]),
						 text_of(mine)));
	return {};
}

result<void> host_set::move(const host_call &mine, const slice &shared)
{
	const auto root = static_cast<unsigned>(mine.root / mine.ranks);
	const size_t half = shared.size() / 2;

	switch (static_cast<pattern>(mine.kind)) {
	case pattern::all_gather: return over_.all_gather(shared);
	case pattern::all_to_all:
		return over_.all_to_all(shared.part(half, half), shared.part(0, half));
	case pattern::gather: return over_.gather(root, shared);
	case pattern::scatter: return over_.scatter(root, shared);
	default: return over_.broadcast(root, shared);
	}
}

} // namespace sluice::detail
