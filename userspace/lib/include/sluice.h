/* SPDX-License-Identifier: MIT */
/*
 * libsluice for C: move buffers between files, the memory of GPUs and other machines.
 *
 * libsluice(3) is an overview; the C++ headers in sluice/ declare what this calls.
 *
 * Return values. Functions that return int return 0 or a negative errno.
 * sluice_last_error() tells more: the name of what failed, and what to do. Results are
 * stored through the last argument, which an error leaves unchanged. The numbers:
 *
 *	-EINVAL		an argument makes no sense; the error names it
 *	-ENOMEM		there is not enough memory
 *	-EIO		a device failed or is missing; or no errno applies, as when
 *			a file ends early
 *	-EOPNOTSUPP	the kernel, the device or this library cannot do it
 *	-ENOLINK	no path, or another one than was required
 *	-EBUSY		too much is in flight; the same call may succeed later
 *	-EINPROGRESS	not done by the deadline; it continues
 *	-ETIMEDOUT	not done in time, and given up
 *	-ESTALE		what it was prepared for no longer exists
 *	-ECANCELED	it was cancelled
 *	-ECONNRESET	the peer went away
 *	-EREMOTEIO	the peer reported an error and gave up
 *	-EACCES		the peer did not prove that it has permission
 *	-EPROTO		the peer broke the protocol
 *	-EBADMSG	the data that arrived are not the data that were sent
 *
 * and what a system call returned, e.g. -EBADF for a file, -ENOSPC for a full disk. A
 * function that starts an operation fails for bad arguments (-EINVAL); unless it says
 * otherwise, all other errors that are named there are those of the operation.
 *
 * Handles are made by functions whose last argument is a pointer to one, and released
 * by the free or close function of their kind, which accepts NULL as well. They may be
 * released in any order: each keeps what it needs alive. Freeing an operation waits
 * until no device of this process accesses its memory any more.
 *
 * Threads. A context and all that was opened on it (operations, devices, prepared
 * batches, groups, collectives, processes, cards, listeners, endpoints, streams) belong
 * to the thread that opened the context. Another thread must not use them: its waits
 * return -EINVAL, its polls 0, and if it frees something in flight, the process ends.
 * Buffers and topologies may be used by all threads. Different contexts are independent
 * of each other.
 * A fork()ed child must not use what its parent opened.
 *
 * Time is in nanoseconds of CLOCK_MONOTONIC; sizes and offsets are in bytes.
 *
 * Structures with a `size` grow in later versions. Set it to the sizeof of the
 * structure, and unused members to 0, which stands for the default. A structure may be
 * longer than the library knows if the rest is 0. Text in them ends with a 0 byte, and
 * is truncated if it is too long.
 *
 * The ABI: within libsluice.so.0, symbols do not change, nor do structures without a
 * `size`; new ones may be added.
 */
#ifndef SLUICE_H
#define SLUICE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define SLUICE_API __attribute__((visibility("default")))
#else
#define SLUICE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define SLUICE_VERSION_MAJOR 0
#define SLUICE_VERSION_MINOR 1

/* The version of the library that runs, "0.1". Any thread. */
SLUICE_API const char *sluice_version(void);

/* ---------------------------------------------------------------- errors */

enum sluice_error_code {
	SLUICE_ERROR_NONE,
	SLUICE_ERROR_USAGE,  /* an argument makes no sense */
	SLUICE_ERROR_SYSTEM, /* a system call failed for another reason */
	SLUICE_ERROR_INPUT,  /* a file that is read */
	SLUICE_ERROR_OUTPUT, /* a file that is written */
	SLUICE_ERROR_DEVICE, /* a device is missing, refuses, or failed */
	SLUICE_ERROR_UNSUPPORTED,
	SLUICE_ERROR_NO_PATH,
	SLUICE_ERROR_BUSY,
	SLUICE_ERROR_STALE,
	SLUICE_ERROR_PEER_LOST,
	SLUICE_ERROR_PEER_ERROR,
	SLUICE_ERROR_DENIED,
	SLUICE_ERROR_PROTOCOL,
	SLUICE_ERROR_TIMEOUT,
	SLUICE_ERROR_CANCELLED,
	SLUICE_ERROR_CORRUPT
};

#define SLUICE_NO_INDEX UINT32_MAX

/* Made by the library; `size` says how much of it is there. */
struct sluice_error {
	size_t size;
	int32_t code;	      /* enum sluice_error_code */
	int32_t returned;     /* what the function returned: a negative errno */
	int32_t system_errno; /* of the system call that failed, or 0 */
	uint32_t index;	      /* of the element at fault, e.g. of a batch, or
				 * SLUICE_NO_INDEX */
	const char *where;    /* the thing that failed: a file, a device, a peer */
	const char *message;  /* "where: what is wrong with it" */
	const char *remedy;   /* what to do about it */
};

/*
 * The last error of a function that this thread called; never NULL. A call that
 * succeeds leaves it unchanged. It belongs to the library, and changes with the next
 * error of this thread.
 */
SLUICE_API const struct sluice_error *sluice_last_error(void);

/* The short name of an enum sluice_error_code: "timeout". "?" if there is none. */
SLUICE_API const char *sluice_error_name(int code);

/* ------------------------------------------------------------------ time */

/* As a deadline: no limit. A deadline in the past, e.g. 0, means: do not wait. */
#define SLUICE_NEVER INT64_MAX

/* The deadline @ns nanoseconds from now. Any thread. */
SLUICE_API int64_t sluice_after(int64_t ns);

/* --------------------------------------------------------------- handles */

typedef struct sluice_context sluice_context;
typedef struct sluice_operation sluice_operation;
typedef struct sluice_buffer sluice_buffer;
typedef struct sluice_device sluice_device;
typedef struct sluice_batch sluice_batch;
typedef struct sluice_prepared sluice_prepared;
typedef struct sluice_group sluice_group;
typedef struct sluice_collective sluice_collective;
typedef struct sluice_processes sluice_processes;
typedef struct sluice_host_group sluice_host_group;
typedef struct sluice_host_collective sluice_host_collective;
typedef struct sluice_nic sluice_nic;
typedef struct sluice_listener sluice_listener;
typedef struct sluice_endpoint sluice_endpoint;
typedef struct sluice_sender sluice_sender;
typedef struct sluice_receiver sluice_receiver;
typedef struct sluice_topology sluice_topology;

/*
 * Part of a buffer. This structure never grows. A function that takes one reads it
 * during the call only, and keeps the buffer's memory alive if it needs it.
 */
struct sluice_slice {
	sluice_buffer *buffer;
	uint64_t offset;
	uint64_t length; /* SLUICE_TO_END: up to the end of the buffer */
};

#define SLUICE_TO_END UINT64_MAX

/* --------------------------------------------------------------- context */

struct sluice_context_options {
	size_t size;
	uint32_t operations; /* that exist at once, at most, done or not; streams have
				* some, too. 1 to 65536; 0: 1024 */
	uint32_t reserved;
};

/*
 * Open a context: one io_uring, and the only place where anything waits.
 * @options: NULL for the default
 * -EOPNOTSUPP if this process may not use io_uring.
 */
SLUICE_API int sluice_context_open(const struct sluice_context_options *options,
				   sluice_context **context);

/* What was opened on it continues, and keeps it alive. */
SLUICE_API void sluice_context_close(sluice_context *context);

/*
 * Reap completions; if there are none, wait for one. Streams make progress here, and in
 * the poll and wait of any operation of the context.
 * @completed: how many operations completed; may be NULL
 * It is 0 at the deadline, or if only something else came, such as a message.
 */
SLUICE_API int sluice_context_wait(sluice_context *context, int64_t deadline,
				   uint32_t *completed);

/*
 * A descriptor, or a negative errno. It is readable when something has completed: for
 * another event loop, which then calls sluice_context_wait(context, 0, &completed)
 * until `completed` is 0. It belongs to the context: do not close it. Call
 * sluice_context_submit() before you wait on it.
 */
