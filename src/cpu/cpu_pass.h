/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU passes: what is done to a rectangle of D after (or instead of) its product, in one sweep. cpu_pass.c is compiled
 * once per instruction set; each object exports one table of functions, and the backend picks one table per process.
 *
 * Everything is in D's column-major coordinates of one batch item: rows i0 ≤ i < i1 (contiguous), columns j0 ≤ j < j1. The
 * passes are serial and re-entrant; whoever calls them shares D out in rectangles. */
#ifndef EPG_CPU_PASS_H
#define EPG_CPU_PASS_H

#include <stdbool.h>

#include "../problem.h"

/* Constant over a plan. */
typedef struct cpu_pass {
	int32_t type;                /* of C, D, bias and GELU's aux: EPG_F32, F64, C64, C128 */
	int32_t epilog, axis;
	bool has_product;            /* the product alpha·op(A)·op(B) (with beta·C if add_c is false) is there; else z starts at 0 */
	bool stream;                 /* D is written only and larger than the cache: store past it */
	bool add_c;                  /* the pass adds beta·C */
	bool c_trans, aux_trans;     /* stored the other way round than D: element (i,j) at i·ld + j */
	int64_t c_ld, d_ld, aux_ld;  /* in elements, a mask's in bits; c_ld may be 0: one line for all */
} cpu_pass;

/* One batch item of one execution. */
typedef struct cpu_pass_data {
	const void *c, *bias;
	const void *product;         /* of element (i0,j0) of the rectangle, columns product_ld apart; NULL: in D */
	int64_t product_ld;
	bool continues;              /* sums go on from what they hold: not the first rectangle of its chunk */
	void *d, *aux;               /* aux is only read by gradient epilogs; it may be d (GELU) */
	double beta[2];
	double *sums;                /* bias gradient of this rectangle's chunk, see below; NULL unless the epilog has EPG_BGRAD */
} cpu_pass_data;

/* Sums. A bias gradient is summed in chunks that depend on the extents of D alone, never on threads or rectangles: for
 * EPG_PER_ROW, columns [c·w, (c+1)·w) with w = epg_cpu_sum_chunk(n); for EPG_PER_COLUMN, rows, with w = epg_cpu_sum_chunk(m). A
 * rectangle given to a pass with sums lies within one chunk. In the summed direction the rectangles of a chunk come in order
 * and begin at multiples of 64, the first with continues false. The pass sets, or adds to, sums[i] for its rows, i0 ≤ i < i1 (EPG_PER_ROW), or sums[j] for its columns (EPG_PER_COLUMN), with the sum in
 * double; the result for a row or column must not depend on where the rectangle begins in the other direction. The
 * backend adds the chunks up in order. */
int64_t epg_cpu_sum_chunk(int64_t extent);

typedef struct cpu_pass_table {
	const char *isa;
	/* The pass over a rectangle. For a mask that is written, i0 is a multiple of 8 (aux_trans: j0), and i1 likewise or the
	 * last row of D: the last byte's bits beyond D keep what they hold. */
	void (*run)(const cpu_pass *pass, const cpu_pass_data *data, int64_t i0, int64_t i1, int64_t j0, int64_t j1);
	/* sums[i] or sums[j] as above, of a rectangle of a column-major matrix (F32 or F64) that is no D: BGRADA and BGRADB. */
	void (*sum)(int32_t type, const void *x, int64_t ld, int32_t axis, int64_t i0, int64_t i1, int64_t j0, int64_t j1, double *sums);
	/* Lines of contiguous elements of type F32, F16, BF16, E4M3, E5M2 or S8 as float, and back with one rounding to nearest even; 8 bits saturate. */
	void (*widen)(int32_t type, const void *from, int64_t from_ld, int64_t length, int64_t lines, float *to, int64_t to_ld);
	void (*narrow)(int32_t type, const float *from, int64_t from_ld, int64_t length, int64_t lines, void *to, int64_t to_ld);
	/* Products that are integers below 2^24: sums = products, or sums + products, wrapping. Then to = alpha·sums. Columns ld apart in all. */
	void (*add_integers)(const float *products, int64_t rows, int64_t cols, int64_t ld, bool first, int32_t *sums);
	void (*scale_integers)(const int32_t *sums, int64_t rows, int64_t cols, int64_t ld, double alpha, float *to);
} cpu_pass_table;

extern const cpu_pass_table epg_cpu_pass_baseline, epg_cpu_pass_avx2, epg_cpu_pass_avx512;

#endif
