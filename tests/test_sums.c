/* SPDX-License-Identifier: Apache-2.0
 *
 * Long sums and their bits. A bias gradient over 100003 terms is accurate to 1e-6 in f32 (a running f32 sum is not); its
 * bits, for the same D, do not depend on the number of threads; with EPG_DETERMINISTIC neither do those of D, and all
 * outputs are the same from run to run. */
#include <stdlib.h>

#include "values.h"

enum { LONG = 100003 };

static const int thread_counts[] = { 1, 2, 3, 7 };
static epg_context *contexts[COUNT(thread_counts)];
static const int32_t summing[] = { EPG_EPILOG_DRELU_BGRAD, EPG_EPILOG_DGELU_BGRAD, EPG_EPILOG_BGRADA, EPG_EPILOG_BGRADB };

/* ---- Accuracy ---- */

/* A problem whose gradient has three sums of LONG terms each, along a row, a column, or k. */
static epg_matmul_desc long_desc(int32_t type, int32_t epilog, int variant)
{
	int across = epilog == EPG_EPILOG_BGRADA || epilog == EPG_EPILOG_BGRADB, tall = variant & 1;
	epg_matmul_desc desc = across ? make_desc(type, 3, 3, LONG, variant >> 1, epilog)
		: make_desc(type, tall ? LONG : 3, tall ? 3 : LONG, 1, variant >> 1, epilog);
	desc.axis = tall ? EPG_PER_COLUMN : EPG_PER_ROW;
	desc.a.op = desc.b.op = across && tall ? EPG_OP_T : EPG_OP_N;
	return desc;
}

/* value: what D (or A, B) consists of; 0: random and positive. aux lets everything pass (gelu' at 20 is 1). */
static void fill_long(problem *p, double value)
{
	uint64_t state = 4;
	int across = (p->desc.epilog & EPG_GRAD) == 0;
	for (int which = EPG_OPERAND_A; which <= EPG_OPERAND_B; which++) {
		const oracle_layout *o = &p->x[which].layout;
		int is_long = o->rows * o->cols > 100;
		for (int64_t e = 0; e < o->rows * o->cols; e++) {
			double x = value > 0 ? value : (random_real(&state) + 1) / 2;
			oracle_store(o->type, problem_before(p, which), e, (oracle_num){ is_long || across ? x : 1, 0 });
		}
	}
	put_all(p, EPG_OPERAND_AUX, 20);
}

/* The largest relative error of the sums against those of the D (or A, B) in memory. */
static double error_of_sums(problem *p)
{
	const oracle_layout *o = &p->x[EPG_OPERAND_BGRAD].layout;
	double worst = 0;
	for (int64_t i = 0; i < o->rows; i++) {
		oracle_real got = oracle_load(o->type, problem_after(p, EPG_OPERAND_BGRAD), i).re, want = p->want.sums[i].re;
		double error = (double)fabsl((got - want) / want);
		worst = error <= worst ? worst : error;
	}
	return worst;
}

static int long_sums(int32_t type, int32_t epilog, double value, double *worst)
{
	double limit = type == EPG_F32 ? 1e-6 : 1e-13;
	int good = 1;
	*worst = 0;
	for (int variant = 0; variant < 4; variant++) {
		problem p;
		epg_matmul_desc desc = long_desc(type, epilog, variant);
		good &= problem_open(&p, &desc, &(check_options){ .data = DATA_REALS });
		fill_long(&p, value);
		problem_solve(&p);
		good &= problem_run(contexts[variant % 2], &p, NULL);
		double error = error_of_sums(&p);
		*worst = error > *worst ? error : *worst;
		good &= error <= limit;
		problem_close(&p);
	}
	return good;
}

static void test_accuracy(void)
{
	double worst;
	for (int i = 0; i < COUNT(summing); i++) {
		const char *name = epg_epilog_name(summing[i]);
		int good = long_sums(EPG_F32, summing[i], 0.001, &worst);
		ok(good, "N10: f32 %s of 100003 times 0.001: relative error %.2g", name, worst);
		good = long_sums(EPG_F32, summing[i], 0, &worst);
		ok(good, "N10: f32 %s of 100003 random numbers: relative error %.2g", name, worst);
		good = long_sums(EPG_F64, summing[i], 0, &worst);
		ok(good, "f64 %s of 100003 random numbers: relative error %.2g", name, worst);
	}
}

/* ---- Bits ---- */

