// SPDX-License-Identifier: MIT
#include "xfer/verbs.hpp"

#include <charconv>
#include <cstring>
#include <format>
#include <poll.h>
#include <random>

namespace xfer {

namespace {

constexpr uint8_t port = 1;

Error device_error(const std::string &what, int error = errno)
{
	return system_error(what, error, errc::device);
}

ibv_context *open_device(const std::string &name)
{
	int count = 0;
	std::unique_ptr<ibv_device *, decltype(&ibv_free_device_list)>
		list(ibv_get_device_list(&count), ibv_free_device_list);

	for (int i = 0; list && i < count; i++)
		if (name.empty() ? count == 1
				 : name == ibv_get_device_name(list.get()[i]))
			return ibv_open_device(list.get()[i]);
	throw Error(errc::device, name.empty()
		? std::to_string(count) + " RDMA devices: name one"
		: "there is no RDMA device " + name);
}

} // namespace

RdmaDevice::RdmaDevice(const std::string &name) : context_(open_device(name))
{
	ibv_port_attr attr{};
	ibv_device_attr_ex caps{};
	uint32_t rc;

	if (!context_)
		throw device_error("ibv_open_device " + name);
	name_ = ibv_get_device_name(context_->device);
	if (int err = ibv_query_port(context_.get(), port, &attr))
		throw device_error(name_ + ": ibv_query_port", err);
	if (attr.state != IBV_PORT_ACTIVE)
		throw Error(errc::device, name_ + ": its port is not active");
	mtu_ = attr.active_mtu;
	if (int err = ibv_query_device_ex(context_.get(), nullptr, &caps))
		throw device_error(name_ + ": ibv_query_device_ex", err);
	rc = caps.odp_caps.per_transport_caps.rc_odp_caps;
	on_demand_ = (caps.odp_caps.general_caps & IBV_ODP_SUPPORT) &&
		(rc & IBV_ODP_SUPPORT_WRITE) && (rc & IBV_ODP_SUPPORT_READ);
	choose_gid();
	pd_.reset(ibv_alloc_pd(context_.get()));
	if (!pd_)
		throw device_error(name_ + ": ibv_alloc_pd");
}

// The first RoCE v2 entry of an IPv4 address, else the first entry at all.
void RdmaDevice::choose_gid()
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
					   0xff, 0xff};
	ibv_gid_entry entry{};

	for (uint32_t i = 0; i < 16; i++) {
		if (ibv_query_gid_ex(context_.get(), port, i, &entry, 0))
			continue;
		bool ipv4 = entry.gid_type == IBV_GID_TYPE_ROCE_V2 &&
			!std::memcmp(entry.gid.raw, mapped, sizeof(mapped));
		if (gid_index_ >= 0 && !ipv4)
			continue;
		gid_index_ = static_cast<int>(i);
		gid_ = entry.gid;
		if (ipv4)
			return;
	}
	if (gid_index_ < 0)
		throw Error(errc::device, name_ + ": its GID table is empty");
}

CompletionQueue::CompletionQueue(const RdmaDevice &device, int entries)
	: channel_(ibv_create_comp_channel(device.context()))
{
	if (!channel_)
		throw device_error("ibv_create_comp_channel");
	cq_.reset(ibv_create_cq(device.context(), entries, nullptr,
				channel_.get(), 0));
	if (!cq_)
		throw device_error("ibv_create_cq");
}

result<size_t> CompletionQueue::poll(std::span<ibv_wc> to) const
{
	int n = ibv_poll_cq(cq_.get(), static_cast<int>(to.size()), to.data());

	if (n < 0)
		return fail_errno("ibv_poll_cq", -n, errc::device);
	return static_cast<size_t>(n);
}

// Sleep until the armed queue has an event (true) or control is readable.
result<bool> CompletionQueue::sleep(int control, deadline until) const
{
	pollfd p[2] = {{channel_->fd, POLLIN, 0}, {control, POLLIN, 0}};
	ibv_cq *cq;
	void *context;
	int n;

	do
		n = ::poll(p, 2, poll_timeout(until));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return fail_errno("poll");
	if (n == 0)
		return fail(errc::timeout, "no completion in time");
	if (!p[0].revents)
		return false;
	if (ibv_get_cq_event(channel_.get(), &cq, &context))
		return fail_errno("ibv_get_cq_event", errno, errc::device);
	ibv_ack_cq_events(cq, 1);
	return true;
}

