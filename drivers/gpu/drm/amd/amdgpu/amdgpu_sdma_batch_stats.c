// SPDX-License-Identifier: MIT
/*
 * What SDMA batches cost: engine time and bytes of each file, and how large the
 * batches of a device were and how long they took. This also traces when they
 * run and end, and bounds what a file has in flight: how many batches, and how
 * much work for each engine.
 */

#include <linux/bitops.h>
#include <linux/debugfs.h>
#include <linux/dma-fence.h>
#include <linux/kref.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/wait.h>

#include <drm/drm_managed.h>
#include <drm/drm_print.h>

#include "amdgpu.h"
#include "amdgpu_sdma_arena.h"
#include "amdgpu_sdma_batch_limits.h"
#include "amdgpu_sdma_batch_stats.h"
#include "amdgpu_sdma_batch_trace.h"
#include "amdgpu_sdma_batch_turns.h"
#include "amdgpu_sdma_plan.h"

/**
 * DOC: SDMA batch statistics
 *
 * The fdinfo of a file has entries for its batches that have ended:
 *
 * drm-engine-dma
 *	time that their jobs were on the engines, together with that of other
 *	submissions; see Documentation/gpu/drm-usage-stats.rst
 * amd-sdma-batches
 *	their number
 * amd-sdma-batch-bytes
 *	how many they were to write, each destination counted, whether or
 *	not a wait gave up
 *
 * The file amdgpu_sdma_batches in the device's debugfs directory has the number
 * and the bytes of all files' batches, how many failed, and three histograms:
 * of the descriptors, the bytes, and the microseconds from submission to end of
 * each batch. "64:3" means three batches with values from 64 up to 127.
 */

/* Batches that a file may have in flight: as many as have packet memory. */
#define MAX_FILE_BATCHES	1024
/* Slot n counts values that have n significant bits. */
#define SLOTS	40

struct histogram {
	atomic64_t slots[SLOTS];
};

/**
 * struct amdgpu_sdma_batch_dev - a device and its batches in flight
 * @ref: one of the device, one of each batch
 * @batches: number of batches that have ended
 * @failed: number of those with a job that failed
 * @bytes: bytes of all of them
 * @descs: descriptors of each
 * @sizes: bytes of each
 * @latencies: microseconds of each
 * @turns: turns of batches with waits
 * @limits: limits of each batch
 */
struct amdgpu_sdma_batch_dev {
	struct kref ref;
	atomic64_t batches;
	atomic64_t failed;
	atomic64_t bytes;
	struct histogram descs;
	struct histogram sizes;
	struct histogram latencies;
	struct amdgpu_sdma_turns turns;
	struct amdgpu_sdma_batch_limits limits;
};

/**
 * struct amdgpu_sdma_batch_file - a file and its batches in flight
 * @ref: one of the file, one of each batch
 * @lock: protects all but @busy; taken in interrupts
 * @notes: number of batches in flight, and of those about to be submitted
 * @queued: their work for each engine, in bytes
 * @drops: how often there was less of both
 * @ended: one thread is woken when there is; those that wait hand it on
 * @batches: number of batches that have ended
 * @bytes: bytes of all of them
 * @busy: nanoseconds on engines
 */
struct amdgpu_sdma_batch_file {
	struct kref ref;
	spinlock_t lock; /* see above */
	u32 notes;
	u64 queued[AMDGPU_SDMA_MAX_SHARES];
	u32 drops;
	wait_queue_head_t ended;
	u64 batches;
	u64 bytes;
	atomic64_t busy;
};

/* Called when a job runs or has ended; also has what the job is charged. */
struct note_cb {
	struct dma_fence_cb cb;
	struct amdgpu_sdma_batch_note *note;
	struct amdgpu_sdma_turn *turn;
	u64 work;
	u32 engine;
};

