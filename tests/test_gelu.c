/* SPDX-License-Identifier: Apache-2.0
 *
 * GELU and its derivative, element by element, through k = 0 problems (z is C): within 64 ulp of the exact tanh form on
 * [-5,5], no loss of relative accuracy for negative z, where 1 + tanh cancels, and the limits at infinity. Beyond 5 the
 * bound grows with z³, as the rounding of the exponent does. Values of case N06, and the derivative against differences. */
#include <float.h>
#include <stdlib.h>

#include "values.h"

enum { LINE = 1009, LINES = 61, C = EPG_OPERAND_C, D = EPG_OPERAND_D, AUX = EPG_OPERAND_AUX };

static epg_context *context;
static const int32_t real_types[] = { EPG_F32, EPG_F64 };
static const double inf = INFINITY;

/* Distance in units of the last place of the type at scale. Where the sigmoid in z·sigmoid is below the smallest normal
 * number, it may be flushed to 0. */
static double ulps(int32_t type, oracle_real z, oracle_real got, oracle_real want, oracle_real scale)
{
	oracle_real lowest = type == EPG_F32 ? FLT_MIN : DBL_MIN, flushed = lowest * (1 + fabsl(z));
	int digits = type == EPG_F32 ? FLT_MANT_DIG : DBL_MANT_DIG, exponent;
	if (isnan(got) || isinf(got))
		return inf;
	if (scale < flushed && fabsl(got - want) <= flushed)
		return 0;
	frexpl(scale, &exponent);
	return (double)(fabsl(got - want) / ldexpl(1, exponent - digits));
}

/* The size that the derivative's error is measured against: it is a sum whose terms cancel near -0.75. */
static oracle_real derivative_scale(oracle_real z)
{
	oracle_real s = z > -40 ? oracle_gelu(z) / z : 0;
	return z == 0 ? 0.5L : fabsl(s) + fabsl(oracle_dgelu(z) - s);
}

/* m×n values z, forward or (with C = 1) backward, somewhere in memory so that the passes meet every alignment. */
static int run_values(int32_t type, int backward, int64_t m, int64_t n, int offset, const double *z, double *out)
{
	problem p;
	epg_matmul_desc desc = make_desc(type, m, n, 0, EPG_COL, backward ? EPG_EPILOG_DGELU : EPG_EPILOG_GELU);
	desc.beta[0] = 1;
	desc.c.ld = desc.d.ld = m + offset;
	int good = problem_open(&p, &desc, &(check_options){ .data = DATA_REALS, .offset = offset });
	put_all(&p, C, 1);
	for (int64_t e = 0; e < m * n; e++)
		oracle_store(type, problem_before(&p, backward ? AUX : C), oracle_index(&p.x[backward ? AUX : C].layout, 0, e % m, e / m), (oracle_num){ z[e], 0 });
	good = good && problem_execute(context, &p, NULL) == EPG_SUCCESS;
	for (int64_t e = 0; e < m * n; e++)
		out[e] = (double)oracle_load(type, problem_after(&p, D), oracle_index(&p.x[D].layout, 0, e % m, e / m)).re;
	problem_close(&p);
	return good;
}

static double worst_ulps(int32_t type, int backward, int count, const double *z, const double *got, double *at, double limit5)
{
	double worst = 0, ratio = 0;
	for (int i = 0; i < count; i++) {
		oracle_real want = backward ? oracle_dgelu(z[i]) : oracle_gelu(z[i]);
		double u = ulps(type, z[i], got[i], want, backward ? derivative_scale(z[i]) : fabsl(want));
		double r = fabs(z[i]) / 5, limit = limit5 * (r > 1 ? r * r * r : 1);
		if (!(u / limit <= ratio)) {
			ratio = u / limit;
			worst = u;
			*at = z[i];
		}
	}
	return ratio <= 1 ? worst : inf;
}

/* Values of the type from low to high: half of them a grid, half random. */
static void draw_range(int32_t type, double low, double high, double *z)
{
	uint64_t state = 3;
	for (int i = 0; i < LINE * LINES; i++) {
		double t = i % 2 ? (double)i / (LINE * LINES) : (random_real(&state) + 1) / 2;
		z[i] = low + (high - low) * t;
		if (type == EPG_F32)
			z[i] = (float)z[i];
	}
}

static void test_range(int32_t type, int backward, double low, double high)
{
	double *z = malloc(LINE * LINES * sizeof *z), *out = malloc(LINE * LINES * sizeof *out), at = 0;
	draw_range(type, low, high, z);
	int good = run_values(type, backward, LINE, LINES, 3, z, out);
	double worst = worst_ulps(type, backward, LINE * LINES, z, out, &at, 64);
	ok(good && worst < inf, "%s %s on [%g,%g]: worst %.3g ulp", epg_type_name(type), backward ? "DGELU" : "GELU", low, high, worst);
	if (worst == inf)
		diag("at z = %.17g", at);
	free(z);
	free(out);
}

