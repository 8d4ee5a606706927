// SPDX-License-Identifier: MIT
// Slices of memory, one after the other, as if they were one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sluice/buffer.hpp"

namespace sluice::detail {

class scattered {
public:
	scattered() = default;
	explicit scattered(std::vector<slice> parts) : parts_(std::move(parts))
	{
		for (const slice &part : parts_) {
			starts_.push_back(size_);
			size_ += part.size();
		}
	}

	uint64_t size() const noexcept { return size_; }
	const std::vector<slice> &parts() const noexcept { return parts_; }

	/// Call @p what(memory, at) for each part of [@p offset, @p offset + @p length),
	/// @p at being where it begins in that range.
	template <class What>
	void each(uint64_t offset, uint64_t length, What what) const
	{
		size_t i = part_at(offset);

		for (uint64_t at = 0; at < length; i++) {
			uint64_t skip = offset + at - starts_[i];
			uint64_t n = std::min(parts_[i].size() - skip, length - at);

			if (n)
				what(parts_[i].part(skip, n), at);
			at += n;
		}
	}

	/// How many of @p length bytes from @p offset on are in the first @p parts parts
	/// there, of which there is 1 at least.
	uint64_t reach(uint64_t offset, uint64_t length, size_t parts) const
	{
		size_t end = part_at(offset) + parts;

		return end < starts_.size() ? std::min(length, starts_[end] - offset)
					    : length;
	}

private:
	size_t part_at(uint64_t offset) const
	{
		auto after = std::ranges::upper_bound(starts_, offset);

		return static_cast<size_t>(after - starts_.begin()) - 1;
	}

	std::vector<slice> parts_;
	std::vector<uint64_t> starts_; ///< of each part, in the whole
	uint64_t size_ = 0;
};

} // namespace sluice::detail
