/* SPDX-License-Identifier: Apache-2.0
 *
 * Executions: a recipe carried out on the caller's stream, chunk by chunk. Nothing here allocates, asks or waits, so that it can
 * be captured into a graph; and nothing here writes to the plan, so that several threads may do it at once. */
#include <string.h>

#include "../dtype.h"
#include "../epilog.h"
#include "cuda_recipe.h"

/* One execution of one recipe. */
typedef struct run {
	const epg_cuda_plan *plan;
	const epg_cuda_recipe *r;
	const epg_problem *p;
	const epg_call *call;
	const void *a, *b;      /* as they are, or copied */
	int64_t stride_a, stride_b, column_b; /* elements between items; between columns of op(B) */
	char *workspace;
	bool overlap;           /* kernels may be launched early */
} run;

/* A part of D: columns j … j+n, items item … item+items. */
typedef struct chunk {
	int64_t j, n, item, items;
} chunk;

static void *moved(const void *base, int32_t type, int64_t elements)
{
	return base ? (char *)base + epg_type_nbytes(type, elements) : NULL;
}

static bool nonzero(const double x[2]) { return x[0] != 0 || x[1] != 0; }
static bool scalars_on_device(const epg_problem *p) { return p->flags & EPG_SCALARS_ON_DEVICE; }

static epg_cuda_matrix matrix_of(const epg_view *v, const void *data, int64_t j, int64_t item)
{
	int64_t row = v->trans ? v->ld : 1, col = v->trans ? 1 : v->ld;
	return (epg_cuda_matrix){moved(data, v->type, item * v->batch_stride + j * col), v->type, v->conj, row, col, v->batch_stride};
}

/* ---- Scalars ---- */

enum { ALPHA = 0, BETA = 16, ZERO = 32 }; /* offsets into plan->scalars */

static const void *device_scalar(const run *x, const void *given, int own)
{
	return given ? given : (const char *)x->plan->scalars + own;
}

/* beta·C counts: C is there, and beta is not known to be 0. */
static bool reads_c(const run *x)
{
	return scalars_on_device(x->p) ? x->call->x.c != NULL : nonzero(x->call->beta);
}

/* Seen of cuBLASLt 13.1 from compute capability 9 on, of kernels with stages: where C is D, of 16 bits, and beta a 1 on the host, the
 * product is rounded before C is added. With scalars on the device it is not. */
static bool adds_to_d(const epg_cuda_plan *plan, const epg_call *call)
{
	const epg_problem *p = &plan->problem;
	return plan->main.gemm.staged && epg_type_nbits(p->d.type) == 16 && !scalars_on_device(p) && call->x.c == call->x.d && call->beta[0] == 1 && call->beta[1] == 0;
}

/* Alpha and beta are those that the plan has on the device. */
static bool has_scalars(const epg_cuda_plan *plan, const epg_call *call)
{
	const epg_problem *p = &plan->problem;
	return plan->scalars && memcmp(p->alpha, call->alpha, sizeof p->alpha) == 0 && memcmp(p->beta, call->beta, sizeof p->beta) == 0;
}

/* ---- Steps ---- */

static epg_status copy_operand(const run *x, const epg_view *v, const void *from, size_t at, const void **copied, int64_t *stride)
{
	int64_t ld = epg_cuda_copy_ld(v), lines = v->trans ? v->rows : v->cols, items = v->batch_stride ? x->p->batch : 1;
	epg_cuda_matrix source = matrix_of(v, from, 0, 0);
	epg_cuda_matrix to = {x->workspace + at, v->type, false, v->trans ? ld : 1, v->trans ? 1 : ld, ld * lines};
	*copied = to.data;
	*stride = v->batch_stride ? to.stride : 0;
	return epg_cuda_check(epg_cuda_convert_launch(v->rows, v->cols, items, &source, &to, NULL, NULL, x->call->stream), "the launch of a copy of an operand");
}