SLUICE_API int sluice_context_fd(const sluice_context *context);

/*
 * How many reads, writes and syncs, and waiting parts of chains, were freed before they
 * ended, as when a network is down or a disk hangs, and have not ended yet; or a negative
 * errno. Their memory may still be
 * read or written, so do not use it for anything else. It is freed when the file
 * returns it, or with the process.
 */
SLUICE_API int sluice_context_left_behind(const sluice_context *context);

/* Submit what was started to the kernel. Functions that wait do so themselves. */
SLUICE_API int sluice_context_submit(sluice_context *context);

#define SLUICE_CURRENT UINT64_MAX	/* offset: the file's position, as for a pipe */

/*
 * Read from a file into memory, or write. As with read(2) and write(2), fewer bytes may
 * be transferred than requested, 1 GiB at most: the operation's value tells.
 * @file: a descriptor, which must stay open until the operation is done
 * The call fails only for bad arguments; the operation has all other errors: EPIPE if
 * there is no reader. Before Linux 6.18, that also raises SIGPIPE.
 */
SLUICE_API int sluice_context_read(sluice_context *context, int file,
				   const struct sluice_slice *to, uint64_t offset,
				   sluice_operation **operation);
SLUICE_API int sluice_context_write(sluice_context *context, int file,
				    const struct sluice_slice *from, uint64_t offset,
				    sluice_operation **operation);

/* Flush to its medium what was written to a file before this begins: wait for the writes
 * first, or make them and this parts of a chain. */
SLUICE_API int sluice_context_sync(sluice_context *context, int file,
				   sluice_operation **operation);

/* Wait for events of a descriptor (POLLIN, ...); the value is those that occurred. */
SLUICE_API int sluice_context_ready(sluice_context *context, int file, short events,
				    sluice_operation **operation);

/* Completes at a point in time. */
SLUICE_API int sluice_context_sleep(sluice_context *context, int64_t until,
				    sluice_operation **operation);

/*
 * Make the reads, writes, syncs, sleeps and batches that are started between these two
 * calls begin one after the other, each when the one before has succeeded in full,
 * without a wake-up in between. If one fails, those after it end with -ECANCELED. One
 * that is cancelled while it waits for those before it never begins: they continue, and
 * when the last of them has ended, it and those after it end with -ECANCELED. To wait,
 * to cancel or free an operation, or to open or close a device or a NIC between the two
 * calls cuts the chain: what is started after that is -EINVAL. A part that reads or
 * writes a file moves 1 GiB at most.
 * @length: how many there will be, at most
 * begin: -EBUSY if a chain is open already. end: -EINVAL if none is.
 */
SLUICE_API int sluice_chain_begin(sluice_context *context, uint32_t length);
SLUICE_API int sluice_chain_end(sluice_context *context);

/* ------------------------------------------------------------- operation */

/* 1: done; 0: pending; or -EINVAL. Reaps completions; does not wait. */
SLUICE_API int sluice_operation_poll(sluice_operation *operation);

/*
 * The same without reaping completions. For an event loop with many operations: call
 * sluice_context_wait(context, 0, &completed), then this for each of them, then
 * sluice_context_submit(). That way no completion is missed that the poll of another
 * operation reaped. Only that of a run of a collective with other processes may reap some
 * when it stops listening to them: call it before that of other operations.
 */
SLUICE_API int sluice_operation_done(sluice_operation *operation);

/*
 * Wait until it is done. Later calls return the same.
 * @deadline: SLUICE_NEVER, sluice_after(...) or 0
 * @value: bytes, unless stated otherwise. May be NULL.
 * -EINPROGRESS at the deadline, else the operation's error.
 */
SLUICE_API int sluice_operation_wait(sluice_operation *operation, int64_t deadline,
				     uint64_t *value);

/*
 * Ask it to stop. It is done only when it says so, and may have succeeded. A stream's
 * operation ends at once, and with it the sender or receiver.
 */
SLUICE_API int sluice_operation_cancel(sluice_operation *operation);

/*
 * Cancel it if it is not done, and wait until nothing accesses its memory. What a file
 * does not return within a second is left behind.
 */
SLUICE_API void sluice_operation_free(sluice_operation *operation);

/* ---------------------------------------------------------------- buffer */

enum sluice_memory {
	SLUICE_MEMORY_HOST, /* of the process */
	SLUICE_MEMORY_SVM,  /* the same, shared with a GPU: migrates there and back */
	SLUICE_MEMORY_VRAM  /* video memory, or an imported dma-buf */
};

#define SLUICE_HOST_ON_NODE	1u	/* near the NUMA node `numa_node` */
#define SLUICE_HOST_SMALL_PAGES	2u	/* do not ask for huge pages */

struct sluice_host_options {
	size_t size;
	uint32_t flags; /* SLUICE_HOST_* */
	int32_t numa_node;
};

/*
 * Zeroed memory of the process. It is freed when no handle, operation, registration or
 * stream uses it any more.
 * @size: bytes; rounded up to whole pages
 * @options: NULL for the default
 * -EINVAL, -ENOMEM; -EIO if there is no such node.
 */
SLUICE_API int sluice_buffer_host(uint64_t size,
				  const struct sluice_host_options *options,
				  sluice_buffer **buffer);

SLUICE_API void sluice_buffer_free(sluice_buffer *buffer);

/* Another handle to the same memory, e.g. for what a callback gets. Any thread. */
SLUICE_API int sluice_buffer_dup(const sluice_buffer *buffer, sluice_buffer **again);

/* Bytes, in whole pages; 0 for NULL. */
SLUICE_API uint64_t sluice_buffer_size(const sluice_buffer *buffer);

/* enum sluice_memory, or -EINVAL. */
SLUICE_API int sluice_buffer_kind(const sluice_buffer *buffer);

/*
 * Its address for the CPU; GPUs see it at the same one. It is valid as long as the
 * handle. A CPU access to SVM memory that is in a GPU brings it back.
 * -EOPNOTSUPP if the CPU cannot reach this memory.
 */
SLUICE_API int sluice_buffer_map(const sluice_buffer *buffer, void **data);

/*
 * Export all of it as a dma-buf. The caller closes @dmabuf.
 * -EOPNOTSUPP if it is not SLUICE_MEMORY_VRAM.
 */
SLUICE_API int sluice_buffer_export(const sluice_buffer *buffer, int *dmabuf);

/* Are all its pages on a NUMA node? -EIO, with the index of the first that is not. */
SLUICE_API int sluice_buffer_verify_node(const sluice_buffer *buffer, int node);

/* ---------------------------------------------------------------- device */

struct sluice_device_info {
	size_t size;
	char address[32];     /* PCI, "0000:03:00.0" */
	char render_node[64]; /* "/dev/dri/renderD128" */
	char product[32];     /* "gfx942" */
	int32_t numa_node;    /* -1: not known */
	uint32_t kfd_id;      /* amdkfd's gpu_id; 0: not known to amdkfd */
	uint64_t vram_bytes;
	uint64_t visible_vram_bytes; /* within the CPU's reach */
};

/* The number of amdgpu GPUs. Any thread. */
SLUICE_API int sluice_device_count(uint32_t *count);

/* About one of them, in the order of addresses. -EIO if there is no such GPU. Any
 * thread. */
SLUICE_API int sluice_device_info_at(uint32_t index, struct sluice_device_info *info);

/*
 * Open a GPU.
 * @name: a PCI address, "0000:03:00.0", or an index, "0"
 * -EIO if there is no such GPU, the user may not open it, or something else in the
 * process owns its address space. -EOPNOTSUPP if its SDMA engines need a kernel with
 * batches. If the process uses HIP, initialise HIP first.
 */
SLUICE_API int sluice_device_open(sluice_context *context, const char *name,
				  sluice_device **device);
