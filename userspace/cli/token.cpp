// SPDX-License-Identifier: MIT
#include "token.hpp"

#include <cerrno>
#include <fstream>
#include <sys/stat.h>

namespace sluice::cli {

// A token that includes its line end is a common mistake.
result<std::string> read_token(const std::string &path)
{
	std::ifstream file(path);
	std::string token;

	if (!file)
		return fail_errno(path, "open", errno, errc::input);
	if (struct stat st{}; ::stat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode) &&
			      (st.st_mode & (S_IROTH | S_IWOTH)))
		return fail(errc::denied, path,
			    "every user can read or change it: chmod o= " + path);
	if (!std::getline(file, token) || token.empty())
		return fail(errc::input, path,
			    "its first line is empty: it must be the token");
	return token;
}

} // namespace sluice::cli
