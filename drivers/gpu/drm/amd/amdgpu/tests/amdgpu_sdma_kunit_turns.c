// SPDX-License-Identifier: MIT
/*
 * KUnit tests of the turns of SDMA batches that wait: who is called, how often,
 * and that no call is lost.
 */

#include <linux/dma-fence.h>

#include "amdgpu_sdma_batch_turns.h"
#include "amdgpu_sdma_kunit.h"

#define ENGINE	3
#define MANY	100
#define HIGH	1
#define NORMAL	2
#define LOW	3

/* A job, as the scheduler treats it: it asks, and sleeps until it is called. */
struct job {
	struct amdgpu_sdma_turn *turn;
	unsigned int priority;
	ktime_t submitted;
	struct dma_fence *fence;
	struct dma_fence_cb cb;
	unsigned int calls;
};

struct turns {
	struct amdgpu_sdma_turns turns;
	struct job jobs[MANY];
};

static void was_called(struct dma_fence *fence, struct dma_fence_cb *cb)
{
	container_of(cb, struct job, cb)->calls++;
}

static unsigned int all_calls(const struct turns *t)
{
	unsigned int i, n = 0;

	for (i = 0; i < MANY; i++)
		n += t->jobs[i].calls;
	return n;
}

/* Job @i has priority NORMAL and was submitted as the i-th. */
static int turns_test_init(struct kunit *test)
{
	struct turns *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	unsigned int i;

	if (!t)
		return -ENOMEM;
	test->priv = t;
	amdgpu_sdma_turns_init(&t->turns);
	for (i = 0; i < MANY; i++) {
		struct job *job = &t->jobs[i];

		job->turn = amdgpu_sdma_turn_create(&t->turns, ENGINE);
		if (!job->turn)
			return -ENOMEM;
		job->priority = NORMAL;
		job->submitted = i;
	}
	return 0;
}

static void turns_test_exit(struct kunit *test)
{
	struct turns *t = test->priv;
	unsigned int i;

	/* A test that has failed leaves jobs in line, which this may call. */
	if (t)
		amdgpu_sdma_turns_fini(&t->turns);
	for (i = 0; t && i < MANY; i++) {
		struct job *job = &t->jobs[i];

		if (job->fence)
			dma_fence_remove_callback(job->fence, &job->cb);
		dma_fence_put(job->fence);
		amdgpu_sdma_turn_put(job->turn);
	}
}

/* Returns false if the job has to wait. */
static bool ask(struct kunit *test, struct job *job)
{
	dma_fence_put(job->fence);
	job->fence = amdgpu_sdma_turn_before(job->turn, job->priority,
					     job->submitted);
	if (!job->fence)
		return true;
	KUNIT_EXPECT_EQ(test, dma_fence_add_callback(job->fence, &job->cb,
						     was_called), 0);
	return false;
}

static void take(struct turns *t, struct job *job)
{
	amdgpu_sdma_turn_take(&t->turns, ENGINE, job->turn);
}

static void end(struct job *job)
{
	amdgpu_sdma_turn_end(job->turn, 0);
}

/* The first @n jobs ask; the first of all gets the turn. */
static void all_ask(struct kunit *test, unsigned int n)
{
	struct turns *t = test->priv;
	unsigned int i;

	KUNIT_ASSERT_TRUE(test, ask(test, &t->jobs[0]));
	take(t, &t->jobs[0]);
	for (i = 1; i < n; i++)
		KUNIT_ASSERT_FALSE(test, ask(test, &t->jobs[i]));
	KUNIT_ASSERT_EQ(test, all_calls(t), 0);
}

/* However many wait, the end of a turn calls one, in the order of submission. */
static void turns_one_call(struct kunit *test)
{
	struct turns *t = test->priv;
	unsigned int i;

	all_ask(test, MANY);
	for (i = 1; i < MANY; i++) {
		end(&t->jobs[i - 1]);
		KUNIT_EXPECT_EQ(test, all_calls(t), i);
		KUNIT_ASSERT_EQ(test, t->jobs[i].calls, 1);
		KUNIT_ASSERT_TRUE(test, ask(test, &t->jobs[i]));
		take(t, &t->jobs[i]);
	}
	end(&t->jobs[MANY - 1]);
	KUNIT_EXPECT_EQ(test, all_calls(t), MANY - 1);
}

/* It does not matter who asked first. */
static void turns_order(struct kunit *test)
{
	static const unsigned int order[] = { 4, 2, 3, 5, 1 };
	struct turns *t = test->priv;
	struct job *before = &t->jobs[0];
	unsigned int i;

	t->jobs[1].priority = LOW;
	t->jobs[4].priority = HIGH;
	t->jobs[3].submitted = 5;
	t->jobs[5].submitted = 6;
	all_ask(test, 6);
	for (i = 0; i < ARRAY_SIZE(order); i++) {
		struct job *job = &t->jobs[order[i]];

		end(before);
		KUNIT_ASSERT_EQ_MSG(test, job->calls, 1, "job %u", order[i]);
		KUNIT_ASSERT_EQ(test, all_calls(t), i + 1);
		KUNIT_ASSERT_TRUE(test, ask(test, job));
		take(t, job);
		before = job;
	}
	end(before);
}

