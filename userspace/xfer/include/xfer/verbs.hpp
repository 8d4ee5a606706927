// SPDX-License-Identifier: MIT
// RDMA verbs with owners. Objects must be destroyed in the reverse order of
// their making, as members of a struct are.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

#include "xfer/channel.hpp"
#include "xfer/deadline.hpp"
#include "xfer/error.hpp"

namespace xfer {

namespace detail {
template <auto Destroy> struct Destroyer {
	template <class T> void operator()(T *p) const { Destroy(p); }
};
template <class T, auto Destroy>
using handle = std::unique_ptr<T, Destroyer<Destroy>>;
} // namespace detail

/// An open device, its port 1 and a protection domain.
class RdmaDevice {
public:
	/// @param name e.g. "rxe0"; empty: the only device that there is.
	/// Throws Error of kind errc::device.
	explicit RdmaDevice(const std::string &name);

	ibv_context *context() const noexcept { return context_.get(); }
	ibv_pd *pd() const noexcept { return pd_.get(); }
	ibv_mtu mtu() const noexcept { return mtu_; }
	int gid_index() const noexcept { return gid_index_; }
	const ibv_gid &gid() const noexcept { return gid_; }
	/// Can reliable connections read and write memory on demand?
	bool on_demand() const noexcept { return on_demand_; }
	const std::string &name() const noexcept { return name_; }

private:
	void choose_gid();

	detail::handle<ibv_context, ibv_close_device> context_;
	detail::handle<ibv_pd, ibv_dealloc_pd> pd_;
	std::string name_;
	ibv_mtu mtu_{};
	int gid_index_ = -1;
	ibv_gid gid_{};
	bool on_demand_ = false;
};

/// A completion queue with a channel to sleep on.
class CompletionQueue {
public:
	/// @param entries at least as many as all queues on it hold. Throws.
	CompletionQueue(const RdmaDevice &device, int entries);

	ibv_cq *get() const noexcept { return cq_.get(); }

	/// Take completions, at most @p to.size(); if there are none, sleep.
	/// 0: none, and @p control (if not -1) has something to read or was
	/// hung up. errc::timeout. A failed work request is not an Error here:
	/// see the status of its completion.
	result<size_t> next(std::span<ibv_wc> to, int control,
			    deadline until) const;

private:
	result<size_t> poll(std::span<ibv_wc> to) const;
	result<bool> sleep(int control, deadline until) const;

	detail::handle<ibv_comp_channel, ibv_destroy_comp_channel> channel_;
	detail::handle<ibv_cq, ibv_destroy_cq> cq_;
};

/// Registered memory.
class MemoryRegion {
public:
	/// @param access IBV_ACCESS_* besides IBV_ACCESS_ON_DEMAND
	/// @param on_demand nothing is pinned; pages are looked up as they are
	///	used. Throws Error of kind errc::device.
	MemoryRegion(const RdmaDevice &device, std::span<std::byte> memory,
		     int access, bool on_demand);

	uint32_t lkey() const noexcept { return mr_->lkey; }
	uint32_t rkey() const noexcept { return mr_->rkey; }

private:
	detail::handle<ibv_mr, ibv_dereg_mr> mr_;
};

/// Where the other end of a connection is.
struct QpAddress {
	uint32_t qpn = 0;
	uint32_t psn = 0;
	ibv_gid gid{};
	ibv_mtu mtu{};

	void to(Message &message) const;
	static result<QpAddress> from(const Message &message);
};

/// A reliable connection.
class QueuePair {
public:
	/// Queue sizes in work requests; one segment each. Throws Error.
	QueuePair(const RdmaDevice &device, const CompletionQueue &cq,
		  uint32_t send_depth, uint32_t receive_depth);

	QpAddress address() const;

	/// Connect to @p remote. Receives may be posted before.
	result<void> connect(const QpAddress &remote);

	/// Post a receive without a buffer: for immediate data.
	result<void> post_receive(uint64_t wr_id);

	/// Post a send without data.
	result<void> send_immediate(uint64_t wr_id, uint32_t immediate);

	/// An RDMA operation between @p local, which @p mr covers, and
	/// @p address at the other end.
	struct Rdma {
		ibv_wr_opcode opcode;
		uint64_t wr_id;
		std::span<std::byte> local;
		uint32_t lkey;
		uint64_t address;
		uint32_t rkey;
		uint32_t immediate = 0;
	};
	result<void> post(const Rdma &rdma);

	/// Send queue size asked for.
	uint32_t send_depth() const noexcept { return send_depth_; }

private:
	result<void> to_init();
	result<void> to_rtr(const QpAddress &remote);
	result<void> to_rts();

	const RdmaDevice &device_;
	detail::handle<ibv_qp, ibv_destroy_qp> qp_;
	uint32_t send_depth_;
	uint32_t psn_;
};

/// The Error of a completion that is none of success: errc::peer_lost if the
/// connection broke, errc::protocol if the other side was not ready, else
/// errc::device. @p peer is the other end's name.
Error completion_error(const ibv_wc &wc, const std::string &peer,
		       const std::string &device);

/// Text of a GID, 32 hexadecimal digits, and back.
std::string gid_to_string(const ibv_gid &gid);
result<ibv_gid> gid_from_string(std::string_view text);

} // namespace xfer
