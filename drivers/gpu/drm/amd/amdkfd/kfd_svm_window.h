/* SPDX-License-Identifier: MIT */
#ifndef KFD_SVM_WINDOW_H_
#define KFD_SVM_WINDOW_H_

#include <linux/bits.h>
#include <linux/interval_tree.h>
#include <linux/list.h>
#include <linux/types.h>

struct amdgpu_vm;
struct amdgpu_vm_fault;
struct dma_fence;
struct kfd_process;
struct kfd_process_device;
struct mm_struct;
struct svm_range_list;

/* Where the memory of a window is, as seen by the GPU that uses it. */
enum kfd_svm_place {
	KFD_SVM_IN_VRAM,
	KFD_SVM_IN_SYSTEM,
	KFD_SVM_IN_PEER,
	KFD_SVM_PLACES
};

/**
 * struct kfd_svm_user - submitter of jobs that use SVM memory
 * @p: process, with a reference; NULL if it has no SVM memory in the VM
 * @mm: of the process, that of the caller
 * @pdd: the GPU in the process
 * @gpuidx: of @pdd
 * @generation: of the VM, while the windows are locked
 * @found: the windows found last since they were locked, for reading and for
 *	writing; NULL if none
 * @jobs: entries for those that are about to be armed
 */
struct kfd_svm_user {
	struct kfd_process *p;
	struct mm_struct *mm;
	struct kfd_process_device *pdd;
	u32 gpuidx;
	u64 generation;
	struct kfd_svm_window *found[2];
	struct list_head jobs;
};

/**
 * struct kfd_svm_job - a job that uses SVM memory
 * @list: of the GPU in the process, or of the user that is about to arm it
 * @fence: signals when the job has ended
 * @seq: &svm_range_list.windows_seq when it was armed: it uses no windows
 *	closed by then
 */
struct kfd_svm_job {
	struct list_head list;
	struct dma_fence *fence;
	u64 seq;
};

/**
 * struct kfd_svm_mark - state of windows when they were looked at
 * @seq: of the last one that was closed
 * @generation: of the VM
 */
struct kfd_svm_mark {
	u64 seq;
	u64 generation;
};

/**
 * struct kfd_svm_window - pages that a GPU has mapped
 * @pages: in &svm_range_list.windows
 * @list: in &svm_range_list.windows_closed, if it is closed
 * @gpuidx: the GPU
 * @place: of all pages
 * @writable: the GPU may write to all of them
 * @generation: of the VM that they are mapped in
 * @closed: &svm_range_list.windows_seq when it was closed, or 0
 */
struct kfd_svm_window {
	struct interval_tree_node pages;
	struct list_head list;
	u32 gpuidx;
	enum kfd_svm_place place;
	bool writable;
	u64 generation;
	u64 closed;
};

/**
 * struct kfd_svm_want - memory that a job is about to use
 * @start: first page
 * @last: last page
 * @write: it writes there
 * @fault: memory that is out of reach may be faulted in or migrated
 * @nonblock: fail instead of waiting for earlier jobs
 */
struct kfd_svm_want {
	unsigned long start;
	unsigned long last;
	bool write;
	bool fault;
	bool nonblock;
};

/**
 * enum kfd_svm_fault_by - who handles a fault in the VM of a compute process
 * @KFD_SVM_FAULT_HERE: the caller
 * @KFD_SVM_FAULT_LATER: a worker; the fault comes again
 * @KFD_SVM_FAULT_DENIED: already done: the worker has ended it as an error
 * @KFD_SVM_FAULT_OF_JOB: the caller, as an error and without waiting
 */
enum kfd_svm_fault_by {
	KFD_SVM_FAULT_HERE,
	KFD_SVM_FAULT_LATER,
	KFD_SVM_FAULT_DENIED,
	KFD_SVM_FAULT_OF_JOB,
};

/**
 * kfd_svm_fault_is_of_job - is a worker of no use for a fault?
 * @queue_vmids: VMIDs of queues, where the fault occurred
 * @vmid: of the fault
 * @brings: the worker brings in memory for jobs of AMDGPU_CS, too
 *
 * Return: true if it is a fault of such a job, and has to end.
 */
static inline bool kfd_svm_fault_is_of_job(u32 queue_vmids, u32 vmid,
					   bool brings)
{
	return !(queue_vmids & BIT(vmid)) && !brings;
}

#define KFD_SVM_ALL_GPUS	U64_MAX

/**
 * struct kfd_svm_leave - memory that is about to change
 * @start: first page
 * @last: last page
 * @seq: of the last window that was closed there
 * @gpus: GPUs that had windows there
 */
struct kfd_svm_leave {
	unsigned long start;
	unsigned long last;
	u64 seq;
	u64 gpus;
};

#if IS_ENABLED(CONFIG_HSA_AMD_SVM)

/* For submitters of jobs. */
bool kfd_svm_user_get(struct kfd_svm_user *user, struct amdgpu_vm *vm);
void kfd_svm_user_put(struct kfd_svm_user *user);
void kfd_svm_windows_lock(struct kfd_svm_user *user);
void kfd_svm_windows_unlock(struct kfd_svm_user *user);
struct kfd_svm_mark kfd_svm_windows_mark(struct kfd_svm_user *user);
bool kfd_svm_windows_unchanged(struct kfd_svm_user *user,
			       const struct kfd_svm_mark *mark);
