/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * Interface of the two peer memory test drivers. It serves the kernel's own
 * tests and is not a stable ABI; see Documentation/mm/hmm.rst for what they
 * exercise.
 *
 * peer_mem   a PCI device whose BAR is its memory, with one device private
 *	      page for each page of the BAR: /dev/peer_mem0, /dev/peer_mem1, ...
 *	      Page i of the device is page i of the BAR, so "offset" below means
 *	      both a place in the BAR and the device private page that it backs.
 * peer_edu   a PCI device that reads and writes user memory by its own DMA
 *	      engine: /dev/peer_edu0, ...
 *
 * The contract of all ioctls:
 *
 *   EINVAL	a flag that is not listed, a pad that is not zero, an address
 *		or length that is not aligned as asked, a length of zero, or
 *		a range that wraps or is longer than the limit
 *   EFAULT	the argument or a buffer that it names is not accessible
 *   ENODEV	the driver was unbound from the device; the file can only be
 *		closed
 *   ENOTTY	no such ioctl
 *   ENOMEM	no memory for the driver's own bookkeeping
 *
 * and the errors that each ioctl lists. Output fields are ignored on input.
 * They are written unless the error is one of the above, so a call that stopped
 * half-way tells how far it came. Only a fatal signal ends a call early.
 */
#ifndef _PEER_TEST_UAPI_H
#define _PEER_TEST_UAPI_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define PEER_TEST_IOC		0xBE

/* The longest user range that one ioctl takes. */
#define PEER_MEM_MAX_LEN	0x40000000ULL

/* The longest buffer of PEER_MEM_PEEK and PEER_MEM_POKE. */
#define PEER_MEM_MAX_RW		0x200000ULL

/*
 * Use 4 KiB pages even where a 2 MiB one would fit. A huge page in the range
 * is split for it.
 */
#define PEER_MEM_MIGRATE_SMALL	0x1U

/**
 * struct peer_mem_migrate - PEER_MEM_TO_DEV and PEER_MEM_TO_SYS
 * @addr:	start of the user range, page aligned
 * @len:	its length in bytes, a multiple of the page size
 * @flags:	PEER_MEM_MIGRATE_SMALL, or 0
 * @pad:	zero
 * @moved:	out: how many 4 KiB pages this call moved
 *
 * Migration is best effort: a page that is pinned, belongs to a file, or for
 * which there is no memory stays where it is, and the call succeeds. On the
 * way to the device, anonymous memory that was never touched is populated
 * there. PEER_MEM_LOOKUP tells where the pages are.
 *
 *   ENOENT	part of the range is not mapped
 *   EOPNOTSUPP	part of the range is a mapping whose pages never migrate
 */
struct peer_mem_migrate {
	__u64 addr;
	__u64 len;
	__u32 flags;
	__u32 pad;
	__u64 moved;
};

/* Only revoke: the pages stay, as they do while a device is reset. */
#define PEER_MEM_REVOKE_ONLY	0x1U
/* Peers let go of the pages that they have mapped, too; the pages stay. */
#define PEER_MEM_REVOKE_END	0x2U

/**
 * struct peer_mem_evict - PEER_MEM_EVICT and PEER_MEM_REVOKE
 * @flags:	for PEER_MEM_REVOKE one of PEER_MEM_REVOKE_*, or 0
 * @pad:	zero
 * @moved:	out: how many 4 KiB pages left the device
 *
 * PEER_MEM_EVICT moves every page of the device to system memory, whichever
 * process it belongs to. PEER_MEM_REVOKE first takes the alias back, so that
 * no peer can map a page any more; it succeeds if there is no alias.
 *
 *   EBUSY	pages are left: they have other references, or memory is short
 */
struct peer_mem_evict {
	__u32 flags;
	__u32 pad;
	__u64 moved;
};

/* Publish without a CPU mapping: a virtual DMA device cannot use the alias. */
#define PEER_MEM_PUBLISH_NO_CPU	0x1U

