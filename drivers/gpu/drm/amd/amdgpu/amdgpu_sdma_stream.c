// SPDX-License-Identifier: MIT
/*
 * What holds the packets of an SDMA batch together: indirect buffers, guards,
 * barriers, waits and records.
 *
 * After a wait that gives up, the engine goes on with the next packet. So all
 * packets after a wait have guards: COND_EXE packets that skip what they cover
 * unless the status in the share's slot says that all waits have held. Packets
 * that run only if one gave up, records of what was skipped, are covered by
 * COND_EXE packets that ask for that status instead.
 */

#include <kunit/visibility.h>
#include <linux/align.h>

#include "amdgpu.h"
#include "amdgpu_sdma_stream.h"

static u64 status_addr(const struct amdgpu_sdma_stream *s)
{
	return s->slot + AMDGPU_SDMA_SLOT_STATUS;
}

static void close_guard(struct amdgpu_sdma_stream *s)
{
	if (!s->guard)
		return;
	amdgpu_sdma_put_cond(s->guard, status_addr(s), AMDGPU_SDMA_STATUS_OK,
			     s->p - s->guard - AMDGPU_SDMA_COND_DW);
	s->guard = NULL;
}

void amdgpu_sdma_stream_begin(struct amdgpu_sdma_stream *s)
{
	s->p = s->base;
	s->ib = s->base;
}

/* The engine takes zeros at the end of an aligned IB as NOPs. */
bool amdgpu_sdma_stream_close_ib(struct amdgpu_sdma_stream *s)
{
	u32 length = s->p - s->ib;

	close_guard(s);
	if (s->num_ibs == AMDGPU_SDMA_MAX_IBS ||
	    s->end - s->ib < ALIGN(length, 8))
		return false;
	while (length % 8) {
		*s->p++ = 0;
		length++;
	}
	s->ibs[s->num_ibs].offset = s->ib - s->base;
	s->ibs[s->num_ibs].length = length;
	s->num_ibs++;
	s->ib = s->p;
	return true;
}

/* Room for @dw dwords in one IB. */
static bool make_room(struct amdgpu_sdma_stream *s, u32 dw)
{
	if (s->p - s->ib + dw > AMDGPU_SDMA_MAX_IB_DW &&
	    !amdgpu_sdma_stream_close_ib(s))
		return false;
	return s->end - s->p >= dw;
}

/*
 * Room for packets of @dw dwords in one IB and under one guard. False if there
 * is none: then the bounds of the plan are wrong.
 */
bool amdgpu_sdma_stream_reserve(struct amdgpu_sdma_stream *s, u32 dw)
{
	if (!make_room(s, dw + AMDGPU_SDMA_COND_DW))
		return false;
	if (!s->guarded)
		return true;
	if (s->guard && s->p - s->guard + dw > s->format->max_skip)
		close_guard(s);
	if (!s->guard) {
		s->guard = s->p;
		s->p += AMDGPU_SDMA_COND_DW;
	}
	return true;
}

/* The next @dw dwords run if the status is @status, and have no other guard. */
static bool begin_if(struct amdgpu_sdma_stream *s, u32 status, u32 dw)
{
	close_guard(s);
	if (!make_room(s, AMDGPU_SDMA_COND_DW + dw))
		return false;
	s->p = amdgpu_sdma_put_cond(s->p, status_addr(s), status, dw);
	return true;
}

static void put_status(struct amdgpu_sdma_stream *s, u32 status)
{
	s->p = amdgpu_sdma_put_fence(s->p, s->format, status_addr(s), status);
}

/* Later packets do not begin before all earlier data is in memory. */
void amdgpu_sdma_stream_barrier(struct amdgpu_sdma_stream *s)
{
	u64 addr = s->slot + AMDGPU_SDMA_SLOT_BARRIER;

	s->sequence++;
	s->p = amdgpu_sdma_put_fence(s->p, s->format, addr, s->sequence);
	/*
	 * This is not a user's wait: the engine itself has stored the word, or
	 * will. Giving up would let later packets run too early. If a shader
	 * overwrites the word, the ring's timeout ends the job.
	 */
	s->p = amdgpu_sdma_put_poll(s->p, addr, AMDGPU_SDMA_POLL_EQ,
				    s->sequence, ~0, 0,
				    AMDGPU_SDMA_POLL_FOR_EVER);
}

