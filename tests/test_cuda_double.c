/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA backend over the test double (tests/double): what an execution may and may not call, pointers without alignment, scalars on
 * the device, devices, captures, vendors without an answer; then every call that can fail, failing in turn. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "double/double.h"
#include "support.h"
#include "tap.h"

static double_state *state;
static epg_context *context;

static epg_status context_status; /* of the last try */

static epg_context *open_context(int32_t device)
{
	epg_context_options options;
	epg_context *made = NULL;
	epg_context_options_init(&options, sizeof options);
	options.backend = "cuda";
	options.device = device;
	context_status = epg_context_create(&options, &made);
	return made;
}

static int says(const char *word) { return strstr(epg_last_error(), word) != NULL; }

/* Nothing broke a rule since the last look. */
static int no_complaint(const char *what)
{
	int good = ok(state->complaint[0] == 0 && state->damaged_guards == 0, "%s: no rule of the vendor was broken", what);
	if (!good)
		diag("%s; %d damaged allocations", state->complaint, state->damaged_guards);
	state->complaint[0] = 0;
	state->damaged_guards = 0;
	return good;
}

/* ---- Executions only launch ---- */

static const char *const lines[] = {
	"f32 m=24 n=20 k=8 epilog=relu_aux_bias", "f64 m=24 n=20 k=8 epilog=gelu_bias", "bf16 m=24 n=20 k=8 epilog=gelu_aux_bias axis=column beta=1",
	"f16 m=24 n=20 k=8 epilog=dgelu_bgrad axis=column", "f32 m=24 n=20 k=8 epilog=drelu_bgrad batch=2", "c64 m=8 n=9 k=5 opa=J epilog=bias", "f32 m=9 n=7 k=5 lda=0 epilog=bgrada",
	"bf16 m=24 n=20 k=0 beta=1 epilog=relu_aux_bias orderaux=row", "f32 m=24 n=20 k=8 epilog=relu_aux orderaux=row",
};

/* Plans a line on operands that are uploaded already, executes, and counts what that called. */
static void check_execution(const char *line)
{
	problem p;
	epg_matmul_desc desc;
	check_options options = { .data = DATA_INTEGERS, .seed = 1 };
	if (!parse_desc(line, &desc) || !problem_open(&p, &desc, &options))
		return;
	problem_solve(&p);
	ok(problem_execute(context, &p, NULL) == EPG_SUCCESS && problem_compare(&p), "%s: right", line);
	epg_plan *plan = NULL;
	epg_operands x;
	epg_operands_init(&x, sizeof x);
	x.a = (char *)p.x[EPG_OPERAND_A].device + p.x[EPG_OPERAND_A].start;
	x.b = (char *)p.x[EPG_OPERAND_B].device + p.x[EPG_OPERAND_B].start;
	x.c = (char *)p.x[EPG_OPERAND_C].device + p.x[EPG_OPERAND_C].start;
	x.d = (char *)p.x[EPG_OPERAND_D].device + p.x[EPG_OPERAND_D].start;
	x.aux = p.x[EPG_OPERAND_AUX].layout.used ? (char *)p.x[EPG_OPERAND_AUX].device + p.x[EPG_OPERAND_AUX].start : NULL;
	x.bias = p.x[EPG_OPERAND_BIAS].layout.used ? (char *)p.x[EPG_OPERAND_BIAS].device + p.x[EPG_OPERAND_BIAS].start : NULL;
	x.bgrad = p.x[EPG_OPERAND_BGRAD].layout.used ? (char *)p.x[EPG_OPERAND_BGRAD].device + p.x[EPG_OPERAND_BGRAD].start : NULL;
	long before = 0, after = 0;
	int planned = epg_plan_create(context, &desc, NULL, &plan) == EPG_SUCCESS;
	for (int call = DOUBLE_MALLOC; call < DOUBLE_DEVICE; call++)
		before += state->count[call];
	int executed = planned && epg_execute(plan, &x, NULL) == EPG_SUCCESS;
	for (int call = DOUBLE_MALLOC; call < DOUBLE_DEVICE; call++)
		after += state->count[call];
	ok(executed && before == after, "%s: an execution allocates, asks and waits for nothing", line);
	epg_plan_destroy(plan);
	problem_close(&p);
	no_complaint(line);
}

/* ---- Pointers ---- */

