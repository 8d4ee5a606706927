// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

#include "engine.hpp"

namespace sluice::detail {

/// errc::usage, naming @p what, if it was opened on another context: nothing would run
/// what is waited for.
inline result<void> check_context(std::string_view what, const engine &of,
				  const engine &wanted)
{
	if (&of != &wanted)
		return fail(errc::usage, what, "it was opened on another context");
	return {};
}

} // namespace sluice::detail
