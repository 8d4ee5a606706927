// SPDX-License-Identifier: GPL-2.0
/*
 * Each allocation and each copy from or to user space of
 * DRM_IOCTL_AMDGPU_SDMA_BATCH fails once. A call that fails has done nothing,
 * and the next one works. Needs CONFIG_FAULT_INJECTION with failslab and
 * fail_page_alloc.
 *
 * By io_uring, the task that submits makes the call at once, or has a worker
 * make it, for which nothing fails.
 */
#include "../../../kselftest_harness.h"
#include "../../../kselftest_fail_nth.h"
#include "sdma_svm.h"
#include "sdma_uring.h"

#define VA		(1024 * MIB)
#define SIZE		(4 * MIB)
#define USER_VA		(VA + SIZE)
#define USER_SIZE	(64 * KIB)
#define MAX_NTH		1000
/* A worker may allocate instead: end after so many calls without a failure. */
#define LAST_CALLS	3
#define MAX_DESCS	64

enum kind {
	COPY, MANY, FAN_OUT, WAIT, SWAP, FENCES, STRIDE, PREPARE, RUN, URING,
};

/*
 * The memory that the call reads: buffers, user pointers of GEM and of the
 * compute driver, or SVM memory: without retry faults; with them; of a file,
 * whose pages have to be faulted in. MIGRATE is SVM memory that it writes, for
 * which pages are brought to the GPU.
 */
enum memory {
	BUFFER, USER, KFD_USER, SVM, XNACK, FAULT, MIGRATE,
};

FIXTURE(fail)
{
	struct gpu gpu;
	struct buffer buffer;
	struct buffer user;	/* memory that is not BUFFER */
	enum memory memory;
	struct kfd kfd;
	struct svm svm;
	struct io_uring ring;
	uint32_t syncobj;
	uint32_t prepared;	/* what RUN runs */
	int nth;
};

FIXTURE_VARIANT(fail)
{
	enum kind kind;
	enum memory memory;
	/* Each call is the first of a file and of a context. */
	bool anew;
};

FIXTURE_VARIANT_ADD(fail, copy) { .kind = COPY, };
FIXTURE_VARIANT_ADD(fail, first_copy) { .kind = COPY, .anew = true, };
FIXTURE_VARIANT_ADD(fail, many) { .kind = MANY, };
FIXTURE_VARIANT_ADD(fail, fan_out) { .kind = FAN_OUT, };
FIXTURE_VARIANT_ADD(fail, wait) { .kind = WAIT, };
FIXTURE_VARIANT_ADD(fail, first_wait) { .kind = WAIT, .anew = true, };
FIXTURE_VARIANT_ADD(fail, first_swap) { .kind = SWAP, .anew = true, };
FIXTURE_VARIANT_ADD(fail, fences) { .kind = FENCES, };
FIXTURE_VARIANT_ADD(fail, stride) { .kind = STRIDE, };
FIXTURE_VARIANT_ADD(fail, prepare) { .kind = PREPARE, };
FIXTURE_VARIANT_ADD(fail, first_prepare) { .kind = PREPARE, .anew = true, };
FIXTURE_VARIANT_ADD(fail, run) { .kind = RUN, };
FIXTURE_VARIANT_ADD(fail, first_run) { .kind = RUN, .anew = true, };
FIXTURE_VARIANT_ADD(fail, uring) { .kind = URING, };
FIXTURE_VARIANT_ADD(fail, first_uring) { .kind = URING, .anew = true, };
FIXTURE_VARIANT_ADD(fail, user) { .memory = USER, };
FIXTURE_VARIANT_ADD(fail, first_user) { .memory = USER, .anew = true, };
FIXTURE_VARIANT_ADD(fail, run_user) { .kind = RUN, .memory = USER, };
FIXTURE_VARIANT_ADD(fail, kfd_user) { .memory = KFD_USER, };
FIXTURE_VARIANT_ADD(fail, run_kfd_user) { .kind = RUN, .memory = KFD_USER, };
/* A window has to be opened, or pages have to be faulted in as well. */
FIXTURE_VARIANT_ADD(fail, svm) { .memory = SVM, };
FIXTURE_VARIANT_ADD(fail, run_svm) { .kind = RUN, .memory = SVM, };
FIXTURE_VARIANT_ADD(fail, uring_svm) { .kind = URING, .memory = SVM, };
FIXTURE_VARIANT_ADD(fail, xnack) { .memory = XNACK, };
FIXTURE_VARIANT_ADD(fail, run_xnack) { .kind = RUN, .memory = XNACK, };
FIXTURE_VARIANT_ADD(fail, fault) { .memory = FAULT, };
FIXTURE_VARIANT_ADD(fail, run_fault) { .kind = RUN, .memory = FAULT, };
FIXTURE_VARIANT_ADD(fail, migrate) { .memory = MIGRATE, };

