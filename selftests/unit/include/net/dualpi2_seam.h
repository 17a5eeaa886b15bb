/* SPDX-License-Identifier: GPL-2.0-only */
/* What the algorithm takes from the kernel, for programs in user space. */
#ifndef _NET_DUALPI2_SEAM_H
#define _NET_DUALPI2_SEAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#define U32_MAX	UINT32_MAX
#define S32_MAX	INT32_MAX

#define unlikely(x)	__builtin_expect(!!(x), 0)
#undef __always_inline
#define __always_inline	inline __attribute__((__always_inline__))

#define min_t(type, a, b) \
	({ type _min_a = (a), _min_b = (b); _min_a < _min_b ? _min_a : _min_b; })
#define max_t(type, a, b) \
	({ type _max_a = (a), _max_b = (b); _max_a > _max_b ? _max_a : _max_b; })
#define clamp_t(type, val, lo, hi) \
	({ type _v = (val), _l = (lo), _h = (hi); \
	   _v < _l ? _l : _v > _h ? _h : _v; })

static inline u64 div_u64(u64 dividend, u32 divisor)
{
	return dividend / divisor;
}

static inline u64 div64_u64(u64 dividend, u64 divisor)
{
	return dividend / divisor;
}

/* (a * mul) >> shift with a product of 96 bits; also where there is no int128. */
static inline u64 mul_u64_u32_shr(u64 a, u32 mul, unsigned int shift)
{
	u64 low = (a & U32_MAX) * mul, high = (a >> 32) * mul;

	if (!shift)
		return low + (high << 32);
	return (low >> shift) + (high << (32 - shift));
}

/* a * mul / div with a product of 96 bits; the quotient must fit in 64. */
static inline u64 mul_u64_u32_div(u64 a, u32 mul, u32 divisor)
{
	u64 low = (a & U32_MAX) * mul, high = (a >> 32) * mul + (low >> 32);

	return (high / divisor << 32) + ((high % divisor << 32) + (low & U32_MAX)) / divisor;
}

/* Atomic operations.  Before each of them, dualpi2_atomic_step() is called if it is set: to decide which thread does the
 * next one.  A program with another DUALPI2_ATOMIC_STEP can count them.
 */
#ifdef __CPROVER
#define DUALPI2_ATOMIC_STEP(address, writes)	do { } while (0)
#endif
#ifndef DUALPI2_ATOMIC_STEP
extern void (*dualpi2_atomic_step)(void);
__attribute__((__weak__)) void (*dualpi2_atomic_step)(void);
#define DUALPI2_ATOMIC_STEP(address, writes) \
	do { if (dualpi2_atomic_step) dualpi2_atomic_step(); } while (0)
#endif

#define ____cacheline_aligned_in_smp	__attribute__((__aligned__(64)))

typedef struct { s64 counter; } atomic64_t;
typedef struct { int counter; } atomic_t;

#define READ_ONCE(x)		({ DUALPI2_ATOMIC_STEP(&(x), false); __atomic_load_n(&(x), __ATOMIC_RELAXED); })
#define WRITE_ONCE(x, value)	({ DUALPI2_ATOMIC_STEP(&(x), true); __atomic_store_n(&(x), value, __ATOMIC_RELAXED); })

static inline s64 atomic64_read(const atomic64_t *v)
{
	return READ_ONCE(v->counter);
}

static inline s64 atomic64_fetch_add_relaxed(s64 i, atomic64_t *v)
{
	DUALPI2_ATOMIC_STEP(v, true);
	return __atomic_fetch_add(&v->counter, i, __ATOMIC_RELAXED);
}

static inline void atomic64_add(s64 i, atomic64_t *v)
{
	atomic64_fetch_add_relaxed(i, v);
}

static inline bool atomic64_try_cmpxchg_relaxed(atomic64_t *v, s64 *old, s64 new)
{
	DUALPI2_ATOMIC_STEP(v, true);
	return __atomic_compare_exchange_n(&v->counter, old, new, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static inline int atomic_read(const atomic_t *v)
{
	return READ_ONCE(v->counter);
}

static inline void atomic_inc(atomic_t *v)
{
	DUALPI2_ATOMIC_STEP(v, true);
	__atomic_fetch_add(&v->counter, 1, __ATOMIC_RELAXED);
}

static inline void atomic_dec(atomic_t *v)
{
	DUALPI2_ATOMIC_STEP(v, true);
	__atomic_fetch_sub(&v->counter, 1, __ATOMIC_RELAXED);
}

/* Number of the highest bit that is set; there must be one. */
static inline unsigned long __fls(unsigned long word)
{
	return sizeof(word) * 8 - 1 - __builtin_clzl(word);
}

#endif /* _NET_DUALPI2_SEAM_H */
