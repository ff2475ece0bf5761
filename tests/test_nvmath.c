/* SPDX-License-Identifier: Apache-2.0
 *
 * The sizes and modes of the matmul test suite of nvmath-python, the library whose abilities ours must have: forward
 * epilogs, gradients fed by a real forward pass, plain products, random problems. Also where nvmath refuses (k = 1). */
#include <string.h>

#include "support.h"
#include "tap.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static epg_context *context;
static const int32_t real_types[] = { EPG_F32, EPG_F64 };

typedef struct {
	int64_t m, k, n;
} size3;

/* Batch of A and of B, 0 for none: the product has the larger one, and the other operand is shared. */
typedef struct {
	int64_t a, b;
} batch_pair;

static void set_batch(epg_matmul_desc *desc, batch_pair pair)
{
	desc->batch = pair.a > pair.b ? pair.a : pair.b;
	if (desc->batch == 0)
		desc->batch = 1;
	if (pair.a < desc->batch)
		desc->a.batch_stride = 0;
	if (pair.b < desc->batch)
		desc->b.batch_stride = 0;
}

/* Sizes in turn, each also with m and n exchanged. */
static size3 size_number(const size3 *sizes, int i)
{
	size3 s = sizes[i / 2];
	if (i % 2)
		s = (size3){ s.n, s.k, s.m };
	return s;
}

/* ---- Forward ---- */

static int forward_problem(int32_t type, int32_t epilog, size3 s, batch_pair pair, int variant)
{
	epg_matmul_desc desc = make_desc(type, s.m, s.n, s.k, variant & 1 ? EPG_ROW : EPG_COL, epilog);
	set_batch(&desc, pair);
	if (variant & 2)
		desc.bias.batch_stride = 0;
	desc.axis = variant >> 2 & 1;
	desc.a.op = variant & 1 ? EPG_OP_T : EPG_OP_N;
	return check_problem(context, &desc, &(check_options){ .data = variant & 2 ? DATA_REALS : DATA_INTEGERS, .seed = (uint64_t)variant + 1 });
}

static void test_forward(int32_t epilog)
{
	static const size3 sizes[] = { { 40, 60, 50 }, { 1, 1, 1 }, { 8, 32, 16 }, { 65, 21, 43 }, { 1, 3, 2 }, { 3, 1, 2 }, { 2, 3, 1 } };
	static const batch_pair batches[] = { { 0, 3 }, { 5, 0 }, { 4, 4 }, { 0, 0 }, { 1, 1 } };
	int wrong = 0, count = 0;
	for (int t = 0; t < COUNT(real_types); t++)
		for (int i = 0; i < 2 * COUNT(sizes); i++)
			for (int b = 0; b < COUNT(batches); b++, count += 2) {
				int variant = count * 5 % 8;
				wrong += !forward_problem(real_types[t], epilog, size_number(sizes, i), batches[b], variant);
				wrong += !forward_problem(real_types[t], epilog, size_number(sizes, i), batches[b], variant ^ 7);
			}
	ok(wrong == 0, "forward %s: %d problems", epg_epilog_name(epilog), count);
}

/* ---- Gradients ---- */

/* Runs the forward problem and gives its aux, as the library wrote it, to the gradient problem. */
static int feed_aux(const epg_matmul_desc *forward, const check_options *options, problem *gradient)
{
	problem p;
	int good = problem_open(&p, forward, options);
	problem_solve(&p);
	good = good && problem_run(context, &p, NULL);
	const operand *from = &p.x[EPG_OPERAND_AUX], *to = &gradient->x[EPG_OPERAND_AUX];
	if (good && from->layout.nbytes == to->layout.nbytes)
		memcpy(problem_before(gradient, EPG_OPERAND_AUX), problem_after(&p, EPG_OPERAND_AUX), (size_t)to->layout.nbytes);
	good &= from->layout.nbytes == to->layout.nbytes;
	problem_close(&p);
	return good;
}

