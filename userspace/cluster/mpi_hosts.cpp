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
	return fail(errc::system, "MPI", text);
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
	/// Messages of its own, whatever else the program does by MPI.
	mpi_transport()
	{
		MPI_Comm_dup(MPI_COMM_WORLD, &all_);
		MPI_Comm_rank(all_, &host_);
		MPI_Comm_size(all_, &hosts_);
		MPI_Comm_set_errhandler(all_, MPI_ERRORS_RETURN);
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
				       static_cast<int>(root), all_));
	}

private:
	int before(int steps) const { return (host_ + hosts_ - steps) % hosts_; }
	/// The part that came @p step steps ago; the own one at first.
	result<void> pass_on(const slice &all, int count, int step)
	{
		auto part = [&](int host) {
			return all.data() + ptrdiff_t{host} * count;
		};

		return check(MPI_Sendrecv(part(before(step)), count, MPI_BYTE,
					  (host_ + 1) % hosts_, 0,
					  part(before(step + 1)), count, MPI_BYTE,
					  before(1), 0, all_, MPI_STATUS_IGNORE));
	}

	MPI_Comm all_;
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

/// What a rank has in one of two turns.
struct content {
	unsigned rank, turn;

	/// Byte @p i, of a word for each place of 16 MiB that is no other's, and not 0.
	std::byte at(size_t i) const
	{
		const uint32_t word = (2 * rank + turn + 1) << 22 | (i / 4 & 0x3fffff);

		return static_cast<std::byte>(word >> i % 4 * 8 & 0xff);
	}
};

void fill(const slice &memory, content with)
{
	for (size_t i = 0; i < memory.size(); i++)
		memory.data()[i] = with.at(i);
}

bool differs(const slice &memory, content from)
{
	for (size_t i = 0; i < memory.size(); i++)
		if (memory.data()[i] != from.at(i))
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
		fill(from[r], {first + r, 0});
	}
	or_exit(j.leader().prefetch(j.memory[0]));
	auto what = or_exit(gathers ? all.all_gather(j.memory, from)
				    : all.broadcast(last, j.memory));
	// To give it to another GPU begins a migration to where it is, which counts.
	const long before = j.migrations();
	or_exit(what.run());
	// All but the leader's is new: the CPU would have that leave its GPU.
	for (unsigned r = 1; r < j.ranks(); r++)
		fill(from[r], {first + r, 1});
	or_exit(what.run());
	const long migrations = j.migrations() - before, left = j.left();
	for (const slice &one : j.memory)
		for (unsigned part = 0; part < (gathers ? all.ranks() : 1); part++) {
			const unsigned r = gathers ? part : last;

			wrong |= differs(one.part(part * block, block),
					 {r, r % j.ranks() ? 1u : 0u});
		}
	std::printf("%s %zu host=%u gpus=%u migrations=%ld left=%ld wrong=%d\n",
		    gathers ? "all_gather" : "broadcast", block, over.host(), j.ranks(),
		    migrations, left, wrong);
	std::fflush(stdout);
}

} // namespace

// The GPUs first, as open_gpu() in svm_buffers.h.
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