SLUICE_API void sluice_device_close(sluice_device *device);
SLUICE_API int sluice_device_get_info(const sluice_device *device,
				      struct sluice_device_info *info);

#define SLUICE_LIMIT_PREPARED		1u	/* batches can be prepared */
#define SLUICE_LIMIT_RING		2u	/* batches go through the ring */
#define SLUICE_LIMIT_USER_MEMORY	4u	/* host memory can be named */
#define SLUICE_LIMIT_SVM		8u	/* SVM memory can be named */
#define SLUICE_LIMIT_COMMAND		16u	/* batches go through AMDGPU_CS: the
						 * kernel has no better way. 32 are
						 * in flight at most, else -EBUSY */

struct sluice_limits {
	size_t size;
	uint32_t operations;   /* in one batch */
	uint32_t broadcast;    /* destinations of one broadcast */
	uint32_t engines;      /* mask of engines for batches */
	uint32_t wait_engines; /* of those, for batches with waits */
	uint64_t bytes;	       /* moved by one batch */
	uint64_t queued_bytes; /* in flight on one engine */
	int64_t wait_ns;       /* all waits of a batch together */
	uint32_t flags;	       /* SLUICE_LIMIT_* */
	uint32_t fences;       /* that a batch may begin after */
};

/* What this GPU and kernel can do in one batch. */
SLUICE_API int sluice_device_limits(const sluice_device *device,
				    struct sluice_limits *limits);

struct sluice_counters {
	size_t size;
	uint64_t migrated_in;  /* pages to video memory, since it was opened */
	uint64_t migrated_out; /* pages back to the host */
	uint64_t lost_events;  /* not 0: the two above are lower bounds */
};

/* Pages of this process that migrated. -EOPNOTSUPP without amdkfd. */
SLUICE_API int sluice_device_counters(const sluice_device *device,
				      struct sluice_counters *counters);

/* Zeroed video memory. @size: bytes; whole pages. -EIO if there is not enough. */
SLUICE_API int sluice_device_vram(sluice_device *device, uint64_t size,
				  sluice_buffer **buffer);

#define SLUICE_SVM_STAY	1u	/* do not move it to video memory now */

/*
 * Memory of the process that is shared with this GPU, and prefers its video memory.
 * @flags: SLUICE_SVM_*
 * -EOPNOTSUPP without amdkfd's SVM, or with SLUICE_LIMIT_COMMAND; -EIO if not all of it
 * gets to video memory; -EINVAL if @size is 0.
 */
SLUICE_API int sluice_device_svm(sluice_device *device, uint64_t size, uint32_t flags,
				 sluice_buffer **buffer);

/*
 * Memory of another process or driver, given as a dma-buf.
 * @dmabuf: still the caller's, who may close it afterwards
 * -EINVAL if it is not a dma-buf; -EIO if the GPU cannot reach it.
 */
SLUICE_API int sluice_device_import(sluice_device *device, int dmabuf,
				    sluice_buffer **buffer);

/*
 * Let this GPU's engines reach a host, SVM or another GPU's buffer in place, for the
 * life of the buffer. Further calls do nothing.
 * -EIO if the driver refuses; -EOPNOTSUPP for SVM memory where amdkfd shares none with
 * this GPU, or where batches go through AMDGPU_CS.
 */
SLUICE_API int sluice_device_attach(sluice_device *device, sluice_buffer *buffer);

/*
 * Move SVM memory to video memory, or back: all pages that @memory touches. Waits for
 * that, and retries for about a second.
 * -EINVAL if it is not SVM memory; -EIO if pages did not move because they are held or
 * there is no room.
 */
SLUICE_API int sluice_device_prefetch(sluice_device *device,
				      const struct sluice_slice *memory);
SLUICE_API int sluice_device_bring_back(sluice_device *device,
					const struct sluice_slice *memory);

/* ----------------------------------------------------------------- batch */

/*
 * Operations for the SDMA engines, run together. They run in any order and in parallel,
 * up to a wait, a signal (write, add), or the operation after a barrier: that one
 * begins after all before it have ended.
 *
 * A batch keeps its buffers alive. It can be submitted again, or changed, when its
 * previous operation is done. The first mistake, such as a slice outside of its buffer,
 * is returned at once, by all later additions, and by submit and prepare, with the index
 * of the faulty operation; sluice_batch_clear() forgets it.
 *
 * @expected: how many operations it has room for; adding more allocates memory
 */
SLUICE_API int sluice_batch_create(uint32_t expected, sluice_batch **batch);
SLUICE_API void sluice_batch_free(sluice_batch *batch);
SLUICE_API int sluice_batch_clear(sluice_batch *batch);

/* Both slices have the same length, at any alignment. */
SLUICE_API int sluice_batch_copy(sluice_batch *batch, const struct sluice_slice *to,
				 const struct sluice_slice *from);
SLUICE_API int sluice_batch_swap(sluice_batch *batch, const struct sluice_slice *a,
				 const struct sluice_slice *b);

/*
 * Many copies from one memory to another, each an operation: @sizes[i] bytes at
 * @from_offsets[i] of @from go to @to_offsets[i] of @to.
 * @count: how many numbers each of the three arrays has
 * -EINVAL, with the index that the faulty copy would have in the batch; none is added.
 */
SLUICE_API int sluice_batch_copy_many(sluice_batch *batch,
				      const struct sluice_slice *to,
				      const uint64_t *to_offsets,
				      const struct sluice_slice *from,
				      const uint64_t *from_offsets,
				      const uint64_t *sizes, size_t count);

/*
 * Copy scattered parts to contiguous memory, or the reverse. Each part is an operation;
 * together they have as many bytes as @to or @from.
 * -EINVAL, with the index of the part that is outside its buffer.
 */
SLUICE_API int sluice_batch_gather(sluice_batch *batch, const struct sluice_slice *to,
				   const struct sluice_slice *parts, size_t count);
SLUICE_API int sluice_batch_scatter(sluice_batch *batch,
				    const struct sluice_slice *parts, size_t count,
				    const struct sluice_slice *from);

struct sluice_rectangle {
	size_t size;
	uint64_t row_bytes;
	uint64_t rows;
	uint64_t to_pitch; /* bytes from one row to the next */
	uint64_t from_pitch;
};

/*
 * Copy rows. The first one is at the beginning of @to and of @from.
 * -EINVAL if there are none, if they overlap because a pitch is less than row_bytes, or
 * if the last one ends outside @to or @from.
 */
SLUICE_API int sluice_batch_copy_rectangle(sluice_batch *batch,
					   const struct sluice_slice *to,
					   const struct sluice_slice *from,
					   const struct sluice_rectangle *shape);

/* Copy the same bytes to 2 to 8 destinations of the same length. */
SLUICE_API int sluice_batch_broadcast(sluice_batch *batch,
				      const struct sluice_slice *to, size_t count,
				      const struct sluice_slice *from);

/* Write the 32 bits of @value repeatedly. @to has any length but 0, and any alignment. */
SLUICE_API int sluice_batch_fill(sluice_batch *batch, const struct sluice_slice *to,
				 uint32_t value);

enum sluice_compare {
	SLUICE_EQUAL,
	SLUICE_NOT_EQUAL,
	SLUICE_GREATER_EQUAL,
	SLUICE_LESS_EQUAL
};

/*
 * Wait until (the 32 bits at @word & @mask) COMPARE @value. After @limit_ns the batch's
 * operation ends with -ETIMEDOUT: not before, and up to 25 times as late if the engine's
 * clock is low. struct sluice_limits .wait_ns is for all waits of a batch.
 * @word: 4 bytes, at a multiple of 4
 * @how: enum sluice_compare
 * @value: has no bit outside @mask
 * -EINVAL if @word is shorter, or @limit_ns is not above 0. Submit checks the rest.
 */
SLUICE_API int sluice_batch_wait(sluice_batch *batch, const struct sluice_slice *word,
				 int how, uint32_t value, uint32_t mask,
				 int64_t limit_ns);

