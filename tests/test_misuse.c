/* SPDX-License-Identifier: Apache-2.0
 *
 * Misuse at plan time: around a sound problem with m=8, n=6, k=4 each field of the desc is made wrong in turn. The plan,
 * the layout and the one-shot must refuse it with the right status and a sentence that names the field, its value and
 * the bound, and must have written nothing. The neighbours that are right must be accepted. */
#include "robust.h"

#include <math.h>
#include <stddef.h>

typedef struct {
	size_t offset;
	int nbytes; /* of the field: 4, 8, or -8 for a double */
	int64_t value;
} setting;

#define I32(field, value) { offsetof(epg_matmul_desc, field), 4, value }
#define I64(field, value) { offsetof(epg_matmul_desc, field), 8, value }
#define F64(field, value) { offsetof(epg_matmul_desc, field), -8, value }

enum { NSET = 5, NWORDS = 4 };

typedef struct {
	const char *what;
	int32_t type, epilog;
	setting set[NSET];
	epg_status status;
	const char *words[NWORDS];
} row;

#define DEF EPG_F32, EPG_EPILOG_DEFAULT
#define BIA EPG_F32, EPG_EPILOG_BIAS
#define RAB EPG_F32, EPG_EPILOG_RELU_AUX_BIAS
#define GEA EPG_F32, EPG_EPILOG_GELU_AUX
#define DGB EPG_F32, EPG_EPILOG_DGELU_BGRAD
#define DRB EPG_F32, EPG_EPILOG_DRELU_BGRAD

