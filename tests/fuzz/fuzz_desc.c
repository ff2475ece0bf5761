/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target: bytes make a desc, mostly of plausible values, now and then of wild ones. Every operand's layout is
 * asked for; what the layout refuses no plan may take; a plan that is made must execute on buffers of exactly the
 * layout's size, and not touch the guard bytes around them. Sizes are capped so that one run stays under a millisecond. */
#include "fuzz.h"

const char fuzz_name[] = "desc";

enum { NOPERANDS = 7, GUARD_NBYTES = 64, GUARD = 0xc3, CAP = 1 << 18 };

typedef struct {
	const uint8_t *at, *end;
} bytes;

static uint32_t take(bytes *b) { return b->at < b->end ? *b->at++ : 0; }

static int64_t take64(bytes *b)
{
	uint64_t x = 0;
	for (int i = 0; i < 8; i++)
		x = x << 8 | take(b);
	return (int64_t)x;
}

/* A size, mostly below limit. */
static int64_t size_of(bytes *b, uint32_t limit)
{
	uint32_t x = take(b);
	return x >= 0xfc ? take64(b) : x % limit;
}

/* An enumerated value, mostly one of the first count. */
static int32_t enum_of(bytes *b, uint32_t count)
{
	uint32_t x = take(b);
	return x >= 0xfa ? (int32_t)take64(b) : (int32_t)(x % count);
}

static int32_t type_of(bytes *b)
{
	static const int32_t types[] = { EPG_F32, EPG_F64, EPG_C64, EPG_C128 };
	uint32_t x = take(b);
	return x >= 0xf0 ? (int32_t)(x - 0xf0) : types[x % 4];
}

/* A line's or batch item's distance: tight, 0, near the usual, or wild. */
static int64_t distance_of(bytes *b, uint32_t limit)
{
	uint32_t x = take(b);
	if (x < 0x80)
		return EPG_TIGHT;
	return x < 0x98 ? 0 : x >= 0xfc ? take64(b) : (int64_t)(take(b) % limit);
}

static double real_of(bytes *b)
{
	static const double reals[] = { 0, 1, -1, 2.5, 0, 1, 0, 1 };
	uint32_t x = take(b);
	int64_t raw;
	double any;
	if (x < 0xf8)
		return reals[x % 8];
	raw = take64(b);
	memcpy(&any, &raw, sizeof any);
	return any;
}

static void matrix_of(bytes *b, epg_matrix *m, int has_op)
{
	uint32_t what = take(b);
	if (what & 1)
		m->order = enum_of(b, 2);
	if (what & 2 && has_op)
		m->op = enum_of(b, 4);
	if (what & 4)
		m->ld = distance_of(b, 80);
	if (what & 8)
		m->batch_stride = (int64_t)((uint64_t)distance_of(b, 255) * (1 + take(b) % 16));
	if ((what & 0xf0) == 0xf0) { /* now and then what is hardly ever right */
		m->type = type_of(b);
		m->scale = enum_of(b, 7);
		m->op = enum_of(b, 4);
		m->reserved[take(b) % 2] = (int32_t)take(b);
	}
}

static void vector_of(bytes *b, epg_vector *v)
{
	uint32_t what = take(b);
	if (what & 1)
		v->batch_stride = distance_of(b, 80);
	if ((what & 6) == 6)
		v->length = size_of(b, 40);
	if ((what & 0xf0) == 0xf0)
		v->type = type_of(b);
}

static epg_matmul_desc desc_of(bytes *b)
{
	static const int32_t epilogs[] = { 0, EPG_EPILOG_RELU, EPG_EPILOG_RELU_AUX, EPG_EPILOG_BIAS, EPG_EPILOG_RELU_BIAS, EPG_EPILOG_RELU_AUX_BIAS, EPG_EPILOG_DRELU,
		EPG_EPILOG_DRELU_BGRAD, EPG_EPILOG_GELU, EPG_EPILOG_GELU_AUX, EPG_EPILOG_GELU_BIAS, EPG_EPILOG_GELU_AUX_BIAS, EPG_EPILOG_DGELU,
		EPG_EPILOG_DGELU_BGRAD, EPG_EPILOG_BGRADA, EPG_EPILOG_BGRADB };
	epg_matmul_desc desc;
	int32_t type = type_of(b), order = enum_of(b, 2);
	int64_t m = size_of(b, 40), n = size_of(b, 40), k = size_of(b, 40);
	epg_matmul_desc_init(&desc, sizeof desc, m, n, k, type, order);
	uint32_t what = take(b), epilog = take(b);
	desc.epilog = epilog >= 0xf8 ? enum_of(b, 16384) : epilogs[epilog % 16];
	if (what & 1)
		desc.batch = size_of(b, 4);
	if (what & 2)
		desc.axis = enum_of(b, 2);
	if (what & 4)
		desc.flags = enum_of(b, 16);
	if ((what & 0x18) == 0x18)
		desc.align_nbytes = enum_of(b, 65);
	if ((what & 0x60) == 0x60)
		desc.compute = enum_of(b, 6);
	for (int i = 0; i < 2; i++) {
		desc.alpha[i] = i && take(b) < 0xe0 ? 0 : real_of(b);
		desc.beta[i] = i && take(b) < 0xe0 ? 0 : real_of(b);
	}
	matrix_of(b, &desc.a, 1);
	matrix_of(b, &desc.b, 1);
	matrix_of(b, &desc.c, 0);
	matrix_of(b, &desc.d, 0);
	matrix_of(b, &desc.aux, 0);
	vector_of(b, &desc.bias);
	vector_of(b, &desc.bgrad);
	return desc;
}