/*
 * Signals: write 64 bits, or add to them atomically, after all operations before.
 * @word: 8 bytes, at a multiple of 8
 * -EINVAL if it is shorter. Submit checks the alignment.
 */
SLUICE_API int sluice_batch_write(sluice_batch *batch, const struct sluice_slice *word,
				  uint64_t value);
SLUICE_API int sluice_batch_add(sluice_batch *batch, const struct sluice_slice *word,
				uint64_t value);

/* The next operation begins after all operations before it have ended. */
SLUICE_API int sluice_batch_barrier(sluice_batch *batch);

enum sluice_record_status {
	SLUICE_RECORD_DONE = 1,
	SLUICE_RECORD_SKIPPED = 2, /* after a wait that gave up */
	SLUICE_RECORD_FAILED = 3
};

/* What an engine records about an operation. Defined by the hardware: never grows. */
struct sluice_record {
	uint64_t start; /* GPU clock counter */
	uint64_t unused[3];
	uint64_t end;
	uint32_t status; /* enum sluice_record_status */
	uint32_t engine; /* its instance */
	uint64_t unused2[2];
};

/*
 * Have a struct sluice_record of the next operation written to @where: 64 bytes, at a
 * multiple of 32. -EINVAL if it is shorter. Submit checks the alignment.
 */
SLUICE_API int sluice_batch_record(sluice_batch *batch,
				   const struct sluice_slice *where);

/*
 * Not 0: move SVM memory that the engine cannot reach to where it can, for all
 * operations of this batch. Otherwise such memory is an error.
 */
SLUICE_API int sluice_batch_fault_in(sluice_batch *batch, int yes);

enum sluice_place {
	SLUICE_PLACE_AUTOMATIC,
	SLUICE_PLACE_ONE_ENGINE, /* back to back on one */
	SLUICE_PLACE_FAN_OUT	 /* in equal shares on all allowed ones */
};

/* @how: enum sluice_place. @engines: mask of those allowed; 0: all */
SLUICE_API int sluice_batch_place(sluice_batch *batch, int how, uint32_t engines);

/* What matters for a batch. It changes where and when it runs, not what it does. */
enum sluice_hint {
	SLUICE_HINT_LATENCY, /* when it ends: the driver decides on how many engines */
	SLUICE_HINT_BANDWIDTH, /* bytes per second: all engines if nothing is ordered */
	SLUICE_HINT_BACKGROUND /* other batches: one engine, at low priority */
};

/*
 * @how: enum sluice_hint; the first is the default
 * It chooses the placement, which a later sluice_batch_place() overrides, and the
 * priority. An engine takes a background batch when no process has a batch of another
 * priority ready; it finishes what it has begun. Batches of different priorities are
 * not ordered.
 */
SLUICE_API int sluice_batch_hint(sluice_batch *batch, int how);

/*
 * Begin when the fence of @sync_file has signaled: a fence of another driver, or of
 * another user of the GPU. The file may be closed afterwards. At most struct
 * sluice_limits .fences of them.
 */
SLUICE_API int sluice_batch_after(sluice_batch *batch, int sync_file);

/* Not 0: -EBUSY instead of waiting for room. */
SLUICE_API int sluice_batch_nonblocking(sluice_batch *batch, int yes);

/* How many operations it has, and how many bytes they move; 0 for NULL. */
SLUICE_API uint64_t sluice_batch_count(const sluice_batch *batch);
SLUICE_API uint64_t sluice_batch_bytes(const sluice_batch *batch);

struct sluice_outcome {
	size_t size;
	uint64_t engines;      /* mask of engines that it was given to */
	uint64_t vram_bytes;   /* read and written in the GPU's own memory */
	uint64_t system_bytes; /* the same in the host's memory */
	uint64_t peer_bytes;   /* the same in other devices' memory */
};

/* How the last submission ran, when its operation is done. */
SLUICE_API int sluice_batch_outcome(const sluice_batch *batch,
				    struct sluice_outcome *outcome);

/*
 * Run a batch. The operation's value is the bytes that it moves. Its errors have the
 * index of the failing operation of the batch, if known.
 * -EINVAL, -EOPNOTSUPP (this kernel or GPU lacks the operation), -EBUSY (too much in
 * flight), -ETIMEDOUT (a wait gave up), -EIO (a hang or a reset), -ESTALE, -ECANCELED,
 * -ENOMEM.
 */
SLUICE_API int sluice_device_submit(sluice_device *device, sluice_batch *batch,
				    sluice_operation **operation);

/*
 * Check a batch and build its packets once, to run it often. The batch may be freed or
 * changed afterwards. -EOPNOTSUPP on a kernel without batches; -EINVAL if it begins after
 * fences, which signal only once; -EBUSY if the process has 256 prepared batches on this
 * GPU; -EIO if there is no room for its packets.
 */
SLUICE_API int sluice_device_prepare(sluice_device *device, const sluice_batch *batch,
				     sluice_prepared **prepared);

/*
 * At most 64 runs at once. They may overtake each other: wait for a run before the next
 * one if their order matters, or make them parts of a chain. -ESTALE if a mapping that it
 * uses has changed: prepare it again.
 */
SLUICE_API int sluice_prepared_run(sluice_prepared *prepared,
				   sluice_operation **operation);
SLUICE_API uint64_t sluice_prepared_bytes(const sluice_prepared *prepared);
SLUICE_API void sluice_prepared_free(sluice_prepared *prepared);

/* ----------------------------------------------------------------- group */

#define SLUICE_MAX_RANKS 8

/* How a collective moves its data. The names are DMA-Latte's (arXiv 2511.06605). */
enum sluice_variant {
	SLUICE_VARIANT_AUTOMATIC, /* the quickest for this operation and size */
	SLUICE_VARIANT_PCPY, /* a copy for each destination, each on its own engine */
	SLUICE_VARIANT_BCST, /* the same bytes to two destinations by one packet */
	SLUICE_VARIANT_SWAP, /* two ranks exchange memory in place, by one packet */
	SLUICE_VARIANT_B2B   /* copies back to back on one engine */
};

/* Let the engines hold a run until sluice_collective_release(), a store to memory. */
#define SLUICE_COLLECTIVE_PRELAUNCH	1u

struct sluice_collective_options {
	size_t size;
	uint32_t variant; /* enum sluice_variant */
	uint32_t flags;	  /* SLUICE_COLLECTIVE_* */
	int64_t hold_ns; /* how long engines hold a run at least, then -ETIMEDOUT; up to
			   * 25 times as long at a low clock; 0: as long as all GPUs
			   * allow, struct sluice_limits .wait_ns */
};

/*
 * GPUs of this host that exchange data by their SDMA engines alone. The position of a
 * GPU in @gpus is its rank.
 * @gpus: opened on this context; 1 to SLUICE_MAX_RANKS
 * @count: how many
 * -EINVAL if there are too many, or they were opened on another context.
 */
SLUICE_API int sluice_group_create(sluice_context *context, sluice_device *const *gpus,
				   size_t count, sluice_group **group);
SLUICE_API void sluice_group_free(sluice_group *group);

/*
 * A group whose ranks are processes of this host with a GPU each. All call the same
 * functions in the same order, with memory of the same sizes at the same places. Memory
 * of a rank is part of what sluice_processes_exchange() returned for it. Preparing a
 * collective waits for all ranks. A run waits for none, and writes to the others'
 * memory: sluice_processes_barrier() tells that they expect it. One run is in flight at
 * a time. If a rank ends, the others get -ECONNRESET; if one cannot prepare, they are
 * told. To prepare or to run is -EINVAL while a chain is open. Either all have the
 * collective, or none, except after some errors: see sluice_processes_meet().
 * @device: of this process, opened on the context of @processes
 */
SLUICE_API int sluice_group_create_shared(sluice_device *device,
					  const sluice_processes *processes,
					  sluice_group **group);

