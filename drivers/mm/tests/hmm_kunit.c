// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of what HMM and the alias of device private memory compute, and of what
 * waits for what. They need no page table, no device and no device memory.
 */
#include <kunit/test.h>
#include <linux/delay.h>
#include <linux/hmm-dma.h>
#include <linux/hmm.h>
#include <linux/ioport.h>
#include <linux/memremap-alias.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/pci.h>
#include <linux/pci-p2pdma.h>
#include <linux/sizes.h>
#include <linux/workqueue.h>

#include "../memremap_alias.h"

MODULE_IMPORT_NS("EXPORTED_FOR_KUNIT_TESTING");

/* An invented range of device private memory, and the BAR that shows it. */
#define TEST_RANGE_START	0x100000000000ULL
#define TEST_RANGE_SIZE		(64 * SZ_1M)
#define TEST_ALIAS_START	0xe0000000ULL
#define TEST_PFN		PHYS_PFN(TEST_RANGE_START)

static void hmm_flags_do_not_overlap(struct kunit *test)
{
	static const unsigned long flags[] = {
		HMM_PFN_VALID, HMM_PFN_WRITE, HMM_PFN_ERROR,
		HMM_PFN_DMA_MAPPED, HMM_PFN_P2PDMA, HMM_PFN_P2PDMA_BUS,
		HMM_PFN_DEVICE_PRIVATE,
	};
	unsigned long seen = 0x1fUL << HMM_PFN_ORDER_SHIFT;
	int i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		KUNIT_EXPECT_EQ(test, hweight_long(flags[i]), 1);
		KUNIT_EXPECT_EQ(test, flags[i] & seen, 0);
		seen |= flags[i];
	}
	KUNIT_EXPECT_EQ(test, seen, (unsigned long)HMM_PFN_FLAGS);
}

static void hmm_flags_leave_the_pfn(struct kunit *test)
{
	unsigned long max = PHYS_PFN((1ULL << MAX_PHYSMEM_BITS) - 1);

	KUNIT_EXPECT_EQ(test, max & HMM_PFN_FLAGS, 0);
	KUNIT_EXPECT_EQ(test, hmm_pfn_to_phys(max | HMM_PFN_FLAGS),
			PFN_PHYS(max));
}

static void hmm_order_is_packed(struct kunit *test)
{
	unsigned long others = HMM_PFN_FLAGS & ~(0x1fUL << HMM_PFN_ORDER_SHIFT);
	unsigned long order, entry;

	for (order = 0; order <= PUD_SHIFT - PAGE_SHIFT; order++) {
		entry = order << HMM_PFN_ORDER_SHIFT;
		KUNIT_EXPECT_EQ(test, hmm_pfn_to_map_order(entry), order);
		KUNIT_EXPECT_EQ(test, hmm_pfn_to_map_order(entry | others),
				order);
		KUNIT_EXPECT_FALSE(test, entry & HMM_PFN_DEVICE_PRIVATE);
	}
}

/*
 * A page that may not be used any more: an entry that is mapped for DMA keeps
 * what unmapping needs, no other entry gets the page.
 */
static void hmm_skip_keeps_mappings(struct kunit *test)
{
	const unsigned long page = TEST_PFN | HMM_PFN_VALID |
				   HMM_PFN_DEVICE_PRIVATE;
	const unsigned long mapped = HMM_PFN_DMA_MAPPED | HMM_PFN_P2PDMA;

	KUNIT_EXPECT_EQ(test, pgmap_alias_skip(mapped, page), page | mapped);
	KUNIT_EXPECT_EQ(test, pgmap_alias_skip(HMM_PFN_P2PDMA, page),
			HMM_PFN_P2PDMA);
	KUNIT_EXPECT_EQ(test, pgmap_alias_skip(0, page), 0);
}

static const struct range test_range = {
	.start = TEST_RANGE_START,
	.end = TEST_RANGE_START + TEST_RANGE_SIZE - 1,
};

