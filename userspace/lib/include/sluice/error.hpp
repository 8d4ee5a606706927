// SPDX-License-Identifier: MIT
// What can go wrong, and how it is reported. Nothing in this library throws on purpose:
// every function that can fail returns a result.
#pragma once

#include <array>
#include <cerrno>
#include <cstdint>
#include <expected>
#include <format>
#include <string>
#include <string_view>

namespace sluice {

/// What kind of failure it is.
enum class errc : uint8_t {
	usage,	     ///< the caller asked for something that makes no sense
	system,	     ///< a system call failed for no reason named below
	input,	     ///< a file is missing, is not what it should be, or ends early
	output,	     ///< a file cannot be written: full, read only, ...
	device,	     ///< a device is missing, refuses, or failed
	unsupported, ///< the kernel or the device cannot do it
	no_path,     ///< no path, or another one than was required
	busy,	     ///< too much is in flight; the same call may succeed later
	stale,	     ///< what it was prepared for no longer exists
	peer_lost,   ///< the other side went away
	peer_error,  ///< the other side reported an error and gave up
	denied,	     ///< no proof of permission, or it was taken back
	protocol,    ///< the other side broke the protocol
	timeout,     ///< not done within the time given
	cancelled,   ///< it was cancelled
	corrupt,     ///< the data that arrived are not the data that were sent
};

/// Short name of @p code, e.g. "timeout".
const char *name(errc code) noexcept;

/// A failure: its kind, the thing that failed, by name, and what is wrong with it. It
/// holds its text itself, so reporting an error allocates nothing. Text that is too
/// long is truncated.
class [[nodiscard]] error {
public:
	static constexpr uint32_t no_index = UINT32_MAX;

	/// @param where the thing that failed: a file, a device, a peer
	/// @param what what is wrong with it
	/// @param number the errno, 0 if there is none
	error(errc code, std::string_view where, std::string_view what,
	      int number = 0) noexcept;

	errc code() const noexcept { return code_; }
	/// Its errno, or 0.
	int number() const noexcept { return number_; }
	/// Which element of an array is at fault, e.g. of a batch, or no_index.
	uint32_t index() const noexcept { return index_; }
	std::string_view where() const noexcept { return {text_.data(), where_}; }
	/// "where: what", for people.
	std::string_view message() const noexcept { return {text_.data(), size_}; }

	/// The same error, of element @p index.
	error &&at(uint32_t index) && noexcept
	{
		index_ = index;
		return std::move(*this);
	}

private:
	std::array<char, 176> text_;
	uint8_t where_ = 0, size_ = 0;
	errc code_;
	int number_;
	uint32_t index_ = no_index;
};

template <class T> using result = std::expected<T, error>;

/// For functions that return a result: return fail(errc::timeout, name, "...").
[[nodiscard]] inline std::unexpected<error>
fail(errc code, std::string_view where, std::string_view what, int number = 0) noexcept
{
	return std::unexpected(error(code, where, what, number));
}

/// @p why, of another thing: a request knows what it had to do, but not with which file.
[[nodiscard]] inline std::unexpected<error> fail_at(std::string_view where,
						    const error &why) noexcept
{
	return fail(why.code(), where, why.message(), why.number());
}

/// The same for a system call: "@p where: @p what: strerror(@p number)".
std::unexpected<error> fail_errno(std::string_view where, std::string_view what,
				  int number = errno,
				  errc code = errc::system) noexcept;

} // namespace sluice
