/* SPDX-License-Identifier: GPL-2.0-only */
/* What the algorithm takes from the kernel, for programs in user space. */
#ifndef _NET_DUALPI2_SEAM_H
#define _NET_DUALPI2_SEAM_H

#include <stdbool.h>
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
	({ type _a = (a), _b = (b); _a < _b ? _a : _b; })
#define max_t(type, a, b) \
	({ type _a = (a), _b = (b); _a > _b ? _a : _b; })
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

/* Number of the highest bit that is set; there must be one. */
static inline unsigned long __fls(unsigned long word)
{
	return sizeof(word) * 8 - 1 - __builtin_clzl(word);
}

#endif /* _NET_DUALPI2_SEAM_H */