/**
 * struct peer_mem_publish - PEER_MEM_PUBLISH
 * @visible:	how many bytes from the start of the device peers may reach:
 *		a multiple of the page size, at most the size of the device,
 *		not 0
 * @flags:	PEER_MEM_PUBLISH_NO_CPU, or 0
 * @pad:	zero
 *
 * Publishes the device's memory for peers. If an alias is published already, it
 * is first revoked and the pages are evicted, as by PEER_MEM_REVOKE; so are
 * pages that an earlier PEER_MEM_REVOKE has left. When a device is bound, all
 * of its memory is published.
 *
 *   EBUSY	as for PEER_MEM_REVOKE; there is no alias now
 *   EOPNOTSUPP	the kernel has no peer-to-peer DMA for this device
 */
struct peer_mem_publish {
	__u64 visible;
	__u32 flags;
	__u32 pad;
};

/**
 * struct peer_mem_info - PEER_MEM_INFO
 * @size:	bytes of memory in the device
 * @visible:	bytes that peers may reach; 0: there is no alias
 * @bar_phys:	CPU physical address of offset 0
 * @bar_bus:	address of offset 0 on the PCI bus
 * @pages:	4 KiB pages that hold data of some process now
 * @huge:	2 MiB pages among them, counted once each
 * @moved_in:	4 KiB pages migrated to the device since it was bound
 * @moved_out:	4 KiB pages migrated out of it by any way: asked for, evicted,
 *		or touched by a CPU
 * @faults:	calls of migrate_to_ram(): the times that a CPU, or a device
 *		that could not use the alias, touched a page
 * @evicted:	4 KiB pages of @moved_out that were evicted
 * @mapped:	alias: 4 KiB pages that were mapped for a peer
 * @unreachable: alias: pages given up because the peer has no path to the BAR
 * @invisible:	alias: pages given up because they lie beyond @visible
 * @no_cpu:	alias: pages given up for lack of a CPU mapping
 * @revoked:	alias: pages given up because there was no alias
 * @map_failed:	alias: pages that were accepted and could not be mapped
 * @revokes:	alias: how often it was taken back
 */
struct peer_mem_info {
	__u64 size;
	__u64 visible;
	__u64 bar_phys;
	__u64 bar_bus;
	__u64 pages;
	__u64 huge;
	__u64 moved_in;
	__u64 moved_out;
	__u64 faults;
	__u64 evicted;
	__u64 mapped;
	__u64 unreachable;
	__u64 invisible;
	__u64 no_cpu;
	__u64 revoked;
	__u64 map_failed;
	__u64 revokes;
};

/**
 * struct peer_mem_rw - PEER_MEM_PEEK and PEER_MEM_POKE
 * @offset:	place in the device, a multiple of 8
 * @len:	bytes to copy, a multiple of 8, at most PEER_MEM_MAX_RW
 * @buf:	user buffer
 *
 * Read or write the device's memory without telling its users, as the device's
 * own engines would. Bytes already copied are not counted if @buf faults.
 *
 *   ERANGE	the end lies beyond the device
 */
struct peer_mem_rw {
	__u64 offset;
	__u64 len;
	__u64 buf;
};

/* What PEER_MEM_LOOKUP reports for a page that is not in this device. */
#define PEER_MEM_NOWHERE	(~0ULL)

/* Bits below the page size in what PEER_MEM_LOOKUP reports. */
#define PEER_MEM_WRITABLE	0x1ULL	/* without a fault */
#define PEER_MEM_HUGE		0x2ULL	/* mapped by a 2 MiB entry */
#define PEER_MEM_OFFSET_MASK	(~0xfffULL)

/**
 * struct peer_mem_lookup - PEER_MEM_LOOKUP
 * @addr:	start of the user range, page aligned
 * @len:	its length in bytes, a multiple of the page size
 * @offsets:	user array of one __u64 a page
 *
 * For each page, writes its offset in the device, with PEER_MEM_WRITABLE and
 * PEER_MEM_HUGE or'ed in, or PEER_MEM_NOWHERE. Faults nothing and moves
 * nothing; by the time that it returns the answer may be old.
 *
 *   EBUSY	the range kept changing
 */
