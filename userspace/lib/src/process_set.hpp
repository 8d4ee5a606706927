// SPDX-License-Identifier: MIT
// Messages between the processes of a group. They make the same calls in the same
// order, and in each call tell all others how it went, by one note to each.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "engine.hpp"
#include "sluice/processes.hpp"

namespace sluice::detail {

/// What is said, and in which call.
struct note {
	static constexpr uint32_t right_magic = 0x67726f32;

	enum class kind : uint32_t {
		hello,	///< value: the rank in the low half, how many in the high one;
			///< back from rank 0: whether all have met
		link,	///< a socket; value: the rank at its other end
		memory, ///< a dma-buf; then once more: whether those of all came in
		plan,	///< value: what was prepared, in short
		barrier,
		run, ///< value: bytes that were moved
	};

	uint32_t magic = right_magic;
	kind what = kind::hello;
	uint64_t value = 0;
	uint32_t number = 0; ///< of the call, or of the run; hello and link have 0
	uint32_t failed = 0; ///< 0, or 1 + errc
	int32_t error_number = 0;
	uint16_t where_size = 0;
	uint16_t text_size = 0; ///< of an error
	std::array<char, 176> text{};
};

note note_of(note::kind what, const result<uint64_t> &value) noexcept;
const char *name(note::kind what) noexcept;

/// The other processes of a group: rank and socket of each.
class process_set {
public:
	/// In place of a rank: a process that has not told its rank yet.
	static constexpr unsigned newcomer = processes::most;
	/// What each rank has said.
	using values = std::array<uint64_t, processes::most>;

	process_set(engine &in, unsigned rank, unsigned ranks,
		    clock::duration patience) noexcept
		: ring_(in), rank_(rank), ranks_(ranks), patience_(patience)
	{
	}

	engine &ring() const noexcept { return ring_; }
	unsigned rank() const noexcept { return rank_; }
	unsigned ranks() const noexcept { return ranks_; }
	deadline limit() const noexcept { return after(patience_); }

	void link(unsigned rank, unique_fd socket) noexcept
	{
		sockets_[rank] = std::move(socket);
		given_up_[rank].reset();
	}
	unique_fd unlink(unsigned rank) noexcept { return std::move(sockets_[rank]); }
	/// Has the process of @p rank, which has said nothing since, ended?
	bool has_left(unsigned rank) const noexcept;
	bool linked(unsigned rank) const noexcept { return bool(sockets_[rank]); }

	/// Does not wait. A process that is there but cannot be told is given up: it
	/// finds the connection closed, rather than wait for what it will never hear.
	/// @param with a descriptor that goes along; -1: none
	result<void> tell(unsigned rank, const note &what, int with = -1) noexcept;
	/// What @p rank says in the call @p what, by @p until.
	result<uint64_t> hear(unsigned rank, note::kind what, deadline until,
			      unique_fd *with = nullptr);
	/// Tell all how @p what went here, and hear how it went there. The first error
	/// counts. While a chain is open this process cannot hear, and tells them that.
	result<values> agree(note::kind what, const result<uint64_t> &mine)
	{
		return agree(what, mine, limit());
	}
	result<values> agree(note::kind what, const result<uint64_t> &mine,
			     deadline until, int with = -1,
			     std::span<unique_fd> theirs = {});
	/// Give all @p own, which is the dma-buf of @p mine, and have @p import make
	/// memory of theirs, by rank. It fails for all if it fails for one.
	result<std::vector<buffer>>
	exchange(const buffer &mine, const result<unique_fd> &own,
		 const std::function<result<buffer>(int)> &import);

	/// A run of a collective begins. false: one is in flight.
	bool begin_run() noexcept;
	/// How it went here. Only the first time counts.
	void tell_of_run(const result<size_t> &how) noexcept;
	/// It is over here, whatever the others do.
	void end_run() noexcept;
	/// Done when @p rank has something to say.
	operation listen(unsigned rank) noexcept;
	/// Has it said so while another call was made?
	bool has_ended_run(unsigned rank) const noexcept
	{
		return ended_[rank].has_value();
	}
	/// How the run went there; nothing: it has not said so yet.
	std::optional<result<size_t>> heard_of_run(unsigned rank) noexcept;

private:
	std::unexpected<error> give_up(unsigned rank, int number) noexcept;
	result<std::vector<buffer>>
	import_all(const buffer &mine, std::span<const unique_fd> theirs,
		   const std::function<result<buffer>(int)> &import) const;
	/// Is it of a call or a run that is over here?
	bool is_past(const note &n, uint32_t call) const noexcept;
	/// Wait until @p rank has something to say.
	result<void> await(unsigned rank, deadline until);
	/// A note, and the descriptor that came along, if any.
	struct heard {
		note what;
		unique_fd with;
	};
	/// Does not wait; nothing: it says nothing.
	std::optional<result<heard>> take(unsigned rank) noexcept;
	/// The same, but first what came early.
	std::optional<result<heard>> next(unsigned rank) noexcept;
	/// If it is of the next call, and the first such note, keep it.
	bool keep_early(unsigned rank, heard &said) noexcept;

	engine &ring_;
	unsigned rank_, ranks_;
	clock::duration patience_;
	std::array<unique_fd, processes::most + 1> sockets_;
	/// Why nothing is told to it or heard from it any more.
	std::array<std::optional<error>, processes::most + 1> given_up_;
	/// How the run in flight went for ranks that said so during another call.
	std::array<std::optional<note>, processes::most> ended_;
	/// What was said in the next call, while only the run was of interest.
	std::array<std::optional<heard>, processes::most> early_;
	uint32_t calls_ = 0; ///< the last one's number
	uint32_t runs_ = 0;  ///< the same
	bool running_ = false, told_ = false;
};

} // namespace sluice::detail
