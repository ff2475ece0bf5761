/* SPDX-License-Identifier: Apache-2.0
 *
 * What is right: the outputs of a problem against the oracle, within the bounds of bound.c, and then every byte that is not an
 * element of an output must be what it was. */
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bound.h"

static bound_case how(const problem *p) { return (bound_case){ p->options.data == DATA_INTEGERS, p->on_device }; }

static void complain_number(problem *p, const char *name, int64_t b, int64_t i, int64_t j, oracle_num got, oracle_num want, double error)
{
	problem_complain(p, "%s[%lld,%lld] of item %lld is %.17Lg%+.9Lgi, not %.17Lg%+.9Lgi ± %.3g", name, (long long)i, (long long)j,
		(long long)b, got.re, got.im, want.re, want.im, error);
}

typedef int compare_element(problem *p, int64_t e, int64_t b, int64_t i, int64_t j, const oracle_layout *o, int64_t at);

static int compare_d(problem *p, int64_t e, int64_t b, int64_t i, int64_t j, const oracle_layout *o, int64_t at)
{
	oracle_num got = oracle_load(o->type, problem_after(p, EPG_OPERAND_D), at);
	double error;
	if (bound_d_holds(&p->desc, how(p), &p->want, e, o->type, got, &error))
		return 1;
	complain_number(p, "D", b, i, j, got, p->want.d[e], error);
	return 0;
}

static int compare_aux(problem *p, int64_t e, int64_t b, int64_t i, int64_t j, const oracle_layout *o, int64_t at)
{
	const oracle_num z = p->want.z[e], got = oracle_load(o->type, problem_after(p, EPG_OPERAND_AUX), at);
	double error;
	if (bound_aux_holds(&p->desc, how(p), &p->want, e, o->type, got, &error))
		return 1;
	if (o->type == EPG_BIT)
		problem_complain(p, "mask[%lld,%lld] of item %lld is %d where z is %.9Lg", (long long)i, (long long)j, (long long)b, (int)got.re, z.re);
	else
		complain_number(p, "aux", b, i, j, got, z, error);
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

static int compare_bgrad(problem *p)
{
	const oracle_layout *o = &p->x[EPG_OPERAND_BGRAD].layout;
	double error;
	int good = 1;
	oracle_sum_d(&p->desc, problem_after(p, EPG_OPERAND_D), problem_before(p, EPG_OPERAND_BGRAD), &p->want);
	for (int64_t s = 0; o->used && s < p->want.sums_count; s++) {
		int64_t b = s / p->want.sums_length, i = s % p->want.sums_length;
		oracle_num got = oracle_load(o->type, problem_after(p, EPG_OPERAND_BGRAD), b * o->stride + i);
		if (bound_sum_holds(&p->desc, how(p), &p->want, s, o->type, got, &error))
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