/* The number of ranks; 0 for NULL. */
SLUICE_API uint32_t sluice_group_ranks(const sluice_group *group);

/*
 * Prepare a collective, to run it often. A block is what one rank has for another;
 * blocks are in the order of ranks. Arrays have a slice for each rank, of memory of any
 * kind, which is attached to the GPUs that use it.
 *
 *	all_gather	each rank's @from to its block of each rank's @to. In place:
 *			from[r] may be block r of to[r]. PCPY, BCST, B2B
 *	all_to_all	block j of rank i's @from to block i of rank j's @to. In place:
 *			both may be the same for all ranks, then SWAP; else PCPY, B2B
 *	broadcast	what rank @root has in its memory to that of all others.
 *			PCPY, BCST, B2B
 *	gather		each rank's @from to its block of @to, which is one slice, of
 *			rank @root. In place: from[root] may be its block. PCPY, B2B
 *	scatter		each block of @from, which is one slice, of rank @root, to the
 *			rank's @to. In place: to[root] may be its block. PCPY, B2B
 *
 * @options: NULL for the default
 * -EINVAL: sizes differ, memory overlaps otherwise, or the operation lacks the variant;
 * the error's index is the rank at fault, if one is. -EBUSY if a GPU has 256 prepared
 * batches of this process. -EOPNOTSUPP on a kernel that cannot prepare batches.
 */
SLUICE_API int sluice_group_all_gather(sluice_group *group,
				       const struct sluice_slice *to,
				       const struct sluice_slice *from,
				       const struct sluice_collective_options *options,
				       sluice_collective **collective);
SLUICE_API int sluice_group_all_to_all(sluice_group *group,
				       const struct sluice_slice *to,
				       const struct sluice_slice *from,
				       const struct sluice_collective_options *options,
				       sluice_collective **collective);
SLUICE_API int sluice_group_broadcast(sluice_group *group, uint32_t root,
				      const struct sluice_slice *memory,
				      const struct sluice_collective_options *options,
				      sluice_collective **collective);
SLUICE_API int sluice_group_gather(sluice_group *group, uint32_t root,
				   const struct sluice_slice *to,
				   const struct sluice_slice *from,
				   const struct sluice_collective_options *options,
				   sluice_collective **collective);
SLUICE_API int sluice_group_scatter(sluice_group *group, uint32_t root,
				    const struct sluice_slice *to,
				    const struct sluice_slice *from,
				    const struct sluice_collective_options *options,
				    sluice_collective **collective);

/* Data that one rank sends to another, or to itself. */
struct sluice_message {
	uint32_t from, to;		    /* ranks */
	struct sluice_slice target, source; /* of the same size */
};

/*
 * The same for any number of messages, which may differ in size: sends with their
 * receives. PCPY, B2B.
 */
SLUICE_API int sluice_group_send(sluice_group *group,
				 const struct sluice_message *messages, size_t count,
				 const struct sluice_collective_options *options,
				 sluice_collective **collective);

/*
 * Begin on all GPUs, by one system call; if more runs of it overlap than before, by one
 * more for each GPU. The operation's value is the bytes that all ranks have moved; its
 * error is that of the first rank that has one, with that rank as index. It is done when
 * all ranks are: until then GPUs of other processes may write to this process's memory,
 * also if the operation is freed. Runs are not ordered: if the next one uses the same
 * memory, wait for this one first. A prelaunched collective may
 * have one run in flight: a second one ends with -EBUSY. -ESTALE if memory was unmapped.
 * -ETIMEDOUT if another process does not report the end of its part within @patience_ns
 * of sluice_processes_meet(): then the operation is done here, and may continue there.
 * While a chain is open, to wait for a run of which other processes have still to report
 * the end is -EINVAL, and it continues.
 */
SLUICE_API int sluice_collective_run(sluice_collective *collective,
				     sluice_operation **operation);

/*
 * Let a prelaunched run begin. Does nothing if none is held, or it was released before.
 * Data that the CPU or a card writes to video memory must be there before the run is
 * started.
 */
SLUICE_API int sluice_collective_release(sluice_collective *collective);

/*
 * The bytes that @rank has moved to others, or its error.
 * @operation: of sluice_collective_run(), else -EINVAL
 * -EINPROGRESS until the rank is done.
 */
SLUICE_API int sluice_collective_of(sluice_operation *operation, uint32_t rank,
				    uint64_t *bytes);

/* Its enum sluice_variant, never automatic; or -EINVAL. */
SLUICE_API int sluice_collective_variant(const sluice_collective *collective);

/* Bytes that all ranks move; each destination counts, swaps twice. 0 for NULL. */
SLUICE_API uint64_t sluice_collective_bytes(const sluice_collective *collective);

/* A run in flight continues. */
SLUICE_API void sluice_collective_free(sluice_collective *collective);

/* ------------------------------------------------------------- processes */

/*
 * Processes of this host with a GPU each, which together are the ranks of a group. A
 * socket links each pair, and carries video memory as dma-bufs. An error has the rank
 * of the process at fault as its index, if another one is: -ECONNRESET (it has ended),
 * -ETIMEDOUT (it has not come), -EPROTO (it is in a different call), or the error that it
 * had. But in meet, rank 0 tells the others who has not come, or was refused: the index is
 * 0 then, and the message has the rank. -EINVAL while a chain is open; except in meet, this
 * is an error for all.
 *
 * A call succeeds in all processes, or fails in all. But a process that comes after the
 * patience of another one may succeed where that failed; and nobody is told of a handle
 * that is NULL. So after -ETIMEDOUT, -ECONNRESET, -EPROTO or such a mistake, all make the
 * processes, and groups of them, anew.
 *
 * Wait for the others, which must be of the same user and able to reach @path.
 * @path: of a socket, which rank 0 makes, and removes when all have come, or when it gives
 * up; must not exist yet, and has 107 bytes at most
 * @rank: of this process; 0 to @ranks - 1
 * @ranks: how many processes there are, including this one; 2 to SLUICE_MAX_RANKS
 * @patience_ns: how long this and each later call wait for others at most; 0: 30 s
 * -EINVAL; -EACCES for a process of another user.
 */
SLUICE_API int sluice_processes_meet(sluice_context *context, const char *path,
				     uint32_t rank, uint32_t ranks, int64_t patience_ns,
				     sluice_processes **processes);

/* The rank of this process, and the number of ranks; 0 for NULL. */
SLUICE_API uint32_t sluice_processes_rank(const sluice_processes *processes);
SLUICE_API uint32_t sluice_processes_ranks(const sluice_processes *processes);

/*
 * Give video memory to all, and get theirs. All must call this, at the same point in
 * the order of calls. If one cannot give or take, all fail, and none gets anything, except
 * after the errors named above.
 * @device: reaches the memory that this process gets
 * @mine: video memory of this process, which lives as long as any process has it
 * @all: a handle for each rank, to be freed; this process's is another one to @mine
 * -EOPNOTSUPP if @mine is not video memory.
 */
SLUICE_API int sluice_processes_exchange(sluice_processes *processes,
					 sluice_device *device,
					 const sluice_buffer *mine,
					 sluice_buffer **all);

/* Wait until all have called this. */
SLUICE_API int sluice_processes_barrier(sluice_processes *processes);

SLUICE_API void sluice_processes_free(sluice_processes *processes);

/* ----------------------------------------------------------------- hosts */

/*
 * How memory gets from host to host, by the caller's means, such as MPI. All hosts make
 * the same calls in the same order. A function returns when the memory holds on this
 * host what it has to, and may be used again: 0, or a negative errno, which the call of
 * the library then returns. After an error, hosts may be at different calls: all must
 * create the group again.
 *
 * Memory is the leader's, or host memory of the library. Its handle is valid during the
 * call; to keep it, call sluice_buffer_dup(). Parts for each host are of one size, in
 * the order of hosts. A host's own part is already in place, and need not be moved.
 * Functions must not use the group.
 */