/* Every operand some elements off in turn, and all together: with 'offset' elements all of them are. */
static void check_unaligned(const char *line)
{
	for (int offset = 0; offset < 4; offset++) {
		epg_matmul_desc desc;
		check_options options = { .data = DATA_INTEGERS, .seed = 7, .offset = offset };
		ok(parse_desc(line, &desc) && check_problem(context, &desc, &options), "%s: operands %d elements off", line, offset);
	}
	no_complaint(line);
}

/* ---- Devices, captures, empty answers ---- */

static void check_devices(void)
{
	epg_context *second = open_context(1);
	epg_matmul_desc desc = make_desc(EPG_F32, 16, 16, 16, EPG_COL, EPG_EPILOG_RELU_BIAS);
	ok(second != NULL && state->current_device == 0, "a context on device 1 leaves device 0 current");
	ok(second && check_problem(second, &desc, NULL) && state->current_device == 0, "so do plans and executions there");
	epg_context_destroy(second);
	ok(state->current_device == 0, "and its end");
	ok(!open_context(2) && says("options.device is 2"), "device 2 is refused: %s", epg_last_error());
}

static void check_capture(void)
{
	epg_matmul_desc desc = make_desc(EPG_F64, 16, 16, 16, EPG_COL, EPG_EPILOG_DRELU_BGRAD);
	epg_plan *plan = NULL;
	void *memory = NULL;
	epg_plan_options options;
	epg_plan_options_init(&options, sizeof options);
	options.rigor = EPG_MEASURE;
	state->capturing = 1;
	ok(epg_plan_create(context, &desc, &options, &plan) == EPG_INVALID && says("captured"), "measuring during a capture is refused: %s", epg_last_error());
	ok(epg_malloc(context, 64, &memory) == EPG_INVALID && says("captured"), "so is memory");
	state->capturing = 0;
	no_complaint("capture");
}

static void check_empty_heuristics(void)
{
	epg_matmul_desc desc = make_desc(EPG_F32, 16, 16, 16, EPG_COL, EPG_EPILOG_RELU_BIAS);
	for (int how = 1; how <= 2; how++) {
		epg_plan *plan = NULL;
		state->empty_heuristics = how;
		ok(epg_plan_create(context, &desc, NULL, &plan) == EPG_UNSUPPORTED && says("m=16 n=16 k=16"), "the vendor has nothing (%d): %.80s", how, epg_last_error());
		state->empty_heuristics = 0;
	}
}

/* Lines from 2^31 bytes on are computed wrongly by this version of the vendor: they are copied, or refused where a line itself is as long. */
static void check_long_lines(void)
{
	static const struct { const char *line, *lowering, *word; } cases[] = {
		{ "f32 m=2 n=2 k=3 lda=536870908", "fused", "" }, { "f32 m=2 n=2 k=3 lda=536870912", "pad", "" }, { "f32 m=2 n=2 k=3 opb=T ldb=536870912 epilog=relu_bias", "pad", "" },
		{ "f32 m=2 n=2 k=3 ldd=536870912 epilog=bias", "split", "" }, { "bf16 m=2 n=2 k=3 ldd=1073741824", "split", "" }, { "f32 m=2 n=2 k=3 ldc=536870912 beta=1", "split", "" },
		{ "f32 m=536870912 n=1 k=1", NULL, "2^31 bytes" }, { "f32 m=2 n=2 k=2147483648", NULL, "k " }, { "f32 m=2 n=2 k=536870912 opa=T", NULL, "2^31 bytes" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		epg_matmul_desc desc;
		epg_plan *plan = NULL;
		epg_plan_info info = { .size = 0 };
		epg_status status = parse_desc(cases[i].line, &desc) ? epg_plan_create(context, &desc, NULL, &plan) : EPG_INTERNAL;
		if (!status)
			epg_plan_get_info(plan, &info, sizeof info);
		ok(cases[i].lowering ? status == EPG_SUCCESS && strcmp(info.lowering, cases[i].lowering) == 0 : status == EPG_UNSUPPORTED && says(cases[i].word), "%s: %s", cases[i].line,
			status ? epg_last_error() : info.lowering);
		epg_plan_destroy(plan);
	}
	no_complaint("long lines");
}

/* A 16-bit product that lies apart because of D's lines gets no bias of D's type. */
static void check_long_lines_with_bias(void)
{
	epg_matmul_desc desc;
	epg_plan *plan = NULL;
	char text[4096] = "";
	if (parse_desc("bf16 m=8 n=8 k=8 ldd=1073741824 epilog=relu_bias", &desc) && epg_plan_create(context, &desc, NULL, &plan) == EPG_SUCCESS)
		epg_plan_explain(plan, text, sizeof text, NULL);
	ok(strstr(text, "cuBLASLt with epilog default") != NULL, "long lines of a 16-bit D: the pass adds the bias");
	epg_plan_destroy(plan);
}

/* A card whose kernels all round before the bias. */
static void check_old_kernels(void)
{
	static const char *const problems[] = { "bf16 m=16 n=16 k=16 epilog=relu_bias", "f16 m=16 n=16 k=16 epilog=gelu_aux_bias beta=1", "bf16 m=16 n=16 k=1 opb=T epilog=relu_aux_bias",
		"f16 m=16 n=16 k=16 epilog=bias beta=1", "bf16 m=24 n=16 k=16 order=row opa=T axis=column epilog=relu_aux_bias beta=1" };
	state->old_kernels = 1;
	for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
		check_options apart = { .data = DATA_REALS, .seed = 3, .all_pins = 2 }, over = { .data = DATA_REALS, .seed = 4, .all_pins = 1, .in_place = IN_PLACE_C };
		ok(check_line(context, problems[i], &apart) && check_line(context, problems[i], &over), "%s: right with old kernels only", problems[i]);
	}
	state->old_kernels = 0;
	no_complaint("old kernels");
}

