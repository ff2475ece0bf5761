/* SPDX-License-Identifier: Apache-2.0
 *
 * MEASURE and PATIENT: the candidates run on scratch operands with random data, in shuffled order, round after round, until
 * the time is up; the median counts. A candidate whose D differs from the estimate's is refused; the estimate's choice keeps
 * its place unless another is faster by more than the margin. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dtype.h"
#include "epilog.h"
#include "half.h"
#include "plan.h"

enum { NOPERANDS = 7, MIN_ROUNDS = 3, MAX_ROUNDS = 31, DROP_FACTOR = 5 };

/* Estimates are never as wrong as this: a candidate that is estimated so much slower than the first is not run at all (plain
 * loops would take minutes on a large problem). */
enum { HOPELESS_FACTOR = 20 };
static const double margin = 1.02;

typedef struct tuner {
	epg_plan *plan;
	void *memory[NOPERANDS], *workspace;
	void *state[EPG_MAX_VARIANTS]; /* NULL: out of the race */
	double seconds[EPG_MAX_VARIANTS][MAX_ROUNDS];
	int32_t rounds[EPG_MAX_VARIANTS];
	void *expected, *got;          /* D of the estimate's choice and of another, on the host */
} tuner;

static const epg_backend *backend_of(const tuner *t) { return t->plan->context->backend; }
static void *context_of(const tuner *t) { return t->plan->context->state; }

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* xorshift64: fixed seed, so that a measurement can be repeated. */
static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* Values in [-1, 1) for floating types, random bits for masks, zeros for others. */
static void fill(int32_t type, void *data, int64_t nbytes, uint64_t *seed)
{
	float *narrow = data;
	double *wide = data;
	unsigned char *bytes = data;
	memset(data, 0, (size_t)nbytes);
	if (type == EPG_F32 || type == EPG_C64)
		for (int64_t i = 0; i < nbytes / 4; i++)
			narrow[i] = (float)(int32_t)next_random(seed) / 2147483648.0f;
	else if (type == EPG_F64 || type == EPG_C128)
		for (int64_t i = 0; i < nbytes / 8; i++)
			wide[i] = (double)(int32_t)next_random(seed) / 2147483648.0;
	else if (type == EPG_F16 || type == EPG_BF16)
		for (int64_t i = 0; i < nbytes / 2; i++)
			epg_store_real(type, data, i, (double)(int32_t)next_random(seed) / 2147483648.0);
	else if (type == EPG_BIT)
		for (int64_t i = 0; i < nbytes; i++)
			bytes[i] = (unsigned char)next_random(seed);
}

static int32_t type_of(const epg_problem *p, int operand)
{
	const int32_t types[NOPERANDS] = {p->a.type, p->b.type, p->c.type, p->d.type, p->aux.type, p->bias.type, p->bgrad.type};
	return types[operand];
}

static epg_status make_operand(tuner *t, int operand, uint64_t *seed)
{
	int64_t nbytes = t->plan->extent_nbytes[operand];
	if (nbytes == 0)
		return EPG_SUCCESS;
	epg_status status = backend_of(t)->alloc(context_of(t), (size_t)nbytes, &t->memory[operand]);
	void *host = status ? NULL : malloc((size_t)nbytes);
	if (!status && !host)
		status = EPG_NO_MEMORY;
	if (!status) {
		fill(type_of(&t->plan->problem, operand), host, nbytes, seed);
		status = backend_of(t)->upload(context_of(t), t->memory[operand], host, (size_t)nbytes, NULL);
	}
	free(host);
	return status == EPG_NO_MEMORY ? epg_fail(EPG_NO_MEMORY, "no memory for %lld bytes of scratch to measure on", (long long)nbytes) : status;
}

