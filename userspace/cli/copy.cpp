// SPDX-License-Identifier: MIT
// `sluice copy`: copies a file on this machine, through the memory of a GPU if one is
// named. Each piece is read, copied to the GPU and back, and written. Where the ring takes
// batches as requests, these steps form one chain, and no thread wakes up in between.
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <format>
#include <sys/stat.h>
#include <unistd.h>

#include "json_text.hpp"
#include "part_file.hpp"
#include "transfer.hpp"
#include "try.hpp"

namespace sluice::cli {

namespace {

struct copy_options {
	std::string from, to, gpu;
	uint64_t piece = 4 << 20;
	unsigned pieces = 4;
	bool overwrite = false, quiet = false;
};

/// Memory of one piece, and what is done with it.
struct copy_slot {
	slice read, written; ///< identical without a GPU
	slice video;
	batch through{2};
};

/// The results of the steps of a piece; those after a failed step are ignored.
struct piece_end {
	result<size_t> read, through, written;
};

class copier {
public:
	/// @param size bytes to copy
	copier(context &in, device *gpu, const copy_options &o, uint64_t size)
		: context_(in), gpu_(gpu), options_(o),
		  progress_{.bytes = 0, .size = size}
	{
	}

	result<void> prepare();
	/// Copy one file to another, with all slots at once.
	task<result<void>> copy(int from, int to);
	const stream_progress &progress() const { return progress_; }

private:
	task<result<void>> worker(copy_slot &slot);
	task<result<void>> piece(copy_slot &slot, uint64_t at, size_t length);
	task<piece_end> chained(copy_slot &slot, uint64_t at, size_t length);
	task<piece_end> in_turn(copy_slot &slot, uint64_t at, size_t length);
	task<result<size_t>> gpu_copy(copy_slot &slot, slice to, slice from);

	context &context_;
	device *gpu_;
	const copy_options &options_;
	int from_ = -1, to_ = -1;
	size_t most_ = 0;
	uint64_t next_ = 0;
	std::vector<copy_slot> slots_;
	stream_progress progress_;
};

result<void> copier::prepare()
{
	const copy_options &o = options_;
	const unsigned pieces = gpu_ ? gpu_->limits().at_once(o.pieces) : o.pieces;

	most_ = o.piece;
	for (unsigned i = 0; i < pieces; i++) {
		copy_slot slot;
		auto host = buffer::host(gpu_ ? 2 * o.piece : o.piece);
		if (!host)
			return std::unexpected(host.error());
		slot.read = host->part(0, o.piece);
		slot.written = gpu_ ? host->part(o.piece, o.piece) : slot.read;
		if (gpu_) {
			auto video = gpu_->vram(o.piece);
			if (!video)
				return std::unexpected(video.error());
			slot.video = *video;
			if (auto known = gpu_->attach(*host); !known)
				return known;
		}
		slots_.push_back(std::move(slot));
	}
	return {};
}

task<piece_end> copier::chained(copy_slot &slot, uint64_t at, size_t length)
{
	const slice in = slot.read.part(0, length), out = slot.written.part(0, length);
	operation read, through, write;
	{
		context::chain all(context_, 3);
		read = context_.read(from_, in, at);
		if (gpu_) {
			const slice video = slot.video.part(0, length);

			slot.through.clear();
			slot.through.copy(video, in).barrier().copy(out, video);
			through = gpu_->submit(slot.through);
		}
		write = context_.write(to_, out, at);
	}
	auto got = co_await read;
	result<size_t> went = gpu_ ? co_await through : result<size_t>(0);

	co_return piece_end{got, went, co_await write};
}

task<result<size_t>> copier::gpu_copy(copy_slot &slot, slice to, slice from)
{
	slot.through.clear();
	slot.through.copy(to, from);
	co_return co_await gpu_->submit(slot.through);
}

// For kernels without the series: batches by AMDGPU_CS are not requests of the ring
// and have no barriers.
task<piece_end> copier::in_turn(copy_slot &slot, uint64_t at, size_t length)
{
	const slice in = slot.read.part(0, length), out = slot.written.part(0, length);
	const slice video = slot.video.part(0, length);
	piece_end end{0, 0, 0};

	end.read = co_await context_.read(from_, in, at);
	if (!end.read || *end.read < length)
		co_return end;
	end.through = co_await gpu_copy(slot, video, in);
	if (end.through)
		end.through = co_await gpu_copy(slot, out, video);
	if (end.through)
		end.written = co_await context_.write(to_, out, at);
	co_return end;
}

task<result<void>> copier::piece(copy_slot &slot, uint64_t at, size_t length)
{
	bool chains = !gpu_ || gpu_->limits().ring;
	auto [got, went, put] = chains ? co_await chained(slot, at, length)
				       : co_await in_turn(slot, at, length);

	if (!got)
		co_return fail_at(options_.from, got.error());
	if (*got < length)
		co_return fail(errc::input, options_.from,
			       std::format("it ended at {} of {} bytes", at + *got,
					   progress_.size));
	if (!went)
		co_return std::unexpected(went.error());
	if (!put)
		co_return fail_at(options_.to, put.error());
	if (*put < length)
		co_return fail(errc::output, options_.to, "it takes no more bytes");
	if (gpu_ && std::memcmp(slot.read.data(), slot.written.data(), length) != 0)
		co_return fail(
			errc::corrupt, gpu_->info().address,
			std::format("what came back of the piece at byte {} differs",
				    at));
	progress_.bytes += length;
	co_return {};
}

task<result<void>> copier::worker(copy_slot &slot)
{
	while (next_ < progress_.size) {
		uint64_t at = std::exchange(next_, next_ + most_);
		size_t length = std::min<uint64_t>(most_, progress_.size - at);

		if (auto done = co_await piece(slot, at, length); !done) {
			next_ = progress_.size;
			co_return done;
		}
	}
	co_return {};
}

task<result<void>> copier::copy(int from, int to)
{
	from_ = from;
	to_ = to;
	std::vector<task<result<void>>> workers;
	result<void> all;

	for (copy_slot &slot : slots_)
		workers.push_back(worker(slot));
	for (auto &each : workers)
		if (auto done = co_await each; !done && all)
			all = done;
	if (!all)
		co_return all;
	if (auto synced = co_await context_.sync(to_); !synced)
		co_return fail_at(options_.to, synced.error());
	co_return {};
}

/// A file that is removed with this object, or when a signal ends the process, unless
/// it was renamed.
class removed_if_ended {
public:
	explicit removed_if_ended(std::string path) : path_(std::move(path)) {}
	removed_if_ended(const removed_if_ended &) = delete;
	~removed_if_ended()
	{
		if (!made_)
			return;
		::unlink(path_.c_str());
		has_its_name();
	}

