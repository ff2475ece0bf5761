/* SPDX-License-Identifier: Apache-2.0
 *
 * Real elements of any type as double, and back with one rounding to nearest even. f16 is IEEE 754 binary16; bf16 is the upper half
 * of binary32; e5m2 is the upper half of f16, and e4m3 has a bias of 7, no infinities, and NaN where all bits but the sign are set (OCP
 * 8-bit Floating Point Specification, 1.0). A NaN stays a NaN, and is 0 as an integer. Too large a number becomes infinite in 16 bits
 * and more; in 8 bits and as an integer it becomes the largest there is, infinity too. */
#ifndef EPG_HALF_H
#define EPG_HALF_H

#include <math.h>
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

static inline float epg_from_e5m2(uint8_t x) { return epg_from_f16((uint16_t)(x << 8)); }

static inline float epg_from_e4m3(uint8_t x)
{
	uint32_t sign = (uint32_t)(x & 0x80) << 24, size = x & 0x7f;
	float tiny = (float)size * 0.001953125f; /* 2^-9 */
	if (size < 8)
		return sign ? -tiny : tiny;
	return epg_float_from_bits(sign | (size == 0x7f ? 0x7fc00000 : (size << 20) + (120u << 23)));
}

/* From the bits of a float: to 'fraction' bits behind the point, an exponent whose bias is less by 'less', and at most the pattern
 * 'largest'. Below the normal numbers the leading bit is written out and what is shifted grows. No branches: loops over it become vector code. */
static inline uint8_t epg_fp8_of_bits(uint32_t bits, uint32_t fraction, uint32_t less, uint32_t largest, uint32_t nan)
{
	uint32_t size = bits & 0x7fffffff, exponent = size >> 23, below = exponent > less ? 0 : less + 1 - exponent;
	uint32_t shift = 23 - fraction + (below < 8 ? below : 8), from = below ? (size & 0x7fffff) | 0x800000 : size - (less << 23);
	uint32_t y = (from + (1u << (shift - 1)) - 1 + (from >> shift & 1)) >> shift;
	y = y < largest ? y : largest;
	return (uint8_t)((bits >> 24 & 0x80) | (size > 0x7f800000 ? nan : y));
}

static inline uint8_t epg_e4m3_of_bits(uint32_t bits) { return epg_fp8_of_bits(bits, 3, 120, 0x7e, 0x7f); }
static inline uint8_t epg_e5m2_of_bits(uint32_t bits) { return epg_fp8_of_bits(bits, 2, 112, 0x7b, 0x7e); }
static inline uint8_t epg_to_e4m3(double x) { return epg_e4m3_of_bits(epg_odd_float(x)); }
static inline uint8_t epg_to_e5m2(double x) { return epg_e5m2_of_bits(epg_odd_float(x)); }

/* To an integer from low to high. */
static inline int32_t epg_to_integer(double x, double low, double high)
{
	return x != x ? 0 : (int32_t)rint(x < low ? low : x > high ? high : x);
}

/* Element 'index' of an array of F64, F32, F16, BF16, E4M3, E5M2, S8 or S32. */
static inline double epg_load_real(int32_t type, const void *base, int64_t index)
{
	switch (type) {
	case EPG_F16: return epg_from_f16(((const uint16_t *)base)[index]);
	case EPG_BF16: return epg_from_bf16(((const uint16_t *)base)[index]);
	case EPG_F32: return ((const float *)base)[index];
	case EPG_E4M3: return epg_from_e4m3(((const uint8_t *)base)[index]);
	case EPG_E5M2: return epg_from_e5m2(((const uint8_t *)base)[index]);
	case EPG_S8: return ((const int8_t *)base)[index];
	case EPG_S32: return ((const int32_t *)base)[index];
	default: return ((const double *)base)[index];
	}
}

static inline void epg_store_real(int32_t type, void *base, int64_t index, double x)
{
	switch (type) {
	case EPG_F16: ((uint16_t *)base)[index] = epg_to_f16(x); break;
	case EPG_BF16: ((uint16_t *)base)[index] = epg_to_bf16(x); break;
	case EPG_F32: ((float *)base)[index] = (float)x; break;
	case EPG_E4M3: ((uint8_t *)base)[index] = epg_to_e4m3(x); break;
	case EPG_E5M2: ((uint8_t *)base)[index] = epg_to_e5m2(x); break;
	case EPG_S8: ((int8_t *)base)[index] = (int8_t)epg_to_integer(x, INT8_MIN, INT8_MAX); break;
	case EPG_S32: ((int32_t *)base)[index] = epg_to_integer(x, INT32_MIN, INT32_MAX); break;
	default: ((double *)base)[index] = x; break;
	}
}

#endif