static int chain(const epg_matmul_desc *forward, const epg_matmul_desc *gradient, const check_options *options)
{
	problem p;
	int good = problem_open(&p, gradient, options) && feed_aux(forward, options, &p);
	problem_solve(&p);
	good = good && problem_run(context, &p, NULL);
	problem_close(&p);
	return good;
}

static int gradient_problem(int32_t type, int32_t epilog, size3 s, batch_pair pair, int variant)
{
	int gelu = (epilog & EPG_ACT_MASK) == EPG_ACT_GELU, order = variant & 1 ? EPG_ROW : EPG_COL;
	epg_matmul_desc forward = make_desc(type, s.m, s.n, s.k, order, gelu ? EPG_EPILOG_GELU_AUX_BIAS : EPG_EPILOG_RELU_AUX_BIAS);
	epg_matmul_desc gradient = make_desc(type, s.m, s.n, s.k, order, epilog);
	set_batch(&forward, pair);
	set_batch(&gradient, pair);
	gradient.axis = forward.axis = variant >> 1 & 1;
	gradient.b.op = variant >> 2 & 1 ? EPG_OP_T : EPG_OP_N;
	return chain(&forward, &gradient, &(check_options){ .data = variant & 1 ? DATA_REALS : DATA_INTEGERS, .seed = (uint64_t)variant + 50 });
}

static void test_gradient(int32_t epilog)
{
	static const size3 sizes[] = { { 41, 29, 33 }, { 2, 2, 2 }, { 64, 16, 32 }, { 65, 21, 43 }, { 4, 2, 1 }, { 1, 1, 1 }, { 9, 1, 2 }, { 1, 3, 2 } };
	static const batch_pair batches[] = { { 0, 2 }, { 2, 0 }, { 5, 5 }, { 0, 0 }, { 1, 1 } };
	int wrong = 0, count = 0;
	for (int t = 0; t < COUNT(real_types); t++)
		for (int i = 0; i < 2 * COUNT(sizes); i++)
			for (int b = 0; b < COUNT(batches); b++, count += 2) {
				int variant = count * 3 % 8;
				wrong += !gradient_problem(real_types[t], epilog, size_number(sizes, i), batches[b], variant);
				wrong += !gradient_problem(real_types[t], epilog, size_number(sizes, i), batches[b], variant ^ 7);
			}
	ok(wrong == 0, "gradient %s after its forward pass: %d problems", epg_epilog_name(epilog), count);
}

/* ---- Plain ---- */

/* A slice of a larger array: some lines longer than the matrix needs. */
static void slice(uint64_t *state, epg_matmul_desc *desc, int which, epg_matrix *x)
{
	oracle_layout o;
	oracle_get_layout(desc, which, &o);
	if (random_below(state, 2))
		x->ld = o.ld + random_below(state, 40);
}

static int plain_problem(uint64_t *state, int32_t type)
{
	static const int64_t sizes[] = { 1, 8, 64, 100, 200, 300 };
	static const batch_pair batches[] = { { 0, 0 }, { 0, 0 }, { 0, 2 }, { 2, 0 }, { 2, 2 } };
	int is_complex = oracle_type_is_complex(type);
	int64_t m = sizes[random_below(state, 6)], n = sizes[random_below(state, 6)], k = sizes[random_below(state, is_complex ? 5 : 6)];
	epg_matmul_desc desc = make_desc(type, m, n, k, EPG_COL, EPG_EPILOG_DEFAULT);
	desc.a.order = random_below(state, 2);
	desc.b.order = random_below(state, 2);
	desc.c.order = random_below(state, 2);
	desc.d.order = random_below(state, 2);
	desc.a.op = random_below(state, 4);
	desc.b.op = random_below(state, 4);
	desc.beta[0] = random_below(state, 3) - 1;
	if (m * n * k < 1000000)
		set_batch(&desc, batches[random_below(state, COUNT(batches))]);
	slice(state, &desc, EPG_OPERAND_A, &desc.a);
	slice(state, &desc, EPG_OPERAND_B, &desc.b);
	slice(state, &desc, EPG_OPERAND_C, &desc.c);
	slice(state, &desc, EPG_OPERAND_D, &desc.d);
	return check_problem(context, &desc, &(check_options){ .data = random_below(state, 2), .seed = next_random(state) % 1000 });
}

