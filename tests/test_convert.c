/* SPDX-License-Identifier: Apache-2.0
 *
 * epg_convert against plain loops of this file: every pair of f32, f64, c64, c128 that keeps the kind of number, all ops
 * and orders, leading dimensions with guarded padding, batches, broadcast sources, scale and amax, rounding, zero sizes (the numbers of
 * types below 32 bits are test_half's and test_byte's);
 * then types that this version cannot convert, and misuse. */
#include "robust.h"

#include <math.h>

enum { MAXIMUM = 8192, GUARD = 0x5c };

typedef struct {
	epg_matrix m;
	int64_t rows, cols, ld, stride; /* as stored; ld and stride resolved */
} stored;

static int is_f64(int32_t type) { return type == EPG_F64 || type == EPG_C128; }

static int is_complex(int32_t type) { return type == EPG_C64 || type == EPG_C128; }

static double real_at(const void *at, int32_t type, int64_t index)
{
	return is_f64(type) ? ((const double *)at)[index] : (double)((const float *)at)[index];
}

static void put_real(void *at, int32_t type, int64_t index, double value)
{
	if (is_f64(type))
		((double *)at)[index] = value;
	else
		((float *)at)[index] = (float)value;
}

static int64_t place(const stored *s, int64_t b, int64_t i, int64_t j)
{
	return b * s->stride + (s->m.order == EPG_COL ? i + j * s->ld : i * s->ld + j);
}

static stored layout_of(int32_t type, int32_t order, int32_t op, int64_t rows, int64_t cols, int64_t ld, int64_t stride)
{
	int turned = op == EPG_OP_T || op == EPG_OP_C;
	stored s = { { .type = type, .order = order, .op = op, .ld = ld, .batch_stride = stride }, turned ? cols : rows, turned ? rows : cols, ld, stride };
	int64_t line = order == EPG_COL ? s.rows : s.cols, lines = order == EPG_COL ? s.cols : s.rows;
	if (ld == EPG_TIGHT)
		s.ld = line > 1 ? line : 1;
	if (stride == EPG_TIGHT)
		s.stride = s.ld * lines;
	return s;
}

/* The real (part 0) or imaginary (part 1) part of scale·op(from)[i,j]. */
static double source(const stored *s, const void *from, int64_t b, int64_t i, int64_t j, int part)
{
	int32_t op = s->m.op;
	int turned = op == EPG_OP_T || op == EPG_OP_C, conjugated = op == EPG_OP_C || op == EPG_OP_J;
	int64_t at = turned ? place(s, b, j, i) : place(s, b, i, j);
	if (!is_complex(s->m.type))
		return real_at(from, s->m.type, at);
	double x = real_at(from, s->m.type, 2 * at + part);
	return part && conjugated ? -x : x;
}

static void expected(const stored *f, const void *from, const stored *t, void *to, int64_t rows, int64_t cols, int64_t batch, double scale)
{
	int parts = is_complex(t->m.type) ? 2 : 1;
	for (int64_t b = 0; b < batch; b++)
		for (int64_t i = 0; i < rows; i++)
			for (int64_t j = 0; j < cols; j++)
				for (int p = 0; p < parts; p++)
					put_real(to, t->m.type, parts * place(t, b, i, j) + p, scale * source(f, from, b, i, j, p));
}

static double from[MAXIMUM], to[MAXIMUM], want[MAXIMUM];

static void check_one(epg_context *context, const stored *f, const stored *t, int64_t rows, int64_t cols, int64_t batch, int *wrong)
{
	memset(to, GUARD, sizeof to);
	memset(want, GUARD, sizeof want);
	expected(f, from, t, want, rows, cols, batch, 1);
	epg_status status = epg_convert(context, rows, cols, batch, &f->m, from, &t->m, to, NULL, NULL, NULL);
	if (status || memcmp(to, want, sizeof to)) {
		if (++*wrong < 6)
			diag("%s to %s, orders %d %d, op %d, %lldx%lld, batch %lld, ld %lld %lld: %s", epg_type_name(f->m.type), epg_type_name(t->m.type), (int)f->m.order,
				(int)t->m.order, (int)f->m.op, (long long)rows, (long long)cols, (long long)batch, (long long)f->ld, (long long)t->ld,
				status ? epg_last_error() : "other bytes");
	}
}