static struct dev_pagemap_alias test_alias(u64 size)
{
	return (struct dev_pagemap_alias){
		.start = TEST_ALIAS_START,
		.size = size,
		.kaddr = (void __iomem *)TEST_ALIAS_START,
	};
}

static void alias_valid(struct kunit *test)
{
	struct dev_pagemap_alias alias = test_alias(TEST_RANGE_SIZE);

	KUNIT_EXPECT_TRUE(test, pgmap_alias_valid(&test_range, NULL, &alias));

	alias.size = 0;
	KUNIT_EXPECT_TRUE(test, pgmap_alias_valid(&test_range, NULL, &alias));

	/* Larger than the memory. */
	alias.size = TEST_RANGE_SIZE + PAGE_SIZE;
	KUNIT_EXPECT_FALSE(test, pgmap_alias_valid(&test_range, NULL, &alias));

	/* Not a multiple of the page size, not page aligned. */
	alias.size = PAGE_SIZE + 1;
	KUNIT_EXPECT_FALSE(test, pgmap_alias_valid(&test_range, NULL, &alias));
	alias.size = PAGE_SIZE;
	alias.start += 1;
	KUNIT_EXPECT_FALSE(test, pgmap_alias_valid(&test_range, NULL, &alias));

	/* Near the end of the address space, and beyond it. */
	alias.start = -2 * PAGE_SIZE;
	KUNIT_EXPECT_TRUE(test, pgmap_alias_valid(&test_range, NULL, &alias));
	alias.size = 3 * PAGE_SIZE;
	KUNIT_EXPECT_FALSE(test, pgmap_alias_valid(&test_range, NULL, &alias));

	/* Neither a BAR nor a CPU mapping. */
	alias = test_alias(PAGE_SIZE);
	alias.kaddr = NULL;
	KUNIT_EXPECT_FALSE(test, pgmap_alias_valid(&test_range, NULL, &alias));
}

/* The BAR has one page at either end that is not memory. */
static void alias_in_bar(struct kunit *test)
{
	const struct range bar = {
		.start = TEST_ALIAS_START - PAGE_SIZE,
		.end = TEST_ALIAS_START + TEST_RANGE_SIZE + PAGE_SIZE - 1,
	};
	struct dev_pagemap_alias alias = test_alias(TEST_RANGE_SIZE);

	alias.kaddr = NULL;
	KUNIT_EXPECT_TRUE(test, pgmap_alias_valid(&test_range, &bar, &alias));
	alias.start = bar.start;
	KUNIT_EXPECT_TRUE(test, pgmap_alias_valid(&test_range, &bar, &alias));
	alias.start -= PAGE_SIZE;
	KUNIT_EXPECT_FALSE(test, pgmap_alias_valid(&test_range, &bar, &alias));
	alias.start = TEST_ALIAS_START + PAGE_SIZE;
	KUNIT_EXPECT_TRUE(test, pgmap_alias_valid(&test_range, &bar, &alias));
	alias.start += PAGE_SIZE;
	KUNIT_EXPECT_FALSE(test, pgmap_alias_valid(&test_range, &bar, &alias));
	alias.size -= PAGE_SIZE;
	KUNIT_EXPECT_TRUE(test, pgmap_alias_valid(&test_range, &bar, &alias));
	alias.start = 0;
	alias.size = PAGE_SIZE;
	KUNIT_EXPECT_FALSE(test, pgmap_alias_valid(&test_range, &bar, &alias));
}

static void expect_shown(struct kunit *test, u64 size, unsigned long page,
			 u64 len)
{
	struct dev_pagemap_alias alias = test_alias(size);
	u64 offset = -1;

	KUNIT_EXPECT_TRUE_MSG(test,
			      pgmap_alias_shows(&test_range, &alias,
						TEST_PFN + page, len, &offset),
			      "size 0x%llx page %ld len 0x%llx", size, page,
			      len);
	KUNIT_EXPECT_EQ(test, offset, (u64)page << PAGE_SHIFT);
}

