// SPDX-License-Identifier: MIT
// Small files of sysfs and procfs, below a root.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

class sysfs {
public:
	explicit sysfs(std::string_view root);

	bool has(std::string_view path) const;
	/// Where it is on this machine.
	std::string path(std::string_view of) const { return full(of); }

	/// The first @p most bytes of a file, without white space at the end. Empty
	/// if there is none, or it cannot be read.
	std::string text(std::string_view path, size_t most = 16384) const;
	std::string bytes(std::string_view path, size_t most) const;

	/// A number at the beginning of a file: decimal, or hexadecimal with 0x.
	std::optional<uint64_t> number(std::string_view path) const;

	/// A decimal fraction at the beginning of a file, as of a rate: "32.0 GT/s".
	/// 0 if there is none that is finite, or it is negative.
	double fraction(std::string_view path) const;

	/// Names in a directory, in the order of their numbers.
	std::vector<std::string> list(std::string_view path) const;

	/// The path without links, below the root: "sys/devices/..."; empty if
	/// there is nothing.
	std::string real(std::string_view path) const;

	/// The last component of where a link points to.
	std::string target(std::string_view path) const;

	/// The value of "@p key value" in a file of such lines.
	static std::optional<uint64_t> value(std::string_view lines,
					     std::string_view key);

	/// The decimal number at the beginning of a text, or @p otherwise.
	static int integer(std::string_view text, int otherwise) noexcept;

	/// Which of some words a file has, however long it is. None if it cannot be
	/// read.
	std::vector<bool> words(std::string_view path,
				std::span<const std::string_view> wanted) const;

private:
	std::string full(std::string_view path) const
	{
		return root_ + std::string(path);
	}

	std::string root_; ///< without links, ends with a slash
};

} // namespace sluice
