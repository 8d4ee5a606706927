// SPDX-License-Identifier: GPL-2.0
/*
 * RDMA writes to the SVM memory of a GPU, and an SDMA batch of that GPU
 * scatters it to two buffers; a batch gathers them, and RDMA takes the data to
 * another GPU. Nothing migrates or is copied twice, unless another thread moves
 * the memory. The buffers' mappings through the BAR tell what has arrived.
 *
 * Makes its own soft RoCE device over lo; RDMA=name selects an existing one.
 */
#include <pthread.h>

#include "../../../kselftest_harness.h"
#include "sdma_svm.h"
#include "svm_rdma.h"

#define DEVICE	"rxe_sdma_svm"
#define BLOCKS	256u
#define LEN	(BLOCKS * SVM_PAGE)
#define BO_VA	(1024 * MIB)
#define BOS	2
#define BO_LEN	(LEN / BOS)
#define GAP	(16 * MIB)	/* between their addresses */

/* A GPU, memory of the process in it, and buffers of its own. */
struct end {
	struct gpu gpu;
	struct kfd kfd;
	struct svm_gpu *in_svm;
	uint8_t *svm;
	struct buffer bo[BOS];
	struct ibv_mr *mr;
	int watch;
	struct svm_alias before;
};

FIXTURE(rdma)
{
	struct svm svm;
	struct link link;
	struct end end[2];
	unsigned int seed;
	bool disturbed;	/* another thread moves the memory */
};

static int end_open(struct _test_data_rdma *self, int i)
{
	struct end *e = &self->end[i];
	int ret = gpu_open(&e->gpu, i);

	if (ret)
		return ret;
	if (!(e->gpu.info.features & AMDGPU_SDMA_FEATURE_SVM))
		return -EOPNOTSUPP;
	e->kfd.fd = self->svm.kfd;
	ret = kfd_acquire(&e->kfd, &e->gpu);
	e->in_svm = &self->svm.gpu[i];
	*e->in_svm = svm_of(&e->kfd, &e->gpu).gpu[0];
	self->svm.nr++;
	return ret;
}

static void randomize_buffers(struct _test_data_rdma *self, struct end *e)
{
	int i;

	for (i = 0; i < BOS; i++)
		randomize(e->bo[i].cpu, BO_LEN, &self->seed);
}

/* Memory of the process in the GPU, registered with the RDMA device. */
static int end_memory(struct _test_data_rdma *self, struct end *e)
{
	int i, ret = 0;

	for (i = 0; i < BOS && !ret; i++)
		ret = buffer_map(&e->gpu, &e->bo[i], BO_LEN,
				 AMDGPU_GEM_DOMAIN_VRAM, BO_VA + i * GAP);
	e->svm = svm_map(LEN);
	if (ret || !e->svm)
		return ret ? ret : -ENOMEM;
	randomize(e->svm, LEN, &self->seed);
	randomize_buffers(self, e);
	e->mr = rcp_reg(&self->link.dev, e->svm, LEN, RCP_ODP);
	ret = svm_prefetch(&self->svm, e->svm, LEN, e->in_svm);
	if (!e->mr || ret || svm_here(&self->svm, e->svm, LEN))
		return ret ? ret : -EXDEV;
	e->before = svm_alias(e->in_svm);
	e->watch = svm_watch(&self->svm, e->in_svm);
	return e->watch < 0 ? e->watch : 0;
}

FIXTURE_SETUP(rdma)
{
	int i;

	self->seed = 1;
	self->svm.kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	self->svm.pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	for (i = 0; i < 2; i++)
		if (end_open(self, i))
			SKIP(return, "no two GPUs with batches on SVM memory");
	if (!svm_alias(self->end[0].in_svm).published ||
	    !svm_alias(self->end[1].in_svm).published)
		SKIP(return, "no alias of device private memory");
	ASSERT_EQ(0, link_open(&self->link, device));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, end_memory(self, &self->end[i]));
}

FIXTURE_TEARDOWN(rdma)
{
	int i;

	for (i = 0; i < 2; i++)
		if (self->end[i].mr)
			ibv_dereg_mr(self->end[i].mr);
	if (self->link.dev.ctx)
		link_close(&self->link);
	svm_close(&self->svm);
}

/* The place of a block of SVM memory in the buffers; 97 is coprime to 256. */
static unsigned int place(unsigned int i)
{
	return i * 97 % BLOCKS;
}

/* Places alternate between the buffers. */
static uint64_t place_va(unsigned int p)
{
	return BO_VA + p % BOS * GAP + p / BOS * SVM_PAGE;
}

static const uint8_t *place_cpu(const struct end *e, unsigned int p)
{
	return e->bo[p % BOS].cpu + p / BOS * SVM_PAGE;
}

static int run_blocks(struct _test_data_rdma *self, struct end *e, bool to_bo)
{
	static struct drm_amdgpu_sdma_desc d[BLOCKS];
	struct drm_amdgpu_sdma_batch batch = batch_of(&e->gpu, d, BLOCKS);
	const uint64_t svm = (uintptr_t)e->svm;
	unsigned int i;
	int ret;

	for (i = 0; i < BLOCKS; i++) {
		const uint64_t bo = place_va(place(i));

		d[i] = to_bo ? copy_desc(svm + i * SVM_PAGE, bo, SVM_PAGE) :
			       copy_desc(bo, svm + i * SVM_PAGE, SVM_PAGE);
		if (self->disturbed)
			d[i] = faulting(d[i]);
	}
	batch.flags = AMDGPU_SDMA_BATCH_PATH;
	ret = batch_run(&e->gpu, &batch);
	if (!ret && !self->disturbed && batch.vram_bytes != 2 * LEN)
		ret = -EXDEV;
	return ret;
}

