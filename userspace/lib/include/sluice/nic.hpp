// SPDX-License-Identifier: MIT
// A network card with RDMA, and memory that is registered with it. Source: libibverbs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/buffer.hpp"
#include "sluice/context.hpp"

namespace sluice {

namespace detail {
class card;
class registration_data;
} // namespace detail

/// A card that can be opened.
struct nic_info {
	std::string name; ///< "mlx5_0", "rxe0"
	std::string driver;
	std::string address;   ///< PCI, or empty: it is software
	std::string interface; ///< network interface of port 1, if any
	int numa_node = -1;
	bool infiniband = false; ///< else RoCE
	bool active = false;
	bool on_demand = false; ///< RC can read and write memory on demand
	/// It claims to have on_demand, but moved wrong bytes in a trial: soft RoCE of
	/// kernels without the series' fixes.
	bool on_demand_wrong = false;
	/// It is offered, and nobody could try whether it is right: no port, no address.
	bool on_demand_untried = false;
	bool dmabuf = false;	      ///< it may register dma-bufs (tried when opened)
	uint32_t max_read_atomic = 0; ///< RDMA reads in flight on a connection
	uint32_t max_sends = 0, max_completions = 0;
};

/// All RDMA devices. Empty if there are none.
std::vector<nic_info> list_nics();

/// How a device reaches a buffer, best first.
enum class registration_path : uint8_t {
	on_demand, ///< nothing is pinned; pages are faulted in as they are used
	dmabuf,	   ///< the exporter keeps the memory where it is, and may revoke it
	pinned,	   ///< pages are pinned: in host memory, and charged to memlock
};

const char *name(registration_path path) noexcept;

enum class remote : uint8_t { none = 0, read = 1, write = 2 };
constexpr remote operator|(remote a, remote b)
{
	return static_cast<remote>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
}

/// Memory within a card's reach. Destroying it revokes the peer's rights at once. A peer
/// that uses them later loses the connection, and this side does, too (errc::denied): first
/// agree by a message that it stops. Writes and reads of this side that are in
/// flight still use it, and the rights end with the last of them. It keeps the buffer
/// alive.
class registration {
public:
	registration() noexcept = default;
	registration(registration &&) noexcept = default;
	registration &operator=(registration &&) noexcept = default;

	explicit operator bool() const noexcept { return bool(data_); }
	const slice &memory() const noexcept;
	registration_path path() const noexcept;
	uint32_t local_key() const noexcept;
	/// For a peer, together with the address and size of memory().
	uint32_t remote_key() const noexcept;

	/// Have the card fault in all of the memory now, instead of on demand.
	/// errc::unsupported if it is not registered on demand, errc::device.
	result<void> prefetch() const;

	detail::registration_data *inside() const noexcept { return data_.get(); }
	/// For operations, which keep it registered.
	std::shared_ptr<detail::registration_data> share() const noexcept
	{
		return data_;
	}

private:
	friend class nic;
	explicit registration(std::shared_ptr<detail::registration_data> data) noexcept
		: data_(std::move(data))
	{
	}

	std::shared_ptr<detail::registration_data> data_;
};

class nic {
public:
	/// @param name e.g. "rxe0"; empty: the only one; if there are several,
	///	errc::usage names them. errc::device if there is none, or no port of it
	///	is active.
	static result<nic> open(context &in, std::string_view name);

	nic(nic &&) noexcept;
	nic &operator=(nic &&) noexcept;
	~nic();

	const nic_info &info() const noexcept;

	/// Let the card reach @p memory by the best path that there is for it, and
	/// peers as @p rights allow. errc::no_path says why each path fails, such as a
	/// low `ulimit -l`; errc::usage if @p memory is empty, or outside its buffer.
	result<registration> register_memory(const slice &memory, remote rights);
	/// The same by @p path or not at all: errc::no_path says why not.
	result<registration> register_memory(const slice &memory, remote rights,
					     registration_path path);

	detail::card &inside() noexcept { return *card_; }

private:
	explicit nic(std::shared_ptr<detail::card> card) noexcept;

	std::shared_ptr<detail::card> card_;
};

} // namespace sluice
