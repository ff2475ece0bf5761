/* SPDX-License-Identifier: Apache-2.0
 *
 * The reference lowering: plain loops, last in the list, right for every problem. Sums run in double, z is rounded once.
 * Columns are shared out to threads; each element is computed by one of them, in one order. */
#include <math.h>
#include <omp.h>

#include "../dtype.h"
#include "../epilog.h"
#include "../half.h"
#include "cpu.h"

typedef struct value { double re, im; } value;

/* One batch item. */
typedef struct ref_item {
	const cpu_plan *plan;
	const epg_call *call;
	const char *a, *b, *c, *bias;
	char *d, *aux, *bgrad;
	bool product;
} ref_item;

static int64_t index_of(const epg_view *view, int64_t i, int64_t j)
{
	return view->trans ? i * view->ld + j : i + j * view->ld;
}

static value load(int32_t type, const void *base, int64_t index)
{
	int32_t part = type == EPG_C64 ? EPG_F32 : EPG_F64;
	if (!epg_type_complex(type))
		return (value){epg_load_real(type, base, index), 0};
	return (value){epg_load_real(part, base, 2 * index), epg_load_real(part, base, 2 * index + 1)};
}

static void store(int32_t type, void *base, int64_t index, value x)
{
	bool pair = epg_type_complex(type);
	int32_t part = type == EPG_C64 ? EPG_F32 : type == EPG_C128 ? EPG_F64 : type;
	epg_store_real(part, base, pair ? 2 * index : index, x.re);
	if (pair)
		epg_store_real(part, base, 2 * index + 1, x.im);
}

static value load_view(const epg_view *view, const void *base, int64_t i, int64_t j)
{
	value x = load(view->type, base, index_of(view, i, j));
	return (value){x.re, view->conj ? -x.im : x.im};
}

/* Real types keep to the real part, so that 0·∞ of an imaginary part cannot make a NaN. */
static value multiply(value x, value y, bool pair)
{
	return pair ? (value){x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re} : (value){x.re * y.re, 0};
}

static value product(const ref_item *r, int64_t i, int64_t j, bool pair)
{
	const epg_problem *p = &r->plan->problem;
	value sum = {0, 0};
	for (int64_t l = 0; l < p->k; l++) {
		value x = multiply(load_view(&p->a, r->a, i, l), load_view(&p->b, r->b, l, j), pair);
		sum.re += x.re;
		sum.im += x.im;
	}
	if (p->compute == EPG_COMPUTE_S32)
		sum.re = (int32_t)(uint32_t)(int64_t)sum.re; /* wraps */
	return multiply((value){r->call->alpha[0], r->call->alpha[1]}, sum, pair);
}

static value affine(const ref_item *r, int64_t i, int64_t j)
{
	const epg_problem *p = &r->plan->problem;
	const double *beta = r->call->beta;
	bool pair = epg_type_complex(p->d.type);
	value z = r->product ? product(r, i, j, pair) : (value){0, 0};
	if (beta[0] != 0 || beta[1] != 0) {
		value c = multiply((value){beta[0], beta[1]}, load_view(&p->c, r->c, i, j), pair);
		z = (value){z.re + c.re, z.im + c.im};
	}
	if (p->epilog & EPG_BIAS) {
		value bias = load(p->bias.type, r->bias, p->axis == EPG_PER_ROW ? i : j);
		z = (value){z.re + bias.re, z.im + bias.im};
	}
	return z;
}

/* With u = 2·√(2/π)·(z + 0.044715 z³): gelu = z/(1+e^-u), which keeps its digits for negative z. */
static double gelu_u(double z) { return 1.5957691216057308 * (z + 0.044715 * z * z * z); }

static double gelu(double z)
{
	return z == -INFINITY ? 0 : z / (1 + exp(-gelu_u(z)));
}

/* s + z·s·(1-s)·u', with s = 1/(1+e^-u); both factors of s·(1-s) are computed from e^-|u|. */
static double gelu_derivative(double z)
{
	if (fabs(z) > 40)
		return z > 0;
	double u = gelu_u(z), e = exp(-fabs(u)), s = u >= 0 ? 1 / (1 + e) : e / (1 + e);
	return s + z * (e / ((1 + e) * (1 + e))) * 1.5957691216057308 * (1 + 3 * 0.044715 * z * z);
}

static bool mask_bit(const char *mask, int64_t bit)
{
	return mask[bit / 8] >> (bit % 8) & 1;
}

static void set_mask_bit(char *mask, int64_t bit, bool on)
{
	mask[bit / 8] = (char)((mask[bit / 8] & ~(1 << bit % 8)) | on << bit % 8);
}