#define RECORD(record, member) \
	((record) + offsetof(struct drm_amdgpu_sdma_record, member))

static void put_record(struct amdgpu_sdma_stream *s, u64 record, u32 status)
{
	s->p = amdgpu_sdma_put_fence(s->p, s->format, RECORD(record, engine),
				     s->instance);
	s->p = amdgpu_sdma_put_fence(s->p, s->format, RECORD(record, status),
				     status);
}

/*
 * The first fence only waits for the data, so that the time is that of the end.
 * The engine comes after the time, in case that stores more than its 8 bytes.
 */
static void put_end(struct amdgpu_sdma_stream *s, u64 record)
{
	s->p = amdgpu_sdma_put_fence(s->p, s->format, RECORD(record, unused2),
				     0);
	s->p = amdgpu_sdma_put_timestamp(s->p, RECORD(record, end));
}

/* A record of what did not run because an earlier wait gave up. */
static bool record_skipped(struct amdgpu_sdma_stream *s, u64 record)
{
	if (!s->guarded)
		return true;
	if (!begin_if(s, AMDGPU_SDMA_STATUS_TIMEOUT,
		      AMDGPU_SDMA_RECORD_SKIP_DW))
		return false;
	put_record(s, record, AMDGPU_SDMA_RECORD_SKIPPED);
	return true;
}

/* Before what is recorded: stores that an earlier wait gave up, or the time. */
bool amdgpu_sdma_stream_record_begin(struct amdgpu_sdma_stream *s, u64 record)
{
	if (!record_skipped(s, record) ||
	    !amdgpu_sdma_stream_reserve(s, AMDGPU_SDMA_TIMESTAMP_DW))
		return false;
	s->p = amdgpu_sdma_put_timestamp(s->p, RECORD(record, start));
	return true;
}

bool amdgpu_sdma_stream_record_end(struct amdgpu_sdma_stream *s, u64 record)
{
	if (!amdgpu_sdma_stream_reserve(s, AMDGPU_SDMA_RECORD_END_DW))
		return false;
	put_end(s, record);
	put_record(s, record, AMDGPU_SDMA_RECORD_DONE);
	return true;
}

/* After a wait with a record: if it gave up, all is skipped from now on. */
static bool record_failed(struct amdgpu_sdma_stream *s, u64 record)
{
	if (!begin_if(s, AMDGPU_SDMA_STATUS_FAILING,
		      AMDGPU_SDMA_RECORD_FAIL_DW))
		return false;
	put_end(s, record);
	put_record(s, record, AMDGPU_SDMA_RECORD_FAILED);
	put_status(s, AMDGPU_SDMA_STATUS_TIMEOUT);
	amdgpu_sdma_stream_barrier(s);
	return true;
}

/* After all packets of a share, whether a wait gave up or not. */
bool amdgpu_sdma_stream_record_share(struct amdgpu_sdma_stream *s, u64 record)
{
	close_guard(s);
	if (!make_room(s, AMDGPU_SDMA_RECORD_END_DW))
		return false;
	put_end(s, record);
	if (!s->guarded) {
		put_record(s, record, AMDGPU_SDMA_RECORD_DONE);
		return true;
	}
	if (!begin_if(s, AMDGPU_SDMA_STATUS_OK, AMDGPU_SDMA_RECORD_SKIP_DW))
		return false;
	put_record(s, record, AMDGPU_SDMA_RECORD_DONE);
	if (!begin_if(s, AMDGPU_SDMA_STATUS_TIMEOUT,
		      AMDGPU_SDMA_RECORD_SKIP_DW))
		return false;
	put_record(s, record, AMDGPU_SDMA_RECORD_FAILED);
	return true;
}

