// SPDX-License-Identifier: MIT
// Calls that the driver fails with EAGAIN because memory moved meanwhile are made again.
#include <cstdarg>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/kfd_ioctl.h>

#include "gpu_memory.hpp"
#include "gpu_test.hpp"

using namespace sluice;

namespace {

/// The request that fails, and how often it still will.
struct {
	unsigned long request = 0;
	int times = 0;
} refused;

/// Some requests have a size for each number of attributes.
constexpr unsigned long without_size(unsigned long request)
{
	return request & ~(static_cast<unsigned long>(_IOC_SIZEMASK) << _IOC_SIZESHIFT);
}

struct GpuCallsTest : GpuTest {
	void TearDown() override
	{
		EXPECT_EQ(refused.times, 0) << "the call was not made again";
		refused.times = 0;
	}
	static void refuse(unsigned long request)
	{
		refused = {.request = without_size(request), .times = 2};
	}
};

} // namespace

// Replaces the C library's function in this program.
extern "C" int ioctl(int fd, unsigned long request, ...) noexcept
{
	va_list list;

	va_start(list, request);
	void *argument = va_arg(list, void *);
	va_end(list);
	if (refused.times && without_size(request) == refused.request) {
		refused.times--;
		errno = EAGAIN;
		return -1;
	}
	return static_cast<int>(::syscall(SYS_ioctl, fd, request, argument));
}

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
