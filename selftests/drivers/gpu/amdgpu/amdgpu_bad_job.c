// SPDX-License-Identifier: GPL-2.0
/*
 * Jobs that never end, because no engine understands them or because they wait
 * for memory that is not mapped: the driver resets the GPU, marks only the
 * context that sent the job as guilty, and goes on.
 */
#include "../../../kselftest_harness.h"
#include "amdgpu_test.h"
#include "bystander.h"

#define WORDS		16
#define UNMAPPED	0x7000000000ULL

FIXTURE(bad_job) {
	char gpus[MAX_GPUS][32];
	struct gpu gpu;
	struct buffer ib;
	struct bystander by;
	int kmsg, faults, port;
	long illegal;
};

FIXTURE_VARIANT(bad_job) {
	bool illegal;		/* the engine refuses it */
	bool emulated;		/* what a real one does is undocumented */
	bool faults;
	uint32_t words[WORDS];
};

FIXTURE_VARIANT_ADD(bad_job, unknown_packet) {
	.illegal = true,
	.words = { 0xff },
};

/* A copy packet of which the buffer holds only the first two words */
FIXTURE_VARIANT_ADD(bad_job, packet_cut_off) {
	.illegal = true,
	.emulated = true,
	.words = { [14] = 1, [15] = 4095 },
};

/* A swap at an unaligned address: swaps work on whole lines of 64 bytes */
FIXTURE_VARIANT_ADD(bad_job, swap_unaligned) {
	.illegal = true,
	.emulated = true,
	.words = { 0x901, 63, 0, 0x1000020, 0, 0x1001000, 0 },
};

/* Poll a word that is not mapped until it becomes 1. */
FIXTURE_VARIANT_ADD(bad_job, waits_for_nothing) {
	.faults = true,
	.words = {
		8 | 1U << 31 | 3U << 28, LO(UNMAPPED), HI(UNMAPPED), 1, ~0U,
		0xfffU << 16 | 10,
	},
};

FIXTURE_SETUP(bad_job)
{
	int count = find_gpus(self->gpus);

	self->port = emulator_open();
	if (!count)
		SKIP(return, "no GPU");
	if (variant->emulated && self->port < 0)
		SKIP(return, "for an emulated GPU only");
	self->kmsg = kmsg_open();
	self->faults = kmsg_open();
	if (self->kmsg < 0)
		SKIP(return, "the kernel's log is not readable");
	ASSERT_EQ(0, bystander_start(&self->by, self->gpus[0],
				     count > 1 ? self->gpus[1] : NULL));
	ASSERT_EQ(0, open_gpu(&self->gpu, self->gpus[0]));
	ASSERT_EQ(0, new_mapped_buffer(&self->gpu, &self->ib, 65536,
				       AMDGPU_GEM_DOMAIN_GTT));
	ASSERT_EQ(0, write_word(&self->gpu, &self->ib, 1));
	if (self->port >= 0)
		self->illegal = emulator_count(self->port, "illegal_packets");
}

FIXTURE_TEARDOWN(bad_job)
{
	EXPECT_EQ(0, bystander_end(&self->by));
	EXPECT_EQ(0, kmsg_complaints(self->kmsg));
	close(self->gpu.fd);
	close(self->kmsg);
	close(self->faults);
	if (self->port >= 0)
		close(self->port);
}

static int send_words(FIXTURE_DATA(bad_job) *self, const uint32_t *words,
		      uint64_t *fence)
{
	struct buffer *all[] = { &self->ib };

	memcpy(self->ib.cpu, words, 4 * WORDS);
	return submit(&self->gpu, all, 1, WORDS, fence);
}

TEST_F_TIMEOUT(bad_job, is_charged_alone, 120)
{
	const uint32_t bad = self->gpu.context;
	uint64_t fence;
	long state;

	ASSERT_EQ(0, send_words(self, variant->words, &fence));
	EXPECT_EQ(-ETIME, wait_fence(&self->gpu, fence, 60));
	if (variant->illegal && self->port >= 0)
		EXPECT_EQ(self->illegal + 1,
			  emulator_count(self->port, "illegal_packets"));
	if (variant->faults)
		EXPECT_TRUE(kmsg_comes(self->faults, self->gpus[0],
				       "page fault"));

	/* the context is still refused, a new one of the process works */
	EXPECT_GT(0, write_word(&self->gpu, &self->ib, 2));
	EXPECT_EQ(0, works_again(&self->gpu, &self->ib));
	state = context_state(&self->gpu, bad);
	EXPECT_EQ(AMDGPU_CTX_QUERY2_FLAGS_RESET |
		  AMDGPU_CTX_QUERY2_FLAGS_GUILTY,
		  state & (AMDGPU_CTX_QUERY2_FLAGS_RESET |
			   AMDGPU_CTX_QUERY2_FLAGS_GUILTY));
	/* jobs run again before the driver reports the end of the reset */
	state = context_state(&self->gpu, self->gpu.context);
	EXPECT_EQ(0, state & ~AMDGPU_CTX_QUERY2_FLAGS_RESET_IN_PROGRESS);
}

TEST_HARNESS_MAIN