bool kfd_svm_window_find(struct kfd_svm_user *user, unsigned long page,
			 bool write, unsigned long *last,
			 enum kfd_svm_place *place);
int kfd_svm_jobs_reserve(struct kfd_svm_user *user, unsigned int num);
void kfd_svm_jobs_add(struct kfd_svm_user *user, struct dma_fence *fence);
void kfd_svm_jobs_unreserve(struct kfd_svm_user *user);
void kfd_svm_window_add(struct kfd_svm_user *user, struct kfd_svm_window *w);
int kfd_svm_window_open(struct kfd_svm_user *user,
			const struct kfd_svm_want *want);

/* For code that changes the memory. */
void kfd_svm_jobs_init(struct kfd_process_device *pdd);
void kfd_svm_jobs_fini(struct kfd_process_device *pdd);
void kfd_svm_windows_init(struct svm_range_list *svms);
void kfd_svm_windows_fini(struct svm_range_list *svms);
struct kfd_svm_leave kfd_svm_windows_close(struct svm_range_list *svms,
					   unsigned long start,
					   unsigned long last, u64 gpus);
struct kfd_svm_leave kfd_svm_windows_close_entries(struct svm_range_list *svms,
						   u32 gpuidx,
						   unsigned long start,
						   unsigned long last);
bool kfd_svm_windows_busy(struct svm_range_list *svms,
			  const struct kfd_svm_leave *leave);
struct kfd_svm_leave kfd_svm_windows_closed(struct svm_range_list *svms);
void kfd_svm_windows_remove(struct svm_range_list *svms,
			    const struct kfd_svm_leave *leave);
void kfd_svm_windows_wait(struct svm_range_list *svms,
			  const struct kfd_svm_leave *leave);
void kfd_svm_windows_leave(struct svm_range_list *svms, unsigned long start,
			   unsigned long last);
void kfd_svm_leave_add(struct kfd_svm_leave *leave,
		       const struct kfd_svm_leave *other);

/* For code that handles faults. */
void kfd_svm_faults_init(struct svm_range_list *svms);
int kfd_svm_gpuidx(struct kfd_process *p, const struct amdgpu_vm *vm);
bool kfd_svm_window_is_open(struct kfd_process *p, u32 gpuidx,
			    unsigned long page, bool write);
enum kfd_svm_fault_by kfd_svm_handle_fault(const struct amdgpu_vm_fault *fault);
bool kfd_svm_windows_lose(struct amdgpu_vm *vm, u64 page, bool write);
bool kfd_svm_windows_have_none(struct kfd_svm_user *user, unsigned long start,
			       unsigned long last);
int kfd_svm_wait_to_clear(struct svm_range_list *svms, struct amdgpu_vm *vm,
			  bool intr);

/* For code that maps buffers. */
bool kfd_svm_windows_in_vm(struct amdgpu_vm *vm, u64 first, u64 last);

#else

static inline bool kfd_svm_user_get(struct kfd_svm_user *user,
				    struct amdgpu_vm *vm)
{
	return false;
}

static inline void kfd_svm_user_put(struct kfd_svm_user *user)
{
}

static inline void kfd_svm_windows_lock(struct kfd_svm_user *user)
{
}

static inline void kfd_svm_windows_unlock(struct kfd_svm_user *user)
{
}

static inline int kfd_svm_jobs_reserve(struct kfd_svm_user *user,
				       unsigned int num)
{
	return 0;
}

static inline void kfd_svm_jobs_add(struct kfd_svm_user *user,
				    struct dma_fence *fence)
{
}

static inline void kfd_svm_jobs_unreserve(struct kfd_svm_user *user)
{
}

static inline void kfd_svm_jobs_init(struct kfd_process_device *pdd)
{
}

static inline void kfd_svm_jobs_fini(struct kfd_process_device *pdd)
{
}

static inline struct kfd_svm_mark
kfd_svm_windows_mark(struct kfd_svm_user *user)
{
	return (struct kfd_svm_mark) { };
}

static inline bool kfd_svm_windows_unchanged(struct kfd_svm_user *user,
					     const struct kfd_svm_mark *mark)
{
	return false;
}

static inline bool kfd_svm_window_find(struct kfd_svm_user *user,
				       unsigned long page, bool write,
				       unsigned long *last,
				       enum kfd_svm_place *place)
{
	return false;
}

static inline int kfd_svm_window_open(struct kfd_svm_user *user,
				      const struct kfd_svm_want *want)
{
	return -ENOENT;
}

static inline enum kfd_svm_fault_by
kfd_svm_handle_fault(const struct amdgpu_vm_fault *fault)
{
	return KFD_SVM_FAULT_HERE;
}

static inline bool kfd_svm_windows_lose(struct amdgpu_vm *vm, u64 page,
					bool write)
{
	return true;
}

static inline bool kfd_svm_windows_in_vm(struct amdgpu_vm *vm, u64 first,
					 u64 last)
{
	return false;
}

#endif /* IS_ENABLED(CONFIG_HSA_AMD_SVM) */

#endif /* KFD_SVM_WINDOW_H_ */
