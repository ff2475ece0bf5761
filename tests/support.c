/* SPDX-License-Identifier: Apache-2.0
 *
 * See support.h. The order of the file: helpers, the operands' images, execution, the verdict, problem lines. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* strdup, strtok_r */
#endif
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"

enum { GUARD = 256 };

const int32_t all_epilogs[16] = {
	EPG_EPILOG_DEFAULT, EPG_EPILOG_RELU, EPG_EPILOG_RELU_AUX, EPG_EPILOG_BIAS, EPG_EPILOG_RELU_BIAS, EPG_EPILOG_RELU_AUX_BIAS,
	EPG_EPILOG_DRELU, EPG_EPILOG_DRELU_BGRAD, EPG_EPILOG_GELU, EPG_EPILOG_GELU_AUX, EPG_EPILOG_GELU_BIAS, EPG_EPILOG_GELU_AUX_BIAS,
	EPG_EPILOG_DGELU, EPG_EPILOG_DGELU_BGRAD, EPG_EPILOG_BGRADA, EPG_EPILOG_BGRADB,
};

/* ---- Helpers ---- */

static epg_status context_status;

epg_context *test_context(int threads, const char **why)
{
	epg_context_options options;
	epg_context *context = NULL;
	const char *backend = getenv("EPIGEMM_TEST_BACKEND");
	context_status = epg_context_options_init(&options, sizeof options);
	options.backend = backend && *backend ? backend : "cpu";
	options.threads = threads;
	if (!context_status)
		context_status = epg_context_create(&options, &context);
	if (context_status && why)
		*why = epg_last_error();
	return context_status ? NULL : context;
}

int without_context(const char *why)
{
	if (context_status == EPG_NO_BACKEND)
		return skip_all(why);
	ok(0, "a context: %s", why);
	return done_testing();
}

int context_threads(const epg_context *context)
{
	epg_context_info info;
	return epg_context_get_info(context, &info, sizeof info) == EPG_SUCCESS ? info.threads : -1;
}

/* splitmix64: every seed is as good as any other. */
int context_is_device(const epg_context *context)
{
	epg_context_info info;
	return epg_context_get_info(context, &info, sizeof info) == EPG_SUCCESS && strcmp(info.backend, "cpu") != 0;
}

