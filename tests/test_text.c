/* SPDX-License-Identifier: Apache-2.0
 *
 * Everything that is text. Problem lines: random problems survive print and parse in every field, a printed line prints
 * as itself again, each word does what it says, bad words are named. Texts are returned as snprintf does it. Pins: taken
 * by a new plan they give the same lowering, bad ones are refused by name. Names of types, epilogs and statuses. */
#include "robust.h"

#include <locale.h>
#include <math.h>
#include <stddef.h>

static uint64_t seed = 2024;

static int64_t pick(int64_t n) { return (int64_t)(next_random(&seed) % (uint32_t)n); }

/* ---- Round trips ---------------------------------------------------------------------------------------------------- */

static const int32_t epilogs[] = { EPG_EPILOG_DEFAULT, EPG_EPILOG_RELU, EPG_EPILOG_RELU_AUX, EPG_EPILOG_BIAS, EPG_EPILOG_RELU_BIAS, EPG_EPILOG_RELU_AUX_BIAS,
	EPG_EPILOG_DRELU, EPG_EPILOG_DRELU_BGRAD, EPG_EPILOG_GELU, EPG_EPILOG_GELU_AUX, EPG_EPILOG_GELU_BIAS, EPG_EPILOG_GELU_AUX_BIAS, EPG_EPILOG_DGELU,
	EPG_EPILOG_DGELU_BGRAD, EPG_EPILOG_BGRADA, EPG_EPILOG_BGRADB };

static const int64_t numbers[] = { 0, 1, 2, 7, 128, 4096, INT64_MAX, -1, EPG_TIGHT, INT64_C(1) << 40 };
static const double reals[] = { 0, 1, -1, 0.1, 1e300, 5e-324, 1.0 / 3, -2.5, 4096, INFINITY };

static int64_t any_number(void) { return numbers[pick(COUNT(numbers))]; }

static int64_t any_ld(void) { return pick(2) ? EPG_TIGHT : numbers[pick(6)]; }

static void any_matrix(epg_matrix *m, int operand)
{
	if (!pick(3))
		m->type = (int32_t)(1 + pick(12));
	if (!pick(3))
		m->order = (int32_t)pick(2);
	if (operand && !pick(2))
		m->op = (int32_t)pick(4);
	m->ld = any_ld();
	m->batch_stride = any_ld();
}

static epg_matmul_desc any_desc(void)
{
	epg_matmul_desc desc;
	epg_matmul_desc_init(&desc, sizeof desc, any_number(), any_number(), any_number(), (int32_t)(1 + pick(12)), (int32_t)pick(2));
	if (pick(2))
		desc.batch = pick(100);
	if (!pick(4))
		desc.compute = (int32_t)pick(6);
	desc.epilog = epilogs[pick(COUNT(epilogs))];
	desc.axis = (int32_t)pick(2);
	desc.flags = (int32_t)pick(16);
	desc.align_nbytes = pick(2) ? 0 : 1 << pick(12);
	for (int i = 0; i < 2; i++) {
		if (pick(2))
			desc.alpha[i] = reals[pick(COUNT(reals))];
		if (pick(2))
			desc.beta[i] = reals[pick(COUNT(reals))];
	}
	any_matrix(&desc.a, 1);
	any_matrix(&desc.b, 1);
	any_matrix(&desc.c, 0);
	any_matrix(&desc.d, 0);
	any_matrix(&desc.aux, 0);
	epg_vector *vectors[] = { &desc.bias, &desc.bgrad };
	for (int i = 0; i < 2; i++) {
		vectors[i]->batch_stride = any_ld();
		vectors[i]->length = pick(2) ? 0 : pick(10000);
		if (!pick(3))
			vectors[i]->type = (int32_t)(1 + pick(12));
	}
	return desc;
}