typedef struct {
	unsigned char *whole, *at;
	size_t nbytes;
} buffer;

static buffer buffer_of(const epg_layout *layout)
{
	buffer x = { NULL, NULL, 0 };
	if (layout->type == EPG_NONE)
		return x;
	x.nbytes = (size_t)layout->nbytes;
	x.whole = aligned_alloc(64, (2 * GUARD_NBYTES + x.nbytes + 63) / 64 * 64);
	MUST(x.whole, "memory");
	x.at = x.whole + GUARD_NBYTES;
	memset(x.whole, GUARD, 2 * GUARD_NBYTES + x.nbytes);
	memset(x.at, 0, x.nbytes);
	return x;
}

static void check_guards(const buffer *x, const char *line)
{
	for (int i = 0; x->whole && i < GUARD_NBYTES; i++)
		MUST(x->whole[i] == GUARD && x->at[x->nbytes + (size_t)i] == GUARD, "written outside an operand: %s", line);
}

static void execute(const epg_matmul_desc *desc, epg_plan *plan, const epg_layout layout[NOPERANDS], const char *line)
{
	buffer x[NOPERANDS];
	for (int i = 0; i < NOPERANDS; i++)
		x[i] = buffer_of(&layout[i]);
	epg_operands operands = EPG_OPERANDS(.a = x[EPG_OPERAND_A].at, .b = x[EPG_OPERAND_B].at, .c = x[EPG_OPERAND_C].at, .d = x[EPG_OPERAND_D].at,
		.aux = x[EPG_OPERAND_AUX].at, .bias = x[EPG_OPERAND_BIAS].at, .bgrad = x[EPG_OPERAND_BGRAD].at);
	epg_status status = epg_execute(plan, &operands, NULL);
	MUST(status == EPG_SUCCESS || (status == EPG_INVALID && desc->align_nbytes > 64), "%s: %s", epg_status_string(status), line);
	for (int i = 0; i < NOPERANDS; i++) {
		check_guards(&x[i], line);
		free(x[i].whole);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
	bytes b = { data, data + nbytes };
	epg_matmul_desc desc = desc_of(&b);
	epg_layout layout[NOPERANDS];
	epg_plan *plan = NULL;
	char line[2048] = "";
	int64_t total = 0;
	epg_matmul_desc_print(&desc, line, sizeof line, NULL);
	epg_status first = epg_matmul_desc_layout(&desc, 0, &layout[0]);
	for (int i = 0; i < NOPERANDS; i++) {
		epg_status status = epg_matmul_desc_layout(&desc, i, &layout[i]);
		MUST(status == first, "operand %d: %s, but the first: %s: %s", i, epg_status_string(status), epg_status_string(first), line);
		MUST(status || layout[i].nbytes >= 0, "operand %d has %lld bytes: %s", i, status ? 0 : (long long)layout[i].nbytes, line);
		total = status || total > CAP || layout[i].nbytes > CAP ? CAP + 1 : total + layout[i].nbytes;
	}
	if (first == EPG_SUCCESS && (total > CAP || desc.m > 64 || desc.n > 64 || desc.k > 64 || desc.batch > 64))
		return 0; /* sound, but not in a millisecond */
	epg_status status = epg_plan_create(fuzz_context(), &desc, NULL, &plan);
	MUST(!first || status == first, "plan: %s, layout: %s: %s", epg_status_string(status), epg_status_string(first), line);
	MUST(status == EPG_SUCCESS || status == EPG_UNSUPPORTED || status == EPG_INVALID, "plan: %s: %s", epg_status_string(status), line);
	if (!status)
		execute(&desc, plan, layout, line);
	epg_plan_destroy(plan);
	return 0;
}
