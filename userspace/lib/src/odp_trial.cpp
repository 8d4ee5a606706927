// SPDX-License-Identifier: MIT
#include "odp_trial.hpp"

#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "card.hpp"
#include "sluice/buffer.hpp"
#include "sluice/deadline.hpp"

namespace sluice::detail {

namespace {

using namespace std::chrono_literals;

// The target begins at another offset than the source, and crosses a page.
constexpr size_t from = 100, to = page_size - 96, length = 300;
constexpr size_t memory_size = 2 * page_size;
constexpr uint8_t port = 1;

struct address {
	ibv_gid gid;
	uint8_t index;
};

/// The port's IPv4 address, or any that it has.
std::optional<address> address_of(ibv_context *device, int count)
{
	constexpr uint8_t v4[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	constexpr ibv_gid none{};
	std::optional<address> found;

	for (int i = 0; i < std::min(count, 256); i++) {
		ibv_gid gid;

		if (ibv_query_gid(device, port, i, &gid) ||
		    std::memcmp(&gid, &none, sizeof(gid)) == 0)
			continue;
		found = address{gid, static_cast<uint8_t>(i)};
		if (std::memcmp(gid.raw, v4, sizeof(v4)) == 0)
			break;
	}
	return found;
}

/// Connect a queue pair with itself.
bool connect(ibv_qp *pair, const address &self)
{
	ibv_qp_attr init{.qp_state = IBV_QPS_INIT,
			 .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
			 .port_num = port};
	ibv_qp_attr receive{};
	ibv_qp_attr send{};

	receive.qp_state = IBV_QPS_RTR;
	receive.path_mtu = IBV_MTU_1024;
	receive.dest_qp_num = pair->qp_num;
	receive.max_dest_rd_atomic = 1;
	receive.min_rnr_timer = 12;
	receive.ah_attr.is_global = 1;
	receive.ah_attr.port_num = port;
	receive.ah_attr.grh.dgid = self.gid;
	receive.ah_attr.grh.sgid_index = self.index;
	receive.ah_attr.grh.hop_limit = 64;
	send.qp_state = IBV_QPS_RTS;
	send.timeout = 14;
	send.retry_cnt = 7;
	send.rnr_retry = 7;
	send.max_rd_atomic = 1;
	return !ibv_modify_qp(pair, &init,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				      IBV_QP_ACCESS_FLAGS) &&
	       !ibv_modify_qp(pair, &receive,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				      IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				      IBV_QP_MAX_DEST_RD_ATOMIC |
				      IBV_QP_MIN_RNR_TIMER) &&
	       !ibv_modify_qp(pair, &send,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				      IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				      IBV_QP_MAX_QP_RD_ATOMIC);
}

/// Has the only request in flight succeeded?
bool completes(ibv_cq *queue)
{
	ibv_wc done{};

	for (auto until = after(2s); clock::now() < until;) {
		int n = ibv_poll_cq(queue, 1, &done);

		if (n)
			return n == 1 && done.status == IBV_WC_SUCCESS;
		std::this_thread::sleep_for(50us);
	}
	return false;
}

bool write_once(ibv_qp *pair, ibv_cq *queue, const ibv_mr &source, const ibv_mr &target)
{
	ibv_sge part{reinterpret_cast<uintptr_t>(source.addr) + from, length,
		     source.lkey};
	ibv_send_wr request{}, *bad;

	request.sg_list = &part;
	request.num_sge = 1;
	request.opcode = IBV_WR_RDMA_WRITE;
	request.send_flags = IBV_SEND_SIGNALED;
	request.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(target.addr) + to;
	request.wr.rdma.rkey = target.rkey;
	return ibv_post_send(pair, &request, &bad) == 0 && completes(queue);
}

/// Are the bytes where they belong, and all others as they were?
bool moved_right(const buffer &source, const buffer &target)
{
	std::byte expected[memory_size] = {};

	std::memcpy(expected + to, source.data() + from, length);
	return std::memcmp(expected, target.data(), memory_size) == 0;
}

odp_verdict make_trial(ibv_context *device)
{
	constexpr int access =
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ON_DEMAND;
	auto source = buffer::host(memory_size), target = buffer::host(memory_size);
	ibv_port_attr state{};

	if (!source || !target || ibv_query_port(device, port, &state))
		return odp_verdict::untried;
	for (size_t i = 0; i < memory_size; i++)
		source->data()[i] = static_cast<std::byte>(i % 251 + 1);
	auto self = address_of(device, state.gid_tbl_len);
	pd_ptr domain(ibv_alloc_pd(device));
	cq_ptr queue(ibv_create_cq(device, 4, nullptr, nullptr, 0));
	if (!self || !domain || !queue)
		return odp_verdict::untried;
	mr_ptr out(ibv_reg_mr(domain.get(), source->data(), memory_size, access));
	mr_ptr in(ibv_reg_mr(domain.get(), target->data(), memory_size, access));
	ibv_qp_init_attr wanted{};
	wanted.send_cq = wanted.recv_cq = queue.get();
	wanted.cap = {1, 1, 1, 1, 0};
	wanted.qp_type = IBV_QPT_RC;
	qp_ptr pair(ibv_create_qp(domain.get(), &wanted));
	if (!out || !in || !pair || !connect(pair.get(), *self) ||
	    !write_once(pair.get(), queue.get(), *out, *in))
		return odp_verdict::untried;
	return moved_right(*source, *target) ? odp_verdict::right : odp_verdict::wrong;
}

} // namespace

odp_verdict try_odp(ibv_context *device)
{
	static std::mutex lock;
	static std::map<std::string, odp_verdict> known;
	std::scoped_lock alone(lock);
	odp_verdict &verdict = known[ibv_get_device_name(device->device)];

	if (verdict == odp_verdict::untried)
		verdict = make_trial(device);
	return verdict;
}

bool is_soft_roce(const char *name)
{
	std::filesystem::path at = "/sys/class/infiniband";
	std::error_code ignored;

	at /= name;
	return !std::filesystem::exists(at / "device/vendor", ignored) &&
	       std::filesystem::exists(at / "parent", ignored);
}

} // namespace sluice::detail
