/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules about where operands lie. Several operands are placed in one buffer, by offsets in elements: D exactly over C
 * or over DGELU's aux is right; any other overlap of an output that the pointers show is refused and writes nothing;
 * neighbours that interleave without sharing an element are accepted and computed. Also pointers of empty operands. */
#include "values.h"

enum { BUFFER = 4096, A = EPG_OPERAND_A, B = EPG_OPERAND_B, C = EPG_OPERAND_C, D = EPG_OPERAND_D, AUX = EPG_OPERAND_AUX, BIAS = EPG_OPERAND_BIAS, BGRAD = EPG_OPERAND_BGRAD };

static epg_context *context;

/* Offsets of the operands in the buffer in floats (aux of a mask as well); NONE: NULL. */
enum { NONE = -1 };
typedef struct {
	const char *name, *line;
	int at[OPERANDS];
} place;

static const float *buffer_values(float *to)
{
	for (int i = 0; i < BUFFER; i++)
		to[i] = (float)(i * 7 % 9 - 4);
	return to;
}

static epg_operands operands_at(float *base, const int at[OPERANDS])
{
	epg_operands x;
	void *p[OPERANDS];
	epg_operands_init(&x, sizeof x);
	for (int i = 0; i < OPERANDS; i++)
		p[i] = at[i] == NONE ? NULL : base + at[i];
	x.a = p[A], x.b = p[B], x.c = p[C], x.d = p[D], x.aux = p[AUX], x.bias = p[BIAS], x.bgrad = p[BGRAD];
	return x;
}

/* Executes in the one buffer; after holds its content then. */
static epg_status execute_at(const epg_matmul_desc *desc, const int at[OPERANDS], const float *before, float *after)
{
	void *buffer = NULL;
	epg_status status = epg_malloc(context, BUFFER * sizeof(float), &buffer);
	memcpy(after, before, BUFFER * sizeof(float));
	if (status || (status = epg_upload(context, buffer, before, BUFFER * sizeof(float), NULL)))
		return status;
	epg_operands x = operands_at(buffer, at);
	status = epg_matmul(context, desc, &x, NULL);
	epg_synchronize(context, NULL);
	epg_download(context, after, buffer, BUFFER * sizeof(float), NULL);
	epg_free(context, buffer);
	return status;
}

/* The expected buffer: D of the oracle, computed from the old content, over the old content. Only D is written here. */
static int solve_at(const epg_matmul_desc *desc, const int at[OPERANDS], const float *before, float *want)
{
	oracle_result r;
	oracle_layout d;
	oracle_inputs in = { before + at[A], before + at[B], before + (at[C] < 0 ? 0 : at[C]), before + (at[BIAS] < 0 ? 0 : at[BIAS]),
		before + (at[AUX] < 0 ? 0 : at[AUX]), before };
	int good = oracle_solve(desc, &in, &r);
	oracle_get_layout(desc, D, &d);
	memcpy(want, before, BUFFER * sizeof(float));
	for (int64_t e = 0; good && e < r.count; e++)
		oracle_store(EPG_F32, want + at[D], oracle_index(&d, e / (r.m * r.n), e % r.m, e / r.m % r.n), r.d[e]);
	oracle_free(&r);
	return good;
}

static int buffers_agree(const float *got, const float *want, float tolerance)
{
	for (int i = 0; i < BUFFER; i++)
		if (!(fabsf(got[i] - want[i]) <= tolerance)) {
			diag("element %d of the buffer is %g, not %g", i, (double)got[i], (double)want[i]);
			return 0;
		}
	return 1;
}

static void accepted(const place *p)
{
	static float before[BUFFER], after[BUFFER], want[BUFFER];
	epg_matmul_desc desc;
	buffer_values(before);
	if (!ok(parse_desc(p->line, &desc) && solve_at(&desc, p->at, before, want), "%s: understood", p->name))
		return;
	epg_status status = execute_at(&desc, p->at, before, after);
	int gelu = oracle_act(&desc) == EPG_ACT_GELU;
	if (!ok(status == EPG_SUCCESS && buffers_agree(after, want, gelu ? 1e-3f : 0), "%s: accepted and right", p->name))
		diag("%s: %s (%s)", epg_status_string(status), epg_last_error(), p->line);
}

static void refused(const place *p)
{
	static float before[BUFFER], after[BUFFER];
	epg_matmul_desc desc;
	buffer_values(before);
	if (!ok(parse_desc(p->line, &desc), "%s: understood", p->name))
		return;
	epg_status status = execute_at(&desc, p->at, before, after);
	ok(status == EPG_INVALID && memcmp(before, after, sizeof after) == 0, "%s: refused, nothing written", p->name);
	if (status != EPG_INVALID)
		diag("%s (%s)", epg_status_string(status), p->line);
}