static const row bad[] = {
	{ "m negative", RAB, { I64(m, -1) }, EPG_INVALID, { "m", "-1", "0" } },
	{ "n negative", RAB, { I64(n, -5) }, EPG_INVALID, { "n", "-5", "0" } },
	{ "k negative", RAB, { I64(k, INT64_MIN) }, EPG_INVALID, { "k", "-9223372036854775808" } },
	{ "batch -1", RAB, { I64(batch, -1) }, EPG_INVALID, { "batch", "-1", "0" } },
	{ "a.ld = m-1", DEF, { I64(a.ld, 7) }, EPG_INVALID, { "a.ld|lda", "7", "8" } },
	{ "a.ld = m for op T with k > m", DEF, { I32(a.op, EPG_OP_T), I64(k, 9), I64(a.ld, 8) }, EPG_INVALID, { "a.ld|lda", "8", "9" } },
	{ "a.ld negative", DEF, { I64(a.ld, -8) }, EPG_INVALID, { "a.ld|lda", "-8" } },
	{ "a.ld = k-1, row-major", DEF, { I32(a.order, EPG_ROW), I64(a.ld, 3) }, EPG_INVALID, { "a.ld|lda", "3", "4" } },
	{ "a.ld = m-1, row-major T", DEF, { I32(a.order, EPG_ROW), I32(a.op, EPG_OP_T), I64(a.ld, 7) }, EPG_INVALID, { "a.ld|lda", "7", "8" } },
	{ "b.ld = k-1", DEF, { I64(b.ld, 3) }, EPG_INVALID, { "b.ld|ldb", "3", "4" } },
	{ "b.ld = k for op T with n > k", DEF, { I32(b.op, EPG_OP_T), I64(b.ld, 4) }, EPG_INVALID, { "b.ld|ldb", "4", "6" } },
	{ "c.ld = m-1", DEF, { I64(c.ld, 7), F64(beta[0], 1) }, EPG_INVALID, { "c.ld|ldc", "7", "8" } },
	{ "d.ld = m-1", DEF, { I64(d.ld, 7) }, EPG_INVALID, { "d.ld|ldd", "7", "8" } },
	{ "d.ld = n-1, row-major", DEF, { I32(d.order, EPG_ROW), I64(d.ld, 5) }, EPG_INVALID, { "d.ld|ldd", "5", "6" } },
	{ "d.ld 0", DEF, { I64(d.ld, 0) }, EPG_INVALID, { "d.ld|ldd", "0" } },
	{ "mask ld no multiple of 128", RAB, { I64(aux.ld, 136) }, EPG_INVALID, { "aux.ld|ldaux|aux", "136", "128" } },
	{ "mask ld too small", EPG_F32, EPG_EPILOG_RELU_AUX, { I64(m, 130), I64(aux.ld, 128) }, EPG_INVALID, { "aux.ld|ldaux|aux", "128", "130|256" } },
	{ "mask ld 0", RAB, { I64(aux.ld, 0) }, EPG_INVALID, { "aux.ld|ldaux|aux", "0" } },
	{ "gelu aux ld no multiple of 8", GEA, { I64(aux.ld, 12) }, EPG_INVALID, { "aux.ld|ldaux|aux", "12", "8" } },
	{ "gelu aux ld 0", GEA, { I64(aux.ld, 0) }, EPG_INVALID, { "aux.ld|ldaux|aux", "0" } },
	{ "d.batch_stride 0", DEF, { I64(batch, 3), I64(d.batch_stride, 0) }, EPG_INVALID, { "d.batch_stride|d stride|stride", "0" } },
	{ "d.batch_stride overlaps", DEF, { I64(batch, 3), I64(d.batch_stride, 40) }, EPG_INVALID, { "d.batch_stride|stride", "40", "48" } },
	{ "d.batch_stride 1 overlaps", DEF, { I64(batch, 3), I64(d.batch_stride, 1) }, EPG_INVALID, { "d.batch_stride|stride", "1" } },
	{ "d interleaved too tightly", DEF, { I64(batch, 4), I64(d.ld, 24), I64(d.batch_stride, 8) }, EPG_INVALID, { "d.batch_stride|stride", "8" } },
	{ "d.batch_stride negative", DEF, { I64(batch, 3), I64(d.batch_stride, -48) }, EPG_INVALID, { "d.batch_stride|stride", "-48" } },
	{ "a.batch_stride negative", DEF, { I64(batch, 3), I64(a.batch_stride, -1) }, EPG_INVALID, { "a.batch_stride|stride", "-1" } },
	{ "mask stride 0", RAB, { I64(batch, 3), I64(aux.batch_stride, 0) }, EPG_INVALID, { "aux", "stride", "0" } },
	{ "mask strides overlap", RAB, { I64(batch, 3), I64(aux.batch_stride, 128) }, EPG_INVALID, { "aux", "stride", "128" } },
	{ "bgrad stride 0", DGB, { I64(batch, 3), I64(bgrad.batch_stride, 0) }, EPG_INVALID, { "bgrad", "stride", "0" } },
	{ "bgrad strides overlap", DGB, { I64(batch, 3), I64(bgrad.batch_stride, 7) }, EPG_INVALID, { "bgrad", "stride", "7" } },
	{ "bias.length n per row", BIA, { I64(n, 4), I64(bias.length, 4) }, EPG_INVALID, { "bias", "length", "4", "8" } },
	{ "bias.length m per column", BIA, { I32(axis, EPG_PER_COLUMN), I64(bias.length, 8) }, EPG_INVALID, { "bias", "length", "8", "6" } },
	{ "bias.length negative", BIA, { I64(bias.length, -8) }, EPG_INVALID, { "bias", "length", "-8" } },
	{ "bgrad.length n per row", DRB, { I64(bgrad.length, 6) }, EPG_INVALID, { "bgrad", "length", "6", "8" } },
	{ "bgrada length n", EPG_F32, EPG_EPILOG_BGRADA, { I64(bgrad.length, 6) }, EPG_INVALID, { "bgrad", "length", "6", "8" } },
	{ "bgradb length m", EPG_F32, EPG_EPILOG_BGRADB, { I64(bgrad.length, 8) }, EPG_INVALID, { "bgrad", "length", "8", "6" } },
	{ "epilog 9999", DEF, { I32(epilog, 9999) }, EPG_INVALID, { "epilog", "9999" } },
	{ "epilog bias and grad", DEF, { I32(epilog, EPG_BIAS | EPG_GRAD) }, EPG_INVALID, { "epilog", "1280" } },
	{ "epilog act 3", DEF, { I32(epilog, 3) }, EPG_INVALID, { "epilog", "3" } },
	{ "epilog -1", DEF, { I32(epilog, -1) }, EPG_INVALID, { "epilog", "-1" } },
	{ "axis 2", RAB, { I32(axis, 2) }, EPG_INVALID, { "axis", "2" } },
	{ "axis -1", DEF, { I32(axis, -1) }, EPG_INVALID, { "axis", "-1" } },
	{ "flags unknown", DEF, { I32(flags, 1 << 20) }, EPG_INVALID, { "flags", "1048576|100000" } },
	{ "batch_mode 1", DEF, { I32(batch_mode, 1) }, EPG_INVALID, { "batch_mode", "1" } },
	{ "compute 99", DEF, { I32(compute, 99) }, EPG_INVALID, { "compute", "99" } },
	{ "compute -1", DEF, { I32(compute, -1) }, EPG_INVALID, { "compute", "-1" } },
	{ "align 3", DEF, { I32(align_nbytes, 3) }, EPG_INVALID, { "align", "3", "power" } },
	{ "align -16", DEF, { I32(align_nbytes, -16) }, EPG_INVALID, { "align", "-16" } },
	{ "a.order 2", DEF, { I32(a.order, 2) }, EPG_INVALID, { "a.order", "2" } },
	{ "b.order -1", DEF, { I32(b.order, -1) }, EPG_INVALID, { "b.order", "-1" } },
	{ "c.order 7", DEF, { I32(c.order, 7), F64(beta[0], 1) }, EPG_INVALID, { "c.order", "7" } },
	{ "d.order 2", DEF, { I32(d.order, 2) }, EPG_INVALID, { "d.order", "2" } },
	{ "aux.order 3", GEA, { I32(aux.order, 3) }, EPG_INVALID, { "aux.order", "3" } },
	{ "a.op 4", DEF, { I32(a.op, 4) }, EPG_INVALID, { "a.op", "4" } },
	{ "b.op -1", DEF, { I32(b.op, -1) }, EPG_INVALID, { "b.op", "-1" } },
	{ "c.op T", DEF, { I32(c.op, EPG_OP_T), F64(beta[0], 1) }, EPG_INVALID, { "c.op", "1|T" } },
	{ "d.op C", DEF, { I32(d.op, EPG_OP_C) }, EPG_INVALID, { "d.op", "2|C" } },
	{ "aux.op T", GEA, { I32(aux.op, EPG_OP_T) }, EPG_INVALID, { "aux.op", "1|T" } },
	{ "a.type 99", DEF, { I32(a.type, 99) }, EPG_INVALID, { "a.type", "99" } },
	{ "d.type -1", DEF, { I32(d.type, -1) }, EPG_INVALID, { "d.type", "-1" } },
	{ "aux.type 77", GEA, { I32(aux.type, 77) }, EPG_INVALID, { "aux.type", "77" } },
	{ "bias.type 50", BIA, { I32(bias.type, 50) }, EPG_INVALID, { "bias.type", "50" } },
	{ "a.scale 99", DEF, { I32(a.scale, 99) }, EPG_INVALID, { "a.scale", "99" } },
	{ "a.reserved", DEF, { I32(a.reserved[0], 1) }, EPG_INVALID, { "a.reserved", "1" } },
	{ "d.reserved", DEF, { I32(d.reserved[1], 5) }, EPG_INVALID, { "d.reserved", "5" } },
	{ "aux.reserved", RAB, { I32(aux.reserved[0], 1) }, EPG_INVALID, { "aux.reserved" } },
	{ "bias.reserved", BIA, { I32(bias.reserved, 1) }, EPG_INVALID, { "bias.reserved" } },
	{ "bgrad.reserved", DGB, { I32(bgrad.reserved, 1) }, EPG_INVALID, { "bgrad.reserved" } },
	{ "act_param", DEF, { F64(act_param[0], 1) }, EPG_INVALID, { "act_param", "1" } },
	{ "imaginary alpha of a real problem", DEF, { F64(alpha[1], 2) }, EPG_INVALID, { "alpha", "2" } },
	{ "imaginary beta of a real problem", DEF, { F64(beta[0], 1), F64(beta[1], 3) }, EPG_INVALID, { "beta", "3" } },
	/* Sound requests that this version does not carry out. */
	{ "e5m2 with a bias of e5m2", EPG_E5M2, EPG_EPILOG_BIAS, { I32(bias.type, EPG_E5M2) }, EPG_UNSUPPORTED, { "bias.type", "e5m2" } },
	{ "f16 with a bias of bf16", EPG_F16, EPG_EPILOG_BIAS, { I32(bias.type, EPG_BF16) }, EPG_UNSUPPORTED, { "bias.type", "bf16" } },
	{ "e2m1", EPG_E2M1, EPG_EPILOG_DEFAULT, { { 0 } }, EPG_UNSUPPORTED, { "e2m1" } },
	{ "e4m3 times s8", EPG_E4M3, EPG_EPILOG_DEFAULT, { I32(b.type, EPG_S8) }, EPG_UNSUPPORTED, { "e4m3", "s8" } },
	{ "relu on s32", EPG_S8, EPG_EPILOG_RELU, { I32(d.type, EPG_S32), I32(c.type, EPG_S32) }, EPG_UNSUPPORTED, { "relu", "s32" } },
	{ "s8 to e4m3", EPG_S8, EPG_EPILOG_DEFAULT, { I32(d.type, EPG_E4M3) }, EPG_UNSUPPORTED, { "s8", "e4m3" } },
	{ "f32 times f64", DEF, { I32(b.type, EPG_F64) }, EPG_UNSUPPORTED, { "f32", "f64" } },
	{ "relu on c128", EPG_C128, EPG_EPILOG_RELU, { { 0 } }, EPG_UNSUPPORTED, { "relu", "c128" } },
	{ "gelu_aux_bias on c64", EPG_C64, EPG_EPILOG_GELU_AUX_BIAS, { { 0 } }, EPG_UNSUPPORTED, { "gelu_aux_bias", "c64" } },
	{ "f16 computed in f16", EPG_F16, EPG_EPILOG_DEFAULT, { I32(compute, EPG_COMPUTE_F16) }, EPG_UNSUPPORTED, { "f16" } },
	{ "a.scale tensor", DEF, { I32(a.scale, EPG_SCALE_TENSOR) }, EPG_UNSUPPORTED, { "a.scale|scale" } },
	{ "d.scale 1x128", DEF, { I32(d.scale, EPG_SCALE_1X128) }, EPG_UNSUPPORTED, { "d.scale|scale" } },
	{ "b.scale mx32", DEF, { I32(b.scale, EPG_SCALE_MX32) }, EPG_UNSUPPORTED, { "b.scale|scale" } },
};

