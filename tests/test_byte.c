/* SPDX-License-Identifier: Apache-2.0
 *
 * Types of 8 bits: conversions to and from e4m3, e5m2, s8 and s32 on any backend, against the oracle's lists of their numbers: every pattern to every
 * type and back; between all neighbours the middle and both sides of it, from f64, f32 and, all 65536 patterns of them, f16 and bf16; what
 * saturates; scale and amax. Products of s8, exact or wrapped. (The epilogs of all these types are test_epilogs's.) */
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"

enum { BYTES = 256, PATTERNS = 65536 };

static epg_context *context;

static const int32_t bytes[] = { EPG_E4M3, EPG_E5M2, EPG_S8 }, reals[] = { EPG_F64, EPG_F32, EPG_F16, EPG_BF16, EPG_E4M3, EPG_E5M2, EPG_S8, EPG_S32 };
enum { NBYTES = sizeof bytes / sizeof *bytes, NREALS = sizeof reals / sizeof *reals };

static int converted_scaled(int32_t from_type, const void *from, int32_t to_type, void *to, int64_t count, const float *scale, float *amax)
{
	epg_matrix f = { .type = from_type, .ld = EPG_TIGHT, .batch_stride = EPG_TIGHT }, t = f;
	size_t from_nbytes = (size_t)count * (size_t)epg_type_nbits(from_type) / 8, to_nbytes = (size_t)count * (size_t)epg_type_nbits(to_type) / 8;
	char *memory = NULL, *x, *y, *s;
	t.type = to_type;
	int good = epg_malloc(context, from_nbytes + to_nbytes + 1024, (void **)&memory) == EPG_SUCCESS;
	s = memory, x = memory + 256, y = x + (from_nbytes + 255) / 256 * 256;
	good = good && epg_upload(context, x, from, from_nbytes, NULL) == EPG_SUCCESS && (!scale || epg_upload(context, s, scale, sizeof *scale, NULL) == EPG_SUCCESS);
	good = good && epg_convert(context, count, 1, 1, &f, x, &t, y, scale ? s : NULL, amax ? s + 64 : NULL, NULL) == EPG_SUCCESS;
	good = good && epg_download(context, to, y, to_nbytes, NULL) == EPG_SUCCESS && (!amax || epg_download(context, amax, s + 64, sizeof *amax, NULL) == EPG_SUCCESS);
	good = good && epg_synchronize(context, NULL) == EPG_SUCCESS;
	if (!good)
		diag("%s", epg_last_error());
	epg_free(context, memory);
	return good;
}

static int converted(int32_t from_type, const void *from, int32_t to_type, void *to, int64_t count)
{
	return converted_scaled(from_type, from, to_type, to, count, NULL, NULL);
}

/* Wrong ones among 'count' conversions of from to got. */
static int count_wrong(int32_t from_type, const void *from, int32_t to_type, const void *got, int count)
{
	int wrong = 0;
	for (int i = 0; i < count; i++) {
		double want[1];
		oracle_num x = oracle_load(from_type, from, i), y = oracle_load(to_type, got, i), z;
		oracle_store(to_type, want, 0, x);
		z = oracle_load(to_type, want, 0);
		int right = isnan(z.re) ? isnan(y.re) : y.re == z.re && !!signbit(y.re) == !!signbit(z.re);
		if (!right && ++wrong < 4)
			diag("%s %.9Lg is %.9Lg in %s, not %.9Lg", epg_type_name(from_type), x.re, y.re, epg_type_name(to_type), z.re);
	}
	return wrong;
}

static void check_patterns(int32_t type)
{
	static unsigned char all[BYTES];
	static double got[BYTES];
	for (int i = 0; i < BYTES; i++)
		all[i] = (unsigned char)i;
	for (int r = 0; r < NREALS; r++) {
		int good = converted(type, all, reals[r], got, BYTES);
		ok(good && count_wrong(type, all, reals[r], got, BYTES) == 0, "all patterns of %s to %s", epg_type_name(type), epg_type_name(reals[r]));
		/* What holds them all gives them back. */
		if (type != EPG_S8 ? reals[r] < EPG_E4M3 : reals[r] != EPG_E4M3 && reals[r] != EPG_E5M2) {
			unsigned char back[BYTES];
			good = converted(reals[r], got, type, back, BYTES);
			int lost = 0;
			for (int i = 0; i < BYTES; i++)
				lost += back[i] != all[i] && !isnan(oracle_load(type, all, i).re) && !isinf(oracle_load(type, all, i).re);
			ok(good && lost == 0, "and back: %d of %s are lost in %s", lost, epg_type_name(type), epg_type_name(reals[r]));
		}
	}
}

static void check_wide_patterns(int32_t from_type, int32_t type)
{
	static uint16_t all[PATTERNS];
	static unsigned char got[PATTERNS];
	for (int i = 0; i < PATTERNS; i++)
		all[i] = (uint16_t)i;
	int good = converted(from_type, all, type, got, PATTERNS);
	ok(good && count_wrong(from_type, all, type, got, PATTERNS) == 0, "all patterns of %s to %s", epg_type_name(from_type), epg_type_name(type));
}

