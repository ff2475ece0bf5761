/* SPDX-License-Identifier: Apache-2.0
 *
 * Structs that grow. A program built against an older, shorter struct must run: what it lacks takes init's default, and
 * the bytes behind it, poisoned here, are neither read nor written. One built against a newer, longer struct must run as
 * long as the unknown tail is zero, and be refused, with the name of the struct, when it is not. */
#include "robust.h"

#include <stddef.h>

enum { MORE = 48, POISON = 0xbd };

/* A struct of the future: the known one and MORE bytes behind it. */
#define LONGER(type) struct { type known; unsigned char tail[MORE]; }

static int tail_is(const void *at, size_t from, size_t to, unsigned char want)
{
	for (size_t i = from; i < to; i++)
		if (((const unsigned char *)at)[i] != want)
			return 0;
	return 1;
}

static void poison(void *at, size_t from, size_t to) { memset((char *)at + from, POISON, to - from); }

/* ---- The problem ---------------------------------------------------------------------------------------------- */

typedef struct {
	const char *what;
	size_t nbytes;
	int32_t epilog, operand;
} cut;

static const cut desc_cuts[] = {
	{ "no bgrad", offsetof(epg_matmul_desc, bgrad), EPG_EPILOG_DGELU_BGRAD, EPG_OPERAND_BGRAD },
	{ "half a bgrad", offsetof(epg_matmul_desc, bgrad.batch_stride), EPG_EPILOG_DGELU_BGRAD, EPG_OPERAND_BGRAD },
	{ "no bias", offsetof(epg_matmul_desc, bias), EPG_EPILOG_BIAS, EPG_OPERAND_BIAS },
	{ "no aux", offsetof(epg_matmul_desc, aux), EPG_EPILOG_RELU_AUX, EPG_OPERAND_AUX },
};

static void check_short_desc(epg_context *context, const cut *c)
{
	epg_matmul_desc full, part;
	epg_layout want, got;
	epg_plan *plan = NULL;
	epg_matmul_desc_init(&full, sizeof full, 8, 6, 4, EPG_F64, EPG_COL);
	full.epilog = c->epilog;
	full.batch = 3;
	part = full;
	part.size = c->nbytes;
	poison(&part, c->nbytes, sizeof part);
	status_is(epg_matmul_desc_layout(&full, c->operand, &want), EPG_SUCCESS, c->what);
	status_is(epg_matmul_desc_layout(&part, c->operand, &got), EPG_SUCCESS, c->what);
	ok(!memcmp(&want, &got, sizeof got) && want.nbytes > 0, "desc with %s: its layout is the default", c->what);
	status_is(epg_plan_create(context, &part, NULL, &plan), EPG_SUCCESS, c->what);
	epg_plan_destroy(plan);
	ok(tail_is(&part, c->nbytes, sizeof part, POISON), "desc with %s: nothing was written behind it", c->what);
}

/* An older program's init and parse must not write beyond its struct. */
static void check_short_desc_init(void)
{
	size_t old = offsetof(epg_matmul_desc, bgrad);
	epg_matmul_desc full, part;
	epg_matmul_desc_init(&full, sizeof full, 8, 6, 4, EPG_F64, EPG_ROW);
	poison(&part, 0, sizeof part);
	status_is(epg_matmul_desc_init(&part, old, 8, 6, 4, EPG_F64, EPG_ROW), EPG_SUCCESS, "init of a shorter desc");
	ok(part.size == old && tail_is(&part, old, sizeof part, POISON), "init stays inside a shorter desc");
	full.size = old;
	ok(!memcmp(&full, &part, old), "init fills a shorter desc as a whole one");
	poison(&part, 0, sizeof part);
	status_is(epg_matmul_desc_parse("f64 m=8 n=6 k=4", &part, old), EPG_SUCCESS, "parse into a shorter desc");
	ok(part.size == old && part.m == 8 && tail_is(&part, old, sizeof part, POISON), "parse stays inside a shorter desc");
}