/**
 * struct amdgpu_sdma_batch_note - a batch in flight
 * @dev: device that runs it; a reference
 * @file: file that it belongs to; a reference
 * @hangs: of its context; a reference, or NULL
 * @submitted: when the batch was submitted
 * @bytes: bytes that it is to write
 * @descs: number of its descriptors
 * @charged: jobs, the first of @cbs, for which the file is charged
 * @longest_wait: time that all its waits together last at most
 * @context: of the batch's fence
 * @seqno: of the batch's fence
 * @pending: callbacks that have not been called
 * @failed: a job failed
 * @joined: the batch has a fence of its own, which traces its end
 * @traced: the note traces when the batch runs
 * @running: the batch runs
 * @num: number of @cbs
 * @cbs: one for the end of each job, and if @traced one for its start
 */
struct amdgpu_sdma_batch_note {
	struct amdgpu_sdma_batch_dev *dev;
	struct amdgpu_sdma_batch_file *file;
	struct amdgpu_sdma_hangs *hangs;
	ktime_t submitted;
	u64 bytes;
	u32 descs;
	u32 charged;
	ktime_t longest_wait;
	u64 context;
	u64 seqno;
	atomic_t pending;
	bool failed;
	bool joined;
	bool traced;
	bool running;
	unsigned int num;
	struct note_cb cbs[] __counted_by(num);
};

static void count(struct histogram *h, u64 value)
{
	atomic64_inc(&h->slots[min(fls64(value), SLOTS - 1)]);
}

static void batch_dev_release(struct kref *ref)
{
	kfree(container_of(ref, struct amdgpu_sdma_batch_dev, ref));
}

static void batch_dev_put(struct amdgpu_sdma_batch_dev *dev)
{
	kref_put(&dev->ref, batch_dev_release);
}

/*
 * The schedulers are gone, and all jobs that they had have ended. Jobs of a
 * killed process may not have: those wait elsewhere for their dependencies.
 */
static void batch_dev_fini(struct drm_device *ddev, void *data)
{
	struct amdgpu_sdma_batch_dev *dev = data;

	amdgpu_sdma_turns_fini(&dev->turns);
	batch_dev_put(dev);
}

/**
 * amdgpu_sdma_batch_dev_init - prepare a device
 * @adev: device, before its files
 *
 * Returns: 0 or -ENOMEM.
 */
int amdgpu_sdma_batch_dev_init(struct amdgpu_device *adev)
{
	struct amdgpu_sdma_batch_dev *dev;

	dev = kzalloc_obj(*dev);
	if (!dev)
		return -ENOMEM;
	kref_init(&dev->ref);
	amdgpu_sdma_turns_init(&dev->turns);
	adev->sdma.batch_dev = dev;
	return drmm_add_action_or_reset(adev_to_drm(adev), batch_dev_fini, dev);
}

struct amdgpu_sdma_turns *amdgpu_sdma_batch_turns(struct amdgpu_device *adev)
{
	return &adev->sdma.batch_dev->turns;
}

struct amdgpu_sdma_batch_limits *
amdgpu_sdma_batch_limits(struct amdgpu_device *adev)
{
	return &adev->sdma.batch_dev->limits;
}

static void show_histogram(struct seq_file *m, const char *name,
			   struct histogram *h)
{
	unsigned int i;

	seq_puts(m, name);
	for (i = 0; i < SLOTS; i++) {
		u64 n = atomic64_read(&h->slots[i]);

		if (n)
			seq_printf(m, " %llu:%llu", i ? BIT_ULL(i - 1) : 0, n);
	}
	seq_putc(m, '\n');
}

