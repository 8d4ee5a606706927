// SPDX-License-Identifier: MIT
#include "sluice/or_exit.hpp"

#include <cstdio>
#include <cstdlib>

namespace sluice {

void exit_for(const error &why) noexcept
{
	std::string_view said = why.message();

	std::fprintf(stderr, "%.*s\n", static_cast<int>(said.size()), said.data());
	std::exit(EXIT_FAILURE);
}

} // namespace sluice
