// SPDX-License-Identifier: GPL-2.0
/*
 * The driver is unbound from a device that a process still holds open: the
 * process keeps a dead file, the kernel does not complain, and the driver can
 * be bound to the device again at once.
 */
#include <dirent.h>
#include <pthread.h>

#include "../../../kselftest_harness.h"
#include "amdgpu_import.h"

FIXTURE(unplug) {
	char gpus[MAX_GPUS][32];
	struct gpu gpu;
	struct buffer b;
	int kmsg;
};

FIXTURE_SETUP(unplug)
{
	if (!find_gpus(self->gpus))
		SKIP(return, "no GPU");
	self->kmsg = kmsg_open();
	if (self->kmsg < 0 || geteuid())
		SKIP(return, "only root may do that");
	ASSERT_EQ(0, open_gpu(&self->gpu, self->gpus[0]));
	ASSERT_EQ(0, new_mapped_buffer(&self->gpu, &self->b, 65536,
				       AMDGPU_GEM_DOMAIN_VRAM));
	ASSERT_EQ(0, write_word(&self->gpu, &self->b, 1));
}

FIXTURE_TEARDOWN(unplug)
{
	close(self->kmsg);
}

static int attribute(const char *gpu, const char *name, char *text, size_t size)
{
	char path[300];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", gpu, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, size - 1);
	close(fd);
	if (n < 0)
		return -errno;
	text[n] = 0;
	return 0;
}

static void works(struct __test_metadata *_metadata, const char *name)
{
	struct buffer b;
	struct gpu gpu;

	ASSERT_EQ(0, open_gpu(&gpu, name));
	ASSERT_EQ(0, new_mapped_buffer(&gpu, &b, 65536,
				       AMDGPU_GEM_DOMAIN_VRAM));
	EXPECT_EQ(0, write_word(&gpu, &b, 2));
	munmap(b.cpu, b.size);
	close(gpu.fd);
}

/* Operations of the process on its dead file must fail and do no more. */
static void let_go(struct __test_metadata *_metadata,
		   FIXTURE_DATA(unplug) *self)
{
	struct buffer b;

	EXPECT_GT(0, new_buffer(&self->gpu, &b, 4096, AMDGPU_GEM_DOMAIN_VRAM));
	munmap(self->b.cpu, self->b.size);
	close(self->gpu.fd);
}

/* Count the scheduler threads of the SDMA rings. */
static int count_threads(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	char path[300], name[64];
	int n = 0;

	while (proc && (entry = readdir(proc))) {
		FILE *comm;

		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		comm = fopen(path, "r");
		if (!comm)
			continue;
		if (fgets(name, sizeof(name), comm) && strstr(name, "R-sdma"))
			n++;
		fclose(comm);
	}
	if (proc)
		closedir(proc);
	return n;
}

/* The file is closed between unbind and bind. Nothing is left from before. */
TEST_F(unplug, unbind_close_bind)
{
	const int threads = count_threads();

	ASSERT_LT(0, threads);
	ASSERT_EQ(0, unbind_gpu(self->gpus[0]));
	let_go(_metadata, self);
	EXPECT_GT(threads, count_threads());
	ASSERT_EQ(0, bind_gpu(self->gpus[0]));
	EXPECT_EQ(threads, count_threads());
	works(_metadata, self->gpus[0]);
	EXPECT_EQ(0, kmsg_complaints(self->kmsg));
}

/* The file is closed only after the driver is bound again. */
TEST_F(unplug, unbind_bind_close)
{
	ASSERT_EQ(0, unbind_gpu(self->gpus[0]));
	EXPECT_EQ(0, bind_gpu(self->gpus[0]));
	let_go(_metadata, self);
	works(_metadata, self->gpus[0]);
	EXPECT_EQ(0, kmsg_complaints(self->kmsg));
}

static void *do_reset(void *gpu)
{
	return (void *)(intptr_t)reset_gpu(gpu);
}

/* How a reset ended, in *result, or a negative errno if none can be made. */
static int reset_ends(const char *gpu, int *result)
{
	char path[128], text[32];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path),
		 "/sys/kernel/debug/dri/%s/amdgpu_gpu_recover", gpu);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n < 0)
		return -errno;
	text[n] = 0;
	*result = atoi(text);
	return 0;
}

/*
 * Resets until the file that requests them is gone. Returns the error of a
 * reset that failed; one that did not begin (-ENODEV) has not failed.
 */
static void *do_resets(void *arg)
{
	intptr_t failed = 0;
	int result = 0;

	while (!reset_ends(arg, &result))
		if (result && result != -ENODEV)
			failed = result;
	return (void *)failed;
}

/* The next reset begins when one has ended, whenever the driver is unbound. */
TEST_F_TIMEOUT(unplug, resets_go_on, 200)
{
	pthread_t thread;
	void *failed;
	int i;

	if (reset_gpu(self->gpus[0]))
		SKIP(return, "no debugfs");
	for (i = 0; i < 5; i++) {
		ASSERT_EQ(0, pthread_create(&thread, NULL, do_resets,
					    self->gpus[0]));
		usleep(200000 + i * 50000);
		EXPECT_EQ(0, unbind_gpu(self->gpus[0]));
		pthread_join(thread, &failed);
		EXPECT_EQ(NULL, failed);
		ASSERT_EQ(0, bind_gpu(self->gpus[0]));
	}
	let_go(_metadata, self);
	works(_metadata, self->gpus[0]);
	EXPECT_EQ(0, kmsg_complaints(self->kmsg));
}

