/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiles of matrices of 8 and 16 bits in f32. A thread widens what its tile needs of A and B, block by block along k, lets the BLAS add the blocks'
 * products up in f32, runs the pass there, and rounds the results once as it stores them: no matrix is ever widened as a whole, and what
 * is widened stays in the cache of the thread that uses it. Lines keep their direction; BLAS and pass take either. Products of s8 are exact in
 * each block, and added up in s32, which wraps. */
#include <string.h>

#include "../dtype.h"
#include "../epilog.h"
#include "../half.h"
#include "cpu.h"

enum { SUM_ROWS = 256, SUM_COLS = 32 };

static int64_t min64(int64_t x, int64_t y) { return x < y ? x : y; }

/* The product, A or C, B or aux, sums of integers (of s8 alone), the bias. */
enum { PRODUCT, FIRST, SECOND, INTEGERS, BIAS };
static bool has_integers(const cpu_plan *plan) { return plan->problem.compute == EPG_COMPUTE_S32; }
static int64_t part_at(const cpu_plan *plan, int which) { return (which == BIAS && !has_integers(plan) ? INTEGERS : which) * plan->wide_side * plan->wide_ld; }
static float *part(const cpu_plan *plan, float *memory, int which) { return memory + part_at(plan, which); }

int64_t epg_cpu_wide_count(const cpu_plan *plan) { return part_at(plan, BIAS) + plan->wide_side; }

/* Rows and columns of a view from element (i,j) on, as float. */
static void widen_view(const cpu_plan *plan, const epg_view *v, const void *base, int64_t item, int64_t i, int64_t j, int64_t rows, int64_t cols, float *to)
{
	plan->context->pass->widen(v->type, epg_cpu_at(base, v, item, i, j), v->ld, v->trans ? cols : rows, v->trans ? rows : cols, to, plan->wide_ld);
}

void epg_cpu_wide_product(const cpu_plan *plan, const epg_call *call, const cpu_tile *t, float *memory)
{
	static const double zero[2] = {0, 0}, one[2] = {1, 0};
	const epg_problem *p = &plan->problem;
	const cpu_pass_table *table = plan->context->pass;
	float *a = part(plan, memory, FIRST), *b = part(plan, memory, SECOND);
	int32_t *integers = has_integers(plan) ? (int32_t *)part(plan, memory, INTEGERS) : NULL;
	for (int64_t l = 0, depth; l < p->k; l += depth) {
		depth = min64(p->k - l, plan->wide_side);
		widen_view(plan, &p->a, call->x.a, t->item, t->i0, l, t->i1 - t->i0, depth, a);
		widen_view(plan, &p->b, call->x.b, t->item, l, t->j0, depth, t->j1 - t->j0, b);
		cpu_gemm_args args = {
			.type = EPG_F32, .a_trans = p->a.trans, .b_trans = p->b.trans, .m = t->i1 - t->i0, .n = t->j1 - t->j0, .k = depth, .lda = plan->wide_ld, .ldb = plan->wide_ld,
			.ldc = plan->wide_ld, .alpha = integers ? one : call->alpha, .beta = l == 0 || integers ? zero : one, .a = a, .b = b, .c = memory,
		};
		epg_cpu_blas_gemm(&args);
		if (integers)
			table->add_integers(memory, t->i1 - t->i0, t->j1 - t->j0, plan->wide_ld, l == 0, integers);
	}
	if (integers && p->d.type != EPG_S32)
		table->scale_integers(integers, t->i1 - t->i0, t->j1 - t->j0, plan->wide_ld, call->alpha[0], memory);
}

void epg_cpu_wide_integers(const cpu_plan *plan, const epg_call *call, const cpu_tile *t, bool product, const float *memory)
{
	const epg_problem *p = &plan->problem;
	const int32_t *sums = (const int32_t *)(memory + part_at(plan, INTEGERS));
	const char *bias = p->epilog & EPG_BIAS ? (const char *)call->x.bias + epg_type_nbytes(p->bias.type, t->item * p->bias.batch_stride) : NULL;
	bool plain = product && call->alpha[0] == 1 && call->beta[0] == 0 && !bias;
	for (int64_t j = t->j0; plain && j < t->j1; j++)
		memcpy((void *)epg_cpu_at(call->x.d, &p->d, t->item, t->i0, j), sums + (j - t->j0) * plan->wide_ld, (size_t)(t->i1 - t->i0) * sizeof *sums);
	for (int64_t j = t->j0; !plain && j < t->j1; j++)
		for (int64_t i = t->i0; i < t->i1; i++) {
			double z = product ? call->alpha[0] * sums[i - t->i0 + (j - t->j0) * plan->wide_ld] : 0;
			if (call->beta[0] != 0)
				z += call->beta[0] * epg_load_real(p->c.type, epg_cpu_at(call->x.c, &p->c, t->item, i, j), 0);
			if (bias)
				z += epg_load_real(p->bias.type, bias, p->axis == EPG_PER_ROW ? i : j);
			epg_store_real(EPG_S32, (void *)epg_cpu_at(call->x.d, &p->d, t->item, i, j), 0, z);
		}
}