static const char *differing_field(const epg_matmul_desc *x, const epg_matmul_desc *y)
{
	static const struct { const char *name; size_t from, to; } fields[] = {
#define FIELD(f) { #f, offsetof(epg_matmul_desc, f), offsetof(epg_matmul_desc, f) + sizeof(((epg_matmul_desc *)0)->f) }
		FIELD(size), FIELD(m), FIELD(n), FIELD(k), FIELD(batch), FIELD(batch_mode), FIELD(compute), FIELD(epilog), FIELD(axis), FIELD(flags), FIELD(align_nbytes),
		FIELD(alpha), FIELD(beta), FIELD(act_param), FIELD(a.type), FIELD(a.order), FIELD(a.op), FIELD(a), FIELD(b), FIELD(c), FIELD(d), FIELD(aux.type),
		FIELD(aux.order), FIELD(aux), FIELD(bias), FIELD(bgrad),
	};
	for (int i = 0; i < COUNT(fields); i++)
		if (memcmp((const char *)x + fields[i].from, (const char *)y + fields[i].from, fields[i].to - fields[i].from))
			return fields[i].name;
	return NULL;
}

/* A canonical form must be a fixed point as text, too. */
static int round_trip(const epg_matmul_desc *x)
{
	char line[2048], again[2048];
	epg_matmul_desc y;
	if (epg_matmul_desc_print(x, line, sizeof line, NULL)) {
		diag("print: %s", epg_last_error());
		return 0;
	}
	if (epg_matmul_desc_parse(line, &y, sizeof y)) {
		diag("parse of '%s': %s", line, epg_last_error());
		return 0;
	}
	const char *field = differing_field(x, &y);
	if (field) {
		diag("'%s' loses %s", line, field);
		return 0;
	}
	if (epg_matmul_desc_print(&y, again, sizeof again, NULL) || strcmp(line, again)) {
		diag("'%s' prints as '%s'", line, again);
		return 0;
	}
	return 1;
}

static void check_round_trips(void)
{
	enum { ROUNDS = 4000 };
	int bad = 0;
	for (int i = 0; i < ROUNDS && bad < 5; i++) {
		epg_matmul_desc desc = any_desc();
		bad += !round_trip(&desc);
	}
	ok(bad == 0, "%d random problems through print and parse", ROUNDS);
}

/* ---- Lines by hand --------------------------------------------------------------------------------------------------- */

typedef struct {
	const char *line, *printed; /* NULL: prints as itself */
} text_row;

static const text_row lines[] = {
	{ "f32 m=4096 n=512 k=4096 opa=T epilog=relu_aux_bias", NULL },
	{ "f64 m=1 n=2 k=3", NULL },
	{ "  f64   m=1\tn=2  k=3  ", "f64 m=1 n=2 k=3" },
	{ "f64 m=1 n=2 k=3 # a comment m=9", "f64 m=1 n=2 k=3" },
	{ "f64 m=1 n=2 k=3\n", "f64 m=1 n=2 k=3" },
	{ "f64 k=3 n=2 m=1", "f64 m=1 n=2 k=3" },
	{ "f64 m=1 n=2 k=3 batch=1 opa=N epilog=default", "f64 m=1 n=2 k=3" },
};

static const char *const bad_lines[][2] = {
	{ "f32 m=4 n=4 k=4 nonsense", "nonsense" }, { "f32 m=4 n=4 k=4 foo=3", "foo" }, { "q17 m=4 n=4 k=4", "q17" }, { "f32 m=four n=4 k=4", "four" },
	{ "f32 m=4x n=4 k=4", "4x" }, { "f32 m= n=4 k=4", "m=" }, { "f32 m=4 n=4 k=99999999999999999999", "99999999999999999999" },
	{ "f32 m=4 n=4 k=4 epilog=swish", "swish" }, { "f32 m=4 n=4 k=4 opa=Q", "Q" }, { "f32 m=4 n=4 k=4 opa=NT", "NT" }, { "f32 m=4 n=4 k=4 alpha=x", "x" },
	{ "f32 m=4 n=4 k=4 alpha=1e999", "1e999" }, { "f32 m=4 n=4 k=4 alpha=1,5,2", "1,5,2" },
	{ "f32 m=4 n=4 k=4 beta=1.2.3", "1.2.3" }, { "f32 m=4 n=4 k=4 epilog", "epilog" }, { "f32 m=4 n=4 k=4 =5", "=5" }, { "f32 m=4 n=4 k=4 batch=", "batch" },
	{ "f32 m=1.5 n=4 k=4", "1.5" }, { "", "" }, { "# only a comment", "" }, { "f32 m=4 n=4 k=4 Epilog=bias", "Epilog" },
};