/* A product that waits for its pass in a small workspace: chunk by chunk, of columns or of batch items. */
static void check_chunks(void)
{
	static const char *const problems[] = { "bf16 m=16 n=200 k=8 epilog=gelu_bias axis=column", "f16 m=24 n=170 k=16 opb=T orderc=row epilog=gelu_aux beta=1",
		"bf16 m=200 n=8 k=8 order=row epilog=relu_aux_bias axis=row", "bf16 m=16 n=24 k=8 batch=5 epilog=gelu_bias axis=column strideb=0", "f16 m=16 n=150 k=8 orderc=row epilog=drelu_bgrad beta=1",
		"f16 m=16 n=150 k=8 orderc=row epilog=drelu_bgrad axis=column beta=1" };
	for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
		check_options options = { .data = DATA_REALS, .seed = 3, .workspace_limit = 8192 };
		long before = state->count[DOUBLE_MATMUL];
		int good = check_line(context, problems[i], &options);
		long chunks = state->count[DOUBLE_MATMUL] - before;
		ok(good && chunks > 1, "%s: right in %ld chunks", problems[i], chunks);
	}
	no_complaint("chunks");
}

/* Any text as a pin: refused, or a plan that computes what is right. */
static void check_damaged_pins(void)
{
	static const char replacements[] = "0179=- x\n";
	epg_matmul_desc desc;
	problem p;
	char pins[MAX_PINS][PIN_NBYTES], damaged[PIN_NBYTES];
	int taken = 0, refused = 0, wrong = 0, count = 0;
	if (!parse_desc("bf16 m=16 n=12 k=9 opa=T epilog=relu_bias", &desc) || !problem_open(&p, &desc, NULL))
		return;
	problem_solve(&p);
	count = problem_pins(context, &p, pins);
	for (int i = 0; i < count; i++)
		for (size_t at = 0; at < strlen(pins[i]); at++)
			for (const char *with = replacements; *with; with++) {
				memcpy(damaged, pins[i], sizeof damaged);
				damaged[at] = *with;
				epg_status status = problem_execute(context, &p, damaged);
				int right = status == EPG_SUCCESS ? problem_compare(&p) : status == EPG_INVALID || status == EPG_UNSUPPORTED;
				taken += status == EPG_SUCCESS;
				refused += status != EPG_SUCCESS && right;
				wrong += !right;
			}
	ok(count > 1 && taken > 0 && refused > 0 && wrong == 0, "damaged pins: %d taken and right, %d refused, %d wrong", taken, refused, wrong);
	problem_close(&p);
	no_complaint("damaged pins");
}

static void check_zero_sizes(void)
{
	static const char *const empty[] = { "f32 m=0 n=5 k=3 epilog=bgradb", "f32 m=5 n=0 k=3 epilog=drelu_bgrad", "f32 m=5 n=4 k=0 beta=1 epilog=bias", "f32 m=5 n=4 k=3 batch=0" };
	for (int i = 0; i < 4; i++) {
		epg_matmul_desc desc;
		long before = state->count[DOUBLE_MATMUL];
		ok(parse_desc(empty[i], &desc) && check_problem(context, &desc, NULL) && state->count[DOUBLE_MATMUL] == before, "%s: never reaches the vendor", empty[i]);
	}
}

