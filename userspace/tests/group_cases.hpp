// SPDX-License-Identifier: MIT
// The defined effect of collectives, in bytes: for tests of plans, and on GPUs.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <format>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "group_plan.hpp"

namespace sluice {

using slices = std::vector<slice>;

/// Memory of ranks, with gaps in which nothing may change, and its expected content.
class world {
public:
	/// @param memory of each rank; it is overwritten
	world(std::span<const buffer> memory, uint32_t seed)
		: random_(seed), next_(memory.size())
	{
		for (const buffer &one : memory) {
			buffers_.push_back(one);
			before_.emplace_back(noise(one.size()));
			std::ranges::copy(before_.back(), one.data());
		}
		expected_ = before_;
	}

	/// Memory of @p rank for one use only, at any alignment.
	slice take(unsigned rank, size_t size)
	{
		size_t which = rank % buffers_.size();
		size_t &next = next_[which];

		next += 1 + random_() % 70;
		slice taken = buffers_[which].part(next, size);
		EXPECT_TRUE(taken.valid()) << "of " << size << " bytes";
		next += size;
		return taken;
	}
	slices take_each(unsigned ranks, size_t size)
	{
		slices all;

		for (unsigned r = 0; r < ranks; r++)
			all.push_back(take(r, size));
		return all;
	}

	/// The initial content of @p from is expected in @p to.
	void expect(const slice &to, const slice &from)
	{
		auto begin = before_[of(from)].begin() +
			     static_cast<ptrdiff_t>(from.offset());

		std::copy_n(begin, from.size(),
			    expected_[of(to)].begin() +
				    static_cast<ptrdiff_t>(to.offset()));
	}

	/// Undo what was written.
	void restore()
	{
		for (size_t i = 0; i < buffers_.size(); i++)
			std::ranges::copy(before_[i], buffers_[i].data());
	}

	/// The current content of @p memory is right.
	void accept(const slice &memory)
	{
		std::ranges::copy(memory.bytes(),
				  expected_[of(memory)].begin() +
					  static_cast<ptrdiff_t>(memory.offset()));
	}

	testing::AssertionResult right() const { return holds(expected_); }
	testing::AssertionResult untouched() const { return holds(before_); }
	std::mt19937 &random() { return random_; }

private:
	using bytes = std::vector<std::byte>;

	static bytes noise(size_t size)
	{
		static const bytes all = [] {
			std::mt19937 random(1);
			bytes made(512 << 10);

			std::ranges::generate(
				made, [&] { return static_cast<std::byte>(random()); });
			return made;
		}();
		static size_t skip;

		// different ones for each buffer
		skip = (skip + 4099) % (all.size() / 2);
		return {all.begin() + static_cast<ptrdiff_t>(skip),
			all.begin() + static_cast<ptrdiff_t>(skip + size)};
	}
	size_t of(const slice &s) const
	{
		return static_cast<size_t>(
			std::ranges::find(buffers_, s.of().block(), &buffer::block) -
			buffers_.begin());
	}
	testing::AssertionResult holds(const std::vector<bytes> &wanted) const
	{
		for (size_t i = 0; i < buffers_.size(); i++) {
			auto is = buffers_[i].bytes();

			if (!std::memcmp(is.data(), wanted[i].data(), is.size()))
				continue;
			auto other = std::ranges::mismatch(is, wanted[i]).in2;
			if (other != wanted[i].end())
				return testing::AssertionFailure()
				       << "byte " << other - wanted[i].begin()
				       << " of memory " << i << " differs";
		}
		return testing::AssertionSuccess();
	}

	std::mt19937 random_;
	std::vector<buffer> buffers_;
	std::vector<bytes> before_, expected_;
	std::vector<size_t> next_;
};

/// One collective.
struct collective_case {
	detail::pattern kind;
	unsigned ranks, root;
	size_t block;
	bool in_place;
	variant how;
	bool prelaunch = false;

