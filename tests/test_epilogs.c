/* SPDX-License-Identifier: Apache-2.0
 *
 * A generated sweep, one point per epilog and type. Two parts: every op of A and B with every order of A, B, C, D and aux
 * on a tiny problem; and random draws (fixed seed) over ops, orders, shapes, leading dimensions, batch modes, scalars,
 * axis, in-place use, alignment, lowering, threads and data, many enough that every pair of values occurs.
 *
 *     test_epilogs [DRAWS [SEED]]        for longer runs */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"
#include "tap.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static const int thread_counts[] = { 0, 3, 7 };
static epg_context *contexts[COUNT(thread_counts)];
static int draws = 150, problems;

static const int64_t shapes[][3] = { /* m, n, k */
	{ 1, 1, 1 }, { 2, 3, 4 }, { 7, 5, 3 }, { 1, 9, 4 }, { 9, 1, 4 }, { 5, 6, 1 }, { 13, 17, 11 }, { 130, 3, 5 }, { 3, 130, 5 },
	{ 65, 43, 21 }, { 43, 65, 7 }, { 0, 4, 3 }, { 4, 0, 3 }, { 4, 3, 0 }, { 16, 16, 16 }, { 33, 31, 64 }, { 211, 2, 9 }, { 2, 211, 9 },
	{ 8, 8, 129 }, { 128, 2, 2 },
};
/* Large enough that passes and sums run in parallel; one draw of 50. */
static const int64_t large_shapes[][3] = { { 300, 230, 3 }, { 13523, 5, 2 }, { 5, 13523, 2 }, { 541, 130, 1 }, { 130, 541, 0 }, { 1, 70001, 1 }, { 70001, 1, 1 } };

/* Types of A, B, C and D; one problem of so many is enough. */
typedef struct {
	const char *name;
	int32_t a, b, c, d, compute;
	int every;
} kind;

