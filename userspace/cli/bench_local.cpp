// SPDX-License-Identifier: MIT
// Local benchmarks: copies by the engines of a GPU, and between files and memory.
#include <cstring>
#include <fcntl.h>
#include <format>
#include <sys/stat.h>

#include "bench.hpp"
#include "sluice/unique_fd.hpp"
#include "try.hpp"

namespace sluice::cli {

namespace {

/// Copies every second block of @p from to the beginning of @p to, in one batch. All
/// slots share the same memory: only the time matters.
class batch_work : public bench_work {
public:
	batch_work(device &gpu, const slice &to, const slice &from, uint64_t block,
		   unsigned blocks, unsigned depth)
		: gpu_(gpu), under_way_(depth)
	{
		for (unsigned i = 0; i < depth; i++) {
			batch &b = batches_.emplace_back(blocks);

			b.fault_in();
			for (unsigned n = 0; n < blocks; n++)
				b.copy(to.part(n * block, block),
				       from.part(2 * block * n, block));
		}
	}
	result<void> start(unsigned slot, uint64_t) override
	{
		batch &b = batches_[slot];

		under_way_[slot].start(gpu_.submit(b), b.bytes());
		return {};
	}
	result<void> wait(unsigned slot) override
	{
		return under_way_[slot].wait(gpu_.info().address);
	}

private:
	device &gpu_;
	std::vector<batch> batches_;
	std::vector<moving<operation>> under_way_;
};

/// The same copies with one submission per block. As many are in flight at once as the
/// kernel takes, and each one is waited for.
class each_work : public bench_work {
public:
	each_work(device &gpu, const slice &to, const slice &from, uint64_t block,
		  unsigned blocks)
		: gpu_(gpu), batches_(blocks),
		  under_way_(gpu.limits().at_once(std::min(blocks, 64u)))
	{
		for (unsigned n = 0; n < blocks; n++)
			batches_[n]
				.copy(to.part(n * block, block),
				      from.part(2 * block * n, block))
				.fault_in();
	}
	result<void> start(unsigned, uint64_t) override
	{
		for (size_t n = 0; n < batches_.size(); n++) {
			auto &place = under_way_[n % under_way_.size()];

			SLUICE_CHECK(place.wait(gpu_.info().address));
			place.start(gpu_.submit(batches_[n]), batches_[n].bytes());
		}
		return {};
	}
	result<void> wait(unsigned) override
	{
		for (auto &each : under_way_)
			SLUICE_CHECK(each.wait(gpu_.info().address));
		return {};
	}

private:
	device &gpu_;
	std::vector<batch> batches_;
	std::vector<moving<operation>> under_way_;
};

struct bench_file {
	std::string path;
	unique_fd fd;
	uint64_t size = 0;
	bool write = false;
};

result<bench_file> open_file(const bench_options &o, const std::string &path,
			     bool write)
{
	bench_file f{.path = path, .fd = {}, .size = 0, .write = write};
	int flags = O_CLOEXEC | (o.direct ? O_DIRECT : 0) |
		    (!write ? O_RDONLY
			    : O_WRONLY | O_CREAT | (o.overwrite ? O_TRUNC : O_EXCL));
	struct stat st{};

	f.fd = unique_fd(::open(path.c_str(), flags, 0666));
	if (!f.fd && errno == EEXIST)
		return fail(errc::output, path,
			    "it is there already; --overwrite replaces it");
	if (!f.fd || ::fstat(f.fd.get(), &st) < 0)
		return fail_errno(path, "open", errno,
				  write ? errc::output : errc::input);
	f.size = write ? std::max(o.total, o.largest())
		       : static_cast<uint64_t>(st.st_size);
	if (f.size < o.largest())
		return fail(errc::input, path,
			    std::format("it has {} bytes, one operation wants {}",
					f.size, o.largest()));
	return f;
}

/// Reads or writes a file. For memory of the GPU, the GPU copies after the read or
/// before the write. Such a pair is a chain: no thread wakes up between the two.
class file_work : public bench_work {
public:
	static result<std::unique_ptr<file_work>> make(context &in, device *gpu,
						       const bench_file &file,
						       const slice &memory,
						       unsigned depth);
	result<void> start(unsigned slot, uint64_t index) override;
	result<void> wait(unsigned slot) override;

private:
	struct place {
		buffer host;
		batch copies{1};
		moving<operation> file, copy;
	};
	file_work(context &in, device *gpu, const bench_file &f, const slice &memory)
		: context_(in), gpu_(gpu), file_(f), memory_(memory)
	{
	}
	void start_file(place &at, uint64_t index);
	void start_copy(place &at);