/* ---- Scalars on the device ---- */

static void check_device_scalars(void)
{
	epg_matmul_desc desc = make_desc(EPG_F32, 2, 1, 1, EPG_COL, EPG_EPILOG_DEFAULT);
	const float a[2] = { 3, 5 }, b = 2, c[2] = { 10, 20 }, scalars[2] = { 0.5f, -1 };
	float d[2] = { 0, 0 };
	void *memory[5];
	epg_plan *plan = NULL;
	desc.flags = EPG_SCALARS_ON_DEVICE;
	desc.beta[0] = 1;
	const void *const hosts[5] = { a, &b, c, d, scalars };
	const size_t nbytes[5] = { sizeof a, sizeof b, sizeof c, sizeof d, sizeof scalars };
	for (int i = 0; i < 5; i++)
		if (epg_malloc(context, nbytes[i], &memory[i]) || epg_upload(context, memory[i], hosts[i], nbytes[i], NULL))
			diag("%s", epg_last_error());
	epg_operands x = EPG_OPERANDS(.a = memory[0], .b = memory[1], .c = memory[2], .d = memory[3], .alpha = memory[4], .beta = (char *)memory[4] + 4);
	int good = epg_plan_create(context, &desc, NULL, &plan) == EPG_SUCCESS && epg_execute(plan, &x, NULL) == EPG_SUCCESS && epg_download(context, d, memory[3], sizeof d, NULL) == EPG_SUCCESS;
	ok(good && d[0] == -7 && d[1] == -15, "alpha and beta from the device: %g %g", d[0], d[1]);
	x.alpha = x.beta = NULL;
	good = epg_execute(plan, &x, NULL) == EPG_SUCCESS && epg_download(context, d, memory[3], sizeof d, NULL) == EPG_SUCCESS;
	ok(good && d[0] == 16 && d[1] == 30, "without them the desc's: %g %g", d[0], d[1]);
	epg_plan_destroy(plan);
	for (int i = 0; i < 5; i++)
		epg_free(context, memory[i]);
}

/* ---- Everything that can fail ---- */

typedef struct outcome {
	epg_status status;
	int planned;
} outcome;

/* A whole life: context, memory, plan, execution, wisdom's measurement, and everything given back. */
static outcome live(const char *line, int32_t rigor)
{
	outcome o = { EPG_SUCCESS, 0 };
	epg_context *own = open_context(0);
	epg_matmul_desc desc;
	problem p;
	check_options options = { .data = DATA_INTEGERS, .seed = 1 };
	if (!own || !parse_desc(line, &desc))
		return (outcome){ own ? EPG_INVALID : context_status, 0 };
	epg_plan_options plan_options;
	epg_plan_options_init(&plan_options, sizeof plan_options);
	plan_options.rigor = rigor;
	epg_plan *plan = NULL;
	o.status = epg_plan_create(own, &desc, &plan_options, &plan);
	o.planned = o.status == EPG_SUCCESS;
	epg_plan_destroy(plan);
	if (!o.status && problem_open(&p, &desc, &options)) {
		o.status = problem_execute(own, &p, NULL);
		problem_close(&p);
	}
	epg_context_destroy(own);
	return o;
}

static const struct { double_call call; const char *name; } failing[] = {
	{ DOUBLE_MALLOC, "cudaMalloc" }, { DOUBLE_MEMCPY, "cudaMemcpy" }, { DOUBLE_SYNCHRONIZE, "synchronization" }, { DOUBLE_QUERY, "a query" }, { DOUBLE_EVENT, "an event" },
	{ DOUBLE_STREAM, "a stream" }, { DOUBLE_LT_CREATE, "cublasLtCreate" }, { DOUBLE_HEURISTIC, "the heuristic" }, { DOUBLE_ALGO_INIT, "AlgoInit" },
	{ DOUBLE_ALGO_SET, "AlgoConfigSetAttribute" }, { DOUBLE_ALGO_GET, "AlgoConfigGetAttribute" }, { DOUBLE_ALGO_CHECK, "AlgoCheck" }, { DOUBLE_LAYOUT, "a layout" },
	{ DOUBLE_DESC_INIT, "a descriptor" }, { DOUBLE_PREFERENCE, "a preference" }, { DOUBLE_DEVICE, "cudaGetDevice" }, { DOUBLE_MEMSET, "cudaMemset" },
	{ DOUBLE_DESC_SET, "an attribute" }, { DOUBLE_MATMUL, "cublasLtMatmul" }, { DOUBLE_LAUNCH, "a launch" },
};