/* The outputs of the first run. */
typedef struct {
	int which;
	unsigned char *bytes;
} kept;

/* Compares one output with the first run's, which it keeps. */
static int same_bits(problem *p, int number, kept *first)
{
	size_t nbytes = (size_t)p->x[first->which].layout.nbytes;
	if (!first->bytes && (first->bytes = malloc(nbytes + 1)))
		memcpy(first->bytes, problem_after(p, first->which), nbytes);
	int good = first->bytes && memcmp(first->bytes, problem_after(p, first->which), nbytes) == 0;
	if (!good)
		problem_complain(p, "operand %d has other bits with %d threads", first->which, thread_counts[number]);
	return good;
}

/* Every thread count, then the first again; with_d: D's bits count as well as those of the gradient. */
static int bits_hold(epg_matmul_desc desc, int with_d)
{
	kept d = { EPG_OPERAND_D, NULL }, bgrad = { EPG_OPERAND_BGRAD, NULL };
	problem p;
	int good = problem_open(&p, &desc, &(check_options){ .data = DATA_REALS, .seed = 8 });
	for (int run = 0; run <= COUNT(thread_counts) && good; run++) {
		int number = run % COUNT(thread_counts);
		if (problem_execute(contexts[number], &p, NULL) != EPG_SUCCESS) {
			problem_complain(&p, "%s", epg_last_error());
			good = 0;
		}
		good = good && (!with_d || same_bits(&p, number, &d)) && same_bits(&p, number, &bgrad);
	}
	problem_close(&p);
	free(d.bytes);
	free(bgrad.bytes);
	return good;
}

/* Where k = 1 every way to multiply gives the same D, so the sums of D must have the same bits without any flag. */
static void test_bits_of_sums(void)
{
	static const int64_t shapes[][2] = { { 5, 3000 }, { 3000, 5 }, { 301, 230 }, { 230, 301 } };
	for (int i = 0; i < COUNT(summing); i++) {
		int good = 1;
		for (int s = 0; s < COUNT(shapes); s++)
			for (int bits = 0; bits < 4; bits++) {
				int64_t m = shapes[s][0], n = shapes[s][1];
				int across = (summing[i] & EPG_GRAD) == 0;
				epg_matmul_desc desc = across ? make_desc(EPG_F32, m, 6, n, bits & 1, summing[i]) : make_desc(EPG_F32, m, n, 1, bits & 1, summing[i]);
				if (summing[i] == EPG_EPILOG_BGRADB)
					desc = make_desc(EPG_F32, 6, n, m, bits & 1, summing[i]);
				desc.axis = bits >> 1;
				good &= bits_hold(desc, 0);
			}
		ok(good, "%s: the same bits for 1, 2, 3 and 7 threads", epg_epilog_name(summing[i]));
	}
}

static void test_deterministic(void)
{
	static const int64_t shapes[][3] = { { 300, 200, 150 }, { 7, 1000, 333 }, { 1000, 7, 333 }, { 1, 500, 700 }, { 500, 1, 700 }, { 33, 35, 4000 } };
	static const int32_t types[] = { EPG_F32, EPG_F64, EPG_C64 };
	for (int t = 0; t < COUNT(types); t++)
		for (int s = 0; s < COUNT(shapes); s++) {
			int real = types[t] != EPG_C64;
			epg_matmul_desc desc = make_desc(types[t], shapes[s][0], shapes[s][1], shapes[s][2], s & 1, real ? EPG_EPILOG_DGELU_BGRAD : EPG_EPILOG_BIAS);
			desc.flags = EPG_DETERMINISTIC;
			desc.a.op = s % 3 == 0 ? EPG_OP_T : EPG_OP_N;
			ok(bits_hold(desc, 1), "DETERMINISTIC %s %dx%dx%d: the same bits for 1, 2, 3 and 7 threads", epg_type_name(types[t]), (int)shapes[s][0],
				(int)shapes[s][1], (int)shapes[s][2]);
		}
}

int main(void)
{
	const char *why = "";
	for (int i = 0; i < COUNT(thread_counts); i++)
		if (!(contexts[i] = test_context(thread_counts[i], &why)))
			return without_context(why);
	test_accuracy();
	test_bits_of_sums();
	test_deterministic();
	for (int i = 0; i < COUNT(thread_counts); i++)
		epg_context_destroy(contexts[i]);
	return done_testing();
}
