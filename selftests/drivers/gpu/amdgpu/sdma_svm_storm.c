// SPDX-License-Identifier: GPL-2.0
/*
 * SDMA batches on SVM memory while other threads move, protect, discard, swap
 * out and replace it, take its video memory, or reset the GPU: a batch finds
 * all of the memory as it is at one moment, or fails. Nothing waits forever.
 */
#include <pthread.h>
#include <sys/wait.h>

#include "../../../rdma/loop_swap.h"
#include "sdma_evict.h"
#include "sdma_mover.h"
#include "sdma_svm_test.h"

#define STORM_BLOCK	(256 * KIB)
#define BLOCKS		(SIZE / STORM_BLOCK)
#define COPY_VA		(VRAM_VA + 64 * MIB)

/* Contents of a block after a batch that was cut short: unknown. */
#define UNKNOWN		0xffffffffu

struct storm {
	struct _test_data_svm *self;
	pthread_t thread;	/* changes the memory */
	pthread_t other;	/* changes the GPU */
	int (*strike)(struct storm *s);
	struct buffer copy;	/* of a block; in system memory, never lost */
	uint32_t last[BLOCKS];	/* what was written there */
	struct loop_swap swap;
	unsigned int seed;
	unsigned int batches;	/* that have done their work */
	unsigned int changes;
	unsigned int strikes;
	int error;		/* of a strike */
	bool stop;
};

/* Reading memory that a reset has lost raises SIGBUS in that thread. */
static __thread sigjmp_buf storm_lost;
static __thread volatile bool storm_looks;

static void on_sigbus(int sig)
{
	if (storm_looks)
		siglongjmp(storm_lost, 1);
}

/* Reads the first word of a page; false if the page is lost. */
static bool look(const void *at, uint32_t *word)
{
	bool there = false;

	storm_looks = true;
	if (!sigsetjmp(storm_lost, 1)) {
		*word = *(const volatile uint32_t *)at;
		there = true;
	}
	storm_looks = false;
	return there;
}

static void replace(struct _test_data_svm *self, uint8_t *at)
{
	mmap(at, STORM_BLOCK, PROT_READ | PROT_WRITE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	svm_access(&self->svm, at, STORM_BLOCK, &self->svm.gpu[0]);
}

static void change_once(struct storm *s)
{
	struct _test_data_svm *self = s->self;
	uint8_t *at = self->at + next_random(&s->seed) % BLOCKS * STORM_BLOCK;
	uint32_t word;
	pid_t child;

	switch (next_random(&s->seed) % 7) {
	case 0:
		svm_prefetch(&self->svm, at, STORM_BLOCK, &self->svm.gpu[0]);
		break;
	case 1:
		look(at, &word);
		break;
	case 2:
		mprotect(at, STORM_BLOCK, PROT_READ);
		mprotect(at, STORM_BLOCK, PROT_READ | PROT_WRITE);
		break;
	case 3:
		child = fork();
		if (!child)
			_exit(0);
		waitpid(child, NULL, 0);
		break;
	case 4:
		madvise(at, STORM_BLOCK, MADV_DONTNEED);
		break;
	case 5:
		madvise(at, STORM_BLOCK, MADV_PAGEOUT);
		break;
	default:
		replace(self, at);
	}
	s->changes++;
}

static void *change(void *arg)
{
	struct storm *s = arg;

	while (!__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE))
		change_once(s);
	return NULL;
}

