// SPDX-License-Identifier: MIT
// hmm_walk: the cost of hmm_range_fault() per page of ordinary anonymous memory.
// Uses the kernel's own test driver (test_hmm, /dev/hmm_dmirror0), so it runs
// on a kernel with or without the series. Boot with -icount shift=0: guest
// nanoseconds are then executed instructions, and repeat from run to run.
//
// Prints one line per case: name, n, median, minimum and maximum per page.

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <linux/types.h>

#include "test_hmm_uapi.h"

namespace {

constexpr std::size_t page_size = 4096;
constexpr std::size_t huge_size = 2u << 20;
constexpr std::size_t bytes = 32 * huge_size;
constexpr int rounds = 21;

[[noreturn]] void fail(const char *what)
{
	std::fprintf(stderr, "hmm_walk: %s: %s\n", what, std::strerror(errno));
	std::exit(1);
}

// Anonymous memory, touched, aligned to the huge page size.
unsigned char *memory(int advice)
{
	void *raw = mmap(nullptr, bytes + huge_size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (raw == MAP_FAILED)
		fail("mmap");
	auto start = (reinterpret_cast<std::uintptr_t>(raw) + huge_size - 1) &
		     ~(huge_size - 1);
	auto *base = reinterpret_cast<unsigned char *>(start);
	if (madvise(base, bytes, advice))
		fail("madvise");
	std::memset(base, 1, bytes);
	return base;
}

double snapshot_ns_per_page(int fd, unsigned char *base,
			    std::vector<unsigned char> &perm)
{
	hmm_dmirror_cmd cmd{};
	cmd.addr = reinterpret_cast<std::uintptr_t>(base);
	cmd.ptr = reinterpret_cast<std::uintptr_t>(perm.data());
	cmd.npages = bytes / page_size;
	auto before = std::chrono::steady_clock::now();
	if (ioctl(fd, HMM_DMIRROR_SNAPSHOT, &cmd))
		fail("HMM_DMIRROR_SNAPSHOT");
	auto after = std::chrono::steady_clock::now();
	if (cmd.cpages != cmd.npages)
		fail("HMM_DMIRROR_SNAPSHOT stopped early");
	return std::chrono::duration<double, std::nano>(after - before).count() /
	       static_cast<double>(cmd.npages);
}

void run(int fd, const char *name, int advice)
{
	unsigned char *base = memory(advice);
	std::vector<unsigned char> perm(bytes / page_size);
	std::vector<double> cost;

	snapshot_ns_per_page(fd, base, perm); // warm up
	for (int i = 0; i < rounds; i++)
		cost.push_back(snapshot_ns_per_page(fd, base, perm));
	std::sort(cost.begin(), cost.end());
	std::printf("%s n=%d median=%.2f min=%.2f max=%.2f\n", name, rounds,
		    cost[rounds / 2], cost.front(), cost.back());
	munmap(base, bytes);
}

} // namespace

int main()
{
	int fd = open("/dev/hmm_dmirror0", O_RDWR);
	if (fd < 0)
		fail("/dev/hmm_dmirror0 (modprobe test_hmm)");
	run(fd, "pte", MADV_NOHUGEPAGE);
	run(fd, "pmd", MADV_HUGEPAGE);
	close(fd);
}
