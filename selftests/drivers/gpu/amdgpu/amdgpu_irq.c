// SPDX-License-Identifier: GPL-2.0
/*
 * Interrupts that are lost, duplicated or late. Jobs end all the same, each
 * once and with its data, and the driver does not complain.
 */
#include "../../../kselftest_harness.h"
#include "amdgpu_test.h"

FIXTURE(irq) {
	char gpus[MAX_GPUS][32];
	struct gpu gpu;
	struct buffer ib;
	int kmsg, port;
};

FIXTURE_SETUP(irq)
{
	if (!find_gpus(self->gpus))
		SKIP(return, "no GPU");
	self->port = emulator_open();
	if (self->port < 0)
		SKIP(return, "nothing can disturb the interrupts of this GPU");
	self->kmsg = kmsg_open();
	ASSERT_EQ(0, open_gpu(&self->gpu, self->gpus[0]));
	ASSERT_EQ(0, new_mapped_buffer(&self->gpu, &self->ib, 65536,
				       AMDGPU_GEM_DOMAIN_GTT));
	ASSERT_EQ(0, write_word(&self->gpu, &self->ib, 1));
}

FIXTURE_TEARDOWN(irq)
{
	EXPECT_EQ(0, emulator_all(self->port, "irq drop 0"));
	EXPECT_EQ(0, emulator_all(self->port, "irq duplicate 0"));
	EXPECT_EQ(0, emulator_all(self->port, "irq delay 0"));
	if (self->kmsg >= 0)
		EXPECT_EQ(0, kmsg_complaints(self->kmsg));
	close(self->gpu.fd);
	close(self->port);
}

/* How long a job takes; negative if it fails. */
static double time_job(FIXTURE_DATA(irq) *self, uint32_t value)
{
	double start = now();
	int ret = write_word(&self->gpu, &self->ib, value);

	return ret ? ret : now() - start;
}

/*
 * All interrupts, for a while: a timer of the driver, of half a second, looks
 * for fences that have signalled.
 */
TEST_F_TIMEOUT(irq, lost, 60)
{
	ASSERT_EQ(0, emulator_all(self->port, "irq drop 1000000"));
	for (uint32_t i = 2; i < 4; i++) {
		double s = time_job(self, i);

		EXPECT_LE(0.1, s);	/* the interrupts were indeed lost */
		EXPECT_GE(20, s);
	}
	ASSERT_EQ(0, emulator_all(self->port, "irq drop 0"));
	EXPECT_EQ(0, write_word(&self->gpu, &self->ib, 4));
}

/* Each job loses one of the interrupts that it needs. */
TEST_F_TIMEOUT(irq, one_lost, 60)
{
	for (uint32_t i = 2; i < 6; i++) {
		ASSERT_EQ(0, emulator_all(self->port, "irq drop 1"));
		ASSERT_EQ(0, write_word(&self->gpu, &self->ib, i));
	}
}

TEST_F_TIMEOUT(irq, twice, 60)
{
	long before = emulator_count(self->port, "interrupts");

	ASSERT_EQ(0, emulator_all(self->port, "irq duplicate 1000000"));
	for (uint32_t i = 2; i < 52; i++)
		ASSERT_EQ(0, write_word(&self->gpu, &self->ib, i));
	EXPECT_LE(before + 50, emulator_count(self->port, "interrupts"));
}

/*
 * How long the longest of some jobs takes; negative if one fails. A job may end
 * early: any interrupt of the engine reports all of its fences, and that of a
 * kernel job may come first.
 */
static double time_longest(FIXTURE_DATA(irq) *self, uint32_t value,
			   unsigned int jobs)
{
	double s, longest = 0;

	while (jobs--) {
		s = time_job(self, value++);
		if (s < 0)
			return s;
		if (s > longest)
			longest = s;
	}
	return longest;
}

/* Later than the driver's timer, so that many arrive at once. */
TEST_F_TIMEOUT(irq, late, 60)
{
	ASSERT_EQ(0, emulator_all(self->port, "irq delay 50000"));
	EXPECT_LE(0.04, time_longest(self, 2, 5));
	ASSERT_EQ(0, emulator_all(self->port, "irq delay 1500000"));
	EXPECT_LE(0.1, time_longest(self, 7, 3));
	ASSERT_EQ(0, emulator_all(self->port, "irq delay 0"));
	for (uint32_t i = 10; i < 20; i++)
		ASSERT_EQ(0, write_word(&self->gpu, &self->ib, i));
	/* interrupts still in flight reach a driver that has seen all fences */
	usleep(1600000);
	EXPECT_EQ(0, write_word(&self->gpu, &self->ib, 20));
}

TEST_HARNESS_MAIN