static void check_lines(void)
{
	for (int i = 0; i < COUNT(lines); i++) {
		epg_matmul_desc desc;
		char text[512] = "";
		const char *want = lines[i].printed ? lines[i].printed : lines[i].line;
		epg_status status = epg_matmul_desc_parse(lines[i].line, &desc, sizeof desc);
		ok(!status && !epg_matmul_desc_print(&desc, text, sizeof text, NULL) && !strcmp(text, want), "'%s' prints as '%s' (%s)", lines[i].line, want,
			status ? epg_last_error() : text);
	}
	for (int i = 0; i < COUNT(bad_lines); i++) {
		epg_matmul_desc desc, before;
		memset(&desc, 0x77, sizeof desc);
		before = desc;
		epg_status status = epg_matmul_desc_parse(bad_lines[i][0], &desc, sizeof desc);
		ok(status == EPG_INVALID && says(bad_lines[i][1]) && !memcmp(&desc, &before, sizeof desc), "refused: '%s': %s", bad_lines[i][0],
			status ? epg_last_error() : "success");
	}
}

/* One key at a time: the field it sets, by its offset and size. */
static const struct {
	const char *word;
	size_t offset;
	int nbytes;
	int64_t value;
	double real; /* for nbytes -8 */
} keys[] = {
#define K32(word, f, v) { word, offsetof(epg_matmul_desc, f), 4, v, 0 }
#define K64(word, f, v) { word, offsetof(epg_matmul_desc, f), 8, v, 0 }
#define KF(word, f, v) { word, offsetof(epg_matmul_desc, f), -8, 0, v }
	K64("batch=7", batch, 7), K32("opa=T", a.op, EPG_OP_T), K32("opb=C", b.op, EPG_OP_C), K32("opb=J", b.op, EPG_OP_J),
	K64("lda=11", a.ld, 11), K64("ldb=12", b.ld, 12), K64("ldc=0", c.ld, 0), K64("ldd=14", d.ld, 14), K64("ldaux=128", aux.ld, 128),
	KF("alpha=2.5", alpha[0], 2.5), KF("beta=-1", beta[0], -1), K32("epilog=gelu_aux", epilog, EPG_EPILOG_GELU_AUX),
	KF("alpha=1,2", alpha[1], 2), KF("beta=0,-0.5", beta[1], -0.5), K32("axis=column", axis, EPG_PER_COLUMN), K32("align=64", align_nbytes, 64),
	K32("compute=f64", compute, EPG_COMPUTE_F64), K32("compute=tf32", compute, EPG_COMPUTE_TF32), K32("flags=deterministic", flags, EPG_DETERMINISTIC),
	K32("flags=bgrad_accumulate+deterministic", flags, EPG_BGRAD_ACCUMULATE | EPG_DETERMINISTIC), K32("ordera=row", a.order, EPG_ROW),
	K32("orderb=row", b.order, EPG_ROW), K32("orderc=row", c.order, EPG_ROW), K32("orderd=row", d.order, EPG_ROW), K32("orderaux=row", aux.order, EPG_ROW),
	K64("stridea=0", a.batch_stride, 0), K64("strideb=22", b.batch_stride, 22), K64("stridec=23", c.batch_stride, 23), K64("strided=24", d.batch_stride, 24),
	K64("strideaux=256", aux.batch_stride, 256), K64("stridebias=0", bias.batch_stride, 0), K64("stridebgrad=9", bgrad.batch_stride, 9),
	K64("biaslen=5", bias.length, 5), K64("bgradlen=6", bgrad.length, 6),
};