struct peer_mem_lookup {
	__u64 addr;
	__u64 len;
	__u64 offsets;
};

/* What PEER_MEM_INJECT can make fail. */
enum peer_mem_failure {
	PEER_MEM_FAIL_DEV = 0,		/* any allocation in the device */
	PEER_MEM_FAIL_DEV_HUGE = 1,	/* a 2 MiB allocation in the device */
	PEER_MEM_FAIL_SYS = 2,		/* any allocation on the way out */
	PEER_MEM_FAIL_SYS_HUGE = 3,	/* a 2 MiB allocation on the way out */
};

/**
 * struct peer_mem_inject - PEER_MEM_INJECT
 * @kind:	enum peer_mem_failure
 * @count:	how many of the next allocations of that kind fail; 0 stops it
 *
 * Eviction tries again if it gets no 2 MiB page, and ignores
 * PEER_MEM_FAIL_SYS.
 */
struct peer_mem_inject {
	__u32 kind;
	__u32 count;
};

#define PEER_MEM_INFO	  _IOR(PEER_TEST_IOC, 0x00, struct peer_mem_info)
#define PEER_MEM_TO_DEV	  _IOWR(PEER_TEST_IOC, 0x01, struct peer_mem_migrate)
#define PEER_MEM_TO_SYS	  _IOWR(PEER_TEST_IOC, 0x02, struct peer_mem_migrate)
#define PEER_MEM_EVICT	  _IOWR(PEER_TEST_IOC, 0x03, struct peer_mem_evict)
#define PEER_MEM_REVOKE	  _IOWR(PEER_TEST_IOC, 0x04, struct peer_mem_evict)
#define PEER_MEM_PUBLISH  _IOW(PEER_TEST_IOC, 0x05, struct peer_mem_publish)
#define PEER_MEM_PEEK	  _IOW(PEER_TEST_IOC, 0x06, struct peer_mem_rw)
#define PEER_MEM_POKE	  _IOW(PEER_TEST_IOC, 0x07, struct peer_mem_rw)
#define PEER_MEM_LOOKUP	  _IOW(PEER_TEST_IOC, 0x08, struct peer_mem_lookup)
#define PEER_MEM_INJECT	  _IOW(PEER_TEST_IOC, 0x09, struct peer_mem_inject)

/* The edu device copies through a buffer of this size. */
#define PEER_EDU_BUF_SIZE	4096

/* The device writes the user's memory from its buffer; else it reads it. */
#define PEER_EDU_WRITE		0x1U
/* Take no alias: device private pages are migrated to system memory first. */
#define PEER_EDU_NO_ALIAS	0x2U

/* How a page was mapped for the edu device. */
enum peer_edu_route {
	PEER_EDU_NONE = 0,		/* the transfer has no such page */
	PEER_EDU_RAM = 1,		/* system memory */
	PEER_EDU_BUS_ADDR = 2,		/* alias, straight over a PCI switch */
	PEER_EDU_HOST_BRIDGE = 3,	/* alias, through the host bridge */
};

/* Flags of how the transfer went. */
#define PEER_EDU_IOVA		0x1U  /* an IOMMU translated one range */
#define PEER_EDU_FELL_BACK	0x2U  /* mapping failed: alias given up */