static void expect_hidden(struct kunit *test, u64 size, unsigned long page,
			  u64 len)
{
	struct dev_pagemap_alias alias = test_alias(size);
	u64 offset;

	KUNIT_EXPECT_FALSE_MSG(test,
			       pgmap_alias_shows(&test_range, &alias,
						 TEST_PFN + page, len, &offset),
			       "size 0x%llx page %ld len 0x%llx", size, page,
			       len);
}

static void alias_shows_pages(struct kunit *test)
{
	unsigned long last = (TEST_RANGE_SIZE >> PAGE_SHIFT) - 1;

	/* All of it is visible: first and last page, nothing around them. */
	expect_shown(test, TEST_RANGE_SIZE, 0, PAGE_SIZE);
	expect_shown(test, TEST_RANGE_SIZE, last, PAGE_SIZE);
	expect_hidden(test, TEST_RANGE_SIZE, -1, PAGE_SIZE);
	expect_hidden(test, TEST_RANGE_SIZE, last + 1, PAGE_SIZE);

	/* A part is visible. */
	expect_shown(test, 3 * PAGE_SIZE, 2, PAGE_SIZE);
	expect_hidden(test, 3 * PAGE_SIZE, 3, PAGE_SIZE);
	expect_hidden(test, 3 * PAGE_SIZE, last, PAGE_SIZE);

	/* Nothing is visible. */
	expect_hidden(test, 0, 0, PAGE_SIZE);
	expect_hidden(test, 0, -1, PAGE_SIZE);
	expect_hidden(test, 0, last, PAGE_SIZE);
}

/*
 * PFNs in a number space of their own: page 0 of the pagemap is not where a
 * struct page of that PFN is, if there is one.
 */
static void alias_offset_of_any_space(struct kunit *test)
{
	static const struct range spaces[] = {
		{ .start = 0, .end = TEST_RANGE_SIZE - 1 },
		{ .start = TEST_RANGE_SIZE, .end = 2 * TEST_RANGE_SIZE - 1 },
	};
	struct dev_pagemap_alias alias = test_alias(TEST_RANGE_SIZE);
	unsigned long last = (TEST_RANGE_SIZE >> PAGE_SHIFT) - 1;
	u64 offset;
	int i;

	for (i = 0; i < ARRAY_SIZE(spaces); i++) {
		unsigned long pfn = PHYS_PFN(spaces[i].start) + last;

		KUNIT_EXPECT_TRUE(test,
				  pgmap_alias_shows(&spaces[i], &alias, pfn,
						    PAGE_SIZE, &offset));
		KUNIT_EXPECT_EQ(test, offset, TEST_RANGE_SIZE - PAGE_SIZE);
		KUNIT_EXPECT_FALSE(test,
				   pgmap_alias_shows(&spaces[i], &alias,
						     pfn + 1, PAGE_SIZE,
						     &offset));
	}
}

static void alias_shows_huge_pages(struct kunit *test)
{
	unsigned long nr = PMD_SIZE >> PAGE_SHIFT;

	expect_shown(test, 2 * PMD_SIZE, 0, PMD_SIZE);
	expect_shown(test, 2 * PMD_SIZE, nr, PMD_SIZE);
	expect_hidden(test, 2 * PMD_SIZE, 2 * nr, PMD_SIZE);

	/* All but the last page are visible, or only the first. */
	expect_shown(test, 2 * PMD_SIZE - PAGE_SIZE, 0, PMD_SIZE);
	expect_hidden(test, 2 * PMD_SIZE - PAGE_SIZE, nr, PMD_SIZE);
	expect_hidden(test, PMD_SIZE + PAGE_SIZE, nr, PMD_SIZE);
	expect_shown(test, PMD_SIZE + PAGE_SIZE, nr, PAGE_SIZE);

	/* Longer than the alias, than any alias, past the address space. */
	expect_hidden(test, PAGE_SIZE, 0, PMD_SIZE);
	expect_hidden(test, TEST_RANGE_SIZE, 0, TEST_RANGE_SIZE + PAGE_SIZE);
	expect_hidden(test, TEST_RANGE_SIZE, 1, -PAGE_SIZE);
	expect_hidden(test, 0, 0, PMD_SIZE);
}

