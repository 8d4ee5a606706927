/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the pure code of SDMA batches and its KUnit tests use of the kernel, for a
 * program of the host. scripts/test/mutants replaces each header that they include by
 * one that includes this.
 */
#ifndef SLUICE_HOST_H
#define SLUICE_HOST_H

#include <asm/types.h>
#include <errno.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s64 s64;
typedef unsigned int gfp_t;

#define U32_MAX			((u32)~0U)
#define U64_MAX			((u64)~0ULL)
#define BIT(n)			(1UL << (n))
#define BIT_ULL(n)		(1ULL << (n))
#define GENMASK(h, l)		(~0UL << (l) & ~0UL >> (63 - (h)))
#define SZ_4K			0x1000
#define SZ_16K			0x4000
#define SZ_64K			0x10000
#define SZ_128K			0x20000
#define SZ_1M			0x100000
#define SZ_4M			0x400000
#define SZ_1G			0x40000000
#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#define offsetofend(t, m)	(offsetof(t, m) + sizeof(((t *)0)->m))
#define fallthrough		__attribute__((__fallthrough__))
#define noinline_for_stack
#ifndef static_assert
#define static_assert(e)	_Static_assert(e, #e)
#endif

#define lower_32_bits(n)	((u32)((n) & 0xffffffff))
#define upper_32_bits(n)	((u32)((u64)(n) >> 32))
#define min(a, b)		({ __auto_type a_ = (a); __auto_type b_ = (b); \
				   a_ < b_ ? a_ : b_; })
#define max(a, b)		({ __auto_type a_ = (a); __auto_type b_ = (b); \
				   a_ > b_ ? a_ : b_; })
#define min_t(t, a, b)		min((t)(a), (t)(b))
#define max_t(t, a, b)		max((t)(a), (t)(b))
#define clamp(v, lo, hi)	min(max(v, lo), hi)
#define swap(a, b)		do { __auto_type s_ = (a); (a) = (b); (b) = s_; } while (0)
#define abs_diff(a, b)		((a) > (b) ? (a) - (b) : (b) - (a))
#define ALIGN(x, a)		(((x) + (a) - 1) & ~((__typeof__(x))(a) - 1))
#define ALIGN_DOWN(x, a)	((x) & ~((__typeof__(x))(a) - 1))
#define IS_ALIGNED(x, a)	(!((x) & ((__typeof__(x))(a) - 1)))
#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))
#define DIV_ROUND_UP_ULL(n, d)	(((u64)(n) + (d) - 1) / (d))
#define DIV64_U64_ROUND_UP(n, d)	DIV_ROUND_UP_ULL(n, d)
#define check_add_overflow(a, b, r)	__builtin_add_overflow(a, b, r)
#define check_mul_overflow(a, b, r)	__builtin_mul_overflow(a, b, r)

static inline u64 div_u64(u64 n, u32 d) { return n / d; }
static inline u64 div64_u64(u64 n, u64 d) { return n / d; }
static inline u32 int_sqrt64(u64 x)
{
	u32 root = 0, bit = 1U << 31;

	for (; bit; bit >>= 1)
		if ((u64)(root | bit) * (root | bit) <= x)
			root |= bit;
	return root;
}
static inline u32 hweight32(u32 w) { return __builtin_popcount(w); }
static inline u32 ilog2(u32 n) { return 31 - __builtin_clz(n); }
static inline u32 ror32(u32 w, unsigned int s)
{
	return w >> (s & 31) | w << (-s & 31);
}

#define GFP_KERNEL		0
#define GFP_KERNEL_ACCOUNT	0

/* The change that runs, 0 if none. */
extern int host_mutant;

/*
 * Memory that ends at a page that may not be touched. Fails once it has succeeded
 * @allocations_left times, unless that is below 0.
 */
extern int allocations_left;
void *host_alloc(size_t n);
void host_free(const void *p);
#define kvmalloc_array(n, size, gfp)	host_alloc((size_t)(n) * (size))
#define kmalloc_array(n, size, gfp)	host_alloc((size_t)(n) * (size))
#define kvcalloc(n, size, gfp)		host_alloc((size_t)(n) * (size))
#define kvmalloc_obj(x, gfp)		((__typeof__(x) *)host_alloc(sizeof(x)))
#define kvfree(p)			host_free(p)
#define kfree(p)			host_free(p)

static inline const void *memchr_inv(const void *p, int c, size_t n)
{
	const u8 *b = p;

	for (; n; n--, b++)
		if (*b != (u8)c)
			return b;
	return NULL;
}

static inline void strscpy(char *to, const char *from, size_t n)
{
	snprintf(to, n, "%s", from);
}

#define get_unaligned(p) ({ __typeof__(*(p)) v_; memcpy(&v_, (p), sizeof(v_)); v_; })
#define put_unaligned(v, p) do { __typeof__(*(p)) v_ = (v); \
				 memcpy((p), &v_, sizeof(v_)); } while (0)

struct rnd_state { u64 s; };
static inline void prandom_seed_state(struct rnd_state *r, u64 seed)
{
	r->s = seed * 0x9e3779b97f4a7c15ULL + 1;
}
static inline u32 prandom_u32_state(struct rnd_state *r)
{
	u64 z = r->s += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z >> 32;
}
static inline void prandom_bytes_state(struct rnd_state *r, void *p, size_t n)
{
	u8 *b = p;

	while (n--)
		*b++ = prandom_u32_state(r);
}

