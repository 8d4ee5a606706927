// SPDX-License-Identifier: MIT
#include "sluice/endpoint.hpp"

#include "connector.hpp"
#include "hang_up.hpp"
#include "one_context.hpp"
#include "try.hpp"

namespace sluice {

using detail::connection;

void detail::hang_up(endpoint &on, const error &why) noexcept
{
	on.inside().fail(why);
	on.inside().settle();
}

operation detail::send_first(endpoint &on, std::span<const std::byte> message) noexcept
{
	return on.inside().send_first(message);
}

bool detail::has_message(endpoint &on) noexcept
{
	return on.inside().has_message();
}

endpoint::endpoint(std::unique_ptr<connection> c) noexcept : connection_(std::move(c))
{
}
endpoint::endpoint(endpoint &&) noexcept = default;
endpoint &endpoint::operator=(endpoint &&) noexcept = default;
endpoint::~endpoint() = default;

result<endpoint> endpoint::connect(context &in, nic &card, std::string_view host,
				   uint16_t port, const endpoint_options &options,
				   deadline until)
{
	SLUICE_CHECK(
		detail::check_context(card.info().name, card.inside().in, in.inside()));
	SLUICE_CHECK(detail::check_options(options, card.inside()));
	SLUICE_CHECK(in.inside().may_wait("connect"));
	detail::connector one(in, card.inside().shared_from_this(), host, port, options,
			      until);
	if (int err = in.inside().reap_until([&] { return one.step(); }))
		return detail::ring_failed("connect", -err);
	return one.take();
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