#ifdef CONFIG_PCI_P2PDMA
static struct p2pdma_provider *test_provider(struct kunit *test)
{
	struct p2pdma_provider *provider;
	struct pci_dev *pdev;

	provider = kunit_kzalloc(test, sizeof(*provider), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, provider);
	pdev = kunit_kzalloc(test, sizeof(*pdev), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, pdev);
	provider->owner = &pdev->dev;
	return provider;
}
#else
static struct p2pdma_provider *test_provider(struct kunit *test)
{
	return kunit_kzalloc(test, sizeof(struct p2pdma_provider), GFP_KERNEL);
}
#endif

#ifdef CONFIG_DEVICE_PRIVATE
/* Device private pages without a device. */
struct test_pgmap {
	struct dev_pagemap pgmap;
	struct resource *res;
	struct work_struct work;
	/* for the work */
	struct dev_pagemap_alias alias;
	int err;
};

static void test_folio_free(struct folio *folio)
{
}

static vm_fault_t test_migrate_to_ram(struct vm_fault *vmf)
{
	return VM_FAULT_SIGBUS;
}

static const struct dev_pagemap_ops test_pgmap_ops = {
	.folio_free = test_folio_free,
	.migrate_to_ram = test_migrate_to_ram,
};

static void test_release_region(void *res)
{
	release_mem_region(((struct resource *)res)->start,
			   resource_size(res));
}

static void test_unmap(void *pgmap)
{
	memunmap_pages(pgmap);
}

static struct test_pgmap *test_pgmap(struct kunit *test)
{
	struct test_pgmap *tp = kunit_kzalloc(test, sizeof(*tp), GFP_KERNEL);
	struct dev_pagemap *pgmap;

	KUNIT_ASSERT_NOT_NULL(test, tp);
	pgmap = &tp->pgmap;
	tp->res = request_free_mem_region(&iomem_resource, TEST_RANGE_SIZE,
					  "hmm_kunit");
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, tp->res);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, test_release_region,
						  tp->res));

	pgmap->type = MEMORY_DEVICE_PRIVATE;
	pgmap->range.start = tp->res->start;
	pgmap->range.end = tp->res->start + TEST_RANGE_SIZE - 1;
	pgmap->nr_range = 1;
	pgmap->ops = &test_pgmap_ops;
	pgmap->owner = tp;
	KUNIT_ASSERT_FALSE(test, IS_ERR(memremap_pages(pgmap, NUMA_NO_NODE)));
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, test_unmap, pgmap));
	return tp;
}

static void alias_publish(struct kunit *test)
{
	struct dev_pagemap_alias alias = test_alias(TEST_RANGE_SIZE), got;
	struct dev_pagemap *pgmap = &test_pgmap(test)->pgmap;

	KUNIT_EXPECT_FALSE(test, pgmap_alias_read(pgmap, &got));
	KUNIT_EXPECT_FALSE(test, pgmap_alias_read_mapped(pgmap, &got));

	KUNIT_EXPECT_EQ(test, dev_pagemap_publish_alias(pgmap, &alias), 0);
	alias.size = 0;
	KUNIT_EXPECT_TRUE(test, pgmap_alias_read(pgmap, &got));
	KUNIT_EXPECT_EQ(test, got.size, TEST_RANGE_SIZE);
	KUNIT_EXPECT_EQ(test, dev_pagemap_publish_alias(pgmap, &alias), -EBUSY);

	dev_pagemap_revoke_alias(pgmap);
	KUNIT_EXPECT_FALSE(test, pgmap_alias_read(pgmap, &got));

	/* A page that was mapped by it is mapped again the same way. */
	memset(&got, 0, sizeof(got));
	KUNIT_EXPECT_TRUE(test, pgmap_alias_read_mapped(pgmap, &got));
	KUNIT_EXPECT_EQ(test, got.start, alias.start);
	KUNIT_EXPECT_EQ(test, got.size, TEST_RANGE_SIZE);

	alias.size = PAGE_SIZE;
	KUNIT_EXPECT_EQ(test, dev_pagemap_publish_alias(pgmap, &alias), 0);
	KUNIT_EXPECT_TRUE(test, pgmap_alias_read(pgmap, &got));
	KUNIT_EXPECT_EQ(test, got.size, PAGE_SIZE);
}