static epg_status make_all(tuner *t)
{
	const epg_plan *plan = t->plan;
	uint64_t seed = 88172645463325252u;
	size_t workspace = 0, d = (size_t)plan->extent_nbytes[EPG_OPERAND_D];
	for (int operand = 0; operand < NOPERANDS; operand++) {
		epg_status status = make_operand(t, operand, &seed);
		if (status)
			return status;
	}
	for (int32_t i = 0; i < plan->nvariants; i++)
		workspace = plan->variants[i].workspace_nbytes > workspace ? plan->variants[i].workspace_nbytes : workspace;
	epg_status status = workspace ? backend_of(t)->alloc(context_of(t), workspace, &t->workspace) : EPG_SUCCESS;
	t->expected = malloc(d + 1);
	t->got = malloc(d + 1);
	if (!status && (!t->expected || !t->got))
		status = epg_fail(EPG_NO_MEMORY, "no memory for %zu bytes of scratch to measure on", 2 * d);
	for (int32_t i = 0; i < plan->nvariants && !status; i++)
		if (plan->variants[i].cost_s <= HOPELESS_FACTOR * plan->variants[0].cost_s)
			status = backend_of(t)->plan_create(context_of(t), &plan->problem, &plan->variants[i], false, &t->state[i]);
	return status;
}

static void release_all(tuner *t)
{
	for (int operand = 0; operand < NOPERANDS; operand++)
		backend_of(t)->release(context_of(t), t->memory[operand]);
	backend_of(t)->release(context_of(t), t->workspace);
	for (int32_t i = 0; i < t->plan->nvariants; i++)
		if (t->state[i])
			backend_of(t)->plan_destroy(t->state[i]);
	free(t->expected);
	free(t->got);
}

static epg_status run(tuner *t, int32_t variant, double *seconds)
{
	const epg_problem *p = &t->plan->problem;
	epg_call call = {.x = {.size = sizeof call.x, .a = t->memory[0], .b = t->memory[1], .c = t->memory[2], .d = t->memory[3], .aux = t->memory[4],
		.bias = t->memory[5], .bgrad = t->memory[6], .workspace = t->workspace, .workspace_nbytes = t->plan->variants[variant].workspace_nbytes},
		.alpha = {p->alpha[0], p->alpha[1]}, .beta = {p->beta[0], p->beta[1]}};
	double begin = now();
	epg_status status = backend_of(t)->execute(t->state[variant], &call);
	if (!status)
		status = backend_of(t)->synchronize(context_of(t), NULL);
	*seconds = now() - begin;
	return status;
}

/* ---- Checking ---- */

/* Largest difference over the largest finite value; gaps between columns hold the same bytes in both. A NaN or an infinity
 * in one of them only is an infinite difference. */
static double difference(int32_t type, const void *x, const void *y, int64_t nbytes)
{
	int32_t part = type == EPG_C64 ? EPG_F32 : type == EPG_C128 ? EPG_F64 : type;
	double worst = 0, largest = 0;
	for (int64_t i = 0; i < nbytes / epg_type_nbytes(part, 1); i++) {
		double a = epg_load_real(part, x, i), b = epg_load_real(part, y, i);
		double apart = a == b || (isnan(a) && isnan(b)) ? 0 : fabs(a - b), size = fabs(a);
		if (isnan(apart))
			return INFINITY;
		worst = apart > worst ? apart : worst;
		largest = size > largest && !isinf(size) ? size : largest;
	}
	return largest > 0 ? worst / largest : worst;
}

/* The D of one execution, on the host. Before, the memory gets the same random data each time: D of the variant before would
 * make one that writes nothing look right. */
static epg_status warm_up(tuner *t, int32_t i, void *d, size_t nbytes)
{
	void *memory = t->memory[EPG_OPERAND_D];
	uint64_t seed = 1181783497276652981u;
	double seconds;
	epg_status status = EPG_SUCCESS;
	fill(t->plan->problem.d.type, d, (int64_t)nbytes, &seed);
	if (nbytes > 0)
		status = backend_of(t)->upload(context_of(t), memory, d, nbytes, NULL);
	if (!status)
		status = run(t, i, &seconds);
	if (!status && nbytes > 0)
		status = backend_of(t)->download(context_of(t), d, memory, nbytes, NULL);
	return status;
}

