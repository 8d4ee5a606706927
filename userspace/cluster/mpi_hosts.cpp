// SPDX-License-Identifier: GPL-2.0
/*
 * mpi-hosts BYTES ...: collectives of all GPUs of all hosts, by a rank of MPI on each host.
 * SDMA engines move data inside of a host, and MPI between the leaders' memory, which is
 * shared memory in their GPUs. BYTES are a block's, of one GPU. A line for each operation,
 * size and host, which whoever has started it judges:
 *
 *   all_gather 8192 host=0 gpus=2 migrations=0 left=0 wrong=0
 */
#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <format>

#include <mpi.h>

#include "sluice/hosts.hpp"
#include "sluice/or_exit.hpp"

using namespace sluice;

namespace {

result<void> check(int err)
{
	char text[MPI_MAX_ERROR_STRING];
	int size;

	if (err == MPI_SUCCESS)
		return {};
	MPI_Error_string(err, text, &size);
	return fail(errc::peer_lost, "MPI", text);
}

result<int> count_of(size_t bytes)
{
	if (bytes > INT_MAX)
		return fail(errc::usage, "MPI",
			    std::format("{} bytes, a message has {} at most", bytes,
					INT_MAX));
	return static_cast<int>(bytes);
}

class mpi_transport : public host_transport {
public:
	mpi_transport()
	{
		MPI_Comm_rank(MPI_COMM_WORLD, &host_);
		MPI_Comm_size(MPI_COMM_WORLD, &hosts_);
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	}
	unsigned hosts() const noexcept override
	{
		return static_cast<unsigned>(hosts_);
	}
	unsigned host() const noexcept override { return static_cast<unsigned>(host_); }

	// Round the hosts: each part goes from its place to the same place. Some ways of
	// MPI_Allgather have the CPU move parts.
	result<void> all_gather(const slice &all) override
	{
		auto count = count_of(all.size() / hosts());

		if (!count)
			return std::unexpected(count.error());
		for (int step = 0; step < hosts_ - 1; step++)
			if (auto passed = pass_on(all, *count, step); !passed)
				return passed;
		return {};
	}
	result<void> broadcast(unsigned root, const slice &memory) override
	{
		auto count = count_of(memory.size());

		if (!count)
			return std::unexpected(count.error());
		return check(MPI_Bcast(memory.data(), *count, MPI_BYTE,
				       static_cast<int>(root), MPI_COMM_WORLD));
	}

private:
	int before(int steps) const { return (host_ + hosts_ - steps) % hosts_; }
	/// The part that came @p step steps ago; the own one at first.
	result<void> pass_on(const slice &all, int count, int step)
	{
		auto part = [&](int host) {
			return all.data() + ptrdiff_t{host} * count;
		};

		return check(MPI_Sendrecv(
			part(before(step)), count, MPI_BYTE, (host_ + 1) % hosts_, 0,
			part(before(step + 1)), count, MPI_BYTE, before(1), 0,
			MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	}

	int host_, hosts_;
};

/// GPUs of this host, and their memory.
struct job {
	context ring = or_exit(context::open());
	std::vector<device> gpus;
	std::vector<slice> memory;

	job()
	{
		for (const auto &info : list_devices())
			if (gpus.size() < group::most_ranks)
				gpus.push_back(
					or_exit(device::open(ring, info.address)));
	}
	device &leader() { return gpus.front(); }
	unsigned ranks() const { return static_cast<unsigned>(gpus.size()); }

	/// The leader's is shared memory.
	void take(size_t bytes)
	{
		memory.clear();
		for (device &gpu : gpus)
			memory.push_back(or_exit(memory.empty() ? gpu.svm(bytes, false)
								: gpu.vram(bytes)));
	}
	/// Pages of the leader's that are not in its GPU.
	long left() const
	{
		auto nodes = or_exit(memory[0].of().nodes());

		return std::ranges::count_if(nodes, [](int node) { return node >= 0; });
	}
	long migrations()
	{
		auto counted = or_exit(leader().counters());

		return static_cast<long>(counted.migrated_in + counted.migrated_out +
					 counted.lost_events);
	}
};

/// Byte @p i of what @p rank has; 0: nobody.
std::byte mark(unsigned rank, size_t i)
{
	return static_cast<std::byte>((i / 64 + i * 7 + (rank + 1) * 41) & 0xff);
}

void fill(const slice &memory, unsigned rank)
{
	for (size_t i = 0; i < memory.size(); i++)
		memory.data()[i] = mark(rank, i);
}

bool differs(const slice &memory, unsigned rank)
{
	for (size_t i = 0; i < memory.size(); i++)
		if (memory.data()[i] != mark(rank, i))
			return true;
	return false;
}

/// All ranks' blocks, or the one of the last rank.
void run(job &j, host_group &all, const mpi_transport &over, bool gathers, size_t block)
{
	const unsigned first = all.first_rank(), last = all.ranks() - 1;
	std::vector<slice> from;
	bool wrong = false;

	j.take(gathers ? all.ranks() * block : block);
	for (unsigned r = 0; r < j.ranks(); r++) {
		from.push_back(gathers ? j.memory[r].part((first + r) * block, block)
				       : j.memory[r]);
		fill(from[r], first + r);
	}
	or_exit(j.leader().prefetch(j.memory[0]));
	auto what = or_exit(gathers ? all.all_gather(j.memory, from)
				    : all.broadcast(last, j.memory));
	// To give it to another GPU begins a migration to where it is, which counts.
	const long before = j.migrations();
	for (int n = 0; n < 2; n++)
		or_exit(what.run());
	const long migrations = j.migrations() - before, left = j.left();
	for (const slice &one : j.memory)
		for (unsigned r = 0; r < (gathers ? all.ranks() : 1); r++)
			wrong |=
				differs(one.part(r * block, block), gathers ? r : last);
	std::printf("%s %zu host=%u gpus=%u migrations=%ld left=%ld wrong=%d\n",
		    gathers ? "all_gather" : "broadcast", block, over.host(), j.ranks(),
		    migrations, left, wrong);
	std::fflush(stdout);
}

} // namespace

// The GPUs first: with ROCm's module UCX takes the process's part of them for itself.
int main(int argc, char **argv)
{
	job j;

	MPI_Init(&argc, &argv);
	mpi_transport over;
	auto local = or_exit(group::make(j.ring, j.gpus));
	auto all = or_exit(host_group::make(local, over));
	for (int n = 1; n < argc; n++)
		for (bool gathers : {true, false})
			run(j, all, over, gathers, std::strtoul(argv[n], nullptr, 0));
	MPI_Finalize();
	return 0;
}