/* The @i-th copy, each at another place; user memory has only one place. */
static struct drm_amdgpu_sdma_desc nth_copy(struct _test_data_fail *self,
					    uint32_t i)
{
	struct drm_amdgpu_sdma_desc d =
		copy_desc(VA + 4 * KIB + i * 32 * KIB,
			  VA + SIZE / 2 + i * 32 * KIB + 1, 16 * KIB);

	if (self->memory == MIGRATE)
		d.dst = self->user.va + 1;
	else if (self->memory != BUFFER)
		d.src = self->user.va + 4 * KIB;
	if (self->memory >= FAULT)
		d.flags = AMDGPU_SDMA_DESC_FAULT;
	return d;
}

/* For RUN. */
static int prepare_copy(struct _test_data_fail *self)
{
	const struct drm_amdgpu_sdma_desc d = nth_copy(self, 0);

	return prepare(&self->gpu, &d, 1, &self->prepared);
}

/* Map a file, whose pages the process does not have until it touches them. */
static int map_file(struct _test_data_fail *self)
{
	int fd = memfd_create("svm", 0);
	void *at = self->user.cpu;

	if (fd < 0 || ftruncate(fd, USER_SIZE))
		return -errno;
	at = mmap(at, USER_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		  fd, 0);
	close(fd);
	return at == self->user.cpu ? 0 : -errno;
}

/* Have pages that do not exist yet allocated in video memory. */
static int prefer_gpu(struct _test_data_fail *self)
{
	const struct kfd_ioctl_svm_attribute attr = {
		KFD_IOCTL_SVM_ATTR_PREFERRED_LOC, self->svm.gpu[0].id
	};

	return svm_set(&self->svm, self->user.cpu, USER_SIZE, &attr, 1);
}

static int open_svm(struct _test_data_fail *self)
{
	int ret = kfd_open(&self->kfd, &self->gpu);

	/* without retry faults the compute driver would get the pages itself */
	if (!ret && self->memory != SVM)
		ret = svm_enable_xnack(self->kfd.fd);
	if (ret)
		return ret;
	self->svm = svm_of(&self->kfd, &self->gpu);
	self->user.cpu = svm_map(USER_SIZE);
	if (!self->user.cpu)
		return -ENOMEM;
	self->user.va = (uintptr_t)self->user.cpu;
	self->user.size = USER_SIZE;
	/* for RUN there has to be memory when the batch is prepared */
	if (self->memory == FAULT)
		ret = map_file(self);
	else if (self->memory != MIGRATE)
		memset(self->user.cpu, 0, USER_SIZE);
	if (!ret)
		ret = svm_access(&self->svm, self->user.cpu, USER_SIZE,
				 &self->svm.gpu[0]);
	if (!ret && self->memory == MIGRATE)
		ret = prefer_gpu(self);
	return ret;
}

