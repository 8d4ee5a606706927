// SPDX-License-Identifier: MIT
// Hosts that are threads of one process, and a transport between them.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>

#include "group_cases.hpp"
#include "sluice/hosts.hpp"

namespace sluice {

// The defined effect of a transport, on the memory of all hosts.

inline void gather_all(std::span<const slice> memory)
{
	const size_t part = memory[0].size() / memory.size();

	for (size_t from = 0; from < memory.size(); from++)
		for (size_t to = 0; to < memory.size(); to++)
			if (from != to)
				std::ranges::copy(
					memory[from].part(from * part, part).bytes(),
					memory[to].part(from * part, part).data());
}

inline void broadcast_all(std::span<const slice> memory, unsigned root)
{
	for (size_t to = 0; to < memory.size(); to++)
		if (to != root)
			std::ranges::copy(memory[root].bytes(), memory[to].data());
}

// From the root's memory one part to each of the others, or the reverse.
inline void scatter_all(std::span<const slice> memory, unsigned root, bool gathers)
{
	for (size_t h = 0; h < memory.size(); h++) {
		if (h == root)
			continue;
		const slice part =
			memory[root].part(h * memory[h].size(), memory[h].size());

		std::ranges::copy((gathers ? memory[h] : part).bytes(),
				  (gathers ? part : memory[h]).data());
	}
}

inline void exchange_all(std::span<const slice> to, std::span<const slice> from)
{
	const size_t part = to[0].size() / to.size();

	for (size_t by = 0; by < to.size(); by++)
		for (size_t h = 0; h < to.size(); h++)
			if (by != h)
				std::ranges::copy(from[by].part(h * part, part).bytes(),
						  to[h].part(by * part, part).data());
}

/// Where threads that act as hosts meet: the last one to arrive moves the data of all.
class hub {
public:
	using mover =
		std::function<void(std::span<const slice>, std::span<const slice>)>;

	explicit hub(unsigned hosts) : come_(hosts), from_(hosts) {}

	unsigned hosts() const { return static_cast<unsigned>(come_.size()); }
	result<void> meet(unsigned host, const slice &memory, const slice &from,
			  const mover &move)
	{
		std::unique_lock guard(lock_);
		const unsigned turn = turn_;

		come_[host] = memory;
		from_[host] = from;
		if (missing() == hosts()) {
			move(come_, from_);
			come_.assign(hosts(), {});
			turn_++;
			changed_.notify_all();
			return {};
		}
		if (changed_.wait_for(guard, patience, [&] { return turn_ != turn; }))
			return {};
		return std::unexpected(
			error(errc::peer_lost, "hub", "somebody is missing")
				.at(missing()));
	}

	std::chrono::milliseconds patience = std::chrono::seconds(20);

private:
	unsigned missing() const
	{
		auto nobody = [](const slice &s) { return !s.of(); };

		return static_cast<unsigned>(std::ranges::find_if(come_, nobody) -
					     come_.begin());
	}

	std::mutex lock_;
	std::condition_variable changed_;
	slices come_, from_;
	unsigned turn_ = 0;
};

class thread_transport : public host_transport {
public:
	thread_transport(hub &place, unsigned host) : hub_(place), host_(host) {}

	unsigned hosts() const noexcept override { return hub_.hosts(); }
	unsigned host() const noexcept override { return host_; }
	result<void> all_gather(const slice &all) override
	{
		return meet(all, gather_all);
	}
	result<void> all_to_all(const slice &to, const slice &from) override
	{
		return hub_.meet(host_, to, from, exchange_all);
	}
	result<void> broadcast(unsigned root, const slice &memory) override
	{
		return meet(memory, [root](auto all) { broadcast_all(all, root); });
	}
	result<void> gather(unsigned root, const slice &memory) override
	{
		return meet(memory, [root](auto all) { scatter_all(all, root, true); });
	}
	result<void> scatter(unsigned root, const slice &memory) override
	{
		return meet(memory,
			    [root](auto all) { scatter_all(all, root, false); });
	}

private:
	result<void> meet(const slice &memory, const auto &move)
	{
		return hub_.meet(host_, memory, {}, [&](auto all, auto) { move(all); });
	}

	hub &hub_;
	unsigned host_;
};

} // namespace sluice
