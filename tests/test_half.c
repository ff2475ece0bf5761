/* SPDX-License-Identifier: Apache-2.0
 *
 * Types of 16 bits on any backend: every bit pattern converted both ways and the ties between neighbours, against the oracle's own
 * formats; then sums that a 16-bit accumulator would lose, and what tf32 may round. */
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"

enum { PATTERNS = 65536 };

static epg_context *context;

static const struct { int32_t type; const char *name; } halves[] = { { EPG_F16, "f16" }, { EPG_BF16, "bf16" } };

/* ---- Memory of the backend ---- */

static void *to_device(const void *from, size_t nbytes)
{
	void *memory = NULL;
	if (epg_malloc(context, nbytes, &memory) || epg_upload(context, memory, from, nbytes, NULL))
		diag("%s", epg_last_error());
	return memory;
}

static int converted(int32_t from_type, const void *from, int32_t to_type, void *to, int64_t count)
{
	epg_matrix f = { .type = from_type, .ld = EPG_TIGHT, .batch_stride = EPG_TIGHT }, t = { .type = to_type, .ld = EPG_TIGHT, .batch_stride = EPG_TIGHT };
	size_t from_nbytes = (size_t)count * (size_t)epg_type_nbits(from_type) / 8, to_nbytes = (size_t)count * (size_t)epg_type_nbits(to_type) / 8;
	void *x = to_device(from, from_nbytes), *y = to_device(to, to_nbytes);
	int good = epg_convert(context, count, 1, 1, &f, x, &t, y, NULL, NULL, NULL) == EPG_SUCCESS && epg_download(context, to, y, to_nbytes, NULL) == EPG_SUCCESS;
	if (!good)
		diag("%s", epg_last_error());
	epg_free(context, x);
	epg_free(context, y);
	return good;
}

/* ---- Conversions ---- */

static int is_nan_pattern(int32_t type, uint16_t x) { return isnan((double)oracle_load(type, &x, 0).re); }

static void check_patterns(int32_t type, const char *name)
{
	static uint16_t all[PATTERNS], back[PATTERNS];
	static double wide[PATTERNS];
	int wrong = 0, lost = 0;
	for (int i = 0; i < PATTERNS; i++)
		all[i] = (uint16_t)i;
	ok(converted(type, all, EPG_F64, wide, PATTERNS) && converted(EPG_F64, wide, type, back, PATTERNS), "%s: all patterns to f64 and back", name);
	for (int i = 0; i < PATTERNS; i++) {
		double want = (double)oracle_load(type, all, i).re;
		wrong += isnan(want) ? !isnan(wide[i]) : memcmp(&want, &wide[i], sizeof want) != 0;
		lost += is_nan_pattern(type, all[i]) ? !is_nan_pattern(type, back[i]) : back[i] != all[i];
	}
	ok(wrong == 0, "%s: %d of them are wrong as f64", name, wrong);
	ok(lost == 0, "%s: %d of them do not come back", name, lost);
}

/* Between each positive number and the next: the middle, a little below, a little above; from f64 and, rounded once more, from f32. */
static void check_ties(int32_t type, const char *name)
{
	enum { LAST_FINITE = 0x7fff };
	static double at[3 * LAST_FINITE];
	static float narrow[3 * LAST_FINITE];
	static uint16_t got[3 * LAST_FINITE], from_f32[3 * LAST_FINITE];
	int count = 0, wrong = 0, wrong_f32 = 0;
	for (uint16_t i = 0; i < LAST_FINITE; i++) {
		uint16_t next = (uint16_t)(i + 1);
		double low = (double)oracle_load(type, &i, 0).re, high = (double)oracle_load(type, &next, 0).re;
		if (!isfinite(low) || !isfinite(high))
			break;
		double middle = low + (high - low) / 2, step = (high - low) * 1e-9;
		at[count++] = middle;
		at[count++] = i % 2 ? -(middle - step) : middle - step;
		at[count++] = i % 2 ? -(middle + step) : middle + step;
	}
	for (int i = 0; i < count; i++)
		narrow[i] = (float)at[i];
	ok(converted(EPG_F64, at, type, got, count) && converted(EPG_F32, narrow, type, from_f32, count), "%s: ties", name);
	for (int i = 0; i < count; i++) {
		uint16_t want, want_f32;
		oracle_store(type, &want, 0, (oracle_num){ at[i], 0 });
		oracle_store(type, &want_f32, 0, (oracle_num){ narrow[i], 0 });
		wrong += want != got[i];
		wrong_f32 += want_f32 != from_f32[i];
	}
	ok(wrong == 0 && wrong_f32 == 0, "%s: %d of %d f64, %d f32 between neighbours are rounded wrongly", name, wrong, count, wrong_f32);
}