uint64_t next_random(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

int random_below(uint64_t *state, int limit) { return (int)(next_random(state) % (uint64_t)limit); }
double random_real(uint64_t *state) { return (double)(next_random(state) >> 11) / 4503599627370496.0 - 1; }

epg_matmul_desc make_desc(int32_t type, int64_t m, int64_t n, int64_t k, int32_t order, int32_t epilog)
{
	epg_matmul_desc desc;
	if (epg_matmul_desc_init(&desc, sizeof desc, m, n, k, type, order) != EPG_SUCCESS)
		diag("epg_matmul_desc_init: %s", epg_last_error());
	desc.epilog = epilog;
	return desc;
}

static int same_place(const epg_matmul_desc *desc, int which)
{
	oracle_layout x, d;
	oracle_get_layout(desc, which, &x);
	oracle_get_layout(desc, EPG_OPERAND_D, &d);
	return x.used && d.used && x.type == d.type && x.order == d.order && x.ld == d.ld && x.stride == d.stride;
}

int can_be_in_place(const epg_matmul_desc *desc, int in_place)
{
	if (in_place == IN_PLACE_C)
		return same_place(desc, EPG_OPERAND_C);
	if (in_place == IN_PLACE_AUX)
		return oracle_is_gradient(desc) && oracle_has_aux(desc) && same_place(desc, EPG_OPERAND_AUX);
	return 1;
}

/* ---- Diagnostics ---- */

static void print_line(const problem *p)
{
	static const char *const data[] = { "integers", "reals" }, *const place[] = { "no", "c", "aux" };
	const check_options *o = &p->options;
	char line[1024] = "(no line)";
	epg_matmul_desc_print(&p->desc, line, sizeof line, NULL);
	diag("%s #test data=%s seed=%llu in_place=%s offset=%d override=%d null=%d%s%s", line, data[o->data],
		(unsigned long long)o->seed, place[o->in_place], o->offset, o->override_scalars, o->null_unread, *o->pin ? " pin=" : "",
		o->pin);
}

void problem_complain(problem *p, const char *format, ...)
{
	char text[512];
	va_list list;
	if (p->complaints++ > 8)
		return;
	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	diag("%s", text);
	if (p->complaints == 1)
		print_line(p);
}

/* ---- Memory of the operands ---- */

/* EPIGEMM_TEST_MEMORY=host: operands stay on the host, and plans are made for that. */
static int on_host(void)
{
	const char *memory = getenv("EPIGEMM_TEST_MEMORY");
	return memory && strcmp(memory, "host") == 0;
}

static epg_status take_memory(epg_context *context, operand *x)
{
	if (!on_host())
		return epg_malloc(context, x->total, &x->device);
	x->device = aligned_alloc(256, (x->total + 255) / 256 * 256);
	return x->device ? EPG_SUCCESS : EPG_NO_MEMORY;
}

static void give_memory(epg_context *context, void *memory)
{
	if (on_host())
		free(memory);
	else
		epg_free(context, memory);
}

static epg_status copy_to(epg_context *context, void *to, const void *from, size_t nbytes)
{
	if (on_host())
		memcpy(to, from, nbytes);
	return on_host() ? EPG_SUCCESS : epg_upload(context, to, from, nbytes, NULL);
}

static epg_status copy_from(epg_context *context, void *to, const void *from, size_t nbytes)
{
	if (on_host())
		memcpy(to, from, nbytes);
	return on_host() ? EPG_SUCCESS : epg_download(context, to, from, nbytes, NULL);
}

/* ---- Images ---- */

void *problem_before(problem *p, int which) { return p->x[which].before + p->x[which].start; }
void *problem_after(problem *p, int which) { return p->x[which].after + p->x[which].start; }

static int is_zero(const double factor[2]) { return factor[0] == 0 && factor[1] == 0; }

static int is_unread(const epg_matmul_desc *desc, int which)
{
	switch (which) {
	case EPG_OPERAND_A: return is_zero(desc->alpha) && !(desc->epilog & EPG_BGRADA);
	case EPG_OPERAND_B: return is_zero(desc->alpha) && !(desc->epilog & EPG_BGRADB);
	case EPG_OPERAND_C: return is_zero(desc->beta);
	default: return 0;
	}
}

static int is_output(const epg_matmul_desc *desc, int which)
{
	return which == EPG_OPERAND_D || which == EPG_OPERAND_BGRAD || (which == EPG_OPERAND_AUX && !oracle_is_gradient(desc));
}

/* The value of an element before execution; NaN in what is to be overwritten or must not be read. */
static oracle_num draw(const problem *p, int which, uint64_t *state)
{
	uint32_t bits = (uint32_t)(next_random(state) >> 32);
	oracle_num x = { bits % 7 - 3.0, bits / 7 % 7 - 3.0 };
	int accumulates = which == EPG_OPERAND_BGRAD && p->desc.flags & EPG_BGRAD_ACCUMULATE;
	if (p->options.data == DATA_REALS)
		x = (oracle_num){ random_real(state), random_real(state) };
	if (p->x[which].layout.type == EPG_BIT)
		x.re = bits & 1;
	else if (which == EPG_OPERAND_AUX)
		x.re = 4 * random_real(state);
	if (p->x[which].layout.type != EPG_BIT && ((p->x[which].is_output && !accumulates) || is_unread(&p->desc, which)))
		x.re = x.im = (oracle_real)__builtin_nan("");
	return x;
}

static void fill_image(problem *p, int which)
{
	operand *x = &p->x[which];
	const oracle_layout *o = &x->layout;
	uint64_t state = p->options.seed * 8 + (uint64_t)which;
	int pattern = x->is_output || o->type == EPG_BIT;
	for (size_t i = 0; i < x->total; i++) /* gaps of inputs are NaN */
		x->before[i] = pattern ? (unsigned char)(i * 167 + 90) : 0xff;
	for (int64_t b = 0; o->used && b < o->batch; b++)
		for (int64_t line = 0; line < o->lines; line++)
			for (int64_t i = 0; i < o->length; i++)
				oracle_store(o->type, x->before + x->start, b * o->stride + line * o->ld + i, draw(p, which, &state));
}

static int open_operand(problem *p, int which)
{
	operand *x = &p->x[which];
	oracle_get_layout(&p->desc, which, &x->layout);
	x->is_output = is_output(&p->desc, which);
	int64_t element = (oracle_type_nbits(x->layout.type) + 7) / 8;
	x->start = (size_t)(GUARD + p->options.offset * element);
	x->total = x->start + (size_t)x->layout.nbytes + GUARD;
	x->before = malloc(x->total);
	x->after = calloc(1, x->total);
	if (!x->before || !x->after)
		return 0;
	fill_image(p, which);
	memcpy(x->after, x->before, x->total);
	return 1;
}

/* The operand whose memory D takes, or -1. */
static int shares_d(const problem *p)
{
	static const int which[] = { -1, EPG_OPERAND_C, EPG_OPERAND_AUX };
	return which[p->options.in_place];
}

int problem_open(problem *p, const epg_matmul_desc *desc, const check_options *options)
{
	memset(p, 0, sizeof *p);
	p->desc = *desc;
	if (options)
		p->options = *options;
	for (int which = 0; which < OPERANDS; which++)
		if (!open_operand(p, which)) {
			problem_complain(p, "no memory for the operands");
			return 0;
		}
	return 1;
}

void problem_solve(problem *p)
{
	oracle_inputs in = { problem_before(p, EPG_OPERAND_A), problem_before(p, EPG_OPERAND_B), problem_before(p, EPG_OPERAND_C),
		problem_before(p, EPG_OPERAND_BIAS), problem_before(p, EPG_OPERAND_AUX), problem_before(p, EPG_OPERAND_BGRAD) };
	oracle_free(&p->want);
	if (!oracle_solve(&p->desc, &in, &p->want))
		problem_complain(p, "no memory for the oracle");
}

void problem_close(problem *p)
{
	oracle_free(&p->want);
	for (int which = 0; which < OPERANDS; which++) {
		free(p->x[which].before);
		free(p->x[which].after);
		if (p->x[which].device)
			give_memory(p->context, p->x[which].device);
	}
	memset(p->x, 0, sizeof p->x);
}

/* ---- Layouts ---- */

static int layout_agrees(problem *p, int which)
{
	static const char names[OPERANDS][6] = { "A", "B", "C", "D", "aux", "bias", "bgrad" };
	const oracle_layout *o = &p->x[which].layout;
	epg_layout got, nothing;
	memset(&nothing, 0, sizeof nothing);
	epg_status status = epg_matmul_desc_layout(&p->desc, which, &got);
	if (status != EPG_SUCCESS) {
		problem_complain(p, "layout of %s: %s", names[which], epg_last_error());
		return 0;
	}
	if (o->type == EPG_NONE && memcmp(&got, &nothing, sizeof got) == 0)
		return 1; /* the epilog does not have it */
	int is_vector = which == EPG_OPERAND_BIAS || which == EPG_OPERAND_BGRAD;
	int good = got.type == o->type && got.rows == o->rows && got.cols == o->cols && got.batch == o->batch && got.nbytes == o->nbytes;
	good &= is_vector || got.order == o->order;
	good &= !o->used || is_vector || got.ld == o->ld;
	good &= !o->used || o->batch < 2 || got.batch_stride == o->stride;
	if (!good)
		problem_complain(p, "layout of %s: type %d order %d %lldx%lld ld %lld batch %lld stride %lld, %lld bytes; the oracle's: type %d order %d %lldx%lld ld %lld batch %lld stride %lld, %lld bytes",
			names[which], got.type, got.order, (long long)got.rows, (long long)got.cols, (long long)got.ld, (long long)got.batch,
			(long long)got.batch_stride, (long long)got.nbytes, o->type, o->order, (long long)o->rows, (long long)o->cols, (long long)o->ld,
			(long long)o->batch, (long long)o->stride, (long long)o->nbytes);
	return good;
}

int problem_layouts_agree(problem *p)
{
	int good = 1;
	for (int which = 0; which < OPERANDS; which++)
		good &= layout_agrees(p, which);
	return good;
}

/* ---- Execution ---- */

static epg_status upload(epg_context *context, problem *p, int which)
{
	operand *x = &p->x[which];
	epg_status status = EPG_SUCCESS;
	if (!x->device)
		status = take_memory(context, x);
	return status ? status : copy_to(context, x->device, x->before, x->total);
}

/* The pointer to give: NULL for what is not used or empty. */
static void *pointer(problem *p, int which)
{
	operand *x = &p->x[which];
	if (!x->layout.used || (p->options.null_unread && !p->options.override_scalars && is_unread(&p->desc, which)))
		return NULL;
	return (unsigned char *)x->device + x->start;
}

static epg_operands pointers(problem *p)
{
	epg_operands x;
	epg_operands_init(&x, sizeof x);
	x.a = pointer(p, EPG_OPERAND_A);
	x.b = pointer(p, EPG_OPERAND_B);
	x.c = pointer(p, EPG_OPERAND_C);
	x.bias = pointer(p, EPG_OPERAND_BIAS);
	x.d = pointer(p, EPG_OPERAND_D);
	x.aux = pointer(p, EPG_OPERAND_AUX);
	x.bgrad = pointer(p, EPG_OPERAND_BGRAD);
	if (shares_d(p) >= 0 && x.d)
		x.d = (unsigned char *)p->x[shares_d(p)].device + p->x[shares_d(p)].start;
	return x;
}

/* alpha or beta in the plan's scalar type; to has room for two doubles. */
static void scalar(int32_t type, const double value[2], void *to)
{
	oracle_store(type, to, 0, (oracle_num){ value[0], value[1] });
}

/* list: for its candidates; nothing is timed where the same bits are wanted, and sums decide otherwise there. */
static epg_status plan_problem(epg_context *context, problem *p, const char *pin, int list, epg_plan **plan)
{
	epg_plan_options options;
	epg_matmul_desc desc = p->desc;
	int all = list && p->options.all_pins > 1 && p->on_device && !oracle_has_bgrad(&desc);
	desc.flags |= all ? EPG_DETERMINISTIC : 0;
	if (p->options.override_scalars) {
		desc.alpha[0] = 7;
		desc.beta[0] = desc.beta[0] == 0 ? 1 : -7;
	}
	epg_status status = epg_plan_options_init(&options, sizeof options);
	options.pin = pin;
	options.workspace_limit_nbytes = p->options.workspace_limit ? p->options.workspace_limit : -1;
	options.rigor = all ? EPG_PATIENT : EPG_ESTIMATE;
	options.memory = on_host() ? EPG_MEMORY_HOST : EPG_MEMORY_DEVICE;
	return status ? status : epg_plan_create(context, &desc, &options, plan);
}

static epg_status execute_plan(problem *p, const epg_plan *plan)
{
	epg_plan_info info;
	epg_operands x = pointers(p);
	double alpha[2], beta[2];
	epg_status status = epg_plan_get_info(plan, &info, sizeof info);
	if (status)
		return status;
	if (p->options.override_scalars) {
		scalar(info.scalar_type, p->desc.alpha, alpha);
		scalar(info.scalar_type, p->desc.beta, beta);
		x.alpha = alpha;
		x.beta = beta;
	}
	return epg_execute(plan, &x, NULL);
}

static epg_status download(epg_context *context, problem *p)
{
	epg_status status = epg_synchronize(context, NULL);
	for (int which = 0; which < OPERANDS && !status; which++)
		if (p->x[which].device)
			status = copy_from(context, p->x[which].after, p->x[which].device, p->x[which].total);
	if (!status && shares_d(p) >= 0) { /* D's image is the one of C or aux, which has no other content */
		operand *d = &p->x[EPG_OPERAND_D], *x = &p->x[shares_d(p)];
		memcpy(d->after, x->after, d->total);
		memcpy(d->before, x->before, d->total);
		memcpy(x->after, x->before, x->total);
	}
	return status;
}

epg_status problem_execute(epg_context *context, problem *p, const char *pin)
{
	epg_plan *plan = NULL;
	epg_status status = EPG_SUCCESS;
	if (!p->context)
		p->context = context; /* the device memory will be of this one */
	p->on_device = context_is_device(context);
	snprintf(p->options.pin, sizeof p->options.pin, "%s", pin ? pin : "");
	for (int which = 0; which < OPERANDS && !status; which++)
		status = upload(context, p, which);
	if (!status)
		status = plan_problem(context, p, pin, 0, &plan);
	if (!status)
		status = execute_plan(p, plan);
	epg_plan_destroy(plan);
	epg_status last = download(context, p);
	return status ? status : last;
}

int problem_untouched(problem *p)
{
	for (int which = 0; which < OPERANDS; which++)
		if (memcmp(p->x[which].before, p->x[which].after, p->x[which].total) != 0) {
			problem_complain(p, "operand %d was changed", which);
			return 0;
		}
	return 1;
}

int problem_run(epg_context *context, problem *p, const char *pin)
{
	epg_status status = problem_execute(context, p, pin);
	if (status == EPG_SUCCESS)
		return problem_compare(p);
	problem_complain(p, "%s: %s", epg_status_string(status), epg_last_error());
	return 0;
}

/* ---- The verdict ---- */

static int is_refused(epg_context *context, problem *p)
{
	epg_status status = problem_execute(context, p, NULL);
	if (status == EPG_UNSUPPORTED)
		return problem_untouched(p);
	problem_complain(p, "%s instead of unsupported", epg_status_string(status));
	return 0;
}

int problem_pins(epg_context *context, problem *p, char pins[MAX_PINS][PIN_NBYTES])
{
	epg_plan *plan = NULL;
	epg_plan_info info;
	int count = 0;
	epg_status status = plan_problem(context, p, NULL, 1, &plan);
	if (!status)
		status = epg_plan_get_info(plan, &info, sizeof info);
	for (int32_t i = 0; !status && i < info.candidates && i < MAX_PINS; i++, count++)
		status = epg_plan_pin(plan, i, pins[i], PIN_NBYTES, NULL);
	epg_plan_destroy(plan);
	if (status || count == 0)
		problem_complain(p, "pins: %s, %d candidates", status ? epg_last_error() : "success", count);
	return status ? 0 : count;
}

/* A plan that is refused as unsupported where that is allowed. */
static int is_refused_rightly(epg_context *context, problem *p)
{
	epg_plan *plan = NULL;
	if (!p->options.may_refuse)
		return 0;
	epg_status status = plan_problem(context, p, NULL, 0, &plan);
	epg_plan_destroy(plan);
	if (status == EPG_UNSUPPORTED)
		diag("refused: %s", epg_last_error());
	return status == EPG_UNSUPPORTED;
}

static int run_pins(epg_context *context, problem *p)
{
	char pins[MAX_PINS][PIN_NBYTES];
	int count = problem_pins(context, p, pins), good = count > 0;
	for (int i = 0; i < count; i++)
		good &= problem_run(context, p, pins[i]);
	return good;
}

int check_problem(epg_context *context, const epg_matmul_desc *desc, const check_options *options)
{
	problem p;
	int good = problem_open(&p, desc, options);
	char pin[PIN_NBYTES];
	memcpy(pin, p.options.pin, sizeof pin);
	if (good && !oracle_is_defined(desc))
		good = is_refused(context, &p);
	else if (good && !is_refused_rightly(context, &p)) {
		good = problem_layouts_agree(&p);
		problem_solve(&p);
		good = good && problem_run(context, &p, *pin ? pin : NULL);
		if (good && p.options.all_pins)
			good = run_pins(context, &p);
	}
	problem_close(&p);
	return good;
}

/* ---- Problem lines ---- */

int parse_desc(const char *line, epg_matmul_desc *desc)
{
	if (epg_matmul_desc_parse(line, desc, sizeof *desc) == EPG_SUCCESS)
		return 1;
	diag("%s", line);
	diag("not understood: %s", epg_last_error());
	return 0;
}

/* The words behind '#test' as print_line writes them. */
static void read_options(const char *line, check_options *o)
{
	char *words, *word, *rest;
	const char *at = strstr(line, "#test ");
	if (!at || !(words = strdup(at + 6)))
		return;
	for (word = strtok_r(words, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest)) {
		if (!strncmp(word, "data=", 5))
			o->data = !strcmp(word + 5, "reals");
		else if (!strncmp(word, "seed=", 5))
			o->seed = strtoull(word + 5, NULL, 10);
		else if (!strncmp(word, "in_place=", 9))
			o->in_place = !strcmp(word + 9, "c") ? IN_PLACE_C : !strcmp(word + 9, "aux") ? IN_PLACE_AUX : IN_PLACE_NO;
		else if (!strncmp(word, "offset=", 7))
			o->offset = atoi(word + 7);
		else if (!strncmp(word, "override=", 9))
			o->override_scalars = atoi(word + 9);
		else if (!strncmp(word, "null=", 5))
			o->null_unread = atoi(word + 5);
		else if (!strncmp(word, "may_refuse=", 11))
			o->may_refuse = o->all_pins = atoi(word + 11);
		else if (!strncmp(word, "pin=", 4))
			snprintf(o->pin, sizeof o->pin, "%s", word + 4);
	}
	free(words);
}

int check_line(epg_context *context, const char *line, const check_options *options)
{
	epg_matmul_desc desc;
	check_options o = options ? *options : (check_options){ 0 };
	read_options(line, &o);
	return parse_desc(line, &desc) && check_problem(context, &desc, &o);
}
