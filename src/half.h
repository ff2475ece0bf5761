/* SPDX-License-Identifier: Apache-2.0
 *
 * Real elements of any floating type as double, and back with one rounding to nearest even. f16 is IEEE 754 binary16; bf16 is the
 * upper half of binary32. A NaN stays a NaN, too large a number becomes infinite. */
#ifndef EPG_HALF_H
#define EPG_HALF_H

#include <stdint.h>
#include <string.h>

#include "epigemm.h"

static inline float epg_float_from_bits(uint32_t bits)
{
	float x;
	memcpy(&x, &bits, sizeof x);
	return x;
}

static inline uint32_t epg_bits_from_float(float x)
{
	uint32_t bits;
	memcpy(&bits, &x, sizeof bits);
	return bits;
}

static inline float epg_from_bf16(uint16_t x) { return epg_float_from_bits((uint32_t)x << 16); }

static inline float epg_from_f16(uint16_t x)
{
	uint32_t sign = (uint32_t)(x & 0x8000) << 16, exponent = x >> 10 & 31, fraction = x & 0x3ff;
	if (exponent == 0) {
		float tiny = (float)fraction * 5.9604644775390625e-8f; /* 2^-24 */
		return sign ? -tiny : tiny;
	}
	return epg_float_from_bits(sign | (exponent == 31 ? 0xffu : exponent + 112) << 23 | fraction << 13);
}

/* x as float, rounded towards zero with the last bit set if anything was lost: a second rounding to fewer bits is then right. */
static inline uint32_t epg_odd_float(double x)
{
	float f = (float)x;
	uint32_t bits = epg_bits_from_float(f);
	if ((double)f == x || x != x)
		return bits;
	return (((double)f > x) == (x > 0) ? bits - 1 : bits) | 1;
}

static inline uint16_t epg_to_bf16(double x)
{
	uint32_t bits = epg_odd_float(x);
	if (x != x)
		return (uint16_t)(bits >> 16 | 0x40);
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline uint16_t epg_to_f16(double x)
{
	uint32_t bits = epg_odd_float(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
	if (x != x)
		return (uint16_t)(sign | 0x7e00);
	if (size >= 0x477ff000) /* 65520, half way to the number after the last */
		return (uint16_t)(sign | 0x7c00);
	if (size >= 0x38800000) /* 2^-14, the smallest normal number */
		return (uint16_t)(sign | (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13);
	if (size <= 0x33000000) /* 2^-25, half the smallest number */
		return (uint16_t)sign;
	uint32_t shift = 126 - (size >> 23), fraction = (size & 0x7fffff) | 0x800000;
	return (uint16_t)(sign | (fraction + (1u << (shift - 1)) - 1 + (fraction >> shift & 1)) >> shift);
}

/* Element 'index' of an array of F64, F32, F16 or BF16. */
static inline double epg_load_real(int32_t type, const void *base, int64_t index)
{
	switch (type) {
	case EPG_F16: return epg_from_f16(((const uint16_t *)base)[index]);
	case EPG_BF16: return epg_from_bf16(((const uint16_t *)base)[index]);
	case EPG_F32: return ((const float *)base)[index];
	default: return ((const double *)base)[index];
	}
}

static inline void epg_store_real(int32_t type, void *base, int64_t index, double x)
{
	switch (type) {
	case EPG_F16: ((uint16_t *)base)[index] = epg_to_f16(x); break;
	case EPG_BF16: ((uint16_t *)base)[index] = epg_to_bf16(x); break;
	case EPG_F32: ((float *)base)[index] = (float)x; break;
	default: ((double *)base)[index] = x; break;
	}
}

#endif
