/* SPDX-License-Identifier: Apache-2.0
 *
 * Misuse at execute time: each pointer missing, superfluous, misaligned or over another one, in turn. All operands lie in
 * one arena whose bytes are compared after every refusal, so that 'nothing was written' is tested and not believed.
 * Further NULL and nonsense arguments for every function of the header. */
#include "robust.h"

#include <stddef.h>

enum { REGION = 2048, NREGIONS = 9, ARENA = REGION * NREGIONS };

static _Alignas(256) unsigned char arena[ARENA], before[ARENA];

/* Region of each operand. */
enum { RA, RB, RC, RBIAS, RD, RAUX, RBGRAD, REXTRA, REXTRA2 };

static void *region(int r) { return arena + r * REGION; }

typedef enum { NIL, EXTRA, SHIFT, OVER } action;

typedef struct {
	const char *what, *line; /* the problem, as a problem line */
	size_t field;            /* of epg_operands */
	action act;
	int over, nbytes;        /* OVER: this region; SHIFT and OVER: by so many bytes */
	const char *words[3];
} row;

#define RAB "f32 m=8 n=6 k=4 beta=1 epilog=relu_aux_bias"
#define GAB "f32 m=8 n=6 k=4 beta=1 epilog=gelu_aux_bias"
#define DEF "f32 m=8 n=6 k=4 beta=1"
#define BIA "f32 m=8 n=6 k=4 epilog=bias"
#define DRB "f64 m=8 n=6 k=4 epilog=drelu_bgrad"
#define DGB "f64 m=8 n=6 k=4 epilog=dgelu_bgrad"
#define BGA "f32 m=8 n=6 k=4 epilog=bgrada"
#define BGB "c64 m=8 n=6 k=4 epilog=bias"
#define F(name) offsetof(epg_operands, name)

