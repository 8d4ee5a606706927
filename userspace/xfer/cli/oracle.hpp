// SPDX-License-Identifier: MIT
// Who looks at what arrived.
//
// An oracle is a program outside of this machine that reads the file behind
// the BAR (scripts/oracle.py). Per piece the receiver says where it is:
//
//	piece index=0 length=67108864 extents=2
//	extent offset=0 length=33554432
//	extent offset=100663296 length=33554432
//				checked index=0
//
// and waits for the answer, as it will reuse the memory. At the end
//
//	finish length=104857600
//				digest sha256=0123...
//
// The oracle answers "error kind=corrupt text=..." if the digest is not that of
// the file that was sent. If the memory is not in a BAR, this program hashes it
// and has the oracle, if there is one, compare: "claim length=... sha256=...".
#pragma once

#include <optional>
#include <string>

#include "options.hpp"
#include "xfer/channel.hpp"
#include "xfer/sha256.hpp"
#include "window.hpp"

namespace xfer {

class Verifier {
public:
	/// Throws Error if the oracle's port is not there.
	explicit Verifier(const Options &o, const Window &window);

	/// Hash the first @p length bytes of the window: piece @p index. They
	/// may be overwritten once it returns.
	result<void> piece(uint64_t index, uint64_t length);

	/// The SHA-256 of all pieces, @p length bytes. errc::corrupt if the
	/// oracle says that it is not the file's.
	result<std::string> finish(uint64_t length);

	/// Who hashed, for people.
	std::string description() const;

private:
	bool from_outside() const { return oracle_ && window_.in_device(); }
	result<void> tell(uint64_t index, uint64_t length);
	deadline limit() const { return after(timeout_); }

	const Window &window_;
	std::chrono::milliseconds timeout_;
	bool moved_for_it_;
	std::optional<Channel> oracle_;
	Sha256 sha256_;
};

} // namespace xfer
