// SPDX-License-Identifier: MIT
// Coroutines over operations: optional, in this header alone.
//
//	sluice::task<void> copy(context &c, int from, int to, buffer b)
//	{
//		auto n = co_await c.read(from, b, 0);
//		if (n)
//			co_await c.write(to, b.part(0, *n), 0);
//	}
//
// A task runs up to its first wait when it is created. It owns its frame: destroying it
// before it is done destroys the coroutine's local objects, and so drains its
// operations. One coroutine at a time may await a task, or an operation. An exception that
// leaves a coroutine ends the process.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

#include "sluice/context.hpp"

namespace sluice {

template <class T> class task;

namespace detail {

template <class T> struct task_value {
	std::optional<T> value;
	void return_value(T v) { value.emplace(std::move(v)); }
	// It has returned. NOLINTNEXTLINE(bugprone-unchecked-optional-access)
	T take() { return std::move(*value); }
};

template <> struct task_value<void> {
	void return_void() noexcept {}
	void take() noexcept {}
};

} // namespace detail

template <class T> class [[nodiscard]] task {
public:
	struct awaiter;
	struct promise_type : detail::task_value<T> {
		awaiter *by = nullptr; ///< what waits for the end

		~promise_type()
		{
			if (by)
				by->of = {};
		}
		task get_return_object() noexcept
		{
			return task(handle::from_promise(*this));
		}
		std::suspend_never initial_suspend() const noexcept { return {}; }
		auto final_suspend() const noexcept
		{
			struct resume_waiter {
				bool await_ready() const noexcept { return false; }
				std::coroutine_handle<> await_suspend(
					std::coroutine_handle<promise_type> h) noexcept
				{
					if (auto *by = h.promise().by)
						return by->waiter;
					return std::noop_coroutine();
				}
				void await_resume() const noexcept {}
			};
			return resume_waiter{};
		}
		// Only running out of memory leads here, and it could not be reported.
		void unhandled_exception() const noexcept { std::terminate(); }
	};
	using handle = std::coroutine_handle<promise_type>;

	task(task &&other) noexcept : handle_(std::exchange(other.handle_, {})) {}
	task &operator=(task &&other) noexcept
	{
		std::swap(handle_, other.handle_);
		return *this;
	}
	~task()
	{
		if (handle_)
			handle_.destroy();
	}

	bool done() const noexcept { return handle_.done(); }

	/// Run the context until the task is done, and return the task's result.
	T run(context &in)
	{
		while (!done())
			if (!in.run_once(never))
				std::terminate(); // the ring is broken
		return handle_.promise().take();
	}

	/// A coroutine that waits for the end of another one. Either may be destroyed
	/// first.
	struct awaiter {
		handle of; ///< null: it was destroyed, or has another waiter
		std::coroutine_handle<> waiter;

		explicit awaiter(handle what) noexcept : of(what) {}
		awaiter(const awaiter &) = delete;
		~awaiter()
		{
			if (of && of.promise().by == this)
				of.promise().by = nullptr;
		}
		bool await_ready() const noexcept { return of.done(); }
		void await_suspend(std::coroutine_handle<> from) noexcept
		{
			waiter = from;
			if (auto *other = std::exchange(of.promise().by, this))
				other->of = {};
		}
		T await_resume() { return of.promise().take(); }
	};
	awaiter operator co_await() const noexcept { return awaiter(handle_); }

private:
	explicit task(handle h) noexcept : handle_(h) {}

	handle handle_;
};

} // namespace sluice