static int open_kfd_user(struct _test_data_fail *self)
{
	int ret = kfd_open(&self->kfd, &self->gpu);
	uint64_t addr, handle;

	if (ret)
		return ret;
	self->user.cpu = mmap(NULL, USER_SIZE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if ((void *)self->user.cpu == MAP_FAILED)
		return -errno;
	self->user.va = USER_VA;
	self->user.size = USER_SIZE;
	addr = (uintptr_t)self->user.cpu;
	ret = kfd_alloc(&self->kfd, USER_VA, USER_SIZE,
			KFD_IOC_ALLOC_MEM_FLAGS_USERPTR |
			KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE, &addr, &handle);
	return ret ? ret : kfd_map(&self->kfd, handle);
}

static int open_user(struct _test_data_fail *self)
{
	switch (self->memory) {
	case BUFFER:
		return 0;
	case USER:
		return buffer_user(&self->gpu, &self->user, USER_SIZE, USER_VA,
				   AMDGPU_GEM_USERPTR_REGISTER);
	case KFD_USER:
		return open_kfd_user(self);
	default:
		return open_svm(self);
	}
}

static int open_all(struct _test_data_fail *self, enum kind kind)
{
	int ret = gpu_open(&self->gpu, 0);

	if (ret)
		return ret;
	ret = buffer_map(&self->gpu, &self->buffer, SIZE,
			 AMDGPU_GEM_DOMAIN_VRAM, VA);
	if (!ret)
		ret = syncobj_new(&self->gpu, &self->syncobj);
	if (!ret)
		ret = open_user(self);
	if (!ret && kind == RUN)
		ret = prepare_copy(self);
	return ret;
}

static void close_all(struct _test_data_fail *self)
{
	buffer_free(&self->gpu, &self->buffer);
	buffer_free(&self->gpu, &self->user);
	close(self->gpu.fd);
	self->gpu.fd = -1;
}

FIXTURE_SETUP(fail)
{
	self->nth = -1;
	self->memory = variant->memory;
	if (gpu_open(&self->gpu, 0))
		SKIP(return, "no GPU with SDMA batches");
	close(self->gpu.fd);
	self->gpu.fd = -1;
	if (self->memory >= KFD_USER && kfd_node_of(self->gpu.name) < 0)
		SKIP(return, "the compute driver does not have this GPU");
	if (self->memory >= SVM &&
	    !(self->gpu.info.features & AMDGPU_SDMA_FEATURE_SVM))
		SKIP(return, "no SVM memory");
	if (!nth_available())
		SKIP(return, "no fault injection in this kernel");
	if (variant->kind == URING && io_uring_queue_init(8, &self->ring, 0))
		SKIP(return, "no io_uring");
	ASSERT_EQ(0, open_all(self, variant->kind));
	self->nth = nth_open();
	ASSERT_LE(0, self->nth);
}

FIXTURE_TEARDOWN(fail)
{
	if (self->gpu.fd >= 0)
		close_all(self);
}

struct call {
	struct drm_amdgpu_sdma_desc d[MAX_DESCS];
	struct drm_amdgpu_sdma_fence in, out[2];
	struct drm_amdgpu_sdma_batch batch;
};

static void make_call(struct _test_data_fail *self, enum kind kind,
		      struct call *c)
{
	uint32_t i, n = 1;

	memset(c, 0, sizeof(*c));
	if (kind == MANY || kind == FAN_OUT)
		n = MAX_DESCS;
	/* in descending order, so that overlaps are looked for */
	for (i = 0; i < n; i++)
		c->d[i] = nth_copy(self, n - 1 - i);
	if (kind == SWAP)
		c->d[0].op = AMDGPU_SDMA_OP_SWAP;
	c->batch = batch_of(&self->gpu, c->d, n);
	if (kind == WAIT) {
		c->d[1] = c->d[0];
		c->d[0] = (struct drm_amdgpu_sdma_desc) {
			.op = AMDGPU_SDMA_OP_WAIT, .src = VA, .mask = ~0u,
			.timeout_ns = wait_ns(&self->gpu, 3),
		};
		c->batch.num_descs = 2;
	}
	if (kind == FAN_OUT)
		c->batch.placement = AMDGPU_SDMA_PLACE_FAN_OUT;
	if (kind == RUN)
		c->batch = run_of(&self->gpu, self->prepared);
	if (kind == STRIDE)
		c->batch.desc_stride = AMDGPU_SDMA_DESC_SIZE_MIN;
	if (kind == PREPARE) {
		c->batch.op = AMDGPU_SDMA_BATCH_PREPARE;
		return;
	}
	c->out[0].handle = self->syncobj;
	c->batch.out_fences = (uintptr_t)c->out;
	c->batch.num_out_fences = 1;
	if (kind == FENCES) {
		c->out[1].handle = self->syncobj;
		c->out[0].point = 1;
		c->batch.num_out_fences = 2;
	}
}

/* New pages, which the call has to get, with the contents of the buffer. */
static void reset_user(struct _test_data_fail *self)
{
	uint8_t *at = self->user.cpu;

	madvise(at, USER_SIZE, MADV_DONTNEED);
	if (self->memory == MIGRATE)
		return;
	memcpy(at, self->buffer.cpu, USER_SIZE);
	/* the file keeps the data */
	if (self->memory == FAULT)
		madvise(at, USER_SIZE, MADV_DONTNEED);
	/* now, or the compute driver gets the pages before the call does */
	if (self->memory == KFD_USER) {
		mprotect(at, USER_SIZE, PROT_READ);
		mprotect(at, USER_SIZE, PROT_READ | PROT_WRITE);
	}
}

static void reset_memory(struct _test_data_fail *self)
{
	size_t i;

	for (i = 0; i < SIZE / 2; i++)
		self->buffer.cpu[i] = i < 4 ? 0 : i * 7 + (i >> 8);
	memset(self->buffer.cpu + SIZE / 2, 0, SIZE / 2);
	if (self->memory != BUFFER)
		reset_user(self);
}

/* The offset of an address in the memory that it belongs to. */
static uint64_t place(struct _test_data_fail *self, uint64_t va)
{
	return va - (va >= VA && va < VA + SIZE ? VA : self->user.va);
}

static bool copied(struct _test_data_fail *self, const struct call *c)
{
	const struct drm_amdgpu_sdma_desc *d =
		&c->d[c->batch.num_descs == 2];
	const uint64_t src = place(self, d->src);
	const uint8_t *dst = place(self, d->dst) +
		(self->memory == MIGRATE ? self->user.cpu : self->buffer.cpu);
	size_t i;

	/* for a swap: before it, the destination was zero */
	for (i = 0; i < d->size; i++)
		if (dst[i] != (uint8_t)((src + i) * 7 + ((src + i) >> 8)))
			return false;
	return true;
}

static bool untouched(struct _test_data_fail *self)
{
	return all_are(self->buffer.cpu + SIZE / 2, SIZE / 2, 0) &&
	       (self->memory != MIGRATE ||
		all_are(self->user.cpu, USER_SIZE, 0));
}

static int syncobj_reset(struct gpu *gpu, uint32_t handle)
{
	struct drm_syncobj_array arg = {
		.handles = (uintptr_t)&handle,
		.count_handles = 1,
	};

	return gpu_ioctl(gpu, DRM_IOCTL_SYNCOBJ_RESET, &arg);
}

/* What follows for io_uring is a wait, in which nothing may fail. */
static int begin(struct _test_data_fail *self, enum kind kind, struct call *c)
{
	if (kind == URING)
		return submit_by(&self->ring, &self->gpu, &c->batch);
	return ioctl(self->gpu.fd, DRM_IOCTL_AMDGPU_SDMA_BATCH, &c->batch) ?
		-errno : 0;
}

static int make(struct _test_data_fail *self, enum kind kind, struct call *c)
{
	int ret = begin(self, kind, c);

	if (!ret && kind == URING)
		ret = next_result(&self->ring, NULL);
	return ret;
}

/* Run the prepared batch once, and forget it. */
static int run_once(struct _test_data_fail *self, struct call *c)
{
	struct drm_amdgpu_sdma_fence out = { .handle = self->syncobj };
	struct drm_amdgpu_sdma_batch run = run_of(&self->gpu, c->batch.handle);
	int ret;

	run.out_fences = (uintptr_t)&out;
	run.num_out_fences = 1;
	ret = batch_submit(&self->gpu, &run);
	return ret ? ret : forget(&self->gpu, c->batch.handle);
}

/*
 * A call that failed has left no fence, and nothing will run. But if only its
 * answer could not be written, everything else was done.
 */
static void check_failed(struct __test_metadata *_metadata,
			 struct _test_data_fail *self, int ret, bool *taken)
{
	*taken = syncobj_status(&self->gpu, self->syncobj) != -EINVAL;
	if (ret == -EFAULT)
		return;
	ASSERT_EQ(-ENOMEM, ret);
	ASSERT_FALSE(*taken);
	ASSERT_TRUE(untouched(self));
}

/* Make the call with allocation @nth failing, then again without a failure. */
static void try_nth(struct __test_metadata *_metadata,
		    struct _test_data_fail *self, enum kind kind,
		    unsigned int nth, bool *more)
{
	bool taken = true;
	struct call c;
	int ret;

	make_call(self, kind, &c);
	reset_memory(self);
	ASSERT_EQ(0, syncobj_reset(&self->gpu, self->syncobj));
	nth_arm(self->nth, nth);
	ret = begin(self, kind, &c);
	*more = nth_disarm(self->nth);
	if (!ret && kind == URING)
		ret = next_result(&self->ring, NULL);
	/* io_uring had no memory to have a worker make the call */
	if (ret == -ECANCELED && kind == URING)
		ret = -ENOMEM;
	if (ret) {
		ASSERT_TRUE(*more) TH_LOG("fails without a failure: %d", ret);
		check_failed(_metadata, self, ret, &taken);
	}
	if (!taken) {
		make_call(self, kind, &c);
		ASSERT_EQ(0, make(self, kind, &c))
			TH_LOG("after allocation %u", nth);
	}
	if (kind == PREPARE) {
		ASSERT_TRUE(untouched(self));
		ASSERT_EQ(0, run_once(self, &c));
	}
	ASSERT_EQ(0, syncobj_wait(&self->gpu, self->syncobj, 0, WAIT_SECONDS));
	/* with a failure, the pages may be in system memory instead */
	if (self->memory == MIGRATE && !*more)
		EXPECT_EQ(0, svm_here(&self->svm, self->user.cpu, USER_SIZE));
	ASSERT_TRUE(copied(self, &c)) TH_LOG("allocation %u", nth);
}

TEST_F_TIMEOUT(fail, sweep, 280)
{
	unsigned int nth, last = 0;
	struct call c;
	bool more;

	if (variant->kind == URING) {
		/* what the ring allocates for all calls is not amdgpu's */
		reset_memory(self);
		make_call(self, URING, &c);
		ASSERT_EQ(0, make(self, URING, &c));
	}
	for (nth = 1; last < LAST_CALLS && nth < MAX_NTH; nth++) {
		if (variant->anew) {
			close_all(self);
			ASSERT_EQ(0, open_all(self, variant->kind));
		}
		try_nth(_metadata, self, variant->kind, nth, &more);
		last = more ? 0 : last + 1;
	}
	EXPECT_FALSE(more) TH_LOG("more than %d allocations", MAX_NTH);
	/* each call has at least one allocation: did it fail? */
	EXPECT_LT(1 + LAST_CALLS, nth);
}

TEST_HARNESS_MAIN