static epg_status copy_operands(run *x)
{
	const epg_problem *p = x->p;
	epg_status status = EPG_SUCCESS;
	x->a = x->call->x.a;
	x->b = x->call->x.b;
	x->stride_a = p->a.batch_stride;
	x->stride_b = p->b.batch_stride;
	x->column_b = p->b.trans ? 1 : x->r->copy_b ? epg_cuda_copy_ld(&p->b) : p->b.ld;
	if (x->r->copy_a)
		status = copy_operand(x, &p->a, x->call->x.a, x->r->a_at, &x->a, &x->stride_a);
	if (!status && x->r->copy_b)
		status = copy_operand(x, &p->b, x->call->x.b, x->r->b_at, &x->b, &x->stride_b);
	return status;
}

static epg_status product(const run *x, const chunk *c)
{
	static const double zero[2] = {0, 0};
	const epg_problem *p = x->p;
	const epg_operands *o = &x->call->x;
	const epg_cuda_recipe *r = x->r;
	bool vendor_c = !r->c_in_pass && reads_c(x), smaller = c->n != r->chunk_n || c->items != r->chunk_items;
	epg_cuda_gemm_call call = {
		.a = moved(x->a, p->a.type, c->item * x->stride_a), .b = moved(x->b, p->b.type, c->item * x->stride_b + c->j * x->column_b),
		.c = vendor_c ? o->c : NULL, .d = r->apart ? x->workspace + r->z_at : o->d, .aux = o->aux,
		.vector = r->vendor_epilog & EPG_BIAS ? (void *)o->bias : o->bgrad, .workspace = x->workspace + r->vendor_at,
		.alpha = x->call->alpha, .beta = vendor_c ? x->call->beta : zero, .stream = x->call->stream,
	};
	if (scalars_on_device(p) || (vendor_c && adds_to_d(x->plan, x->call))) {
		call.alpha_device = device_scalar(x, o->alpha, ALPHA);
		call.beta_device = vendor_c ? device_scalar(x, o->beta, BETA) : (const char *)x->plan->scalars + ZERO;
	}
	return epg_cuda_gemm_run(x->plan->context, smaller ? &r->last : &r->gemm, &call);
}

static int64_t mask_ld(const epg_problem *p) { return (p->m + 127) / 128 * 128; }

/* Where the pass writes its mask when that is turned afterwards. */
static epg_cuda_matrix mask_apart(const run *x)
{
	return (epg_cuda_matrix){x->workspace + x->r->mask_at, EPG_BIT, false, 1, mask_ld(x->p), mask_ld(x->p) * x->p->n};
}

static epg_cuda_matrix z_of(const run *x, const chunk *c, const epg_cuda_matrix *d)
{
	int64_t ld = (x->p->m + 7) / 8 * 8;
	if (!x->r->product)
		return (epg_cuda_matrix){.type = d->type, .row = 1};
	return x->r->apart ? (epg_cuda_matrix){x->workspace + x->r->z_at, x->r->z_type, false, 1, ld, ld * c->n} : *d;
}

/* Partial sums per row: a line for each block of columns, chunk after chunk. Per column: each chunk has its part of every line. */
static void set_sums(const run *x, const chunk *c, epg_cuda_pass *pass)
{
	const epg_cuda_recipe *r = x->r;
	int64_t lines = r->sums == EPG_CUDA_SUM_ROWS ? c->j / r->chunk_n * r->chunk_parts : 0, column = r->sums == EPG_CUDA_SUM_COLUMNS ? c->j : 0;
	int64_t first = (c->item * r->parts + lines) * r->length + column;
	pass->sums = r->sums;
	pass->partial = x->workspace + r->partial_at + first * (int64_t)(r->wide ? sizeof(double) : sizeof(float));
	pass->length = r->length;
	pass->partial_stride = r->parts * r->length;
	pass->parts = r->chunk_parts;
}

