// SPDX-License-Identifier: MIT
// Connects to a host: tries its addresses in turn, and again while no listener is
// there.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "connection.hpp"
#include "resolve.hpp"

namespace sluice::detail {

class connector {
public:
	/// What it uses must outlive it.
	connector(context &in, std::shared_ptr<card> by, std::string_view host,
		  uint16_t port, const endpoint_options &options, deadline until);

	/// Go on after the context has reaped completions; reaps none itself. True: it
	/// is over. What it waits for is in the ring.
	bool step();
	/// Make it end.
	void cancel();
	/// Call it once, when it is over.
	result<endpoint> take();
	/// Once it is over: why it failed, or nullptr.
	const error *failure() const noexcept;

private:
	bool look_up();
	void begin();
	bool judge();
	void gave_up(const error &why, bool again);

	context &in_;
	std::shared_ptr<card> card_;
	endpoint_options options_;
	deadline until_;
	lookup lookup_;
	operation lookup_limit_;
	std::vector<sockaddr_storage> addresses_;
	size_t next_ = 0;    ///< address
	bool again_ = false; ///< an address that failed may be good later
	std::unique_ptr<connection> trying_;
	deadline attempt_until_{};
	operation pause_;
	error last_;
	std::optional<result<std::unique_ptr<connection>>> outcome_;
};

} // namespace sluice::detail