/* Every length from 1 to 70, so that vector bodies and tails are both met. */
static void test_lengths(int32_t type, int backward)
{
	double z[70 * 3], out[70 * 3], at = 0, worst = 0;
	int good = 1;
	for (int m = 1; m <= 70; m++) {
		for (int i = 0; i < 3 * m; i++)
			z[i] = (float)((i * 37 % 101) / 10.0 - 5);
		good &= run_values(type, backward, m, 3, m % 4, z, out);
		double u = worst_ulps(type, backward, 3 * m, z, out, &at, 64);
		worst = u > worst ? u : worst;
	}
	ok(good && worst < inf, "%s %s: lengths 1 to 70: worst %.3g ulp", epg_type_name(type), backward ? "DGELU" : "GELU", worst);
	if (worst == inf)
		diag("at z = %.17g", at);
}

static int is_value(double got, double want) { return isnan(want) ? isnan(got) : got == want; }

static void test_special(int32_t type, int backward)
{
	double large = type == EPG_F32 ? FLT_MAX : DBL_MAX, small = type == EPG_F32 ? 0x1p-100 : 0x1p-900, huge = type == EPG_F32 ? 1e20f : 1e200;
	const double z[] = { inf, -inf, NAN, 0.0, -0.0, large, -large, huge, -huge, 100, -100, small, -small };
	const double forward[] = { inf, 0, NAN, 0, 0, large, 0, huge, 0, 100, 0, small / 2, -small / 2 };
	const double derivative[] = { 1, 0, NAN, 0.5, 0.5, 1, 0, 1, 0, 1, 0, 0.5, 0.5 };
	double out[COUNT(z) * 4], in[COUNT(z) * 4];
	for (int i = 0; i < 4 * COUNT(z); i++)
		in[i] = z[i % COUNT(z)];
	int good = run_values(type, backward, COUNT(z), 4, 0, in, out);
	for (int i = 0; i < 4 * COUNT(z); i++) {
		double want = backward ? derivative[i % COUNT(z)] : forward[i % COUNT(z)];
		if (!is_value(out[i], want)) {
			diag("%s(%g) is %.17g, not %.17g", backward ? "gelu'" : "gelu", in[i], out[i], want);
			good = 0;
		}
	}
	ok(good, "%s %s of infinities, NaN, zeros, huge and tiny numbers", epg_type_name(type), backward ? "DGELU" : "GELU");
}

/* ---- Case N06: the tanh form, as 1x1x1 problems ---- */

static double scalar_problem(int32_t type, int32_t epilog, double z)
{
	problem p;
	epg_matmul_desc desc = make_desc(type, 1, 1, 1, EPG_COL, epilog);
	int backward = oracle_is_gradient(&desc);
	problem_open(&p, &desc, NULL);
	put(&p, EPG_OPERAND_A, V(backward ? 1 : z));
	put(&p, EPG_OPERAND_B, V(1));
	if (backward)
		put(&p, AUX, V(z));
	problem_solve(&p);
	double d = problem_run(context, &p, NULL) ? (double)oracle_load(type, problem_after(&p, D), 0).re : NAN;
	problem_close(&p);
	return d;
}

static void test_tanh_form(int32_t type)
{
	static const double values[][2] = { { -3, -0.003637392082 }, { -1, -0.1588080094 }, { 1, 0.8411919906 }, { 3, 2.996362608 } };
	static const double slopes[][2] = { { -1, -0.08296408385 }, { 2, 1.086099257 } };
	for (int i = 0; i < COUNT(values); i++) {
		double got = scalar_problem(type, EPG_EPILOG_GELU, values[i][0]), limit = type == EPG_F32 ? 1e-6 : 5.1e-10 * fabs(values[i][1]);
		ok(fabs(got - values[i][1]) <= limit, "N06: %s gelu(%g) is %.12g", epg_type_name(type), values[i][0], got);
	}
	for (int i = 0; i < COUNT(slopes); i++) {
		double got = scalar_problem(type, EPG_EPILOG_DGELU, slopes[i][0]), limit = type == EPG_F32 ? 1e-6 : 5.1e-10;
		ok(fabs(got - slopes[i][1]) <= limit, "N06: %s gelu'(%g) is %.12g", epg_type_name(type), slopes[i][0], got);
	}
}

static void test_difference(void)
{
	double worst = 0, h = 1e-5;
	for (int i = -40; i <= 40; i++) {
		double z = i / 8.0 + 0.01, slope = scalar_problem(EPG_F64, EPG_EPILOG_DGELU, z);
		double difference = (scalar_problem(EPG_F64, EPG_EPILOG_GELU, z + h) - scalar_problem(EPG_F64, EPG_EPILOG_GELU, z - h)) / (2 * h);
		double error = fabs(slope - difference);
		worst = error <= worst ? worst : error;
	}
	ok(worst < 1e-9, "N06: DGELU is the derivative of our own GELU: largest difference %.2g", worst);
}

int main(void)
{
	const char *why = "";
	context = test_context(0, &why);
	if (!context)
		return without_context(why);
	for (int t = 0; t < COUNT(real_types); t++)
		for (int backward = 0; backward < 2; backward++) {
			test_range(real_types[t], backward, -5, 5);
			test_range(real_types[t], backward, -30, 30);
			test_range(real_types[t], backward, -12, -5);
			test_range(real_types[t], backward, -0.001, 0.001);
			test_lengths(real_types[t], backward);
			test_special(real_types[t], backward);
		}
	for (int t = 0; t < COUNT(real_types); t++)
		test_tanh_form(real_types[t]);
	test_difference();
	epg_context_destroy(context);
	return done_testing();
}