static const int32_t pairs[][2] = { { EPG_F32, EPG_F64 }, { EPG_F64, EPG_F32 }, { EPG_F32, EPG_F32 }, { EPG_F64, EPG_F64 }, { EPG_C64, EPG_C128 },
	{ EPG_C128, EPG_C64 }, { EPG_C64, EPG_C64 }, { EPG_C128, EPG_C128 } };

/* Leading dimensions (added to the longest line) and batches of the sweep; stride -1: tight, 0: broadcast. */
static const struct { int64_t rows, cols, more_from, more_to, batch, from_stride; } sizes[] = {
	{ 1, 1, 0, 0, 1, -1 }, { 7, 5, 0, 0, 1, -1 }, { 5, 7, 3, 2, 1, -1 }, { 17, 3, 1, 0, 3, -1 }, { 9, 11, 0, 4, 2, 0 }, { 33, 1, 0, 0, 1, -1 }, { 1, 33, 0, 1, 2, -1 },
};

static void check_pair(epg_context *context, int32_t ft, int32_t tt)
{
	int wrong = 0, cases = 0;
	fill_reals(from, is_f64(ft), is_f64(ft) ? MAXIMUM : 2 * MAXIMUM, 11);
	for (int n = 0; n < COUNT(sizes); n++)
		for (int32_t op = EPG_OP_N; op <= EPG_OP_J; op++)
			for (int orders = 0; orders < 4; orders++, cases++) {
				int64_t rows = sizes[n].rows, cols = sizes[n].cols, longest = rows > cols ? rows : cols;
				int64_t fld = sizes[n].more_from ? longest + sizes[n].more_from : EPG_TIGHT, tld = sizes[n].more_to ? longest + sizes[n].more_to : EPG_TIGHT;
				stored f = layout_of(ft, orders & 1, op, rows, cols, fld, sizes[n].from_stride ? EPG_TIGHT : 0);
				stored t = layout_of(tt, orders >> 1, EPG_OP_N, rows, cols, tld, EPG_TIGHT);
				check_one(context, &f, &t, rows, cols, sizes[n].batch, &wrong);
			}
	ok(wrong == 0, "%s to %s: %d cases", epg_type_name(ft), epg_type_name(tt), cases);
}

static void check_broadcast_line(epg_context *context)
{
	int wrong = 0;
	fill_reals(from, 0, 2 * MAXIMUM, 12);
	for (int32_t op = EPG_OP_N; op <= EPG_OP_T; op++) {
		stored f = layout_of(EPG_F32, EPG_COL, op, 6, 4, 0, EPG_TIGHT), t = layout_of(EPG_F64, EPG_COL, EPG_OP_N, 6, 4, EPG_TIGHT, EPG_TIGHT);
		check_one(context, &f, &t, 6, 4, 1, &wrong);
	}
	ok(wrong == 0, "a source whose ld is 0: one line for all lines");
}

/* Interleaved batches of the output: element (i,j) of item b lies between those of the others. */
static void check_interleaved(epg_context *context)
{
	int wrong = 0;
	fill_reals(from, 1, MAXIMUM, 13);
	stored f = layout_of(EPG_F64, EPG_COL, EPG_OP_N, 5, 4, EPG_TIGHT, EPG_TIGHT), t = layout_of(EPG_F32, EPG_COL, EPG_OP_N, 5, 4, 15, 5);
	check_one(context, &f, &t, 5, 4, 3, &wrong);
	ok(wrong == 0, "interleaved batches of the output");
}

/* ---- Values --------------------------------------------------------------------------------------------------------- */

