// SPDX-License-Identifier: GPL-2.0
/*
 * Probe fails half-way, here because no engine answers: the driver undoes what
 * it did and nothing else, and takes the device once it works again.
 */
#include "../../../kselftest_harness.h"
#include "amdgpu_test.h"

TEST(engines_hang)
{
	int kmsg = kmsg_open(), port = emulator_open();
	char gpus[MAX_GPUS][32];
	struct buffer b;
	struct gpu gpu;
	int out;

	if (!find_gpus(gpus) || kmsg < 0)
		SKIP(return, "no GPU");
	if (port < 0)
		SKIP(return, "nothing can make this GPU hang");
	ASSERT_EQ(0, unbind_gpu(gpus[0]));
	ASSERT_EQ(0, emulator_all(port, "engine all hang"));
	EXPECT_NE(0, bind_gpu(gpus[0]));
	ASSERT_EQ(0, emulator_all(port, "engine all resume"));
	ASSERT_EQ(0, bind_gpu(gpus[0]));

	ASSERT_EQ(0, open_gpu(&gpu, gpus[0]));
	ASSERT_EQ(0, new_mapped_buffer(&gpu, &b, 65536,
				       AMDGPU_GEM_DOMAIN_VRAM));
	EXPECT_EQ(0, write_word(&gpu, &b, 1));
	/* it has not released a lock of KFD that was not its own */
	out = access("/dev/kfd", F_OK) ? -ENOENT : reset_keeps_out(gpus[0]);
	if (out != -ENOENT)
		EXPECT_EQ(1, out);
	EXPECT_EQ(0, kmsg_complaints(kmsg));
}

TEST_HARNESS_MAIN