static void check_long_desc(epg_context *context)
{
	LONGER(epg_matmul_desc) x;
	epg_plan *plan = NULL;
	epg_layout layout;
	char text[256];
	poison(&x, 0, sizeof x);
	status_is(epg_matmul_desc_init(&x.known, sizeof x, 8, 6, 4, EPG_F32, EPG_COL), EPG_SUCCESS, "init of a longer desc");
	ok(x.known.size == sizeof x && tail_is(x.tail, 0, MORE, 0), "init zeroes the tail of a longer desc");
	status_is(epg_plan_create(context, &x.known, NULL, &plan), EPG_SUCCESS, "longer desc, zero tail");
	status_is(epg_matmul_desc_layout(&x.known, EPG_OPERAND_A, &layout), EPG_SUCCESS, "layout of a longer desc");
	epg_plan_destroy(plan);
	for (int i = 0; i < MORE; i += MORE - 1) {
		x.tail[i] = 1;
		status_is(epg_plan_create(context, &x.known, NULL, &plan), EPG_INVALID, "longer desc, a byte of the tail is 1");
		ok(says("desc"), "names the struct: %s", epg_last_error());
		ok(epg_matmul_desc_layout(&x.known, EPG_OPERAND_A, &layout) == EPG_INVALID, "layout refuses it too");
		ok(epg_matmul_desc_print(&x.known, text, sizeof text, NULL) == EPG_INVALID, "print refuses it too");
		x.tail[i] = 0;
	}
	poison(&x, 0, sizeof x);
	status_is(epg_matmul_desc_parse("f32 m=8 n=6 k=4", &x.known, sizeof x), EPG_SUCCESS, "parse into a longer desc");
	ok(x.known.size == sizeof x && tail_is(x.tail, 0, MORE, 0), "parse zeroes the tail of a longer desc");
}

static void check_tiny_desc(epg_context *context)
{
	const size_t sizes[] = { 0, 1, sizeof(size_t), offsetof(epg_matmul_desc, k) };
	for (int i = 0; i < COUNT(sizes); i++) {
		epg_matmul_desc desc;
		epg_plan *plan = NULL;
		epg_matmul_desc_init(&desc, sizeof desc, 8, 6, 4, EPG_F32, EPG_COL);
		desc.size = sizes[i];
		ok(epg_plan_create(context, &desc, NULL, &plan) == EPG_INVALID && says("desc") && says("size"), "desc of %zu bytes: %s", sizes[i], epg_last_error());
		ok(epg_matmul_desc_init(&desc, sizes[i], 8, 6, 4, EPG_F32, EPG_COL) == EPG_INVALID, "init refuses %zu bytes", sizes[i]);
	}
}

/* ---- The operands --------------------------------------------------------------------------------------------- */

static void check_operands(epg_context *context)
{
	const size_t cuts[] = { offsetof(epg_operands, workspace_nbytes), offsetof(epg_operands, workspace), offsetof(epg_operands, amax_d),
		offsetof(epg_operands, scale_a), offsetof(epg_operands, alpha) };
	double a[4] = { 1, 2, 3, 4 }, b[4] = { 1, 0, 0, 1 }, d[4];
	epg_matmul_desc desc;
	epg_plan *plan = NULL;
	epg_matmul_desc_init(&desc, sizeof desc, 2, 2, 2, EPG_F64, EPG_COL);
	status_is(epg_plan_create(context, &desc, NULL, &plan), EPG_SUCCESS, "plan");
	for (int i = 0; i < COUNT(cuts); i++) {
		epg_operands x = EPG_OPERANDS(.a = a, .b = b, .d = d);
		x.size = cuts[i];
		poison(&x, cuts[i], sizeof x);
		memset(d, 0, sizeof d);
		status_is(epg_execute(plan, &x, NULL), EPG_SUCCESS, "shorter operands");
		ok(!memcmp(a, d, sizeof d), "operands of %zu bytes: right result", cuts[i]);
	}
	LONGER(epg_operands) y;
	poison(&y, 0, sizeof y);
	status_is(epg_operands_init(&y.known, sizeof y), EPG_SUCCESS, "init of longer operands");
	ok(y.known.size == sizeof y && tail_is(y.tail, 0, MORE, 0) && !y.known.a && !y.known.workspace, "init zeroes longer operands");
	y.known.a = a;
	y.known.b = b;
	y.known.d = d;
	memset(d, 0, sizeof d);
	status_is(epg_execute(plan, &y.known, NULL), EPG_SUCCESS, "longer operands, zero tail");
	ok(!memcmp(a, d, sizeof d), "longer operands: right result");
	y.tail[MORE - 1] = 1;
	memset(d, 0, sizeof d);
	status_is(epg_execute(plan, &y.known, NULL), EPG_INVALID, "longer operands, tail not zero");
	ok(says("operands") && d[0] == 0 && d[3] == 0, "names the struct and writes nothing: %s", epg_last_error());
	y.known.size = sizeof(size_t);
	status_is(epg_execute(plan, &y.known, NULL), EPG_INVALID, "operands of 8 bytes");
	ok(says("operands") && says("size"), "names struct and size: %s", epg_last_error());
	epg_plan_destroy(plan);
}

