/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests with the answer written out: values are put into a problem's operands and expected in its outputs, listed row by
 * row as a matrix is read (complex numbers as two), item after item. The oracle has to agree as well, under the default
 * plan and under every lowering. */
#ifndef VALUES_H
#define VALUES_H

#include <math.h>
#include <string.h>

#include "support.h"
#include "tap.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))
#define V(...) ((const double[]){ __VA_ARGS__ })
#define VALUES_UNUSED __attribute__((unused))

VALUES_UNUSED static int value_parts(const operand *x) { return oracle_type_is_complex(x->layout.type) ? 2 : 1; }

VALUES_UNUSED static void put(problem *p, int which, const double *values)
{
	const oracle_layout *o = &p->x[which].layout;
	int parts = value_parts(&p->x[which]);
	for (int64_t b = 0; o->used && b < o->batch; b++)
		for (int64_t i = 0; i < o->rows; i++)
			for (int64_t j = 0; j < o->cols; j++, values += parts)
				oracle_store(o->type, problem_before(p, which), oracle_index(o, b, i, j), (oracle_num){ values[0], parts == 2 ? values[1] : 0 });
}

VALUES_UNUSED static void put_all(problem *p, int which, double value)
{
	const oracle_layout *o = &p->x[which].layout;
	for (int64_t b = 0; o->used && b < o->batch; b++)
		for (int64_t e = 0; e < o->rows * o->cols; e++)
			oracle_store(o->type, problem_before(p, which), oracle_index(o, b, e / o->cols, e % o->cols), (oracle_num){ value, 0 });
}

static int near(oracle_real got, double want, double tolerance)
{
	return isnan(want) ? isnan(got) : got == want || fabsl(got - want) <= tolerance;
}

VALUES_UNUSED static int holds(problem *p, int which, const double *values, double tolerance)
{
	const oracle_layout *o = &p->x[which].layout;
	int parts = value_parts(&p->x[which]), good = 1;
	for (int64_t b = 0; o->used && b < o->batch; b++)
		for (int64_t i = 0; i < o->rows; i++)
			for (int64_t j = 0; j < o->cols; j++, values += parts) {
				oracle_num got = oracle_load(o->type, problem_after(p, which), oracle_index(o, b, i, j));
				double want_im = parts == 2 ? values[1] : 0;
				if (near(got.re, values[0], tolerance) && near(got.im, want_im, tolerance))
					continue;
				problem_complain(p, "operand %d [%d,%d] of item %d is %.17Lg%+.9Lgi, not %.17g%+.9gi", which, (int)i, (int)j, (int)b,
					got.re, got.im, values[0], want_im);
				good = 0;
			}
	return good;
}

/* Runs p every way; each time operand 'which' must hold the values (NULL: only the oracle counts). */
VALUES_UNUSED static int gives(epg_context *context, problem *p, int which, const double *values, double tolerance)
{
	char pins[MAX_PINS][PIN_NBYTES];
	int count = problem_pins(context, p, pins), good = count > 0;
	problem_solve(p);
	for (int i = -1; i < count; i++) {
		good &= problem_run(context, p, i < 0 ? NULL : pins[i]);
		good &= !values || holds(p, which, values, tolerance);
	}
	return good;
}

/* epg_execute of p must be refused with the status and write nothing. */
VALUES_UNUSED static int refuses(epg_context *context, problem *p, epg_status want)
{
	epg_status status = problem_execute(context, p, NULL);
	if (status != want)
		problem_complain(p, "%s instead of %s", epg_status_string(status), epg_status_string(want));
	return (status == want) & problem_untouched(p);
}

#endif
