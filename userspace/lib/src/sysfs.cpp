// SPDX-License-Identifier: MIT
#include "sysfs.hpp"

#include <algorithm>
#include <charconv>
#include <cctype>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fcntl.h>

#include "sluice/unique_fd.hpp"

namespace sluice {

namespace fs = std::filesystem;

namespace {

bool of_a_word(char c)
{
	return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

bool has_word(std::string_view text, std::string_view word)
{
	for (size_t at = text.find(word); at != text.npos;
	     at = text.find(word, at + 1)) {
		size_t end = at + word.size();

		if ((at == 0 || !of_a_word(text[at - 1])) &&
		    (end == text.size() || !of_a_word(text[end])))
			return true;
	}
	return false;
}

/// Read until the buffer is full or the file ends. Files of procfs come in pieces.
size_t fill(int fd, std::span<char> to)
{
	size_t size = 0;

	while (size < to.size()) {
		ssize_t n = ::read(fd, to.data() + size, to.size() - size);

		if (n <= 0)
			break;
		size += static_cast<size_t>(n);
	}
	return size;
}

unique_fd open_file(const std::string &path)
{
	return unique_fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

} // namespace

sysfs::sysfs(std::string_view root)
{
	std::error_code bad;
	fs::path real = fs::canonical(fs::path(root), bad);

	root_ = bad ? std::string(root) : real.string();
	if (!root_.ends_with('/'))
		root_ += '/';
}

bool sysfs::has(std::string_view path) const
{
	std::error_code bad;

	return fs::exists(full(path), bad);
}

std::string sysfs::bytes(std::string_view path, size_t most) const
{
	unique_fd file = open_file(full(path));
	std::string text(file ? most : 0, '\0');

	text.resize(fill(file.get(), text));
	return text;
}

std::string sysfs::text(std::string_view path, size_t most) const
{
	std::string text = bytes(path, most);
	size_t end = text.find_last_not_of(" \t\n");

	text.resize(end == text.npos ? 0 : end + 1);
	return text;
}

std::optional<uint64_t> sysfs::number(std::string_view path) const
{
	std::string all = text(path, 64);
	bool hex = all.starts_with("0x");
	const char *first = all.data() + (hex ? 2 : 0);
	uint64_t value;
	auto end =
		std::from_chars(first, all.data() + all.size(), value, hex ? 16 : 10);

	if (end.ec != std::errc())
		return std::nullopt;
	return value;
}

double sysfs::fraction(std::string_view path) const
{
	std::string all = text(path, 64);
	double value = 0;
	auto end = std::from_chars(all.data(), all.data() + all.size(), value,
				   std::chars_format::fixed);

	// It reads "nan" and "inf", too.
	return end.ec == std::errc() && std::isfinite(value) && value > 0 ? value : 0;
}

std::vector<std::string> sysfs::list(std::string_view path) const
{
	std::vector<std::string> names;
	std::error_code bad;

	for (fs::directory_iterator entry(full(path), bad), end; !bad && entry != end;
	     entry.increment(bad))
		names.push_back(entry->path().filename().string());
	std::ranges::sort(names, [](const std::string &a, const std::string &b) {
		return ::strverscmp(a.c_str(), b.c_str()) < 0;
	});
	return names;
}

std::string sysfs::real(std::string_view path) const
{
	std::error_code bad;
	std::string real = fs::canonical(full(path), bad).string();

	if (bad || !real.starts_with(root_))
		return {};
	return real.substr(root_.size());
}

std::string sysfs::target(std::string_view path) const
{
	std::error_code bad;

	return fs::read_symlink(full(path), bad).filename().string();
}

int sysfs::integer(std::string_view text, int otherwise) noexcept
{
	std::from_chars(text.data(), text.data() + text.size(), otherwise);
	return otherwise;
}

std::optional<uint64_t> sysfs::value(std::string_view lines, std::string_view key)
{
	for (size_t at = 0; at < lines.size();) {
		size_t end = std::min(lines.find('\n', at), lines.size());
		std::string_view line = lines.substr(at, end - at);

		at = end + 1;
		if (!line.starts_with(key) || line.size() <= key.size() ||
		    line[key.size()] != ' ')
			continue;
		line.remove_prefix(key.size() + 1);
		uint64_t value;
		auto parsed =
			std::from_chars(line.data(), line.data() + line.size(), value);
		if (parsed.ec == std::errc())
			return value;
	}
	return std::nullopt;
}

std::vector<bool> sysfs::words(std::string_view path,
			       std::span<const std::string_view> wanted) const
{
	constexpr size_t piece = 1 << 20, overlap = 256;
	unique_fd file = open_file(full(path));
	std::string text(file ? piece : 0, '\0');
	std::vector<bool> found;
	size_t kept = 0;

	while (file) {
		size_t n = fill(file.get(), std::span(text).subspan(kept));

		if (n == 0)
			break;
		found.resize(wanted.size());
		std::string_view seen(text.data(), kept + n);
		for (size_t i = 0; i < wanted.size(); i++)
			found[i] = found[i] || has_word(seen, wanted[i]);
		// A word may lie across two pieces.
		kept = std::min(overlap, seen.size());
		std::memmove(text.data(), seen.data() + seen.size() - kept, kept);
	}
	return found;
}

} // namespace sluice