static const place good[] = { /* A, B, C, D, aux, bias, bgrad */
	{ "D over C", "f32 m=7 n=5 k=3 beta=1", { 0, 64, 128, 128, NONE, NONE, NONE } },
	{ "D over C, padded", "f32 m=7 n=5 k=3 beta=-0.5 ldc=9 ldd=9 epilog=relu_bias", { 0, 64, 128, 128, NONE, 512, NONE } },
	{ "D over C, row-major, batch", "f32 m=7 n=5 k=3 beta=1 order=row batch=3", { 0, 128, 256, 256, NONE, NONE, NONE } },
	{ "D over C, k = 0", "f32 m=7 n=5 k=0 beta=1 epilog=relu", { 0, 64, 128, 128, NONE, NONE, NONE } },
	{ "D over C with beta 0: C is not used", "f32 m=7 n=5 k=3", { 0, 64, 128, 128, NONE, NONE, NONE } },
	{ "D over aux", "f32 m=8 n=5 k=3 epilog=dgelu", { 0, 64, NONE, 128, 128, NONE, NONE } },
	{ "D over aux, padded", "f32 m=7 n=5 k=3 epilog=dgelu ldd=16 ldaux=16", { 0, 64, NONE, 128, 128, NONE, NONE } },
	{ "D over aux, row-major, with C", "f32 m=7 n=8 k=3 epilog=dgelu order=row beta=1", { 0, 64, 128, 256, 256, NONE, NONE } },
	{ "A is B", "f32 m=4 n=4 k=4", { 0, 0, NONE, 128, NONE, NONE, NONE } },
	{ "A is C is the bias", "f32 m=4 n=4 k=4 beta=1 epilog=bias", { 0, 0, 0, 128, NONE, 0, NONE } },
	{ "D and A are rows of one array", "f32 m=4 n=5 k=5 lda=8 ldd=8", { 4, 256, NONE, 0, NONE, NONE, NONE } },
	{ "A first, D behind", "f32 m=4 n=5 k=5 lda=8 ldd=8", { 0, 256, NONE, 4, NONE, NONE, NONE } },
	{ "D and C are rows of one array", "f32 m=4 n=5 k=5 ldc=8 ldd=8 beta=1", { 256, 320, 4, 0, NONE, NONE, NONE } },
	{ "D and B are columns of one row-major array", "f32 m=6 n=4 k=6 ldb=8 ldd=8 order=row", { 256, 4, NONE, 0, NONE, NONE, NONE } },
	{ "A, B, D interleaved", "f32 m=3 n=3 k=3 lda=9 ldb=9 ldd=9", { 0, 3, NONE, 6, NONE, NONE, NONE } },
	{ "the bias in D's gap", "f32 m=4 n=5 k=3 ldd=8 epilog=bias", { 256, 320, NONE, 0, NONE, 4, NONE } },
	{ "one item of A beside one of D", "f32 m=4 n=4 k=4 batch=3 stridea=32 strided=32", { 0, 256, NONE, 16, NONE, NONE, NONE } },
	{ "D right behind A", "f32 m=4 n=4 k=4", { 0, 64, NONE, 16, NONE, NONE, NONE } },
	{ "A right behind D", "f32 m=4 n=4 k=4", { 16, 64, NONE, 0, NONE, NONE, NONE } },
};

