/* SPDX-License-Identifier: Apache-2.0
 *
 * What is right: the outputs of a problem against the oracle. With k terms in a sum, u the roundoff of the compute type
 * and u_out that of the output,
 *
 *     |D - exact|   <= slope·C·(k+2)·u·(|alpha|·|A||B| + |beta||C| + |bias|) + u·(activation's allowance) + u_out·|D|
 *                      + slope·u_out·|z| for a derivative of GELU in 16 bits, where z may have been rounded once already
 *     |bgrad - ΣD|  <= G·u_out·Σ|D|                                        of the D that was written
 *
 * with C = 1 (3 for complex numbers) and G = 14 (+ terms/2 for f64, whose sums are not kept in a wider type).
 * With small integers the first two terms are 0 but for GELU, so values must be equal. A mask bit may differ only where z
 * is NaN or its error could change the sign. Then every byte that is not an element of an output must be what it was. */
#include "support.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int is_half(int32_t type) { return type == EPG_F16 || type == EPG_BF16; }

/* Of one product: on a device tf32 rounds both factors to 11 bits; the CPU computes it in f32. */
static double product_roundoff(const problem *p)
{
	if (p->on_device && p->desc.compute == EPG_COMPUTE_TF32)
		return 2 * 1.0 / 2048;
	return oracle_roundoff(oracle_compute_type(&p->desc));
}

static double error_of_z(const problem *p, int64_t e)
{
	double c = oracle_type_is_complex(p->desc.d.type) ? 3 : 1;
	if (p->options.data == DATA_INTEGERS)
		return 0;
	return c * (double)(p->desc.k + 2) * product_roundoff(p) * p->want.terms[e];
}

/* What cuBLASLt's fused GELU may be off, absolutely: about twice what was seen on [-8, 8] on an H200. */
static double vendor_gelu_error(int32_t type)
{
	return type == EPG_F16 ? 2e-3 : type == EPG_BF16 ? 1.6e-2 : type == EPG_F32 ? 1e-5 : 0;
}

/* Of D beyond that of z: the activation's own, its argument rounded to 16 bits before a derivative, the vendor's approximations. */
static double error_of_act(const problem *p, int64_t e)
{
	const oracle_result *w = &p->want;
	int32_t type = p->desc.d.type;
	double z = (double)fabsl(w->z[e].re), error = oracle_roundoff(oracle_compute_type(&p->desc)) * w->act_error[e];
	if (oracle_act(&p->desc) == EPG_ACT_NONE)
		return 0;
	if (oracle_act(&p->desc) == EPG_ACT_GELU && is_half(type) && oracle_is_gradient(&p->desc))
		error += oracle_roundoff(type) * w->slope[e] * z;
	if (oracle_act(&p->desc) == EPG_ACT_GELU && p->on_device)
		error += vendor_gelu_error(type) * (oracle_is_gradient(&p->desc) ? 4 * z : 1);
	return error;
}