/* All of the support table's. */
static const kind kinds[] = {
	{ "f32", EPG_F32, EPG_F32, EPG_F32, EPG_F32, EPG_COMPUTE_DEFAULT, 1 }, { "f64", EPG_F64, EPG_F64, EPG_F64, EPG_F64, EPG_COMPUTE_DEFAULT, 1 },
	{ "c64", EPG_C64, EPG_C64, EPG_C64, EPG_C64, EPG_COMPUTE_DEFAULT, 1 }, { "c128", EPG_C128, EPG_C128, EPG_C128, EPG_C128, EPG_COMPUTE_DEFAULT, 1 },
	{ "f16", EPG_F16, EPG_F16, EPG_F16, EPG_F16, EPG_COMPUTE_DEFAULT, 4 }, { "bf16", EPG_BF16, EPG_BF16, EPG_BF16, EPG_BF16, EPG_COMPUTE_DEFAULT, 4 },
	{ "tf32", EPG_F32, EPG_F32, EPG_F32, EPG_F32, EPG_COMPUTE_TF32, 4 }, { "f16 to f32", EPG_F16, EPG_F16, EPG_F32, EPG_F32, EPG_COMPUTE_DEFAULT, 4 },
	{ "bf16 to f32", EPG_BF16, EPG_BF16, EPG_F32, EPG_F32, EPG_COMPUTE_DEFAULT, 4 }, { "bf16 with C of f32", EPG_BF16, EPG_BF16, EPG_F32, EPG_BF16, EPG_COMPUTE_DEFAULT, 4 },
	{ "f16 with C of f32", EPG_F16, EPG_F16, EPG_F32, EPG_F16, EPG_COMPUTE_DEFAULT, 4 }, { "f16 to f32 with C of f16", EPG_F16, EPG_F16, EPG_F16, EPG_F32, EPG_COMPUTE_DEFAULT, 4 },
	{ "bf16 to f32 with C of bf16", EPG_BF16, EPG_BF16, EPG_BF16, EPG_F32, EPG_COMPUTE_DEFAULT, 4 },
	{ "e4m3", EPG_E4M3, EPG_E4M3, EPG_E4M3, EPG_E4M3, EPG_COMPUTE_DEFAULT, 8 }, { "e5m2", EPG_E5M2, EPG_E5M2, EPG_E5M2, EPG_E5M2, EPG_COMPUTE_DEFAULT, 8 },
	{ "e4m3 with C of bf16", EPG_E4M3, EPG_E4M3, EPG_BF16, EPG_E4M3, EPG_COMPUTE_DEFAULT, 8 }, { "e4m3·e5m2 to e5m2 with C of f16", EPG_E4M3, EPG_E5M2, EPG_F16, EPG_E5M2, EPG_COMPUTE_DEFAULT, 8 },
	{ "e5m2·e4m3 to bf16", EPG_E5M2, EPG_E4M3, EPG_BF16, EPG_BF16, EPG_COMPUTE_DEFAULT, 8 }, { "e4m3 to f16", EPG_E4M3, EPG_E4M3, EPG_F16, EPG_F16, EPG_COMPUTE_DEFAULT, 8 },
	{ "e4m3 to bf16 with C of f32", EPG_E4M3, EPG_E4M3, EPG_F32, EPG_BF16, EPG_COMPUTE_DEFAULT, 8 }, { "e4m3 to f32", EPG_E4M3, EPG_E4M3, EPG_F32, EPG_F32, EPG_COMPUTE_DEFAULT, 8 },
	{ "s8 to s32", EPG_S8, EPG_S8, EPG_S32, EPG_S32, EPG_COMPUTE_DEFAULT, 8 }, { "s8", EPG_S8, EPG_S8, EPG_S8, EPG_S8, EPG_COMPUTE_DEFAULT, 8 },
	{ "s8 with C of f32", EPG_S8, EPG_S8, EPG_F32, EPG_S8, EPG_COMPUTE_DEFAULT, 8 }, { "s8 to f32", EPG_S8, EPG_S8, EPG_F32, EPG_F32, EPG_COMPUTE_DEFAULT, 8 },
	{ "s8 to f16", EPG_S8, EPG_S8, EPG_F16, EPG_F16, EPG_COMPUTE_DEFAULT, 8 }, { "s8 to bf16 with C of f32", EPG_S8, EPG_S8, EPG_F32, EPG_BF16, EPG_COMPUTE_DEFAULT, 8 },
};

static epg_matmul_desc make_kind(const kind *t, int64_t m, int64_t n, int64_t k, int32_t epilog)
{
	epg_matmul_desc desc = make_desc(t->a, m, n, k, EPG_COL, epilog);
	desc.b.type = t->b;
	desc.c.type = t->c;
	desc.d.type = t->d;
	desc.compute = t->compute;
	return desc;
}

/* Products of 8 bits are the CPU's alone. */
static int may_refuse(const kind *t) { return oracle_type_nbits(t->a) == 8 && context_is_device(contexts[0]); }

static int is_complex(int32_t type) { return oracle_type_is_complex(type); }

/* ---- Every op and order ---- */

static void set_orders(epg_matmul_desc *desc, int bits)
{
	desc->a.order = bits & 1;
	desc->b.order = bits >> 1 & 1;
	desc->c.order = bits >> 2 & 1;
	desc->d.order = bits >> 3 & 1;
	desc->aux.order = bits >> 4 & 1;
}

static int all_ops_and_orders(const kind *t, int32_t epilog)
{
	int good = 1;
	for (int ops = 0; ops < 16; ops++)
		for (int bits = 0; bits < 32; bits++) {
			if ((bits + ops) % t->every)
				continue;
			epg_matmul_desc desc = make_kind(t, 3, 2, 4, epilog);
			set_orders(&desc, bits);
			desc.a.op = ops & 3;
			desc.b.op = ops >> 2;
			desc.axis = (ops ^ bits ^ bits >> 3) & 1;
			desc.beta[0] = bits & 4 ? 1 : (bits & 1) * -0.5;
			check_options options = { .seed = (uint64_t)(ops * 32 + bits), .all_pins = bits % 8 == ops % 8, .may_refuse = may_refuse(t) };
			good &= check_problem(contexts[0], &desc, &options);
			problems++;
		}
	return good;
}