static int nothing_leaked(const double_state *before)
{
	return state->live_allocations == before->live_allocations && state->live_handles == before->live_handles && state->live_events == before->live_events
		&& state->live_streams == before->live_streams && state->current_device == 0;
}

/* A failure is either told, with a status that fits and the vendor's call in the sentence, or the plan found another way. */
static int right_outcome(const outcome *o, double_call call)
{
	if (o->status == EPG_SUCCESS)
		return 1;
	if (call == DOUBLE_MALLOC)
		return o->status == EPG_NO_MEMORY || o->status == EPG_DEVICE_ERROR;
	if (o->status == EPG_NO_BACKEND)
		return call == DOUBLE_QUERY && says("no usable CUDA device");
	return (o->status == EPG_DEVICE_ERROR || o->status == EPG_UNSUPPORTED) && (says("failed") || says("no lowering"));
}

static void check_failures(const char *line, int32_t rigor)
{
	for (size_t f = 0; f < sizeof failing / sizeof *failing; f++) {
		int told = 0, wrong = 0, leaked = 0, count = 0;
		for (long at = 1; at < 400; at++, count++) {
			double_state before = *state;
			state->fail = failing[f].call;
			state->fail_at = at;
			outcome o = live(line, rigor);
			int reached = state->fail_at == 0;
			state->fail = DOUBLE_NONE;
			state->fail_at = 0;
			if (!reached)
				break;
			told += o.status != EPG_SUCCESS;
			if (!right_outcome(&o, failing[f].call) && !wrong++)
				diag("call %ld: %s: %s", at, epg_status_string(o.status), epg_last_error());
			if (!nothing_leaked(&before) && !leaked++)
				diag("call %ld: %ld allocations, %ld handles, %ld events, %ld streams more, device %d", at, state->live_allocations - before.live_allocations,
					state->live_handles - before.live_handles, state->live_events - before.live_events, state->live_streams - before.live_streams, state->current_device);
		}
		ok(wrong == 0 && leaked == 0, "%s, %s: %s fails at each of its %d calls, told %d times", line, rigor ? "MEASURE" : "ESTIMATE", failing[f].name, count, told);
	}
	state->complaint[0] = 0;
}

int main(void)
{
	char directory[4096];
	const char *builddir = getenv("DOUBLE_DIR");
	snprintf(directory, sizeof directory, "%s", builddir ? builddir : "tests/double/.libs");
	setenv("EPIGEMM_PLUGIN_DIR", directory, 1);
	char full[4200];
	snprintf(full, sizeof full, "%s/libcublasLt.so." DOUBLE_SONAME_NUMBER, directory);
	void *library = dlopen(full, RTLD_NOW | RTLD_GLOBAL);
	double_state *(*find)(void) = NULL;
	if (library)
		*(void **)&find = dlsym(library, "epg_double");
	if (!find)
		return skip_all(dlerror());
	state = find();
	context = open_context(0);
	if (!ok(context != NULL, "a context on the double"))
		diag("%s", epg_last_error());
	if (!context)
		return done_testing();
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		check_execution(lines[i]);
		check_unaligned(lines[i]);
	}
	check_devices();
	check_capture();
	check_empty_heuristics();
	check_zero_sizes();
	check_long_lines();
	check_long_lines_with_bias();
	check_old_kernels();
	check_chunks();
	check_damaged_pins();
	check_device_scalars();
	check_failures("f32 m=16 n=12 k=8 epilog=drelu_bgrad", EPG_ESTIMATE);
	check_failures("f32 m=16 n=12 k=8 epilog=drelu_bgrad", EPG_MEASURE);
	check_failures("bf16 m=16 n=12 k=8 epilog=gelu_aux_bias axis=column flags=scalars_on_device", EPG_ESTIMATE);
	check_failures("c64 m=8 n=6 k=5 opa=J epilog=bias", EPG_ESTIMATE);
	epg_context_destroy(context);
	ok(state->live_allocations == 0 && state->live_handles == 0 && state->live_events == 0 && state->live_streams == 0 && state->damaged_guards == 0, "nothing is left: %ld allocations, %ld handles",
		state->live_allocations, state->live_handles);
	return done_testing();
}
