// SPDX-License-Identifier: MIT
// The C API: network cards, and connections to peers.
#include "c_api.hpp"
#include "connector.hpp"

using namespace sluice;
using namespace sluice::c;

struct sluice_listener {
	/// Destroyed in reverse order.
	struct inside {
		std::shared_ptr<card> by;
		listener it;
	};
	std::shared_ptr<inside> it;
};

namespace {

sluice_nic_info info_of(const nic_info &from)
{
	sluice_nic_info info{};

	put_text(info.name, from.name);
	put_text(info.driver, from.driver);
	put_text(info.address, from.address);
	put_text(info.interface, from.interface);
	info.numa_node = from.numa_node;
	info.flags = (from.infiniband ? SLUICE_NIC_INFINIBAND : 0) |
		     (from.active ? SLUICE_NIC_ACTIVE : 0) |
		     (from.on_demand ? SLUICE_NIC_ON_DEMAND : 0) |
		     (from.dmabuf ? SLUICE_NIC_DMABUF : 0) |
		     (from.address.empty() ? SLUICE_NIC_SOFTWARE : 0);
	return info;
}

result<endpoint_options> options_of(const sluice_endpoint_options *options)
{
	endpoint_options to;

	SLUICE_TRY(auto o, taken(options, "options"));
	if (o.token)
		to.token.assign(o.token,
				o.token_length ? o.token_length : std::strlen(o.token));
	if (o.messages)
		to.messages = o.messages;
	if (o.depth)
		to.depth = o.depth;
	SLUICE_TRY(to.silence, duration_of(o.silence_ns, to.silence, "silence_ns"));
	return to;
}

std::shared_ptr<peer> peer_of(const std::shared_ptr<card> &by, endpoint &&made)
{
	std::string name(made.peer());

	return std::make_shared<peer>(by, std::move(made), std::move(name));
}

/// A connection that is being made.
class connecting final : public stepped_operation {
public:
	connecting(const std::shared_ptr<card> &by, const char *host, uint16_t port,
		   const endpoint_options &options, deadline until)
		: stepped_operation(by->in, by, "connect"), by_(by),
		  it_(by->in->it, by->it.inside().shared_from_this(), host, port,
		      options, until)
	{
	}

	bool done() override { return it_.step(); }
	void cancel() override { it_.cancel(); }
	result<std::shared_ptr<peer>> take();

private:
	result<uint64_t> outcome() const override;

	std::shared_ptr<card> by_;
	detail::connector it_;
};

result<uint64_t> connecting::outcome() const
{
	if (it_.failure())
		return std::unexpected(*it_.failure());
	return 0;
}

result<std::shared_ptr<peer>> connecting::take()
{
	if (!it_.step())
		return fail(errc::usage, "operation", "it is not done");
	SLUICE_TRY(auto made, it_.take());
	return peer_of(by_, std::move(made));
}

/// Names may be NULL.
std::string_view text_of(const char *text)
{
	return text ? text : "";
}

} // namespace

int sluice_nic_count(uint32_t *count)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(given(count, "count"));
		*count = static_cast<uint32_t>(list_nics().size());
		return {};
	});
}

int sluice_nic_info_at(uint32_t index, struct sluice_nic_info *info)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(given(info, "info"));
		auto all = list_nics();
		if (index >= all.size())
			return fail(errc::device, "nic",
				    std::format("there is no RDMA device {} of {}",
						index, all.size()));
		return give(info, info_of(all[index]), "info");
	});
}

int sluice_nic_open(sluice_context *in, const char *name, sluice_nic **to)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(all_given("context nic", in, to));
		SLUICE_TRY(auto opened, nic::open(in->it->it, text_of(name)));
		hand_out(to, std::make_shared<card>(in->it, std::move(opened)));
		return {};
	});
}

void sluice_nic_close(sluice_nic *by)
{
	delete by;
}

int sluice_nic_get_info(const sluice_nic *by, struct sluice_nic_info *info)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(given(by, "nic"));
		return give(info, info_of(by->it->it.info()), "info");
	});
}

