/* SPDX-License-Identifier: Apache-2.0
 *
 * MEASURE and PATIENT: the candidates run on scratch operands with random data, in shuffled order, round after round, until
 * the time is up; the median counts. The first, by estimate, that works is the one to beat: a candidate whose outputs differ from its is refused,
 * and so is one that the device refuses or fails; it keeps its place unless another is faster by more than the margin. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dtype.h"
#include "half.h"
#include "plan.h"

enum { NOPERANDS = 7, MIN_ROUNDS = 4, MAX_ROUNDS = 31, DROP_FACTOR = 5 };

/* Estimates are never as wrong as this: a candidate that is estimated so much slower than the first is not run at all (plain
 * loops would take minutes on a large problem). */
enum { HOPELESS_FACTOR = 20 };
static const double margin = 1.02;

typedef struct tuner {
	epg_plan *plan;
	void *memory[NOPERANDS], *workspace;
	void *state[EPG_MAX_VARIANTS]; /* NULL: out of the race */
	int32_t first;                 /* the first candidate that works; -1: none yet */
	epg_status failure;            /* of the last that did not */
	double seconds[EPG_MAX_VARIANTS][MAX_ROUNDS];
	int32_t rounds[EPG_MAX_VARIANTS];
	int32_t calls;                 /* that follow each other in one measurement, by the backend's clock */
	void *scalars;                 /* alpha and, 16 bytes further, beta on the device; NULL unless executions read them there */
	/* Outputs on the host, as far as they are compared: as every candidate finds them, as the first one leaves them, one of another. */
	char *before[NOPERANDS], *expected[NOPERANDS], *got;
} tuner;

/* Of an output larger than this, so many pieces are compared, spread from its beginning to its end. */
static const int64_t compared_nbytes = 64 << 20;
enum { NPIECES = 64 };

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

/* Values in [-1, 1) for floating types, in [-128, 128) for integers, random bits for masks: FILL_NBYTES of them, over and over: 16 times a prime, so that
 * columns a power of two apart are not the same and one taken for another shows. */
enum { FILL_NBYTES = 16 * 65521 };