/**
 * struct peer_edu_xfer - PEER_EDU_XFER
 * @addr:	user address, a multiple of 8
 * @len:	bytes, a multiple of 8, at most PEER_EDU_BUF_SIZE
 * @flags:	PEER_EDU_WRITE, PEER_EDU_NO_ALIAS, or 0
 * @result:	out: PEER_EDU_IOVA, PEER_EDU_FELL_BACK
 * @faults:	out: how often the range was faulted, 1 if nothing intervened
 * @route:	out: enum peer_edu_route of the one or two pages
 * @dma_addr:	out: the address that the device used for each of them
 *
 * Copies between user memory and the start of the device's buffer by the
 * device's DMA engine. The buffer keeps its content between calls, also of
 * other files. The device keeps no page: it maps the range for this one
 * transfer, under a notifier that moves and unmaps wait for.
 *
 *   EBUSY	the range kept changing
 *   EIO	the DMA engine did not finish, or the pages cannot be mapped
 *   EOPNOTSUPP	the device's mappings would need bounce buffers
 *   EPERM	the device writes and the user may not write
 */
struct peer_edu_xfer {
	__u64 addr;
	__u32 len;
	__u32 flags;
	__u32 result;
	__u32 faults;
	__u32 route[2];
	__u64 dma_addr[2];
};

/* The region has pages of 2 MiB, and takes no smaller ones. */
#define PEER_EDU_HUGE		0x4U

/**
 * struct peer_edu_map - PEER_EDU_MAP
 * @addr:	user address, a multiple of 8
 * @len:	bytes, at most PEER_MEM_MAX_LEN
 * @flags:	PEER_EDU_NO_ALIAS, PEER_EDU_HUGE, or 0
 * @pad:	zero
 *
 * Makes a region for PEER_EDU_USE, one for each open file. It is removed by
 * PEER_EDU_UNMAP, by the last close, or when the device is unbound.
 *
 *   EBUSY	the file has one already
 *   EOPNOTSUPP	the device's mappings would need bounce buffers
 */
struct peer_edu_map {
	__u64 addr;
	__u64 len;
	__u32 flags;
	__u32 pad;
};

/* Fault and map the range, also pages that are mapped already; copy nothing. */
#define PEER_EDU_PREFETCH	0x10U
/* With PEER_EDU_PREFETCH: map the pages that are present, fault nothing. */
#define PEER_EDU_SNAPSHOT	0x20U

/**
 * struct peer_edu_use - PEER_EDU_USE
 * @offset:	bytes from the start of the region, a multiple of 8
 * @len:	bytes, a multiple of 8, at most PEER_EDU_BUF_SIZE without
 *		PEER_EDU_PREFETCH
 * @flags:	PEER_EDU_WRITE, PEER_EDU_PREFETCH, PEER_EDU_SNAPSHOT, or 0
 * @faults:	out: 0 if all pages were still mapped from an earlier call, else
 *		1; with PEER_EDU_PREFETCH always 1
 * @route:	out: enum peer_edu_route of the first two pages in the range
 * @dma_addr:	out: the address that the device has for each of them
 * @mapped:	out: how many pages of the region are mapped now
 * @invalidated: out: how many of its pages the notifier has unmapped so far
 * @pad:	zero
 *
 * Copies as PEER_EDU_XFER does, but pages that are not mapped yet are mapped and
 * stay so, until they are invalidated.
 *
 *   EBUSY	the range kept changing
 *   EIO	the DMA engine did not finish, or the pages cannot be mapped
 *   ENOENT	the file has no region
 *   EPERM	the device writes and the user may not write
 *   EPROTO	the RDMA core gave a page that is smaller than those of the region
 */
struct peer_edu_use {
	__u64 offset;
	__u64 len;
	__u32 flags;
	__u32 faults;
	__u32 route[2];
	__u64 dma_addr[2];
	__u64 mapped;
	__u64 invalidated;
	__u64 pad;
};

#define PEER_EDU_XFER	  _IOWR(PEER_TEST_IOC, 0x40, struct peer_edu_xfer)
#define PEER_EDU_MAP	  _IOW(PEER_TEST_IOC, 0x41, struct peer_edu_map)
#define PEER_EDU_USE	  _IOWR(PEER_TEST_IOC, 0x42, struct peer_edu_use)
#define PEER_EDU_UNMAP	  _IO(PEER_TEST_IOC, 0x43)

#endif /* _PEER_TEST_UAPI_H */