static const row good[] = {
	{ "the neighbour itself", RAB, { { 0 } }, EPG_SUCCESS, { 0 } },
	{ "interleaved batches", DEF, { I64(batch, 3), I64(d.ld, 24), I64(d.batch_stride, 8) }, EPG_SUCCESS, { 0 } },
	{ "interleaved batches, row-major", DEF, { I64(batch, 3), I32(d.order, EPG_ROW), I64(d.ld, 18), I64(d.batch_stride, 6) }, EPG_SUCCESS, { 0 } },
	{ "batch 1 with stride 0 of D", DEF, { I64(d.batch_stride, 0) }, EPG_SUCCESS, { 0 } },
	{ "broadcast inputs", BIA, { I64(batch, 3), I64(a.batch_stride, 0), I64(bias.batch_stride, 0) }, EPG_SUCCESS, { 0 } },
	{ "broadcast line of C", DEF, { F64(beta[0], 1), I64(c.ld, 0) }, EPG_SUCCESS, { 0 } },
	{ "overlapping strides of an input", DEF, { I64(batch, 3), I64(a.batch_stride, 1) }, EPG_SUCCESS, { 0 } },
	{ "bias.length given", BIA, { I64(bias.length, 8) }, EPG_SUCCESS, { 0 } },
	{ "align 64", DEF, { I32(align_nbytes, 64) }, EPG_SUCCESS, { 0 } },
	{ "deterministic", DEF, { I32(flags, EPG_DETERMINISTIC) }, EPG_SUCCESS, { 0 } },
	{ "imaginary alpha of a complex problem", EPG_C64, EPG_EPILOG_BIAS, { F64(alpha[1], 2) }, EPG_SUCCESS, { 0 } },
	{ "everything empty", RAB, { I64(m, 0), I64(n, 0), I64(k, 0), I64(batch, 0) }, EPG_SUCCESS, { 0 } },
	{ "huge lines of a single column", DEF, { I64(n, 1), I64(d.ld, INT64_C(1) << 40), I64(c.ld, INT64_C(1) << 40) }, EPG_SUCCESS, { 0 } },
};