static int by_value(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;
	return (a > b) - (a < b);
}

/* The finite numbers of a type in order, and beyond both ends what would come next. */
static int sorted_numbers(int32_t type, double *list)
{
	int count = 0;
	for (int i = 0; i < BYTES; i++) {
		unsigned char x = (unsigned char)i;
		double value = (double)oracle_load(type, &x, 0).re;
		if (isfinite(value))
			list[count++] = value;
	}
	qsort(list, (size_t)count, sizeof *list, by_value);
	list[count] = 2 * list[count - 1] - list[count - 2];
	return count + 1;
}

/* Between neighbours: the middle, and a little to both sides of it. Returns how many. */
static int ties_of(int32_t type, double part, double *at)
{
	static double list[BYTES + 1];
	int count = sorted_numbers(type, list), points = 0;
	for (int i = 0; i + 1 < count; i++) {
		double middle = list[i] + (list[i + 1] - list[i]) / 2, step = (list[i + 1] - list[i]) * part;
		at[points++] = middle;
		at[points++] = middle - step;
		at[points++] = middle + step;
	}
	return points;
}

static void check_ties(int32_t type)
{
	static double at[4 * BYTES];
	static float narrow[4 * BYTES];
	static unsigned char got[4 * BYTES], from_f32[4 * BYTES];
	int points = ties_of(type, 1e-12, at);
	for (int i = 0; i < points; i++)
		narrow[i] = (float)at[i];
	ok(converted(EPG_F64, at, type, got, points) && count_wrong(EPG_F64, at, type, got, points) == 0, "%s: %d f64 between neighbours", epg_type_name(type), points);
	ok(converted(EPG_F32, narrow, type, from_f32, points) && count_wrong(EPG_F32, narrow, type, from_f32, points) == 0, "%s: and f32", epg_type_name(type));
}

static void check_ends(int32_t type, double low, double high)
{
	const double at[] = { high, high * 1.001 + 1, 1e30, 1e300, INFINITY, -INFINITY, -1e300, low, low * 1.001 - 1, 0, -0.0, 1e-300, NAN };
	enum { COUNT = sizeof at / sizeof *at };
	double got[COUNT];
	int good = converted(EPG_F64, at, type, got, COUNT);
	ok(good && count_wrong(EPG_F64, at, type, got, COUNT) == 0, "%s at its ends", epg_type_name(type));
	ok(good && oracle_load(type, got, 4).re == high && oracle_load(type, got, 5).re == low, "%s: infinities are %g and %g", epg_type_name(type), high, low);
}

static void check_s32(void)
{
	const double at[] = { 0.5, 1.5, 2.5, -0.5, -1.5, 2147483647, 2147483647.5, 2147483648.0, -2147483648.0, -2147483649.0, 16777217, -123456789 };
	enum { COUNT = sizeof at / sizeof *at };
	int32_t got[COUNT];
	double back[COUNT];
	ok(converted(EPG_F64, at, EPG_S32, got, COUNT) && count_wrong(EPG_F64, at, EPG_S32, got, COUNT) == 0, "f64 to s32");
	ok(got[0] == 0 && got[1] == 2 && got[2] == 2 && got[7] == INT32_MAX && got[10] == 16777217, "ties to even, saturated, exact beyond f32");
	ok(converted(EPG_S32, got, EPG_F64, back, COUNT) && count_wrong(EPG_S32, got, EPG_F64, back, COUNT) == 0, "s32 to f64");
}

static void check_scale(void)
{
	const float at[] = { 1, -3, 0.25f, 1000, -0.01f }, scale = 0.5f;
	unsigned char got[5];
	float amax = -1, want[5];
	for (int i = 0; i < 5; i++)
		want[i] = at[i] * scale;
	ok(converted_scaled(EPG_F32, at, EPG_E4M3, got, 5, &scale, &amax) && count_wrong(EPG_F32, want, EPG_E4M3, got, 5) == 0, "scaled before it is rounded");
	ok(amax == 500, "amax is of what was not saturated yet: %g", (double)amax);
}

/* ---- Products ---- */

/* Every way of the planner; on a device that has none, nothing. */
static int pins_of(problem *p, char pins[MAX_PINS][PIN_NBYTES])
{
	epg_plan *plan = NULL;
	if (context_is_device(context) && epg_plan_create(context, &p->desc, NULL, &plan) == EPG_UNSUPPORTED)
		return 0;
	epg_plan_destroy(plan);
	return problem_pins(context, p, pins);
}

