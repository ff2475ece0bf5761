/* SPDX-License-Identifier: Apache-2.0
 *
 * See bound.h. With k terms in a sum, u the roundoff of the compute type and u_out that of the output,
 *
 *     |D - exact|   <= slope·C·(k+2)·u·(|alpha|·|A||B| + |beta||C| + |bias|) + u·(activation's allowance) + u_out·|D|
 *                      + slope·u_out·|z| for a derivative of GELU in 16 bits, where z may have been rounded once already
 *     |bgrad - ΣD|  <= G·u_out·Σ|D|                                        of the D that was written
 *
 * with C = 1 (3 for complex numbers) and G = 14 (+ terms/2 for f64, whose sums are not kept in a wider type).
 * With small integers the first two terms are 0 but for GELU, so values must be equal. A mask bit may differ only where z
 * is NaN or its error could change the sign. */
#include "bound.h"

#include <float.h>
#include <math.h>

static int is_half(int32_t type) { return type == EPG_F16 || type == EPG_BF16; }

/* Of one product: on a device tf32 rounds both factors to 11 bits; the CPU computes it in f32. */
static double product_roundoff(const epg_matmul_desc *desc, bound_case how)
{
	if (how.on_device && desc->compute == EPG_COMPUTE_TF32)
		return 2 * 1.0 / 2048;
	return oracle_roundoff(oracle_compute_type(desc));
}

static double error_of_z(const epg_matmul_desc *desc, bound_case how, const oracle_result *w, int64_t e)
{
	double c = oracle_type_is_complex(desc->d.type) ? 3 : 1;
	if (how.exact)
		return 0;
	return c * (double)(desc->k + 2) * product_roundoff(desc, how) * w->terms[e];
}

/* What cuBLASLt's fused GELU may be off, absolutely: about twice what was seen on [-8, 8] on an H200. */
static double vendor_gelu_error(int32_t type)
{
	return type == EPG_F16 ? 2e-3 : type == EPG_BF16 ? 1.6e-2 : type == EPG_F32 ? 1e-5 : 0;
}

/* Of D beyond that of z: the activation's own, its argument rounded to 16 bits before a derivative, the vendor's approximations. */
static double error_of_act(const epg_matmul_desc *desc, bound_case how, const oracle_result *w, int64_t e)
{
	int32_t type = desc->d.type;
	double z = (double)fabsl(w->z[e].re), error = oracle_roundoff(oracle_compute_type(desc)) * w->act_error[e];
	if (oracle_act(desc) == EPG_ACT_NONE)
		return 0;
	if (oracle_act(desc) == EPG_ACT_GELU && is_half(type) && oracle_is_gradient(desc))
		error += oracle_roundoff(type) * w->slope[e] * z;
	if (oracle_act(desc) == EPG_ACT_GELU && how.on_device)
		error += vendor_gelu_error(type) * (oracle_is_gradient(desc) ? 4 * z : 1);
	return error;
}

/* Smallest normal number of the type: what flushing a denormal may cost. */
static double tiny(int32_t type)
{
	if (type == EPG_F16)
		return ldexp(1, -24); /* one denormal step: f16 is converted, never flushed */
	if (type == EPG_E4M3 || type == EPG_E5M2)
		return type == EPG_E4M3 ? ldexp(1, -9) : ldexp(1, -16);
	if (type == EPG_S8 || type == EPG_S32)
		return 0.5;
	return type == EPG_F64 || type == EPG_C128 ? DBL_MIN : FLT_MIN;
}

static int part_agrees(int32_t type, oracle_real got, oracle_real want, oracle_real rounded, double error)
{
	if (isnan(want) || isnan(got))
		return isnan(want) && isnan(got);
	if (got == rounded)
		return 1;
	if (error == 0 || isinf(got) || isinf(rounded))
		return 0;
	return fabsl(got - want) <= error + oracle_roundoff(type) * fabsl(want) + tiny(type);
}

static int number_agrees(int32_t type, oracle_num got, oracle_num want, double error)
{
	oracle_num rounded = oracle_round(type, want);
	return part_agrees(type, got.re, want.re, rounded.re, error) && part_agrees(type, got.im, want.im, rounded.im, error);
}

int bound_d_holds(const epg_matmul_desc *desc, bound_case how, const oracle_result *w, int64_t e, int32_t type, oracle_num got, double *error)
{
	*error = w->slope[e] * error_of_z(desc, how, w, e) + error_of_act(desc, how, w, e);
	if (oracle_act(desc) == EPG_ACT_GELU)
		*error += (double)fabsl(w->z[e].re) * tiny(type); /* a sigmoid that is flushed to 0 */
	if (number_agrees(type, got, w->d[e], *error))
		return 1;
	/* cuBLASLt's gelu(-∞) */
	return how.on_device && oracle_act(desc) == EPG_ACT_GELU && !oracle_is_gradient(desc) && isinf(w->z[e].re) && isnan(got.re);
}

int bound_aux_holds(const epg_matmul_desc *desc, bound_case how, const oracle_result *w, int64_t e, int32_t type, oracle_num got, double *error)
{
	*error = error_of_z(desc, how, w, e);
	if (type != EPG_BIT)
		return number_agrees(type, got, w->z[e], *error);
	int minus_zero = w->z[e].re < 0 && is_half(desc->d.type) && oracle_round(desc->d.type, w->z[e]).re == 0; /* taken after rounding */
	return got.re == w->bit[e] || isnan(w->z[e].re) || fabsl(w->z[e].re) < *error || minus_zero;
}

static int64_t sum_terms(const epg_matmul_desc *desc)
{
	if (desc->epilog & (EPG_BGRADA | EPG_BGRADB))
		return desc->k;
	return desc->axis == EPG_PER_ROW ? desc->n : desc->m;
}

int bound_sum_holds(const epg_matmul_desc *desc, bound_case how, const oracle_result *w, int64_t s, int32_t type, oracle_num got, double *error)
{
	double factor = 14 + (type == EPG_F64 ? (double)sum_terms(desc) / 2 : 0);
	*error = how.exact && oracle_act(desc) != EPG_ACT_GELU ? 0 : factor * oracle_roundoff(type) * w->sums_terms[s];
	if (how.on_device && is_half(desc->d.type)) /* a fused sum is of D before it was rounded */
		*error += 2 * oracle_roundoff(desc->d.type) * w->sums_terms[s];
	return number_agrees(type, got, w->sums[s], *error);
}