static epg_matmul_desc desc_of(const row *r)
{
	epg_matmul_desc desc;
	epg_matmul_desc_init(&desc, sizeof desc, 8, 6, 4, r->type, EPG_COL);
	desc.epilog = r->epilog;
	for (int i = 0; i < NSET && r->set[i].nbytes; i++) {
		char *field = (char *)&desc + r->set[i].offset;
		int32_t narrow = (int32_t)r->set[i].value;
		double real = (double)r->set[i].value;
		if (r->set[i].nbytes == 4)
			memcpy(field, &narrow, 4);
		else
			memcpy(field, r->set[i].nbytes == 8 ? (const void *)&r->set[i].value : (const void *)&real, 8);
	}
	return desc;
}

static int words_are_there(const row *r)
{
	int all = 1;
	for (int i = 0; i < NWORDS; i++)
		if (r->words[i] && !says(r->words[i])) {
			diag("'%s' is not in: %s", r->words[i], epg_last_error());
			all = 0;
		}
	return all;
}

/* The error must carry the whole problem: the sizes, the type and the epilog where it has a name. */
static int line_is_there(const epg_matmul_desc *desc)
{
	char want[64];
	const char *epilog = epg_epilog_name(desc->epilog), *type = epg_type_name(desc->d.type);
	int good = 1;
	snprintf(want, sizeof want, "m=%lld n=%lld k=%lld", (long long)desc->m, (long long)desc->n, (long long)desc->k);
	good &= says(want);
	good &= !type || says(type);
	good &= !epilog || desc->epilog == EPG_EPILOG_DEFAULT || says(epilog);
	if (!good)
		diag("no problem line in: %s", epg_last_error());
	return good;
}