static epg_status pass_over(const run *x, const chunk *c)
{
	const epg_problem *p = x->p;
	const epg_operands *o = &x->call->x;
	epg_cuda_matrix d = matrix_of(&p->d, o->d, c->j, c->item);
	epg_cuda_pass pass = {
		.m = p->m, .n = c->n, .batch = c->items, .epilog = p->epilog, .axis = p->axis, .z = z_of(x, c, &d), .d = d, .beta = {x->call->beta[0], x->call->beta[1]},
		.multiprocessors = x->plan->context->multiprocessors, .overlap = x->overlap && x->r->product,
	};
	if (x->r->c_in_pass && reads_c(x))
		pass.c = matrix_of(&p->c, o->c, c->j, c->item);
	if (scalars_on_device(p))
		pass.beta_device = device_scalar(x, o->beta, BETA);
	if (p->epilog & EPG_BIAS && !(x->r->vendor_epilog & EPG_BIAS))
		pass.bias = (epg_cuda_matrix){moved(o->bias, p->bias.type, c->item * p->bias.batch_stride + (p->axis == EPG_PER_ROW ? 0 : c->j)), p->bias.type, false, 1, 1, p->bias.batch_stride};
	if (p->epilog & EPG_AUX)
		pass.aux = x->r->turn ? mask_apart(x) : matrix_of(&p->aux, o->aux, 0, 0);
	if (p->epilog & EPG_AUX)
		pass.aux.data = moved(pass.aux.data, pass.aux.type, c->item * pass.aux.stride + c->j * pass.aux.col);
	if (x->r->sums)
		set_sums(x, c, &pass);
	return epg_cuda_check(epg_cuda_pass_launch(&pass, x->call->stream), "the launch of a pass");
}

/* Sums of A or B: a pass over the stored matrix, which is column-major. */
static epg_status pass_over_operand(const run *x)
{
	const epg_view *v = x->r->operand == EPG_OPERAND_A ? &x->p->a : &x->p->b;
	const void *data = x->r->operand == EPG_OPERAND_A ? x->call->x.a : x->call->x.b;
	const epg_cuda_recipe *r = x->r;
	epg_cuda_pass pass = {
		.m = v->trans ? v->cols : v->rows, .n = v->trans ? v->rows : v->cols, .batch = x->p->batch, .z = {(void *)data, v->type, false, 1, v->ld, v->batch_stride},
		.d = {.type = v->type, .row = 1}, .sums = r->operand_sums, .partial = x->workspace + r->partial_at, .parts = r->parts, .length = r->length,
		.partial_stride = r->parts * r->length, .multiprocessors = x->plan->context->multiprocessors,
	};
	return epg_cuda_check(epg_cuda_pass_launch(&pass, x->call->stream), "the launch of a pass over an operand");
}

static epg_status finish_sums(const run *x)
{
	const epg_span *g = &x->p->bgrad;
	epg_cuda_sum sum = {
		.length = g->length, .batch = x->p->batch, .parts = x->r->parts, .partial_stride = x->r->parts * x->r->length, .stride = g->batch_stride,
		.partial = x->workspace + x->r->partial_at, .wide = x->r->wide, .type = g->type, .gradient = x->call->x.bgrad,
		.accumulate = x->p->flags & EPG_BGRAD_ACCUMULATE, .overlap = x->overlap && x->r->parts > 0,
	};
	return epg_cuda_check(epg_cuda_sum_finish(&sum, x->call->stream), "the launch of a sum");
}

static epg_status turn_mask(const run *x)
{
	epg_cuda_matrix from = mask_apart(x), to = matrix_of(&x->p->aux, x->call->x.aux, 0, 0);
	return epg_cuda_check(epg_cuda_mask_turn_launch(x->p->m, x->p->n, x->p->batch, &from, &to, x->call->stream), "the launch of a mask's turn");
}