/*
 * Makes the sample one value if the wait's condition holds and another if not,
 * because COND_EXE tests only equality. The sample is in video memory, because
 * PCIe has none of these atomics. Returns the value that means "holds".
 */
static u32 put_compare(struct amdgpu_sdma_stream *s,
		       const struct drm_amdgpu_sdma_desc *d)
{
	u64 at = s->sample;
	u32 value = lower_32_bits(d->value);

	s->p = amdgpu_sdma_put_atomic(s->p, AMDGPU_SDMA_ATOMIC_AND32, at,
				      d->mask);
	switch (d->compare) {
	case AMDGPU_SDMA_COMPARE_GE:
		s->p = amdgpu_sdma_put_atomic(s->p, AMDGPU_SDMA_ATOMIC_UMIN32,
					      at, value);
		return value;
	case AMDGPU_SDMA_COMPARE_LE:
		s->p = amdgpu_sdma_put_atomic(s->p, AMDGPU_SDMA_ATOMIC_UMAX32,
					      at, value);
		return value;
	case AMDGPU_SDMA_COMPARE_NE:
		s->p = amdgpu_sdma_put_atomic(s->p, AMDGPU_SDMA_ATOMIC_XOR32,
					      at, value);
		s->p = amdgpu_sdma_put_atomic(s->p, AMDGPU_SDMA_ATOMIC_UMIN32,
					      at, 1);
		return 1;
	default:
		return value;
	}
}

static const enum amdgpu_sdma_poll_func poll_func[] = {
	[AMDGPU_SDMA_COMPARE_EQ] = AMDGPU_SDMA_POLL_EQ,
	[AMDGPU_SDMA_COMPARE_NE] = AMDGPU_SDMA_POLL_NE,
	[AMDGPU_SDMA_COMPARE_GE] = AMDGPU_SDMA_POLL_GE,
	[AMDGPU_SDMA_COMPARE_LE] = AMDGPU_SDMA_POLL_LE,
};

/*
 * Store @failed; poll; read once more; store OK if the condition holds.
 */
static bool emit_wait(struct amdgpu_sdma_stream *s,
		      const struct drm_amdgpu_sdma_desc *d, u32 failed)
{
	u32 polls = amdgpu_sdma_wait_polls(s->mhz, d->timeout_ns);
	u64 sample = s->sample;
	u32 holds;

	if (!amdgpu_sdma_stream_reserve(s, AMDGPU_SDMA_WAIT_DW))
		return false;
	put_status(s, failed);
	s->p = amdgpu_sdma_put_poll(s->p, d->src, poll_func[d->compare],
				    lower_32_bits(d->value), d->mask,
				    AMDGPU_SDMA_POLL_CLOCKS, polls);
	s->p = amdgpu_sdma_put_copy(s->p, s->format, d->src, sample, 4);
	amdgpu_sdma_stream_barrier(s);
	holds = put_compare(s, d);
	amdgpu_sdma_stream_barrier(s);
	s->p = amdgpu_sdma_put_cond(s->p, sample, holds, AMDGPU_SDMA_FENCE_DW);
	put_status(s, AMDGPU_SDMA_STATUS_OK);
	/* The next guard reads the status. */
	amdgpu_sdma_stream_barrier(s);
	close_guard(s);
	s->guarded = true;
	return true;
}

/* A wait, and its record if it has one. */
bool amdgpu_sdma_stream_wait(struct amdgpu_sdma_stream *s,
			     const struct drm_amdgpu_sdma_desc *d)
{
	if (!(d->flags & AMDGPU_SDMA_DESC_RECORD))
		return emit_wait(s, d, AMDGPU_SDMA_STATUS_TIMEOUT);
	return amdgpu_sdma_stream_record_begin(s, d->record) &&
	       emit_wait(s, d, AMDGPU_SDMA_STATUS_FAILING) &&
	       amdgpu_sdma_stream_record_end(s, d->record) &&
	       record_failed(s, d->record);
}