/* ---- Options -------------------------------------------------------------------------------------------------- */

static void check_context_options(void)
{
	const size_t cuts[] = { offsetof(epg_context_options, reserved), offsetof(epg_context_options, log_level),
		offsetof(epg_context_options, log), offsetof(epg_context_options, allocator), offsetof(epg_context_options, threads) };
	for (int i = 0; i < COUNT(cuts); i++) {
		epg_context_options options;
		epg_context *context = NULL;
		epg_context_options_init(&options, sizeof options);
		options.size = cuts[i];
		poison(&options, cuts[i], sizeof options);
		status_is(epg_context_create(&options, &context), EPG_SUCCESS, "shorter context options");
		epg_context_destroy(context);
		poison(&options, 0, sizeof options);
		status_is(epg_context_options_init(&options, cuts[i]), EPG_SUCCESS, "init of shorter context options");
		ok(options.size == cuts[i] && tail_is(&options, cuts[i], sizeof options, POISON), "init stays inside %zu bytes", cuts[i]);
	}
	LONGER(epg_context_options) y;
	epg_context *context = NULL;
	poison(&y, 0, sizeof y);
	status_is(epg_context_options_init(&y.known, sizeof y), EPG_SUCCESS, "init of longer context options");
	ok(y.known.size == sizeof y && tail_is(y.tail, 0, MORE, 0), "init zeroes the tail");
	status_is(epg_context_create(&y.known, &context), EPG_SUCCESS, "longer context options, zero tail");
	epg_context_destroy(context);
	context = NULL;
	y.tail[0] = 9;
	status_is(epg_context_create(&y.known, &context), EPG_INVALID, "longer context options, tail not zero");
	ok(says("context_options") && !context, "names the struct: %s", epg_last_error());
	y.known.size = 4;
	status_is(epg_context_create(&y.known, &context), EPG_INVALID, "context options of 4 bytes");
}

static void check_plan_options(epg_context *context)
{
	const size_t cuts[] = { offsetof(epg_plan_options, pin), offsetof(epg_plan_options, sm_count), offsetof(epg_plan_options, workspace_limit_nbytes) };
	epg_matmul_desc desc;
	epg_plan *plan = NULL;
	/* This one likes a workspace, so that a missing limit that was read as 0 would show where it needs one. */
	epg_matmul_desc_init(&desc, sizeof desc, 8, 6, 4, EPG_C64, EPG_COL);
	desc.a.op = EPG_OP_J;
	for (int i = 0; i < COUNT(cuts); i++) {
		epg_plan_options options;
		epg_plan_options_init(&options, sizeof options);
		options.size = cuts[i];
		poison(&options, cuts[i], sizeof options);
		status_is(epg_plan_create(context, &desc, &options, &plan), EPG_SUCCESS, "shorter plan options");
		epg_plan_destroy(plan);
		plan = NULL;
	}
	LONGER(epg_plan_options) y;
	poison(&y, 0, sizeof y);
	status_is(epg_plan_options_init(&y.known, sizeof y), EPG_SUCCESS, "init of longer plan options");
	ok(y.known.size == sizeof y && tail_is(y.tail, 0, MORE, 0) && y.known.workspace_limit_nbytes == -1, "init zeroes the tail");
	status_is(epg_plan_create(context, &desc, &y.known, &plan), EPG_SUCCESS, "longer plan options, zero tail");
	epg_plan_destroy(plan);
	plan = NULL;
	y.tail[MORE / 2] = 1;
	status_is(epg_plan_create(context, &desc, &y.known, &plan), EPG_INVALID, "longer plan options, tail not zero");
	ok(says("plan_options") && !plan, "names the struct: %s", epg_last_error());
	y.known.size = sizeof(size_t);
	status_is(epg_plan_create(context, &desc, &y.known, &plan), EPG_INVALID, "plan options of 8 bytes");
}

/* ---- Infos ---------------------------------------------------------------------------------------------------- */

