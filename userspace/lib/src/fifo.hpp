// SPDX-License-Identifier: MIT
// A queue with fixed room, which allocates nothing after it is made, unless it may
// grow.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace sluice::detail {

template <class T> class fifo {
public:
	fifo() = default;
	explicit fifo(size_t room) : items_(room) {}

	bool empty() const noexcept { return count_ == 0; }
	bool full() const noexcept { return count_ == items_.size(); }
	size_t size() const noexcept { return count_; }
	T &operator[](size_t i) noexcept { return items_[at(i)]; }
	T &front() noexcept { return items_[first_]; }

	/// It must not be full.
	void push(T item) noexcept { items_[at(count_++)] = std::move(item); }

	/// The same, with twice the room if it is full: it allocates if more wait than
	/// ever before.
	void push_or_grow(T item)
	{
		if (full())
			grow();
		push(std::move(item));
	}

	/// The same, in front of all.
	void push_front_or_grow(T item)
	{
		if (full())
			grow();
		first_ = at(items_.size() - 1);
		count_++;
		front() = std::move(item);
	}

	/// It must not be empty.
	T pop() noexcept
	{
		T item = std::exchange(items_[first_], T{});

		first_ = at(1);
		count_--;
		return item;
	}

	/// Take out number @p i from the front.
	T extract(size_t i) noexcept
	{
		T item = std::move((*this)[i]);

		for (; i + 1 < count_; i++)
			(*this)[i] = std::move((*this)[i + 1]);
		(*this)[--count_] = T{};
		return item;
	}

private:
	void grow()
	{
		std::vector<T> more(2 * items_.size() + 1);

		for (size_t i = 0; i < count_; i++)
			more[i] = std::move((*this)[i]);
		items_ = std::move(more);
		first_ = 0;
	}
	size_t at(size_t i) const noexcept
	{
		return first_ + i < items_.size() ? first_ + i
						  : first_ + i - items_.size();
	}

	std::vector<T> items_;
	size_t first_ = 0, count_ = 0;
};

} // namespace sluice::detail