/* A single column of f64 to f32. */
static epg_status column(epg_context *context, const double *x, int64_t n, float *y, const void *scale, void *amax)
{
	stored f = layout_of(EPG_F64, EPG_COL, EPG_OP_N, n, 1, EPG_TIGHT, EPG_TIGHT), t = layout_of(EPG_F32, EPG_COL, EPG_OP_N, n, 1, EPG_TIGHT, EPG_TIGHT);
	return epg_convert(context, n, 1, 1, &f.m, x, &t.m, y, scale, amax, NULL);
}

static void check_rounding(epg_context *context)
{
	const double tie = 1 + ldexp(1, -24), above = tie + ldexp(1, -50), x[] = { tie, above, 3 * ldexp(1, -24) + 1, 1e300, -1e300, 1e-300, -0.0, INFINITY, -INFINITY,
		(double)3.4028235e38f, ldexp(1, -149), ldexp(1.5, -150) };
	float y[COUNT(x)], want_y[COUNT(x)];
	for (int i = 0; i < COUNT(x); i++)
		want_y[i] = (float)x[i];
	status_is(column(context, x, COUNT(x), y, NULL, NULL), EPG_SUCCESS, "f64 to f32 at the edges");
	ok(!memcmp(y, want_y, sizeof y), "ties to even, infinities, subnormals, -0");
	ok(y[0] == 1 && y[1] > 1 && signbit(y[6]) && y[3] == INFINITY, "and these are what they should be");
}

static void check_scale_and_amax(epg_context *context)
{
	const double x[] = { 1, -3, 2, 0.1 }, scale = 0.5, nothing[] = { 0 };
	double amax = -1;
	float y[4];
	status_is(column(context, x, 4, y, &scale, &amax), EPG_SUCCESS, "scale and amax");
	ok(y[0] == 0.5f && y[1] == -1.5f && y[3] == (float)(0.1 * 0.5), "scaled before the one rounding");
	ok(amax == 1.5, "amax of scale times x (%g)", amax);
	status_is(column(context, x, 4, y, NULL, &amax), EPG_SUCCESS, "amax alone");
	ok(amax == 3, "amax without a scale (%g)", amax);
	status_is(column(context, nothing, 0, y, &scale, &amax), EPG_SUCCESS, "amax of nothing");
	ok(amax == 0, "amax of nothing is 0 (%g)", amax);
	float x32[] = { 4, -8 }, amax32 = -1, scale32 = 0.25f;
	double y64[2];
	stored f = layout_of(EPG_F32, EPG_ROW, EPG_OP_N, 2, 1, EPG_TIGHT, EPG_TIGHT), t = layout_of(EPG_F64, EPG_ROW, EPG_OP_N, 2, 1, EPG_TIGHT, EPG_TIGHT);
	status_is(epg_convert(context, 2, 1, 1, &f.m, x32, &t.m, y64, &scale32, &amax32, NULL), EPG_SUCCESS, "f32 with an f32 scale");
	ok(y64[0] == 1 && y64[1] == -2 && amax32 == 2, "scale and amax in f32 (%g %g, amax %g)", y64[0], y64[1], (double)amax32);
}

static void check_nan(epg_context *context)
{
	const double x[] = { 1, NAN, -3 };
	double amax = -1;
	float y[3];
	status_is(column(context, x, 3, y, NULL, &amax), EPG_SUCCESS, "a NaN among the numbers");
	ok(y[0] == 1 && isnan(y[1]) && y[2] == -3, "NaN stays NaN and its neighbours are as they were");
	ok(isnan(amax) || amax == 3, "amax beside a NaN is NaN or the largest number (%g)", amax);
}

