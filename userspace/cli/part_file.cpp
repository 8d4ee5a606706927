// SPDX-License-Identifier: MIT
#include "part_file.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace sluice::cli {

namespace fs = std::filesystem;

namespace {

/// The type of the file there: fs::file_type::not_found is not an error.
/// @param look fs::status, which follows a link, or fs::symlink_status
result<fs::file_type> type_of(const std::string &path,
			      fs::file_status look(const fs::path &, std::error_code &))
{
	std::error_code why;
	auto status = look(path, why);

	if (status.type() == fs::file_type::none)
		return fail_errno(path, "cannot be looked at", why.value(),
				  errc::output);
	return status.type();
}

constexpr int always = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;

/// Not flock(2): a process that may only read a file must not keep others from writing
/// to it. Some file systems have no locks.
bool locked_by_another(int file)
{
	struct flock all{};

	all.l_type = F_WRLCK;
	return ::fcntl(file, F_OFD_SETLK, &all) < 0 &&
	       (errno == EAGAIN || errno == EACCES);
}

std::unexpected<error> is_anothers(const std::string &part)
{
	return fail(errc::output, part, "another process writes to it");
}

/// Whether the name still leads to this file, and is its only name.
bool is_only_name(const std::string &path, const struct stat &file)
{
	struct stat named{};

	return ::lstat(path.c_str(), &named) == 0 && named.st_dev == file.st_dev &&
	       named.st_ino == file.st_ino && named.st_nlink == 1;
}

/// Give the file the access list of the one at @p path, or none, if that one has none: a
/// new file may have inherited a list from its directory.
/// @return false if it cannot have the same
bool take_access_list(int file, const std::string &path)
{
	constexpr const char *list = "system.posix_acl_access";
	std::array<char, 4096> entries;
	ssize_t n = ::getxattr(path.c_str(), list, entries.data(), entries.size());

	if (n < 0 && errno == ENODATA)
		return ::fremovexattr(file, list) == 0 || errno == ENODATA ||
		       errno == ENOTSUP;
	if (n < 0)
		return errno == ENOTSUP;
	return ::fsetxattr(file, list, entries.data(), static_cast<size_t>(n), 0) == 0;
}

/// As far as this user may give a file away. Group rights are kept only with the group,
/// and, where an access list says what they are, with that list.
bool take_after(int file, const std::string &path, const struct stat &before)
{
	mode_t rights = before.st_mode & 0777;

	if (::fchown(file, before.st_uid, before.st_gid) < 0 &&
	    ::fchown(file, static_cast<uid_t>(-1), before.st_gid) < 0)
		rights &= 0707;
	else if (!take_access_list(file, path))
		rights &= 0707;
	return ::fchmod(file, rights) == 0;
}

} // namespace

result<std::string> place_of(const std::string &to, const std::string &name,
			     bool overwrite)
{
	std::string path = to;
	auto type = type_of(path, fs::status);

	if (type && *type == fs::file_type::directory)
		path += "/" + name;
	// A link itself would be replaced, and not what it leads to.
	if (type)
		type = type_of(path, fs::symlink_status);
	if (!type)
		return std::unexpected(type.error());
	if (*type == fs::file_type::symlink)
		return fail(errc::output, path,
			    "it is a symbolic link; name what it leads to");
	if (*type != fs::file_type::not_found && *type != fs::file_type::regular)
		return fail(errc::output, path, "it is there, and is no regular file");
	if (!overwrite && *type != fs::file_type::not_found)
		return is_there(path);
	return path;
}

std::unexpected<error> is_there(const std::string &path)
{
	return fail(errc::output, path, "it is there already; --overwrite replaces it");
}

bool is_same_file(const std::string &one, const std::string &other)
{
	struct stat a{}, b{};
	std::error_code none;
	auto place = [&](const std::string &path) {
		return fs::weakly_canonical(fs::absolute(path, none), none);
	};

	if (::stat(one.c_str(), &a) == 0 && ::stat(other.c_str(), &b) == 0)
		return S_ISREG(a.st_mode) && a.st_dev == b.st_dev &&
		       a.st_ino == b.st_ino;
	return !place(one).empty() && place(one) == place(other);
}

mode_t rights_of_part(const std::string &path, mode_t of_new)
{
	struct stat st{};

	return ::stat(path.c_str(), &st) == 0 ? S_IRUSR | S_IWUSR : of_new;
}

result<unique_fd> open_part(const std::string &part, mode_t mode)
{
	unique_fd file(::open(part.c_str(), always, mode));
	struct stat st{};

	if (!file || ::fstat(file.get(), &st) < 0)
		return fail_errno(part, "open", errno, errc::output);
	if (!S_ISREG(st.st_mode))
		return fail(errc::output, part, "it is no regular file");
	if (locked_by_another(file.get()))
		return is_anothers(part);
	// The previous holder may just have renamed it.
	if (!is_only_name(part, st))
		return fail(errc::output, part,
			    "it has another name as well, or lost this one just now");
	// A part that was there may be open to others. Only file systems without modes
	// keep its owner from changing that.
	if (!(mode & (S_IRWXG | S_IRWXO)) && ::fchmod(file.get(), mode) < 0 &&
	    st.st_uid != ::geteuid())
		return fail_errno(part, "chmod", errno, errc::output);
	return file;
}

result<unique_fd> make_part(const std::string &part, mode_t mode)
{
	unique_fd file(::open(part.c_str(), always | O_EXCL, mode));

	if (!file && errno == EEXIST)
		return fail(errc::output, part,
			    "it is there already: remove it if nobody needs it");
	if (!file)
		return fail_errno(part, "open", errno, errc::output);
	// Another process may have opened it at once.
	if (locked_by_another(file.get()))
		return is_anothers(part);
	return file;
}

result<void> put_in_place(int file, const std::string &part, const std::string &path,
			  bool overwrite)
{
	unsigned flags = overwrite ? 0 : RENAME_NOREPLACE;
	struct stat before{};

	if (overwrite && ::stat(path.c_str(), &before) == 0 &&
	    !take_after(file, path, before))
		return fail_errno(part, "chmod", errno, errc::output);
	int err = ::renameat2(AT_FDCWD, part.c_str(), AT_FDCWD, path.c_str(), flags);

	// Some file systems do not know the flag. Linux itself has seen that nothing has
	// the name, so only another process could take it now.
	if (err < 0 && flags && errno == EINVAL)
		err = ::rename(part.c_str(), path.c_str());
	if (err < 0)
		return fail_errno(path, "rename", errno, errc::output);
	return {};
}

unique_fd directory_of(const std::string &path)
{
	std::string directory = fs::path(path).parent_path().string();

	if (directory.empty())
		directory = ".";
	return unique_fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

result<void> can_be_written(const std::string &path)
{
	constexpr int flags = O_WRONLY | O_CLOEXEC | O_NONBLOCK;
	unique_fd made(::open(path.c_str(), flags | O_CREAT | O_EXCL, 0666));

	if (made)
		::unlink(path.c_str());
	else if (errno != EEXIST || !unique_fd(::open(path.c_str(), flags)))
		return fail_errno(path, "open", errno, errc::output);
	return {};
}

} // namespace sluice::cli