static const place bad[] = {
	{ "D over C, one element on", "f32 m=7 n=5 k=3 beta=1", { 0, 64, 128, 129, NONE, NONE, NONE } },
	{ "D over C of another ld", "f32 m=7 n=5 k=3 beta=1 ldc=8", { 0, 64, 128, 128, NONE, NONE, NONE } },
	{ "D over C of another order", "f32 m=5 n=5 k=3 beta=1 orderc=row", { 0, 64, 128, 128, NONE, NONE, NONE } },
	{ "D over a broadcast C", "f32 m=7 n=5 k=3 beta=1 ldc=0", { 0, 64, 128, 128, NONE, NONE, NONE } },
	{ "D over a C shared by the batch", "f32 m=7 n=5 k=3 beta=1 batch=2 stridec=0", { 0, 64, 128, 128, NONE, NONE, NONE } },
	{ "D over A", "f32 m=4 n=4 k=4", { 0, 64, NONE, 0, NONE, NONE, NONE } },
	{ "D over B", "f32 m=4 n=4 k=4", { 0, 64, NONE, 64, NONE, NONE, NONE } },
	{ "D over the last element of A", "f32 m=4 n=4 k=4", { 0, 64, NONE, 15, NONE, NONE, NONE } },
	{ "D's last element over A", "f32 m=4 n=4 k=4", { 15, 64, NONE, 0, NONE, NONE, NONE } },
	{ "D over the bias", "f32 m=4 n=4 k=4 epilog=bias", { 0, 64, NONE, 128, NONE, 130, NONE } },
	{ "D over a mask that is written", "f32 m=4 n=4 k=4 epilog=relu_aux", { 0, 64, NONE, 128, 132, NONE, NONE } },
	{ "D over a mask that is read", "f32 m=4 n=4 k=4 epilog=drelu", { 0, 64, NONE, 128, 128, NONE, NONE } },
	{ "D over aux, one line on", "f32 m=8 n=5 k=3 epilog=dgelu", { 0, 64, NONE, 136, 128, NONE, NONE } },
	{ "D over an aux that is written", "f32 m=8 n=5 k=3 epilog=gelu_aux", { 0, 64, NONE, 129, 128, NONE, NONE } },
	{ "aux over A", "f32 m=8 n=5 k=3 epilog=gelu_aux", { 0, 64, NONE, 128, 8, NONE, NONE } },
	{ "the gradient over A", "f32 m=4 n=4 k=4 epilog=bgrada", { 0, 64, NONE, 128, NONE, NONE, 12 } },
	{ "the gradient over D", "f32 m=4 n=4 k=4 epilog=bgradb", { 0, 64, NONE, 128, NONE, NONE, 130 } },
	{ "the gradient over aux", "f32 m=8 n=4 k=4 epilog=dgelu_bgrad", { 0, 64, NONE, 128, 192, NONE, 200 } },
	{ "missing A", "f32 m=4 n=4 k=4", { NONE, 64, NONE, 128, NONE, NONE, NONE } },
	{ "missing D", "f32 m=4 n=4 k=4", { 0, 64, NONE, NONE, NONE, NONE, NONE } },
	{ "missing C", "f32 m=4 n=4 k=4 beta=1", { 0, 64, NONE, 128, NONE, NONE, NONE } },
	{ "missing bias", "f32 m=4 n=4 k=4 epilog=bias", { 0, 64, NONE, 128, NONE, NONE, NONE } },
	{ "missing aux", "f32 m=4 n=4 k=4 epilog=relu_aux", { 0, 64, NONE, 128, NONE, NONE, NONE } },
	{ "missing gradient", "f32 m=4 n=4 k=4 epilog=bgrada", { 0, 64, NONE, 128, NONE, NONE, NONE } },
	{ "a bias too many", "f32 m=4 n=4 k=4", { 0, 64, NONE, 128, NONE, 256, NONE } },
	{ "an aux too many", "f32 m=4 n=4 k=4 epilog=relu", { 0, 64, NONE, 128, 256, NONE, NONE } },
	{ "a gradient too many", "f32 m=4 n=4 k=4 epilog=drelu", { 0, 64, NONE, 128, 256, NONE, 512 } },
};

/* Pointers of what is empty: NULL (test_problem has that) and not NULL are both right. */
static const place empty[] = {
	{ "an empty D with a pointer", "f32 m=0 n=4 k=4", { 0, 64, NONE, 128, NONE, NONE, NONE } },
	{ "an empty D without", "f32 m=4 n=0 k=4", { 0, 64, NONE, NONE, NONE, NONE, NONE } },
	{ "empty A and B with pointers", "f32 m=4 n=4 k=0 beta=1", { 0, 64, 128, 192, NONE, NONE, NONE } },
	{ "a batch of nothing with pointers", "f32 m=4 n=4 k=4 batch=0 beta=1 epilog=bias", { 0, 64, 128, 192, NONE, 256, NONE } },
	{ "a batch of nothing, all in one place", "f32 m=4 n=4 k=4 batch=0 beta=1 epilog=bias", { 0, 0, 0, 0, NONE, 0, NONE } },
	{ "A and B that alpha = 0 does not read", "f32 m=4 n=4 k=4 alpha=0 beta=1", { 0, 64, 128, 192, NONE, NONE, NONE } },
};

int main(void)
{
	const char *why = "";
	context = test_context(0, &why);
	if (!context)
		return without_context(why);
	for (int i = 0; i < COUNT(good); i++)
		accepted(&good[i]);
	for (int i = 0; i < COUNT(empty); i++)
		accepted(&empty[i]);
	for (int i = 0; i < COUNT(bad); i++)
		refused(&bad[i]);
	epg_context_destroy(context);
	return done_testing();
}
