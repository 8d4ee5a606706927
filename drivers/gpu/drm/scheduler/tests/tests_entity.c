// SPDX-License-Identifier: GPL-2.0

#include <linux/completion.h>
#include <linux/workqueue.h>

#include "sched_tests.h"

/*
 * Tests of drm_sched_entity_clear_error(). The error of a failed job is in its
 * finished fence, where drm_sched_entity_error() finds it.
 */

struct clear_error {
	struct drm_mock_sched_entity *entity;
	struct work_struct work;
	struct completion done;
	bool cleared;
};

static void clear_error_work(struct work_struct *work)
{
	struct clear_error *c = container_of(work, struct clear_error, work);

	c->cleared = drm_sched_entity_clear_error(&c->entity->base);
	complete(&c->done);
}

static int entity_init(struct kunit *test)
{
	test->priv = drm_mock_sched_new(test, MAX_SCHEDULE_TIMEOUT);
	return 0;
}

static void entity_exit(struct kunit *test)
{
	drm_mock_sched_fini(test->priv);
}

static struct drm_mock_sched_entity *new_entity(struct kunit *test)
{
	return drm_mock_sched_entity_new(test, DRM_SCHED_PRIORITY_NORMAL,
					 test->priv);
}

/* A job that the mock GPU has started and not finished. */
static struct drm_mock_sched_job *
start_job(struct kunit *test, struct drm_mock_sched_entity *entity)
{
	struct drm_mock_sched_job *job = drm_mock_sched_job_new(test, entity);

	drm_mock_sched_job_submit(job);
	KUNIT_ASSERT_TRUE(test, drm_mock_sched_job_wait_scheduled(job, HZ));
	return job;
}

static void finish_job(struct kunit *test, struct drm_mock_sched_job *job)
{
	KUNIT_ASSERT_EQ(test, drm_mock_sched_advance(test->priv, 1), 1);
	KUNIT_ASSERT_TRUE(test, drm_mock_sched_job_wait_finished(job, HZ));
}

static void fail_job(struct drm_mock_sched_job *job)
{
	dma_fence_set_error(&job->base.s_fence->finished, -EIO);
}

static void clear_error_none(struct kunit *test)
{
	struct drm_mock_sched_entity *entity = new_entity(test);

	KUNIT_EXPECT_FALSE(test, drm_sched_entity_clear_error(&entity->base));
	finish_job(test, start_job(test, entity));
	KUNIT_EXPECT_FALSE(test, drm_sched_entity_clear_error(&entity->base));
	KUNIT_EXPECT_NOT_NULL(test, rcu_access_pointer(entity->base.last_scheduled));

	drm_mock_sched_entity_free(entity);
}

/* After that the entity works again, and a second error counts again. */
static void clear_error_again(struct kunit *test)
{
	struct drm_mock_sched_entity *entity = new_entity(test);
	struct drm_mock_sched_job *job;
	int i;

	for (i = 0; i < 2; i++) {
		job = start_job(test, entity);
		fail_job(job);
		finish_job(test, job);
		KUNIT_EXPECT_EQ(test, drm_sched_entity_error(&entity->base), -EIO);
		KUNIT_EXPECT_TRUE(test, drm_sched_entity_clear_error(&entity->base));
		KUNIT_EXPECT_EQ(test, drm_sched_entity_error(&entity->base), 0);

		finish_job(test, start_job(test, entity));
		KUNIT_EXPECT_EQ(test, drm_sched_entity_error(&entity->base), 0);
	}

	drm_mock_sched_entity_free(entity);
}

/* Jobs that were queued with the failed one have to be done first. */
static void clear_error_waits(struct kunit *test)
{
	struct clear_error c = { .entity = new_entity(test) };
	struct drm_mock_sched_job *job, *last;

	init_completion(&c.done);
	INIT_WORK_ONSTACK(&c.work, clear_error_work);

	job = start_job(test, c.entity);
	last = start_job(test, c.entity);
	fail_job(job);
	fail_job(last);
	queue_work(system_dfl_wq, &c.work);

	KUNIT_EXPECT_FALSE(test, wait_for_completion_timeout(&c.done, HZ / 10));
	finish_job(test, job);
	KUNIT_EXPECT_FALSE(test, wait_for_completion_timeout(&c.done, HZ / 10));
	KUNIT_EXPECT_EQ(test, drm_sched_entity_error(&c.entity->base), -EIO);
	finish_job(test, last);
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&c.done, HZ));
	flush_work(&c.work);
	destroy_work_on_stack(&c.work);
	KUNIT_EXPECT_TRUE(test, c.cleared);
	KUNIT_EXPECT_EQ(test, drm_sched_entity_error(&c.entity->base), 0);

	drm_mock_sched_entity_free(c.entity);
}