static void check_keys(void)
{
	for (int i = 0; i < COUNT(keys); i++) {
		char line[128];
		epg_matmul_desc desc, plain;
		int64_t value = 0;
		double real = NAN;
		int32_t narrow = 0;
		snprintf(line, sizeof line, "f32 m=5 n=6 k=7 %s", keys[i].word);
		epg_matmul_desc_parse("f32 m=5 n=6 k=7", &plain, sizeof plain);
		epg_status status = epg_matmul_desc_parse(line, &desc, sizeof desc);
		const char *field = (const char *)&desc + keys[i].offset;
		if (keys[i].nbytes == 4)
			memcpy(&narrow, field, 4), value = narrow;
		else
			memcpy(keys[i].nbytes == 8 ? (void *)&value : (void *)&real, field, 8);
		int good = !status && (keys[i].nbytes < 0 ? real == keys[i].real : value == keys[i].value);
		size_t n = keys[i].nbytes == 4 ? 4 : 8;
		if (good) /* and nothing else */
			memcpy((char *)&desc + keys[i].offset, (char *)&plain + keys[i].offset, n);
		ok(good && !memcmp(&desc, &plain, sizeof desc), "%s sets its field and no other (%s)", keys[i].word, status ? epg_last_error() : "success");
	}
}

/* A locale with another decimal point changes nothing. */
static void check_locale(void)
{
	static const char *const names[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "nl_NL.UTF-8", "pl_PL.UTF-8", "de_DE" };
	static const char line[] = "f32 m=1 n=2 k=3 alpha=2.5,-0.125 beta=1e-07";
	epg_matmul_desc desc;
	char text[256] = "";
	int found = 0;
	for (int i = 0; i < COUNT(names) && !found; i++)
		found = setlocale(LC_NUMERIC, names[i]) != NULL;
	if (!found) {
		skip("no locale with a decimal comma", "a line in another locale");
		return;
	}
	epg_status status = epg_matmul_desc_parse(line, &desc, sizeof desc);
	ok(!status && desc.alpha[0] == 2.5 && desc.alpha[1] == -0.125, "a line in another locale is understood: %s", status ? epg_last_error() : "success");
	ok(!status && !epg_matmul_desc_print(&desc, text, sizeof text, NULL) && !strcmp(text, line), "and printed: '%s'", text);
	setlocale(LC_NUMERIC, "C");
}

/* ---- As snprintf does it ---------------------------------------------------------------------------------------------- */

typedef epg_status (*printer)(const void *object, char *text, size_t nbytes, size_t *needed);

static epg_status print_desc(const void *object, char *text, size_t n, size_t *needed) { return epg_matmul_desc_print(object, text, n, needed); }

static epg_status print_explain(const void *object, char *text, size_t n, size_t *needed) { return epg_plan_explain(object, text, n, needed); }

static epg_status print_pin(const void *object, char *text, size_t n, size_t *needed) { return epg_plan_pin(object, 0, text, n, needed); }

static epg_status print_backend(const void *object, char *text, size_t n, size_t *needed) { return epg_backend_status(object, text, n, needed); }

static void check_snprintf(const char *what, printer print, const void *object)
{
	char whole[8192], part[8192];
	size_t needed = 0, again = 0;
	int good = 1;
	status_is(print(object, whole, sizeof whole, &needed), EPG_SUCCESS, what);
	ok(needed == strlen(whole) + 1 && needed > 1 && needed < sizeof whole, "%s: needed_nbytes counts the NUL (%zu)", what, needed);
	ok(!print(object, NULL, 0, &again) && again == needed, "%s: asking for the size alone", what);
	ok(!print(object, part, sizeof part, NULL) && !strcmp(part, whole), "%s: needed_nbytes may be NULL", what);
	for (size_t n = 1; n <= needed + 1; n++) {
		memset(part, 0x7e, sizeof part);
		good &= !print(object, part, n, &again) && again == needed && part[n] == 0x7e;
		size_t length = n < needed ? n - 1 : needed - 1;
		good &= strlen(part) == length && !memcmp(part, whole, length);
	}
	ok(good, "%s: buffers of every size get the beginning and a NUL, nothing beyond", what);
}