enum { BUFFER = 4096 };

static int all_bytes(const void *at, size_t nbytes, unsigned char want)
{
	for (size_t i = 0; i < nbytes; i++)
		if (((const unsigned char *)at)[i] != want)
			return 0;
	return 1;
}

/* The one-shot refuses too, and its outputs stay as they were. */
static int one_shot_writes_nothing(epg_context *context, const epg_matmul_desc *desc, epg_status want)
{
	static _Alignas(64) unsigned char in[BUFFER], d[BUFFER], aux[BUFFER], bgrad[BUFFER];
	memset(d, 0xa5, sizeof d);
	memset(aux, 0xa5, sizeof aux);
	memset(bgrad, 0xa5, sizeof bgrad);
	epg_operands x = EPG_OPERANDS(.a = in, .b = in, .c = in, .d = d);
	if (desc->epilog & EPG_BIAS)
		x.bias = in;
	if (desc->epilog & EPG_AUX)
		x.aux = aux;
	if (desc->epilog & (EPG_BGRAD | EPG_BGRADA | EPG_BGRADB))
		x.bgrad = bgrad;
	return epg_matmul(context, desc, &x, NULL) == want && all_bytes(d, sizeof d, 0xa5) && all_bytes(aux, sizeof aux, 0xa5)
		&& all_bytes(bgrad, sizeof bgrad, 0xa5);
}

static void check_bad(epg_context *context, const row *r)
{
	epg_matmul_desc desc = desc_of(r);
	epg_plan *untouched = (epg_plan *)&desc, *plan = untouched;
	epg_layout layout;
	memset(&layout, 0xa5, sizeof layout);
	epg_status status = epg_plan_create(context, &desc, NULL, &plan);
	status_is(status, r->status, r->what);
	ok(plan == untouched, "%s: *plan is left alone", r->what);
	ok(status && words_are_there(r) && line_is_there(&desc), "%s: the sentence", r->what);
	if (r->status == EPG_INVALID)
		ok(epg_matmul_desc_layout(&desc, EPG_OPERAND_D, &layout) == EPG_INVALID && all_bytes(&layout, sizeof layout, 0xa5), "%s: no layout", r->what);
	ok(one_shot_writes_nothing(context, &desc, r->status), "%s: one-shot writes nothing", r->what);
	if (!status && plan != untouched)
		epg_plan_destroy(plan);
}