/* A scheduler whose jobs were killed is as idle as if they had ended. */
static void kill_score(struct kunit *test)
{
	struct drm_mock_sched_entity *entity = new_entity(test);
	struct drm_mock_sched_entity *other = new_entity(test);
	struct drm_mock_scheduler *sched = test->priv;
	struct drm_mock_sched_job *running, *job;
	struct dma_fence *before, *last;
	int i, score;

	running = start_job(test, other);
	before = &running->base.s_fence->finished;
	/* otherwise jobs that depend on it would not wait for its end */
	set_bit(DRM_SCHED_FENCE_DONT_PIPELINE, &before->flags);
	score = atomic_read(sched->base.score);
	for (i = 0; i < 3; i++) {
		job = drm_mock_sched_job_new(test, entity);
		KUNIT_ASSERT_EQ(test, 0,
				drm_sched_job_add_dependency(&job->base,
							     dma_fence_get(before)));
		drm_mock_sched_job_submit(job);
	}
	last = dma_fence_get(&job->base.s_fence->finished);
	/* the jobs, and the entity that has jobs */
	KUNIT_EXPECT_EQ(test, atomic_read(sched->base.score), score + 4);
	drm_sched_entity_kill(&entity->base);
	KUNIT_EXPECT_EQ(test, atomic_read(sched->base.score), score);

	finish_job(test, running);
	KUNIT_EXPECT_GT(test, dma_fence_wait_timeout(last, false, HZ), 0);
	KUNIT_EXPECT_EQ(test, dma_fence_get_status(last), -ESRCH);
	KUNIT_EXPECT_LT(test, atomic_read(sched->base.score), score);
	dma_fence_put(last);
	drm_mock_sched_entity_free(entity);
	drm_mock_sched_entity_free(other);
}

/* Jobs that are pushed after the entity was killed end, too, and in order. */
static void kill_pushed(struct kunit *test)
{
	struct drm_mock_sched_entity *entity = new_entity(test);
	struct drm_mock_scheduler *sched = test->priv;
	struct drm_mock_sched_job *running, *job;
	struct dma_fence *fence[2];
	int i, score;

	running = start_job(test, entity);
	set_bit(DRM_SCHED_FENCE_DONT_PIPELINE,
		&running->base.s_fence->finished.flags);
	drm_sched_entity_kill(&entity->base);
	score = atomic_read(sched->base.score);
	for (i = 0; i < ARRAY_SIZE(fence); i++) {
		job = drm_mock_sched_job_new(test, entity);
		drm_mock_sched_job_submit(job);
		fence[i] = dma_fence_get(&job->base.s_fence->finished);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(sched->base.score), score);
	KUNIT_EXPECT_FALSE(test, dma_fence_is_signaled(fence[0]));

	finish_job(test, running);
	KUNIT_EXPECT_GT(test, dma_fence_wait_timeout(fence[1], false, HZ), 0);
	for (i = 0; i < ARRAY_SIZE(fence); i++) {
		KUNIT_EXPECT_EQ(test, dma_fence_get_status(fence[i]), -ESRCH);
		dma_fence_put(fence[i]);
	}
	drm_mock_sched_entity_free(entity);
}

/* An entity keeps its scheduler if none of several is ready. */
static void none_ready(struct kunit *test)
{
	struct drm_mock_scheduler *other =
		drm_mock_sched_new(test, MAX_SCHEDULE_TIMEOUT);
	struct drm_mock_sched_entity *entity = new_entity(test);
	struct drm_mock_scheduler *sched = test->priv;
	struct drm_gpu_scheduler *list[] = { &sched->base, &other->base };
	struct drm_mock_sched_job *job;

	drm_sched_entity_modify_sched(&entity->base, list, ARRAY_SIZE(list));
	sched->base.ready = false;
	other->base.ready = false;
	job = start_job(test, entity);
	KUNIT_EXPECT_PTR_EQ(test, job->base.sched, &sched->base);
	sched->base.ready = true;
	other->base.ready = true;
	finish_job(test, job);
	drm_mock_sched_entity_free(entity);
	drm_mock_sched_fini(other);
}

static struct kunit_case entity_tests[] = {
	KUNIT_CASE(clear_error_none),
	KUNIT_CASE(clear_error_again),
	KUNIT_CASE(clear_error_waits),
	KUNIT_CASE(kill_score),
	KUNIT_CASE(none_ready),
	KUNIT_CASE(kill_pushed),
	{}
};

static struct kunit_suite entity_suite = {
	.name = "drm_sched_entity_tests",
	.init = entity_init,
	.exit = entity_exit,
	.test_cases = entity_tests,
};

kunit_test_suite(entity_suite);
