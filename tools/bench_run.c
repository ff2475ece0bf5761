/* SPDX-License-Identifier: Apache-2.0
 *
 * One problem: operands, the plan, one execution that is verified, then --iters samples, each of as many calls as last long enough for the
 * clock, on copies of the operands in turn. A sample ends with epg_synchronize, so on CUDA it is the wall clock of a train of calls. For
 * --compare the same is done with the steps of a program without fusion, and with the vendor's own fused call. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

/* On a device synchronising costs about 10 us, which must not count. CPU threads that just woke may share a processor for some ticks of 8 ms. */
enum { SAMPLE_US = 200, DEVICE_SAMPLE_US = 2000, WARM_US = 40000, MAX_CALLS = 100000, MAX_STEPS = 5, MAX_CEILINGS = 16 };

/* A plan, and which operand of the problem takes which role in it; -1: none. */
typedef struct step {
	epg_plan *plan;
	int role[OPERANDS];
} step;

static double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

/* ---- Operands ---- */

static bool is_read(const epg_matmul_desc *d, int which)
{
	return which != EPG_OPERAND_C || d->beta[0] != 0 || d->beta[1] != 0;
}

static void fill(bench *b, int which)
{
	const epg_layout *x = &b->layout[which];
	bool random = !b->is_output[which] || (which == EPG_OPERAND_BGRAD && b->desc.flags & EPG_BGRAD_ACCUMULATE);
	double scale = which == EPG_OPERAND_AUX ? 4 : 1; /* GELU's gradient is worth seeing to ±4 */
	if (random)
		fill_random(x->type, b->before + b->at[which], (size_t)x->nbytes, scale, (unsigned long long)b->set->seed * 8 + (unsigned)which);
	else
		memset(b->before + b->at[which], 0xff, (size_t)x->nbytes); /* NaN */
}

static void close_bench(bench *b)
{
	epg_free(b->context, b->memory);
	free(b->before), free(b->after);
}

static const char *open_bench(bench *b)
{
	b->copy_nbytes = 256; /* never nothing */
	for (int which = 0; which < OPERANDS; which++) {
		epg_layout *x = &b->layout[which];
		if (epg_matmul_desc_layout(&b->desc, which, x))
			return epg_last_error();
		if (!is_read(&b->desc, which))
			x->nbytes = 0;
		b->is_output[which] = which == EPG_OPERAND_D || which == EPG_OPERAND_BGRAD || (which == EPG_OPERAND_AUX && !(b->desc.epilog & EPG_GRAD));
		b->at[which] = b->copy_nbytes;
		b->copy_nbytes += ((size_t)x->nbytes + 255) / 256 * 256;
	}
	b->copies = 1 + (int64_t)((size_t)b->set->rotating_mb * 1000000 / b->copy_nbytes);
	b->before = calloc(1, b->copy_nbytes);
	if (!b->before)
		return "no memory for the operands";
	for (int which = 0; which < OPERANDS; which++)
		if (b->layout[which].nbytes)
			fill(b, which);
	if (epg_malloc(b->context, b->copy_nbytes * (size_t)b->copies, (void **)&b->memory))
		return epg_last_error();
	for (int64_t i = 0; i < b->copies; i++)
		if (epg_upload(b->context, b->memory + b->copy_nbytes * (size_t)i, b->before, b->copy_nbytes, NULL))
			return epg_last_error();
	return NULL;
}

static void *pointer(const bench *b, const step *s, int role, int64_t copy)
{
	int which = s->role[role];
	return which < 0 || !b->layout[which].nbytes ? NULL : b->memory + b->copy_nbytes * (size_t)copy + b->at[which];
}

static epg_status execute(const bench *b, const step *s, int count, int64_t copy)
{
	epg_status status = EPG_SUCCESS;
	for (int i = 0; i < count && !status; i++) {
		epg_operands x = EPG_OPERANDS(.a = pointer(b, &s[i], EPG_OPERAND_A, copy), .b = pointer(b, &s[i], EPG_OPERAND_B, copy));
		x.c = pointer(b, &s[i], EPG_OPERAND_C, copy), x.d = pointer(b, &s[i], EPG_OPERAND_D, copy);
		x.aux = pointer(b, &s[i], EPG_OPERAND_AUX, copy), x.bias = pointer(b, &s[i], EPG_OPERAND_BIAS, copy), x.bgrad = pointer(b, &s[i], EPG_OPERAND_BGRAD, copy);
		status = epg_execute(s[i].plan, &x, NULL);
	}
	return status;
}

/* ---- Plans ---- */