/* Killed while it is in line, and when it was called but did not ask yet. */
static void turns_dead(struct kunit *test)
{
	struct turns *t = test->priv;

	all_ask(test, 5);
	end(&t->jobs[1]);
	KUNIT_EXPECT_EQ(test, t->jobs[1].calls, 1);
	KUNIT_EXPECT_EQ(test, all_calls(t), 1);
	end(&t->jobs[0]);
	KUNIT_EXPECT_EQ(test, t->jobs[2].calls, 1);
	KUNIT_EXPECT_EQ(test, all_calls(t), 2);
	end(&t->jobs[2]);
	KUNIT_EXPECT_EQ(test, t->jobs[3].calls, 1);
	KUNIT_EXPECT_EQ(test, all_calls(t), 3);
	/* asked, may take it, and fails */
	KUNIT_EXPECT_TRUE(test, ask(test, &t->jobs[3]));
	end(&t->jobs[3]);
	KUNIT_EXPECT_EQ(test, t->jobs[4].calls, 1);
	KUNIT_EXPECT_EQ(test, all_calls(t), 4);
}

/* One that finds no VMID lets the next one go first, and comes back. */
static void turns_pass(struct kunit *test)
{
	struct turns *t = test->priv;

	all_ask(test, 4);
	end(&t->jobs[0]);
	KUNIT_ASSERT_TRUE(test, ask(test, &t->jobs[1]));
	amdgpu_sdma_turn_pass(t->jobs[1].turn);
	KUNIT_EXPECT_EQ(test, t->jobs[2].calls, 1);
	KUNIT_EXPECT_EQ(test, all_calls(t), 2);
	KUNIT_ASSERT_TRUE(test, ask(test, &t->jobs[2]));
	take(t, &t->jobs[2]);
	/* nobody has a use for it now */
	amdgpu_sdma_turn_pass(t->jobs[1].turn);
	KUNIT_EXPECT_EQ(test, all_calls(t), 2);
	/* back in line, before the one that came later */
	KUNIT_ASSERT_FALSE(test, ask(test, &t->jobs[1]));
	end(&t->jobs[2]);
	KUNIT_EXPECT_EQ(test, t->jobs[1].calls, 2);
	KUNIT_EXPECT_EQ(test, t->jobs[3].calls, 0);
	KUNIT_ASSERT_TRUE(test, ask(test, &t->jobs[1]));
	take(t, &t->jobs[1]);
	end(&t->jobs[1]);
	KUNIT_EXPECT_EQ(test, t->jobs[3].calls, 1);
	KUNIT_EXPECT_EQ(test, all_calls(t), 4);
}

/*
 * One of low priority is called, and jobs that need not wait for it take the
 * turn again and again: it is called each time, as often as they end, and
 * nobody's turn is held back by it.
 */
static void turns_in_vain(struct kunit *test)
{
	struct turns *t = test->priv;
	unsigned int i;

	t->jobs[1].priority = LOW;
	all_ask(test, 2);
	end(&t->jobs[0]);
	for (i = 2; i < MANY; i++) {
		KUNIT_ASSERT_EQ(test, t->jobs[1].calls, i - 1);
		KUNIT_ASSERT_TRUE(test, ask(test, &t->jobs[i]));
		take(t, &t->jobs[i]);
		KUNIT_ASSERT_FALSE(test, ask(test, &t->jobs[1]));
		end(&t->jobs[i]);
	}
	KUNIT_EXPECT_EQ(test, all_calls(t), MANY - 1);
	KUNIT_EXPECT_TRUE(test, ask(test, &t->jobs[1]));
}

/* If others had work for the engine, nobody is called before the pause is over. */
static void turns_pause(struct kunit *test)
{
	struct turns *t = test->priv;

	all_ask(test, 3);
	amdgpu_sdma_turn_take(&t->turns, ENGINE, NULL);
	amdgpu_sdma_turn_end(t->jobs[0].turn, ms_to_ktime(100000));
	KUNIT_EXPECT_EQ(test, all_calls(t), 0);
	KUNIT_EXPECT_FALSE(test, dma_fence_is_signaled(t->jobs[1].fence));
	amdgpu_sdma_turns_fini(&t->turns);
	KUNIT_EXPECT_EQ(test, all_calls(t), 1);
	KUNIT_EXPECT_EQ(test, t->jobs[1].calls, 1);
	KUNIT_ASSERT_TRUE(test, ask(test, &t->jobs[1]));
	take(t, &t->jobs[1]);
	amdgpu_sdma_turn_take(&t->turns, ENGINE, NULL);
	amdgpu_sdma_turn_end(t->jobs[1].turn, ms_to_ktime(1));
	KUNIT_EXPECT_GT(test, dma_fence_wait_timeout(t->jobs[2].fence, false,
						     10 * HZ), 0);
}

/* Each engine has its own. */
static void turns_engines(struct kunit *test)
{
	struct turns *t = test->priv;
	struct amdgpu_sdma_turn *other;

	all_ask(test, 2);
	other = amdgpu_sdma_turn_create(&t->turns, ENGINE + 1);
	KUNIT_ASSERT_NOT_NULL(test, other);
	KUNIT_EXPECT_NULL(test, amdgpu_sdma_turn_before(other, LOW, 0));
	amdgpu_sdma_turn_take(&t->turns, ENGINE + 1, other);
	amdgpu_sdma_turn_end(other, 0);
	KUNIT_EXPECT_EQ(test, all_calls(t), 0);
	amdgpu_sdma_turn_put(other);
	end(&t->jobs[0]);
	KUNIT_EXPECT_EQ(test, all_calls(t), 1);
}

static struct kunit_case turns_cases[] = {
	KUNIT_CASE(turns_one_call),
	KUNIT_CASE(turns_order),
	KUNIT_CASE(turns_dead),
	KUNIT_CASE(turns_pass),
	KUNIT_CASE(turns_in_vain),
	KUNIT_CASE(turns_pause),
	KUNIT_CASE(turns_engines),
	{ }
};

static struct kunit_suite turns_suite = {
	.name = "amdgpu_sdma_turns",
	.init = turns_test_init,
	.exit = turns_test_exit,
	.test_cases = turns_cases,
};

kunit_test_suite(turns_suite);