/* Product and pass, chunk after chunk: they share the memory that holds a product apart. */
static epg_status chunks(const run *x)
{
	const epg_problem *p = x->p;
	const epg_cuda_recipe *r = x->r;
	epg_status status = EPG_SUCCESS;
	for (int64_t item = 0; item < p->batch && !status; item += r->chunk_items)
		for (int64_t j = 0; j < p->n && !status; j += r->chunk_n) {
			chunk c = {j, p->n - j < r->chunk_n ? p->n - j : r->chunk_n, item, p->batch - item < r->chunk_items ? p->batch - item : r->chunk_items};
			if (r->product)
				status = product(x, &c);
			if (!status && r->pass)
				status = pass_over(x, &c);
		}
	return status;
}

static epg_status carry_out(run *x)
{
	const epg_cuda_recipe *r = x->r;
	bool some_d = x->p->m > 0 && x->p->n > 0 && x->p->batch > 0;
	epg_status status = r->product ? copy_operands(x) : EPG_SUCCESS;
	if (!status && some_d)
		status = chunks(x);
	if (!status && some_d && r->turn)
		status = turn_mask(x);
	if (!status && r->operand_sums && r->parts > 0)
		status = pass_over_operand(x);
	if (!status && r->length > 0)
		status = finish_sums(x);
	return status;
}

/* ---- Choosing a recipe ---- */

/* Bits of the pointers that the main recipe's kernels want to be 0. */
static bool aligned(const epg_cuda_plan *plan, const epg_operands *o)
{
	const epg_cuda_recipe *r = &plan->main;
	uintptr_t matrices = (uintptr_t)o->d | (r->copy_a ? 0 : (uintptr_t)o->a) | (r->copy_b ? 0 : (uintptr_t)o->b) | (r->c_in_pass ? 0 : (uintptr_t)o->c);
	uintptr_t vendor = r->vendor_epilog & EPG_BIAS ? (uintptr_t)o->bias : 0;
	if (r->vendor_epilog & EPG_AUX)
		vendor |= (uintptr_t)o->aux;
	if (epg_epilog_bgrad(r->vendor_epilog))
		vendor |= (uintptr_t)o->bgrad;
	return matrices % r->alignment == 0 && vendor % 16 == 0;
}

static epg_status choose(const epg_cuda_plan *plan, const epg_call *call, const epg_cuda_recipe **r)
{
	static const char *const reasons[] = {"a pointer is not aligned to 16 bytes", "d is aux", "beta is not 0, as it was when the plan was made, and C has another layout than D",
		"c is d, of 16 bits, with other scalars than the plan's"};
	const epg_problem *p = &plan->problem;
	const epg_operands *o = &call->x;
	bool product = plan->main.product && (scalars_on_device(p) || nonzero(call->alpha)), over_aux = epg_epilog_aux_in(p->epilog) && o->d == o->aux;
	*r = &plan->bare;
	if (!product)
		return EPG_SUCCESS;
	bool unplanned_sum = !plan->main.c_in_pass && adds_to_d(plan, call) && !has_scalars(plan, call);
	int safe = over_aux && !plan->main.apart ? 2 : plan->main.c_as_d && nonzero(call->beta) ? 3 : unplanned_sum ? 4 : !aligned(plan, o);
	*r = safe ? &plan->safe : &plan->main;
	if (!safe || plan->has_safe)
		return EPG_SUCCESS;
	return epg_cuda_fail(EPG_INVALID, "%s, for which the plan's workspace limit of %lld bytes leaves no room", reasons[safe - 1], (long long)p->workspace_limit_nbytes);
}

epg_status epg_cuda_execute(const void *state, const epg_call *call)
{
	const epg_cuda_plan *plan = state;
	int previous;
	run x = {.plan = plan, .p = &plan->problem, .call = call, .workspace = call->x.workspace ? call->x.workspace : plan->workspace,
		.overlap = plan->context->capability >= 90};
	epg_status status = choose(plan, call, &x.r);
	if (!status)
		status = epg_cuda_enter(plan->context, &previous);
	if (status)
		return status;
	status = carry_out(&x);
	epg_cuda_leave(plan->context, previous);
	return status;
}