/* The bit of a page that the owner gives to peers. */
static unsigned long alias_bit(const struct dev_pagemap *pgmap,
			       unsigned long pfn)
{
	return BIT(PHYS_PFN(dev_pagemap_alias_offset(&pgmap->range, pfn)));
}

/* The owner gives peers some of the first pages. */
static void alias_of_some_pages(struct kunit *test)
{
	struct dev_pagemap_alias alias = test_alias(4 * PAGE_SIZE), got;
	struct dev_pagemap *pgmap = &test_pgmap(test)->pgmap;
	const unsigned long pfn = PHYS_PFN(pgmap->range.start);
	const unsigned long live = HMM_PFN_VALID | HMM_PFN_DEVICE_PRIVATE;
	const unsigned long two = 1UL << HMM_PFN_ORDER_SHIFT;
	static unsigned long pages[1];

	alias.provider = NULL;
	alias.kaddr = (void __iomem __force *)pages;
	pages[0] = alias_bit(pgmap, pfn + 1) | alias_bit(pgmap, pfn + 2);
	KUNIT_ASSERT_EQ(test, 0, dev_pagemap_prepare_alias(pgmap, &alias));
	KUNIT_EXPECT_FALSE(test, pgmap_alias_read(pgmap, &got));
	KUNIT_ASSERT_EQ(test, 0,
			dev_pagemap_publish_alias_of(pgmap, &alias, pages));
	KUNIT_EXPECT_TRUE(test, pgmap_alias_read(pgmap, &got));
	KUNIT_EXPECT_FALSE(test, pgmap_alias_gives(pgmap, pfn, 1));
	KUNIT_EXPECT_TRUE(test, pgmap_alias_gives(pgmap, pfn + 1, 1));
	KUNIT_EXPECT_TRUE(test, pgmap_alias_gives(pgmap, pfn + 1, 2));
	KUNIT_EXPECT_FALSE(test, pgmap_alias_gives(pgmap, pfn + 1, 3));
	KUNIT_EXPECT_FALSE(test, hmm_pfn_alias_live(pfn | live));
	KUNIT_EXPECT_TRUE(test, hmm_pfn_alias_live((pfn + 1) | live));
	/* Two pages that one entry maps, by either of them */
	KUNIT_EXPECT_FALSE(test, hmm_pfn_alias_live((pfn + 2) | live | two));
	KUNIT_EXPECT_FALSE(test, hmm_pfn_alias_live((pfn + 3) | live | two));

	/* The owner may give more of them at any time. */
	pages[0] |= alias_bit(pgmap, pfn + 3);
	KUNIT_EXPECT_TRUE(test, pgmap_alias_gives(pgmap, pfn + 1, 3));
	KUNIT_EXPECT_TRUE(test, hmm_pfn_alias_live((pfn + 2) | live | two));
	KUNIT_EXPECT_TRUE(test, hmm_pfn_alias_live((pfn + 3) | live | two));

	/* Bits of pages that the alias does not show do not matter. */
	pages[0] |= alias_bit(pgmap, pfn + 4);
	KUNIT_EXPECT_FALSE(test, hmm_pfn_alias_live((pfn + 4) | live));

	/* Without a bitmap, all pages are given. */
	dev_pagemap_revoke_alias(pgmap);
	KUNIT_ASSERT_EQ(test, 0, dev_pagemap_publish_alias(pgmap, &alias));
	KUNIT_EXPECT_TRUE(test, pgmap_alias_gives(pgmap, pfn, 4));
	KUNIT_EXPECT_TRUE(test, hmm_pfn_alias_live(pfn | live));
}