static void check_good(epg_context *context, const row *r)
{
	epg_matmul_desc desc = desc_of(r);
	epg_plan *plan = NULL;
	epg_layout layout;
	status_is(epg_plan_create(context, &desc, NULL, &plan), EPG_SUCCESS, r->what);
	status_is(epg_matmul_desc_layout(&desc, EPG_OPERAND_D, &layout), EPG_SUCCESS, r->what);
	epg_plan_destroy(plan);
}

/* NaN and infinite scalars are numbers like others: they must reach the result. */
static void check_nan_alpha(epg_context *context)
{
	const double values[] = { NAN, INFINITY, -INFINITY };
	for (int i = 0; i < COUNT(values); i++) {
		epg_matmul_desc desc;
		double a = 1, b = 1, d = 5;
		epg_matmul_desc_init(&desc, sizeof desc, 1, 1, 1, EPG_F64, EPG_COL);
		desc.alpha[0] = values[i];
		epg_status status = epg_matmul(context, &desc, &EPG_OPERANDS(.a = &a, .b = &b, .d = &d), NULL);
		ok(!status && (isnan(values[i]) ? isnan(d) : d == values[i]), "alpha = %g reaches D (%s, %g)", values[i], epg_status_string(status), d);
	}
}

/* Sizes whose bytes do not fit in 64 bits are refused; they must not wrap around and look small. */
static void check_overflow(epg_context *context)
{
	const int64_t big = INT64_C(1) << 62;
	const struct { const char *what; int64_t m, n, k, batch, ldd, stride; } rows[] = {
		{ "m = n = 2^62", big, big, 1, 1, EPG_TIGHT, EPG_TIGHT },
		{ "m = INT64_MAX", INT64_MAX, 1, 1, 1, EPG_TIGHT, EPG_TIGHT },
		{ "k = n = 2^62", 1, big, big, 1, EPG_TIGHT, EPG_TIGHT },
		{ "batch = INT64_MAX", 8, 6, 4, INT64_MAX, EPG_TIGHT, EPG_TIGHT },
		{ "d.ld = INT64_MAX", 8, 6, 4, 1, INT64_MAX, EPG_TIGHT },
		{ "d.batch_stride = INT64_MAX", 8, 6, 4, 3, EPG_TIGHT, INT64_MAX },
		{ "2^32 by 2^32", INT64_C(1) << 32, INT64_C(1) << 32, 1, 1, EPG_TIGHT, EPG_TIGHT },
	};
	for (int i = 0; i < COUNT(rows); i++) {
		epg_matmul_desc desc;
		epg_plan *plan = NULL;
		epg_layout layout;
		epg_matmul_desc_init(&desc, sizeof desc, rows[i].m, rows[i].n, rows[i].k, EPG_F32, EPG_COL);
		desc.batch = rows[i].batch;
		desc.d.ld = rows[i].ldd;
		desc.d.batch_stride = rows[i].stride;
		epg_status status = epg_plan_create(context, &desc, NULL, &plan);
		ok(status == EPG_INVALID || status == EPG_UNSUPPORTED || status == EPG_NO_MEMORY, "%s is refused (%s)", rows[i].what, epg_status_string(status));
		ok(epg_matmul_desc_layout(&desc, EPG_OPERAND_D, &layout) != EPG_SUCCESS || layout.nbytes > 0, "%s: no layout of negative size", rows[i].what);
		if (!status)
			epg_plan_destroy(plan);
	}
}

int main(void)
{
	epg_context *context = new_context(1);
	ok(context != NULL, "context");
	ok(epg_last_error() && !*epg_last_error(), "no error before the first failure");
	for (int i = 0; i < COUNT(bad); i++)
		check_bad(context, &bad[i]);
	for (int i = 0; i < COUNT(good); i++)
		check_good(context, &good[i]);
	check_nan_alpha(context);
	check_overflow(context);
	epg_context_destroy(context);
	return done_testing();
}