	context &context_;
	device *gpu_;
	const bench_file &file_;
	slice memory_;
	std::vector<place> places_;
};

result<std::unique_ptr<file_work>> file_work::make(context &in, device *gpu,
						   const bench_file &file,
						   const slice &memory, unsigned depth)
{
	if (memory.of().kind() == memory::host)
		gpu = nullptr;
	std::unique_ptr<file_work> w(new file_work(in, gpu, file, memory));
	for (unsigned i = 0; i < depth; i++) {
		place p;

		SLUICE_TRY(p.host, buffer::host(memory.size()));
		std::memset(p.host.data(), 0x5a, p.host.size());
		if (gpu) {
			SLUICE_CHECK(gpu->attach(p.host));
			const slice there(p.host, 0, memory.size());
			p.copies.copy(file.write ? there : memory,
				      file.write ? memory : there)
				.fault_in();
		}
		w->places_.push_back(std::move(p));
	}
	return w;
}

// The offset wraps around at the end of the file.
void file_work::start_file(place &at, uint64_t index)
{
	uint64_t size = memory_.size(), offset = index % (file_.size / size) * size;
	slice part = at.host.part(0, size);

	at.file.start(file_.write ? context_.write(file_.fd.get(), part, offset)
				  : context_.read(file_.fd.get(), part, offset),
		      size);
}

void file_work::start_copy(place &at)
{
	at.copy.start(gpu_->submit(at.copies), at.copies.bytes());
}

result<void> file_work::start(unsigned slot, uint64_t index)
{
	place &at = places_[slot];

	if (!gpu_) {
		start_file(at, index);
		return {};
	}
	context::chain both(context_, 2);
	if (file_.write)
		start_copy(at);
	else
		start_file(at, index);
	if (file_.write)
		start_file(at, index);
	else
		start_copy(at);
	return {};
}

// If the first of a chain fails, the second is merely cancelled: check the results in
// this order.
result<void> file_work::wait(unsigned slot)
{
	place &at = places_[slot];
	auto file = [&] { return at.file.wait(file_.path); };
	auto copy = [&] { return at.copy.wait(gpu_ ? gpu_->info().address : ""); };
	result<void> first = file_.write ? copy() : file();
	result<void> second = file_.write ? file() : copy();

	return first ? second : first;
}

result<void> check(const bench_options &o)
{
	if (o.from.empty() || o.to.empty())
		return fail(errc::usage, "arguments",
			    "name a HOST, or give --listen, --from and --to, or "
			    "--collective");
	if (!is_memory(o.from) && !is_memory(o.to))
		return fail(errc::usage, "--from, --to",
			    "one of them must be memory: host, gpu or svm");
	if (o.from == "host" && o.to == "host")
		return fail(errc::usage, "--from, --to",
			    "no device copies from host to host memory: name a file, "
			    "gpu or svm");
	if (o.gather && (!is_memory(o.from) || !is_memory(o.to)))
		return fail(errc::usage, "--gather",
			    "blocks are gathered from memory to memory");
	return {};
}

/// One mode, with the memory for its largest operation.
class local_bench {
public:
	local_bench(const bench_options &o, context &in, device *gpu)
		: options_(o), context_(in), gpu_(gpu)
	{
	}
	result<figures> run();

private:
	result<void> run_memory(figures &to);
	result<void> run_file(figures &to);
	result<void> run_gather(figures &to, const slice &target, const slice &source);

