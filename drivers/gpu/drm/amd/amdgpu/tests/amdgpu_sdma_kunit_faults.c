// SPDX-License-Identifier: MIT
/* KUnit tests of who handles a page fault in the VM of a compute process. */

#include <kunit/test.h>

#include "kfd_svm_window.h"

#define QUEUES		GENMASK(15, 8)

/* A worker of the process handles the faults of its queues. */
static void fault_of_queue(struct kunit *test)
{
	u32 vmid;

	for (vmid = 8; vmid < 16; vmid++) {
		KUNIT_EXPECT_FALSE(test, kfd_svm_fault_is_of_job(QUEUES, vmid,
								 true));
		KUNIT_EXPECT_FALSE(test, kfd_svm_fault_is_of_job(QUEUES, vmid,
								 false));
	}
}

/* It handles those of jobs only where it can bring in memory for them. */
static void fault_of_job(struct kunit *test)
{
	u32 vmid;

	for (vmid = 0; vmid < 8; vmid++) {
		KUNIT_EXPECT_TRUE(test, kfd_svm_fault_is_of_job(QUEUES, vmid,
								false));
		KUNIT_EXPECT_FALSE(test, kfd_svm_fault_is_of_job(QUEUES, vmid,
								 true));
	}
}

/* No part of the GPU has the VMID. */
static void fault_of_no_node(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, kfd_svm_fault_is_of_job(0, 2, false));
	KUNIT_EXPECT_TRUE(test, kfd_svm_fault_is_of_job(0, 9, false));
}

static struct kunit_case faults_cases[] = {
	KUNIT_CASE(fault_of_queue),
	KUNIT_CASE(fault_of_job),
	KUNIT_CASE(fault_of_no_node),
	{ }
};

static struct kunit_suite faults_suite = {
	.name = "amdgpu_sdma_faults",
	.test_cases = faults_cases,
};

kunit_test_suite(faults_suite);