struct sluice_host_transport {
	size_t size;
	uint32_t hosts, host; /* how many; this one, 0 to hosts - 1 */
	void *user;	      /* given to each function */
	/* @all has a part for each host: send each host's own part to all others. */
	int (*all_gather)(void *user, const struct sluice_slice *all);
	/* Both have a part for each host: send the part of host h in @from to this
	 * host's part in @to there. */
	int (*all_to_all)(void *user, const struct sluice_slice *to,
			  const struct sluice_slice *from);
	/* Send @memory of host @root to @memory of all others. */
	int (*broadcast)(void *user, uint32_t root, const struct sluice_slice *memory);
	/* @memory has a part for each host on host @root, and is one part on all
	 * others, which is sent to the root. */
	int (*gather)(void *user, uint32_t root, const struct sluice_slice *memory);
	/* The reverse: send each part of the root to its host. */
	int (*scatter)(void *user, uint32_t root, const struct sluice_slice *memory);
};

/*
 * The same number of GPUs on each of one or more hosts. SDMA engines move data inside
 * each host, and @transport moves it between one GPU of each, the leader. Ranks of all
 * hosts are numbered host by host, in the order of each host's group.
 * @local: all GPUs of this process, which is the only one on its host
 * @transport: what it refers to must outlive the group and its collectives; used by no
 *	other group
 * @leader: rank of @local whose memory the transport works on
 * -EINVAL: other hosts are not told, and wait in their first call.
 */
SLUICE_API int sluice_host_group_create(sluice_group *local,
					const struct sluice_host_transport *transport,
					uint32_t leader, sluice_host_group **group);
SLUICE_API void sluice_host_group_free(sluice_host_group *group);

/* The number of ranks of all hosts, and the first rank of this one; 0 for NULL. */
SLUICE_API uint32_t sluice_host_group_ranks(const sluice_host_group *group);
SLUICE_API uint32_t sluice_host_group_first_rank(const sluice_host_group *group);

/*
 * Prepare a collective on all hosts. Arrays have a slice for each rank of this host,
 * and all hosts have the same sizes. Operations are those of sluice_group_all_gather()
 * and its siblings, over the ranks of all hosts; variants are chosen automatically.
 *
 * The staging memory is the leader's. It holds data on the way to and from other hosts;
 * no other memory of the operation may overlap it. Its size:
 *
 *	all_to_all	as all of @to and @from together
 *	gather, scatter	on the root's host as the root's memory, or none (NULL) if the
 *			root is its leader; on others as all ranks' memory there
 *
 * The root is a rank among all hosts. Its memory, to gather into or scatter from, may
 * be NULL on other hosts.
 *
 * -EINVAL: a mistake in this call; the error's index is the rank among those of this host,
 * if one is at fault. All hosts are told: they get -EREMOTEIO if another host failed, or -EPROTO if it prepares
 * something else, with that host as index. No host has the collective then.
 */
SLUICE_API int sluice_host_group_all_gather(sluice_host_group *group,
					    const struct sluice_slice *to,
					    const struct sluice_slice *from,
					    sluice_host_collective **collective);
SLUICE_API int sluice_host_group_all_to_all(sluice_host_group *group,
					    const struct sluice_slice *to,
					    const struct sluice_slice *from,
					    const struct sluice_slice *staging,
					    sluice_host_collective **collective);
SLUICE_API int sluice_host_group_broadcast(sluice_host_group *group, uint32_t root,
					   const struct sluice_slice *memory,
					   sluice_host_collective **collective);
SLUICE_API int sluice_host_group_gather(sluice_host_group *group, uint32_t root,
					const struct sluice_slice *to,
					const struct sluice_slice *from,
					const struct sluice_slice *staging,
					sluice_host_collective **collective);
SLUICE_API int sluice_host_group_scatter(sluice_host_group *group, uint32_t root,
					 const struct sluice_slice *to,
					 const struct sluice_slice *from,
					 const struct sluice_slice *staging,
					 sluice_host_collective **collective);

/*
 * Run it, and wait until the GPUs of this host have their data. All hosts must call
 * this.
 * @bytes: how many bytes GPUs of this host have moved; or NULL
 * An error of a GPU of this host has its rank among those of this host as index. If it occurs before the hosts
 * exchange data, all others return -EREMOTEIO with this host as index; after that they
 * have their data, and are not told. -EINVAL while a chain is open. -EPROTO: a host
 * runs another collective. Other errors are the transport's.
 */
SLUICE_API int sluice_host_collective_run(sluice_host_collective *collective,
					  uint64_t *bytes);
SLUICE_API void sluice_host_collective_free(sluice_host_collective *collective);

/* ------------------------------------------------------------------- nic */

#define SLUICE_NIC_INFINIBAND	1u	/* else RoCE */
#define SLUICE_NIC_ACTIVE	2u
#define SLUICE_NIC_ON_DEMAND	4u	/* reads and writes memory on demand */
#define SLUICE_NIC_DMABUF	8u	/* may register dma-bufs */
#define SLUICE_NIC_SOFTWARE	16u

struct sluice_nic_info {
	size_t size;
	char name[64]; /* "mlx5_0", "rxe0" */
	char driver[64];
	char address[32];   /* PCI; empty: it is software */
	char interface[32]; /* network interface of port 1, if any */
	int32_t numa_node;  /* -1: not known */
	uint32_t flags;	    /* SLUICE_NIC_* */
};

/* RDMA devices. Any thread. info_at: -EIO if there is no such device. */
SLUICE_API int sluice_nic_count(uint32_t *count);
SLUICE_API int sluice_nic_info_at(uint32_t index, struct sluice_nic_info *info);

/*
 * @name: "rxe0"; NULL or empty: the only one; -EINVAL names them if there are several
 * -EIO if there is no such device, or no port of it is active.
 */
SLUICE_API int sluice_nic_open(sluice_context *context, const char *name,
			       sluice_nic **nic);
SLUICE_API void sluice_nic_close(sluice_nic *nic);
SLUICE_API int sluice_nic_get_info(const sluice_nic *nic, struct sluice_nic_info *info);

/* -------------------------------------------------------------- endpoint */

#define SLUICE_MAX_MESSAGE 1024

struct sluice_endpoint_options {
	size_t size;
	/* A secret that both sides know, at most 1024 bytes; not sent in the clear. It
	 * should be long and random. NULL: none. Read during the call only. */
	const char *token;
	size_t token_length; /* 0: up to the 0 byte */
	uint32_t messages;   /* of the peer, received at once; 1 to 1024; 0: 32 */
	uint32_t depth;	     /* writes in flight at once; 1 to 4096; 0: 128 */
	int64_t silence_ns;  /* without a sign of life: the peer is lost. 30 ms at
				 * least, a day at most; 0: 10 s */
};

/*
 * Connect to a listener by rdma_cm; tries all addresses of @host, again and again while
 * there is no listener yet.
 * @host: a name or address that the card can reach
 * @options: NULL for the default
 * -ECONNRESET (nothing listened until then, it left, rdma_cm had no answer, or @host is not
 * found), -ETIMEDOUT (it did not answer or finish in time), -EACCES (a different token), -EIO (no RDMA device
 * has a route to it, or another one than @nic), -EPROTO (another version), -EINVAL (a chain
 * is open).
 */
SLUICE_API int sluice_endpoint_connect(sluice_nic *nic, const char *host, uint16_t port,
				       const struct sluice_endpoint_options *options,
				       int64_t deadline, sluice_endpoint **endpoint);

/*
 * The same as an operation, without waiting. Its errors are those of connect. Once it
 * is done without one, sluice_endpoint_take() returns the endpoint, once.
 * -EINVAL from begin: a chain is open. -EINVAL from take: it is not done, was taken
 * already, or is an operation of another kind.
 */