static const row bad[] = {
	{ "a NULL", RAB, F(a), NIL, 0, 0, { "a", "NULL" } },
	{ "b NULL", RAB, F(b), NIL, 0, 0, { "b", "NULL" } },
	{ "c NULL with beta 1", RAB, F(c), NIL, 0, 0, { "c", "NULL" } },
	{ "d NULL", RAB, F(d), NIL, 0, 0, { "d", "NULL" } },
	{ "bias NULL", RAB, F(bias), NIL, 0, 0, { "bias", "NULL" } },
	{ "mask NULL", RAB, F(aux), NIL, 0, 0, { "aux", "NULL" } },
	{ "gelu aux NULL", GAB, F(aux), NIL, 0, 0, { "aux", "NULL" } },
	{ "input mask NULL", DRB, F(aux), NIL, 0, 0, { "aux", "NULL" } },
	{ "input aux NULL", DGB, F(aux), NIL, 0, 0, { "aux", "NULL" } },
	{ "bgrad NULL", DRB, F(bgrad), NIL, 0, 0, { "bgrad", "NULL" } },
	{ "bgrad of bgrada NULL", BGA, F(bgrad), NIL, 0, 0, { "bgrad", "NULL" } },
	{ "bias NULL, complex", BGB, F(bias), NIL, 0, 0, { "bias", "NULL" } },
	{ "superfluous bias", DEF, F(bias), EXTRA, 0, 0, { "bias" } },
	{ "superfluous aux", DEF, F(aux), EXTRA, 0, 0, { "aux" } },
	{ "superfluous aux beside a bias", BIA, F(aux), EXTRA, 0, 0, { "aux" } },
	{ "superfluous bgrad", RAB, F(bgrad), EXTRA, 0, 0, { "bgrad" } },
	{ "superfluous bias beside a gradient", DRB, F(bias), EXTRA, 0, 0, { "bias" } },
	{ "superfluous scale_a", DEF, F(scale_a), EXTRA, 0, 0, { "scale_a" } },
	{ "superfluous scale_b", DEF, F(scale_b), EXTRA, 0, 0, { "scale_b" } },
	{ "superfluous scale_c", DEF, F(scale_c), EXTRA, 0, 0, { "scale_c" } },
	{ "superfluous scale_d", DEF, F(scale_d), EXTRA, 0, 0, { "scale_d" } },
	{ "superfluous scale_aux", RAB, F(scale_aux), EXTRA, 0, 0, { "scale_aux" } },
	{ "superfluous scale_d_out", DEF, F(scale_d_out), EXTRA, 0, 0, { "scale_d_out" } },
	{ "superfluous amax_d", DEF, F(amax_d), EXTRA, 0, 0, { "amax_d" } },
	{ "superfluous amax_aux", GAB, F(amax_aux), EXTRA, 0, 0, { "amax_aux" } },
	{ "a misaligned", DEF, F(a), SHIFT, 0, 1, { "a", "align", "4" } },
	{ "b misaligned", DEF, F(b), SHIFT, 0, 2, { "b", "align", "4" } },
	{ "c misaligned", DEF, F(c), SHIFT, 0, 3, { "c", "align", "4" } },
	{ "d misaligned", DEF, F(d), SHIFT, 0, 2, { "d", "align", "4" } },
	{ "bias misaligned", RAB, F(bias), SHIFT, 0, 1, { "bias", "align", "4" } },
	{ "gelu aux misaligned", GAB, F(aux), SHIFT, 0, 2, { "aux", "align", "4" } },
	{ "bgrad misaligned", DRB, F(bgrad), SHIFT, 0, 4, { "bgrad", "align", "8" } },
	{ "d over a", DEF, F(d), OVER, RA, 0, { "d", "a", "overlap" } },
	{ "d over the end of a", DEF, F(d), OVER, RA, 8 * 4 * 4 - 4, { "d", "a", "overlap" } },
	{ "d over b", DEF, F(d), OVER, RB, 0, { "d", "b", "overlap" } },
	{ "d shifted over c", DEF, F(d), OVER, RC, 4, { "d", "c", "overlap" } },
	{ "d over c of another ld", "f32 m=8 n=6 k=4 beta=1 ldc=9", F(d), OVER, RC, 0, { "d", "c", "overlap" } },
	{ "d over c of another order", "f32 m=8 n=6 k=4 beta=1 orderc=row", F(d), OVER, RC, 0, { "d", "c", "overlap" } },
	{ "d over bias", RAB, F(d), OVER, RBIAS, 0, { "d", "bias", "overlap" } },
	{ "aux over bias", RAB, F(aux), OVER, RBIAS, 0, { "aux", "bias", "overlap" } },
	{ "aux over a", GAB, F(aux), OVER, RA, 0, { "aux", "a", "overlap" } },
	{ "aux over c", GAB, F(aux), OVER, RC, 0, { "aux", "c", "overlap" } },
	{ "aux shifted over d", GAB, F(aux), OVER, RD, 8, { "aux", "d", "overlap" } },
	{ "bgrad over d", DRB, F(bgrad), OVER, RD, 0, { "bgrad", "d", "overlap" } },
	{ "bgrad over the input aux", DGB, F(bgrad), OVER, RAUX, 0, { "bgrad", "aux", "overlap" } },
	{ "bgrad over a", BGA, F(bgrad), OVER, RA, 0, { "bgrad", "a", "overlap" } },
	{ "d shifted over the input aux", DGB, F(d), OVER, RAUX, 8, { "d", "aux", "overlap" } },
};

static const row good[] = {
	{ "all as it should be", RAB, F(a), SHIFT, 0, 0, { 0 } },
	{ "d exactly c", DEF, F(d), OVER, RC, 0, { 0 } },
	{ "d exactly the input aux", "f64 m=8 n=6 k=4 epilog=dgelu", F(d), OVER, RAUX, 0, { 0 } },
	{ "a and b the same", DEF, F(a), OVER, RB, 0, { 0 } },
	{ "c over a", DEF, F(c), OVER, RA, 0, { 0 } },
	{ "c NULL with beta 0", BIA, F(c), NIL, 0, 0, { 0 } },
	{ "c given with beta 0", BIA, F(c), SHIFT, 0, 0, { 0 } },
	{ "a NULL with alpha 0", "f32 m=8 n=6 k=4 alpha=0 beta=1", F(a), NIL, 0, 0, { 0 } },
	{ "a NULL with k 0", "f32 m=8 n=6 k=0 beta=1 epilog=bias", F(a), NIL, 0, 0, { 0 } },
	{ "d NULL with m 0", "f32 m=0 n=6 k=4", F(d), NIL, 0, 0, { 0 } },
	{ "bias NULL with batch 0", "f32 m=8 n=6 k=4 batch=0 epilog=bias", F(bias), NIL, 0, 0, { 0 } },
	{ "d right behind a", DEF, F(d), OVER, RA, 8 * 4 * 4, { 0 } },
	{ "a at the alignment of its element", DEF, F(a), SHIFT, 0, 4, { 0 } },
	{ "a workspace that nobody needs", DEF, F(workspace), EXTRA, 0, 0, { 0 } },
};