/* Smallest normal number of the type: what flushing a denormal may cost. */
static double tiny(int32_t type)
{
	if (type == EPG_F16)
		return ldexp(1, -24); /* one denormal step: f16 is converted, never flushed */
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

static void complain_number(problem *p, const char *name, int64_t b, int64_t i, int64_t j, oracle_num got, oracle_num want, double error)
{
	problem_complain(p, "%s[%lld,%lld] of item %lld is %.17Lg%+.9Lgi, not %.17Lg%+.9Lgi ± %.3g", name, (long long)i, (long long)j,
		(long long)b, got.re, got.im, want.re, want.im, error);
}

typedef int compare_element(problem *p, int64_t e, int64_t b, int64_t i, int64_t j, const oracle_layout *o, int64_t at);

static int compare_d(problem *p, int64_t e, int64_t b, int64_t i, int64_t j, const oracle_layout *o, int64_t at)
{
	const oracle_result *w = &p->want;
	oracle_num got = oracle_load(o->type, problem_after(p, EPG_OPERAND_D), at);
	double error = w->slope[e] * error_of_z(p, e) + error_of_act(p, e);
	if (oracle_act(&p->desc) == EPG_ACT_GELU)
		error += (double)fabsl(w->z[e].re) * tiny(o->type); /* a sigmoid that is flushed to 0 */
	if (number_agrees(o->type, got, w->d[e], error))
		return 1;
	if (p->on_device && oracle_act(&p->desc) == EPG_ACT_GELU && !oracle_is_gradient(&p->desc) && isinf(w->z[e].re) && isnan(got.re))
		return 1; /* cuBLASLt's gelu(-∞) */
	complain_number(p, "D", b, i, j, got, w->d[e], error);
	return 0;
}

static int compare_aux(problem *p, int64_t e, int64_t b, int64_t i, int64_t j, const oracle_layout *o, int64_t at)
{
	const oracle_result *w = &p->want;
	oracle_num got = oracle_load(o->type, problem_after(p, EPG_OPERAND_AUX), at);
	double error = error_of_z(p, e);
	if (o->type == EPG_BIT) {
		int minus_zero = w->z[e].re < 0 && is_half(p->desc.d.type) && oracle_round(p->desc.d.type, w->z[e]).re == 0; /* taken after rounding */
		if (got.re == w->bit[e] || isnan(w->z[e].re) || fabsl(w->z[e].re) < error || minus_zero)
			return 1;
		problem_complain(p, "mask[%lld,%lld] of item %lld is %d where z is %.9Lg", (long long)i, (long long)j, (long long)b, (int)got.re, w->z[e].re);
		return 0;
	}
	if (number_agrees(o->type, got, w->z[e], error))
		return 1;
	complain_number(p, "aux", b, i, j, got, w->z[e], error);
	return 0;
}

static int compare_matrix(problem *p, int which, compare_element *compare)
{
	const oracle_layout *o = &p->x[which].layout;
	int good = 1;
	for (int64_t e = 0; o->used && p->x[which].is_output && e < p->want.count; e++) {
		int64_t b = e / (p->want.m * p->want.n), i = e % p->want.m, j = e / p->want.m % p->want.n;
		good &= compare(p, e, b, i, j, o, oracle_index(o, b, i, j));
	}
	return good;
}

static int64_t sum_terms(const epg_matmul_desc *desc)
{
	if (desc->epilog & (EPG_BGRADA | EPG_BGRADB))
		return desc->k;
	return desc->axis == EPG_PER_ROW ? desc->n : desc->m;
}

static int compare_bgrad(problem *p)
{
	const oracle_layout *o = &p->x[EPG_OPERAND_BGRAD].layout;
	int exact = p->options.data == DATA_INTEGERS && oracle_act(&p->desc) != EPG_ACT_GELU, good = 1;
	double factor = 14 + (o->type == EPG_F64 ? (double)sum_terms(&p->desc) / 2 : 0);
	oracle_sum_d(&p->desc, problem_after(p, EPG_OPERAND_D), problem_before(p, EPG_OPERAND_BGRAD), &p->want);
	for (int64_t s = 0; o->used && s < p->want.sums_count; s++) {
		int64_t b = s / p->want.sums_length, i = s % p->want.sums_length;
		oracle_num got = oracle_load(o->type, problem_after(p, EPG_OPERAND_BGRAD), b * o->stride + i);
		double error = exact ? 0 : factor * oracle_roundoff(o->type) * p->want.sums_terms[s];
		if (p->on_device && is_half(p->desc.d.type)) /* a fused sum is of D before it was rounded */
			error += 2 * oracle_roundoff(p->desc.d.type) * p->want.sums_terms[s];
		if (number_agrees(o->type, got, p->want.sums[s], error))
			continue;
		complain_number(p, "bgrad", b, i, 0, got, p->want.sums[s], error);
		good = 0;
	}
	return good;
}

/* In changed, a copy of after, every element of the output gets back its old bytes. */
static void undo_elements(const operand *x, unsigned char *changed)
{
	const oracle_layout *o = &x->layout;
	size_t size = (size_t)oracle_type_nbits(o->type) / 8;
	for (int64_t b = 0; b < o->batch; b++)
		for (int64_t line = 0; line < o->lines; line++) {
			int64_t first = b * o->stride + line * o->ld;
			size_t at = x->start + (size_t)first * size;
			if (size)
				memcpy(changed + at, x->before + at, (size_t)o->length * size);
			for (int64_t i = 0; !size && i < o->length; i++)
				oracle_store(o->type, changed + x->start, first + i, oracle_load(o->type, x->before + x->start, first + i));
		}
}

static int gaps_untouched(problem *p, int which)
{
	static const char names[OPERANDS][6] = { "A", "B", "C", "D", "aux", "bias", "bgrad" };
	operand *x = &p->x[which];
	unsigned char *changed = malloc(x->total);
	int64_t i = 0;
	if (!changed)
		return 0;
	memcpy(changed, x->after, x->total);
	if (x->layout.used && x->is_output)
		undo_elements(x, changed);
	int good = memcmp(changed, x->before, x->total) == 0;
	while (!good && changed[i] == x->before[i])
		i++;
	if (!good)
		problem_complain(p, "byte %lld of %s was changed from 0x%02x to 0x%02x; it is no element of an output (%lld bytes)",
			(long long)i - (long long)x->start, names[which], x->before[i], changed[i], (long long)x->layout.nbytes);
	free(changed);
	return good;
}

int problem_compare(problem *p)
{
	int good = compare_matrix(p, EPG_OPERAND_D, compare_d);
	good &= compare_matrix(p, EPG_OPERAND_AUX, compare_aux);
	good &= compare_bgrad(p);
	for (int which = 0; which < OPERANDS; which++)
		good &= gaps_untouched(p, which);
	return good;
}
