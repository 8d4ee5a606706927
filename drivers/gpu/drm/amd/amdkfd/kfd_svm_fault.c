// SPDX-License-Identifier: MIT
/**
 * DOC: Faults beside windows on SVM memory
 *
 * The handler of retry faults handles those of all processes, so it does not
 * wait for jobs, nor for locks whose holders may wait for jobs, such as
 * mmap_lock. It leaves faults of queues of a process that asks for windows to a
 * worker of the process, and a queue faults again until its fault has been
 * handled. Where a window is open, the page that a queue missed is mapped by
 * now.
 *
 * The VMID tells a fault of a job of AMDGPU_CS from one of a queue. On a GPU
 * that may have partitions, nothing is brought in for such a job, and its fault
 * ends as an error. On other GPUs, the worker brings in memory for it, as for a
 * queue. But what the worker waits for may come after that job, so its fault
 * ends if the worker has been at one fault for long.
 *
 * A fault that is not allowed ends with an invalid entry, which may take away
 * the mapping of other pages. While a job uses these, the fault comes again;
 * after that, no range counts as mapped. So a job of AMDGPU_CS that writes
 * where it may only read, and that is followed by a job that reads there, ends
 * by its ring's timeout.
 */

#include "kfd_priv.h"
#include "kfd_svm.h"
#include "kfd_svm_window.h"

/* A queue that runs faults again much sooner. */
#define DENIED_FOR	(HZ / 50)
/* Longer than a batch may wait, and less than the timeout of a ring. */
#define STUCK_AFTER	(3 * HZ / 2)

/*
 * A denied fault may take away a whole entry, of a GiB at most, so this waits
 * for jobs that use it: first without locks, and then while no windows are
 * opened. Returns false if the fault comes again.
 */
static bool deny_fault(struct svm_range_list *svms,
		       const struct amdgpu_vm_fault *fault)
{
	const unsigned long each = SZ_1G >> PAGE_SHIFT;
	const unsigned long page = fault->addr >> PAGE_SHIFT;
	const unsigned long start = ALIGN_DOWN(page, each);
	const unsigned long last = start + each - 1;
	bool denied;

	kfd_svm_windows_leave(svms, start, last);
	mutex_lock(&svms->lock);
	kfd_svm_windows_leave(svms, start, last);
	denied = amdgpu_vm_deny_fault(fault);
	mutex_unlock(&svms->lock);
	return denied;
}

static void svm_fault_work(struct work_struct *work)
{
	struct svm_range_list *svms = container_of(work, struct svm_range_list,
						   fault_work);
	const struct amdgpu_vm_fault *fault = &svms->fault;
	bool waited = false, denied;
	int r;

	r = svm_range_restore_pages(fault, &waited);
	/* without locks; the second time no windows are opened in between */
	if (!r && waited)
		r = svm_range_restore_pages(fault, &waited);
	denied = r && deny_fault(svms, fault);
	spin_lock(&svms->fault_lock);
	if (denied) {
		svms->denied = *fault;
		svms->denied_until = (jiffies + DENIED_FOR) | 1;
	}
	svms->fault_pending = false;
	spin_unlock(&svms->fault_lock);
}

static bool is_same_fault(const struct amdgpu_vm_fault *a,
			  const struct amdgpu_vm_fault *b)
{
	return a->adev == b->adev && a->pasid == b->pasid &&
	       a->vmid == b->vmid && a->node_id == b->node_id &&
	       a->addr == b->addr && a->write == b->write;
}

/* A denial is reported once: a later attempt of the queue is a new fault. */
static bool take_denied(struct svm_range_list *svms,
			const struct amdgpu_vm_fault *fault)
{
	if (!svms->denied_until || !is_same_fault(&svms->denied, fault))
		return false;
	if (!time_before(jiffies, svms->denied_until))
		return false;
	svms->denied_until = 0;
	return true;
}

/* The worker may be waiting for jobs, or for a lock whose holder does. */
static bool is_stuck(struct svm_range_list *svms)
{
	return svms->fault_pending &&
	       time_after(jiffies, svms->fault_since + STUCK_AFTER);
}

static bool is_of_job(struct kfd_process *p,
		      const struct amdgpu_vm_fault *fault)
{
	struct kfd_node *node;

	node = kfd_node_by_irq_ids(fault->adev, fault->node_id, fault->vmid);
	return kfd_svm_fault_is_of_job(node ? node->compute_vmid_bitmap : 0,
				       fault->vmid,
				       node && READ_ONCE(p->xnack_enabled) &&
				       !is_stuck(&p->svms));
}

static enum kfd_svm_fault_by fault_by(struct kfd_process *p,
				      const struct amdgpu_vm_fault *fault)
{
	struct svm_range_list *svms = &p->svms;

	if (!READ_ONCE(svms->windows_used))
		return KFD_SVM_FAULT_HERE;
	if (is_of_job(p, fault))
		return KFD_SVM_FAULT_OF_JOB;
	if (take_denied(svms, fault))
		return KFD_SVM_FAULT_DENIED;
	if (!svms->fault_pending) {
		svms->fault = *fault;
		svms->fault_pending = true;
		svms->fault_since = jiffies;
		queue_work(system_freezable_wq, &svms->fault_work);
	}
	return KFD_SVM_FAULT_LATER;
}