#ifdef CONFIG_PCI_P2PDMA
/* Pages that the owner does not give are only mapped if they were before. */
static void alias_maps_some_pages(struct kunit *test)
{
	struct dev_pagemap_alias alias = test_alias(2 * PAGE_SIZE);
	struct dev_pagemap *pgmap = &test_pgmap(test)->pgmap;
	const unsigned long entry = PHYS_PFN(pgmap->range.start) |
				    HMM_PFN_VALID | HMM_PFN_DEVICE_PRIVATE;
	struct p2pdma_provider *provider = test_provider(test);
	struct pci_p2pdma_map_state state = {
		.mem = provider,
		.map = PCI_P2PDMA_MAP_BUS_ADDR,
	};
	unsigned long list[2] = { entry, entry + 1 };
	struct hmm_dma_map map = {
		.pfn_list = list,
		.dma_entry_size = PAGE_SIZE,
	};
	struct dev_pagemap_alias_stats stats;
	static unsigned long pages[1];

	KUNIT_ASSERT_NOT_NULL(test, provider);
	provider->bus_offset = SZ_1G;
	pages[0] = BIT(0);
	KUNIT_ASSERT_EQ(test, 0,
			dev_pagemap_publish_alias_of(pgmap, &alias, pages));
	/* Publishing would refuse a provider without a BAR. */
	pgmap->alias->copy.provider = provider;

	KUNIT_EXPECT_EQ(test, hmm_dma_map_pfn(NULL, &map, 0, &state),
			TEST_ALIAS_START + SZ_1G);
	KUNIT_EXPECT_EQ(test, list[0], entry | HMM_PFN_DMA_MAPPED |
					       HMM_PFN_P2PDMA_BUS);
	KUNIT_EXPECT_EQ(test, hmm_dma_map_pfn(NULL, &map, 1, &state),
			DMA_MAPPING_ERROR);
	KUNIT_EXPECT_EQ(test, list[1], entry + 1);

	/* A mapped page stays mapped until it is invalidated. */
	clear_bit(0, pages);
	KUNIT_EXPECT_EQ(test, hmm_dma_map_pfn(NULL, &map, 0, &state),
			TEST_ALIAS_START + SZ_1G);
	list[0] = entry;
	KUNIT_EXPECT_EQ(test, hmm_dma_map_pfn(NULL, &map, 0, &state),
			DMA_MAPPING_ERROR);
	KUNIT_EXPECT_EQ(test, list[0], entry);

	dev_pagemap_alias_stats(pgmap, &stats);
	KUNIT_EXPECT_EQ(test, stats.mapped, 1);
	KUNIT_EXPECT_EQ(test, stats.fallback_map_failed, 2);
}
#endif

static void alias_publish_refused(struct kunit *test)
{
	struct dev_pagemap_alias alias = test_alias(TEST_RANGE_SIZE);
	struct dev_pagemap *pgmap;

	pgmap = kunit_kzalloc(test, sizeof(*pgmap), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, pgmap);
	pgmap->range = test_range;
	pgmap->nr_range = 1;
	pgmap->type = MEMORY_DEVICE_COHERENT;
	KUNIT_EXPECT_EQ(test, dev_pagemap_publish_alias(pgmap, &alias),
			-EINVAL);
	pgmap->type = MEMORY_DEVICE_PRIVATE;
	pgmap->nr_range = 2;
	KUNIT_EXPECT_EQ(test, dev_pagemap_publish_alias(pgmap, &alias),
			-EINVAL);
	pgmap->nr_range = 1;
	alias.size += PAGE_SIZE;
	KUNIT_EXPECT_EQ(test, dev_pagemap_publish_alias(pgmap, &alias),
			-EINVAL);
	/* This provider has no BAR. */
	alias = test_alias(TEST_RANGE_SIZE);
	alias.provider = test_provider(test);
	KUNIT_ASSERT_NOT_NULL(test, alias.provider);
	KUNIT_EXPECT_EQ(test, dev_pagemap_publish_alias(pgmap, &alias),
			-EINVAL);
	KUNIT_EXPECT_NULL(test, pgmap->alias);
}