	const std::string &path() const { return path_; }
	/// A signal that arrives while the file is being made ends the process only
	/// after it is known whose file it is.
	result<unique_fd> make(mode_t rights)
	{
		sigset_t ending, before;

		::sigemptyset(&ending);
		for (int number : ends)
			::sigaddset(&ending, number);
		::pthread_sigmask(SIG_BLOCK, &ending, &before);
		auto file = make_part(path_, rights);
		if (file) {
			made_ = true;
			doomed = path_.c_str();
			have_signals(remove_and_end);
		}
		::pthread_sigmask(SIG_SETMASK, &before, nullptr);
		return file;
	}
	void has_its_name()
	{
		made_ = false;
		have_signals(SIG_DFL);
		doomed = nullptr;
	}

private:
	static constexpr int ends[] = {SIGINT, SIGTERM, SIGHUP};

	/// Signals that are ignored, as under nohup, stay ignored.
	static void have_signals(void (*handled)(int))
	{
		for (int number : ends)
			if (::signal(number, handled) == SIG_IGN)
				::signal(number, SIG_IGN);
	}
	static void remove_and_end(int number)
	{
		if (doomed)
			::unlink(doomed);
		::signal(number, SIG_DFL);
		::raise(number);
	}
	static inline const char *volatile doomed = nullptr;

	std::string path_;
	bool made_ = false;
};

/// Of the first @p size bytes: the file may grow.
result<sha256_digest> digest_of(int file, const std::string &name, uint64_t size)
{
	std::vector<std::byte> some(1 << 20);
	sha256 sum;

	for (uint64_t at = 0; at < size;) {
		ssize_t n = ::pread(file, some.data(),
				    std::min<uint64_t>(some.size(), size - at),
				    static_cast<off_t>(at));

		if (n < 0)
			return fail_errno(name, "read", errno, errc::input);
		if (n == 0)
			return fail(
				errc::input, name,
				std::format("it ended at {} of {} bytes", at, size));
		sum.add(std::span(some).first(static_cast<size_t>(n)));
		at += static_cast<uint64_t>(n);
	}
	return sum.digest();
}

/// Whether all of a file's content is in its first @p size bytes. Files of /proc and the
/// like have a size of 0, and content.
bool has_size(int file, uint64_t size)
{
	struct stat now{};
	char first;

	return size || ::pread(file, &first, 1, 0) <= 0 ||
	       (::fstat(file, &now) == 0 && now.st_size > 0); // it has just grown
}

class copy_command : public command {
public:
	void add_options(CLI::App &to) override;
	result<exit_status> run(const settings &with) override;

private:
	/// The copy is at @p place once it is complete.
	result<sha256_digest> copy_to(int from, const struct stat &st,
				      const std::string &place);
	result<sha256_digest> copy_through(context &ring, copier &all, int from,
					   int to) const;