static void check_zero_sizes(epg_context *context)
{
	const struct { int64_t rows, cols, batch; } empty[] = { { 0, 5, 1 }, { 5, 0, 1 }, { 5, 5, 0 }, { 0, 0, 0 } };
	for (int i = 0; i < COUNT(empty); i++) {
		stored f = layout_of(EPG_F64, EPG_COL, EPG_OP_N, 5, 5, EPG_TIGHT, EPG_TIGHT), t = layout_of(EPG_F32, EPG_COL, EPG_OP_N, 5, 5, EPG_TIGHT, EPG_TIGHT);
		memset(to, GUARD, sizeof to);
		memset(want, GUARD, sizeof want);
		status_is(epg_convert(context, empty[i].rows, empty[i].cols, empty[i].batch, &f.m, from, &t.m, to, NULL, NULL, NULL), EPG_SUCCESS, "nothing to convert");
		ok(!memcmp(to, want, sizeof to), "nothing was written");
	}
}

/* ---- Refusals ------------------------------------------------------------------------------------------------------- */

static void check_types(epg_context *context)
{
	const int32_t refused[][2] = { { EPG_C64, EPG_S8 }, { EPG_F32, EPG_UE8M0 }, { EPG_UE8M0, EPG_F32 }, { EPG_F32, EPG_E2M1 }, { EPG_C64, EPG_F32 } };
	for (int i = 0; i < COUNT(refused); i++) {
		stored f = layout_of(refused[i][0], EPG_COL, EPG_OP_N, 4, 4, EPG_TIGHT, EPG_TIGHT), t = layout_of(refused[i][1], EPG_COL, EPG_OP_N, 4, 4, EPG_TIGHT, EPG_TIGHT);
		memset(to, GUARD, sizeof to);
		memset(want, GUARD, sizeof want);
		status_is(epg_convert(context, 4, 4, 1, &f.m, from, &t.m, to, NULL, NULL, NULL), EPG_UNSUPPORTED, "types that this version does not convert");
		ok(says(epg_type_name(refused[i][0])) && says(epg_type_name(refused[i][1])) && !memcmp(to, want, sizeof to), "named, nothing written: %s", epg_last_error());
	}
}

typedef struct {
	const char *what;
	int64_t rows, cols, batch;
	epg_matrix from, to;
	int from_null, to_null, shift_from, shift_to, overlap;
	const char *word;
} misuse;

#define M(...) { .type = EPG_F64, .ld = EPG_TIGHT, .batch_stride = EPG_TIGHT, __VA_ARGS__ }

