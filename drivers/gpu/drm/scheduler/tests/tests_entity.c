// SPDX-License-Identifier: GPL-2.0

#include <linux/completion.h>
#include <linux/workqueue.h>

#include "sched_tests.h"

/*
 * Tests of drm_sched_entity_clear_error(). That a job has failed is in its
 * finished fence, and drm_sched_entity_error() finds it there.
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

static int clear_error_init(struct kunit *test)
{
	test->priv = drm_mock_sched_new(test, MAX_SCHEDULE_TIMEOUT);
	return 0;
}

static void clear_error_exit(struct kunit *test)
{
	drm_mock_sched_fini(test->priv);
}

static struct drm_mock_sched_entity *new_entity(struct kunit *test)
{
	return drm_mock_sched_entity_new(test, DRM_SCHED_PRIORITY_NORMAL,
					 test->priv);
}

/* A job that is with the mock GPU, not done yet. */
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

/* The entity is as good as new, and a second error is one again. */
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

/* The jobs that came with the one that failed have to be done before. */
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

static struct kunit_case clear_error_tests[] = {
	KUNIT_CASE(clear_error_none),
	KUNIT_CASE(clear_error_again),
	KUNIT_CASE(clear_error_waits),
	{}
};

static struct kunit_suite clear_error = {
	.name = "drm_sched_clear_error_tests",
	.init = clear_error_init,
	.exit = clear_error_exit,
	.test_cases = clear_error_tests,
};

kunit_test_suite(clear_error);
