// SPDX-License-Identifier: MIT
#include "part_file.hpp"

#include <cstdio>
#include <fcntl.h>
#include <filesystem>

namespace sluice::cli {

namespace fs = std::filesystem;

namespace {

/// What is there: fs::file_type::not_found is no error.
result<fs::file_type> type_of(const std::string &path)
{
	std::error_code why;
	auto status = fs::status(path, why);

	if (status.type() == fs::file_type::none)
		return fail_errno(path, "cannot be looked at", why.value(),
				  errc::output);
	return status.type();
}

} // namespace

result<std::string> place_of(const std::string &to, const std::string &name,
			     bool overwrite)
{
	std::string path = to;
	auto type = type_of(path);

	if (type && *type == fs::file_type::directory) {
		path += "/" + name;
		type = type_of(path);
	}
	if (!type)
		return std::unexpected(type.error());
	if (!overwrite && *type != fs::file_type::not_found)
		return fail(errc::output, path,
			    "it is there already; --overwrite replaces it");
	return path;
}

result<unique_fd> open_part(const std::string &part, int flags)
{
	unique_fd file(::open(part.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | flags, 0666));

	if (!file)
		return fail_errno(part, "open", errno, errc::output);
	return file;
}

result<void> put_in_place(const std::string &part, const std::string &path)
{
	if (::rename(part.c_str(), path.c_str()) < 0)
		return fail_errno(path, "rename", errno, errc::output);
	return {};
}

} // namespace sluice::cli
