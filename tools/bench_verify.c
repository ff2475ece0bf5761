/* SPDX-License-Identifier: Apache-2.0
 *
 * Every output of one execution against the tests' oracle. The oracle solves a smaller problem that is cut out of the one computed: rows of
 * op(A), columns of op(B) and batch items, all of them where that is cheap, else SAMPLES spread over D with the first and the last. D, aux
 * and mask are compared where the rows and columns meet. Sums of A or B are compared for the rows or columns taken, sums of D for all of
 * the D that was written. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bound.h"
#include "oracle.h"

/* The oracle takes about a second for ALL_TERMS products, and for ALL_ELEMS elements cut out. */
enum { SAMPLES = 64, SAMPLED_ITEMS = 4, ALL_TERMS = 100 * 1000 * 1000, ALL_ELEMS = 4 * 1000 * 1000 };

/* ---- Random data ---- */

static uint64_t next_random(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static double random_real(uint64_t *state) { return (double)(next_random(state) >> 11) / 4503599627370496.0 - 1; }

void fill_random(int32_t type, unsigned char *data, size_t nbytes, double scale, unsigned long long seed)
{
	/* The data repeat after a prime number of elements, so that no two lines are the same. */
	const size_t period = 1000003, size = type == EPG_BIT ? 1 : (size_t)oracle_type_nbits(type) / 8, count = nbytes / size < period ? nbytes / size : period;
	uint64_t state = seed;
	for (size_t i = 0; i < count && type == EPG_BIT; i++)
		data[i] = (unsigned char)next_random(&state);
	for (size_t i = 0; i < count && type != EPG_BIT; i++) {
		oracle_num x = {scale * random_real(&state), scale * random_real(&state)};
		oracle_store(type, data, (int64_t)i, x);
	}
	for (size_t at = count * size, length; at < nbytes; at += length) {
		length = nbytes - at < count * size ? nbytes - at : count * size;
		memcpy(data + at, data, length);
	}
}

/* ---- The problem that is cut out ---- */

typedef struct index_list {
	int64_t count, *index;
} index_list;

/* All of 0 … size-1, or one from each of 'most' equal parts. */
static index_list choose(int64_t size, int64_t most, int all, uint64_t *state)
{
	index_list list = {all || size < most ? size : most, NULL};
	list.index = calloc((size_t)list.count + 1, sizeof *list.index);
	for (int64_t i = 0; i < list.count && list.index; i++) {
		int64_t begin = size / list.count * i, part = size / list.count;
		list.index[i] = list.count == size || i == 0 ? begin : i == list.count - 1 ? size - 1 : begin + (int64_t)(next_random(state) % (uint64_t)part);
	}
	return list;
}

typedef struct cutting {
	const bench *b;
	epg_matmul_desc desc;            /* of the rows, columns and items taken, all tight and column-major */
	index_list rows, cols, items, k;
	void *memory[OPERANDS];          /* of the inputs */
	oracle_result want, sums;
	char *why;
	int64_t wrong, compared;
} cutting;

static void cut_matrix(epg_matrix *x, int32_t type)
{
	*x = (epg_matrix){.type = type, .op = x->op, .ld = EPG_TIGHT, .batch_stride = EPG_TIGHT};
}

static epg_matmul_desc cut_desc(const cutting *c)
{
	epg_matmul_desc d = c->b->desc;
	d.m = c->rows.count, d.n = c->cols.count, d.batch = c->items.count;
	cut_matrix(&d.a, d.a.type), cut_matrix(&d.b, d.b.type), cut_matrix(&d.c, d.c.type), cut_matrix(&d.d, d.d.type);
	cut_matrix(&d.aux, c->b->layout[EPG_OPERAND_AUX].type);
	d.bias.batch_stride = d.bgrad.batch_stride = EPG_TIGHT;
	d.bias.length = d.bgrad.length = 0;
	return d;
}

/* The rows and columns of an operand that are taken, as it is stored. */
static void taken(const cutting *c, int which, const index_list **rows, const index_list **cols)
{
	static int64_t zero[] = {0};
	static const index_list one = {1, zero};
	const epg_matmul_desc *d = &c->b->desc;
	int per_row = which == EPG_OPERAND_BIAS || d->epilog & EPG_BGRAD ? d->axis == EPG_PER_ROW : (d->epilog & EPG_BGRADA) != 0;
	int32_t op = which == EPG_OPERAND_A ? d->a.op : which == EPG_OPERAND_B ? d->b.op : EPG_OP_N;
	*rows = which == EPG_OPERAND_B ? &c->k : &c->rows;
	*cols = which == EPG_OPERAND_A ? &c->k : &c->cols;
	if (which == EPG_OPERAND_BIAS || which == EPG_OPERAND_BGRAD)
		*rows = per_row ? &c->rows : &c->cols, *cols = &one;
	if (op == EPG_OP_T || op == EPG_OP_C) {
		const index_list *swapped = *rows;
		*rows = *cols, *cols = swapped;
	}
}

/* Element (i,j) of what is taken from item t, as the whole operand counts it. */
static int64_t whole_index(const cutting *c, int which, int64_t t, int64_t i, int64_t j)
{
	oracle_layout whole;
	const index_list *rows, *cols;
	oracle_get_layout(&c->b->desc, which, &whole);
	taken(c, which, &rows, &cols);
	return oracle_index(&whole, c->items.index[t], rows->index[i], cols->index[j]);
}

/* Copies what is taken of an input. 0: no memory. */
static int cut_operand(cutting *c, int which)
{
	oracle_layout whole, part;
	const index_list *rows, *cols;
	oracle_get_layout(&c->b->desc, which, &whole);
	oracle_get_layout(&c->desc, which, &part);
	taken(c, which, &rows, &cols);
	c->memory[which] = calloc(1, (size_t)part.nbytes + 1);
	if (!whole.used || !part.used || !c->b->layout[which].nbytes || !c->memory[which])
		return c->memory[which] != NULL;
	for (int64_t t = 0; t < c->items.count; t++)
		for (int64_t j = 0; j < cols->count; j++)
			for (int64_t i = 0; i < rows->count; i++) {
				int64_t from = oracle_index(&whole, c->items.index[t], rows->index[i], cols->index[j]);
				oracle_store(part.type, c->memory[which], oracle_index(&part, t, i, j), oracle_load(whole.type, c->b->before + c->b->at[which], from));
			}
	return 1;
}

static int cut(cutting *c, uint64_t seed)
{
	const epg_matmul_desc *d = &c->b->desc;
	double elems = ((double)d->m * (double)d->k + (double)d->k * (double)d->n + (double)d->m * (double)d->n) * (double)d->batch;
	int all = (double)d->m * (double)d->n * (double)d->k * (double)d->batch <= ALL_TERMS && elems <= ALL_ELEMS, good = 1;
	c->rows = choose(d->m, SAMPLES, all, &seed);
	c->cols = choose(d->n, SAMPLES, all, &seed);
	c->items = choose(d->batch, SAMPLED_ITEMS, all, &seed);
	c->k = choose(d->k, 0, 1, &seed);
	c->desc = cut_desc(c);
	good = c->rows.index && c->cols.index && c->items.index && c->k.index;
	for (int which = 0; which < OPERANDS && good; which++)
		good = which == EPG_OPERAND_D || cut_operand(c, which);
	void *const *x = c->memory;
	const oracle_inputs in = {x[EPG_OPERAND_A], x[EPG_OPERAND_B], x[EPG_OPERAND_C], x[EPG_OPERAND_BIAS], x[EPG_OPERAND_AUX], x[EPG_OPERAND_BGRAD]};
	return good && oracle_solve(&c->desc, &in, &c->want);
}

static void close_cutting(cutting *c)
{
	for (int which = 0; which < OPERANDS; which++)
		free(c->memory[which]);
	free(c->rows.index), free(c->cols.index), free(c->items.index), free(c->k.index);
	oracle_free(&c->want);
	oracle_free(&c->sums);
}

/* ---- Comparing ---- */

static void compare_one(cutting *c, const epg_matmul_desc *desc, bound_holds *holds, const oracle_result *w, int64_t e, const oracle_num *want, int which, int64_t at,
	const int64_t place[3])
{
	const bound_case how = {0, c->b->on_device};
	const int32_t type = c->b->layout[which].type;
	const oracle_num got = oracle_load(type, c->b->after + c->b->at[which], at);
	double error;
	c->compared++;
	if (holds(desc, how, w, e, type, got, &error) || c->wrong++)
		return;
	snprintf(c->why, TEXT_NBYTES, "%s[%lld,%lld] of item %lld is %.9Lg%+.9Lgi, but %s is %.9Lg%+.9Lgi, and may be off by %.3g beside the output's rounding",
		which == EPG_OPERAND_D ? "D" : which == EPG_OPERAND_BGRAD ? "bgrad" : type == EPG_BIT ? "the mask" : "aux", (long long)place[0], (long long)place[1], (long long)place[2], got.re,
		got.im, type == EPG_BIT ? "z" : "the right value", want->re, want->im, error);
}

static void compare_matrix(cutting *c, int which, bound_holds *holds, const oracle_num *want)
{
	for (int64_t e = 0; c->b->is_output[which] && c->b->layout[which].nbytes && e < c->want.count; e++) {
		int64_t i = e % c->want.m, j = e / c->want.m % c->want.n, t = e / (c->want.m * c->want.n);
		const int64_t place[] = {c->rows.index[i], c->cols.index[j], c->items.index[t]};
		compare_one(c, &c->desc, holds, &c->want, e, &want[e], which, whole_index(c, which, t, i, j), place);
	}
}

/* Sums of op(A) or op(B), of the rows or columns that were taken. */
static void compare_operand_sums(cutting *c)
{
	for (int64_t s = 0; s < c->want.sums_count; s++) {
		int64_t t = s / c->want.sums_length, i = s % c->want.sums_length;
		const int64_t place[] = {(c->desc.epilog & EPG_BGRADA ? c->rows : c->cols).index[i], 0, c->items.index[t]};
		compare_one(c, &c->desc, bound_sum_holds, &c->want, s, &c->want.sums[s], EPG_OPERAND_BGRAD, whole_index(c, EPG_OPERAND_BGRAD, t, i, 0), place);
	}
}

/* Sums of the D that was written, all of them. */
static int compare_d_sums(cutting *c)
{
	const bench *b = c->b;
	const epg_matmul_desc *d = &b->desc;
	oracle_result *r = &c->sums;
	oracle_layout o;
	oracle_get_layout(d, EPG_OPERAND_BGRAD, &o);
	*r = (oracle_result){.m = d->m, .n = d->n, .batch = d->batch, .count = d->m * d->n * d->batch, .sums_length = o.rows, .sums_count = o.rows * d->batch};
	r->sums = calloc((size_t)r->sums_count + 1, sizeof *r->sums);
	r->sums_terms = calloc((size_t)r->sums_count + 1, sizeof *r->sums_terms);
	if (!r->sums || !r->sums_terms)
		return 0;
	oracle_sum_d(d, b->after + b->at[EPG_OPERAND_D], b->before + b->at[EPG_OPERAND_BGRAD], r);
	for (int64_t s = 0; s < r->sums_count; s++) {
		const int64_t place[] = {s % o.rows, 0, s / o.rows};
		compare_one(c, d, bound_sum_holds, r, s, &r->sums[s], EPG_OPERAND_BGRAD, place[2] * o.stride + place[0], place);
	}
	return 1;
}

static int inputs_untouched(cutting *c)
{
	static const char *const names[OPERANDS] = {"A", "B", "C", "D", "aux", "the bias", "bgrad"};
	for (int which = 0; which < OPERANDS; which++)
		if (!c->b->is_output[which] && memcmp(c->b->before + c->b->at[which], c->b->after + c->b->at[which], (size_t)c->b->layout[which].nbytes)) {
			snprintf(c->why, TEXT_NBYTES, "%s was changed, which is an input", names[which]);
			return 0;
		}
	return 1;
}

int bench_verify(const bench *b, char why[TEXT_NBYTES])
{
	cutting c = {.b = b, .why = why};
	int good = cut(&c, (uint64_t)b->set->seed);
	if (good) {
		compare_matrix(&c, EPG_OPERAND_D, bound_d_holds, c.want.d);
		compare_matrix(&c, EPG_OPERAND_AUX, bound_aux_holds, c.want.z);
		if (b->desc.epilog & EPG_BGRAD)
			good = compare_d_sums(&c);
		else
			compare_operand_sums(&c);
	}
	if (!good)
		snprintf(why, TEXT_NBYTES, "no memory to verify in");
	else if (c.wrong)
		snprintf(why + strlen(why), TEXT_NBYTES - strlen(why), " (%lld of %lld compared are wrong)", (long long)c.wrong, (long long)c.compared);
	else
		good = inputs_untouched(&c);
	close_cutting(&c);
	return good && !c.wrong;
}