static void test_plain(int32_t type)
{
	uint64_t state = (uint64_t)type;
	int wrong = 0, count = oracle_type_is_complex(type) ? 40 : 80;
	for (int i = 0; i < count; i++)
		wrong += !plain_problem(&state, type);
	ok(wrong == 0, "plain %s: %d problems", epg_type_name(type), count);
}

/* ---- Random ---- */

static int64_t random_extent(uint64_t *state) { return random_below(state, 5) ? 1 + random_below(state, 256) : 1; }

static epg_matmul_desc random_desc(uint64_t *state, int32_t type, int64_t m, int64_t n, int32_t epilog)
{
	epg_matmul_desc desc = make_desc(type, m, n, random_extent(state), EPG_COL, epilog);
	desc.a.op = random_below(state, 2);
	desc.b.op = random_below(state, 2);
	desc.alpha[0] = 5 * random_real(state);
	desc.beta[0] = random_below(state, 2) ? 5 * random_real(state) : 0;
	if (random_below(state, 2)) /* C of m×1 */
		desc.c.ld = 0;
	return desc;
}

static void test_random(void)
{
	static const int32_t pairs[][2] = { { EPG_EPILOG_RELU_AUX, EPG_EPILOG_DRELU }, { EPG_EPILOG_RELU_AUX_BIAS, EPG_EPILOG_DRELU },
		{ EPG_EPILOG_RELU_AUX, EPG_EPILOG_DRELU_BGRAD }, { EPG_EPILOG_RELU_AUX_BIAS, EPG_EPILOG_DRELU_BGRAD },
		{ EPG_EPILOG_GELU_AUX, EPG_EPILOG_DGELU }, { EPG_EPILOG_GELU_AUX_BIAS, EPG_EPILOG_DGELU },
		{ EPG_EPILOG_GELU_AUX, EPG_EPILOG_DGELU_BGRAD }, { EPG_EPILOG_GELU_AUX_BIAS, EPG_EPILOG_DGELU_BGRAD } };
	static const int32_t alone[] = { EPG_EPILOG_BGRADA, EPG_EPILOG_BGRADB, EPG_EPILOG_RELU, EPG_EPILOG_GELU, EPG_EPILOG_BIAS,
		EPG_EPILOG_RELU_BIAS, EPG_EPILOG_GELU_BIAS };
	uint64_t state = 20;
	int wrong = 0, count = 0;
	for (int round = 0; round < 4; round++)
		for (int i = 0; i < COUNT(pairs) + COUNT(alone); i++, count++) {
			int32_t type = real_types[random_below(&state, 2)];
			int64_t m = random_extent(&state), n = random_extent(&state);
			check_options options = { .data = DATA_REALS, .seed = next_random(&state) % 1000 };
			epg_matmul_desc first = random_desc(&state, type, m, n, i < COUNT(pairs) ? pairs[i][0] : alone[i - COUNT(pairs)]);
			epg_matmul_desc second = random_desc(&state, type, m, n, i < COUNT(pairs) ? pairs[i][1] : EPG_EPILOG_DEFAULT);
			wrong += i < COUNT(pairs) ? !chain(&first, &second, &options) : !check_problem(context, &first, &options);
		}
	ok(wrong == 0, "random sizes and pairs of epilogs: %d problems", count);
}

int main(void)
{
	static const int32_t types[] = { EPG_F32, EPG_F64, EPG_C64, EPG_C128 };
	const char *why = "";
	context = test_context(0, &why);
	if (!context)
		return without_context(why);
	for (int i = 0; i < COUNT(all_epilogs); i++)
		if (all_epilogs[i] & EPG_GRAD)
			test_gradient(all_epilogs[i]);
		else
			test_forward(all_epilogs[i]);
	for (int t = 0; t < COUNT(types); t++)
		test_plain(types[t]);
	test_random();
	epg_context_destroy(context);
	return done_testing();
}
