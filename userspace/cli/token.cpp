// SPDX-License-Identifier: MIT
#include "token.hpp"

#include <cerrno>
#include <fstream>

namespace sluice::cli {

// A token that includes its line end is a common mistake.
result<std::string> read_token(const std::string &path)
{
	std::ifstream file(path);
	std::string token;

	if (!file)
		return fail_errno(path, "open", errno, errc::input);
	if (!std::getline(file, token) || token.empty())
		return fail(errc::input, path,
			    "its first line is empty: it must be the token");
	return token;
}

} // namespace sluice::cli