/* ---- Random draws ---- */

/* Tight three times out of four, else with a gap of the operand's granularity. */
static void draw_ld(uint64_t *state, const epg_matmul_desc *desc, int which, epg_matrix *x)
{
	oracle_layout o;
	oracle_get_layout(desc, which, &o);
	if (random_below(state, 4) != 0 || o.type == EPG_NONE)
		return;
	int64_t step = o.type == EPG_BIT ? 128 : which == EPG_OPERAND_AUX ? 8 : 1;
	x->ld = o.ld + step * (1 + random_below(state, 5));
}

/* Batch stride of an input or output: tight, with a gap, or (inputs) 0. */
static void draw_stride(uint64_t *state, const epg_matmul_desc *desc, int which, int is_input, int64_t *stride)
{
	oracle_layout o;
	oracle_get_layout(desc, which, &o);
	int mode = random_below(state, is_input ? 3 : 2);
	if (o.type == EPG_NONE || mode == 0 || (!is_input && !o.used))
		return;
	int64_t step = o.type == EPG_BIT ? 128 : which == EPG_OPERAND_AUX ? 8 : 1;
	*stride = mode == 2 ? 0 : o.stride + step * random_below(state, 20);
}

/* An input of one line for all lines; its items are then a line or nothing apart. */
static void draw_broadcast(uint64_t *state, const epg_matmul_desc *desc, int which, int rarity, epg_matrix *x)
{
	oracle_layout o;
	oracle_get_layout(desc, which, &o);
	if (random_below(state, rarity) != 0 || !o.used)
		return;
	x->ld = 0;
	x->batch_stride = random_below(state, 2) ? 0 : o.length + random_below(state, 3);
}

static void draw_memory(uint64_t *state, epg_matmul_desc *desc)
{
	int is_input = oracle_is_gradient(desc);
	draw_ld(state, desc, EPG_OPERAND_A, &desc->a);
	draw_ld(state, desc, EPG_OPERAND_B, &desc->b);
	draw_ld(state, desc, EPG_OPERAND_C, &desc->c);
	draw_ld(state, desc, EPG_OPERAND_D, &desc->d);
	draw_ld(state, desc, EPG_OPERAND_AUX, &desc->aux);
	if (desc->batch > 1) {
		draw_stride(state, desc, EPG_OPERAND_A, 1, &desc->a.batch_stride);
		draw_stride(state, desc, EPG_OPERAND_B, 1, &desc->b.batch_stride);
		draw_stride(state, desc, EPG_OPERAND_C, 1, &desc->c.batch_stride);
		draw_stride(state, desc, EPG_OPERAND_D, 0, &desc->d.batch_stride);
		draw_stride(state, desc, EPG_OPERAND_AUX, is_input, &desc->aux.batch_stride);
		draw_stride(state, desc, EPG_OPERAND_BIAS, 1, &desc->bias.batch_stride);
		draw_stride(state, desc, EPG_OPERAND_BGRAD, 0, &desc->bgrad.batch_stride);
	}
	draw_broadcast(state, desc, EPG_OPERAND_A, 20, &desc->a);
	draw_broadcast(state, desc, EPG_OPERAND_B, 20, &desc->b);
	draw_broadcast(state, desc, EPG_OPERAND_C, 6, &desc->c);
}

static void draw_scalars(uint64_t *state, epg_matmul_desc *desc)
{
	static const double alphas[] = { 1, 1, 1, 2, -1, 0.5, 0 }, betas[] = { 0, 1, -0.5 };
	desc->alpha[0] = alphas[random_below(state, COUNT(alphas))];
	desc->beta[0] = betas[random_below(state, COUNT(betas))];
	if (is_complex(desc->d.type)) {
		desc->alpha[1] = random_below(state, 3) - 1;
		desc->beta[1] = random_below(state, 3) - 1;
	}
}

