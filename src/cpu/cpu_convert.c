/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversion of matrices between types, orders and strides: square blocks, so that a transposition touches few lines at a
 * time. Values pass through double, and are rounded once. */
#include <math.h>

#include "../dtype.h"
#include "../log.h"
#include "cpu.h"

enum { BLOCK = 32 };

typedef struct conversion {
	const epg_view *from_view, *to_view;
	const char *from;
	char *to;
	double scale, amax;
} conversion;

static bool is_float(int32_t type) { return type == EPG_F32 || type == EPG_F64 || type == EPG_C64 || type == EPG_C128; }

static bool is_narrow(int32_t type) { return type == EPG_F32 || type == EPG_C64; }

static epg_status check_types(const epg_view *from, const epg_view *to)
{
	if (is_float(from->type) && is_float(to->type) && epg_type_complex(from->type) == epg_type_complex(to->type))
		return EPG_SUCCESS;
	return epg_fail(EPG_UNSUPPORTED, "from_layout.type is %s and to_layout.type is %s: this version converts between f32 and f64, and between c64 and c128",
		epg_type_name(from->type), epg_type_name(to->type));
}

static int64_t index_of(const epg_view *view, int64_t i, int64_t j)
{
	return view->trans ? i * view->ld + j : i + j * view->ld;
}

static double load(const void *base, bool narrow, int64_t index)
{
	return narrow ? (double)((const float *)base)[index] : ((const double *)base)[index];
}

static void store(void *base, bool narrow, int64_t index, double x)
{
	if (narrow)
		((float *)base)[index] = (float)x;
	else
		((double *)base)[index] = x;
}

/* The largest so far; a NaN stays. */
static void see(conversion *c, double size)
{
	if (!(size <= c->amax) && !isnan(c->amax))
		c->amax = size;
}

static void real_block(conversion *c, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
	bool from_narrow = is_narrow(c->from_view->type), to_narrow = is_narrow(c->to_view->type);
	for (int64_t j = j0; j < j1; j++)
		for (int64_t i = i0; i < i1; i++) {
			double x = c->scale * load(c->from, from_narrow, index_of(c->from_view, i, j));
			store(c->to, to_narrow, index_of(c->to_view, i, j), x);
			see(c, fabs(x));
		}
}

static void complex_block(conversion *c, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
	bool from_narrow = is_narrow(c->from_view->type), to_narrow = is_narrow(c->to_view->type);
	double sign = c->from_view->conj ? -1 : 1;
	for (int64_t j = j0; j < j1; j++)
		for (int64_t i = i0; i < i1; i++) {
			int64_t from = 2 * index_of(c->from_view, i, j), to = 2 * index_of(c->to_view, i, j);
			double re = c->scale * load(c->from, from_narrow, from), im = sign * c->scale * load(c->from, from_narrow, from + 1);
			store(c->to, to_narrow, to, re);
			store(c->to, to_narrow, to + 1, im);
			see(c, hypot(re, im));
		}
}

static void one_matrix(conversion *c)
{
	const epg_view *view = c->to_view;
	bool pair = epg_type_complex(view->type);
	for (int64_t j = 0; j < view->cols; j += BLOCK)
		for (int64_t i = 0; i < view->rows; i += BLOCK) {
			int64_t i1 = i + BLOCK < view->rows ? i + BLOCK : view->rows, j1 = j + BLOCK < view->cols ? j + BLOCK : view->cols;
			if (pair)
				complex_block(c, i, i1, j, j1);
			else
				real_block(c, i, i1, j, j1);
		}
}

epg_status epg_cpu_convert(int64_t batch, const epg_view *from_view, const void *from, const epg_view *to_view, void *to, const void *scale, void *amax)
{
	epg_status status = check_types(from_view, to_view);
	if (status)
		return status;
	bool narrow = is_narrow(from_view->type);
	conversion c = {.from_view = from_view, .to_view = to_view, .scale = scale ? load(scale, narrow, 0) : 1};
	for (int64_t item = 0; item < batch && to_view->rows > 0 && to_view->cols > 0; item++) {
		c.from = (const char *)from + epg_type_nbytes(from_view->type, item * from_view->batch_stride);
		c.to = (char *)to + epg_type_nbytes(to_view->type, item * to_view->batch_stride);
		one_matrix(&c);
	}
	if (amax)
		store(amax, narrow, 0, c.amax);
	return EPG_SUCCESS;
}
