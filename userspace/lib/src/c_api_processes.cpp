// SPDX-License-Identifier: MIT
// The C API: processes of one host with a GPU each.
#include "c_api_group.hpp"

using namespace sluice;
using namespace sluice::c;

static_assert(processes::most == SLUICE_MAX_RANKS);

int sluice_processes_meet(sluice_context *in, const char *path, uint32_t rank,
			  uint32_t ranks, int64_t patience_ns, sluice_processes **to)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(all_given("context path processes", in, path, to));
		SLUICE_TRY(auto patience,
			   duration_of(patience_ns, std::chrono::seconds(30),
				       "patience_ns"));
		SLUICE_TRY(auto met,
			   processes::meet(in->it->it, path, rank, ranks, patience));
		hand_out(to, std::make_shared<sluice_processes::inside>(
				     in->it, std::move(met)));
		return {};
	});
}

uint32_t sluice_processes_rank(const sluice_processes *of)
{
	return of ? of->it->it.rank() : 0;
}

uint32_t sluice_processes_ranks(const sluice_processes *of)
{
	return of ? of->it->it.ranks() : 0;
}

int sluice_processes_exchange(sluice_processes *with, sluice_device *gpu,
			      const sluice_buffer *mine, sluice_buffer **all)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(
			all_given("processes device mine all", with, gpu, mine, all));
		SLUICE_TRY(auto memory, with->it->it.exchange(gpu->it->it, mine->it));
		std::vector<std::unique_ptr<sluice_buffer>> handles;

		for (buffer &one : memory)
			handles.push_back(
				std::make_unique<sluice_buffer>(std::move(one)));
		for (auto &one : handles)
			*all++ = one.release();
		return {};
	});
}

int sluice_processes_barrier(sluice_processes *with)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(given(with, "processes"));
		return with->it->it.barrier();
	});
}

void sluice_processes_free(sluice_processes *of)
{
	delete of;
}
