/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic of the epilogs for one element, shared by the CPU passes and CUDA kernels: no library calls, no branches, so
 * that compilers turn loops over it into vector code.
 *
 * With p = -log2(e)·2·√(2/π)·(z + 0.044715 z³), the tanh form of GELU is z/(1 + 2^p). Written so, nothing cancels for negative
 * z, where 1 + tanh loses everything. 2^p is 2^n·2^f with n the nearest integer; 2^f for |f| ≤ 1/2 is its Taylor
 * polynomial in f·ln 2: the first term left out is below 1.2e-7 (degree 6, f32) and 2e-16 (degree 12, f64). 2^n is applied as
 * two factors 2^(n/2), so that it reaches 0 and infinity by itself; the clamps of p keep both factors finite. What remains is the rounding of p, |p|·u relative: 30 ulp at z = -5. */
#ifndef EPG_PASS_MATH_H
#define EPG_PASS_MATH_H

#include <stdint.h>
#include <string.h>

#ifndef EPG_FN
#define EPG_FN static inline
#endif

/* log2(e)·2·√(2/π), and that times 0.044715. */
#define EPG_GELU_C1 2.302208198144325
#define EPG_GELU_C3 0.1029432395800235
/* 2·√(2/π), and that times 3·0.044715: the derivative of the tanh's doubled argument. */
#define EPG_GELU_D1 1.5957691216057308
#define EPG_GELU_D3 0.21406444881780076

/* Beyond ±2^14 both functions have long reached their limits; the clamp keeps infinities out of the polynomials. */
#define EPG_GELU_FAR 16384

/* 2^p = y·s1·s2, y within [0.7, 1.42]. */
EPG_FN float epg_exp2_f32(float p, float *s1_out, float *s2_out)
{
	const float shift = 12582912.0f; /* 1.5·2^23: adding it rounds to an integer, which is then in the low bits */
	p = p < -252.0f ? -252.0f : p;
	p = p > 252.0f ? 252.0f : p;
	float t = p + shift, f = p - (t - shift);
	int32_t bits;
	memcpy(&bits, &t, sizeof bits);
	int32_t n = bits - 0x4b400000, half = n >> 1;
	uint32_t b1 = (uint32_t)(half + 127) << 23, b2 = (uint32_t)(n - half + 127) << 23;
	float s1, s2;
	memcpy(&s1, &b1, sizeof s1);
	memcpy(&s2, &b2, sizeof s2);
	float y = 1.5403530393381606e-4f;
	y = y * f + 1.3333558146428443e-3f;
	y = y * f + 9.6181291076284772e-3f;
	y = y * f + 5.5504108664821580e-2f;
	y = y * f + 2.4022650695910071e-1f;
	y = y * f + 6.9314718055994531e-1f;
	y = y * f + 1.0f;
	*s1_out = s1;
	*s2_out = s2;
	return y;
}

/* 2^p = y·s1·s2, y within [0.7, 1.42]. */
EPG_FN double epg_exp2_f64(double p, double *s1_out, double *s2_out)
{
	const double shift = 6755399441055744.0; /* 1.5·2^52 */
	p = p < -2040.0 ? -2040.0 : p;
	p = p > 2040.0 ? 2040.0 : p;
	double t = p + shift, f = p - (t - shift);
	int64_t bits;
	memcpy(&bits, &t, sizeof bits);
	int64_t n = bits - 0x4338000000000000, half = (int64_t)((uint64_t)(n + 4096) >> 1) - 2048;
	int64_t b1 = (int64_t)((uint64_t)(half + 1023) << 52), b2 = (int64_t)((uint64_t)(n - half + 1023) << 52);
	double s1, s2;
	memcpy(&s1, &b1, sizeof s1);
	memcpy(&s2, &b2, sizeof s2);
	double y = 2.5678435993488206e-11;
	y = y * f + 4.4455382718708116e-10;
	y = y * f + 7.0549116208011234e-9;
	y = y * f + 1.0178086009239699e-7;
	y = y * f + 1.3215486790144307e-6;
	y = y * f + 1.5252733804059841e-5;
	y = y * f + 1.5403530393381610e-4;
	y = y * f + 1.3333558146428443e-3;
	y = y * f + 9.6181291076284772e-3;
	y = y * f + 5.5504108664821580e-2;
	y = y * f + 2.4022650695910071e-1;
	y = y * f + 6.9314718055994531e-1;
	y = y * f + 1.0;
	*s1_out = s1;
	*s2_out = s2;
	return y;
}

/* relu: NaN stays NaN. */
EPG_FN float epg_relu_f32(float z) { return z < 0 ? 0 : z; }
EPG_FN double epg_relu_f64(double z) { return z < 0 ? 0 : z; }

/* z/(1 + 2^p), for p > 0 as z·2^-p/(1 + 2^-p): where 2^p overflows, gelu(z) is still a number. gelu(-∞) = -0, gelu(+∞) = +∞,
 * NaN stays NaN. */
EPG_FN float epg_gelu_f32(float z)
{
	float low = z < -EPG_GELU_FAR ? -(float)EPG_GELU_FAR : z;
	float p = -low * ((float)EPG_GELU_C1 + (float)EPG_GELU_C3 * low * low), s1, s2;
	float y = epg_exp2_f32(p < 0 ? p : -p, &s1, &s2);
	float e = y * s1 * s2, top = p < 0 ? low : low * y * s1 * s2;
	return top / (1.0f + e);
}

EPG_FN double epg_gelu_f64(double z)
{
	double low = z < -EPG_GELU_FAR ? -(double)EPG_GELU_FAR : z;
	double p = -low * (EPG_GELU_C1 + EPG_GELU_C3 * low * low), s1, s2;
	double y = epg_exp2_f64(p < 0 ? p : -p, &s1, &s2);
	double e = y * s1 * s2, top = p < 0 ? low : low * y * s1 * s2;
	return top / (1.0 + e);
}

/* s + z·s·(1-s)·u' with s = 1/(1+2^p): with e = 2^-|p| both s and s·(1-s) = e/(1+e)² are free of cancellation. */
EPG_FN float epg_dgelu_f32(float z)
{
	z = z < -EPG_GELU_FAR ? -(float)EPG_GELU_FAR : z;
	z = z > EPG_GELU_FAR ? (float)EPG_GELU_FAR : z;
	float square = z * z, p = -z * ((float)EPG_GELU_C1 + (float)EPG_GELU_C3 * square);
	float s1, s2, y = epg_exp2_f32(p < 0 ? p : -p, &s1, &s2), e = y * s1 * s2, r = 1.0f / (1.0f + e);
	float s = p < 0 ? r : e * r;
	return s + z * (e * r * r) * ((float)EPG_GELU_D1 + (float)EPG_GELU_D3 * square);
}

EPG_FN double epg_dgelu_f64(double z)
{
	z = z < -EPG_GELU_FAR ? -(double)EPG_GELU_FAR : z;
	z = z > EPG_GELU_FAR ? (double)EPG_GELU_FAR : z;
	double square = z * z, p = -z * (EPG_GELU_C1 + EPG_GELU_C3 * square);
	double s1, s2, y = epg_exp2_f64(p < 0 ? p : -p, &s1, &s2), e = y * s1 * s2, r = 1.0 / (1.0 + e);
	double s = p < 0 ? r : e * r;
	return s + z * (e * r * r) * (EPG_GELU_D1 + EPG_GELU_D3 * square);
}

#endif