	bench_options options_;
	context &context_;
	device *gpu_;
};

result<void> local_bench::run_gather(figures &all, const slice &target,
				     const slice &source)
{
	for (uint64_t block : options_.sizes) {
		uint64_t bytes = block * options_.gather;
		batch_work one(*gpu_, target, source, block, options_.gather, 1);
		each_work each(*gpu_, target, source, block, options_.gather);

		SLUICE_TRY(auto batch,
			   measure(context_, one, "one batch", bytes, options_));
		SLUICE_TRY(auto apart,
			   measure(context_, each, "a copy each", bytes, options_));
		all.rows.push_back(std::move(batch));
		all.rows.push_back(std::move(apart));
	}
	return {};
}

result<void> local_bench::run_memory(figures &all)
{
	uint64_t blocks = std::max(options_.gather, 1u), size = options_.largest();

	SLUICE_TRY(auto source,
		   bench_memory::make(gpu_, options_.from,
				      size * blocks * (options_.gather ? 2 : 1)));
	SLUICE_TRY(auto target, bench_memory::make(gpu_, options_.to, size * blocks));
	if (options_.gather)
		SLUICE_CHECK(run_gather(all, target.all(), source.all()));
	else
		for (uint64_t bytes : options_.sizes) {
			batch_work work(*gpu_, target.all(), source.all(), bytes, 1,
					options_.depth);
			SLUICE_TRY(auto f,
				   measure(context_, work, "copy", bytes, options_));
			all.rows.push_back(std::move(f));
		}
	SLUICE_CHECK(source.verify());
	return target.verify();
}

result<void> local_bench::run_file(figures &all)
{
	bool write = is_memory(options_.from);
	const std::string &kind = write ? options_.from : options_.to;

	SLUICE_TRY(auto file,
		   open_file(options_, write ? options_.to : options_.from, write));
	SLUICE_TRY(auto memory, bench_memory::make(gpu_, kind, options_.largest()));
	for (uint64_t bytes : options_.sizes) {
		SLUICE_TRY(auto work, file_work::make(context_, gpu_, file,
						      memory.all().part(0, bytes),
						      options_.depth));
		SLUICE_TRY(auto f, measure(context_, *work, write ? "write" : "read",
					   bytes, options_));
		all.rows.push_back(std::move(f));
	}
	return memory.verify();
}

result<figures> local_bench::run()
{
	bool of_file = !is_memory(options_.from) || !is_memory(options_.to);

	// Both rows gather one set of blocks after the other, to be alike.
	if (options_.gather)
		options_.depth = 1;
	figures all{.title = std::format("{} to {}", options_.from, options_.to),
		    .note = options_.note,
		    .depth = options_.depth,
		    .rows = {}};

	if (options_.gather)
		all.title += std::format(", {} blocks gathered", options_.gather);
	if (of_file && !options_.direct)
		all.title += ", by way of the page cache";
	if (gpu_) {
		all.title += ", GPU " + gpu_->info().address;
		options_.metered = {gpu_->info().address};
		all.no_energy = why_no_energy(options_);
	}
	SLUICE_CHECK(of_file ? run_file(all) : run_memory(all));
	return all;
}

} // namespace

result<figures> bench_local(const bench_options &o)
{
	SLUICE_CHECK(check(o));
	auto of_gpu = [](const std::string &kind) {
		return kind == "gpu" || kind == "svm";
	};
	SLUICE_TRY(auto in, context::open());
	SLUICE_TRY(auto gpu, bench_gpu(in, o, of_gpu(o.from) || of_gpu(o.to)));
	return local_bench(o, in, gpu ? &*gpu : nullptr).run();
}

} // namespace sluice::cli