static epg_operands operands_for(const epg_matmul_desc *desc)
{
	epg_operands x = EPG_OPERANDS(.a = region(RA), .b = region(RB), .c = region(RC), .d = region(RD));
	if (desc->epilog & EPG_BIAS)
		x.bias = region(RBIAS);
	if (desc->epilog & EPG_AUX)
		x.aux = region(RAUX);
	if (desc->epilog & (EPG_BGRAD | EPG_BGRADA | EPG_BGRADB))
		x.bgrad = region(RBGRAD);
	return x;
}

static epg_operands operands_of(const row *r, const epg_matmul_desc *desc)
{
	epg_operands x = operands_for(desc);
	char *field = (char *)&x + r->field, *now;
	memcpy(&now, field, sizeof now);
	if (r->act == NIL)
		now = NULL;
	else if (r->act == EXTRA)
		now = region(REXTRA);
	else if (r->act == SHIFT)
		now += r->nbytes;
	else
		now = (char *)region(r->over) + r->nbytes;
	memcpy(field, &now, sizeof now);
	return x;
}

static void reset_arena(void)
{
	fill_numbers(arena, 0, ARENA / 4, 7);
	memcpy(before, arena, ARENA);
}

static void check_row(epg_context *context, const row *r, epg_status want)
{
	epg_matmul_desc desc;
	epg_plan *plan = NULL;
	if (epg_matmul_desc_parse(r->line, &desc, sizeof desc) || epg_plan_create(context, &desc, NULL, &plan)) {
		ok(0, "%s: plan: %s", r->what, epg_last_error());
		return;
	}
	epg_operands x = operands_of(r, &desc);
	reset_arena();
	status_is(epg_execute(plan, &x, NULL), want, r->what);
	if (want) {
		int all = says(r->words[0]) && says(r->words[1]) && says(r->words[2]) && says("m=8 n=6 k=4");
		if (!ok(all, "%s: the sentence", r->what))
			diag("want '%s' '%s' '%s' in: %s", r->words[0], r->words[1] ? r->words[1] : "", r->words[2] ? r->words[2] : "", epg_last_error());
		ok(!memcmp(arena, before, ARENA), "%s: nothing was written", r->what);
		ok(epg_matmul(context, &desc, &x, NULL) == want && !memcmp(arena, before, ARENA), "%s: one-shot alike", r->what);
	}
	epg_plan_destroy(plan);
}

/* Overridden scalars decide what is needed: beta 1 given at execute needs C, alpha 0 needs no A. */
static void check_overrides(epg_context *context)
{
	epg_matmul_desc desc;
	epg_plan *plan = NULL;
	float zero = 0, one = 1;
	epg_matmul_desc_init(&desc, sizeof desc, 8, 6, 4, EPG_F32, EPG_COL);
	status_is(epg_plan_create(context, &desc, NULL, &plan), EPG_SUCCESS, "plan for overrides");
	epg_operands x = operands_for(&desc);
	reset_arena();
	x.c = NULL;
	x.beta = &one;
	status_is(epg_execute(plan, &x, NULL), EPG_INVALID, "beta 1 given, c NULL");
	ok(!memcmp(arena, before, ARENA), "beta 1 given, c NULL: nothing was written");
	x.beta = &zero;
	status_is(epg_execute(plan, &x, NULL), EPG_SUCCESS, "beta 0 given, c NULL");
	x.alpha = &zero;
	x.a = x.b = NULL;
	status_is(epg_execute(plan, &x, NULL), EPG_SUCCESS, "alpha 0 given, a and b NULL");
	x.alpha = &one;
	status_is(epg_execute(plan, &x, NULL), EPG_INVALID, "alpha 1 given, a and b NULL");
	epg_plan_destroy(plan);
}