static void *strike(void *arg)
{
	struct storm *s = arg;

	while (!s->error && !__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE)) {
		s->error = s->strike(s);
		__atomic_add_fetch(&s->strikes, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static unsigned int strikes(struct storm *s)
{
	return __atomic_load_n(&s->strikes, __ATOMIC_ACQUIRE);
}

static int storm_begin(struct storm *s)
{
	struct _test_data_svm *self = s->self;
	int ret = buffer_map(&self->gpu, &s->copy, STORM_BLOCK,
			     AMDGPU_GEM_DOMAIN_GTT, COPY_VA);

	signal(SIGBUS, on_sigbus);
	s->seed = 7;
	if (loop_swap_open(&s->swap))
		ksft_print_msg("no swap: it takes root, and the loop module\n");
	if (!ret)
		ret = -pthread_create(&s->thread, NULL, change, s);
	if (!ret && s->strike)
		ret = -pthread_create(&s->other, NULL, strike, s);
	return ret;
}

static void storm_end(struct storm *s)
{
	__atomic_store_n(&s->stop, true, __ATOMIC_RELEASE);
	pthread_join(s->thread, NULL);
	if (s->strike)
		pthread_join(s->other, NULL);
	loop_swap_close(&s->swap);
}

static bool is_filled(const uint8_t *at, size_t size, uint32_t value)
{
	const uint32_t *p = (const void *)at;
	size_t i;

	for (i = 0; i < size / 4; i++)
		if (p[i] != value)
			return false;
	return true;
}

/*
 * Each page has what was written last, or was discarded or lost since. Returns
 * the offset of the first wrong page, or the size of the block.
 */
static size_t find_wrong_page(const uint8_t *at, uint32_t value)
{
	uint32_t word;
	size_t i;

	for (i = 0; i < STORM_BLOCK; i += PAGE)
		if (look(at + i, &word) && ((word != value && word) ||
					    !is_filled(at + i, PAGE, word)))
			break;
	return i;
}

/* Nothing of a refused batch has run. */
static bool is_refused(int ret)
{
	return ret == -ENXIO || ret == -EFAULT || ret == -ENOENT ||
	       ret == -EACCES;
}

/* A reset has lost memory or batches. */
static bool is_lost(int ret)
{
	return ret == -EIO || ret == -ECANCELED || ret == -ETIME;
}

/* Writes a block and reads it, in one batch. */
static int write_and_read(struct storm *s, unsigned int i, uint32_t value)
{
	const uint64_t at = va(s->self->at + i * STORM_BLOCK);
	const struct drm_amdgpu_sdma_desc d[] = {
		faulting(fill_desc(at, STORM_BLOCK, value)),
		behind(faulting(copy_desc(at, COPY_VA, STORM_BLOCK))),
	};

	return run_descs(s->self, d, 2, NULL);
}

static void storm_batch(struct __test_metadata *_metadata, struct storm *s,
			uint32_t value, bool resets)
{
	const unsigned int i = next_random(&s->self->seed) % BLOCKS;
	int ret = write_and_read(s, i, value);

	if (ret && resets && is_lost(ret)) {
		s->last[i] = UNKNOWN;
		ASSERT_EQ(0, gpu_context(&s->self->gpu, &s->self->gpu.ctx));
		return;
	}
	ASSERT_TRUE(!ret || is_refused(ret)) TH_LOG("%d", ret);
	if (ret)
		return;
	ASSERT_TRUE(is_filled(s->copy.cpu, STORM_BLOCK, value));
	s->last[i] = value;
	s->batches++;
}

static void storm_check(struct __test_metadata *_metadata, struct storm *s)
{
	unsigned int i;

	for (i = 0; i < BLOCKS; i++) {
		const uint8_t *at = s->self->at + i * STORM_BLOCK;
		size_t wrong;

		if (s->last[i] == UNKNOWN)
			continue;
		wrong = find_wrong_page(at, s->last[i]);
		EXPECT_EQ(STORM_BLOCK, wrong)
			TH_LOG("block %u, round %u: %#zx is %u", i, s->last[i],
			       wrong, *(uint32_t *)(at + wrong));
	}
}

/*
 * Runs batches until there were enough, enough that ended well, and strikes. On
 * a slow machine most batches are lost in one of the resets.
 */
static void storm_run(struct __test_metadata *_metadata, struct storm *s,
		      unsigned int rounds, unsigned int times, bool resets)
{
	unsigned int round;

	ASSERT_EQ(0, storm_begin(s));
	for (round = 1; !s->error && (round <= rounds || strikes(s) < times ||
				      s->batches <= rounds / 4); round++)
		storm_batch(_metadata, s, round, resets);
	storm_end(s);
	storm_check(_metadata, s);
	TH_LOG("%u of %u batches, %u changes, %u strikes", s->batches,
	       round - 1, s->changes, s->strikes);
	EXPECT_EQ(0, s->error);
}

TEST_F_TIMEOUT(svm, storm, 280)
{
	struct storm s = { .self = self };

	storm_run(_metadata, &s, 300, 0, false);
}

/* Fills video memory, and frees it again. */
static int evict_all(struct storm *s)
{
	struct evict e;
	int ret = evict_open(&e);

	evict_close(&e);
	return ret;
}

TEST_F_TIMEOUT(svm, storm_and_evictions, 280)
{
	struct storm s = { .self = self, .strike = evict_all };
	const uint64_t before = gpu_evictions(&self->gpu);

	if (gpu_too_many(&self->gpu, EVICT_SIZE) > EVICT_MOST / 2)
		SKIP(return, "too much video memory");
	storm_run(_metadata, &s, 200, 4, false);
	EXPECT_LT(before, gpu_evictions(&self->gpu));
}

static int reset(struct storm *s)
{
	usleep(1000000);
	return reset_gpu(s->self->gpu.name);
}

TEST_F_TIMEOUT(svm, storm_and_resets, 280)
{
	struct storm s = { .self = self, .strike = reset };

	storm_run(_metadata, &s, 100, 5, true);
}

/* While batches run, one part of a file is mapped in place of another. */
#define ROOM		(255 * PAGE)

struct rooms {
	uint8_t *at;
	int fd;
	uint8_t *view[2];	/* both parts, elsewhere */
};

static void *room_at(void *at, int fd, unsigned int which)
{
	return mmap(at, ROOM, PROT_READ | PROT_WRITE,
		    MAP_SHARED | (at ? MAP_FIXED : 0), fd, which * ROOM);
}

static bool rooms_open(struct rooms *r)
{
	unsigned int i;

	r->fd = memfd_create("room", 0);
	if (r->fd < 0 || ftruncate(r->fd, 2 * ROOM))
		return false;
	for (i = 0; i < 2; i++) {
		r->view[i] = room_at(NULL, r->fd, i);
		if (r->view[i] == MAP_FAILED)
			return false;
		memset(r->view[i], MOVER_NEW, ROOM);
	}
	r->at = svm_map(ROOM);
	return r->at && room_at(r->at, r->fd, 0) == r->at;
}

static int clean_room(struct mover *m)
{
	struct rooms *r = m->data;

	memset(r->view[!(m->moves % 2)], MOVER_NEW, ROOM);
	return 0;
}

static int change_rooms(struct mover *m)
{
	const unsigned int old = m->moves % 2;
	struct rooms *r = m->data;

	if (room_at(r->at, r->fd, !old) != r->at)
		return -errno;
	return mover_check_old(m, r->view[old], ROOM);
}

TEST_F_TIMEOUT(svm, replaced_all_the_time, 280)
{
	struct rooms rooms;
	struct mover m = {
		.gpu = &self->gpu, .prepare = clean_room, .move = change_rooms,
		.data = &rooms, .part = ROOM / MOVER_PARTS,
		.flags = AMDGPU_SDMA_DESC_FAULT, .seed = 3,
	};
	unsigned int round;

	if (!variant->xnack)
		SKIP(return, "new memory is not registered");
	ASSERT_TRUE(rooms_open(&rooms));
	ASSERT_EQ(0, mover_start(&m, va(rooms.at), VRAM_VA));
	for (round = 0; round < 80 && !m.error; round++) {
		ASSERT_EQ(0, mover_copy(&m, va(rooms.at), VRAM_VA));
		ASSERT_TRUE(all_are(self->vram.cpu, ROOM, MOVER_NEW))
			TH_LOG("round %u", round);
		ASSERT_EQ(0, mover_copy(&m, VRAM_VA, va(rooms.at)));
	}
	mover_stop(&m);
	TH_LOG("%u times in batches of %u us", m.moves, m.batch_us);
	EXPECT_EQ(0, m.error);
	EXPECT_LT(10, m.moves);
}

TEST_HARNESS_MAIN
