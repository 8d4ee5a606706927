// SPDX-License-Identifier: MIT
#include "connector.hpp"

#include <algorithm>

namespace sluice::detail {

namespace {

// Between attempts, while no listener is there.
constexpr auto pause_between = std::chrono::milliseconds(50);
// How much of the time for others a silent address may take.
constexpr auto least_attempt = std::chrono::seconds(1);

// Each address gets its share of the time that is left.
deadline part_of(deadline until, size_t addresses)
{
	if (until == never)
		return addresses > 1 ? after(10 * least_attempt) : never;
	auto share = (until - clock::now()) / static_cast<long>(addresses);

	return std::min(until, after(std::max<clock::duration>(share, least_attempt)));
}

} // namespace

connector::connector(context &in, std::shared_ptr<card> by, std::string_view host,
		     uint16_t port, const endpoint_options &options, deadline until)
	: in_(in), card_(std::move(by)), options_(options), until_(until),
	  lookup_(in, host, port),
	  last_(errc::timeout, "connect", "there was no time for it")
{
	if (!lookup_.told().done() && until != never)
		lookup_limit_ = in.sleep_until(until);
}

bool connector::step()
{
	if (!outcome_ && addresses_.empty() && !look_up())
		return false;
	while (!outcome_ && pause_.done()) {
		if (!trying_)
			begin();
		if (trying_ && !judge())
			return false;
	}
	return outcome_.has_value();
}

void connector::cancel()
{
	if (step())
		return;
	trying_.reset();
	outcome_ = fail(errc::cancelled, "connect", "cancelled");
}

result<endpoint> connector::take()
{
	if (failure())
		return std::unexpected(*failure());
	if (!**outcome_)
		return fail(errc::usage, "connect", "it was taken already");
	return endpoint(std::move(**outcome_));
}

const error *connector::failure() const noexcept
{
	return *outcome_ ? nullptr : &outcome_->error();
}

bool connector::look_up()
{
	if (!lookup_.told().done() && clock::now() < until_)
		return false;
	if (auto found = lookup_.take())
		addresses_ = std::move(*found);
	else
		outcome_ = std::unexpected(found.error());
	return true;
}

void connector::begin()
{
	const auto &to = reinterpret_cast<const sockaddr &>(addresses_[next_]);

	attempt_until_ = part_of(until_, addresses_.size() - next_);
	trying_ = std::make_unique<connection>(card_, options_);
	if (auto started = trying_->connect(to, attempt_until_); !started)
		return gave_up(started.error(), false);
	if (attempt_until_ != never)
		card_->tick_by(attempt_until_);
}

// Is this attempt over?
bool connector::judge()
{
	const connection &c = *trying_;
	bool late = clock::now() >= attempt_until_;

	if (!c.over() && c.now() == connection::state::up)
		outcome_ = std::move(trying_);
	else if (late && (!c.over() || c.cause().code() == errc::timeout))
		gave_up({errc::timeout, c.peer(), "it does not answer in time"}, true);
	else if (c.over())
		gave_up(error(c.cause()), c.unanswered());
	else
		return false;
	return true;
}

void connector::gave_up(const error &why, bool again)
{
	again_ |= again;
	// The reason for a failure tells more than a timeout.
	if (why.code() != errc::timeout || last_.code() == errc::timeout)
		last_ = why;
	trying_.reset();
	// After a refusal, the other addresses are not tried.
	if (last_.code() == errc::denied || last_.code() == errc::protocol)
		outcome_ = std::unexpected(last_);
	if (++next_ < addresses_.size())
		return;
	next_ = 0;
	if (!std::exchange(again_, false) || clock::now() + pause_between >= until_)
		outcome_ = std::unexpected(last_);
	else
		pause_ = in_.sleep_until(after(pause_between));
}

} // namespace sluice::detail
