// SPDX-License-Identifier: MIT
#include "part_file.hpp"

#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>

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
	constexpr int always = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
	unique_fd file(::open(part.c_str(), always | flags, 0666));
	struct stat st{};

	if (!file || ::fstat(file.get(), &st) < 0)
		return fail_errno(part, "open", errno, errc::output);
	if (!S_ISREG(st.st_mode))
		return fail(errc::output, part, "it is no regular file");
	return file;
}

result<void> put_in_place(const std::string &part, const std::string &path,
			  bool overwrite)
{
	unsigned flags = overwrite ? 0 : RENAME_NOREPLACE;
	int err = ::renameat2(AT_FDCWD, part.c_str(), AT_FDCWD, path.c_str(), flags);

	// Not all file systems can promise that.
	if (err < 0 && flags && errno == EINVAL)
		err = ::rename(part.c_str(), path.c_str());
	if (err < 0)
		return fail_errno(path, "rename", errno, errc::output);
	return {};
}

} // namespace sluice::cli
