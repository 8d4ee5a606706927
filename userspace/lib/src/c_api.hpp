// SPDX-License-Identifier: MIT
// What the parts of the C API share: handles, errors, structures that grow.
//
// A handle has a counted reference to its object, and the object to those that it
// depends on: so handles may be released in any order.
#pragma once

#include <cstring>
#include <exception>
#include <format>
#include <memory>
#include <new>
#include <optional>

#include "sluice.h"
#include "sluice/device.hpp"
#include "sluice/endpoint.hpp"
#include "sluice/nic.hpp"
#include "try.hpp"

namespace sluice::c {

/// A context, and the streams that run in it.
struct ring {
	explicit ring(context opened) noexcept : it(std::move(opened)) {}

	context it;
	std::optional<context::chain> chain;
	unsigned tasks = 0; ///< coroutines that are not done
};

struct gpu {
	std::shared_ptr<ring> in;
	device it;
};

struct card {
	std::shared_ptr<ring> in;
	nic it;
};

struct peer {
	std::shared_ptr<card> by;
	endpoint it;
	std::string name; ///< with its 0 byte
	unsigned streams = 0;
	bool closed = false; ///< by the user

	/// Operations do not need the connection: they end with it.
	void end_if_unused()
	{
		if (closed && !streams)
			endpoint ended(std::move(it));
	}
};

/// Keep an error as the thread's last one. Returns the number to return for it.
int remember(const error &why) noexcept;
int no_memory() noexcept;

/// Run the body of a function. No exception gets out.
template <class Body> int guarded(Body &&body) noexcept
{
	try {
		result<void> done = body();
		return done ? 0 : remember(done.error());
	} catch (const std::bad_alloc &) {
		return no_memory();
	} catch (const std::exception &why) {
		return remember(error(errc::system, "libsluice", why.what()));
	} catch (...) {
		return remember(
			error(errc::system, "libsluice", "something was thrown"));
	}
}

/// errc::usage if it is NULL.
inline result<void> given(const void *pointer, std::string_view name)
{
	if (pointer)
		return {};
	return fail(errc::usage, name, "it is NULL");
}

template <class... T> result<void> all_given(std::string_view names, const T *...all)
{
	result<void> good;
	auto check = [&](const void *pointer) {
		std::string_view name = names.substr(0, names.find(' '));

		names.remove_prefix(std::min(names.size(), name.size() + 1));
		if (good)
			good = given(pointer, name);
	};

	(check(all), ...);
	return good;
}

/// The size of a structure in the first version that had it. One that has grown
/// has a specialisation.
template <class T> inline constexpr size_t first_size = sizeof(T);

/// No structure is as long as this: a larger size was never set.
inline constexpr size_t most_size = 4096;

template <class T> result<void> check_size(const T &s, std::string_view name)
{
	if (s.size >= first_size<T> && s.size <= most_size)
		return {};
	return fail(errc::usage, name,
		    std::format("its size is {}, not {} to {}: set it to sizeof",
				s.size, first_size<T>, most_size));
}

/// The content of the caller's structure, which may be shorter or longer than the one
/// here. NULL: all is 0.
template <class T> result<T> taken(const T *from, std::string_view name)
{
	T s{};

	if (!from)
		return s;
	SLUICE_CHECK(check_size(*from, name));
	auto *bytes = reinterpret_cast<const unsigned char *>(from);
	for (size_t i = sizeof(T); i < from->size; i++)
		if (bytes[i])
			return fail(
				errc::unsupported, name,
				std::format(
					"byte {} is set, and this libsluice knows {}",
					i, sizeof(T)));
	std::memcpy(&s, from, std::min(from->size, sizeof(T)));
	return s;
}

/// Fill in the caller's structure, which may be shorter or longer than the one here.
template <class T> result<void> give(T *to, const T &s, std::string_view name)
{
	SLUICE_CHECK(given(to, name));
	SLUICE_CHECK(check_size(*to, name));
	size_t size = to->size;

	std::memset(static_cast<void *>(to), 0, size);
	std::memcpy(static_cast<void *>(to), &s, std::min(size, sizeof(T)));
	to->size = size;
	return {};
}

template <size_t n> void put_text(char (&to)[n], std::string_view text) noexcept
{
	size_t length = std::min(text.size(), n - 1);

	std::memcpy(to, text.data(), length);
	to[length] = '\0';
}

inline result<void> known_flags(uint32_t flags, uint32_t known, std::string_view name)
{
	if (!(flags & ~known))
		return {};
	return fail(errc::usage, name,
		    std::format("flags {:#x} are not known", flags & ~known));
}

inline result<void> not_reserved(uint32_t reserved, std::string_view name)
{
	if (!reserved)
		return {};
	return fail(errc::usage, name, "`reserved` must be 0");
}

inline deadline deadline_of(int64_t ns)
{
	return deadline(std::chrono::nanoseconds(ns));
}

/// Nanoseconds; 0: @p otherwise.
inline result<clock::duration> duration_of(int64_t ns, clock::duration otherwise,
					   std::string_view name)
{
	if (ns < 0)
		return fail(errc::usage, name, "it is negative");
	return ns ? clock::duration(std::chrono::nanoseconds(ns)) : otherwise;
}

/// A slice that lies inside its buffer.
result<slice> slice_of(const sluice_slice *s, std::string_view name);
result<std::vector<slice>> slices_of(const sluice_slice *s, size_t count,
				     std::string_view name);

/// For functions that check memory themselves, so that others are told of a mistake.
/// NULL: no memory.
slice unchecked(const sluice_slice *s);
/// The same for an array; NULL: an empty one.
std::vector<slice> unchecked_all(const sluice_slice *s, size_t count);

/// Make a handle. Its content is constructed in place.
template <class Handle, class T> void hand_out(Handle **to, T &&inside)
{
	*to = new Handle{std::forward<T>(inside)};
}

/// Hand out an operation of the library, with what must outlive it.
result<void> start(sluice_operation **to, std::shared_ptr<ring> in,
		   std::shared_ptr<const void> on, operation begun);

} // namespace sluice::c

