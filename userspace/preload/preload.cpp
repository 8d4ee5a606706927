// SPDX-License-Identifier: MIT
// libsluice-preload.so: preloaded into another program (see "sluice run"), it moves the
// program's memory to a GPU without the program's knowledge.
//
// It does so when the program registers the memory with a card, on demand, and once more
// when a queue pair becomes ready. Any earlier would be useless: programs fill a buffer
// before they use it, and what the CPU touches comes back. From then on, a thread moves
// memory again that the CPU has left alone for a while, as some programs refill a buffer
// for each test. Memory that is registered otherwise stays, as it is pinned, which would
// bring it back; so does memory that engines keep for themselves.
#include <algorithm>
#include <array>
#include <chrono>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <format>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <unordered_map>
#include <utility>

#include <amdgpu_drm.h>
#include <infiniband/verbs.h>

#include "call.hpp"
#include "gpu_memory.hpp"
#include "migrations.hpp"
#include "own_file.hpp"
#include "pace.hpp"
#include "preload.hpp"
#include "try.hpp"

// Macros of the header that choose between the functions.
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace {

using namespace sluice;
using namespace sluice::detail;

struct pages {
	uint64_t start;
	size_t size;
};

/// All pages that hold a byte of it. Whatever else is in the first and last moves along.
pages pages_of(const void *at, size_t length)
{
	auto address = reinterpret_cast<uintptr_t>(at);
	uint64_t start = address & ~(page_size - 1);

	return {start, round_to_pages(address + length) - start};
}

/// The first page, those between, and the last. The CPU may use other things in the first
/// and the last page all the time, such as neighbours of a buffer in the heap.
std::array<pages, 3> parts_of(pages what)
{
	size_t middle = what.size - std::min(what.size, 2 * page_size);

	return {{{what.start, page_size},
		 {what.start + page_size, middle},
		 {what.start + what.size - page_size, page_size}}};
}

size_t elsewhere(pages what)
{
	return misplaced_pages(what.start, what.size, true).value_or(0);
}

void say(std::string_view words)
{
	std::fputs(std::format("libsluice-preload: {}\n", words).c_str(), stderr);
}

std::string text_of(const char *variable)
{
	const char *value = std::getenv(variable);

	return value ? value : "";
}

/// Is all of it private memory without a file? Pages of a file would be written to, or
/// copied, when they are populated.
bool is_anonymous(pages what)
{
	std::ifstream maps("/proc/self/maps");

	for (std::string line; std::getline(maps, line);) {
		uint64_t from, to, inode;
		char rights[5];

		if (std::sscanf(line.c_str(),
				"%" SCNx64 "-%" SCNx64 " %4s %*s %*s %" SCNu64, &from,
				&to, rights, &inode) == 4 &&
		    from < what.start + what.size && to > what.start &&
		    (inode || rights[3] != 'p'))
			return false;
	}
	return true;
}

/// Of an entry of pagemap: the page is in memory, or in swap, which is what a page of a
/// GPU looks like. Other bits may be set where there is no page.
constexpr uint64_t is_there = uint64_t{3} << 62;

/// Unpopulated pages do not migrate. Touching pages in a GPU would bring them back, so
/// touch only those that are not there yet.
result<void> populate(pages what)
{
	unique_fd map(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
	std::array<uint64_t, 512> entries;

	for (size_t done = 0; done < what.size;) {
		uint64_t at = what.start + done;
		size_t n = std::min((what.size - done) / page_size, entries.size());
		auto bytes = static_cast<ssize_t>(n * sizeof(entries[0]));

		if (::pread(map.get(), entries.data(), static_cast<size_t>(bytes),
			    static_cast<off_t>(at / page_size * 8)) != bytes)
			return fail_errno("/proc/self/pagemap", "read");
		for (size_t i = 0; i < n; i++)
			if (!(entries[i] & is_there) &&
			    ::madvise(reinterpret_cast<void *>(at + i * page_size),
				      page_size, MADV_POPULATE_WRITE) < 0)
				return fail_errno("memory", "populate");
		done += n * page_size;
	}
	return {};
}

/// What all processes leave of the video memory.
result<uint64_t> free_memory_of(const gpu_node &node)
{
	drm_amdgpu_memory_info memory{};
	drm_amdgpu_info args{};

	args.return_pointer = reinterpret_cast<uintptr_t>(&memory);
	args.return_size = sizeof(memory);
	args.query = AMDGPU_INFO_MEMORY;
	if (int err = call(node.file.get(), DRM_IOCTL_AMDGPU_INFO, &args))
		return fail_errno(node.name(), "AMDGPU_INFO_MEMORY", -err,
				  errc::device);
	const auto &vram = memory.vram;
	// What is pinned is in use, and not in the usable size: that would count it twice.
	return vram.total_heap_size - std::min(vram.total_heap_size, vram.heap_usage);
}

/// Moves memory of this process to one GPU, and tracks whether it comes back. Nothing large
/// is freed under the lock: UCX is told of freed memory, and would end a registration.
class mover {
public:
	static result<std::unique_ptr<mover>> open(const std::string &gpu);

	result<void> find_room(pages what);
	result<void> move(pages what);
	void begin(const ibv_mr *of, pages what);
	std::optional<pages> end(const ibv_mr *of);
	void ended(pages what);
	size_t move_again();
	void keep();
	std::string report();

private:
	mover(gpu_node &node, unique_fd events)
		: node_(node), events_(std::move(events))
	{
	}

	result<void> put(pages what);
	void look();
	bool come_back();
	void await_quiet(preload::pace::duration quiet);
	void judge(pages what);

	gpu_node &node_;
	const preload::own_file events_;
	std::mutex lock_;
	std::unordered_map<const ibv_mr *, pages> registered_;
	device_counters seen_;
	size_t moved_ = 0, bytes_ = 0, refused_ = 0, left_ = 0;
	uint64_t known_back_ = 0; // of seen_
};

result<std::unique_ptr<mover>> mover::open(const std::string &gpu)
{
	SLUICE_TRY(gpu_node * node, find_node(gpu));
	SLUICE_CHECK(can_share(*node));
	SLUICE_TRY(unique_fd events, open_migrations(*node));
	return std::unique_ptr<mover>(new mover(*node, std::move(events)));
}

/// To be asked first: moving populates all of it, and a program that registers far more
/// than it touches has no memory for that.
result<void> mover::find_room(pages what)
{
	auto free = free_memory_of(node_);

	// To look for what is in the GPU already takes long if it is very large.
	if (free && (what.size <= *free || elsewhere(what) <= *free / page_size))
		return {};
	std::lock_guard guard(lock_);
	refused_++;
	if (!free)
		return std::unexpected(free.error());
	return fail(errc::device, node_.name(),
		    std::format("only {} bytes of its video memory are free", *free));
}

result<void> mover::put(pages what)
{
	auto [first, middle, last] = parts_of(what);

	SLUICE_CHECK(populate(what));
	// A hint, given before the GPU maps any of it, as mappings would have to be split.
	for (pages edge : {first, last})
		(void)return_by_page(node_, edge.start, edge.size);
	SLUICE_CHECK(prefer_gpu(node_, what.start, what.size));
	return move_pages(node_, what.start, what.size, true);
}

result<void> mover::move(pages what)
{
	std::lock_guard guard(lock_);
	auto moved = put(what);

	if (moved) {
		moved_++;
		bytes_ += what.size;
	} else {
		refused_++;
	}
	return moved;
}

void mover::begin(const ibv_mr *of, pages what)
{
	std::lock_guard guard(lock_);

	look();
	registered_[of] = what;
}

/// Called before the deregistration, as the next registration may get the same address.
/// @return what was registered, which continues by begin() if the deregistration fails
std::optional<pages> mover::end(const ibv_mr *of)
{
	std::lock_guard guard(lock_);
	auto found = registered_.find(of);

	if (found == registered_.end())
		return {};
	look();
	pages what = found->second;
	registered_.erase(found);
	return what;
}

void mover::ended(pages what)
{
	std::lock_guard guard(lock_);

	judge(what);
}

/// Tries it only once, as the CPU may still be using the memory.
/// @return pages that are still elsewhere afterwards
size_t mover::move_again()
{
	std::lock_guard guard(lock_);
	size_t left = 0;

	// Moving pages that are there already would take them from the card for a moment.
	for (const auto &[mr, what] : registered_)
		for (pages part : parts_of(what))
			if (size_t back = elsewhere(part))
				left += try_to_move(node_, part.start, part.size, true)
						.value_or(back);
	return left;
}

/// Moves pages that have come back once no more have come for a while, and retries those
/// that such a move has left, until the program closes the file of events. It also looks
/// without an event: registering reads events, too, of which poll() may then not tell.
void mover::keep()
{
	using clock = preload::pace::clock;
	using namespace std::chrono;
	preload::pace pace;

	for (;;) {
		pollfd events{events_.get(), POLLIN, 0};
		auto patience = ceil<milliseconds>(pace.patience_at(clock::now()));

		if (events.fd < 0)
			return;
		::poll(&events, 1, static_cast<int>(patience.count()));
		if (come_back())
			await_quiet(pace.quiet_from(clock::now()));
		else if (!pace.retry_at(clock::now()))
			continue;
		auto start = clock::now();
		size_t left = move_again();
		pace.moved(start, clock::now(), left);
	}
}

void mover::await_quiet(preload::pace::duration quiet)
{
	do
		std::this_thread::sleep_for(quiet);
	while (come_back());
}

void mover::judge(pages what)
{
	look();
	left_ += elsewhere(what);
}

// Pages that come back while no memory is registered do not count.
void mover::look()
{
	std::array<char, 8192> text; // as much as amdkfd keeps
	ssize_t n = ::read(events_.get(), text.data(), text.size());
	device_counters before;

	if (n > 0)
		count_migrations(registered_.empty() ? before : seen_,
				 {text.data(), static_cast<size_t>(n)}, ::getpid(),
				 node_.what.kfd_id);
}

/// Whether pages have come back since the last call.
bool mover::come_back()
{
	std::lock_guard guard(lock_);

	look();
	return std::exchange(known_back_, seen_.migrated_out) != seen_.migrated_out;
}

std::string mover::report()
{
	std::lock_guard guard(lock_);

	for (const auto &[mr, what] : registered_)
		judge(what);
	return std::format("{} times memory went to {}, {} bytes, {} times not; "
			   "{} pages came back while some was registered, {} were "
			   "elsewhere at the end",
			   moved_, node_.name(), bytes_, refused_, seen_.migrated_out,
			   left_);
}

/// In a thread of its own, which gets no signals of the program.
void start_keeping(mover *one)
{
	auto keep = [](void *of) -> void * {
		static_cast<mover *>(of)->keep();
		return nullptr;
	};
	pthread_t thread;
	sigset_t all, before;

	::sigfillset(&all);
	::pthread_sigmask(SIG_SETMASK, &all, &before);
	if (int error = ::pthread_create(&thread, nullptr, keep, one))
		say(std::format("what comes back stays in the host: no thread: {}",
				std::strerror(error)));
	else
		::pthread_detach(thread);
	::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

std::mutex opening; ///< of the GPU, by mover_of_process()

// A child that is forked meanwhile would wait for ever for a thread that it does not have.
[[gnu::constructor]] void fork_with_the_lock()
{
	::pthread_atfork([] { opening.lock(); }, [] { opening.unlock(); },
			 [] { opening.unlock(); });
}

/// The mover of this process, or null: a child does not inherit its parent's. It is never
/// freed, as a thread may still use it when the process ends.
/// @param make open the GPU if that has not been tried yet; it may fail
mover *mover_of_process(bool make)
{
	static mover *one;
	static pid_t owner;
	std::lock_guard guard(opening);

	if (owner == ::getpid())
		return one;
	if (!make)
		return nullptr;
	owner = ::getpid();
	one = nullptr;
	auto opened = mover::open(text_of(preload::gpu));
	if (opened)
		start_keeping(one = opened->release());
	else
		say(std::format("memory stays where it is: {}",
				opened.error().message()));
	return one;
}

size_t least()
{
	static const size_t bytes =
		std::strtoull(text_of(preload::min).c_str(), nullptr, 0);

	return std::max<size_t>(bytes, 1);
}

bool concerns_us(size_t length, unsigned access)
{
	return access & IBV_ACCESS_ON_DEMAND && length >= least() &&
	       length != SIZE_MAX && !text_of(preload::gpu).empty();
}

/// Registers memory by @p real, after moving it.
template <class Register>
ibv_mr *with_memory_moved(void *at, size_t length, unsigned access, Register real)
{
	if (!concerns_us(length, access))
		return real();
	pages what = pages_of(at, length);
	if (!is_anonymous(what)) {
		say(std::format("{} bytes stay where they are: some are of a file, or "
				"shared",
				length));
		return real();
	}
	mover *to = mover_of_process(true);
	if (!to)
		return real();
	if (auto room = to->find_room(what); !room) {
		say(std::format("{} bytes stay where they are: {}", length,
				room.error().message()));
		return real();
	}
	if (auto moved = to->move(what); !moved)
		say(std::format("{} bytes stay where they are: {}", length,
				moved.error().message()));
	ibv_mr *mr = real();
	if (mr)
		to->begin(mr, what);
	return mr;
}

/// The function that the program would have called.
template <class F>
F *real(const char *name)
{
	return reinterpret_cast<F *>(::dlsym(RTLD_NEXT, name));
}

[[gnu::destructor]] void tell()
{
	if (!text_of(preload::report).empty())
		if (mover *one = mover_of_process(false))
			say(one->report());
}

} // namespace

extern "C" {

ibv_mr *ibv_reg_mr(ibv_pd *pd, void *at, size_t length, int access)
{
	static auto *const next = real<decltype(ibv_reg_mr)>("ibv_reg_mr");

	return with_memory_moved(at, length, static_cast<unsigned>(access),
				 [=] { return next(pd, at, length, access); });
}

ibv_mr *ibv_reg_mr_iova(ibv_pd *pd, void *at, size_t length, uint64_t iova, int access)
{
	static auto *const next = real<decltype(ibv_reg_mr_iova)>("ibv_reg_mr_iova");

	return with_memory_moved(at, length, static_cast<unsigned>(access),
				 [=] { return next(pd, at, length, iova, access); });
}

ibv_mr *ibv_reg_mr_iova2(ibv_pd *pd, void *at, size_t length, uint64_t iova,
			 unsigned access)
{
	static auto *const next = real<decltype(ibv_reg_mr_iova2)>("ibv_reg_mr_iova2");

	return with_memory_moved(at, length, access,
				 [=] { return next(pd, at, length, iova, access); });
}

// The registered memory is about to be used.
int ibv_modify_qp(ibv_qp *qp, ibv_qp_attr *attributes, int mask)
{
	static auto *const next = real<decltype(ibv_modify_qp)>("ibv_modify_qp");
	mover *one = mover_of_process(false);

	if (one && mask & IBV_QP_STATE && attributes->qp_state == IBV_QPS_RTR)
		one->move_again();
	return next(qp, attributes, mask);
}

int ibv_dereg_mr(ibv_mr *mr)
{
	static auto *const next = real<decltype(ibv_dereg_mr)>("ibv_dereg_mr");

	mover *one = mover_of_process(false);
	auto what = one ? one->end(mr) : std::nullopt;
	int failed = next(mr);

	if (what && failed)
		one->begin(mr, *what);
	else if (what)
		one->ended(*what);
	return failed;
}

} // extern "C"