static void check_overflow(int32_t type, const char *name)
{
	const double at[] = { 65519, 65520, -65520, 1e39, -INFINITY, 3.3895313892515355e38, 3.3961775292304957e38, 1e-50, -1e-50, 2.98023223876953125e-8 };
	uint16_t got[10], want[10];
	for (int i = 0; i < 10; i++)
		oracle_store(type, want, i, (oracle_num){ at[i], 0 });
	ok(converted(EPG_F64, at, type, got, 10) && !memcmp(got, want, sizeof got), "%s: numbers at the ends of its range", name);
}

/* ---- D's rounding ---- */

/* A float near the 16-bit pattern, told by 'which': itself, the middle to the next, and on both sides of that; or a NaN. */
static float near_pattern(int32_t type, int pattern, int which)
{
	static const uint32_t nans[] = { 0x7fffffff, 0xffffffff, 0x7f800001, 0xff80ffff };
	uint16_t x = (uint16_t)pattern, next = (uint16_t)(pattern + 1);
	float low = (float)oracle_load(type, &x, 0).re, high = (float)oracle_load(type, &next, 0).re, middle = low + (high - low) / 2;
	if (isnan(low) || isinf(low) || isnan(high) || isinf(high)) {
		memcpy(&middle, &nans[pattern % 4], sizeof middle);
		return which ? middle : low;
	}
	return which == 0 ? low : which == 1 ? middle : which == 2 ? nextafterf(middle, -INFINITY) : nextafterf(middle, INFINITY);
}

/* k = 0 with a C of f32: D is C, rounded once. */
static void check_rounding_of_d(int32_t type, const char *name)
{
	enum { ROWS = 1024, COLS = 4 * PATTERNS / ROWS };
	epg_matmul_desc desc = make_desc(type, ROWS, COLS, 0, EPG_COL, EPG_EPILOG_DEFAULT);
	problem p;
	char pins[MAX_PINS][PIN_NBYTES];
	desc.c.type = EPG_F32;
	desc.beta[0] = 1;
	if (!ok(problem_open(&p, &desc, NULL), "memory"))
		return;
	float *c = problem_before(&p, EPG_OPERAND_C);
	for (int i = 0; i < 4 * PATTERNS; i++)
		c[i] = near_pattern(type, i / 4, i % 4);
	int count = problem_pins(context, &p, pins);
	for (int pin = 0; pin < count; pin++) {
		int good = problem_execute(context, &p, pins[pin]) == EPG_SUCCESS, wrong = 0;
		const uint16_t *d = problem_after(&p, EPG_OPERAND_D);
		for (int i = 0; good && i < 4 * PATTERNS; i++) {
			uint16_t want;
			oracle_store(type, &want, 0, (oracle_num){ c[i], 0 });
			wrong += isnan(c[i]) ? !is_nan_pattern(type, d[i]) : d[i] != want && (d[i] | want) & 0x7fff; /* a zero of either sign */
		}
		ok(good && wrong == 0, "%s: D is rounded once, %d of %d wrong, %.40s", name, wrong, 4 * PATTERNS, pins[pin]);
	}
	problem_close(&p);
}

/* ---- Sums ---- */

typedef struct {
	epg_matmul_desc desc;
	double a, b; /* constant operands; half: the sign of b changes in the second half of k */
	int half;
	double aux;  /* mask bits or z */
} sum_case;

static void fill(problem *p, int which, double value, int64_t flip_at)
{
	const oracle_layout *o = &p->x[which].layout;
	for (int64_t line = 0; o->used && line < o->lines; line++)
		for (int64_t i = 0; i < o->length; i++)
			oracle_store(o->type, problem_before(p, which), line * o->ld + i, (oracle_num){ flip_at && i >= flip_at ? -value : value, 0 });
}

static int run_sum(problem *p, const sum_case *c)
{
	check_options options = { .data = DATA_INTEGERS };
	if (!problem_open(p, &c->desc, &options))
		return 0;
	fill(p, EPG_OPERAND_A, c->a, 0);
	fill(p, EPG_OPERAND_B, c->b, c->half ? c->desc.k / 2 : 0);
	fill(p, EPG_OPERAND_AUX, c->aux, 0);
	epg_status status = problem_execute(context, p, NULL);
	if (status)
		diag("%s", epg_last_error());
	return status == EPG_SUCCESS;
}

static double value_of(problem *p, int which) { return (double)oracle_load(p->x[which].layout.type, problem_after(p, which), 0).re; }

/* 4096 ones: a sum kept in bf16 stops at 256, one in f16 at 2048. */
static void check_gradient_sums(int32_t type, const char *name)
{
	static const int32_t epilogs[] = { EPG_EPILOG_DRELU_BGRAD, EPG_EPILOG_DGELU_BGRAD, EPG_EPILOG_BGRADA, EPG_EPILOG_BGRADB };
	for (int i = 0; i < 4; i++) {
		int64_t n = i < 2 ? 4096 : 16, k = i < 2 ? 16 : 4096;
		problem p;
		sum_case c = { .desc = make_desc(type, 16, n, k, EPG_COL, epilogs[i]), .a = i < 2 ? 0.25 : 1, .b = i < 2 ? 0.25 : 1, .aux = i == 1 ? 20 : 1 };
		if (i == 3)
			c.desc.b.op = EPG_OP_T;
		int good = run_sum(&p, &c);
		ok(good && value_of(&p, EPG_OPERAND_BGRAD) == 4096, "%s %s: 4096 ones sum up to %g", name, epg_epilog_name(epilogs[i]), good ? value_of(&p, EPG_OPERAND_BGRAD) : NAN);
		problem_close(&p);
	}
}