/* A column of all patterns times 1 is what they are in f32, NaN too: as a product widens them. */
static void check_widened(int32_t type)
{
	epg_matmul_desc desc = make_desc(type, BYTES, 1, 1, EPG_COL, EPG_EPILOG_DEFAULT);
	problem p;
	char pins[MAX_PINS][PIN_NBYTES];
	desc.c.type = desc.d.type = EPG_F32;
	if (!ok(problem_open(&p, &desc, NULL), "memory"))
		return;
	for (int i = 0; i < BYTES; i++)
		((unsigned char *)problem_before(&p, EPG_OPERAND_A))[i] = (unsigned char)i;
	oracle_store(type, problem_before(&p, EPG_OPERAND_B), 0, (oracle_num){ 1, 0 });
	int count = pins_of(&p, pins);
	for (int pin = 0; pin < count; pin++) {
		int good = problem_execute(context, &p, pins[pin]) == EPG_SUCCESS, wrong = 0;
		for (int i = 0; i < BYTES; i++) {
			double want = (double)oracle_load(type, problem_before(&p, EPG_OPERAND_A), i).re, got = ((const float *)problem_after(&p, EPG_OPERAND_D))[i];
			wrong += isnan(want) ? !isnan(got) : got != want;
		}
		ok(good && wrong == 0, "%s: %d patterns of %s are wrong in a product", pins[pin], wrong, epg_type_name(type));
	}
	problem_close(&p);
}

/* k = 0 with a C of f32: D is C, rounded once. */
static void check_narrowed(int32_t type)
{
	static double at[4 * BYTES];
	int points = ties_of(type, 1e-5, at);
	at[points++] = INFINITY, at[points++] = -INFINITY, at[points++] = NAN, at[points++] = 1e30, at[points++] = -1e-30;
	epg_matmul_desc desc = make_desc(type, points, 1, 0, EPG_COL, EPG_EPILOG_DEFAULT);
	problem p;
	char pins[MAX_PINS][PIN_NBYTES];
	desc.c.type = EPG_F32;
	desc.beta[0] = 1;
	if (!ok(problem_open(&p, &desc, NULL), "memory"))
		return;
	float *c = problem_before(&p, EPG_OPERAND_C);
	for (int i = 0; i < points; i++)
		c[i] = (float)at[i];
	int count = pins_of(&p, pins);
	for (int pin = 0; pin < count; pin++) {
		int good = problem_execute(context, &p, pins[pin]) == EPG_SUCCESS, wrong = 0;
		for (int i = 0; i < points; i++) { /* a zero may have either sign */
			oracle_real want = oracle_round(type, (oracle_num){ c[i], 0 }).re, got = oracle_load(type, problem_after(&p, EPG_OPERAND_D), i).re;
			wrong += isnan(want) ? !isnan(got) : got != want;
		}
		ok(good && wrong == 0, "%s: %d of %d floats are rounded wrongly to a D of %s", pins[pin], wrong, points, epg_type_name(type));
	}
	problem_close(&p);
}

/* All of A and B the same, so every D is k times the product, and wraps as s32 does. */
static void check_integer_products(int a, int b, int64_t k)
{
	epg_matmul_desc desc = make_desc(EPG_S8, 3, 2, k, EPG_COL, EPG_EPILOG_DEFAULT);
	problem p;
	char pins[MAX_PINS][PIN_NBYTES];
	desc.c.type = desc.d.type = EPG_S32;
	if (!ok(problem_open(&p, &desc, NULL), "memory"))
		return;
	memset(problem_before(&p, EPG_OPERAND_A), a, (size_t)(3 * k));
	memset(problem_before(&p, EPG_OPERAND_B), b, (size_t)(2 * k));
	int32_t want = (int32_t)(uint32_t)((int64_t)a * b * k);
	int count = pins_of(&p, pins);
	for (int pin = 0; pin < count; pin++) {
		int wrong = problem_execute(context, &p, pins[pin]) != EPG_SUCCESS;
		for (int i = 0; i < 6 && !wrong; i++)
			wrong = ((const int32_t *)problem_after(&p, EPG_OPERAND_D))[i] != want;
		ok(!wrong, "%s: %lld products of %d and %d are %d", pins[pin], (long long)k, a, b, want);
	}
	problem_close(&p);
}

int main(void)
{
	const char *why = "";
	context = test_context(0, &why);
	if (!context)
		return without_context(why);
	for (int i = 0; i < NBYTES; i++) {
		check_patterns(bytes[i]);
		check_wide_patterns(EPG_F16, bytes[i]);
		check_wide_patterns(EPG_BF16, bytes[i]);
		check_ties(bytes[i]);
		check_widened(bytes[i]);
		check_narrowed(bytes[i]);
	}
	check_ends(EPG_E4M3, -448, 448);
	check_ends(EPG_E5M2, -57344, 57344);
	check_ends(EPG_S8, -128, 127);
	check_ends(EPG_S32, INT32_MIN, INT32_MAX);
	check_s32();
	check_scale();
	check_integer_products(-128, -128, 131071);
	check_integer_products(-128, -128, 200000);
	check_integer_products(127, -128, 4099);
	check_integer_products(127, 127, 1025);
	epg_context_destroy(context);
	return done_testing();
}
