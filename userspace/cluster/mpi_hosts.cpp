// SPDX-License-Identifier: GPL-2.0
/*
 * mpi-hosts BYTES ...: collectives over all GPUs of all hosts, with one MPI rank per host.
 * SDMA engines move data inside a host, and MPI between the leaders' memory, which is
 * shared memory in their GPUs. BYTES is the size of a block of one GPU for another. Prints
 * one line per operation, size and host, which the caller judges:
 *
 *   all_gather 8192 host=0 gpus=2 migrations=0 left=0 wrong=0
 */
#include <algorithm>
#include <array>
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

/// The result of MPI for @p call, with the number of bytes of @p memory.
result<void> counted(const slice &memory, const auto &call)
{
	if (memory.size() > INT_MAX)
		return fail(errc::usage, "MPI",
			    std::format("{} bytes, a message has {} at most",
					memory.size(), INT_MAX));
	return check(call(static_cast<int>(memory.size())));
}

class mpi_transport : public host_transport {
public:
	/// Its messages are separate from other uses of MPI in the program.
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

	// Around the hosts: each part goes from its place to the same place. Some
	// algorithms of MPI_Allgather have the CPU move parts.
	result<void> all_gather(const slice &all) override
	{
		return for_others([&](int step) {
			return pass(all, before(step - 1), after(1), all, before(step),
				    before(1));
		});
	}
	// MPI_Alltoall lets the CPU copy the part that a host has for itself.
	result<void> all_to_all(const slice &to, const slice &from) override
	{
		return for_others([&](int step) {
			return pass(from, after(step), after(step), to, before(step),
				    before(step));
		});
	}
	result<void> broadcast(unsigned root, const slice &memory) override
	{
		return counted(memory, [&](int count) {
			return MPI_Bcast(memory.data(), count, MPI_BYTE,
					 static_cast<int>(root), all_);
		});
	}
	// Some algorithms of MPI_Gather and MPI_Scatter relay parts through own memory.
	result<void> gather(unsigned root, const slice &memory) override
	{
		if (host() != root)
			return send(memory, static_cast<int>(root));
		return for_others([&](int step) {
			return receive(part(memory, before(step)), before(step));
		});
	}
	result<void> scatter(unsigned root, const slice &memory) override
	{
		if (host() != root)
			return receive(memory, static_cast<int>(root));
		return for_others([&](int step) {
			return send(part(memory, after(step)), after(step));
		});
	}

private:
	int before(int steps) const { return (host_ + hosts_ - steps) % hosts_; }
	int after(int steps) const { return (host_ + steps) % hosts_; }
	slice part(const slice &all, int host) const
	{
		const size_t size = all.size() / hosts();

		return all.part(static_cast<size_t>(host) * size, size);
	}
	/// Calls @p what for each distance to another host.
	result<void> for_others(const auto &what) const
	{
		result<void> good;

		for (int step = 1; good && step < hosts_; step++)
			good = what(step);
		return good;
	}
	/// Sends a part to host @p there while receiving another one from host @p by.
	result<void> pass(const slice &from, int sent, int there, const slice &to,
			  int come, int by)
	{
		const slice out = part(from, sent), in = part(to, come);
		return counted(out, [&](int count) {
			return MPI_Sendrecv(out.data(), count, MPI_BYTE, there, 0,
					    in.data(), count, MPI_BYTE, by, 0, all_,
					    MPI_STATUS_IGNORE);
		});
	}
	result<void> send(const slice &memory, int to)
	{
		return counted(memory, [&](int count) {
			return MPI_Send(memory.data(), count, MPI_BYTE, to, 0, all_);
		});
	}
	result<void> receive(const slice &memory, int from)
	{
		return counted(memory, [&](int count) {
			return MPI_Recv(memory.data(), count, MPI_BYTE, from, 0, all_,
					MPI_STATUS_IGNORE);
		});
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

	/// The leader's memory is shared memory.
	void take(size_t bytes)
	{
		memory.clear();
		for (device &gpu : gpus)
			memory.push_back(or_exit(memory.empty() ? gpu.svm(bytes, false)
								: gpu.vram(bytes)));
	}
	/// Pages of the leader's memory that are not in its GPU.
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

/// The content of a rank's memory in one of two turns.
struct content {
	unsigned rank, turn;

	/// Byte @p i of words that are unique for each place in 16 MiB, and not 0.
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

/// Whether it differs from the content of @p from at @p begin.
bool differs(const slice &memory, content from, size_t begin)
{
	for (size_t i = 0; i < memory.size(); i++)
		if (memory.data()[i] != from.at(begin + i))
			return true;
	return false;
}

/// The memory of an operation.
struct places {
	std::vector<slice> to, from; ///< of the ranks of this host
	unsigned root;		     ///< of all ranks
	slice staging;
	size_t relayed; ///< bytes of it that a gather or scatter needs here

	const slice &of_root(const std::vector<slice> &all) const
	{
		return all[root % all.size()];
	}
	slice relay() const { return staging.part(0, relayed); }
};

enum class pattern { all_gather, all_to_all, broadcast, gather, scatter };

struct operation_kind {
	pattern what;
	const char *name;
	bool gathers; ///< a block of each rank arrives, not only the root's
	bool deals;   ///< each rank gets a block that no other rank gets
	bool to_root; ///< only the root gets anything
};

constexpr std::array operations = {
	operation_kind{pattern::all_gather, "all_gather", true, false, false},
	operation_kind{pattern::all_to_all, "all_to_all", true, true, false},
	operation_kind{pattern::broadcast, "broadcast", false, false, false},
	operation_kind{pattern::gather, "gather", true, false, true},
	operation_kind{pattern::scatter, "scatter", false, true, false},
};

result<host_collective> prepared(host_group &all, pattern what, const places &p)
{
	switch (what) {
	case pattern::all_gather: return all.all_gather(p.to, p.from);
	case pattern::all_to_all: return all.all_to_all(p.to, p.from, p.staging);
	case pattern::broadcast: return all.broadcast(p.root, p.to);
	case pattern::gather:
		return all.gather(p.root, p.of_root(p.to), p.from, p.relay());
	case pattern::scatter: break;
	}
	return all.scatter(p.root, p.to, p.of_root(p.from), p.relay());
}

/// One operation, with blocks of one size.
class trial {
public:
	trial(job &j, host_group &all, const operation_kind &what, size_t block)
		: job_(j), all_(all), what_(what), block_(block)
	{
		const size_t whole = all.ranks() * block, own = j.ranks() * block;

		j.take(2 * whole + 2 * j.ranks() * whole);
		for (unsigned r = 0; r < j.ranks(); r++) {
			p_.to.push_back(
				j.memory[r].part(0, what.gathers ? whole : block));
			p_.from.push_back(source(r));
		}
		p_.root = all.ranks() - 1;
		p_.staging = j.memory[0].part(2 * whole, 2 * j.ranks() * whole);
		p_.relayed = p_.root / j.ranks() == all.first_rank() / j.ranks() ? whole
										 : own;
	}

	result<host_collective> prepare() { return prepared(all_, what_.what, p_); }
	/// Fill the sources of the ranks of this host, from @p first on.
	void fill_from(unsigned first, unsigned turn) const
	{
		for (unsigned r = first; r < job_.ranks(); r++)
			if (what_.gathers || rank(r) == p_.root)
				fill(p_.from[r], {rank(r), turn});
	}
	/// Whether a block is not what leaders had in the first turn, others in the second.
	bool wrong() const
	{
		bool is = false;

		for (unsigned r = 0; r < job_.ranks(); r++)
			for (unsigned n = 0; n < p_.to[r].size() / block_; n++)
				is |= gets(r) && wrong_block(r, n);
		return is;
	}

private:
	unsigned rank(unsigned r) const { return all_.first_rank() + r; }
	bool gets(unsigned r) const { return !what_.to_root || rank(r) == p_.root; }
	/// In place, if all ranks may be in place.
	slice source(unsigned r) const
	{
		const size_t whole = all_.ranks() * block_;

		if (what_.deals || what_.to_root)
			return job_.memory[r].part(whole, what_.deals ? whole : block_);
		return what_.gathers ? p_.to[r].part(rank(r) * block_, block_)
				     : p_.to[r];
	}
	bool wrong_block(unsigned r, unsigned n) const
	{
		const unsigned by = what_.gathers ? n : p_.root;

		return differs(p_.to[r].part(n * block_, block_),
			       {by, by % job_.ranks() ? 1u : 0u},
			       what_.deals ? rank(r) * block_ : 0);
	}

	job &job_;
	host_group &all_;
	const operation_kind &what_;
	size_t block_;
	places p_;
};

void run(job &j, host_group &all, unsigned host, const operation_kind &what,
	 size_t block)
{
	trial one(j, all, what, block);

	one.fill_from(0, 0);
	or_exit(j.leader().prefetch(j.memory[0]));
	auto collective = or_exit(one.prepare());
	// Attaching it to another GPU starts a migration to where it is, which counts.
	const long before = j.migrations();
	or_exit(collective.run());
	// Refill all but the leader's: the CPU would make that leave its GPU.
	one.fill_from(1, 1);
	or_exit(collective.run());
	const long migrations = j.migrations() - before, left = j.left();
	std::printf("%s %zu host=%u gpus=%u migrations=%ld left=%ld wrong=%d\n",
		    what.name, block, host, j.ranks(), migrations, left, one.wrong());
	std::fflush(stdout);
}

} // namespace

// Open the GPUs first, as for open_gpu() in svm_buffers.h.
int main(int argc, char **argv)
{
	job j;

	MPI_Init(&argc, &argv);
	mpi_transport over;
	auto local = or_exit(group::make(j.ring, j.gpus));
	auto all = or_exit(host_group::make(local, over));
	for (int n = 1; n < argc; n++)
		for (const operation_kind &what : operations)
			run(j, all, over.host(), what,
			    std::strtoul(argv[n], nullptr, 0));
	MPI_Finalize();
	return 0;
}
