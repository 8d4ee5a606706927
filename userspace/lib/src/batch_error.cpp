// SPDX-License-Identifier: MIT
// Errors of batches in words. Source: docs/uapi.md, "Errors".
#include <algorithm>
#include <array>

#include "submission.hpp"

namespace sluice::detail {

namespace {

struct meaning {
	int number;
	errc code;
	const char *text;
};

/// Errors of the call, which has then run nothing of the batch.
constexpr std::array call_errors = {
	meaning{EINVAL, errc::usage, "its arguments break a rule of batches"},
	meaning{ERANGE, errc::usage,
		"addresses that wrap around, or are in no "
		"address space"},
	meaning{ENOENT, errc::usage,
		"memory that this GPU does not "
		"reach: attach it"},
	meaning{ENXIO, errc::usage,
		"shared memory is not where this GPU "
		"reaches it: prefetch it, or have the batch fault it in"},
	meaning{EIO, errc::device, "shared memory was lost in a reset"},
	meaning{EACCES, errc::usage, "it reads or writes memory without the right to"},
	meaning{EPERM, errc::usage, "memory of another process or file"},
	meaning{EEXIST, errc::usage, "it overlaps what may run at the same time"},
	meaning{EADDRINUSE, errc::usage,
		"a buffer was mapped where shared memory was to be brought"},
	meaning{EMSGSIZE, errc::usage, "more than one batch may have: split it"},
	meaning{E2BIG, errc::unsupported, "this kernel does not know all of it"},
	meaning{EAGAIN, errc::busy, "too much is on its way"},
	meaning{EOPNOTSUPP, errc::unsupported,
		"this GPU cannot do it with "
		"this memory"},
	meaning{EFAULT, errc::usage, "an address is not memory of this process"},
	meaning{ENOMEM, errc::system, "no memory"},
	meaning{ENOSPC, errc::device, "no room for it in the GPU"},
	meaning{EMFILE, errc::busy, "too many prepared batches"},
	meaning{ESTALE, errc::stale, "a mapping that it names has changed"},
	meaning{EINTR, errc::busy, "interrupted before it began"},
	meaning{EBUSY, errc::device, "the GPU does not work"},
	meaning{EHWPOISON, errc::device, "the GPU has met an uncorrectable error"},
	meaning{ENODEV, errc::device, "the GPU is gone"},
	meaning{ECANCELED, errc::device,
		"a reset has ended this use of the "
		"GPU: open it again"},
	meaning{ETIME, errc::device,
		"an earlier batch hung the engine: "
		"open the GPU again"},
};

/// Errors of the fence: the batch ran, or was about to.
constexpr std::array fence_errors = {
	meaning{ETIME, errc::device, "it hung the engine"},
	meaning{EIO, errc::device, "it hung an engine"},
	meaning{ECANCELED, errc::device, "a reset for another one's hang ended it"},
	meaning{ESRCH, errc::cancelled, "its process ended before it began"},
	meaning{ENODEV, errc::device, "the GPU is gone"},
	meaning{EINVAL, errc::device, "its engine did not come back from a reset"},
	meaning{EHWPOISON, errc::device, "the GPU has met an uncorrectable error"},
	meaning{ENOMEM, errc::system, "no memory"},
};

template <size_t n>
meaning find(const std::array<meaning, n> &all, int number)
{
	auto it = std::ranges::find(all, number, &meaning::number);

	return it != all.end() ? *it : meaning{number, errc::system, "failed"};
}

/// What an errno means depends on what the batch was.
meaning explain(const submission &run, int number)
{
	if (run.given()) {
		if (number == ETIME && run.waits)
			return {number, errc::timeout, "a wait gave up"};
		return find(fence_errors, number);
	}
	bool called = run.args.error_index != untouched;
	if (number == ECANCELED && (run.stopped || !called))
		return {number, errc::cancelled, "cancelled before it began"};
	if (number == ENXIO && run.faults)
		return {number, errc::busy,
			"shared memory was taken away again "
			"each time that it was brought"};
	return find(call_errors, number);
}

} // namespace

error batch_error(const submission &run, std::string_view device, int number) noexcept
{
	const auto &args = run.args;
	meaning m = explain(run, number);
	bool located = !run.given() && args.error_array == AMDGPU_SDMA_ERROR_DESC &&
		       args.error_index != AMDGPU_SDMA_NO_INDEX;
	char text[160];
	auto end = std::begin(text);
	auto say = [&]<class... A>(std::format_string<A...> format, A &&...words) {
		auto room = std::end(text) - end;
		end = std::format_to_n(end, room, format, std::forward<A>(words)...)
			      .out;
	};

	if (located)
		say("operation {}: ", args.error_index);
	say("{}", m.text);
	if (located && number == EEXIST && args.error_index2 != AMDGPU_SDMA_NO_INDEX)
		say(": operation {}", args.error_index2);
	const std::string_view said(text, static_cast<size_t>(end - text));
	if (located)
		return error(m.code, device, said, number).at(args.error_index);
	return error(m.code, device, said, number);
}

} // namespace sluice::detail