result<size_t> CompletionQueue::next(std::span<ibv_wc> to, int control,
				     deadline until) const
{
	for (;;) {
		auto n = poll(to);
		if (!n || *n)
			return n;
		if (int err = ibv_req_notify_cq(cq_.get(), 0))
			return fail_errno("ibv_req_notify_cq", err, errc::device);
		// What came before the queue was armed gives no event.
		n = poll(to);
		if (!n || *n)
			return n;
		auto event = sleep(control, until);
		if (!event)
			return std::unexpected(event.error());
		if (!*event)
			return 0;
	}
}

MemoryRegion::MemoryRegion(const RdmaDevice &device,
			   std::span<std::byte> memory, int access,
			   bool on_demand)
{
	if (on_demand && !device.on_demand())
		throw Error(errc::device, device.name() +
			    ": cannot register memory on demand");
	mr_.reset(ibv_reg_mr(device.pd(), memory.data(), memory.size(), access |
			     (on_demand ? IBV_ACCESS_ON_DEMAND : 0)));
	if (!mr_)
		throw device_error(std::format("{}: ibv_reg_mr of {} bytes",
					       device.name(), memory.size()));
}

void QpAddress::to(Message &message) const
{
	message.set("qpn", qpn).set("psn", psn).set("mtu", mtu)
	       .set("gid", gid_to_string(gid));
}

result<QpAddress> QpAddress::from(const Message &message)
{
	constexpr uint64_t u24 = 0xffffff;
	auto qpn = message.number("qpn", u24);
	auto psn = message.number("psn", u24);
	auto mtu = message.number("mtu", IBV_MTU_4096);
	auto text = message.string("gid");

	for (const auto *field : {&qpn, &psn, &mtu})
		if (!*field)
			return std::unexpected(field->error());
	if (*mtu < IBV_MTU_256)
		return fail(errc::protocol, "an MTU that does not exist");
	if (!text)
		return std::unexpected(text.error());
	auto gid = gid_from_string(*text);
	if (!gid)
		return std::unexpected(gid.error());
	return QpAddress{static_cast<uint32_t>(*qpn),
			 static_cast<uint32_t>(*psn), *gid,
			 static_cast<ibv_mtu>(*mtu)};
}

QueuePair::QueuePair(const RdmaDevice &device, const CompletionQueue &cq,
		     uint32_t send_depth, uint32_t receive_depth)
	: device_(device), send_depth_(send_depth),
	  psn_(std::random_device{}() & 0xffffff)
{
	ibv_qp_init_attr attr{};

	attr.send_cq = cq.get();
	attr.recv_cq = cq.get();
	attr.qp_type = IBV_QPT_RC;
	attr.sq_sig_all = 1;
	attr.cap.max_send_wr = send_depth;
	attr.cap.max_recv_wr = receive_depth;
	attr.cap.max_send_sge = 1;
	attr.cap.max_recv_sge = 1;
	qp_.reset(ibv_create_qp(device.pd(), &attr));
	if (!qp_)
		throw device_error(device.name() + ": ibv_create_qp");
	or_throw(to_init());
}

QpAddress QueuePair::address() const
{
	return {qp_->qp_num, psn_, device_.gid(), device_.mtu()};
}

result<void> QueuePair::to_init()
{
	ibv_qp_attr attr{};

	attr.qp_state = IBV_QPS_INIT;
	attr.port_num = port;
	attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		IBV_ACCESS_REMOTE_READ;
	if (int err = ibv_modify_qp(qp_.get(), &attr, IBV_QP_STATE |
				    IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS))
		return fail_errno("queue pair to INIT", err, errc::device);
	return {};
}

