// SPDX-License-Identifier: MIT
#include "xfer/credit.hpp"

namespace xfer {

bool CreditAccount::spend() noexcept
{
	if (available() == 0)
		return false;
	spent_++;
	return true;
}

result<void> CreditAccount::take(uint32_t granted)
{
	// Differences modulo 2^32, so that the totals may wrap.
	uint32_t more = granted - granted_;

	if (more > depth_ || available() + more > depth_)
		return fail(errc::protocol, "the receiver grants " +
			    std::to_string(granted) + " receives in all after " +
			    std::to_string(granted_) + ", and has " +
			    std::to_string(depth_));
	granted_ = granted;
	return {};
}

std::optional<uint32_t> CreditReturn::message() noexcept
{
	if (posted_ - granted_ < batch_ || under_way_ == room_)
		return std::nullopt;
	granted_ = posted_;
	under_way_++;
	return granted_;
}

} // namespace xfer
