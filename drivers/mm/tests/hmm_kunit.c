// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of what HMM and the alias of device private memory compute: no page
 * table, no device memory and no PCI device is needed.
 */
#include <kunit/test.h>
#include <linux/hmm.h>
#include <linux/memremap.h>
#include <linux/pci.h>
#include <linux/pci-p2pdma.h>
#include <linux/sizes.h>

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
 * what unmapping needs, all others lose everything but the sticky flags.
 */
static void hmm_skip_keeps_mappings(struct kunit *test)
{
	const unsigned long flags = HMM_PFN_VALID | HMM_PFN_DEVICE_PRIVATE;
	const unsigned long mapped = HMM_PFN_DMA_MAPPED | HMM_PFN_P2PDMA;
	unsigned long pfns[] = {
		TEST_PFN | flags | mapped,
		(TEST_PFN + 1) | flags | HMM_PFN_WRITE,
		mapped,
		HMM_PFN_REQ_FAULT | HMM_PFN_REQ_WRITE,
		(TEST_PFN + 4) | flags | HMM_PFN_P2PDMA_BUS |
			HMM_PFN_DMA_MAPPED,
	};

	hmm_device_private_skip(pfns, ARRAY_SIZE(pfns), TEST_PFN, flags);
	KUNIT_EXPECT_EQ(test, pfns[0], TEST_PFN | flags | mapped);
	KUNIT_EXPECT_EQ(test, pfns[1], 0);
	KUNIT_EXPECT_EQ(test, pfns[2], (TEST_PFN + 2) | flags | mapped);
	KUNIT_EXPECT_EQ(test, pfns[3], 0);
	KUNIT_EXPECT_EQ(test, pfns[4], (TEST_PFN + 4) | flags |
			HMM_PFN_P2PDMA_BUS | HMM_PFN_DMA_MAPPED);
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

	KUNIT_EXPECT_TRUE(test, pgmap_alias_valid(&test_range, &alias));

	alias.size = 0;
	KUNIT_EXPECT_TRUE(test, pgmap_alias_valid(&test_range, &alias));

	/* Larger than the memory. */
	alias.size = TEST_RANGE_SIZE + PAGE_SIZE;
	KUNIT_EXPECT_FALSE(test, pgmap_alias_valid(&test_range, &alias));

	/* Not of whole pages, not at a page. */
	alias.size = PAGE_SIZE + 1;
	KUNIT_EXPECT_FALSE(test, pgmap_alias_valid(&test_range, &alias));
	alias.size = PAGE_SIZE;
	alias.start += 1;
	KUNIT_EXPECT_FALSE(test, pgmap_alias_valid(&test_range, &alias));

	/* Near the end of the address space, and beyond it. */
	alias.start = -2 * PAGE_SIZE;
	KUNIT_EXPECT_TRUE(test, pgmap_alias_valid(&test_range, &alias));
	alias.size = 3 * PAGE_SIZE;
	KUNIT_EXPECT_FALSE(test, pgmap_alias_valid(&test_range, &alias));

	/* Of use to nobody. */
	alias = test_alias(PAGE_SIZE);
	alias.kaddr = NULL;
	KUNIT_EXPECT_FALSE(test, pgmap_alias_valid(&test_range, &alias));
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

	/* All is visible: the first and the last page, nothing around them. */
	expect_shown(test, TEST_RANGE_SIZE, 0, PAGE_SIZE);
	expect_shown(test, TEST_RANGE_SIZE, last, PAGE_SIZE);
	expect_hidden(test, TEST_RANGE_SIZE, -1, PAGE_SIZE);
	expect_hidden(test, TEST_RANGE_SIZE, last + 1, PAGE_SIZE);

	/* A part is. */
	expect_shown(test, 3 * PAGE_SIZE, 2, PAGE_SIZE);
	expect_hidden(test, 3 * PAGE_SIZE, 3, PAGE_SIZE);
	expect_hidden(test, 3 * PAGE_SIZE, last, PAGE_SIZE);

	/* Nothing is. */
	expect_hidden(test, 0, 0, PAGE_SIZE);
	expect_hidden(test, 0, -1, PAGE_SIZE);
	expect_hidden(test, 0, last, PAGE_SIZE);
}

static void alias_shows_huge_pages(struct kunit *test)
{
	unsigned long nr = PMD_SIZE >> PAGE_SHIFT;

	expect_shown(test, 2 * PMD_SIZE, 0, PMD_SIZE);
	expect_shown(test, 2 * PMD_SIZE, nr, PMD_SIZE);
	expect_hidden(test, 2 * PMD_SIZE, 2 * nr, PMD_SIZE);

	/* All but the last page is visible, or only the first. */
	expect_shown(test, 2 * PMD_SIZE - PAGE_SIZE, 0, PMD_SIZE);
	expect_hidden(test, 2 * PMD_SIZE - PAGE_SIZE, nr, PMD_SIZE);
	expect_hidden(test, PMD_SIZE + PAGE_SIZE, nr, PMD_SIZE);
	expect_shown(test, PMD_SIZE + PAGE_SIZE, nr, PAGE_SIZE);

	/* Longer than the alias, than any alias, than all there is. */
	expect_hidden(test, PAGE_SIZE, 0, PMD_SIZE);
	expect_hidden(test, TEST_RANGE_SIZE, 0, TEST_RANGE_SIZE + PAGE_SIZE);
	expect_hidden(test, TEST_RANGE_SIZE, 1, -PAGE_SIZE);
	expect_hidden(test, 0, 0, PMD_SIZE);
}