result<void> QueuePair::to_rtr(const QpAddress &remote)
{
	ibv_qp_attr attr{};

	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = std::min(device_.mtu(), remote.mtu);
	attr.dest_qp_num = remote.qpn;
	attr.rq_psn = remote.psn;
	attr.max_dest_rd_atomic = 16;
	attr.min_rnr_timer = 12;	// 0.64 ms; see credit.hpp: not needed
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = port;
	attr.ah_attr.grh.dgid = remote.gid;
	attr.ah_attr.grh.sgid_index = static_cast<uint8_t>(device_.gid_index());
	attr.ah_attr.grh.hop_limit = 64;
	if (int err = ibv_modify_qp(qp_.get(), &attr, IBV_QP_STATE | IBV_QP_AV |
				    IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER))
		return fail_errno("queue pair to RTR", err, errc::device);
	return {};
}

result<void> QueuePair::to_rts()
{
	ibv_qp_attr attr{};

	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = psn_;
	attr.timeout = 17;		// 4.096 us * 2^17 = 0.5 s
	attr.retry_cnt = 7;
	// Not one "not ready" is allowed: the credits promise that there is
	// none, and a retry would hide a broken promise.
	attr.rnr_retry = 0;
	attr.max_rd_atomic = 16;
	if (int err = ibv_modify_qp(qp_.get(), &attr, IBV_QP_STATE |
				    IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				    IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_MAX_QP_RD_ATOMIC))
		return fail_errno("queue pair to RTS", err, errc::device);
	return {};
}

result<void> QueuePair::connect(const QpAddress &remote)
{
	if (auto ready = to_rtr(remote); !ready)
		return ready;
	return to_rts();
}

result<void> QueuePair::post_receive(uint64_t wr_id)
{
	ibv_recv_wr wr{}, *bad;

	wr.wr_id = wr_id;
	if (int err = ibv_post_recv(qp_.get(), &wr, &bad))
		return fail_errno("ibv_post_recv", err, errc::device);
	return {};
}

result<void> QueuePair::send_immediate(uint64_t wr_id, uint32_t immediate)
{
	ibv_send_wr wr{}, *bad;

	wr.wr_id = wr_id;
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	wr.imm_data = htobe32(immediate);
	if (int err = ibv_post_send(qp_.get(), &wr, &bad))
		return fail_errno("ibv_post_send", err, errc::device);
	return {};
}

result<void> QueuePair::post(const Rdma &rdma)
{
	ibv_send_wr wr{}, *bad;
	ibv_sge sge{};

	sge.addr = reinterpret_cast<uintptr_t>(rdma.local.data());
	sge.length = static_cast<uint32_t>(rdma.local.size());
	sge.lkey = rdma.lkey;
	wr.wr_id = rdma.wr_id;
	wr.opcode = rdma.opcode;
	wr.imm_data = htobe32(rdma.immediate);
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.wr.rdma.remote_addr = rdma.address;
	wr.wr.rdma.rkey = rdma.rkey;
	if (int err = ibv_post_send(qp_.get(), &wr, &bad))
		return fail_errno("ibv_post_send", err, errc::device);
	return {};
}

Error completion_error(const ibv_wc &wc, const std::string &peer,
		       const std::string &device)
{
	errc code = errc::device;

	switch (wc.status) {
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_WR_FLUSH_ERR:
	case IBV_WC_RESP_TIMEOUT_ERR:
		code = errc::peer_lost;
		break;
	case IBV_WC_RNR_RETRY_EXC_ERR:
		code = errc::protocol;
		break;
	default:
		break;
	}
	return Error(code, std::format("{}: RDMA over {}: {}", peer, device,
				       ibv_wc_status_str(wc.status)));
}

std::string gid_to_string(const ibv_gid &gid)
{
	std::string text;

	for (uint8_t byte : gid.raw)
		text += std::format("{:02x}", byte);
	return text;
}

result<ibv_gid> gid_from_string(std::string_view text)
{
	ibv_gid gid{};

	if (text.size() != 2 * sizeof(gid.raw))
		return fail(errc::protocol, "not a GID");
	for (size_t i = 0; i < sizeof(gid.raw); i++) {
		auto digits = text.substr(2 * i, 2);
		auto parsed = std::from_chars(digits.data(), digits.data() + 2,
					      gid.raw[i], 16);

		if (parsed.ec != std::errc{} || parsed.ptr != digits.data() + 2)
			return fail(errc::protocol, "not a GID");
	}
	return gid;
}

} // namespace xfer