/**
 * kfd_svm_handle_fault - leave a fault to a worker of the process
 * @fault: in the VM of a compute process
 *
 * Unless no job of the kernel was about to use SVM memory of the process. The
 * worker handles one at a time: others that occur meanwhile come again, too.
 *
 * Return: who handles the fault.
 */
enum kfd_svm_fault_by kfd_svm_handle_fault(const struct amdgpu_vm_fault *fault)
{
	enum kfd_svm_fault_by by;
	struct kfd_process *p;

	p = kfd_lookup_process_by_pasid(fault->pasid, NULL);
	if (!p)
		return KFD_SVM_FAULT_HERE;
	spin_lock(&p->svms.fault_lock);
	by = fault_by(p, fault);
	spin_unlock(&p->svms.fault_lock);
	kfd_unref_process(p);
	return by;
}

static bool is_open(struct kfd_svm_user *user, unsigned long page, bool write)
{
	enum kfd_svm_place place;
	unsigned long last;

	return kfd_svm_window_find(user, page, write, &last, &place);
}

/**
 * kfd_svm_window_is_open - does the GPU have a page that its queue wants?
 * @p: process
 * @gpuidx: the GPU's index in the process
 * @page: address
 * @write: to be written
 *
 * Return: true if a job may use it, and so may a queue.
 */
bool kfd_svm_window_is_open(struct kfd_process *p, u32 gpuidx,
			    unsigned long page, bool write)
{
	struct kfd_svm_user user = {
		.p = p, .pdd = p->pdds[gpuidx], .gpuidx = gpuidx,
	};
	bool found;

	kfd_svm_windows_lock(&user);
	found = is_open(&user, page, write);
	kfd_svm_windows_unlock(&user);
	return found;
}

/*
 * True if no job uses what the entry maps, or is about to. Does not wait for
 * the lock of the windows: a batch that has many of them holds it for long.
 */
static bool lose_entry(struct kfd_process *p, u32 gpuidx, struct amdgpu_vm *vm,
		       u64 page, bool write)
{
	const u64 each = AMDGPU_GPU_PAGES_IN_CPU_PAGE;
	struct kfd_process_device *pdd = p->pdds[gpuidx];
	struct amdgpu_device *adev = pdd->dev->adev;
	struct kfd_svm_user user = {
		.p = p, .pdd = pdd, .gpuidx = gpuidx,
		.generation = amdgpu_vm_generation(adev, vm),
	};
	u64 first, end;
	bool lost;

	if (!mutex_trylock(&p->svms.windows_lock))
		return false;
	amdgpu_vm_pt_entry(adev, vm, page, &first, &end);
	lost = !is_open(&user, page / each, write) &&
	       kfd_svm_windows_have_none(&user, first / each, end / each);
	mutex_unlock(&p->svms.windows_lock);
	if (lost)
		atomic64_inc(&p->svms.lost);
	return lost;
}

/**
 * kfd_svm_windows_lose - an entry of the page tables is about to be taken away
 * @vm: of a file, its page tables are reserved
 * @page: GPU page of a fault, which the entry maps, if it is valid
 * @write: a write has faulted
 *
 * The caller does not know of SVM memory.
 *
 * Return: false if it has to stay: jobs use what it maps, or the fault is over.
 */
bool kfd_svm_windows_lose(struct amdgpu_vm *vm, u64 page, bool write)
{
	struct kfd_process *p;
	bool lost = true;
	int gpuidx;

	p = kfd_lookup_process_by_pasid(vm->pasid, NULL);
	if (!p)
		return true;
	gpuidx = kfd_svm_gpuidx(p, vm);
	if (gpuidx >= 0)
		lost = lose_entry(p, gpuidx, vm, page, write);
	kfd_unref_process(p);
	return lost;
}

/**
 * kfd_svm_wait_to_clear - amdgpu_vm_wait_to_clear(), while jobs may have faults
 * @svms: ranges of the process
 * @vm: of the process
 * @intr: a signal ends the wait
 *
 * Return: 0 or -ERESTARTSYS.
 */
int kfd_svm_wait_to_clear(struct svm_range_list *svms, struct amdgpu_vm *vm,
			  bool intr)
{
	int r;

	atomic_inc(&svms->leaving);
	r = amdgpu_vm_wait_to_clear(vm, intr);
	atomic_dec(&svms->leaving);
	return r;
}

/**
 * kfd_svm_faults_init - initialize the fault handling of a new process
 * @svms: ranges of the process
 */
void kfd_svm_faults_init(struct svm_range_list *svms)
{
	spin_lock_init(&svms->fault_lock);
	svms->fault_pending = false;
	svms->denied_until = 0;
	INIT_WORK(&svms->fault_work, svm_fault_work);
}
