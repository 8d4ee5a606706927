// SPDX-License-Identifier: MIT
#include "xfer/file_reader.hpp"

#include <deque>
#include <fcntl.h>
#include <sys/stat.h>

namespace xfer {

FileReader::FileReader(const std::string &path)
	: path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC))
{
	struct stat st;

	if (!fd_)
		throw system_error(path, errno, errc::input);
	if (::fstat(fd_.get(), &st) < 0)
		throw system_error(path, errno, errc::input);
	if (S_ISDIR(st.st_mode))
		throw Error(errc::input, path + ": is a directory");
	if (!S_ISREG(st.st_mode))
		throw Error(errc::input, path + ": is not a regular file");
	if (st.st_size == 0)
		throw Error(errc::input, path + ": is empty");
	size_ = static_cast<uint64_t>(st.st_size);
}

// One block, however many reads it takes: the kernel may read less than asked.
result<size_t> FileReader::fill(Ring &ring, std::span<std::byte> to,
				uint64_t offset) const
{
	size_t done = 0;

	while (done < to.size()) {
		auto n = ring.read(fd_.get(), to.subspan(done), offset + done);
		if (!n)
			return fail(errc::input, path_ + ": " + n.error().what());
		if (*n == 0)
			return fail(errc::input, path_ + ": ends at byte " +
				    std::to_string(offset + done) +
				    ": it became shorter");
		done += *n;
	}
	return done;
}

result<void> FileReader::read(Ring &ring, std::span<std::byte> to,
			      uint64_t offset) const
{
	struct Part {
		Operation operation;
		std::span<std::byte> to;
		uint64_t offset;
	};
	std::deque<Part> parts;
	size_t started = 0;

	while (started < to.size() || !parts.empty()) {
		if (started < to.size() && parts.size() < depth) {
			auto part = to.subspan(started,
					       std::min(block, to.size() - started));
			auto operation = ring.start_read(fd_.get(), part,
							 offset + started);
			if (!operation)
				return std::unexpected(operation.error());
			parts.push_back({std::move(*operation), part,
					 offset + started});
			started += part.size();
			continue;
		}
		auto &part = parts.front();
		auto n = part.operation.wait();
		if (!n)
			return fail(errc::input, path_ + ": " + n.error().what());
		auto rest = fill(ring, part.to.subspan(*n), part.offset + *n);
		if (!rest)
			return std::unexpected(rest.error());
		parts.pop_front();
	}
	return {};
}

} // namespace xfer