static int amdgpu_sdma_batches_show(struct seq_file *m, void *unused)
{
	struct amdgpu_device *adev = m->private;
	struct amdgpu_sdma_batch_dev *dev = adev->sdma.batch_dev;

	seq_printf(m, "batches %llu\n", atomic64_read(&dev->batches));
	seq_printf(m, "failed %llu\n", atomic64_read(&dev->failed));
	seq_printf(m, "bytes %llu\n", atomic64_read(&dev->bytes));
	show_histogram(m, "descriptors", &dev->descs);
	show_histogram(m, "sizes", &dev->sizes);
	show_histogram(m, "microseconds", &dev->latencies);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(amdgpu_sdma_batches);

void amdgpu_sdma_batch_debugfs_init(struct amdgpu_device *adev)
{
	debugfs_create_file("amdgpu_sdma_batches", 0444,
			    adev_to_drm(adev)->primary->debugfs_root, adev,
			    &amdgpu_sdma_batches_fops);
}

struct amdgpu_sdma_batch_file *amdgpu_sdma_batch_file_create(void)
{
	struct amdgpu_sdma_batch_file *file;

	file = kzalloc_obj(*file, GFP_KERNEL_ACCOUNT);
	if (!file)
		return NULL;
	kref_init(&file->ref);
	spin_lock_init(&file->lock);
	init_waitqueue_head(&file->ended);
	return file;
}

static void file_release(struct kref *ref)
{
	kfree(container_of(ref, struct amdgpu_sdma_batch_file, ref));
}

void amdgpu_sdma_batch_file_put(struct amdgpu_sdma_batch_file *file)
{
	if (file)
		kref_put(&file->ref, file_release);
}

/**
 * amdgpu_sdma_batch_usage - engine time of a file's batches
 * @fpriv: file
 *
 * Returns: nanoseconds, of those that have ended.
 */
u64 amdgpu_sdma_batch_usage(struct amdgpu_fpriv *fpriv)
{
	struct amdgpu_sdma_batch_file *file = amdgpu_sdma_arena_stats(fpriv);

	return file ? atomic64_read(&file->busy) : 0;
}

void amdgpu_sdma_batch_show_fdinfo(struct drm_printer *p,
				   struct amdgpu_fpriv *fpriv)
{
	struct amdgpu_sdma_batch_file *file = amdgpu_sdma_arena_stats(fpriv);
	u64 batches, bytes;

	if (!file)
		return;
	/* Both from the same moment: readers divide one by the other. */
	spin_lock_irq(&file->lock);
	batches = file->batches;
	bytes = file->bytes;
	spin_unlock_irq(&file->lock);
	drm_printf(p, "amd-sdma-batches:\t%llu\n", batches);
	drm_printf(p, "amd-sdma-batch-bytes:\t%llu\n", bytes);
}

struct amdgpu_sdma_hangs *amdgpu_sdma_hangs_create(void)
{
	struct amdgpu_sdma_hangs *hangs;

	hangs = kzalloc_obj(*hangs, GFP_KERNEL_ACCOUNT);
	if (hangs)
		kref_init(&hangs->ref);
	return hangs;
}

static void hangs_release(struct kref *ref)
{
	kfree(container_of(ref, struct amdgpu_sdma_hangs, ref));
}

struct amdgpu_sdma_hangs *amdgpu_sdma_hangs_get(struct amdgpu_sdma_hangs *hangs)
{
	kref_get(&hangs->ref);
	return hangs;
}

/* May be called in an interrupt. */
void amdgpu_sdma_hangs_put(struct amdgpu_sdma_hangs *hangs)
{
	if (hangs)
		kref_put(&hangs->ref, hangs_release);
}

/* An idle engine may be given as much as one batch has. */
static bool has_room(const struct amdgpu_sdma_batch_file *file,
		     const struct amdgpu_sdma_batch_note *note, u64 max)
{
	u32 i;

	for (i = 0; i < note->charged; i++) {
		const struct note_cb *job = &note->cbs[i];
		u64 queued = file->queued[job->engine];

		if (queued && queued + job->work > max)
			return false;
	}
	return true;
}

/* Charges a batch to the file, if the file may have that much in flight. */
static bool file_try_charge(struct amdgpu_sdma_batch_file *file,
			    const struct amdgpu_sdma_batch_note *note, u64 max,
			    u32 *drops)
{
	bool ok;
	u32 i;

	spin_lock_irq(&file->lock);
	*drops = file->drops;
	ok = file->notes < MAX_FILE_BATCHES &&
	     has_room(file, note, max);
	if (ok) {
		file->notes++;
		for (i = 0; i < note->charged; i++)
			file->queued[note->cbs[i].engine] += note->cbs[i].work;
	}
	spin_unlock_irq(&file->lock);
	return ok;
}

/*
 * The end of a batch, maybe an interrupt, wakes one thread, however many there
 * are. That thread may want another engine, or leave some room: so each wakes
 * the next one, unless it was here since the last batch ended.
 */
static int file_wait(struct amdgpu_sdma_batch_file *file,
		     const struct amdgpu_sdma_batch_note *note, u64 max)
{
	u32 drops, seen = 0;
	bool first = true;
	DEFINE_WAIT(wait);
	int r = 0;

	for (;;) {
		prepare_to_wait_exclusive(&file->ended, &wait,
					  TASK_INTERRUPTIBLE);
		if (file_try_charge(file, note, max, &drops))
			break;
		if (signal_pending(current)) {
			r = -ERESTARTSYS;
			break;
		}
		if (first || drops != seen)
			wake_up(&file->ended);
		first = false;
		seen = drops;
		schedule();
	}
	finish_wait(&file->ended, &wait);
	wake_up(&file->ended);
	return r;
}

/*
 * Jobs and their fences are charged to no memory cgroup, and other files wait
 * for their engine: so the number of batches and their work are bounded. The
 * batches that are waited for need nothing of the caller: they end.
 */
static int file_charge(struct amdgpu_sdma_batch_file *file,
		       const struct amdgpu_sdma_batch_note *note, u64 max,
		       bool nonblock)
{
	u32 drops;

	if (file_try_charge(file, note, max, &drops))
		return 0;
	return nonblock ? -EAGAIN : file_wait(file, note, max);
}

static void file_uncharge(struct amdgpu_sdma_batch_file *file,
			  const struct amdgpu_sdma_batch_note *note, bool ended)
{
	unsigned long flags;
	u32 i;

	spin_lock_irqsave(&file->lock, flags);
	if (ended) {
		file->batches++;
		file->bytes += note->bytes;
	}
	file->notes--;
	file->drops++;
	for (i = 0; i < note->charged; i++)
		file->queued[note->cbs[i].engine] -= note->cbs[i].work;
	spin_unlock_irqrestore(&file->lock, flags);
	if (wq_has_sleeper(&file->ended))
		wake_up(&file->ended);
}

/*
 * A note has references to all that it names, because it may outlive the file
 * and the device. If a process is killed, its file is closed at once, but jobs
 * that no ring has got stay until their dependencies have ended. Those may be
 * work of another device, which may take any time.
 */
static struct amdgpu_sdma_batch_note *
note_alloc(struct amdgpu_sdma_batch_dev *dev,
	   struct amdgpu_sdma_batch_file *file, unsigned int num)
{
	struct amdgpu_sdma_batch_note *note;

	note = kzalloc(struct_size(note, cbs, num), GFP_KERNEL_ACCOUNT);
	if (!note)
		return NULL;
	note->num = num;
	kref_get(&dev->ref);
	note->dev = dev;
	kref_get(&file->ref);
	note->file = file;
	return note;
}

/* May be called in an interrupt. Jobs in line need the device's turns. */
static void note_release(struct amdgpu_sdma_batch_note *note)
{
	unsigned int i;

	for (i = 0; i < note->num; i++)
		amdgpu_sdma_turn_put(note->cbs[i].turn);
	amdgpu_sdma_hangs_put(note->hangs);
	amdgpu_sdma_batch_file_put(note->file);
	batch_dev_put(note->dev);
	kfree(note);
}

static int note_fill(struct amdgpu_sdma_batch_note *note,
		     const struct amdgpu_sdma_batch_charge *charge)
{
	unsigned int i;

	for (i = 0; i < charge->jobs; i++) {
		struct note_cb *job = &note->cbs[i];

		job->engine = charge->engines[i];
		job->work = charge->work[i];
		if (!charge->longest_wait)
			continue;
		job->turn = amdgpu_sdma_turn_create(&note->dev->turns,
						    job->engine);
		if (!job->turn)
			return -ENOMEM;
	}
	note->hangs = amdgpu_sdma_hangs_get(charge->hangs);
	note->charged = charge->jobs;
	note->longest_wait = ns_to_ktime(charge->longest_wait);
	return 0;
}

/**
 * amdgpu_sdma_batch_note_create - prepare to account for a batch
 * @adev: device
 * @fpriv: file that has got a chunk
 * @charge: what the batch is charged
 *
 * Waits for earlier batches of the file if it has too many in flight, or too
 * much work for one of the engines. The caller holds no reservation.
 *
 * Returns: a note to arm or free, or an ERR_PTR(): -ENOMEM, -EAGAIN instead of
 * waiting, or -ERESTARTSYS if a signal came.
 */
struct amdgpu_sdma_batch_note *
amdgpu_sdma_batch_note_create(struct amdgpu_device *adev,
			      struct amdgpu_fpriv *fpriv,
			      const struct amdgpu_sdma_batch_charge *charge)
{
	bool traced = trace_amdgpu_sdma_batch_run_enabled();
	unsigned int num_cbs = traced ? 2 * charge->jobs : charge->jobs;
	struct amdgpu_sdma_batch_note *note;
	int r;

	note = note_alloc(adev->sdma.batch_dev, amdgpu_sdma_arena_stats(fpriv),
			  num_cbs);
	if (!note)
		return ERR_PTR(-ENOMEM);
	note->traced = traced;
	r = note_fill(note, charge);
	if (!r)
		r = file_charge(note->file, note, charge->max_work,
				charge->nonblock);
	if (!r)
		return note;
	note_release(note);
	return ERR_PTR(r);
}

/**
 * amdgpu_sdma_batch_note_drop - drop a job that has nothing to do
 * @note: not armed
 * @job: its index; those after it move up, as the jobs do
 *
 * The job is not pushed. The file is not charged for it, and it needs no turn.
 */
void amdgpu_sdma_batch_note_drop(struct amdgpu_sdma_batch_note *note,
				 unsigned int job)
{
	struct note_cb dropped = note->cbs[job];

	note->charged--;
	memmove(&note->cbs[job], &note->cbs[job + 1],
		(note->charged - job) * sizeof(note->cbs[0]));
	note->cbs[note->charged] = (struct note_cb) { };
	spin_lock_irq(&note->file->lock);
	note->file->queued[dropped.engine] -= dropped.work;
	note->file->drops++;
	spin_unlock_irq(&note->file->lock);
	wake_up(&note->file->ended);
	amdgpu_sdma_turn_put(dropped.turn);
}

/**
 * amdgpu_sdma_batch_note_free - drop a note
 * @note: never armed; or NULL
 */
void amdgpu_sdma_batch_note_free(struct amdgpu_sdma_batch_note *note)
{
	if (!note)
		return;
	file_uncharge(note->file, note, false);
	note_release(note);
}

/* A job that was never scheduled has not been on an engine. */
static s64 job_time(struct dma_fence *finished)
{
	struct drm_sched_fence *s_fence = to_drm_sched_fence(finished);

	if (!test_bit(DMA_FENCE_FLAG_TIMESTAMP_BIT, &s_fence->scheduled.flags))
		return 0;
	return ktime_to_ns(ktime_sub(finished->timestamp,
				     s_fence->scheduled.timestamp));
}

static void note_end(struct amdgpu_sdma_batch_note *note, ktime_t end)
{
	struct amdgpu_sdma_batch_dev *dev = note->dev;
	s64 us = ktime_us_delta(end, note->submitted);

	atomic64_inc(&dev->batches);
	atomic64_add(note->bytes, &dev->bytes);
	if (READ_ONCE(note->failed))
		atomic64_inc(&dev->failed);
	count(&dev->descs, note->descs);
	count(&dev->sizes, note->bytes);
	count(&dev->latencies, max(us, 0LL));
	file_uncharge(note->file, note, true);
	note_release(note);
}

/* The file may be closed by now, and the device gone: see note_alloc(). */
static void note_job_done(struct dma_fence *finished, struct dma_fence_cb *cb)
{
	struct note_cb *ncb = container_of(cb, struct note_cb, cb);
	struct amdgpu_sdma_batch_note *note = ncb->note;
	ktime_t end = finished->timestamp;
	s64 time = job_time(finished);

	atomic64_add(time, &note->file->busy);
	amdgpu_sdma_turn_end(ncb->turn, min(ns_to_ktime(time),
					    note->longest_wait));
	if (finished->error)
		WRITE_ONCE(note->failed, true);
	/* Not that of a wait: the fence that joins a batch's jobs has it. */
	if (finished->error == -ETIME)
		set_bit(ncb->engine, &note->hangs->engines);
	if (!note->joined)
		trace_amdgpu_sdma_batch_done(finished, finished->error);
	/* Orders the failure stores of all jobs before the last job's reads. */
	if (atomic_dec_and_test(&note->pending))
		note_end(note, end);
}

/* The scheduler calls a dropped job scheduled, too, before it ends. */
static void note_job_runs(struct dma_fence *scheduled, struct dma_fence_cb *cb)
{
	struct note_cb *ncb = container_of(cb, struct note_cb, cb);
	struct amdgpu_sdma_batch_note *note = ncb->note;

	if (!xchg(&note->running, true))
		trace_amdgpu_sdma_batch_run(note->context, note->seqno,
					    ncb->engine);
	if (atomic_dec_and_test(&note->pending))
		note_end(note, ktime_get());
}

static void note_watch(struct amdgpu_sdma_batch_note *note, unsigned int i,
		       struct dma_fence *fence, dma_fence_func_t called)
{
	note->cbs[i].note = note;
	/* The job is not pushed, so the fence is not signaled. */
	if (dma_fence_add_callback(fence, &note->cbs[i].cb, called))
		called(fence, &note->cbs[i].cb);
}

/**
 * amdgpu_sdma_batch_note_arm - account for a batch from now on
 * @note: freed when the last job has ended
 * @jobs: armed and not pushed
 * @num: number of @jobs, not more than the note was made for
 * @plan: of the batch
 * @joined: fence of all jobs, or NULL if it is that of the only one
 *
 * Cannot fail. Comes before any other callback on the jobs' fences: a callback
 * that sees the end of the batch sees the batch accounted for.
 */
void amdgpu_sdma_batch_note_arm(struct amdgpu_sdma_batch_note *note,
				struct amdgpu_job *const *jobs,
				unsigned int num,
				const struct amdgpu_sdma_plan *plan,
				const struct dma_fence *joined)
{
	const struct dma_fence *fence = joined ? joined :
					&jobs[0]->base.s_fence->finished;
	unsigned int i;

	note->submitted = ktime_get();
	note->bytes = plan->moved;
	note->descs = plan->num;
	note->joined = joined;
	note->context = fence->context;
	note->seqno = fence->seqno;
	atomic_set(&note->pending, note->traced ? 2 * num : num);
	for (i = 0; i < num; i++) {
		struct drm_sched_fence *s_fence = jobs[i]->base.s_fence;

		jobs[i]->sdma_turn = note->cbs[i].turn;
		note_watch(note, i, &s_fence->finished, note_job_done);
		if (!note->traced)
			continue;
		note->cbs[num + i].engine = note->cbs[i].engine;
		note_watch(note, num + i, &s_fence->scheduled, note_job_runs);
	}
}
