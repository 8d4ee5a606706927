// SPDX-License-Identifier: MIT
// Messages between the hosts of a collective, over the transport that also moves their
// data. They make the same calls in the same order; in each, every host tells all
// others which call it is, and how it went. Knows no GPU.
#pragma once

#include <memory>

#include "sluice/hosts.hpp"

namespace sluice::detail {

class host_set {
public:
	/// @p over must outlive this. errc::system without memory.
	static result<std::shared_ptr<host_set>> make(host_transport &over);

	host_transport &over() const noexcept { return over_; }
	/// The number of the next collective that all prepare.
	uint64_t next() noexcept { return ++prepared_; }

	/// Check that all are at @p mine, and that it went well on all of them. An
	/// error of this host comes first: it is told to the others.
	template <class T> result<void> agree(host_call mine, const result<T> &went)
	{
		if (went)
			return compare(mine);
		mine.failed = 1 + static_cast<uint64_t>(went.error().code());
		(void)compare(mine);
		return std::unexpected(went.error());
	}

	/// The leaders' part of the run @p mine, if all that comes before it went well
	/// on all hosts.
	template <class T>
	result<void> exchange(const host_call &mine, const slice &shared,
			      const result<T> &went)
	{
		if (auto all = agree(mine, went); !all)
			return all;
		return move(mine, shared);
	}

private:
	host_set(host_transport &over, buffer words) noexcept
		: over_(over), words_(std::move(words))
	{
	}
	result<void> compare(const host_call &mine);
	result<void> move(const host_call &mine, const slice &shared);

	host_transport &over_;
	buffer words_; ///< what each host says
	uint64_t prepared_ = 0;
};

} // namespace sluice::detail