/* Warms a variant up; one that computes something else than the first is out. */
static epg_status check_variant(tuner *t, int32_t i)
{
	epg_plan *plan = t->plan;
	int32_t type = plan->problem.d.type;
	int64_t nbytes = plan->extent_nbytes[EPG_OPERAND_D];
	double bound = type == EPG_F64 || type == EPG_C128 ? 1e-9 : 1e-3;
	epg_status status = warm_up(t, i, i == 0 ? t->expected : t->got, (size_t)nbytes);
	if (status || i == 0)
		return status;
	double apart = difference(type, t->expected, t->got, nbytes);
	if (!(apart <= bound)) {
		epg_text out = {plan->refusals, sizeof plan->refusals, strlen(plan->refusals)};
		epg_text_add(&out, "  candidate %d: its D differs by %.3g from the estimate's choice\n", i, apart);
		backend_of(t)->plan_destroy(t->state[i]);
		t->state[i] = NULL;
	}
	return EPG_SUCCESS;
}

/* ---- Timing ---- */

static int compare_seconds(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;
	return (a > b) - (a < b);
}

static double median(tuner *t, int32_t i)
{
	qsort(t->seconds[i], (size_t)t->rounds[i], sizeof *t->seconds[i], compare_seconds);
	return t->seconds[i][t->rounds[i] / 2];
}

/* Every variant once, in shuffled order. */
static epg_status one_round(tuner *t, uint64_t *seed)
{
	int32_t order[EPG_MAX_VARIANTS], count = t->plan->nvariants;
	for (int32_t i = 0; i < count; i++) {
		int32_t j = (int32_t)(next_random(seed) % (uint64_t)(i + 1));
		order[i] = order[j];
		order[j] = i;
	}
	for (int32_t i = 0; i < count; i++) {
		int32_t v = order[i];
		epg_status status = t->state[v] ? run(t, v, &t->seconds[v][t->rounds[v]]) : EPG_SUCCESS;
		if (status)
			return status;
		t->rounds[v] += t->state[v] != NULL;
	}
	return EPG_SUCCESS;
}

/* After the first round those that are far behind need no more of the time. */
static void drop_slow(tuner *t)
{
	double best = t->seconds[0][0];
	for (int32_t i = 1; i < t->plan->nvariants; i++)
		if (t->state[i] && t->seconds[i][0] < best)
			best = t->seconds[i][0];
	for (int32_t i = 1; i < t->plan->nvariants; i++)
		if (t->state[i] && t->seconds[i][0] > DROP_FACTOR * best) {
			backend_of(t)->plan_destroy(t->state[i]);
			t->state[i] = NULL;
		}
}

static epg_status time_all(tuner *t, int32_t rigor)
{
	double limit = rigor == EPG_PATIENT ? 1.5 : 0.3, begin = now();
	int32_t most = rigor == EPG_PATIENT ? MAX_ROUNDS : 15;
	uint64_t seed = 2463534242u;
	for (int32_t round = 0; round < most && (round < MIN_ROUNDS || now() - begin < limit); round++) {
		epg_status status = one_round(t, &seed);
		if (status)
			return status;
		if (round == 0)
			drop_slow(t);
	}
	return EPG_SUCCESS;
}

static void choose(tuner *t)
{
	epg_plan *plan = t->plan;
	char pin[EPG_PIN_NBYTES];
	double first = median(t, 0), best = first;
	plan->chosen = 0;
	for (int32_t i = 1; i < plan->nvariants; i++)
		if (t->state[i] && median(t, i) * margin < first && median(t, i) < best) {
			best = median(t, i);
			plan->chosen = i;
		}
	epg_pin_print(backend_of(t), &plan->variants[plan->chosen], pin, sizeof pin);
	snprintf(plan->reason, sizeof plan->reason, "measured: %.100s took %.1f us, the estimate's choice %.1f us", pin, best * 1e6, first * 1e6);
}

epg_status epg_tune(epg_plan *plan, int32_t rigor)
{
	tuner *t = calloc(1, sizeof *t);
	if (!t)
		return epg_fail(EPG_NO_MEMORY, "no memory to measure with (%zu bytes)", sizeof *t);
	t->plan = plan;
	epg_status status = make_all(t);
	for (int32_t i = 0; i < plan->nvariants && !status; i++)
		if (t->state[i])
			status = check_variant(t, i);
	if (!status)
		status = time_all(t, rigor);
	if (!status)
		choose(t);
	release_all(t);
	free(t);
	return status;
}