	collective_options options() const { return {how, prelaunch, {}}; }
	std::string text() const
	{
		return std::format("{} of {} ranks, root {}, {} bytes{}, {}{}",
				   detail::name(kind), ranks, root, block,
				   in_place ? ", in place" : "", name(how),
				   prelaunch ? ", prelaunched" : "");
	}
};

// Each takes memory, sets what is expected in it, and has @p by do the operation: by is
// a group, or has the same functions.

template <class By> auto do_all_gather(world &w, By &by, const collective_case &c)
{
	slices to = w.take_each(c.ranks, c.ranks * c.block);
	slices from = w.take_each(c.ranks, c.block);

	for (unsigned r = 0; r < c.ranks && c.in_place; r++)
		from[r] = to[r].part(r * c.block, c.block);
	for (unsigned r = 0; r < c.ranks; r++)
		for (unsigned s = 0; s < c.ranks; s++)
			w.expect(to[r].part(s * c.block, c.block), from[s]);
	return by.all_gather(to, from, c.options());
}

template <class By> auto do_all_to_all(world &w, By &by, const collective_case &c)
{
	slices from = w.take_each(c.ranks, c.ranks * c.block);
	slices to = c.in_place ? from : w.take_each(c.ranks, c.ranks * c.block);

	for (unsigned i = 0; i < c.ranks; i++)
		for (unsigned j = 0; j < c.ranks; j++)
			w.expect(to[j].part(i * c.block, c.block),
				 from[i].part(j * c.block, c.block));
	return by.all_to_all(to, from, c.options());
}

template <class By> auto do_broadcast(world &w, By &by, const collective_case &c)
{
	slices memory = w.take_each(c.ranks, c.block);

	for (const slice &one : memory)
		w.expect(one, memory[c.root]);
	return by.broadcast(c.root, memory, c.options());
}

template <class By> auto do_gather(world &w, By &by, const collective_case &c)
{
	slice to = w.take(c.root, c.ranks * c.block);
	slices from = w.take_each(c.ranks, c.block);

	if (c.in_place)
		from[c.root] = to.part(c.root * c.block, c.block);
	for (unsigned r = 0; r < c.ranks; r++)
		w.expect(to.part(r * c.block, c.block), from[r]);
	return by.gather(c.root, to, from, c.options());
}

template <class By> auto do_scatter(world &w, By &by, const collective_case &c)
{
	slice from = w.take(c.root, c.ranks * c.block);
	slices to = w.take_each(c.ranks, c.block);

	if (c.in_place)
		to[c.root] = from.part(c.root * c.block, c.block);
	for (unsigned r = 0; r < c.ranks; r++)
		w.expect(to[r], from.part(r * c.block, c.block));
	return by.scatter(c.root, to, from, c.options());
}

// Each rank sends to the root and to itself, the root to all, in different sizes.
template <class By> auto do_send(world &w, By &by, const collective_case &c)
{
	std::vector<message> all;
	auto add = [&](unsigned from, unsigned to, size_t size) {
		all.push_back({from, to, w.take(to, size), w.take(from, size)});
		w.expect(all.back().target, all.back().source);
	};

	for (unsigned r = 0; r < c.ranks; r++) {
		add(r, c.root, c.block);
		add(c.root, r, c.block + r);
		add(r, r, 1);
	}
	return by.send(all, c.options());
}

template <class By> auto do_collective(world &w, By &by, const collective_case &c)
{
	switch (c.kind) {
	case detail::pattern::all_gather: return do_all_gather(w, by, c);
	case detail::pattern::all_to_all: return do_all_to_all(w, by, c);
	case detail::pattern::broadcast: return do_broadcast(w, by, c);
	case detail::pattern::gather: return do_gather(w, by, c);
	case detail::pattern::scatter: return do_scatter(w, by, c);
	case detail::pattern::send: break;
	}
	return do_send(w, by, c);
}

inline void cut(const detail::step &s, std::vector<detail::step> &pieces,
		std::mt19937 &random)
{
	for (size_t done = 0, n; done < s.from.size(); done += n) {
		n = std::min<size_t>(1 + random() % 700, s.from.size() - done);
		detail::step piece{{}, s.from.part(done, n), s.swaps};
		for (const slice &to : s.to)
			piece.to.push_back(to.part(done, n));
		pieces.push_back(std::move(piece));
	}
}

inline void carry_out(const detail::step &s)
{
	for (const slice &to : s.to)
		if (s.swaps)
			std::ranges::swap_ranges(s.from.bytes(), to.bytes());
		else
			std::ranges::copy(s.from.bytes(), to.data());
}

/// Like engines: in any order, with pieces of operations interleaved.
inline void carry_out(const detail::plan &p, std::mt19937 &random)
{
	std::vector<detail::step> pieces;

	for (const auto &steps : p.ranks)
		for (const detail::step &s : steps)
			cut(s, pieces, random);
	std::ranges::shuffle(pieces, random);
	for (const detail::step &s : pieces)
		carry_out(s);
}

inline constexpr std::array all_variants = {
	variant::automatic, variant::pcpy, variant::bcst, variant::swap, variant::b2b,
};
inline constexpr std::array all_patterns = {
	detail::pattern::all_gather, detail::pattern::all_to_all,
	detail::pattern::broadcast,  detail::pattern::gather,
	detail::pattern::scatter,    detail::pattern::send,
};

inline bool has_root(detail::pattern kind)
{
	return kind != detail::pattern::all_gather &&
	       kind != detail::pattern::all_to_all;
}

/// Whether the caller chooses it.
inline bool has_in_place(detail::pattern kind)
{
	return kind != detail::pattern::broadcast && kind != detail::pattern::send;
}

inline std::string name_of_pattern(const testing::TestParamInfo<detail::pattern> &info)
{
	return detail::name(info.param);
}

} // namespace sluice
