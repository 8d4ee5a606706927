// SPDX-License-Identifier: MIT
#include "sluice/endpoint.hpp"

#include <algorithm>

#include "connection.hpp"
#include "hang_up.hpp"
#include "resolve.hpp"
#include "try.hpp"

namespace sluice {

namespace {

using detail::connection;
using detail::engine;
using connection_result = result<std::unique_ptr<connection>>;

// Between attempts, while nobody is there who would take them.
constexpr auto pause = std::chrono::milliseconds(50);
// What an address that is silent may take of the time for others.
constexpr auto least_attempt = std::chrono::seconds(1);

/// An attempt's failure, and whether another one may succeed.
struct attempt {
	std::unique_ptr<connection> made;
	std::optional<error> failure;
	bool again = false;
};

result<void> reap(engine &in, deadline until)
{
	if (int err = in.reap(until); err < 0 && err != -ETIME)
		return fail_errno("io_uring", "wait", -err);
	return {};
}

// Let the context run until then.
result<void> rest(engine &in, deadline until)
{
	while (clock::now() < until)
		SLUICE_CHECK(reap(in, until));
	return {};
}

attempt try_address(const std::shared_ptr<detail::card> &card,
		    const sockaddr_storage &to, const endpoint_options &options,
		    deadline until)
{
	auto made = std::make_unique<connection>(card, options);
	auto started = made->connect(reinterpret_cast<const sockaddr &>(to), until);

	if (!started)
		return {.made = {}, .failure = started.error()};
	while (!made->over() && made->now() != connection::state::up) {
		if (clock::now() >= until)
			return {.made = {}, .failure = error(
					errc::timeout, made->peer(),
					"it does not answer in time"), .again = true};
		if (auto ok = reap(card->in, until); !ok)
			return {.made = {}, .failure = ok.error()};
	}
	if (made->over())
		return {.made = {}, .failure = made->cause(),
			.again = made->unanswered()};
	return {.made = std::move(made), .failure = {}};
}

// Each address gets its part of the time that is left.
deadline part_of(deadline until, size_t addresses)
{
	if (until == never)
		return addresses > 1 ? after(10 * least_attempt) : never;
	auto share = (until - clock::now()) / static_cast<long>(addresses);

	return std::min(until, after(std::max<clock::duration>(share, least_attempt)));
}

connection_result connect_to(const std::shared_ptr<detail::card> &card,
			     std::span<const sockaddr_storage> addresses,
			     const endpoint_options &options, deadline until)
{
	error last(errc::timeout, "connect", "there was no time for it");

	for (;;) {
		bool again = false;

		for (size_t i = 0; i < addresses.size(); i++) {
			auto one = try_address(card, addresses[i], options,
					       part_of(until, addresses.size() - i));
			if (one.made)
				return std::move(one.made);
			again |= one.again;
			// Why not is more than that the time is over.
			if (one.failure->code() != errc::timeout ||
			    last.code() == errc::timeout)
				last = *one.failure;
			// Who is there and does not want us is not asked elsewhere.
			if (last.code() == errc::denied ||
			    last.code() == errc::protocol)
				return std::unexpected(last);
		}
		if (!again || clock::now() + pause >= until)
			return std::unexpected(last);
		SLUICE_CHECK(rest(card->in, after(pause)));
	}
}

} // namespace

void detail::hang_up(endpoint &on, const error &why) noexcept
{
	on.inside().fail(why);
	on.inside().settle();
}

endpoint::endpoint(std::unique_ptr<connection> c) noexcept
	: connection_(std::move(c))
{
}
endpoint::endpoint(endpoint &&) noexcept = default;
endpoint &endpoint::operator=(endpoint &&) noexcept = default;
endpoint::~endpoint() = default;

result<endpoint> endpoint::connect(context &in, nic &card, std::string_view host,
				   uint16_t port, const endpoint_options &options,
				   deadline until)
{
	if (&card.inside().in != &in.inside())
		return fail(errc::usage, card.info().name, "it is of another context");
	SLUICE_CHECK(detail::check_options(options));
	SLUICE_TRY(auto addresses, detail::resolve(in, host, port, until));
	SLUICE_TRY(auto made, connect_to(card.inside().shared_from_this(), addresses,
					 options, until));
	return endpoint(std::move(made));
}

std::string_view endpoint::peer() const noexcept
{
	return connection_->peer();
}

operation endpoint::send(std::span<const std::byte> message)
{
	return connection_->send(message);
}

operation endpoint::receive(std::span<std::byte> to)
{
	return connection_->receive(to);
}

operation endpoint::write(const slice &from, const registration &local,
			  const remote_memory &to, uint64_t offset)
{
	return connection_->transfer(true, from, local, to, offset);
}

operation endpoint::read(const slice &to, const registration &local,
			 const remote_memory &from, uint64_t offset)
{
	return connection_->transfer(false, to, local, from, offset);
}

result<void> endpoint::alive() const noexcept
{
	if (connection_->over())
		return std::unexpected(connection_->cause());
	return {};
}

} // namespace sluice