int sluice_endpoint_connect(sluice_nic *by, const char *host, uint16_t port,
			    const struct sluice_endpoint_options *options,
			    int64_t until, sluice_endpoint **to)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(all_given("nic host endpoint", by, host, to));
		SLUICE_TRY(auto o, options_of(options));
		SLUICE_TRY(auto made,
			   endpoint::connect(by->it->in->it, by->it->it, host, port, o,
					     deadline_of(until)));
		hand_out(to, peer_of(by->it, std::move(made)));
		return {};
	});
}

int sluice_endpoint_begin(sluice_nic *by, const char *host, uint16_t port,
			  const struct sluice_endpoint_options *options, int64_t until,
			  sluice_operation **op)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(all_given("nic host operation", by, host, op));
		SLUICE_TRY(auto o, options_of(options));
		SLUICE_CHECK(detail::check_options(o, by->it->it.inside()));
		SLUICE_CHECK(by->it->in->it.inside().may_wait("connect"));
		*op = new connecting(by->it, host, port, o, deadline_of(until));
		return {};
	});
}

int sluice_endpoint_take(sluice_operation *op, sluice_endpoint **to)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(all_given("operation endpoint", op, to));
		auto *one = dynamic_cast<connecting *>(op);
		if (!one)
			return fail(errc::usage, "operation",
				    "it is none of sluice_endpoint_begin()");
		SLUICE_TRY(auto made, one->take());
		hand_out(to, std::move(made));
		return {};
	});
}

void sluice_endpoint_close(sluice_endpoint *with)
{
	if (!with)
		return;
	with->it->closed = true;
	with->it->end_if_unused();
	delete with;
}

const char *sluice_endpoint_peer(const sluice_endpoint *with)
{
	return with ? with->it->name.c_str() : "";
}

int sluice_endpoint_alive(const sluice_endpoint *with)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(given(with, "endpoint"));
		return with->it->it.alive();
	});
}

int sluice_endpoint_send(sluice_endpoint *with, const void *message, size_t length,
			 sluice_operation **op)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(all_given("endpoint operation", with, op));
		if (length)
			SLUICE_CHECK(given(message, "message"));
		auto *bytes = static_cast<const std::byte *>(message);
		return start(op, with->it->by->in, with->it,
			     with->it->it.send({bytes, length}));
	});
}

int sluice_endpoint_receive(sluice_endpoint *with, const struct sluice_slice *to,
			    sluice_operation **op)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(all_given("endpoint operation", with, op));
		SLUICE_TRY(auto memory, slice_of(to, "to"));
		if (!memory.of().mapped())
			return fail(errc::unsupported, "to",
				    "the CPU does not reach this memory");
		// The operation keeps both.
		struct kept {
			std::shared_ptr<peer> with;
			slice memory;
		};
		auto keep = std::make_shared<kept>(with->it, memory);
		return start(op, with->it->by->in, std::move(keep),
			     with->it->it.receive(memory.bytes()));
	});
}

int sluice_listener_open(sluice_nic *by, const char *host, uint16_t port,
			 const struct sluice_endpoint_options *options,
			 sluice_listener **to)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(all_given("nic listener", by, to));
		SLUICE_TRY(auto o, options_of(options));
		SLUICE_TRY(auto opened, listener::open(by->it->in->it, by->it->it,
						       text_of(host), port, o));
		hand_out(to, std::make_shared<sluice_listener::inside>(
				     by->it, std::move(opened)));
		return {};
	});
}

void sluice_listener_close(sluice_listener *door)
{
	if (!door)
		return;
	// Operations keep the inside, and need no listener: they end with it.
	listener closed(std::move(door->it->it));
	delete door;
}

uint16_t sluice_listener_port(const sluice_listener *door)
{
	return door ? door->it->it.port() : 0;
}

int sluice_listener_arrival(sluice_listener *door, sluice_operation **op)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(all_given("listener operation", door, op));
		return start(op, door->it->by->in, door->it, door->it->it.arrival());
	});
}

int sluice_listener_accept(sluice_listener *door, int64_t until, sluice_endpoint **to)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(all_given("listener endpoint", door, to));
		SLUICE_TRY(auto made, door->it->it.accept(deadline_of(until)));
		hand_out(to, peer_of(door->it->by, std::move(made)));
		return {};
	});
}