#ifdef CONFIG_DEVICE_PRIVATE
static struct dev_pagemap *test_pgmap(struct kunit *test)
{
	struct dev_pagemap *pgmap = kunit_kzalloc(test, sizeof(*pgmap),
						  GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, pgmap);
	pgmap->type = MEMORY_DEVICE_PRIVATE;
	pgmap->range = test_range;
	pgmap->nr_range = 1;
	return pgmap;
}

static void alias_publish(struct kunit *test)
{
	struct dev_pagemap_alias alias = test_alias(TEST_RANGE_SIZE), got;
	struct dev_pagemap *pgmap = test_pgmap(test);

	KUNIT_EXPECT_FALSE(test, pgmap_alias_read(pgmap, &got));

	KUNIT_EXPECT_EQ(test, dev_pagemap_publish_alias(pgmap, &alias), 0);
	alias.size = 0;
	KUNIT_EXPECT_TRUE(test, pgmap_alias_read(pgmap, &got));
	KUNIT_EXPECT_EQ(test, got.size, TEST_RANGE_SIZE);
	KUNIT_EXPECT_EQ(test, dev_pagemap_publish_alias(pgmap, &alias), -EBUSY);

	dev_pagemap_revoke_alias(pgmap);
	KUNIT_EXPECT_FALSE(test, pgmap_alias_read(pgmap, &got));

	/* Who has mapped a page by it maps it again the same way. */
	memset(&got, 0, sizeof(got));
	KUNIT_EXPECT_TRUE(test, pgmap_alias_read_mapped(pgmap, &got));
	KUNIT_EXPECT_EQ(test, got.start, alias.start);
	KUNIT_EXPECT_EQ(test, got.size, TEST_RANGE_SIZE);

	alias.size = PAGE_SIZE;
	KUNIT_EXPECT_EQ(test, dev_pagemap_publish_alias(pgmap, &alias), 0);
	KUNIT_EXPECT_TRUE(test, pgmap_alias_read(pgmap, &got));
	KUNIT_EXPECT_EQ(test, got.size, PAGE_SIZE);

	pgmap_alias_free(pgmap);
	KUNIT_EXPECT_FALSE(test, pgmap_alias_read(pgmap, &got));
}

static void alias_publish_refused(struct kunit *test)
{
	struct dev_pagemap_alias alias = test_alias(TEST_RANGE_SIZE);
	struct dev_pagemap *pgmap = test_pgmap(test);

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
	KUNIT_EXPECT_NULL(test, pgmap->alias);
}

static void alias_counts(struct kunit *test)
{
	struct dev_pagemap_alias alias = test_alias(TEST_RANGE_SIZE);
	struct dev_pagemap *pgmap = test_pgmap(test);
	struct dev_pagemap_alias_stats stats;
	int i;

	/* Without an alias there is nothing to count, and no revoke. */
	pgmap_alias_mapped(pgmap, TEST_PFN, 1);
	pgmap_alias_fallback(pgmap, TEST_PFN, 1, PGMAP_ALIAS_INVISIBLE);
	dev_pagemap_revoke_alias(pgmap);
	dev_pagemap_alias_stats(pgmap, &stats);
	KUNIT_EXPECT_TRUE(test, mem_is_zero(&stats, sizeof(stats)));

	KUNIT_ASSERT_EQ(test, dev_pagemap_publish_alias(pgmap, &alias), 0);
	pgmap_alias_mapped(pgmap, TEST_PFN, 512);
	for (i = PGMAP_ALIAS_OK; i < PGMAP_ALIAS_NR_VERDICTS; i++)
		pgmap_alias_fallback(pgmap, TEST_PFN, 1 << i, i);

	/* Counts outlive a revoke; the second has nothing to take away. */
	dev_pagemap_revoke_alias(pgmap);
	dev_pagemap_revoke_alias(pgmap);

	dev_pagemap_alias_stats(pgmap, &stats);
	KUNIT_EXPECT_EQ(test, stats.mapped, 512);
	KUNIT_EXPECT_EQ(test, stats.fallback_unreachable,
			1 << PGMAP_ALIAS_UNREACHABLE);
	KUNIT_EXPECT_EQ(test, stats.fallback_invisible,
			1 << PGMAP_ALIAS_INVISIBLE);
	KUNIT_EXPECT_EQ(test, stats.fallback_no_cpu, 1 << PGMAP_ALIAS_NO_CPU);
	KUNIT_EXPECT_EQ(test, stats.fallback_revoked, 1 << PGMAP_ALIAS_REVOKED);
	KUNIT_EXPECT_EQ(test, stats.fallback_map_failed,
			1 << PGMAP_ALIAS_MAP_FAILED);
	KUNIT_EXPECT_EQ(test, stats.revokes, 1);

	pgmap_alias_free(pgmap);
}
#endif /* CONFIG_DEVICE_PRIVATE */

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

/* No device, a device that is not PCI, a provider that is none: no transfer. */
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

	/* The same provider is not asked about again, another one is. */
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
	KUNIT_CASE(alias_shows_pages),
	KUNIT_CASE(alias_shows_huge_pages),
#ifdef CONFIG_DEVICE_PRIVATE
	KUNIT_CASE(alias_publish),
	KUNIT_CASE(alias_publish_refused),
	KUNIT_CASE(alias_counts),
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