	copy_options options_;
};

void copy_command::add_options(CLI::App &to)
{
	to.add_option("FROM", options_.from, "a file")->required();
	to.add_option("TO", options_.to, "a file or a directory")
		->required()
		->check(not_empty);
	to.add_option("--gpu", options_.gpu,
		      "through this GPU's memory: 0000:03:00.0, or 0")
		->type_name("GPU");
	to.add_option("--piece", options_.piece, "bytes that are read at a time")
		->transform(CLI::AsSizeValue(false))
		->capture_default_str();
	to.add_option("--pieces", options_.pieces, "pieces under way at once")
		->check(CLI::Range(1, 64))
		->capture_default_str();
	to.add_flag("--overwrite", options_.overwrite, "replace a file that is there");
	to.add_flag("--quiet", options_.quiet, "print no progress and no result");
}

// Both files are read again at the end and compared.
result<sha256_digest> copy_command::copy_through(context &ring, copier &all, int from,
						 int to) const
{
	progress_line line(options_.from, options_.quiet);
	auto copying = all.copy(from, to);

	while (!copying.done()) {
		auto ran = ring.run_once(after(std::chrono::milliseconds(200)));
		if (!ran)
			return std::unexpected(ran.error());
		line.show(all.progress());
	}
	if (auto copied = copying.run(ring); !copied)
		return std::unexpected(copied.error());
	const uint64_t size = all.progress().size;
	auto there = digest_of(to, options_.to, size);
	auto here = digest_of(from, options_.from, size);
	if (there && here && *there != *here)
		return fail(errc::corrupt, options_.to, "it differs from FROM");
	return here ? there : here;
}

// Everything that may be missing is checked before anything is created. Until it is
// complete, the copy has another name.
result<sha256_digest> copy_command::copy_to(int from, const struct stat &st,
					    const std::string &place)
{
	SLUICE_TRY(auto ring, context::open());
	std::optional<device> gpu;
	if (!options_.gpu.empty()) {
		SLUICE_TRY(auto opened, device::open(ring, options_.gpu));
		gpu.emplace(std::move(opened));
	}
	copier all(ring, gpu ? &*gpu : nullptr, options_,
		   static_cast<uint64_t>(st.st_size));
	SLUICE_CHECK(all.prepare());
	const unique_fd directory = directory_of(place);
	removed_if_ended part(place + ".part");
	SLUICE_TRY(auto to, part.make(st.st_mode & rights_of_part(place, 0777)));
	SLUICE_TRY(auto digest, copy_through(ring, all, from, to.get()));
	SLUICE_CHECK(put_in_place(to.get(), part.path(), place, options_.overwrite));
	part.has_its_name();
	if (directory && ::fsync(directory.get()) < 0 && errno != EINVAL)
		return fail_errno(place, "sync", errno, errc::output);
	return digest;
}

result<exit_status> copy_command::run(const settings &with)
{
	namespace fs = std::filesystem;
	copy_options &o = options_;
	auto began = clock::now();

	if (!o.piece || o.piece % page_size || o.piece > 1 << 30)
		return fail(errc::usage, "--piece",
			    "it must be whole pages, at most 1 GiB");
	struct stat st{};
	// To open a pipe would wait for its writer.
	if (::stat(o.from.c_str(), &st) == 0 && !S_ISREG(st.st_mode))
		return fail(errc::input, o.from, "it is no regular file");
	unique_fd from(::open(o.from.c_str(), O_RDONLY | O_CLOEXEC));
	if (!from || ::fstat(from.get(), &st) < 0)
		return fail_errno(o.from, "open", errno, errc::input);
	auto place = place_of(o.to, fs::path(o.from).filename().string(), o.overwrite);
	if (!place)
		return std::unexpected(place.error());
	auto size = static_cast<uint64_t>(st.st_size);
	if (!has_size(from.get(), size))
		return fail(errc::input, o.from,
			    "it has content, and says that its size is 0");
	auto digest = copy_to(from.get(), st, *place);
	if (!digest)
		return std::unexpected(digest.error());
	double s = std::chrono::duration<double>(clock::now() - began).count();
	double rate = static_cast<double>(size) / s / 1e6;
	const char *path = o.gpu.empty() ? "host" : "video memory";
	if (with.json)
		*with.out << json_text({{"bytes", size},
					{"path", path},
					{"seconds", s},
					{"mb_per_s", rate},
					{"sha256", to_string(*digest)}});
	else if (!o.quiet)
		*with.out << std::format("{} bytes through {}, {:.3f} s, {:.1f} MB/s\n"
					 "SHA-256 {}, equal in both\n",
					 size, path, s, rate, to_string(*digest));
	return exit_status::ok;
}

} // namespace

std::unique_ptr<command> make_copy()
{
	return std::make_unique<copy_command>();
}

} // namespace sluice::cli