/* Unbinding waits for a reset that has begun, however far that is. */
TEST_F_TIMEOUT(unplug, unbind_during_reset, 200)
{
	unsigned int after;
	pthread_t thread;
	void *err;

	if (reset_gpu(self->gpus[0]))
		SKIP(return, "no debugfs");
	for (after = 0; after <= 20; after += 4) {
		ASSERT_EQ(0, pthread_create(&thread, NULL, do_reset,
					    self->gpus[0]));
		usleep(after * 1000);
		EXPECT_EQ(0, unbind_gpu(self->gpus[0]));
		pthread_join(thread, &err);
		EXPECT_EQ(NULL, err);
		ASSERT_EQ(0, bind_gpu(self->gpus[0]));
	}
	let_go(_metadata, self);
	works(_metadata, self->gpus[0]);
	EXPECT_EQ(0, kmsg_complaints(self->kmsg));
}

/*
 * A job hangs, and a buffer that it uses is freed once it has ended. Unbinding
 * begins before the job times out, and from then on there are no more resets.
 */
TEST_F_TIMEOUT(unplug, unbind_with_a_hung_job, 120)
{
	struct buffer freed, *all[] = { &self->b, &freed };
	uint64_t fence;

	ASSERT_EQ(0, new_buffer(&self->gpu, &freed, 65536, AMDGPU_GEM_DOMAIN_VRAM));
	ASSERT_EQ(0, map_gpu(&self->gpu, &freed));
	ASSERT_EQ(0, submit_endless(&self->gpu, all, 2, &fence));
	ASSERT_EQ(0, free_buffer(&self->gpu, &freed));
	EXPECT_EQ(0, unbind_gpu(self->gpus[0]));
	let_go(_metadata, self);
	ASSERT_EQ(0, bind_gpu(self->gpus[0]));
	works(_metadata, self->gpus[0]);
	EXPECT_EQ(0, kmsg_complaints(self->kmsg));
}

/*
 * A job waits for a job of another GPU of the hive, which hangs, and a buffer
 * that it uses is freed once it has ended. While the driver leaves the first
 * GPU, the other one is not reset. Its job ends, and then it is reset.
 */
TEST_F_TIMEOUT(unplug, unbind_with_a_hung_peer, 200)
{
	struct buffer own, shared, theirs, freed;
	struct buffer *there[] = { &own, &theirs };
	struct buffer *here[] = { &self->b, &shared, &freed };
	struct gpu peer;
	uint64_t fence;

	if (!gpu_linked(self->gpus[0]) || !*self->gpus[1] ||
	    !gpu_linked(self->gpus[1]))
		SKIP(return, "no two GPUs that XGMI links");
	ASSERT_EQ(0, open_gpu(&peer, self->gpus[1]));
	ASSERT_EQ(0, new_mapped_buffer(&peer, &own, 65536,
				       AMDGPU_GEM_DOMAIN_VRAM));
	ASSERT_EQ(0, new_buffer(&self->gpu, &shared, 65536, AMDGPU_GEM_DOMAIN_VRAM));
	ASSERT_EQ(0, map_gpu(&self->gpu, &shared));
	ASSERT_EQ(0, new_buffer(&self->gpu, &freed, 65536, AMDGPU_GEM_DOMAIN_VRAM));
	ASSERT_EQ(0, map_gpu(&self->gpu, &freed));
	ASSERT_EQ(0, import(&self->gpu, &shared, &peer, &theirs));

	ASSERT_EQ(0, submit_endless(&peer, there, 2, &fence));
	memset(self->b.cpu, 0, 32);
	ASSERT_EQ(0, submit(&self->gpu, here, 3, 8, &fence));
	ASSERT_EQ(1, wait_fence(&self->gpu, fence, 0.1));
	ASSERT_EQ(0, free_buffer(&self->gpu, &freed));
	EXPECT_EQ(0, unbind_gpu(self->gpus[0]));
	let_go(_metadata, self);

	EXPECT_EQ(0, works_again(&peer, &own));
	munmap(own.cpu, own.size);
	close(peer.fd);
	ASSERT_EQ(0, bind_gpu(self->gpus[0]));
	works(_metadata, self->gpus[0]);
	EXPECT_EQ(0, kmsg_complaints(self->kmsg));
}

/* Attributes from before the unbind must not show a device that is gone. */
TEST_F(unplug, unbind_read_attributes)
{
	static const char * const names[] = {
		"current_memory_partition", "available_memory_partition",
		"current_compute_partition", "available_compute_partition",
		"enforce_isolation", "sdma_reset_mask", "compute_reset_mask",
	};
	char text[4096];

	ASSERT_EQ(0, unbind_gpu(self->gpus[0]));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		EXPECT_EQ(-ENOENT, attribute(self->gpus[0], names[i], text,
					     sizeof(text)))
			TH_LOG("%s", names[i]);
	}
	let_go(_metadata, self);
	ASSERT_EQ(0, bind_gpu(self->gpus[0]));
	EXPECT_EQ(0, kmsg_complaints(self->kmsg));
}

/* The PCI device is removed, and with it its directory in sysfs. */
TEST_F(unplug, remove_close_rescan)
{
	char path[300];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/remove",
		 self->gpus[0]);
	ASSERT_EQ(0, write_file(path, "1"));
	let_go(_metadata, self);
	ASSERT_EQ(0, write_file("/sys/bus/pci/rescan", "1"));
	works(_metadata, self->gpus[0]);
	EXPECT_EQ(0, kmsg_complaints(self->kmsg));
}

TEST_HARNESS_MAIN