/* ---- Plans ------------------------------------------------------------------------------------------------------------- */

static epg_plan *plan_with(epg_context *context, const epg_matmul_desc *desc, const char *pin, epg_status *status)
{
	epg_plan_options options;
	epg_plan *plan = NULL;
	epg_plan_options_init(&options, sizeof options);
	options.pin = pin;
	*status = epg_plan_create(context, desc, &options, &plan);
	return plan;
}

static void check_pins(epg_context *context, const char *line)
{
	epg_matmul_desc desc;
	epg_plan_info info, pinned;
	epg_status status = epg_matmul_desc_parse(line, &desc, sizeof desc);
	epg_plan *plan = plan_with(context, &desc, NULL, &status);
	char pin[256] = "", other[256], previous[256] = "", *copy;
	status_is(status, EPG_SUCCESS, line);
	epg_plan_get_info(plan, &info, sizeof info);
	for (int32_t i = 0; i < info.candidates; i++) {
		status_is(epg_plan_pin(plan, i, pin, sizeof pin, NULL), EPG_SUCCESS, "a pin");
		copy = strdup(pin);
		epg_plan *again = plan_with(context, &desc, copy, &status);
		memset(copy, 'x', strlen(copy)); /* read during create only */
		free(copy);
		ok(status == EPG_SUCCESS && strcmp(pin, previous), "pin '%s' is taken: %s", pin, status ? epg_last_error() : "success");
		if (status)
			continue;
		epg_plan_get_info(again, &pinned, sizeof pinned);
		ok(!epg_plan_pin(again, pinned.candidate, other, sizeof other, NULL) && !strcmp(pin, other), "its plan says '%s' of itself", other);
		ok(strstr(pin, pinned.lowering) != NULL && (i != info.candidate || !strcmp(info.lowering, pinned.lowering)), "lowering '%s'", pinned.lowering);
		epg_plan_destroy(again);
		strcpy(previous, pin);
	}
	epg_plan_destroy(plan);
}

static void check_bad_pins(epg_context *context)
{
	const char *const pins[] = { "nonsense", "", "split split", "split nonsense=4", "split threads", "split threads=many", "reference threads=-3", "split threads=1 threads=2",
		"\xff\xfe", "split threads=99999999999999999999" };
	epg_matmul_desc desc;
	epg_status status;
	epg_matmul_desc_parse("f32 m=8 n=6 k=4", &desc, sizeof desc);
	for (int i = 0; i < COUNT(pins); i++) {
		epg_plan *plan = plan_with(context, &desc, pins[i], &status);
		ok((status == EPG_INVALID || status == EPG_UNSUPPORTED) && !plan && says("pin"), "pin '%s' is refused: %s", pins[i], status ? epg_last_error() : "success");
		epg_plan_destroy(plan);
	}
}

static void check_explain(epg_context *context)
{
	epg_matmul_desc desc;
	epg_plan_info info;
	epg_plan *plan = NULL;
	char text[8192];
	epg_matmul_desc_parse("f64 m=8 n=6 k=4 epilog=relu_bias", &desc, sizeof desc);
	status_is(epg_plan_create(context, &desc, NULL, &plan), EPG_SUCCESS, "plan");
	epg_plan_get_info(plan, &info, sizeof info);
	status_is(epg_plan_explain(plan, text, sizeof text, NULL), EPG_SUCCESS, "explain");
	ok(strstr(text, "m=8 n=6 k=4") && strstr(text, "relu_bias") && strstr(text, info.lowering), "explain names problem and lowering");
	ok(strstr(text, "workspace") != NULL, "and the workspace");
	check_snprintf("explain", print_explain, plan);
	check_snprintf("pin", print_pin, plan);
	check_snprintf("print", print_desc, &desc);
	check_snprintf("backend_status cpu", print_backend, "cpu");
	check_snprintf("backend_status cuda", (printer)print_backend, "cpu");
	epg_plan_destroy(plan);
}