static epg_matmul_desc draw_desc(uint64_t *state, const kind *t, int32_t epilog, int large)
{
	const int64_t *shape = large ? large_shapes[random_below(state, COUNT(large_shapes))] : shapes[random_below(state, COUNT(shapes))];
	epg_matmul_desc desc = make_kind(t, shape[0], shape[1], shape[2], epilog);
	set_orders(&desc, random_below(state, 3) ? random_below(state, 32) : random_below(state, 2) * 31);
	desc.a.op = random_below(state, 4);
	desc.b.op = random_below(state, 4);
	desc.axis = random_below(state, 2);
	desc.batch = random_below(state, 3) ? 1 : 3;
	desc.flags |= random_below(state, 5) ? 0 : EPG_DETERMINISTIC;
	if (oracle_has_bgrad(&desc) && random_below(state, 3) == 0)
		desc.flags |= EPG_BGRAD_ACCUMULATE;
	draw_scalars(state, &desc);
	draw_memory(state, &desc);
	return desc;
}

/* Gives C the memory of D, or D the memory of DGELU's aux, so that D may lie over it. */
static void adopt_place(epg_matmul_desc *desc, int in_place)
{
	oracle_layout aux;
	if (in_place == IN_PLACE_C)
		desc->c = desc->d;
	if (in_place != IN_PLACE_AUX || !oracle_is_gradient(desc) || oracle_act(desc) != EPG_ACT_GELU)
		return;
	desc->aux.order = desc->d.order;
	desc->aux.ld = desc->aux.batch_stride = desc->d.batch_stride = EPG_TIGHT;
	oracle_get_layout(desc, EPG_OPERAND_AUX, &aux);
	desc->d.ld = aux.used ? aux.ld : EPG_TIGHT;
}

static int draw_and_check(uint64_t *state, const kind *t, int32_t epilog, int large)
{
	epg_matmul_desc desc = draw_desc(state, t, epilog, large);
	check_options options = { .seed = next_random(state) % 100000, .may_refuse = may_refuse(t) };
	options.data = random_below(state, 3) == 0 ? DATA_REALS : DATA_INTEGERS;
	options.in_place = random_below(state, 3);
	options.offset = random_below(state, 3);
	options.null_unread = random_below(state, 2);
	options.override_scalars = random_below(state, 4) == 0 && (desc.alpha[0] != 0 || desc.alpha[1] != 0);
	options.all_pins = random_below(state, 2);
	if (options.in_place)
		adopt_place(&desc, options.in_place);
	if (!can_be_in_place(&desc, options.in_place))
		options.in_place = IN_PLACE_NO;
	problems++;
	return check_problem(contexts[large ? random_below(state, COUNT(contexts)) : 0], &desc, &options);
}

static void sweep(const kind *t, int32_t epilog, uint64_t seed)
{
	uint64_t state = seed * 1000 + (uint64_t)((t - kinds) * 10000 + epilog);
	int wrong = 0, count = draws / t->every;
	problems = 0;
	wrong += !all_ops_and_orders(t, epilog);
	for (int i = 0; i < count; i++)
		wrong += !draw_and_check(&state, t, epilog, i % 50 == 49);
	ok(wrong == 0, "%s %s: %d problems", t->name, epg_epilog_name(epilog), problems);
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	const char *why = "";
	draws = argc > 1 ? atoi(argv[1]) : draws;
	for (int i = 0; i < COUNT(contexts); i++)
		if (!(contexts[i] = test_context(thread_counts[i], &why)))
			return without_context(why);
	for (int t = 0; t < COUNT(kinds); t++)
		for (int i = 0; i < COUNT(all_epilogs); i++)
			sweep(&kinds[t], all_epilogs[i], seed);
	for (int i = 0; i < COUNT(contexts); i++)
		epg_context_destroy(contexts[i]);
	return done_testing();
}