static void check_context_info(epg_context *context)
{
	const size_t cuts[] = { offsetof(epg_context_info, threads_reason), offsetof(epg_context_info, threads), offsetof(epg_context_info, isa),
		offsetof(epg_context_info, isa) + 3, offsetof(epg_context_info, device) };
	LONGER(epg_context_info) full, part;
	poison(&full, 0, sizeof full);
	status_is(epg_context_get_info(context, &full.known, sizeof full.known), EPG_SUCCESS, "context info");
	ok(full.known.size == sizeof full.known && tail_is(full.tail, 0, MORE, POISON), "context info fills its struct and no more");
	ok(!strcmp(full.known.backend, "cpu") && full.known.threads == 1, "context info: cpu, 1 thread");
	for (int i = 0; i < COUNT(cuts); i++) {
		poison(&part, 0, sizeof part);
		status_is(epg_context_get_info(context, &part.known, cuts[i]), EPG_SUCCESS, "shorter context info");
		ok(part.known.size == cuts[i] && tail_is(&part, cuts[i], sizeof part, POISON), "shorter context info stays inside %zu bytes", cuts[i]);
		ok(!memcmp((char *)&part + sizeof(size_t), (char *)&full + sizeof(size_t), cuts[i] - sizeof(size_t)), "and has the same content");
	}
	poison(&part, 0, sizeof part);
	status_is(epg_context_get_info(context, &part.known, sizeof part), EPG_SUCCESS, "longer context info");
	ok(part.known.size == sizeof part.known && tail_is(part.tail, 0, MORE, 0), "the unknown bytes are zeroed, and size says what was filled");
	ok(epg_context_get_info(context, &part.known, sizeof(size_t) - 1) == EPG_INVALID, "an info without room for its size");
}

static void check_plan_info(epg_context *context)
{
	const size_t cuts[] = { offsetof(epg_plan_info, lowering), offsetof(epg_plan_info, scalar_type), offsetof(epg_plan_info, launches) };
	epg_matmul_desc desc;
	epg_plan *plan = NULL;
	LONGER(epg_plan_info) full, part;
	epg_matmul_desc_init(&desc, sizeof desc, 8, 6, 4, EPG_F64, EPG_COL);
	status_is(epg_plan_create(context, &desc, NULL, &plan), EPG_SUCCESS, "plan");
	poison(&full, 0, sizeof full);
	status_is(epg_plan_get_info(plan, &full.known, sizeof full.known), EPG_SUCCESS, "plan info");
	ok(full.known.size == sizeof full.known && tail_is(full.tail, 0, MORE, POISON), "plan info fills its struct and no more");
	ok(full.known.scalar_type == EPG_F64 && full.known.candidates >= 1 && full.known.candidate >= 0 && full.known.candidate < full.known.candidates,
		"plan info makes sense");
	ok(memchr(full.known.lowering, 0, sizeof full.known.lowering) && *full.known.lowering, "and names a lowering");
	for (int i = 0; i < COUNT(cuts); i++) {
		poison(&part, 0, sizeof part);
		status_is(epg_plan_get_info(plan, &part.known, cuts[i]), EPG_SUCCESS, "shorter plan info");
		ok(part.known.size == cuts[i] && tail_is(&part, cuts[i], sizeof part, POISON), "shorter plan info stays inside %zu bytes", cuts[i]);
		ok(!memcmp((char *)&part + sizeof(size_t), (char *)&full + sizeof(size_t), cuts[i] - sizeof(size_t)), "and has the same content");
	}
	poison(&part, 0, sizeof part);
	status_is(epg_plan_get_info(plan, &part.known, sizeof part), EPG_SUCCESS, "longer plan info");
	ok(part.known.size == sizeof part.known && tail_is(part.tail, 0, MORE, 0), "the unknown bytes are zeroed");
	epg_plan_destroy(plan);
}

int main(void)
{
	epg_context *context = new_context(1);
	ok(context != NULL, "context");
	for (int i = 0; i < COUNT(desc_cuts); i++)
		check_short_desc(context, &desc_cuts[i]);
	check_short_desc_init();
	check_long_desc(context);
	check_tiny_desc(context);
	check_operands(context);
	check_context_options();
	check_plan_options(context);
	check_context_info(context);
	check_plan_info(context);
	epg_context_destroy(context);
	return done_testing();
}