struct sluice_context {
	std::shared_ptr<sluice::c::ring> it;
};

struct sluice_buffer {
	sluice::buffer it;
};

struct sluice_device {
	std::shared_ptr<sluice::c::gpu> it;
};

struct sluice_batch {
	sluice::batch it;
};

struct sluice_nic {
	std::shared_ptr<sluice::c::card> it;
};

struct sluice_endpoint {
	std::shared_ptr<sluice::c::peer> it;
};

/// Something in flight.
struct sluice_operation {
	sluice_operation(std::shared_ptr<sluice::c::ring> in,
			 std::shared_ptr<const void> on) noexcept
		: in_(std::move(in)), on_(std::move(on))
	{
	}
	sluice_operation(const sluice_operation &) = delete;
	sluice_operation &operator=(const sluice_operation &) = delete;
	virtual ~sluice_operation() = default;

	virtual bool poll() = 0;
	/// Without reaping completions.
	virtual bool done() = 0;
	/// errc::timeout with the number EINPROGRESS at @p until.
	virtual sluice::result<uint64_t> wait(sluice::deadline until) = 0;
	virtual void cancel() = 0;

protected:
	// Members of derived classes are destroyed before these.
	std::shared_ptr<sluice::c::ring> in_;
	std::shared_ptr<const void> on_;
};

namespace sluice::c {

/// An operation that advances by its own steps, in done().
class stepped_operation : public sluice_operation {
public:
	stepped_operation(std::shared_ptr<ring> in, std::shared_ptr<const void> on,
			  const char *what) noexcept
		: sluice_operation(std::move(in), std::move(on)), what_(what)
	{
	}

	bool poll() final;
	result<uint64_t> wait(deadline until) final;

private:
	/// Once it is done.
	virtual result<uint64_t> outcome() const = 0;

	const char *what_;
};

/// One of the library's own: @p T is an operation, or the run of a collective.
template <class T> class ring_operation : public sluice_operation {
public:
	ring_operation(std::shared_ptr<ring> in, std::shared_ptr<const void> on,
		       T begun) noexcept
		: sluice_operation(std::move(in), std::move(on)), it_(std::move(begun))
	{
	}

	bool poll() override
	{
		if (!in_->tasks)
			return it_.poll();
		// Streams make progress only here. Taking in more would leave them to
		// the next call, and nothing tells the caller to make one.
		(void)in_->it.run_once(deadline{});
		return it_.done();
	}
	bool done() override { return it_.done(); }
	result<uint64_t> wait(deadline until) override;
	void cancel() override { it_.cancel(); }

protected:
	T it_;
};

template <class T> result<uint64_t> ring_operation<T>::wait(deadline until)
{
	while (in_->tasks && !it_.poll()) {
		if (auto ran = in_->it.run_once(until); !ran)
			return std::unexpected(ran.error());
		if (clock::now() >= until)
			break;
	}
	auto done = it_.wait_until(until);
	if (done || done.error().code() != errc::timeout || until == never)
		return done;
	// The operation's own timeout differs from that of the wait; and it may have
	// ended since.
	if (!it_.poll())
		return fail(errc::timeout, done.error().where(),
			    "not done by the deadline: it goes on", EINPROGRESS);
	return it_.wait_until({});
}

} // namespace sluice::c