/* A plan with a workspace refuses one that is a byte short or shifted, and runs with a right one. */
static int check_workspace_of(epg_context *context, const char *line)
{
	epg_matmul_desc desc;
	epg_plan *plan = NULL;
	epg_plan_info info;
	if (epg_matmul_desc_parse(line, &desc, sizeof desc) || epg_plan_create(context, &desc, NULL, &plan)) {
		ok(0, "workspace plan %s: %s", line, epg_last_error());
		return 1;
	}
	epg_plan_get_info(plan, &info, sizeof info);
	if (!info.workspace_nbytes) {
		epg_plan_destroy(plan);
		return 0;
	}
	char *big = aligned_alloc(4096, (2 * info.workspace_nbytes + 8191) / 4096 * 4096);
	float *data = calloc(1 << 16, 4);
	epg_operands x = EPG_OPERANDS(.a = data, .b = data, .c = data, .d = data + (1 << 15), .workspace = big, .workspace_nbytes = info.workspace_nbytes);
	if (desc.epilog & EPG_BIAS)
		x.bias = data;
	status_is(epg_execute(plan, &x, NULL), EPG_SUCCESS, "the workspace that info asks for");
	x.workspace_nbytes--;
	status_is(epg_execute(plan, &x, NULL), EPG_INVALID, "workspace one byte too small");
	ok(says("workspace"), "the sentence says workspace: %s", epg_last_error());
	x.workspace_nbytes = 2 * info.workspace_nbytes;
	x.workspace = big + info.workspace_alignment / 2;
	if (info.workspace_alignment > 1)
		status_is(epg_execute(plan, &x, NULL), EPG_INVALID, "workspace misaligned");
	free(big);
	free(data);
	epg_plan_destroy(plan);
	return 1;
}

static void check_workspace(epg_context *context)
{
	const char *lines[] = { "f32 m=64 n=64 k=64 opa=T beta=1 orderc=row", "c64 m=32 n=32 k=32 opa=J", "c128 m=16 n=16 k=16 opa=J opb=J epilog=bias",
		"f32 m=64 n=64 k=64 lda=0", "f32 m=64 n=64 k=64 beta=1 ldc=0 orderc=row" };
	int found = 0;
	for (int i = 0; i < COUNT(lines); i++)
		found += check_workspace_of(context, lines[i]);
	if (!found)
		skip("no lowering here needs a workspace", "a workspace too small or misaligned");
}

#define REFUSED(call) ok((call) == EPG_INVALID, "refused: %s", #call)
#define TAKEN(call) ok((call) == EPG_SUCCESS, "taken: %s", #call)