static double forward(const ref_item *r, int64_t i, int64_t j, double z)
{
	const epg_problem *p = &r->plan->problem;
	bool relu = epg_epilog_act(p->epilog) == EPG_ACT_RELU;
	if (p->epilog & EPG_AUX && relu)
		set_mask_bit(r->aux, index_of(&p->aux, i, j), z >= 0);
	else if (p->epilog & EPG_AUX)
		store(p->aux.type, r->aux, index_of(&p->aux, i, j), (value){z, 0});
	return relu ? (z < 0 ? 0 : z) : gelu(z);
}

static double backward(const ref_item *r, int64_t i, int64_t j, double z)
{
	const epg_problem *p = &r->plan->problem;
	int64_t index = index_of(&p->aux, i, j);
	if (epg_epilog_act(p->epilog) == EPG_ACT_RELU)
		return mask_bit(r->aux, index) ? z : 0;
	return z * gelu_derivative(load(p->aux.type, r->aux, index).re);
}

static void element(const ref_item *r, int64_t i, int64_t j)
{
	const epg_problem *p = &r->plan->problem;
	value z = affine(r, i, j);
	if (p->epilog & EPG_GRAD)
		z.re = backward(r, i, j, z.re);
	else if (epg_epilog_act(p->epilog) != EPG_ACT_NONE)
		z.re = forward(r, i, j, z.re);
	store(p->d.type, r->d, index_of(&p->d, i, j), z);
}

static void column(const ref_item *r, int64_t j)
{
	for (int64_t i = 0; i < r->plan->problem.m; i++)
		element(r, i, j);
}

/* A mask whose bits run along j has bytes that eight columns share: then one thread does it all. */
static void all_columns(const ref_item *r)
{
	const epg_problem *p = &r->plan->problem;
	bool shared_bytes = epg_epilog_aux_out(p->epilog) && p->aux.type == EPG_BIT && p->aux.trans;
	int threads = shared_bytes ? 1 : epg_cpu_usable_threads(r->plan->threads);
	if (threads <= 1) {
		for (int64_t j = 0; j < p->n; j++)
			column(r, j);
		return;
	}
#pragma omp parallel for num_threads(threads) schedule(static)
	for (int64_t j = 0; j < p->n; j++)
		column(r, j);
}

/* Sum over k of op(A)'s row or op(B)'s column s, or over a line of D. */
static double gradient_sum(const ref_item *r, int64_t s)
{
	const epg_problem *p = &r->plan->problem;
	double sum = 0;
	if (p->epilog & EPG_BGRADA)
		for (int64_t l = 0; l < p->k; l++)
			sum += load_view(&p->a, r->a, s, l).re;
	else if (p->epilog & EPG_BGRADB)
		for (int64_t l = 0; l < p->k; l++)
			sum += load_view(&p->b, r->b, l, s).re;
	else if (p->axis == EPG_PER_ROW)
		for (int64_t j = 0; j < p->n; j++)
			sum += load_view(&p->d, r->d, s, j).re;
	else
		for (int64_t i = 0; i < p->m; i++)
			sum += load_view(&p->d, r->d, i, s).re;
	return sum;
}

static void gradient(const ref_item *r)
{
	const epg_problem *p = &r->plan->problem;
	for (int64_t s = 0; s < p->bgrad.length; s++) {
		double sum = gradient_sum(r, s);
		epg_cpu_sum_finish(p->bgrad.type, r->bgrad + epg_type_nbytes(p->bgrad.type, s), p->flags & EPG_BGRAD_ACCUMULATE, &sum, 1, 1);
	}
}

static void *moved(const void *base, int32_t type, int64_t elements)
{
	return base ? (char *)base + epg_type_nbytes(type, elements) : NULL;
}

epg_status epg_cpu_reference_execute(const cpu_plan *plan, const epg_call *call, void *workspace)
{
	const epg_problem *p = &plan->problem;
	const epg_operands *x = &call->x;
	(void)workspace;
	for (int64_t item = 0; item < p->batch; item++) {
		ref_item r = {
			.plan = plan, .call = call, .product = p->k > 0 && (call->alpha[0] != 0 || call->alpha[1] != 0),
			.a = moved(x->a, p->a.type, item * p->a.batch_stride), .b = moved(x->b, p->b.type, item * p->b.batch_stride),
			.c = moved(x->c, p->c.type, item * p->c.batch_stride), .d = moved(x->d, p->d.type, item * p->d.batch_stride),
			.aux = moved(x->aux, p->aux.type, item * p->aux.batch_stride), .bias = moved(x->bias, p->bias.type, item * p->bias.batch_stride),
			.bgrad = moved(x->bgrad, p->bgrad.type, item * p->bgrad.batch_stride),
		};
		all_columns(&r);
		if (epg_epilog_bgrad(p->epilog))
			gradient(&r);
	}
	return EPG_SUCCESS;
}