static bool aux_is_wide(const epg_problem *p) { return p->epilog & EPG_AUX && p->aux.type != EPG_BIT && p->aux.type != EPG_F32; }

/* The memory of A and B is free by then: C and a z that is aux take it. */
void epg_cpu_wide_begin(const cpu_plan *plan, const epg_call *call, const cpu_tile *t, float *memory, cpu_pass *pass, cpu_pass_data *data)
{
	const epg_problem *p = &plan->problem;
	const cpu_pass_table *table = plan->context->pass;
	float *c = part(plan, memory, FIRST), *aux = part(plan, memory, SECOND), *bias = part(plan, memory, BIAS);
	int64_t rows = t->i1 - t->i0, cols = t->j1 - t->j0, first = p->axis == EPG_PER_ROW ? t->i0 : t->j0;
	data->d = memory;
	pass->d_ld = plan->wide_ld;
	data->c = epg_cpu_at(call->x.c, &p->c, t->item, t->i0, t->j0);
	if (pass->add_c && p->c.type != EPG_F32) {
		widen_view(plan, &p->c, call->x.c, t->item, t->i0, t->j0, rows, cols, c);
		data->c = c;
		pass->c_ld = plan->wide_ld;
	}
	data->aux = (void *)epg_cpu_at(call->x.aux, &p->aux, t->item, t->i0, t->j0);
	if (aux_is_wide(p)) {
		if (epg_epilog_aux_in(p->epilog))
			widen_view(plan, &p->aux, call->x.aux, t->item, t->i0, t->j0, rows, cols, aux);
		data->aux = aux;
		pass->aux_ld = plan->wide_ld;
	}
	if (p->epilog & EPG_BIAS)
		table->widen(p->bias.type, (const char *)call->x.bias + epg_type_nbytes(p->bias.type, t->item * p->bias.batch_stride + first), 0,
			p->axis == EPG_PER_ROW ? rows : cols, 1, bias, 0);
	data->bias = bias;
}

void epg_cpu_wide_end(const cpu_plan *plan, const epg_call *call, const cpu_tile *t, float *memory)
{
	const epg_problem *p = &plan->problem;
	const cpu_pass_table *table = plan->context->pass;
	int64_t rows = t->i1 - t->i0, cols = t->j1 - t->j0;
	void *d = (void *)epg_cpu_at(call->x.d, &p->d, t->item, t->i0, t->j0);
	table->narrow(p->d.type, memory, plan->wide_ld, rows, cols, d, p->d.ld);
	if (p->epilog & EPG_BGRAD)
		table->widen(p->d.type, d, p->d.ld, rows, cols, memory, plan->wide_ld);
	if (aux_is_wide(p) && epg_epilog_aux_out(p->epilog))
		table->narrow(p->aux.type, part(plan, memory, SECOND), plan->wide_ld, p->aux.trans ? cols : rows, p->aux.trans ? rows : cols,
			(void *)epg_cpu_at(call->x.aux, &p->aux, t->item, t->i0, t->j0), p->aux.ld);
}

void epg_cpu_wide_sum(const cpu_pass_table *table, int32_t type, const void *x, int64_t ld, int32_t axis, int64_t i0, int64_t i1, int64_t j0, int64_t j1, double *sums)
{
	float piece[SUM_ROWS * SUM_COLS];
	double part[SUM_ROWS > SUM_COLS ? SUM_ROWS : SUM_COLS];
	bool per_row = axis == EPG_PER_ROW;
	for (int64_t s = per_row ? i0 : j0; s < (per_row ? i1 : j1); s++)
		sums[s] = 0;
	for (int64_t j = j0; j < j1; j += SUM_COLS)
		for (int64_t i = i0; i < i1; i += SUM_ROWS) {
			int64_t rows = min64(i1 - i, SUM_ROWS), cols = min64(j1 - j, SUM_COLS);
			table->widen(type, (const char *)x + epg_type_nbytes(type, i + j * ld), ld, rows, cols, piece, SUM_ROWS);
			table->sum(EPG_F32, piece, SUM_ROWS, axis, 0, rows, 0, cols, part);
			for (int64_t s = 0; s < (per_row ? rows : cols); s++)
				sums[(per_row ? i : j) + s] += part[s];
		}
}
