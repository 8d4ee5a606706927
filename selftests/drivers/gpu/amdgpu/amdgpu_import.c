// SPDX-License-Identifier: GPL-2.0
/*
 * Buffers of one GPU that two files of another GPU have imported. A buffer
 * moves between video and system memory: the driver locks the VM of each file
 * to clear its page tables, with the ticket of the job that wants the buffer
 * moved, and skips the VMs whose lock it is refused. A kernel with
 * CONFIG_DEBUG_WW_MUTEX_SLOWPATH refuses some locks, depending on the number of
 * the ticket; on other kernels only the data are checked. Jobs that name a
 * buffer wait for those of the other GPU, or not, depending on its flags.
 */
#include "../../../kselftest_harness.h"
#include "amdgpu_import.h"

#define SIZE	(256UL * 1024)

/* A file of another GPU that has imported the buffer. */
struct importer {
	struct gpu gpu;
	struct buffer ib, shared, out;
};

FIXTURE(import) {
	char gpus[MAX_GPUS][32];
	struct gpu gpu;
	struct buffer ib, shared;
	struct importer importer[2];
	int kmsg;
};

FIXTURE_SETUP(import)
{
	struct gpu *gpu = &self->gpu;

	if (find_gpus(self->gpus) < 2)
		SKIP(return, "needs two GPUs");
	if (gpu_linked(self->gpus[0]))
		SKIP(return, "XGMI links the GPUs: such a buffer stays where it is");
	self->kmsg = kmsg_open();
	ASSERT_EQ(0, open_gpu(gpu, self->gpus[0]));
	if (is_apu(gpu))
		SKIP(return, "the first GPU is an APU");
	ASSERT_EQ(0, new_mapped_buffer(gpu, &self->ib, 4096,
				       AMDGPU_GEM_DOMAIN_GTT));
	ASSERT_EQ(0, new_mapped_buffer(gpu, &self->shared, SIZE,
				       AMDGPU_GEM_DOMAIN_VRAM));
	for (int i = 0; i < 2; i++) {
		struct importer *to = &self->importer[i];

		ASSERT_EQ(0, open_gpu(&to->gpu, self->gpus[1]));
		ASSERT_EQ(0, new_mapped_buffer(&to->gpu, &to->ib, 4096,
					       AMDGPU_GEM_DOMAIN_GTT));
		ASSERT_EQ(0, new_mapped_buffer(&to->gpu, &to->out, SIZE,
					       AMDGPU_GEM_DOMAIN_GTT));
		ASSERT_EQ(0, import(gpu, &self->shared, &to->gpu, &to->shared));
	}
}

FIXTURE_TEARDOWN(import)
{
	if (self->kmsg >= 0)
		EXPECT_EQ(0, kmsg_complaints(self->kmsg));
}

static int move(FIXTURE_DATA(import) *self, uint64_t domain, int tickets)
{
	int ret = 0;

	/* each takes a ticket, so the number of the job's ticket varies */
	while (!ret && tickets--)
		ret = wants_in(&self->gpu, &self->shared, domain);
	return ret ? ret : move_buffer(&self->gpu, &self->ib, &self->shared,
				       domain);
}

/* Have the other GPU copy the buffer, wherever it is now. */
static int read_there(struct importer *to)
{
	struct buffer *all[] = { &to->ib, &to->shared, &to->out };
	const uint32_t packet[8] = {
		1, SIZE - 1, 0, LO(to->shared.va), HI(to->shared.va),
		LO(to->out.va), HI(to->out.va),
	};

	memcpy(to->ib.cpu, packet, sizeof(packet));
	return run(&to->gpu, all, 3);
}

TEST_F_TIMEOUT(import, moves_under_two_importers, 120)
{
	const int rounds = 100;
	uint64_t before = bytes_moved(&self->gpu);
	uint32_t *words = self->shared.cpu;

	for (int round = 0; round < rounds; round++) {
		for (size_t i = 0; i < SIZE / 4; i++)
			words[i] = (uint32_t)(i * 2654435761U) + round;
		ASSERT_EQ(0, move(self, round % 2 ? AMDGPU_GEM_DOMAIN_VRAM :
						    AMDGPU_GEM_DOMAIN_GTT,
				  round % 16));
		for (int i = 0; i < 2; i++) {
			struct importer *to = &self->importer[i];

			ASSERT_EQ(0, read_there(to));
			ASSERT_EQ(0, memcmp(words, to->out.cpu, SIZE));
		}
	}
	EXPECT_LE(rounds / 2 * SIZE, bytes_moved(&self->gpu) - before);
}

static int new_shared(struct gpu *gpu, struct buffer *b, uint64_t flags)
{
	int ret = new_buffer_with(gpu, b, SIZE, AMDGPU_GEM_DOMAIN_GTT, flags);

	return ret ? ret : map_gpu(gpu, b);
}

/*
 * A job of the first GPU that names the buffer waits for a word. Returns 1 if a
 * job of the other GPU that names it is still busy after @seconds, or 0 if that
 * job has ended while the first one waited.
 */
static int busy_meanwhile(FIXTURE_DATA(import) *self, struct buffer *shared,
			  struct buffer *theirs, double seconds)
{
	struct importer *to = &self->importer[0];
	struct buffer *mine[] = { &self->ib, shared };
	struct buffer *others[] = { &to->ib, theirs };
	uint32_t *word = self->ib.cpu + 2048;
	uint64_t held, fence;
	int busy, ret;

	ret = submit_endless(&self->gpu, mine, 2, &held);
	if (ret)
		return ret;
	memset(to->ib.cpu, 0, 32);
	ret = submit(&to->gpu, others, 2, 8, &fence);
	if (ret)
		return ret;
	busy = wait_fence(&to->gpu, fence, seconds);
	/* It may have ended because the first job was given up. */
	ret = wait_fence(&self->gpu, held, 0) == 1 ? 0 : -ESTALE;
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
	if (!ret)
		ret = wait_fence(&self->gpu, held, 30);
	if (!ret)
		ret = wait_fence(&to->gpu, fence, 30);
	return ret ? ret : busy;
}

TEST_F(import, explicit_sync_stays)
{
	struct importer *to = &self->importer[0];
	struct buffer mine, theirs;

	ASSERT_EQ(0, new_shared(&self->gpu, &mine, 0));
	ASSERT_EQ(0, import(&self->gpu, &mine, &to->gpu, &theirs));
	EXPECT_EQ(1, busy_meanwhile(self, &mine, &theirs, 1));

	ASSERT_EQ(0, new_shared(&self->gpu, &mine,
				AMDGPU_GEM_CREATE_EXPLICIT_SYNC));
	ASSERT_EQ(0, import(&self->gpu, &mine, &to->gpu, &theirs));
	EXPECT_EQ(0, busy_meanwhile(self, &mine, &theirs, 30));
}

TEST_HARNESS_MAIN