/* Compares the buffers of both ends: 0 if they are equal. */
static int same_blocks(const struct end *a, const struct end *b)
{
	int i, ret = 0;

	for (i = 0; i < BOS && !ret; i++)
		ret = memcmp(a->bo[i].cpu, b->bo[i].cpu, BO_LEN);
	return ret;
}

/* Nothing has moved since the setup, and the alias was used. */
static void check_in_place(struct __test_metadata *_metadata,
			   struct _test_data_rdma *self)
{
	int i;

	for (i = 0; i < 2; i++) {
		struct end *e = &self->end[i];
		struct svm_alias now = svm_alias(e->in_svm);

		EXPECT_EQ(0, svm_migrations(e->watch));
		EXPECT_EQ(0, svm_here(&self->svm, e->svm, LEN));
		EXPECT_EQ(e->before.fallback, now.fallback);
		EXPECT_LT(e->before.mapped, now.mapped);
	}
}

static int carry(struct _test_data_rdma *self, int from, int to)
{
	struct end *a = &self->end[from], *b = &self->end[to];

	return link_write(&self->link, a->mr, a->svm, b->mr, b->svm, LEN);
}

/* Gathers buffers to SVM memory, sends it by RDMA, scatters it to buffers. */
static int all_the_way(struct _test_data_rdma *self, int from, int to)
{
	int ret = run_blocks(self, &self->end[from], false);

	if (!ret)
		ret = carry(self, from, to);
	return ret ? ret : run_blocks(self, &self->end[to], true);
}

static void there_and_back(struct __test_metadata *_metadata,
			   struct _test_data_rdma *self)
{
	int round;

	for (round = 0; round < 10; round++) {
		struct end *a = &self->end[round % 2];
		struct end *b = &self->end[1 - round % 2];

		randomize_buffers(self, a);
		ASSERT_NE(0, same_blocks(a, b));
		ASSERT_EQ(0, all_the_way(self, round % 2, 1 - round % 2));
		ASSERT_EQ(0, same_blocks(a, b)) TH_LOG("round %d", round);
	}
}

TEST_F_TIMEOUT(rdma, there_and_back, 120)
{
	there_and_back(_metadata, self);
	check_in_place(_metadata, self);
}

/*
 * A thread that moves blocks to the GPU and back, less and less often: a batch
 * has to find all of them in their places, which takes time on a slow kernel.
 */
struct disturber {
	pthread_t thread;
	struct _test_data_rdma *self;
	unsigned int seed;
	unsigned int moves;
	bool stop;
};

static void *disturb(void *arg)
{
	struct disturber *d = arg;
	unsigned int pause_us = 1000;

	while (!__atomic_load_n(&d->stop, __ATOMIC_ACQUIRE)) {
		struct end *e = &d->self->end[d->moves % 2];
		uint8_t *block = e->svm + next_random(&d->seed) % BLOCKS *
					  SVM_PAGE;

		svm_prefetch(&d->self->svm, block, SVM_PAGE, e->in_svm);
		*(volatile uint8_t *)block;
		d->moves++;
		usleep(pause_us);
		if (pause_us < 500000)
			pause_us *= 2;
	}
	return NULL;
}

TEST_F_TIMEOUT(rdma, disturbed, 200)
{
	struct disturber d = { .self = self, .seed = 3 };
	int i, migrations = 0;

	self->disturbed = true;
	ASSERT_EQ(0, pthread_create(&d.thread, NULL, disturb, &d));
	there_and_back(_metadata, self);
	__atomic_store_n(&d.stop, true, __ATOMIC_RELEASE);
	ASSERT_EQ(0, pthread_join(d.thread, NULL));
	for (i = 0; i < 2; i++)
		migrations += svm_migrations(self->end[i].watch);
	TH_LOG("%u moves, %d migrations", d.moves, migrations);
	EXPECT_LT(0, migrations);
}

/* RDMA and a batch read the same pages at the same time. */
TEST_F_TIMEOUT(rdma, at_once, 120)
{
	struct end *a = &self->end[0], *b = &self->end[1];
	const uint64_t svm = (uintptr_t)a->svm;
	const struct drm_amdgpu_sdma_desc d[BOS] = {
		copy_desc(svm, BO_VA, BO_LEN),
		copy_desc(svm + BO_LEN, BO_VA + GAP, BO_LEN),
	};
	struct drm_amdgpu_sdma_batch batch = batch_of(&a->gpu, d, BOS);
	uint32_t timeline;
	unsigned int i;
	int round;

	ASSERT_EQ(0, syncobj_new(&a->gpu, &timeline));
	for (round = 1; round <= 20; round++) {
		ASSERT_EQ(0, batch_submit_to(&a->gpu, &batch, timeline, round));
		ASSERT_EQ(0, carry(self, 0, 1));
	}
	ASSERT_EQ(0, syncobj_wait(&a->gpu, timeline, 20, WAIT_SECONDS));
	ASSERT_EQ(0, run_blocks(self, b, true));
	for (i = 0; i < BLOCKS; i++)
		ASSERT_EQ(0, memcmp(a->bo[i * SVM_PAGE / BO_LEN].cpu +
				    i * SVM_PAGE % BO_LEN,
				    place_cpu(b, place(i)), SVM_PAGE));
	check_in_place(_metadata, self);
}

int main(int argc, char **argv)
{
	return run_with_device(argc, argv, DEVICE);
}