/* The planner's way (pin NULL) to compute desc on the problem's own operands; 0: refused. */
static int plan_step(const bench *b, const epg_matmul_desc *desc, const char *pin, step *s)
{
	epg_plan_options options;
	*s = (step){.role = {EPG_OPERAND_A, EPG_OPERAND_B, EPG_OPERAND_C, EPG_OPERAND_D, -1, -1, -1}};
	s->role[EPG_OPERAND_AUX] = desc->epilog & EPG_AUX ? EPG_OPERAND_AUX : -1;
	s->role[EPG_OPERAND_BIAS] = desc->epilog & EPG_BIAS ? EPG_OPERAND_BIAS : -1;
	s->role[EPG_OPERAND_BGRAD] = desc->epilog & (EPG_BGRAD | EPG_BGRADA | EPG_BGRADB) ? EPG_OPERAND_BGRAD : -1;
	if (epg_plan_options_init(&options, sizeof options))
		return 0;
	options.rigor = b->set->rigor;
	options.pin = pin;
	return epg_plan_create(b->context, desc, &options, &s->plan) == EPG_SUCCESS;
}

static void free_steps(step *s, int count)
{
	for (int i = 0; i < count; i++)
		epg_plan_destroy(s[i].plan);
}

static void describe(const step *s, result *r)
{
	epg_plan_info info;
	char pin[PIN_NBYTES] = "";
	if (epg_plan_get_info(s->plan, &info, sizeof info) || epg_plan_pin(s->plan, info.candidate, pin, sizeof pin, NULL))
		return;
	size_t length = strcspn(pin, " ");
	snprintf(r->lowering, sizeof r->lowering, "%.*s", (int)length, pin);
	snprintf(r->algorithm, sizeof r->algorithm, "%s", pin[length] ? pin + length + 1 : "");
	r->workspace = (double)info.workspace_nbytes;
}

/* ---- Timing ---- */

static int by_value(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;
	return (a > b) - (a < b);
}

/* Microseconds a call of so many, each on the next copy; NaN when one fails. */
static double train(const bench *b, const step *s, int count, int64_t calls, int64_t *copy)
{
	epg_status status = EPG_SUCCESS;
	double begin = now_us();
	for (int64_t i = 0; i < calls && !status; i++) {
		status = execute(b, s, count, *copy);
		*copy = (*copy + 1) % b->copies;
	}
	if (!status)
		status = epg_synchronize(b->context, NULL);
	return status ? (double)NAN : (now_us() - begin) / (double)calls;
}

static double time_steps(const bench *b, const step *s, int count, int iters, double *us_min)
{
	double samples[MAX_ITERS], least = b->on_device ? DEVICE_SAMPLE_US : SAMPLE_US;
	int64_t copy = 0, calls = 1;
	double us, begin = now_us();
	do
		us = train(b, s, count, 1 + b->set->cold_iters, &copy);
	while (b->threads > 1 && now_us() - begin < WARM_US && !isnan(us));
	for (us = train(b, s, count, 1, &copy); us * (double)calls < least && calls < MAX_CALLS; us = train(b, s, count, calls, &copy))
		calls = us * (double)calls * 2 < least ? calls * 2 : (int64_t)(least / us) + 1; /* the first ones may be slow to start */
	for (int i = 0; i < iters && !isnan(us); i++)
		us = samples[i] = train(b, s, count, calls, &copy);
	if (isnan(us))
		return us;
	qsort(samples, (size_t)iters, sizeof *samples, by_value);
	*us_min = samples[0];
	return samples[iters / 2];
}

/* ---- Ceilings ---- */

static bool is_complex(int32_t type) { return type == EPG_C64 || type == EPG_C128; }

static double flops_of(const epg_matmul_desc *d)
{
	return (is_complex(d->d.type) ? 8.0 : 2.0) * (double)d->m * (double)d->n * (double)d->k * (double)d->batch;
}

/* Each element that is read or written counts once; a broadcast operand has only those it has. */
static double bytes_of(const bench *b)
{
	double sum = 0;
	for (int which = 0; which < OPERANDS; which++) {
		const epg_layout *x = &b->layout[which];
		double elems = (double)x->rows * (double)x->cols * (double)x->batch * epg_type_nbits(x->type) / 8;
		sum += elems < (double)x->nbytes ? elems : (double)x->nbytes;
	}
	return sum;
}

/* The least time of DEFAULT with cubes of the problem's types; or of f32 copied by k = 0; NaN when there is no plan or no memory. */
static double time_square(const bench *like, int64_t size, bool copy, double *flops, double *bytes)
{
	bench b = {.set = like->set, .context = like->context, .on_device = like->on_device, .threads = like->threads};
	step s = {.plan = NULL};
	double us = NAN;
	epg_matmul_desc_init(&b.desc, sizeof b.desc, size, size, copy ? 0 : size, copy ? EPG_F32 : like->desc.a.type, EPG_COL);
	b.desc.beta[0] = copy;
	if (!copy)
		b.desc.c.type = like->desc.c.type, b.desc.d.type = like->desc.d.type, b.desc.compute = like->desc.compute;
	if (!open_bench(&b) && plan_step(&b, &b.desc, NULL, &s))
		time_steps(&b, &s, 1, 5, &us);
	*flops = flops_of(&b.desc), *bytes = bytes_of(&b);
	epg_plan_destroy(s.plan);
	close_bench(&b);
	return us;
}