static void alias_counts_revokes(struct kunit *test)
{
	struct dev_pagemap_alias alias = test_alias(PAGE_SIZE);
	struct dev_pagemap *pgmap = &test_pgmap(test)->pgmap;
	struct dev_pagemap_alias_stats stats;

	/* Without an alias, a revoke does not count. */
	dev_pagemap_revoke_alias(pgmap);
	memset(&stats, 0xff, sizeof(stats));
	dev_pagemap_alias_stats(pgmap, &stats);
	KUNIT_EXPECT_TRUE(test, mem_is_zero(&stats, sizeof(stats)));

	/* Counts outlive a revoke; a second one has nothing to take away. */
	KUNIT_ASSERT_EQ(test, dev_pagemap_publish_alias(pgmap, &alias), 0);
	dev_pagemap_revoke_alias(pgmap);
	dev_pagemap_revoke_alias(pgmap);
	dev_pagemap_alias_stats(pgmap, &stats);
	KUNIT_EXPECT_EQ(test, stats.revokes, 1);
}

static void test_publish_again(struct work_struct *work)
{
	struct test_pgmap *tp = container_of(work, struct test_pgmap, work);

	dev_pagemap_revoke_alias(&tp->pgmap);
	tp->err = dev_pagemap_publish_alias(&tp->pgmap, &tp->alias);
}

/* A reader that may be copying a revoked alias sees nothing of the next one. */
static void alias_publish_waits_for_readers(struct kunit *test)
{
	struct dev_pagemap_alias got;
	struct test_pgmap *tp = test_pgmap(test);
	bool published;
	int i;

	tp->alias = test_alias(TEST_RANGE_SIZE);
	KUNIT_ASSERT_EQ(test,
			dev_pagemap_publish_alias(&tp->pgmap, &tp->alias), 0);
	tp->alias.size = PAGE_SIZE;
	INIT_WORK(&tp->work, test_publish_again);

	rcu_read_lock();
	queue_work(system_dfl_wq, &tp->work);
	for (i = 0; i < 1000; i++) {
		if (!pgmap_alias_read(&tp->pgmap, &got) ||
		    got.size != TEST_RANGE_SIZE)
			break;
		mdelay(1);
	}
	mdelay(50);
	published = pgmap_alias_read(&tp->pgmap, &got);
	rcu_read_unlock();
	flush_work(&tp->work);

	if (i == 1000)
		kunit_skip(test, "needs a second CPU");
	KUNIT_EXPECT_FALSE(test, published);
	KUNIT_EXPECT_EQ(test, tp->err, 0);
	KUNIT_EXPECT_TRUE(test, pgmap_alias_read(&tp->pgmap, &got));
	KUNIT_EXPECT_EQ(test, got.size, PAGE_SIZE);
}

static void test_unmap_work(struct work_struct *work)
{
	struct test_pgmap *tp = container_of(work, struct test_pgmap, work);

	memunmap_pages(&tp->pgmap);
}

/*
 * A walk finds a page in a page table. Before it is done, the page is freed:
 * the last one that the removal of its pagemap has waited for.
 */
static void pgmap_waits_for_walks(struct kunit *test)
{
	struct test_pgmap *tp = test_pgmap(test);
	struct dev_pagemap *pgmap = &tp->pgmap;
	struct page *page = pfn_to_page(PHYS_PFN(pgmap->range.start));
	bool there;

	tp->alias = test_alias(TEST_RANGE_SIZE);
	KUNIT_ASSERT_EQ(test, dev_pagemap_publish_alias(pgmap, &tp->alias), 0);
	zone_device_page_init(page, pgmap, 0);
	unlock_page(page);

	INIT_WORK(&tp->work, test_unmap_work);
	kunit_remove_action(test, test_unmap, pgmap);
	queue_work(system_dfl_wq, &tp->work);
	/* Killing the reference takes a grace period of its own. */
	while (!percpu_ref_is_dying(&pgmap->ref))
		msleep(20);
	msleep(20);
	rcu_barrier();

	rcu_read_lock();
	put_page(page);
	mdelay(100);
	there = READ_ONCE(pgmap->alias);
	rcu_read_unlock();
	flush_work(&tp->work);

	KUNIT_EXPECT_TRUE(test, there);
	KUNIT_EXPECT_NULL(test, pgmap->alias);
}
#endif /* CONFIG_DEVICE_PRIVATE */