SLUICE_API int sluice_endpoint_begin(sluice_nic *nic, const char *host, uint16_t port,
				     const struct sluice_endpoint_options *options,
				     int64_t deadline, sluice_operation **operation);
SLUICE_API int sluice_endpoint_take(sluice_operation *operation,
				    sluice_endpoint **endpoint);

/*
 * Ends the connection, and operations under way with -ECANCELED. If a stream uses it, it
 * ends with the last stream.
 */
SLUICE_API void sluice_endpoint_close(sluice_endpoint *endpoint);

/* "10.0.0.1:7471"; valid as long as the endpoint. "" for NULL. */
SLUICE_API const char *sluice_endpoint_peer(const sluice_endpoint *endpoint);

/* 0: it is up. Else the error that ended it. */
SLUICE_API int sluice_endpoint_alive(const sluice_endpoint *endpoint);

/*
 * Send a message of at most SLUICE_MAX_MESSAGE bytes; it is copied. Done when the
 * peer's card has it. Do not use it on an endpoint with a stream.
 * -EINVAL, -EBUSY (too many in flight).
 */
SLUICE_API int sluice_endpoint_send(sluice_endpoint *endpoint, const void *message,
				    size_t length, sluice_operation **operation);

/*
 * Receive a message into memory that the CPU reaches; the value is its length.
 * -EOPNOTSUPP if the CPU does not reach it. The operation has the other errors: -EPROTO
 * if the message is longer than @to, or what ended the connection.
 */
SLUICE_API int sluice_endpoint_receive(sluice_endpoint *endpoint,
				       const struct sluice_slice *to,
				       sluice_operation **operation);

/*
 * Listen for peers.
 * @host: address to listen on; NULL or empty: all that the card has
 * @port: 0: any, see sluice_listener_port()
 * @options: NULL for the default
 * -EIO if the address is not one of this card, or cannot be bound, e.g. as another
 * program has the port; -ECONNRESET or -ETIMEDOUT if @host is not found; -EINVAL if a
 * chain is open.
 */
SLUICE_API int sluice_listener_open(sluice_nic *nic, const char *host, uint16_t port,
				    const struct sluice_endpoint_options *options,
				    sluice_listener **listener);
SLUICE_API void sluice_listener_close(sluice_listener *listener);

/* 0 for NULL. */
SLUICE_API uint16_t sluice_listener_port(const sluice_listener *listener);

/*
 * Wait for a peer that proves that it knows the token; others are rejected, and do not
 * end the wait. -ETIMEDOUT at the deadline. A peer may have left already: it is given if
 * it said something, which can be received.
 */
SLUICE_API int sluice_listener_accept(sluice_listener *listener, int64_t deadline,
				      sluice_endpoint **endpoint);

/*
 * The same as an operation, without waiting. Once it is done, an accept with the
 * deadline 0 returns the peer, or -ETIMEDOUT if it has left and said nothing, or another
 * accept has taken it.
 */
SLUICE_API int sluice_listener_arrival(sluice_listener *listener,
				       sluice_operation **operation);

/* ---------------------------------------------------------------- stream */

/* The path that bytes take between memory and the card. */
enum sluice_data_path {
	SLUICE_PATH_ANY,
	SLUICE_PATH_DEVICE_ALIAS,  /* the card reaches video memory in place */
	SLUICE_PATH_DEVICE_DMABUF, /* the same through a dma-buf */
	SLUICE_PATH_HOST,	   /* host memory was asked for */
	SLUICE_PATH_STAGED,	   /* video memory, but through host memory */
	SLUICE_PATHS = 8	   /* room for more */
};

/* "device-alias"; "?" if there is no such path. */
SLUICE_API const char *sluice_path_name(int path);

#define SLUICE_STREAM_NO_CHECKSUM	1u	/* no CRC-32C of each chunk */
#define SLUICE_STREAM_NO_DIGEST		2u	/* no SHA-256 of all */

struct sluice_stream_options {
	size_t size;
	uint64_t piece;	     /* bytes granted at a time; whole pages, up to 1 GiB;
				 * 0: 4 MiB */
	uint64_t chunk;	     /* bytes of one RDMA write; whole pages, at most 128 to
				 * a piece; 0: 1 MiB, or a piece if that is less */
	uint32_t pieces;     /* that this end has memory for; 2 to 64; 0: 4. A sender
				 * needs pieces * (piece / chunk + 2) + 8 operations
				 * of its context, a receiver 3 * pieces + 8 */
	uint32_t flags;	     /* SLUICE_STREAM_*; the sender decides */
	sluice_device *gpu;  /* keep pieces in its memory; NULL: in the host's */
	int64_t patience_ns; /* nothing moves for that long: -ETIMEDOUT; 0: 30 s. More
				 * than the receiver's medium needs for 512 MiB */
	uint32_t require;    /* enum sluice_data_path: -ENOLINK if this end cannot
				 * use this one */
	uint32_t reserved;
};

/* Where data come from: a file, or memory, whose slices are gathered in order. */
struct sluice_source {
	size_t size;
	const char *name; /* what the receiver is told: 1 to 255 bytes of UTF-8 without
				 * control characters and '/', not "." or ".." */
	const struct sluice_slice *memory; /* NULL, and `count` 0: a file */
	size_t count;			   /* slices of memory */
	uint64_t bytes; /* of a file, from its beginning; 0: nothing is sent.
				 * SLUICE_UNKNOWN: from its position until it ends,
				 * as for a pipe: not for a sink that is memory, and
				 * never resumed. Memory: leave it 0 */
	int32_t file;	/* a descriptor, open until it is done */
	uint32_t reserved;
};

#define SLUICE_UNKNOWN UINT64_MAX

/*
 * Where data go: to a file, or to memory, whose slices are filled in order. A regular file
 * that was not opened to append is written from its beginning, whatever its position, and
 * truncated behind the data. A file on a medium has been flushed to it in the end.
 */
struct sluice_sink {
	size_t size;
	const struct sluice_slice *memory; /* NULL, and `count` 0: a file */
	size_t count;
	uint64_t have; /* bytes that a file has already from a transfer that broke
				 * off: compared, not sent again. Then the file must
				 * be open to read, too. Not used if the offer has no
				 * size, or less */
	int32_t file;  /* a descriptor, open until it is done */
	uint32_t reserved;
};

#define SLUICE_REPORT_MIGRATIONS	1u	/* the three counters are known */
#define SLUICE_REPORT_DIGEST		2u	/* `sha256` is set, and equal at both
						 * ends */

/* What a stream did. Times include waiting. */
struct sluice_report {
	size_t size;
	char name[256];
	uint64_t bytes;	  /* moved by this stream */
	uint64_t resumed; /* were there already */
	uint64_t pieces;
	uint64_t bytes_by_path[SLUICE_PATHS]; /* enum sluice_data_path, of this end */
	int64_t total_ns;      /* from before the offer to the last byte in place */
	int64_t storage_ns;    /* reading or writing, summed over pieces */
	int64_t engine_ns;     /* copies by the GPU's engines, summed */
	int64_t wire_ns;       /* RDMA, or until a piece came, summed */
	int64_t check_ns;      /* CRC and SHA-256 */
	int64_t grant_wait_ns; /* pieces waited for their grant, summed */
	uint64_t grant_waits;  /* how many */
	uint64_t migrated_in;  /* pages, while it ran */
	uint64_t migrated_out;
	uint64_t lost_events;	 /* not 0: the two above are lower bounds */
	uint64_t system_calls;	 /* of the ring, while it ran */
	uint32_t most_in_flight; /* pieces in flight at once */
	uint32_t flags;		 /* SLUICE_REPORT_* */
	uint8_t sha256[32];
	char path_reason[256];	  /* why there is no better path; else empty */
	uint64_t pages_elsewhere; /* of pieces in host memory: not on numa_node */
	int32_t numa_node; /* of the device that reaches these; -1: it has none */
	uint32_t reserved;
};