static void fill(int32_t type, void *data, int64_t nbytes, uint64_t *seed)
{
	int64_t own = nbytes < FILL_NBYTES ? nbytes : FILL_NBYTES;
	int32_t part = type == EPG_C64 ? EPG_F32 : type == EPG_C128 ? EPG_F64 : type;
	bool integer = part == EPG_S8 || part == EPG_S32, real = nbytes > 0 && part != EPG_BIT;
	memset(data, 0, (size_t)nbytes);
	for (int64_t i = 0; real && i < own / epg_type_nbytes(part, 1); i++)
		epg_store_real(part, data, i, (double)(int32_t)next_random(seed) / (integer ? 16777216.0 : 2147483648.0));
	for (int64_t i = 0; type == EPG_BIT && i < own; i++)
		((unsigned char *)data)[i] = (unsigned char)next_random(seed);
	for (int64_t at = own; at < nbytes; at += own)
		memcpy((char *)data + at, data, (size_t)(nbytes - at < own ? nbytes - at : own));
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

/* Outputs are D, an aux that is not read, and the gradient. Bytes that are compared. */
static int64_t output_nbytes(const tuner *t, int operand)
{
	const epg_plan *plan = t->plan;
	int64_t nbytes = plan->pointers[operand].output ? plan->extent_nbytes[operand] : 0;
	return nbytes < compared_nbytes ? nbytes : compared_nbytes;
}

static epg_status make_images(tuner *t)
{
	int64_t most = 1;
	for (int operand = 0; operand < NOPERANDS; operand++) {
		int64_t nbytes = output_nbytes(t, operand);
		most = nbytes > most ? nbytes : most;
		uint64_t seed = 1181783497276652981u;
		t->before[operand] = malloc((size_t)nbytes + 1);
		t->expected[operand] = malloc((size_t)nbytes + 1);
		if (!t->before[operand] || !t->expected[operand])
			return epg_fail(EPG_NO_MEMORY, "no memory for %lld bytes of scratch to measure on", 2 * (long long)nbytes);
		fill(type_of(&t->plan->problem, operand), t->before[operand], nbytes, &seed);
	}
	t->got = malloc((size_t)most);
	return t->got ? EPG_SUCCESS : epg_fail(EPG_NO_MEMORY, "no memory for %lld bytes of scratch to measure on", (long long)most);
}

static epg_status make_workspace(tuner *t)
{
	const epg_plan *plan = t->plan;
	size_t nbytes = 0;
	for (int32_t i = 0; i < plan->nvariants; i++)
		nbytes = plan->variants[i].workspace_nbytes > nbytes ? plan->variants[i].workspace_nbytes : nbytes;
	return nbytes ? backend_of(t)->alloc(context_of(t), nbytes, &t->workspace) : EPG_SUCCESS;
}

static epg_status make_scalars(tuner *t)
{
	const epg_problem *p = &t->plan->problem;
	int32_t part = p->scalar == EPG_F32 || p->scalar == EPG_C64 ? EPG_F32 : EPG_F64;
	double image[4] = {0};
	if (!(p->flags & EPG_SCALARS_ON_DEVICE) || backend_of(t)->host_memory)
		return EPG_SUCCESS;
	for (int i = 0; i < 2; i++) {
		epg_store_real(part, image, i, p->alpha[i]);
		epg_store_real(part, image + 2, i, p->beta[i]);
	}
	epg_status status = backend_of(t)->alloc(context_of(t), sizeof image, &t->scalars);
	return status ? status : backend_of(t)->upload(context_of(t), t->scalars, image, sizeof image, NULL);
}

static epg_status make_all(tuner *t)
{
	uint64_t seed = 88172645463325252u;
	epg_status status = EPG_SUCCESS;
	for (int operand = 0; operand < NOPERANDS && !status; operand++)
		status = make_operand(t, operand, &seed);
	if (!status)
		status = make_workspace(t);
	if (!status)
		status = make_scalars(t);
	return status ? status : make_images(t);
}

static void release_all(tuner *t)
{
	for (int operand = 0; operand < NOPERANDS; operand++) {
		backend_of(t)->release(context_of(t), t->memory[operand]);
		free(t->before[operand]);
		free(t->expected[operand]);
	}
	backend_of(t)->release(context_of(t), t->workspace);
	backend_of(t)->release(context_of(t), t->scalars);
	for (int32_t i = 0; i < t->plan->nvariants; i++)
		if (t->state[i])
			backend_of(t)->plan_destroy(t->state[i]);
	free(t->got);
}

static epg_call call_of(const tuner *t, int32_t variant)
{
	const epg_problem *p = &t->plan->problem;
	return (epg_call){.x = {.size = sizeof(epg_operands), .a = t->memory[0], .b = t->memory[1], .c = t->memory[2], .d = t->memory[3], .aux = t->memory[4],
		.bias = t->memory[5], .bgrad = t->memory[6], .alpha = t->scalars, .beta = t->scalars ? (char *)t->scalars + 16 : NULL, .workspace = t->workspace,
		.workspace_nbytes = t->plan->variants[variant].workspace_nbytes}, .alpha = {p->alpha[0], p->alpha[1]}, .beta = {p->beta[0], p->beta[1]}};
}

/* Runs a candidate once, to its end. */
static epg_status run(tuner *t, int32_t variant)
{
	epg_call call = call_of(t, variant);
	epg_status status = backend_of(t)->execute(t->state[variant], &call);
	return status ? status : backend_of(t)->synchronize(context_of(t), NULL);
}

/* Times it by the backend's clock, if that has one, which may run it more than once. */
static epg_status time_one(tuner *t, int32_t variant, double *seconds)
{
	epg_call call = call_of(t, variant);
	if (backend_of(t)->time)
		return backend_of(t)->time(t->state[variant], &call, t->calls, seconds);
	double begin = now();
	epg_status status = run(t, variant);
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

/* The compared pieces of an output, to the device or from it; on the host they lie one behind the other. The last ends where the output
 * ends, the others begin at multiples of 16 bytes. */
static epg_status copy_pieces(tuner *t, int operand, char *image, bool to_device)
{
	int64_t nbytes = output_nbytes(t, operand), gap = t->plan->extent_nbytes[operand] - nbytes, count = gap > 0 ? NPIECES : 1, piece = nbytes / count;
	epg_status status = EPG_SUCCESS;
	for (int64_t i = 0; i < count && piece > 0 && !status; i++) {
		char *there = (char *)t->memory[operand] + i * piece + (i == count - 1 ? gap : gap / NPIECES / 16 * 16 * i), *here = image + i * piece;
		status = to_device ? backend_of(t)->upload(context_of(t), there, here, (size_t)piece, NULL) : backend_of(t)->download(context_of(t), here, there, (size_t)piece, NULL);
	}
	return status;
}

/* Every candidate begins with the same random outputs: those of the one before would make one that writes nothing look right, and a
 * gradient may be added to. */
static epg_status reset_outputs(tuner *t)
{
	epg_status status = EPG_SUCCESS;
	for (int operand = 0; operand < NOPERANDS && !status; operand++)
		status = copy_pieces(t, operand, t->before[operand], true);
	return status;
}

/* How far outputs may be apart, in terms of the largest value: rounding of D's type, and of sums. */
static double allowed(int32_t type)
{
	int32_t nbits = epg_type_nbits(type);
	return type == EPG_F64 || type == EPG_C128 ? 1e-9 : nbits == 16 ? 3e-2 : nbits == 8 ? 0.3 : type == EPG_BIT ? 1e-3 : 2e-3;
}

/* The share of mask bits that differ: z near 0 may fall on either side. Two bits are always few. */
static double bit_difference(const char *x, const char *y, int64_t nbytes)
{
	int64_t differing = 0;
	for (int64_t i = 0; i < nbytes; i++)
		differing += __builtin_popcount((unsigned char)(x[i] ^ y[i]));
	return differing <= 2 ? 0 : (double)differing / (8 * (double)nbytes);
}

/* Fetches an output; *apart is how far it is from that of the first, which becomes the one to compare with. */
static epg_status compare_output(tuner *t, int operand, double *apart)
{
	int32_t type = type_of(&t->plan->problem, operand);
	int64_t nbytes = output_nbytes(t, operand);
	char *image = t->first < 0 ? t->expected[operand] : t->got;
	epg_status status = copy_pieces(t, operand, image, false);
	*apart = status || t->first < 0 || nbytes == 0 ? 0 : type == EPG_BIT ? bit_difference(t->expected[operand], image, nbytes)
		: difference(type, t->expected[operand], image, nbytes);
	return status;
}

/* ---- Who is in the race ---- */

/* Takes a candidate out of it, with the reason. */
static epg_status drop(tuner *t, int32_t i, const char *why)
{
	char name[32];
	snprintf(name, sizeof name, "candidate %d", i);
	if (t->state[i])
		backend_of(t)->plan_destroy(t->state[i]);
	t->state[i] = NULL;
	return epg_plan_refuse(t->plan, name, why);
}

/* Statuses of a candidate that the vendor refuses or fails: another may work. */
static bool droppable(epg_status status) { return status == EPG_UNSUPPORTED || status == EPG_DEVICE_ERROR; }

/* Runs a candidate, which warms it up; one that computes something else than the first is out. */
static epg_status check_outputs(tuner *t, int32_t i)
{
	static const char *const names[NOPERANDS] = {"A", "B", "C", "D", "aux", "bias", "gradient"};
	double apart;
	char why[128];
	epg_status status = reset_outputs(t);
	if (!status)
		status = run(t, i);
	for (int operand = 0; operand < NOPERANDS && !status; operand++) {
		status = compare_output(t, operand, &apart);
		if (status || apart <= allowed(type_of(&t->plan->problem, operand)))
			continue;
		snprintf(why, sizeof why, "its %s differs by %.3g from that of candidate %d", names[operand], apart, t->first);
		return drop(t, i, why);
	}
	return status;
}

static epg_status admit(tuner *t, int32_t i)
{
	epg_plan *plan = t->plan;
	if (t->first >= 0 && plan->variants[i].cost_s > HOPELESS_FACTOR * plan->variants[t->first].cost_s)
		return EPG_SUCCESS;
	epg_status status = backend_of(t)->plan_create(context_of(t), &plan->problem, &plan->variants[i], false, &t->state[i]);
	if (!status)
		status = check_outputs(t, i);
	if (droppable(status)) {
		t->failure = status;
		return drop(t, i, epg_last_error());
	}
	if (!status && t->first < 0)
		t->first = i;
	return status;
}

/* When none works, the status and the sentence are the last one's. */
static epg_status admit_all(tuner *t)
{
	epg_status status = EPG_SUCCESS;
	for (int32_t i = 0; i < t->plan->nvariants && !status; i++)
		status = admit(t, i);
	return status ? status : t->first < 0 ? t->failure : EPG_SUCCESS;
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
		epg_status status = t->state[v] ? time_one(t, v, &t->seconds[v][t->rounds[v]]) : EPG_SUCCESS;
		t->rounds[v] += !status && t->state[v];
		if (droppable(status) && v != t->first)
			status = drop(t, v, epg_last_error());
		if (status)
			return status;
	}
	return EPG_SUCCESS;
}

/* After the first round those that are far behind need no more of the time; the best time so far. */
static double drop_slow(tuner *t)
{
	double best = t->seconds[t->first][0];
	for (int32_t i = 0; i < t->plan->nvariants; i++)
		if (t->state[i] && t->seconds[i][0] < best)
			best = t->seconds[i][0];
	for (int32_t i = 0; i < t->plan->nvariants; i++)
		if (t->state[i] && i != t->first && t->seconds[i][0] > DROP_FACTOR * best) {
			backend_of(t)->plan_destroy(t->state[i]);
			t->state[i] = NULL;
		}
	return best;
}

/* A device's clock is for executions in trains, as they come in practice: what its clocks do under load decides between them, and a
 * cold cache, or the gap before a single one, does not. All that are left get trains of the same length; the single ones are forgotten. */
static void form_trains(tuner *t, double single_s)
{
	static const double train_s = 2e-3;
	if (!backend_of(t)->time)
		return;
	t->calls = (int32_t)(train_s / (single_s > 1e-6 ? single_s : 1e-6));
	t->calls = t->calls < 2 ? 2 : t->calls > 16 ? 16 : t->calls;
	for (int32_t i = 0; i < t->plan->nvariants; i++)
		t->rounds[i] = t->state[i] ? 0 : t->rounds[i];
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
			form_trains(t, drop_slow(t));
	}
	return EPG_SUCCESS;
}

static void choose(tuner *t)
{
	epg_plan *plan = t->plan;
	char pin[EPG_PIN_NBYTES];
	for (int32_t i = 0; i < plan->nvariants; i++)
		plan->measured_s[i] = t->rounds[i] > 0 ? median(t, i) : 0;
	double first = plan->measured_s[t->first], best = first;
	plan->chosen = t->first;
	for (int32_t i = 0; i < plan->nvariants; i++)
		if (t->state[i] && plan->measured_s[i] * margin < first && plan->measured_s[i] < best) {
			best = plan->measured_s[i];
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
	t->first = -1;
	t->calls = 1;
	epg_status status = make_all(t);
	if (!status)
		status = admit_all(t);
	if (!status)
		status = time_all(t, rigor);
	if (!status)
		choose(t);
	release_all(t);
	free(t);
	return status;
}
