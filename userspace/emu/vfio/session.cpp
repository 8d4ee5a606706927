// SPDX-License-Identifier: MIT
#include "session.hpp"

#include <algorithm>

namespace sluice::emu::vfio {

namespace {
constexpr auto dma_timeout = std::chrono::seconds(20);
// The reader must never wait for a message that only it can receive.
thread_local bool reader_thread = false;
} // namespace

Session::Session(unique_fd socket, Device &device)
	: transport_(std::move(socket)), dispatcher_(device)
{
}

bool Session::answer(Message &m)
{
	Reply r = dispatcher_.handle(m.header, m.payload, m.fds);

	if (m.header.flags & flag_no_reply)
		return true;
	Header h{m.header.id, m.header.command, 0, flag_reply, 0};
	if (r.error) {
		h.flags |= flag_error;
		h.error = static_cast<u32>(r.error);
		r.data.clear();
		r.fd = -1;
	}
	return transport_.send(h, {r.data}, r.fd);
}

void Session::complete(const Message &m)
{
	std::lock_guard guard(lock_);
	auto it = waiters_.find(m.header.id);

	if (it == waiters_.end())
		return;
	Waiter &w = *it->second;
	const_bytes data = m.payload;
	DmaAccess a;
	w.ok = !(m.header.flags & flag_error) && take(data, a);
	if (w.ok && !w.out.empty()) {
		w.ok = data.size() == w.out.size();
		if (w.ok)
			std::ranges::copy(data, w.out.begin());
	}
	w.done = true;
	wake_.notify_all();
}

void Session::run()
{
	reader_thread = true;
	while (auto m = transport_.receive()) {
		if ((m->header.flags & flag_type) == flag_reply)
			complete(*m);
		else if (!answer(*m))
			break;
	}
	reader_thread = false;
	// a client that sent nonsense shall notice
	transport_.shutdown();
	std::lock_guard guard(lock_);
	closed_ = true;
	for (auto &[id, w] : waiters_)
		w->done = true;
	wake_.notify_all();
}

void Session::stop()
{
	transport_.shutdown();
}

bool Session::transact(Command command, u64 address, u64 count, const_bytes in,
		       bytes out)
{
	Waiter w{out};
	DmaAccess a{address, count};
	std::unique_lock guard(lock_);

	if (reader_thread || closed_)
		return false;
	while (waiters_.contains(next_id_))
		next_id_++;
	u16 id = next_id_++;
	waiters_[id] = &w;
	guard.unlock();
	bool sent = transport_.send({id, static_cast<u16>(command), 0, 0, 0},
				    {as_const_bytes(a), in});
	guard.lock();
	if (sent)
		wake_.wait_for(guard, dma_timeout, [&w] { return w.done; });
	waiters_.erase(id);
	return w.ok;
}

bool Session::dma_read(u64 address, bytes out)
{
	u64 limit = dispatcher_.peer_transfer();

	while (!out.empty()) {
		bytes part = out.first(std::min<u64>(out.size(), limit));
		if (!transact(Command::dma_read, address, part.size(), {}, part))
			return false;
		address += part.size();
		out = out.subspan(part.size());
	}
	return true;
}

bool Session::dma_write(u64 address, const_bytes in)
{
	u64 limit = dispatcher_.peer_transfer();

	while (!in.empty()) {
		const_bytes part = in.first(std::min<u64>(in.size(), limit));
		if (!transact(Command::dma_write, address, part.size(), part, {}))
			return false;
		address += part.size();
		in = in.subspan(part.size());
	}
	return true;
}

} // namespace sluice::emu::vfio
