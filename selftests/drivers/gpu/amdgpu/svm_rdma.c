// SPDX-License-Identifier: GPL-2.0
/*
 * RDMA between SVM ranges that are in the video memory of two GPUs. On-demand
 * memory regions reach the pages through the BAR, by the alias that amdkfd
 * publishes: nothing migrates. The GPU that has received data reads it.
 *
 * Needs a GPU with device private memory in KFD, preferably two: see kfd_svm.h
 * for GPU=. Makes its own soft RoCE device over lo; RDMA=name selects an
 * existing one.
 */

#include "../../../kselftest_harness.h"
#include "svm_rdma.h"

#define DEVICE	"rxe_svm_rdma"
#define NR	256ul
#define LEN	(NR * SVM_PAGE)

FIXTURE(svm_rdma) {
	struct svm svm;
	struct link link;
	struct svm_gpu *gpu[2];
	void *buf[2];		/* memory in each of them */
	struct ibv_mr *mr[2];
	void *out;		/* system memory that gpu[1] can access */
	int watch[2];
	struct svm_alias before[2];
};

FIXTURE_SETUP(svm_rdma) {
	int i;

	self->svm.kfd = -1;
	if (svm_open(&self->svm))
		SKIP(return, "no GPU with KFD");
	self->gpu[0] = &self->svm.gpu[0];
	self->gpu[1] = &self->svm.gpu[self->svm.nr > 1];
	if (!svm_alias(self->gpu[0]).published ||
	    !svm_alias(self->gpu[1]).published)
		SKIP(return, "no alias of device private memory");
	ASSERT_EQ(0, link_open(&self->link, device));
	self->out = svm_map(LEN);
	ASSERT_NE(NULL, self->out);
	ASSERT_EQ(0, svm_access(&self->svm, self->out, LEN, self->gpu[1]));
	for (i = 0; i < 2; i++) {
		self->buf[i] = svm_map(LEN);
		ASSERT_NE(NULL, self->buf[i]);
		pattern_fill(self->buf[i], LEN, i + 1);
		self->watch[i] = svm_watch(&self->svm, self->gpu[i]);
		ASSERT_LE(0, self->watch[i]);
		self->mr[i] = rcp_reg(&self->link.dev, self->buf[i], LEN,
				      RCP_ODP);
		ASSERT_NE(NULL, self->mr[i]);
		ASSERT_EQ(0, svm_prefetch(&self->svm, self->buf[i], LEN,
					  self->gpu[i]));
		ASSERT_EQ(NR, svm_away(&self->svm, self->buf[i], LEN));
		/* that moved pages, so the watch sees it */
		ASSERT_LT(0, svm_migrations(self->watch[i]));
	}
	for (i = 0; i < 2; i++) {
		svm_migrations(self->watch[i]);
		self->before[i] = svm_alias(self->gpu[i]);
	}
}

FIXTURE_TEARDOWN(svm_rdma) {
	int i;

	if (self->svm.kfd < 0)
		return;
	for (i = 0; i < 2; i++) {
		if (self->mr[i])
			ibv_dereg_mr(self->mr[i]);
		if (self->buf[i])
			munmap(self->buf[i], LEN);
		if (self->watch[i] > 0)
			close(self->watch[i]);
	}
	link_close(&self->link);
	svm_close(&self->svm);
}

/* Nothing has moved since the setup, and the alias was used. */
static void check_in_place(struct __test_metadata *_metadata,
			   FIXTURE_DATA(svm_rdma) *self)
{
	int i;

	for (i = 0; i < 2; i++) {
		struct svm_alias now = svm_alias(self->gpu[i]);

		EXPECT_EQ(0, svm_migrations(self->watch[i]));
		EXPECT_EQ(NR, svm_away(&self->svm, self->buf[i], LEN));
		EXPECT_EQ(self->before[i].fallback, now.fallback);
		EXPECT_LT(self->before[i].mapped, now.mapped);
	}
}

/* Checks the second GPU's memory, as that GPU reads it. */
static void check_by_gpu(struct __test_metadata *_metadata,
			 FIXTURE_DATA(svm_rdma) *self, const void *want)
{
	struct svm_queue q;

	memset(self->out, 0xee, LEN);
	ASSERT_EQ(0, svm_queue_open(&self->svm, self->gpu[1], &q));
	ASSERT_EQ(0, svm_queue_copy(&q, self->buf[1], self->out, LEN));
	svm_queue_close(&self->svm, &q);
	EXPECT_EQ(0, memcmp(self->out, want, LEN));
}

TEST_F(svm_rdma, write) {
	void *want = svm_map(LEN);

	pattern_fill(want, LEN, 1);
	ASSERT_EQ(0, link_write(&self->link, self->mr[0], self->buf[0],
				self->mr[1], self->buf[1], LEN));
	check_in_place(_metadata, self);
	check_by_gpu(_metadata, self, want);
	check_in_place(_metadata, self);
}

TEST_F(svm_rdma, read) {
	void *want = svm_map(LEN);

	pattern_fill(want, LEN, 1);
	ASSERT_EQ(0, link_read(&self->link, self->mr[1], self->buf[1],
			       self->mr[0], self->buf[0], LEN));
	check_in_place(_metadata, self);
	check_by_gpu(_metadata, self, want);
}

/* Shapes that begin, end and cross pages anywhere; the rest stays as it was. */
TEST_F(svm_rdma, shapes) {
	static const struct { size_t from, to, len; } shapes[] = {
		{ 0, 0, 1 }, { 3, 4093, 7 }, { 100, 8192, 4096 },
		{ 20000, 12345, 4097 }, { 65536 - 5, 131072 - 3, 11 },
		{ 262144 + 1, 524288 + 2, 200001 },
	};
	char *want = svm_map(LEN), *from = svm_map(LEN);
	size_t i;

	pattern_fill(want, LEN, 2);
	pattern_fill(from, LEN, 1);
	for (i = 0; i < ARRAY_SIZE(shapes); i++) {
		ASSERT_EQ(0, link_write(&self->link, self->mr[0],
					self->buf[0] + shapes[i].from,
					self->mr[1],
					self->buf[1] + shapes[i].to,
					shapes[i].len));
		memcpy(want + shapes[i].to, from + shapes[i].from,
		       shapes[i].len);
	}
	check_by_gpu(_metadata, self, want);
	EXPECT_EQ(NR, svm_away(&self->svm, self->buf[1], LEN));
}

/* Pages that the CPU takes back are used there, and move to the GPU again. */
TEST_F(svm_rdma, back_and_forth) {
	void *want = svm_map(LEN);
	int round;

	pattern_fill(want, LEN, 1);
	for (round = 0; round < 3; round++) {
		pattern_fill(self->buf[1], LEN, 100 + round);
		EXPECT_EQ(0, svm_away(&self->svm, self->buf[1], LEN));
		ASSERT_EQ(0, link_write(&self->link, self->mr[0], self->buf[0],
					self->mr[1], self->buf[1], LEN / 2));
		ASSERT_EQ(0, svm_prefetch(&self->svm, self->buf[1], LEN,
					  self->gpu[1]));
		ASSERT_EQ(NR, svm_away(&self->svm, self->buf[1], LEN));
		ASSERT_EQ(0, link_write(&self->link, self->mr[0],
					self->buf[0] + LEN / 2, self->mr[1],
					self->buf[1] + LEN / 2, LEN / 2));
		check_by_gpu(_metadata, self, want);
	}
	EXPECT_EQ(NR, svm_away(&self->svm, self->buf[0], LEN));
}

int main(int argc, char **argv)
{
	return run_with_device(argc, argv, DEVICE);
}