/* amdgpu.h */
#define IP_VERSION(a, b, c)	((a) << 24 | (b) << 16 | (c) << 8)
#define IP_VERSION_MAJ(v)	((v) >> 24)
#define IP_VERSION_MIN(v)	((v) >> 16 & 0xff)
#define IP_VERSION_REV(v)	((v) >> 8 & 0xff)

#define EXPORT_SYMBOL_IF_KUNIT(x)	extern int host_nothing
#define VISIBLE_IF_KUNIT
#define MODULE_IMPORT_NS(x)		extern int host_nothing
#define MODULE_DESCRIPTION(x)		extern int host_nothing
#define MODULE_LICENSE(x)		extern int host_nothing

/* kunit/test.h */
#define KUNIT_PARAM_DESC_SIZE	128

struct kunit {
	const void *param_value;
	bool failed;
	jmp_buf abort;
};

struct kunit_case {
	const char *name;
	void (*run)(struct kunit *test);
	const void *(*next)(struct kunit *test, const void *prev, char *desc);
};

struct kunit_suite {
	const char *name;
	struct kunit_case *test_cases;
	struct kunit_suite *next;
};

#define KUNIT_CASE(f)			{ #f, f, NULL }
#define KUNIT_CASE_PARAM(f, gen)	{ #f, f, gen }
#define KUNIT_ARRAY_PARAM(id, array, get_name)				\
	static const void *id##_gen_params(struct kunit *test,		\
					   const void *prev, char *desc) \
	{								\
		__typeof__((array)[0]) *next = prev ?			\
			(__typeof__(next))prev + 1 : (array);		\
									\
		if (next - (array) >= (ptrdiff_t)ARRAY_SIZE(array))	\
			return NULL;					\
		get_name(next, desc);					\
		return next;						\
	}

void host_register(struct kunit_suite *suite);
#define kunit_test_suite(suite)						\
	__attribute__((constructor)) static void suite##_register(void)	\
	{								\
		host_register(&(suite));				\
	}								\
	extern int host_nothing

void host_fail(struct kunit *test, const char *file, int line, const char *what,
	       bool stop);
void *host_test_alloc(size_t n);

#define HOST_CHECK(test, ok, stop, what)				\
	do {								\
		if (!(ok))						\
			host_fail(test, __FILE__, __LINE__, what, stop); \
	} while (0)
#define KUNIT_EXPECT_EQ(t, a, b)  HOST_CHECK(t, (a) == (b), false, #a " == " #b)
#define KUNIT_EXPECT_NE(t, a, b)  HOST_CHECK(t, (a) != (b), false, #a " != " #b)
#define KUNIT_EXPECT_LE(t, a, b)  HOST_CHECK(t, (a) <= (b), false, #a " <= " #b)
#define KUNIT_EXPECT_LT(t, a, b)  HOST_CHECK(t, (a) < (b), false, #a " < " #b)
#define KUNIT_EXPECT_GE(t, a, b)  HOST_CHECK(t, (a) >= (b), false, #a " >= " #b)
#define KUNIT_EXPECT_GT(t, a, b)  HOST_CHECK(t, (a) > (b), false, #a " > " #b)
#define KUNIT_ASSERT_EQ(t, a, b)  HOST_CHECK(t, (a) == (b), true, #a " == " #b)
#define KUNIT_ASSERT_NE(t, a, b)  HOST_CHECK(t, (a) != (b), true, #a " != " #b)
#define KUNIT_ASSERT_LE(t, a, b)  HOST_CHECK(t, (a) <= (b), true, #a " <= " #b)
#define KUNIT_ASSERT_LT(t, a, b)  HOST_CHECK(t, (a) < (b), true, #a " < " #b)
#define KUNIT_ASSERT_GE(t, a, b)  HOST_CHECK(t, (a) >= (b), true, #a " >= " #b)
#define KUNIT_ASSERT_GT(t, a, b)  HOST_CHECK(t, (a) > (b), true, #a " > " #b)
#define KUNIT_EXPECT_TRUE(t, a)   HOST_CHECK(t, a, false, #a)
#define KUNIT_EXPECT_FALSE(t, a)  HOST_CHECK(t, !(a), false, "!" #a)
#define KUNIT_ASSERT_TRUE(t, a)   HOST_CHECK(t, a, true, #a)
#define KUNIT_EXPECT_NULL(t, a)   HOST_CHECK(t, !(a), false, #a " is NULL")
#define KUNIT_EXPECT_NOT_NULL(t, a) HOST_CHECK(t, a, false, #a " is not NULL")
#define KUNIT_ASSERT_NOT_NULL(t, a) HOST_CHECK(t, a, true, #a " is not NULL")
#define KUNIT_EXPECT_PTR_EQ(t, a, b) HOST_CHECK(t, (a) == (b), false, #a " == " #b)
#define KUNIT_EXPECT_MEMEQ(t, a, b, n) \
	HOST_CHECK(t, !memcmp(a, b, n), false, #a " is like " #b)
#define KUNIT_ASSERT_EQ_MSG(t, a, b, fmt, ...) KUNIT_ASSERT_EQ(t, a, b)
#define KUNIT_EXPECT_EQ_MSG(t, a, b, fmt, ...) KUNIT_EXPECT_EQ(t, a, b)
#define KUNIT_EXPECT_LE_MSG(t, a, b, fmt, ...) KUNIT_EXPECT_LE(t, a, b)
#define KUNIT_FAIL_AND_ABORT(t, fmt, ...) HOST_CHECK(t, false, true, fmt)
#define kunit_kzalloc(t, n, gfp)	host_test_alloc(n)
#define kunit_kcalloc(t, n, size, gfp)	host_test_alloc((size_t)(n) * (size))
#define kunit_info(t, ...)		do { } while (0)

#endif