/* The progress of a stream, at any time. */
struct sluice_progress {
	size_t size;
	uint64_t bytes; /* in their place at the far end */
	uint64_t total; /* or SLUICE_UNKNOWN */
};

struct sluice_offer {
	size_t size;
	char name[256]; /* printable, without '/', not "." or ".." */
	uint64_t bytes; /* or SLUICE_UNKNOWN */
};

/*
 * The sending end. It keeps the endpoint alive. One operation at a time, else -EBUSY: it
 * is over when it was polled, waited for, cancelled or freed, and was done. After one that
 * failed or was cancelled, only free the end, or ask for its report: what starts
 * something, and progress, are -ECANCELED.
 * @options: NULL for the default
 * -EINVAL, -ENOLINK, -EIO.
 */
SLUICE_API int sluice_sender_create(sluice_endpoint *endpoint,
				    const struct sluice_stream_options *options,
				    sluice_sender **sender);
SLUICE_API void sluice_sender_free(sluice_sender *sender);

/*
 * Send one source. The operation's value is the bytes moved. Its errors: -EINVAL (memory
 * outside its buffer, or of a GPU without `gpu`); that of a file that cannot be read, or
 * -EIO of the GPU; -ETIMEDOUT (nothing moves for patience_ns), -ECONNRESET, -EREMOTEIO (the
 * receiver gave up, refused it, or found that what arrived differs: there it is -EBADMSG),
 * -EPROTO; -EBADMSG (the receiver says that it has something else); -ENOLINK (it took
 * another path than `require`).
 */
SLUICE_API int sluice_sender_send(sluice_sender *sender,
				  const struct sluice_source *source,
				  sluice_operation **operation);

/*
 * Say that there are no more, and end the connection when the receiver's card has that
 * message: the endpoint cannot be used after it (-EINVAL).
 * -ECONNRESET if the receiver left before.
 */
SLUICE_API int sluice_sender_finish(sluice_sender *sender,
				    sluice_operation **operation);

/* Report on the last source that was sent in full; -EINVAL: there is none. Progress may
 * be read at any time; -ECANCELED: the stream broke off. */
SLUICE_API int sluice_sender_report(const sluice_sender *sender,
				    struct sluice_report *report);
SLUICE_API int sluice_sender_progress(const sluice_sender *sender,
				      struct sluice_progress *progress);

/* The receiving end. The same rules apply. */
SLUICE_API int sluice_receiver_create(sluice_endpoint *endpoint,
				      const struct sluice_stream_options *options,
				      sluice_receiver **receiver);
SLUICE_API void sluice_receiver_free(sluice_receiver *receiver);

/*
 * Wait for the next offer. The value is 1, and sluice_receiver_offer() returns it; or
 * 0: the sender has no more, and has left, or stayed for patience_ns. -ETIMEDOUT if
 * nothing is offered for that long; -ECONNRESET, -EREMOTEIO, -EPROTO.
 * -EINVAL from offer, receive and refuse: there is no offer now.
 */
SLUICE_API int sluice_receiver_next(sluice_receiver *receiver,
				    sluice_operation **operation);
SLUICE_API int sluice_receiver_offer(const sluice_receiver *receiver,
				     struct sluice_offer *offer);

/*
 * Receive what was offered. The operation's value is the bytes moved. Its errors are
 * those of sluice_sender_send(), that of a file that cannot be written, -EBADMSG if what
 * arrived differs, -ENOLINK also if the card cannot register a piece, and -EINVAL if the
 * memory of the sink is smaller than what was offered, or the offer has no size.
 */
SLUICE_API int sluice_receiver_receive(sluice_receiver *receiver,
				       const struct sluice_sink *sink,
				       sluice_operation **operation);

/* Refuse the offer, and tell the sender why. That ends the stream: the sender's operation
 * is -EREMOTEIO, and so is sluice_receiver_next() after this. */
SLUICE_API int sluice_receiver_refuse(sluice_receiver *receiver, const char *why,
				      sluice_operation **operation);

/* As sluice_sender_report() and sluice_sender_progress(). */
SLUICE_API int sluice_receiver_report(const sluice_receiver *receiver,
				      struct sluice_report *report);
SLUICE_API int sluice_receiver_progress(const sluice_receiver *receiver,
					struct sluice_progress *progress);

/* -------------------------------------------------------------------- kv */

/*
 * Where the parts of the blocks of a KV cache are, as language model servers lay them
 * out: each block has a part in each plane of each layer. Block b of plane p of layer l
 * begins at (l * planes + p) * plane_stride + b * block_stride.
 */
struct sluice_kv_layout {
	size_t size;
	uint32_t layers;
	uint32_t planes; /* K and V: 2; 1 where they are together */
	uint32_t blocks; /* in each plane */
	uint32_t reserved;
	uint64_t block_bytes;  /* of a block in one plane */
	uint64_t block_stride; /* 0: block_bytes, contiguous */
	uint64_t plane_stride; /* 0: blocks * block_stride */
};

/* The bytes that a cache has at least. -EINVAL names what is impossible. Any thread. */
SLUICE_API int sluice_kv_size(const struct sluice_kv_layout *layout, uint64_t *bytes);

/*
 * What a sender of @count blocks offers: the name of its source, which holds the shape,
 * and the bytes. C++, Python and `sluice kv` give the same name. Any thread.
 */
SLUICE_API int sluice_kv_offer(const struct sluice_kv_layout *layout, size_t count,
			       struct sluice_offer *offer);

/*
 * Does an offer match @count blocks of this shape? The strides and the size of the
 * cache may differ. -EPROTO names both shapes. Any thread.
 */
SLUICE_API int sluice_kv_fits(const struct sluice_kv_layout *layout, size_t count,
			      const struct sluice_offer *offer);

enum sluice_kv_use {
	SLUICE_KV_READ, /* a block may be named again */
	SLUICE_KV_WRITE /* a block may be named once */
};

/*
 * The memory of blocks, layer by layer and plane by plane, in the order of @blocks: for
 * a source, a sink, or sluice_batch_gather() and sluice_batch_scatter(). Adjacent parts
 * are merged.
 * @use: enum sluice_kv_use
 * @parts: the caller's array; they name the buffer of the cache. NULL: only count them
 * @room: how many parts there is room for
 * @filled: how many there are
 * -EINVAL, with the index of the block at fault. Any thread.
 */
SLUICE_API int sluice_kv_parts(const struct sluice_kv_layout *layout,
			       const struct sluice_slice *cache, const uint32_t *blocks,
			       size_t count, int use, struct sluice_slice *parts,
			       size_t room, size_t *filled);

/* -------------------------------------------------------------- topology */

enum sluice_format {
	SLUICE_TEXT, /* lines for people, which may change */
	SLUICE_JSON  /* a document, as `sluice info --json A B` prints it */
};

/*
 * Inspect the machine, as an ordinary user can. Any thread.
 * @root: where sys and proc are; NULL: "/"
 */
SLUICE_API int sluice_topology_read(const char *root, sluice_topology **topology);
SLUICE_API void sluice_topology_free(sluice_topology *topology);

/*
 * The names of what there is, nodes, GPUs, cards and disks: "node0", "gpu0", "mlx5_0".
 * Valid as long as the topology. NULL after the last one.
 */
SLUICE_API const char *sluice_topology_name(const sluice_topology *topology,
					    uint32_t index);

/*
 * The path that data take between two of them, what limits it, and what would improve
 * it.
 * @a, @b: a name, a PCI address or a render node. -EIO names what there is.
 * @format: enum sluice_format
 * @text: the caller frees it by sluice_free()
 */
SLUICE_API int sluice_topology_explain(const sluice_topology *topology, const char *a,
				       const char *b, int format, char **text);

/* Free text that a function returned. */
SLUICE_API void sluice_free(char *text);

#ifdef __cplusplus
}
#endif

#endif /* SLUICE_H */