static const misuse misuses[] = {
	{ .what = "rows -1", .rows = -1, .cols = 4, .batch = 1, .from = M(), .to = M(), .word = "rows" },
	{ .what = "cols -2", .rows = 4, .cols = -2, .batch = 1, .from = M(), .to = M(), .word = "cols" },
	{ .what = "batch -1", .rows = 4, .cols = 4, .batch = -1, .from = M(), .to = M(), .word = "batch" },
	{ .what = "unknown type", .rows = 4, .cols = 4, .batch = 1, .from = { .type = 99, .ld = EPG_TIGHT, .batch_stride = EPG_TIGHT }, .to = M(), .word = "99" },
	{ .what = "type none", .rows = 4, .cols = 4, .batch = 1, .from = { .type = 0, .ld = EPG_TIGHT, .batch_stride = EPG_TIGHT }, .to = M(), .word = "type" },
	{ .what = "from.op 7", .rows = 4, .cols = 4, .batch = 1, .from = M(.op = 7), .to = M(), .word = "op" },
	{ .what = "to.op T", .rows = 4, .cols = 4, .batch = 1, .from = M(), .to = M(.op = EPG_OP_T), .word = "op" },
	{ .what = "from.order 2", .rows = 4, .cols = 4, .batch = 1, .from = M(.order = 2), .to = M(), .word = "order" },
	{ .what = "to.order -1", .rows = 4, .cols = 4, .batch = 1, .from = M(), .to = M(.order = -1), .word = "order" },
	{ .what = "reserved", .rows = 4, .cols = 4, .batch = 1, .from = M(.reserved = { 0, 1 }), .to = M(), .word = "reserved" },
	{ .what = "scale mode", .rows = 4, .cols = 4, .batch = 1, .from = M(.scale = EPG_SCALE_TENSOR), .to = M(), .word = "scale" },
	{ .what = "from NULL", .rows = 4, .cols = 4, .batch = 1, .from = M(), .to = M(), .from_null = 1, .word = "NULL" },
	{ .what = "to NULL", .rows = 4, .cols = 4, .batch = 1, .from = M(), .to = M(), .to_null = 1, .word = "NULL" },
	{ .what = "from misaligned", .rows = 4, .cols = 4, .batch = 1, .from = M(), .to = M(), .shift_from = 4, .word = "align" },
	{ .what = "to misaligned", .rows = 4, .cols = 4, .batch = 1, .from = M(), .to = M(), .shift_to = 1, .word = "align" },
	{ .what = "overlap", .rows = 4, .cols = 4, .batch = 1, .from = M(), .to = M(), .overlap = 1, .word = "overlap" },
	{ .what = "from.ld too small", .rows = 4, .cols = 4, .batch = 1, .from = { .type = EPG_F64, .ld = 3, .batch_stride = EPG_TIGHT }, .to = M(), .word = "ld" },
	{ .what = "from.ld too small, T", .rows = 4, .cols = 6, .batch = 1, .from = { .type = EPG_F64, .op = EPG_OP_T, .ld = 5, .batch_stride = EPG_TIGHT }, .to = M(),
		.word = "ld" },
	{ .what = "to.ld too small", .rows = 4, .cols = 4, .batch = 1, .from = M(), .to = { .type = EPG_F64, .ld = 3, .batch_stride = EPG_TIGHT }, .word = "ld" },
	{ .what = "to.ld 0", .rows = 4, .cols = 4, .batch = 1, .from = M(), .to = { .type = EPG_F64, .ld = 0, .batch_stride = EPG_TIGHT }, .word = "ld" },
	{ .what = "to.batch_stride 0", .rows = 4, .cols = 4, .batch = 2, .from = M(), .to = { .type = EPG_F64, .ld = EPG_TIGHT, .batch_stride = 0 }, .word = "stride" },
	{ .what = "to.batch_stride overlaps", .rows = 4, .cols = 4, .batch = 2, .from = M(), .to = { .type = EPG_F64, .ld = EPG_TIGHT, .batch_stride = 15 }, .word = "stride" },
};

static void check_misuse(epg_context *context, const misuse *m)
{
	memset(to, GUARD, sizeof to);
	memset(want, GUARD, sizeof want);
	const char *f = m->overlap ? (const char *)(to + 2) : (const char *)from + m->shift_from;
	char *t = (char *)to + m->shift_to;
	status_is(epg_convert(context, m->rows, m->cols, m->batch, &m->from, m->from_null ? NULL : f, &m->to, m->to_null ? NULL : t, NULL, NULL, NULL),
		m->from.scale ? EPG_UNSUPPORTED : EPG_INVALID, m->what);
	ok(says(m->word) && !memcmp(to, want, sizeof to), "%s: named, nothing written: %s", m->what, epg_last_error());
}

int main(void)
{
	epg_context *context = new_context(2);
	const epg_matrix plain = M();
	for (int i = 0; i < COUNT(pairs); i++)
		check_pair(context, pairs[i][0], pairs[i][1]);
	check_broadcast_line(context);
	check_interleaved(context);
	check_rounding(context);
	check_scale_and_amax(context);
	check_nan(context);
	check_zero_sizes(context);
	check_types(context);
	for (int i = 0; i < COUNT(misuses); i++)
		check_misuse(context, &misuses[i]);
	ok(epg_convert(NULL, 4, 4, 1, &plain, from, &plain, to, NULL, NULL, NULL) == EPG_INVALID, "context NULL");
	ok(epg_convert(context, 4, 4, 1, NULL, from, &plain, to, NULL, NULL, NULL) == EPG_INVALID, "from_layout NULL");
	ok(epg_convert(context, 4, 4, 1, &plain, from, NULL, to, NULL, NULL, NULL) == EPG_INVALID, "to_layout NULL");
	epg_context_destroy(context);
	return done_testing();
}
