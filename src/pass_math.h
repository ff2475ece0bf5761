/* SPDX-License-Identifier: Apache-2.0
 *
 * The arithmetic of the epilogs for one element, shared by the CPU passes and CUDA kernels: no library calls, no branches, so
 * that compilers turn loops over it into vector code. EPG_FN says what kind of function these are.
 *
 * With p = -2·√(2/π)·log2(e)·(z + 0.044715 z³), the tanh form of GELU is z/(1 + 2^p). Written so, nothing cancels for negative
 * z, where 1 + tanh loses everything. What remains is the rounding of p, |p|·u relative: some 30 ulp at z = -5. */
#ifndef EPG_PASS_MATH_H
#define EPG_PASS_MATH_H

#include <stdint.h>
#include <string.h>

#ifndef EPG_FN
#define EPG_FN static inline
#endif
/* 2^(p + by), and x/y for y in [2^-32, 2^125]: a GPU has instructions of its own for these, two ulp each. */
#ifndef EPG_EXP2_F32
#define EPG_EXP2_F32(p, by) epg_exp2_f32(p, by)
#define EPG_QUOTIENT_F32(x, y) ((x) / (y))
#endif

/* 2·√(2/π)·log2(e), and that times 0.044715. */
#define EPG_GELU_C1 2.302208198144325
#define EPG_GELU_C3 0.1029432395800235
/* 2·√(2/π), and that times 3·0.044715: the derivative of the tanh's doubled argument. */
#define EPG_GELU_D1 1.5957691216057308
#define EPG_GELU_D3 0.21406444881780073

/* From here on gelu(z) is z, gelu'(z) is 1 and 2^p is nothing beside 1 (p = -71 for f32, -205 for f64), without underflow. */
#define EPG_GELU_FAR_F32 8.0f
#define EPG_GELU_FAR_F64 12.0

/* 2^(p + by) where that is a normal number, for an integer by; for other p anything. 2^n with n the nearest integer to p is added
 * to the exponent of 2^f, |f| ≤ 1/2. Adding 'shift' (1.5·2^23, 1.5·2^52) rounds to an integer, whose low bits are then the lowest
 * of the number. 2^f is 1 + f·q(f), q fitted by Remez's exchange for the least relative error: 2.1e-8 (degree 6, after rounding to
 * f32) and 4e-17 (degree 11). */
EPG_FN float epg_exp2_f32(float p, float by)
{
	const float shift = 12582912.0f + by;
	float t = p + shift, f = p - (t - shift), y = 1.55946778e-4f;
	y = y * f + 1.34066434e-3f;
	y = y * f + 9.61769279e-3f;
	y = y * f + 5.55031039e-2f;
	y = y * f + 2.40226522e-1f;
	y = y * f + 6.93147242e-1f;
	y = y * f + 1.0f;
	uint32_t n, bits;
	memcpy(&n, &t, sizeof n);
	memcpy(&bits, &y, sizeof bits);
	bits += n << 23;
	memcpy(&t, &bits, sizeof t);
	return t;
}

EPG_FN double epg_exp2_f64(double p, double by)
{
	const double shift = 6755399441055744.0 + by;
	double t = p + shift, f = p - (t - shift), y = 4.078071929588337e-10;
	y = y * f + 7.072570412814423e-9;
	y = y * f + 1.0180647659234139e-7;
	y = y * f + 1.3215442675329823e-6;
	y = y * f + 1.5252727385193868e-5;
	y = y * f + 1.540353044157213e-4;
	y = y * f + 1.3333558153439966e-3;
	y = y * f + 9.618129107607003e-3;
	y = y * f + 5.550410866479039e-2;
	y = y * f + 2.4022650695910097e-1;
	y = y * f + 6.931471805599457e-1;
	y = y * f + 1.0;
	uint64_t n, bits;
	memcpy(&n, &t, sizeof n);
	memcpy(&bits, &y, sizeof bits);
	bits += n << 52;
	memcpy(&t, &bits, sizeof t);
	return t;
}

/* relu: NaN stays NaN. */
EPG_FN float epg_relu_f32(float z) { return z < 0 ? 0 : z; }
EPG_FN double epg_relu_f64(double z) { return z < 0 ? 0 : z; }

/* Where 2^p overflows, |gelu| is at most |z| times a quarter of the smallest normal number, and 0 is taken: gelu(-∞) = 0.
 * gelu(+∞) = +∞, NaN stays NaN. */
EPG_FN float epg_gelu_f32(float z)
{
	float near = z > EPG_GELU_FAR_F32 ? EPG_GELU_FAR_F32 : z;
	float p = near * ((float)-EPG_GELU_C3 * (near * near) - (float)EPG_GELU_C1), g = EPG_QUOTIENT_F32(z, 1.0f + EPG_EXP2_F32(p, 0.0f));
	return p >= 128.0f ? 0.0f : g;
}

EPG_FN double epg_gelu_f64(double z)
{
	double near = z > EPG_GELU_FAR_F64 ? EPG_GELU_FAR_F64 : z;
	double p = near * (-EPG_GELU_C3 * (near * near) - EPG_GELU_C1), g = z / (1.0 + epg_exp2_f64(p, 0));
	return p >= 1024.0 ? 0.0 : g;
}

/* gelu' = s + z·u'·s·(1-s) = s·(1 + z·u'·(1-s)) with s = 1/(1 + 2^p), and 1-s = 2^p·s without cancellation. For negative z, z·u'
 * is large (-230 at z = -10), so gelu' is a normal number where 2^p already overflows. Therefore e is 2^p and r is s but for a factor
 * 'down' = 2^-32 (f64: 2^-64) and 1/down, and the last factor puts that right. */
EPG_FN float epg_dgelu_f32(float z)
{
	const float down = 2.3283064365386963e-10f;
	z = z > EPG_GELU_FAR_F32 ? EPG_GELU_FAR_F32 : z;
	float square = z * z, p = z * ((float)-EPG_GELU_C3 * square - (float)EPG_GELU_C1);
	float e = EPG_EXP2_F32(p, -32.0f), r = EPG_QUOTIENT_F32(1.0f, down + e), slope = z * ((float)EPG_GELU_D3 * square + (float)EPG_GELU_D1);
	float g = r * (slope * (e * r) + 1.0f) * down;
	return p > 156.0f ? 0.0f : g;
}

EPG_FN double epg_dgelu_f64(double z)
{
	const double down = 5.421010862427522e-20;
	z = z > EPG_GELU_FAR_F64 ? EPG_GELU_FAR_F64 : z;
	double square = z * z, p = z * (-EPG_GELU_C3 * square - EPG_GELU_C1);
	double e = epg_exp2_f64(p, -64), r = 1.0 / (down + e), slope = z * (EPG_GELU_D3 * square + EPG_GELU_D1);
	double g = r * (slope * (e * r) + 1.0) * down;
	return p > 1084.0 ? 0.0 : g;
}

#endif
