// SPDX-License-Identifier: MIT
// Calls that the driver fails: with EAGAIN because memory moved meanwhile, which are made
// again, and others.
#include <cerrno>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/kfd_ioctl.h>

#include "gpu_memory.hpp"
#include "gpu_test.hpp"
#include "ioctl_answers.hpp"

using namespace sluice;
using namespace std::chrono_literals;

namespace {

struct GpuCallsTest : GpuTest {
	void TearDown() override
	{
		EXPECT_TRUE(answers.left.empty()) << "the call was not made again";
		answers.left.clear();
	}
	static void refuse(unsigned long request)
	{
		answers = {.request = request, .left = {EAGAIN, EAGAIN}};
	}
};

} // namespace

TEST_F(GpuCallsTest, ACommandIsSubmittedAgain)
{
	auto from = good(buffer::host(size)), to = good(buffer::host(size));
	batch all;

	put_random(from, 1);
	auto used = gpus[0].inside().use(detail::gpu::way::command);
	ASSERT_GOOD(used);
	for (const auto &memory : {from, to}) {
		auto attached = gpus[0].attach(memory);
		ASSERT_GOOD(attached);
	}
	all.copy(to, from);
	refuse(DRM_IOCTL_AMDGPU_CS);
	run(gpus[0], all);
	EXPECT_BYTES(to.bytes(), from.bytes());
}

// Cancelled work may be started again; this would never succeed.
TEST_F(GpuCallsTest, AResetIsAnErrorOfTheDevice)
{
	auto to = good(buffer::host(size));
	batch all;

	auto used = gpus[0].inside().use(detail::gpu::way::command);
	ASSERT_GOOD(used);
	auto attached = gpus[0].attach(to);
	ASSERT_GOOD(attached);
	all.fill(to, 1);
	answers = {.request = DRM_IOCTL_AMDGPU_CS, .left = {ECANCELED}};
	auto end = gpus[0].submit(all).wait();
	ASSERT_FALSE(end);
	EXPECT_EQ(end.error().code(), errc::device) << end.error().message();
}

// A GPU whose driver has left answers no call about a fence.
TEST_F(GpuCallsTest, ABatchThatEnginesHaveEndsWithoutACallWhenCancelled)
{
	WANTS_BATCHES();
	batch all;

	hold(all);
	all.fill(out, 1);
	auto running = gpus[0].submit(all);
	ASSERT_TRUE(ring.submit());
	answers = {.request = DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD, .left = {ENODEV, ENODEV}};
	running.cancel();
	EXPECT_FALSE(running.wait_until(after(2ms)));
	release();
	EXPECT_EQ(running.wait(), all.bytes());
	EXPECT_EQ(answers.left.size(), 2u);
	answers.left.clear();
}

TEST_F(GpuCallsTest, HostMemoryIsMadeAnObjectAgain)
{
	auto memory = good(buffer::host(size));

	refuse(DRM_IOCTL_AMDGPU_GEM_USERPTR);
	auto attached = detail::attach_memory(gpus[0].inside().node(), memory, true);
	EXPECT_GOOD(attached);
}

TEST_F(GpuCallsTest, SharedMemoryIsRegisteredAgain)
{
	WANTS_BATCHES();
	refuse(AMDKFD_IOC_SVM);
	auto shared = gpus[0].svm(size);
	EXPECT_GOOD(shared);
}

namespace {

/// 0, or the number of the step that failed.
int open_twice(size_t gpus)
{
	auto ring = context::open();

	// The first call looks at all of them, and once more at the one that it is about.
	answers = {.request = AMDKFD_IOC_ACQUIRE_VM,
		   .left = std::deque<int>(gpus + 1, ENOMEM)};
	auto first = device::open(*ring, "0");
	if (first || first.error().number() != ENOMEM)
		return 1;
	if (!answers.left.empty())
		return 2;
	return device::open(*ring, "0") ? 0 : 3;
}

} // namespace

// In a child, which begins without any.
TEST_F(GpuCallsTest, AGpuThatCouldNotBeOpenedIsOpenedLater)
{
	int status = 0;
	pid_t child = ::fork();

	if (child == 0)
		::_exit(open_twice(gpus.size()));
	ASSERT_EQ(::waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0) << WEXITSTATUS(status);
}