#ifdef CONFIG_PCI_P2PDMA
/* No device, no PCI device, or no provider of a device: no transfer. */
static void provider_map_type(struct kunit *test)
{
	struct p2pdma_provider *provider = test_provider(test);
	struct device *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, dev);
	KUNIT_EXPECT_EQ(test, pci_p2pdma_map_type_cached(NULL, dev),
			PCI_P2PDMA_MAP_NOT_SUPPORTED);
	KUNIT_EXPECT_EQ(test, pci_p2pdma_map_type_cached(provider, NULL),
			PCI_P2PDMA_MAP_NOT_SUPPORTED);
	KUNIT_EXPECT_EQ(test, pci_p2pdma_map_type_cached(provider, dev),
			PCI_P2PDMA_MAP_NOT_SUPPORTED);
	dev->bus = &pci_bus_type;
	KUNIT_EXPECT_EQ(test, pci_p2pdma_map_type_cached(provider, dev),
			PCI_P2PDMA_MAP_NOT_SUPPORTED);
}

static void provider_state(struct kunit *test)
{
	struct p2pdma_provider *provider = test_provider(test);
	struct pci_p2pdma_map_state state = {};

	KUNIT_EXPECT_EQ(test, pci_p2pdma_provider_state(&state, NULL, NULL),
			PCI_P2PDMA_MAP_NOT_SUPPORTED);
	KUNIT_EXPECT_NULL(test, state.mem);

	KUNIT_EXPECT_EQ(test, pci_p2pdma_provider_state(&state, NULL, provider),
			PCI_P2PDMA_MAP_NOT_SUPPORTED);
	KUNIT_EXPECT_PTR_EQ(test, state.mem, provider);

	/* The state of the same provider is kept, another one is looked up. */
	state.map = PCI_P2PDMA_MAP_BUS_ADDR;
	KUNIT_EXPECT_EQ(test, pci_p2pdma_provider_state(&state, NULL, provider),
			PCI_P2PDMA_MAP_BUS_ADDR);
	provider = test_provider(test);
	KUNIT_EXPECT_EQ(test, pci_p2pdma_provider_state(&state, NULL, provider),
			PCI_P2PDMA_MAP_NOT_SUPPORTED);
	KUNIT_EXPECT_PTR_EQ(test, state.mem, provider);
}
#endif /* CONFIG_PCI_P2PDMA */

static struct kunit_case hmm_test_cases[] = {
	KUNIT_CASE(hmm_flags_do_not_overlap),
	KUNIT_CASE(hmm_flags_leave_the_pfn),
	KUNIT_CASE(hmm_order_is_packed),
	KUNIT_CASE(hmm_skip_keeps_mappings),
	KUNIT_CASE(alias_valid),
	KUNIT_CASE(alias_in_bar),
	KUNIT_CASE(alias_shows_pages),
	KUNIT_CASE(alias_offset_of_any_space),
	KUNIT_CASE(alias_shows_huge_pages),
#ifdef CONFIG_DEVICE_PRIVATE
	KUNIT_CASE(alias_publish),
	KUNIT_CASE(alias_of_some_pages),
#ifdef CONFIG_PCI_P2PDMA
	KUNIT_CASE(alias_maps_some_pages),
#endif
	KUNIT_CASE(alias_publish_refused),
	KUNIT_CASE(alias_counts_revokes),
	KUNIT_CASE(alias_publish_waits_for_readers),
	KUNIT_CASE(pgmap_waits_for_walks),
#endif
#ifdef CONFIG_PCI_P2PDMA
	KUNIT_CASE(provider_map_type),
	KUNIT_CASE(provider_state),
#endif
	{}
};

static struct kunit_suite hmm_test_suite = {
	.name = "hmm",
	.test_cases = hmm_test_cases,
};

kunit_test_suite(hmm_test_suite);

MODULE_DESCRIPTION("Tests of HMM and of the alias of device private memory");
MODULE_LICENSE("GPL");
