// SPDX-License-Identifier: MIT
// One client: a reader thread that answers its requests and hands replies to
// the workers that wait for them.
#pragma once

#include "dispatcher.hpp"
#include "transport.hpp"

#include <condition_variable>
#include <map>

namespace sluice::emu::vfio {

class Session {
public:
	Session(unique_fd socket, Device &device);

	// Until the client goes away.
	void run();
	void stop();

	// DMA by message, from any thread but the reader: QEMU serves it only
	// when no access of the guest waits for us.
	bool dma_read(u64 address, bytes out);
	bool dma_write(u64 address, const_bytes in);

private:
	struct Waiter {
		bytes out;
		bool done = false, ok = false;
	};

	bool answer(Message &m);
	void complete(const Message &m);
	bool transact(Command command, u64 address, u64 count, const_bytes in,
		      bytes out);

	Transport transport_;
	Dispatcher dispatcher_;
	std::mutex lock_;
	std::condition_variable wake_;
	std::map<u16, Waiter *> waiters_;
	u16 next_id_ = 0;
	bool closed_ = false;
};

} // namespace sluice::emu::vfio