static void check_context_arguments(epg_context *context)
{
	epg_context_options options;
	epg_context_info info;
	epg_context *other = NULL;
	char text[64];
	void *p;
	REFUSED(epg_context_options_init(NULL, sizeof options));
	REFUSED(epg_context_options_init(&options, 0));
	TAKEN(epg_context_options_init(&options, sizeof options));
	REFUSED(epg_context_create(&options, NULL));
	options.threads = -1;
	REFUSED(epg_context_create(&options, &other));
	ok(says("threads") && says("-1"), "names threads and -1: %s", epg_last_error());
	options.threads = 4097;
	REFUSED(epg_context_create(&options, &other));
	ok(says("4097") && says("4096"), "names 4097 and 4096: %s", epg_last_error());
	options.threads = 1;
	options.device = 3;
	ok(epg_context_create(&options, &other) != EPG_SUCCESS && says("device") && says("3"), "device 3 of the CPU: %s", epg_last_error());
	options.device = 0;
	options.backend = "abacus";
	REFUSED(epg_context_create(&options, &other));
	ok(says("abacus"), "names the backend: %s", epg_last_error());
	options.backend = "cpu";
	options.reserved = 1;
	REFUSED(epg_context_create(&options, &other));
	options.reserved = 0;
	options.log_level = 99;
	REFUSED(epg_context_create(&options, &other));
	ok(other == NULL, "*context is left alone");
	REFUSED(epg_context_get_info(NULL, &info, sizeof info));
	REFUSED(epg_context_get_info(context, NULL, sizeof info));
	REFUSED(epg_backend_status(NULL, text, sizeof text, NULL));
	REFUSED(epg_backend_status("abacus", text, sizeof text, NULL));
	REFUSED(epg_malloc(NULL, 8, &p));
	REFUSED(epg_malloc(context, 8, NULL));
	ok(epg_malloc(context, SIZE_MAX, &p) == EPG_NO_MEMORY, "SIZE_MAX bytes: no memory");
	ok(epg_malloc(context, SIZE_MAX - 300, &p) == EPG_NO_MEMORY, "nearly SIZE_MAX bytes: no memory");
	REFUSED(epg_upload(NULL, text, text, 0, NULL));
	REFUSED(epg_upload(context, NULL, text, 8, NULL));
	REFUSED(epg_upload(context, text, NULL, 8, NULL));
	REFUSED(epg_download(NULL, text, text, 0, NULL));
	REFUSED(epg_download(context, NULL, text, 8, NULL));
	REFUSED(epg_download(context, text, NULL, 8, NULL));
	REFUSED(epg_synchronize(NULL, NULL));
	TAKEN(epg_synchronize(context, NULL));
	TAKEN(epg_upload(context, NULL, NULL, 0, NULL));
	epg_context_destroy(NULL);
	epg_free(context, NULL);
}

static void check_half_allocator(void)
{
	epg_context_options options;
	epg_context *other = NULL;
	epg_context_options_init(&options, sizeof options);
	options.allocator.free = (void (*)(void *, void *, int32_t, void *))(void (*)(void))check_half_allocator;
	REFUSED(epg_context_create(&options, &other));
	ok(says("alloc"), "names the allocator: %s", epg_last_error());
}

static void check_desc_arguments(epg_context *context)
{
	epg_matmul_desc desc;
	epg_layout layout;
	char text[64];
	int64_t index = 77;
	REFUSED(epg_matmul_desc_init(NULL, sizeof desc, 8, 6, 4, EPG_F32, EPG_COL));
	REFUSED(epg_matmul_desc_init(&desc, 8, 8, 6, 4, EPG_F32, EPG_COL));
	TAKEN(epg_matmul_desc_init(&desc, sizeof desc, 8, 6, 4, EPG_F32, EPG_COL));
	REFUSED(epg_matmul_desc_layout(NULL, EPG_OPERAND_A, &layout));
	REFUSED(epg_matmul_desc_layout(&desc, EPG_OPERAND_A, NULL));
	REFUSED(epg_matmul_desc_layout(&desc, -1, &layout));
	REFUSED(epg_matmul_desc_layout(&desc, 99, &layout));
	REFUSED(epg_matmul_desc_print(NULL, text, sizeof text, NULL));
	REFUSED(epg_matmul_desc_print(&desc, NULL, sizeof text, NULL));
	TAKEN(epg_matmul_desc_print(&desc, NULL, 0, NULL));
	REFUSED(epg_matmul_desc_parse(NULL, &desc, sizeof desc));
	REFUSED(epg_matmul_desc_parse("f32 m=1 n=1 k=1", NULL, sizeof desc));
	REFUSED(epg_matmul_desc_parse("f32 m=1 n=1 k=1", &desc, 4));
	REFUSED(epg_scale_index(NULL, EPG_OPERAND_A, 0, 0, &index));
	REFUSED(epg_scale_index(&desc, EPG_OPERAND_A, 0, 0, NULL));
	desc.a.scale = EPG_SCALE_1X128;
	ok(epg_scale_index(&desc, EPG_OPERAND_A, 0, 0, &index) == EPG_UNSUPPORTED && index == 77, "scale index of a mode that is not there");
	(void)context;
}