/* Sums whose middle is beyond f16, and those that end there. */
static void check_overflowing_sums(void)
{
	problem p;
	sum_case c = { .desc = make_desc(EPG_F16, 16, 16, 1024, EPG_COL, EPG_EPILOG_RELU_AUX), .a = 16, .b = 16, .half = 1 };
	int good = run_sum(&p, &c);
	ok(good && value_of(&p, EPG_OPERAND_D) == 0, "f16: a sum through 131072 ends at %g", good ? value_of(&p, EPG_OPERAND_D) : NAN);
	problem_close(&p);
	c.half = 0;
	good = run_sum(&p, &c);
	ok(good && isinf(value_of(&p, EPG_OPERAND_D)) && value_of(&p, EPG_OPERAND_AUX) == 1, "f16: a sum of 262144 is infinite, its mask bit 1");
	problem_close(&p);
}

/* Row sums of +1 and -1 that cancel down to 1/128: partial sums rounded to bf16 give 0. */
static void check_cancelling(const char *pin)
{
	problem p;
	sum_case c = { .desc = make_desc(EPG_BF16, 64, 64, 4096, EPG_COL, EPG_EPILOG_DEFAULT), .a = 1, .b = 1, .half = 1 };
	check_options options = { .data = DATA_INTEGERS };
	if (!ok(problem_open(&p, &c.desc, &options), "memory"))
		return;
	fill(&p, EPG_OPERAND_A, 1, 0);
	fill(&p, EPG_OPERAND_B, 1, 2048);
	for (int64_t j = 0; j < 64; j++)
		oracle_store(EPG_BF16, problem_before(&p, EPG_OPERAND_B), j * 4096 + 4095, (oracle_num){ -0.9921875, 0 });
	int good = problem_execute(context, &p, pin) == EPG_SUCCESS, wrong = 0;
	for (int64_t e = 0; e < 64 * 64 && good; e++)
		wrong += oracle_load(EPG_BF16, problem_after(&p, EPG_OPERAND_D), e).re != 0.0078125L;
	ok(good && wrong == 0, "bf16: 4096 terms that cancel, %d wrong%s%s", wrong, pin ? ", " : "", pin ? pin : "");
	problem_close(&p);
}

static void check_cancelling_everywhere(void)
{
	problem p;
	epg_matmul_desc desc = make_desc(EPG_BF16, 64, 64, 4096, EPG_COL, EPG_EPILOG_DEFAULT);
	char pins[MAX_PINS][PIN_NBYTES];
	check_cancelling(NULL);
	int count = problem_open(&p, &desc, NULL) ? problem_pins(context, &p, pins) : 0;
	problem_close(&p);
	for (int i = 0; i < count; i++)
		check_cancelling(pins[i]);
}

/* ---- tf32 ---- */

static double identity_times(double x, int32_t compute)
{
	problem p;
	epg_matmul_desc desc = make_desc(EPG_F32, 64, 64, 64, EPG_COL, EPG_EPILOG_DEFAULT);
	double got = NAN;
	desc.compute = compute;
	if (!problem_open(&p, &desc, NULL))
		return NAN;
	fill(&p, EPG_OPERAND_A, 0, 0);
	for (int i = 0; i < 64; i++)
		oracle_store(EPG_F32, problem_before(&p, EPG_OPERAND_A), i * 65, (oracle_num){ 1, 0 });
	fill(&p, EPG_OPERAND_B, x, 0);
	if (problem_execute(context, &p, NULL) == EPG_SUCCESS)
		got = value_of(&p, EPG_OPERAND_D);
	problem_close(&p);
	return got;
}

static void check_tf32(void)
{
	double x = 1 + ldexp(1, -12);
	ok(identity_times(x, EPG_COMPUTE_DEFAULT) == x, "f32 is f32");
	ok(identity_times(x, EPG_COMPUTE_TF32) == (context_is_device(context) ? 1 : x), "tf32 rounds on a device that has it, and is f32 on the CPU");
}

int main(void)
{
	const char *why = "";
	context = test_context(0, &why);
	if (!context)
		return without_context(why);
	for (int i = 0; i < 2; i++) {
		check_patterns(halves[i].type, halves[i].name);
		check_ties(halves[i].type, halves[i].name);
		check_overflow(halves[i].type, halves[i].name);
		check_rounding_of_d(halves[i].type, halves[i].name);
		check_gradient_sums(halves[i].type, halves[i].name);
	}
	check_overflowing_sums();
	check_cancelling_everywhere();
	check_tf32();
	epg_context_destroy(context);
	return done_testing();
}