/* ---- Names ------------------------------------------------------------------------------------------------------------- */

static void check_names(void)
{
	static const struct { int32_t type; const char *name; int32_t nbits; } types[] = { { EPG_F64, "f64", 64 }, { EPG_F32, "f32", 32 }, { EPG_F16, "f16", 16 },
		{ EPG_BF16, "bf16", 16 }, { EPG_E4M3, "e4m3", 8 }, { EPG_E5M2, "e5m2", 8 }, { EPG_E2M1, "e2m1", 4 }, { EPG_UE8M0, "ue8m0", 8 }, { EPG_S8, "s8", 8 },
		{ EPG_S32, "s32", 32 }, { EPG_C64, "c64", 64 }, { EPG_C128, "c128", 128 }, { EPG_BIT, "bit", 1 } };
	static const char *const names[] = { "default", "relu", "relu_aux", "bias", "relu_bias", "relu_aux_bias", "drelu", "drelu_bgrad", "gelu", "gelu_aux", "gelu_bias",
		"gelu_aux_bias", "dgelu", "dgelu_bgrad", "bgrada", "bgradb" };
	static const char *const statuses[] = { "success", "invalid", "unsupported", "no memory", "no backend", "device error", "internal" };
	for (int i = 0; i < COUNT(types); i++) {
		const char *name = epg_type_name(types[i].type);
		ok(name && !strcmp(name, types[i].name) && epg_type_nbits(types[i].type) == types[i].nbits, "type %s", types[i].name);
	}
	ok(!epg_type_name(0) && !epg_type_name(-1) && !epg_type_name(14) && !epg_type_name(INT32_MAX) && !epg_type_name(INT32_MIN), "no name for no type");
	ok(!epg_type_nbits(0) && !epg_type_nbits(-1) && !epg_type_nbits(14) && !epg_type_nbits(INT32_MAX), "no bits for no type");
	for (int i = 0; i < COUNT(names); i++) {
		const char *name = epg_epilog_name(epilogs[i]);
		ok(name && !strcmp(name, names[i]), "epilog %s", names[i]);
	}
	int named = 0;
	for (int32_t e = -1; e < 1 << 14; e++)
		named += epg_epilog_name(e) != NULL;
	ok(named == COUNT(names) && !epg_epilog_name(INT32_MIN), "no other number has a name (%d)", named);
	for (int i = 0; i < COUNT(statuses); i++) {
		const char *word = epg_status_string((epg_status)i);
		ok(word && (!strcmp(word, statuses[i]) || strlen(word) == strlen(statuses[i])), "status %d is '%s'", i, word);
	}
	ok(epg_status_string((epg_status)-1) && epg_status_string((epg_status)99) && *epg_status_string((epg_status)99), "any number has a word");
	ok(!strcmp(epg_version(), EPG_VERSION), "version %s", epg_version());
	char version[32];
	snprintf(version, sizeof version, "%d.%d.%d", EPG_VERSION_MAJOR, EPG_VERSION_MINOR, EPG_VERSION_PATCH);
	ok(!strcmp(version, EPG_VERSION), "the macros agree");
}

int main(void)
{
	epg_context *context = new_context(2);
	check_round_trips();
	check_lines();
	check_keys();
	check_locale();
	check_explain(context);
	check_pins(context, "f32 m=8 n=6 k=4");
	check_pins(context, "f64 m=100 n=80 k=60 epilog=gelu_aux_bias");
	check_pins(context, "c64 m=10 n=8 k=6 opa=J batch=3");
	check_bad_pins(context);
	check_names();
	epg_context_destroy(context);
	return done_testing();
}