static void check_plan_arguments(epg_context *context)
{
	epg_matmul_desc desc;
	epg_plan_options options;
	epg_plan_info info;
	epg_plan *plan = NULL, *other = NULL;
	epg_operands x;
	char text[64];
	epg_matmul_desc_init(&desc, sizeof desc, 8, 6, 4, EPG_F32, EPG_COL);
	REFUSED(epg_plan_options_init(NULL, sizeof options));
	REFUSED(epg_plan_options_init(&options, 3));
	TAKEN(epg_plan_options_init(&options, sizeof options));
	REFUSED(epg_plan_create(NULL, &desc, NULL, &other));
	REFUSED(epg_plan_create(context, NULL, NULL, &other));
	REFUSED(epg_plan_create(context, &desc, NULL, NULL));
	options.rigor = 3;
	REFUSED(epg_plan_create(context, &desc, &options, &other));
	ok(says("rigor") && says("3"), "names rigor and 3: %s", epg_last_error());
	options.rigor = EPG_ESTIMATE;
	options.memory = 2;
	REFUSED(epg_plan_create(context, &desc, &options, &other));
	ok(says("memory") && says("2"), "names memory and 2: %s", epg_last_error());
	options.memory = EPG_MEMORY_HOST;
	options.workspace_limit_nbytes = -2;
	REFUSED(epg_plan_create(context, &desc, &options, &other));
	ok(says("workspace") && says("-2"), "names the workspace limit and -2: %s", epg_last_error());
	options.workspace_limit_nbytes = -1;
	options.sm_count = -1;
	REFUSED(epg_plan_create(context, &desc, &options, &other));
	options.sm_count = 0;
	options.reserved = 1;
	REFUSED(epg_plan_create(context, &desc, &options, &other));
	ok(other == NULL, "*plan is left alone");
	options.reserved = 0;
	TAKEN(epg_plan_create(context, &desc, &options, &plan));
	REFUSED(epg_plan_get_info(NULL, &info, sizeof info));
	REFUSED(epg_plan_get_info(plan, NULL, sizeof info));
	TAKEN(epg_plan_get_info(plan, &info, sizeof info));
	REFUSED(epg_plan_explain(NULL, text, sizeof text, NULL));
	REFUSED(epg_plan_pin(NULL, 0, text, sizeof text, NULL));
	REFUSED(epg_plan_pin(plan, -1, text, sizeof text, NULL));
	REFUSED(epg_plan_pin(plan, info.candidates, text, sizeof text, NULL));
	REFUSED(epg_operands_init(NULL, sizeof x));
	REFUSED(epg_operands_init(&x, 0));
	TAKEN(epg_operands_init(&x, sizeof x));
	REFUSED(epg_execute(NULL, &x, NULL));
	REFUSED(epg_execute(plan, NULL, NULL));
	REFUSED(epg_execute(plan, &x, NULL));
	REFUSED(epg_matmul(NULL, &desc, &x, NULL));
	REFUSED(epg_matmul(context, NULL, &x, NULL));
	REFUSED(epg_matmul(context, &desc, NULL, NULL));
	REFUSED(epg_wisdom_save(NULL, "/tmp/x"));
	REFUSED(epg_wisdom_save(context, NULL));
	REFUSED(epg_wisdom_load(NULL, "/tmp/x", NULL, NULL));
	REFUSED(epg_wisdom_load(context, NULL, NULL, NULL));
	epg_plan_destroy(plan);
	epg_plan_destroy(NULL);
}

int main(void)
{
	epg_context *context = new_context(1);
	ok(context != NULL, "context");
	for (int i = 0; i < COUNT(bad); i++)
		check_row(context, &bad[i], EPG_INVALID);
	for (int i = 0; i < COUNT(good); i++)
		check_row(context, &good[i], EPG_SUCCESS);
	check_overrides(context);
	check_workspace(context);
	check_context_arguments(context);
	check_half_allocator();
	check_desc_arguments(context);
	check_plan_arguments(context);
	epg_context_destroy(context);
	return done_testing();
}
