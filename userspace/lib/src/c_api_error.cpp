// SPDX-License-Identifier: MIT
// The C API: errors, time and memory that is handed out.
#include <algorithm>
#include <array>
#include <cstdlib>

#include "c_api.hpp"

namespace sluice::c {

namespace {

struct kind {
	int number; ///< to return; 0: that of the system call
	const char *remedy;
};

// In the order of errc.
constexpr std::array kinds = {
	kind{EINVAL, "correct what the message names; sluice.h says what is allowed"},
	kind{0, "see errno(3) for the number, and the kernel's log"},
	kind{0, "check that the file is there, may be read and is long enough"},
	kind{0, "check that there is room, and that it may be written"},
	kind{EIO, "see what \"sluice doctor\" and the kernel's log say of the device"},
	kind{EOPNOTSUPP, "see what \"sluice doctor\" says that this kernel lacks"},
	kind{ENOLINK, "require no path, or see why \"sluice doctor\" has no better"},
	kind{EBUSY, "wait for some of what is under way, and try again"},
	kind{ESTALE, "prepare the batch again"},
	kind{ECONNRESET, "see whether the peer runs and is reached, and connect again"},
	kind{EREMOTEIO, "see what the peer says"},
	kind{EACCES, "give both sides the same token, or run processes as one user"},
	kind{EPROTO,
	     "run the same libsluice everywhere, and make the same calls in the same order"},
	kind{ETIMEDOUT, "allow more time, or see what the other side waits for"},
	kind{ECANCELED, "start it again if it is still wanted"},
	kind{EBADMSG, "send it again; if it happens again, test memory and cables"},
};
static_assert(kinds.size() == static_cast<size_t>(errc::corrupt) + 1);
static_assert(static_cast<int>(errc::usage) + 1 == SLUICE_ERROR_USAGE &&
	      static_cast<int>(errc::corrupt) + 1 == SLUICE_ERROR_CORRUPT);

struct remedy {
	int number;
	const char *text;
};

// For errors that say more than their kind.
constexpr std::array remedies = {
	remedy{ENOMEM, "free memory, ask for less, or raise \"ulimit -l\""},
	remedy{EMFILE, "close files, or raise \"ulimit -n\""},
	remedy{EPERM, "get the permission that the message names"},
	remedy{EBADF, "give a descriptor that is open, and in the right mode"},
	remedy{ENOSPC, "make room on the device"},
	remedy{EINPROGRESS, "wait again, or cancel it"},
};

/// Without a destructor: it may be asked for while a thread ends.
struct last {
	char where[128], message[256];
	sluice_error told;
};

thread_local last last_error{
	"",
	"",
	{sizeof(sluice_error), 0, 0, 0, SLUICE_NO_INDEX, "", "no error", ""}};

int number_of(const error &why)
{
	if (why.number() == EINPROGRESS && why.code() == errc::timeout)
		return EINPROGRESS;
	if (int number = kinds[static_cast<size_t>(why.code())].number)
		return number;
	return why.number() > 0 ? why.number() : EIO;
}

const char *remedy_of(const error &why)
{
	const char *usual = kinds[static_cast<size_t>(why.code())].remedy;

	// A device means something else by these numbers.
	if (why.code() == errc::device || why.code() == errc::busy)
		return usual;
	auto known = std::ranges::find(remedies, why.number(), &remedy::number);
	return known != remedies.end() ? known->text : usual;
}

} // namespace

int remember(const error &why) noexcept
{
	last &l = last_error;

	put_text(l.where, why.where());
	put_text(l.message, why.message());
	l.told = {
		.size = sizeof(l.told),
		.code = static_cast<int32_t>(why.code()) + 1,
		.returned = -number_of(why),
		.system_errno = why.number(),
		.index = why.index(),
		.where = l.where,
		.message = l.message,
		.remedy = remedy_of(why),
	};
	return l.told.returned;
}

int no_memory() noexcept
{
	return remember(error(errc::system, "memory", "there is not enough", ENOMEM));
}

} // namespace sluice::c

using namespace sluice;

const char *sluice_version(void)
{
	return SLUICE_VERSION;
}

const struct sluice_error *sluice_last_error(void)
{
	return &c::last_error.told;
}

const char *sluice_error_name(int code)
{
	if (code == SLUICE_ERROR_NONE)
		return "none";
	if (code < SLUICE_ERROR_NONE || code > SLUICE_ERROR_CORRUPT)
		return "?";
	return name(static_cast<errc>(code - 1));
}

int64_t sluice_after(int64_t ns)
{
	int64_t now = std::chrono::nanoseconds(clock::now().time_since_epoch()).count();
	int64_t then;

	if (__builtin_add_overflow(now, ns, &then))
		return ns < 0 ? INT64_MIN : SLUICE_NEVER;
	return then;
}

void sluice_free(char *text)
{
	std::free(text);
}
