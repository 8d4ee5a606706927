// SPDX-License-Identifier: MIT
// An event that coroutines of one context wait for, and that others signal.
#pragma once

#include "engine.hpp"

namespace sluice::detail {

/// A waiter checks again when it is woken: notify() wakes all, whatever changed. They
/// run when the context runs next, not inside notify().
class event {
public:
	explicit event(engine &in) noexcept : in_(in) {}
	event(const event &) = delete;
	~event() { notify(); }

	operation wait() noexcept
	{
		op_state *op = in_.take();

		if (!op)
			return in_.refused();
		op->what = "event";
		op->owner = this;
		op->stop = [](op_state &self) noexcept {
			static_cast<event *>(self.owner)->forget(self);
			self.in->finish(self,
					fail(errc::cancelled, "event", "cancelled"));
		};
		op->next = waiting_;
		waiting_ = op;
		return operation(op);
	}

	void notify() noexcept
	{
		while (op_state *op = waiting_) {
			waiting_ = op->next;
			in_.finish(*op, 0);
		}
	}

private:
	void forget(op_state &gone) noexcept
	{
		for (op_state **link = &waiting_; *link; link = &(*link)->next)
			if (*link == &gone) {
				*link = gone.next;
				return;
			}
	}

	engine &in_;
	op_state *waiting_ = nullptr;
};

} // namespace sluice::detail
