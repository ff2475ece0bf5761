/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversion of matrices between types, orders and strides: square blocks, so that a transposition touches few lines at a
 * time. Values pass through double, and are rounded once. */
#include <math.h>

#include "../dtype.h"
#include "../half.h"
#include "../log.h"
#include "cpu.h"

enum { BLOCK = 32 };

typedef struct conversion {
	const epg_view *from_view, *to_view;
	const char *from;
	char *to;
	double scale, amax;
} conversion;

/* The type of scale and amax. */
static int32_t scale_type(int32_t type) { return type == EPG_F64 || type == EPG_C128 ? EPG_F64 : EPG_F32; }

/* The type of an element's parts. */
static int32_t part_type(int32_t type) { return type == EPG_C64 ? EPG_F32 : type == EPG_C128 ? EPG_F64 : type; }

static int64_t index_of(const epg_view *view, int64_t i, int64_t j)
{
	return view->trans ? i * view->ld + j : i + j * view->ld;
}

/* The largest so far; a NaN stays. */
static void see(conversion *c, double size)
{
	if (!(size <= c->amax) && !isnan(c->amax))
		c->amax = size;
}

static void real_block(conversion *c, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
	int32_t from_type = part_type(c->from_view->type), to_type = part_type(c->to_view->type);
	for (int64_t j = j0; j < j1; j++)
		for (int64_t i = i0; i < i1; i++) {
			double x = c->scale * epg_load_real(from_type, c->from, index_of(c->from_view, i, j));
			epg_store_real(to_type, c->to, index_of(c->to_view, i, j), x);
			see(c, fabs(x));
		}
}

static void complex_block(conversion *c, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
	int32_t from_type = part_type(c->from_view->type), to_type = part_type(c->to_view->type);
	double sign = c->from_view->conj ? -1 : 1;
	for (int64_t j = j0; j < j1; j++)
		for (int64_t i = i0; i < i1; i++) {
			int64_t from = 2 * index_of(c->from_view, i, j), to = 2 * index_of(c->to_view, i, j);
			double re = c->scale * epg_load_real(from_type, c->from, from), im = sign * c->scale * epg_load_real(from_type, c->from, from + 1);
			epg_store_real(to_type, c->to, to, re);
			epg_store_real(to_type, c->to, to + 1, im);
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
	char why[EPG_WHY_NBYTES];
	if (!epg_type_converts(from_view->type, to_view->type, why, sizeof why))
		return epg_fail(EPG_UNSUPPORTED, "%s", why);
	int32_t of_scale = scale_type(from_view->type);
	conversion c = {.from_view = from_view, .to_view = to_view, .scale = scale ? epg_load_real(of_scale, scale, 0) : 1};
	for (int64_t item = 0; item < batch && to_view->rows > 0 && to_view->cols > 0; item++) {
		c.from = (const char *)from + epg_type_nbytes(from_view->type, item * from_view->batch_stride);
		c.to = (char *)to + epg_type_nbytes(to_view->type, item * to_view->batch_stride);
		one_matrix(&c);
	}
	if (amax)
		epg_store_real(of_scale, amax, 0, c.amax);
	return EPG_SUCCESS;
}
