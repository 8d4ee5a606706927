// SPDX-License-Identifier: GPL-2.0
/*
 * A process has an address range without memory (PRT), for which no buffer is
 * mapped. Elsewhere a queue accesses memory that is not registered.
 */
#include "../../../kselftest_harness.h"
#include "amdgpu_test.h"
#include "kfd_svm.h"

#define SIZE	SVM_PAGE
#define PRT_VA	(64ull << 30)

static int map_prt(int fd)
{
	struct drm_amdgpu_gem_va arg = {
		.operation = AMDGPU_VA_OP_MAP,
		.flags = AMDGPU_VM_PAGE_PRT,
		.va_address = PRT_VA,
		.map_size = MIB,
	};

	return do_ioctl(fd, DRM_IOCTL_AMDGPU_GEM_VA, &arg);
}

TEST(queue_faults_beside)
{
	struct svm_queue queue;
	struct svm svm;
	uint32_t *from, *to;
	int kmsg;

	if (svm_open(&svm))
		SKIP(return, "no KFD");
	kmsg = kmsg_open();
	if (svm_enable_xnack(svm.kfd))
		SKIP(return, "no retry faults");
	ASSERT_EQ(0, map_prt(svm.gpu[0].drm));
	ASSERT_EQ(0, svm_queue_open(&svm, &svm.gpu[0], &queue));
	from = svm_map(SIZE);
	to = svm_map(SIZE);
	ASSERT_NE(NULL, from);
	ASSERT_NE(NULL, to);
	pattern_fill(from, SIZE, 1);
	ASSERT_EQ(0, svm_queue_copy(&queue, from, to, SIZE));
	EXPECT_EQ(-1, pattern_check(to, SIZE, 1));
	svm_queue_close(&svm, &queue);
	svm_close(&svm);
	if (kmsg >= 0)
		EXPECT_EQ(0, kmsg_complaints(kmsg));
}

TEST_HARNESS_MAIN