/* The fastest product of the problem's types, of sizes that are doubled until it takes ENOUGH_US, and a copy that no cache holds: measured at the
 * first call for the types. */
static void ceiling_of(const bench *like, double *gflops, double *gbytes)
{
	enum { ENOUGH_US = 20000, LARGEST = 8192, COPY = 6144 };
	static struct { int32_t types[3]; double gflops; } known[MAX_CEILINGS];
	static int count;
	static double bandwidth;
	const int32_t types[3] = {like->desc.a.type, like->desc.d.type, like->desc.compute};
	double us = 0, flops, bytes;
	int i = 0;
	while (i < count && memcmp(known[i].types, types, sizeof types))
		i++;
	if (bandwidth == 0)
		us = time_square(like, COPY, true, &flops, &bytes), bandwidth = bytes / us * 1e-3, us = 0;
	if (i == count) {
		i = count < MAX_CEILINGS ? count++ : 0;
		memcpy(known[i].types, types, sizeof types);
		for (int64_t size = 256; size <= LARGEST && us < ENOUGH_US; size *= 2) {
			us = time_square(like, size, false, &flops, &bytes);
			known[i].gflops = fmax(known[i].gflops, flops / us * 1e-3);
		}
	}
	*gflops = known[i].gflops, *gbytes = bandwidth;
}

/* ---- Comparisons ---- */

/* The problem with another epilog, on its D in place: k = 0, beta = 1. */
static epg_matmul_desc pass_desc(const bench *b, int32_t epilog)
{
	epg_matmul_desc d = b->desc;
	d.k = 0;
	d.epilog = epilog;
	d.beta[0] = 1, d.beta[1] = 0;
	d.c = d.d;
	d.flags &= ~EPG_BGRAD_ACCUMULATE;
	return d;
}

/* Sums alone: a problem without D whose A (or B) is what is to be summed. */
static epg_matmul_desc sum_desc(const bench *b)
{
	epg_matmul_desc d = b->desc;
	bool rows = d.epilog & EPG_BGRADA || (d.epilog & EPG_BGRAD && d.axis == EPG_PER_ROW);
	if (d.epilog & EPG_BGRAD) {
		d.k = rows ? d.n : d.m;
		d.a = d.b = d.c = d.d;
		*(rows ? &d.b : &d.a) = (epg_matrix){.type = d.d.type, .order = d.d.order, .ld = EPG_TIGHT, .batch_stride = EPG_TIGHT};
	}
	d.epilog = rows ? EPG_EPILOG_BGRADA : EPG_EPILOG_BGRADB;
	*(rows ? &d.n : &d.m) = 0;
	return d;
}

static int add_step(const bench *b, const epg_matmul_desc *desc, step *s, int *count)
{
	step *t = &s[*count];
	int good = plan_step(b, desc, NULL, t);
	*count += good;
	if (desc->k == 0)
		t->role[EPG_OPERAND_A] = t->role[EPG_OPERAND_B] = -1, t->role[EPG_OPERAND_C] = EPG_OPERAND_D;
	if (desc->m == 0 || desc->n == 0) {
		int which = !(b->desc.epilog & EPG_BGRAD) ? t->role[desc->n == 0 ? EPG_OPERAND_A : EPG_OPERAND_B] : EPG_OPERAND_D;
		for (int role = 0; role < EPG_OPERAND_BGRAD; role++)
			t->role[role] = -1;
		t->role[desc->n == 0 ? EPG_OPERAND_A : EPG_OPERAND_B] = which;
	}
	return good;
}

/* The product, then bias, activation and sums, each a pass of its own. NaN when a step is refused. */
static double time_unfused(const bench *b)
{
	const int32_t e = b->desc.epilog, act = e & (EPG_ACT_MASK | EPG_AUX | EPG_GRAD);
	epg_matmul_desc product = b->desc, bias = pass_desc(b, EPG_EPILOG_BIAS), activation = pass_desc(b, act), sums = sum_desc(b);
	step s[MAX_STEPS];
	int count = 0;
	double us = NAN, least;
	product.epilog = EPG_EPILOG_DEFAULT;
	product.flags &= ~EPG_BGRAD_ACCUMULATE;
	int good = add_step(b, &product, s, &count) && (!(e & EPG_BIAS) || add_step(b, &bias, s, &count)) && (!act || add_step(b, &activation, s, &count))
		&& (!(e & (EPG_BGRAD | EPG_BGRADA | EPG_BGRADB)) || add_step(b, &sums, s, &count));
	if (good)
		us = time_steps(b, s, count, b->set->iters, &least);
	free_steps(s, count);
	return us;
}

