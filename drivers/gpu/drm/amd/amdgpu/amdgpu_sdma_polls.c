// SPDX-License-Identifier: MIT
/*
 * Time in polls. POLL_REGMEM does not know time: it reads a word a number of
 * times, with a number of the engine's clocks in between. A wait lasts as long
 * as user space asked for at the fastest clock, and longer at a slower one.
 */

#include <kunit/visibility.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/overflow.h>

#include "amdgpu.h"
#include "amdgpu_sdma_plan.h"

/* From one read to the next, in ns at 1 MHz. */
#define POLL_NS_MHZ	(AMDGPU_SDMA_POLL_CLOCKS * 1000U)

/**
 * amdgpu_sdma_wait_polls - how often a wait reads its word
 * @mhz: fastest clock that the engine may have
 * @timeout_ns: how long it waits at least
 *
 * Returns: number of reads, or U32_MAX if there are more than that.
 */
u32 amdgpu_sdma_wait_polls(u32 mhz, u64 timeout_ns)
{
	u64 clocks;

	if (check_mul_overflow(timeout_ns, (u64)mhz, &clocks))
		return U32_MAX;
	if (!clocks)
		return 1;
	/* No time follows the last read. */
	return min_t(u64, div_u64(clocks - 1, POLL_NS_MHZ) + 2, U32_MAX);
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_wait_polls);

/**
 * amdgpu_sdma_polls_ns - how long polls last
 * @mhz: clock of the engine, not 0
 * @polls: number of polls, each with the time after it
 *
 * Returns: ns, rounded up, without the time of the reads themselves.
 */
u64 amdgpu_sdma_polls_ns(u32 mhz, u32 polls)
{
	return DIV_ROUND_UP_ULL((u64)polls * POLL_NS_MHZ, mhz);
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_polls_ns);

/**
 * amdgpu_sdma_longest_wait - longest timeout that is bounded at any clock
 * @low_mhz: slowest clock that the engine may have
 * @high_mhz: fastest clock that it may have, not 0
 * @bound_ns: what the waits of a batch may last
 *
 * Returns: the longest timeout whose polls, counted at the fastest clock, last
 * no more than @bound_ns at the slowest and fit in one packet; 0 if there is
 * none.
 */
u64 amdgpu_sdma_longest_wait(u32 low_mhz, u32 high_mhz, u64 bound_ns)
{
	u64 clocks, polls = AMDGPU_SDMA_MAX_POLLS;

	if (!check_mul_overflow(bound_ns, (u64)low_mhz, &clocks))
		polls = min(polls, div_u64(clocks, POLL_NS_MHZ));
	return polls ? div_u64((polls - 1) * POLL_NS_MHZ, high_mhz) : 0;
}
EXPORT_SYMBOL_IF_KUNIT(amdgpu_sdma_longest_wait);
