// SPDX-License-Identifier: MIT
// What can go wrong, and how it is reported.
//
// Constructors of resources throw Error: they run once, at setup. Whatever
// runs per transfer returns result<T> and throws nothing.
#pragma once

#include <cerrno>
#include <expected>
#include <stdexcept>
#include <string>

namespace xfer {

/// What kind of failure it is; a program maps it to an exit status.
enum class errc {
	system,		///< a system call failed for no reason named below
	usage,		///< the caller asked for something that makes no sense
	input,		///< the input file cannot be read
	device,		///< an RDMA or memory device is missing or refuses
	peer_lost,	///< the other side went away
	peer_error,	///< the other side reported an error and gave up
	protocol,	///< the other side broke the protocol
	timeout,	///< no progress within the time given
	corrupt,	///< the data that arrived are not the data that were sent
};

/// Short name of @p code for messages, e.g. "timeout".
const char *name(errc code) noexcept;

/// The opposite of name(). Unknown names give errc::peer_error.
errc errc_from_name(const std::string &name) noexcept;

/// A failure: its kind and a sentence for people.
class Error : public std::runtime_error {
public:
	Error(errc code, const std::string &what)
		: std::runtime_error(what), code_(code) {}

	errc code() const noexcept { return code_; }

private:
	errc code_;
};

template <class T> using result = std::expected<T, Error>;

/// Error of kind @p code: "@p what: strerror(@p error)".
Error system_error(const std::string &what, int error = errno,
		   errc code = errc::system);

/// Shorthand: return fail(errc::timeout, "...") from a result function.
inline std::unexpected<Error> fail(errc code, const std::string &what)
{
	return std::unexpected<Error>(Error(code, what));
}

inline std::unexpected<Error> fail_errno(const std::string &what,
					 int error = errno,
					 errc code = errc::system)
{
	return std::unexpected<Error>(system_error(what, error, code));
}

/// The value of @p r, or throw its Error: for use at setup.
template <class T> T or_throw(result<T> &&r)
{
	if (!r)
		throw std::move(r.error());
	if constexpr (!std::is_void_v<T>)
		return std::move(*r);
}

} // namespace xfer