/* The first candidate whose lowering is one call of the vendor's with its epilog; NaN when there is none. */
static double time_vendor(const bench *b, const epg_plan *plan)
{
	epg_plan_info info;
	char pin[PIN_NBYTES];
	step s;
	double us = NAN, least;
	if (epg_plan_get_info(plan, &info, sizeof info))
		return us;
	for (int32_t i = 0; i < info.candidates; i++) {
		if (epg_plan_pin(plan, i, pin, sizeof pin, NULL) || strncmp(pin + strcspn(pin, "/"), "/fused", 6))
			continue;
		if (plan_step(b, &b->desc, pin, &s))
			us = time_steps(b, &s, 1, b->set->iters, &least);
		free_steps(&s, 1);
		return us;
	}
	return us;
}

/* ---- The whole ---- */

static void fail(result *r, const char *status, const char *error)
{
	snprintf(r->status, sizeof r->status, "%s", status);
	snprintf(r->error, sizeof r->error, "%s", error);
	r->failed = 1;
}

static int verify(bench *b, const step *s, result *r)
{
	char why[TEXT_NBYTES] = "";
	if (!b->set->verify)
		return 1;
	b->after = malloc(b->copy_nbytes);
	if (!b->after)
		fail(r, "failed", "no memory to verify in");
	else if (execute(b, s, 1, 0) || epg_download(b->context, b->after, b->memory, b->copy_nbytes, NULL) || epg_synchronize(b->context, NULL))
		fail(r, "failed", epg_last_error());
	else if (bench_verify(b, why))
		snprintf(r->status, sizeof r->status, "right");
	else
		fail(r, "WRONG", why);
	return !r->failed;
}

static void measure(const bench *b, const step *s, result *r)
{
	double flops = flops_of(&b->desc), bytes = bytes_of(b);
	r->us_median = time_steps(b, s, 1, b->set->iters, &r->us_min);
	if (isnan(r->us_median)) {
		fail(r, "failed", epg_last_error());
		return;
	}
	r->gflops = flops / r->us_median * 1e-3;
	r->gbytes = bytes / r->us_median * 1e-3;
	r->intensity = bytes > 0 ? flops / bytes : (double)NAN;
	if (b->set->ceiling) {
		ceiling_of(b, &r->peak_gflops, &r->peak_gbytes);
		double least = fmax(flops / r->peak_gflops, bytes / r->peak_gbytes) * 1e-3;
		r->ceiling = 100 * least / r->us_median;
	}
	if (b->set->compare) {
		r->unfused = time_unfused(b) / r->us_median;
		r->vendor_fused = time_vendor(b, s->plan) / r->us_median;
	}
}

static void begin_result(const epg_matmul_desc *d, result *r)
{
	*r = (result){.m = (double)d->m, .n = (double)d->n, .k = (double)d->k, .batch = (double)d->batch, .status = "timed"};
	double *missing[] = {&r->us_min, &r->us_median, &r->gflops, &r->gbytes, &r->ceiling, &r->plan_us, &r->workspace, &r->unfused, &r->vendor_fused, &r->intensity, &r->peak_gflops,
		&r->peak_gbytes};
	for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
		*missing[i] = NAN;
	const char *type = epg_type_name(d->d.type), *epilog = epg_epilog_name(d->epilog);
	snprintf(r->type, sizeof r->type, "%s", type ? type : "?");
	snprintf(r->epilog, sizeof r->epilog, "%s", epilog ? epilog : "?");
	epg_matmul_desc_print(d, r->problem, sizeof r->problem, NULL);
}

void bench_problem(epg_context *context, const settings *set, const epg_matmul_desc *desc, result *r)
{
	bench b = {.set = set, .context = context, .desc = *desc};
	epg_context_info info;
	step s = {.plan = NULL};
	const char *wrong = NULL;
	begin_result(desc, r);
	if (epg_context_get_info(context, &info, sizeof info) == EPG_SUCCESS)
		b.on_device = strcmp(info.backend, "cpu") != 0, b.threads = info.threads;
	double begin = now_us();
	int good = plan_step(&b, desc, set->pin, &s);
	r->plan_us = now_us() - begin;
	if (!good)
		fail(r, "refused", epg_last_error());
	else if (describe(&s, r), (wrong = open_bench(&b)))
		fail(r, "failed", wrong);
	else if (verify(&b, &s, r))
		measure(&b, &s, r);
	epg_plan_destroy(s.plan);
	close_bench(&b);
}
