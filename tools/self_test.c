/* SPDX-License-Identifier: Apache-2.0
 *
 * epigemm-info --self-test: every lowering of a backend against plain loops over small problems, so that a broken BLAS, driver or
 * build is named before it spoils results. Data are -1, 0 and 1, so all but GELU is exact in every type. Pointers are the host's,
 * whatever the backend. */
#include "self_test.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epigemm.h>

enum { OPERANDS = EPG_OPERAND_BGRAD + 1, LINE_NBYTES = 256, PIN_NBYTES = 256, MAX_PINS = 32, MAX_LOWERINGS = 16, MAX_TOLD = 8 };

typedef struct problem {
	char line[LINE_NBYTES];
	epg_matmul_desc desc;
	epg_layout layout[OPERANDS];
	unsigned char *memory[OPERANDS], *given[OPERANDS]; /* what an execution gets, and what is put there before each */
	double *d, *z, *sums;                              /* what is right; column-major, complex numbers as two */
} problem;

typedef struct tally {
	char lowering[MAX_LOWERINGS][32];
	long right[MAX_LOWERINGS], wrong[MAX_LOWERINGS];
	int count, told;
} tally;

/* ---- Elements ---- */

static int is_complex(int32_t type) { return type == EPG_C64 || type == EPG_C128; }

/* Integers of at most 2048 in 16 bits. */
static double from_f16(uint16_t x)
{
	int exponent = x >> 10 & 31;
	double size = exponent ? ldexp(1024 + (x & 1023), exponent - 25) : ldexp(x & 1023, -24);
	return x & 0x8000 ? -size : size;
}

static uint16_t to_f16(double x)
{
	int exponent;
	double fraction = frexp(fabs(x), &exponent);
	return x == 0 ? 0 : (uint16_t)((x < 0 ? 0x8000 : 0) | (exponent + 14) << 10 | ((int)(fraction * 2048) & 1023));
}

/* Element 'index' of an array of parts: of a complex type two for each number, of a mask bits. */
static double load(int32_t type, const void *base, int64_t index)
{
	uint32_t bits;
	float x;
	switch (type) {
	case EPG_BIT: return ((const unsigned char *)base)[index / 8] >> (index % 8) & 1;
	case EPG_F16: return from_f16(((const uint16_t *)base)[index]);
	case EPG_BF16:
		bits = (uint32_t)((const uint16_t *)base)[index] << 16;
		memcpy(&x, &bits, sizeof x);
		return x;
	case EPG_F32: case EPG_C64: return ((const float *)base)[index];
	default: return ((const double *)base)[index];
	}
}

static void store(int32_t type, void *base, int64_t index, double value)
{
	unsigned char *byte = (unsigned char *)base + index / 8;
	uint32_t bits;
	float x = (float)value;
	switch (type) {
	case EPG_BIT: *byte = (unsigned char)((*byte & ~(1 << (index % 8))) | (value != 0) << (index % 8)); break;
	case EPG_F16: ((uint16_t *)base)[index] = to_f16(value); break;
	case EPG_BF16:
		memcpy(&bits, &x, sizeof x);
		((uint16_t *)base)[index] = (uint16_t)(bits >> 16);
		break;
	case EPG_F32: case EPG_C64: ((float *)base)[index] = x; break;
	default: ((double *)base)[index] = value; break;
	}
}

static int64_t at(const epg_layout *x, int64_t i, int64_t j) { return x->order == EPG_ROW ? i * x->ld + j : i + j * x->ld; }

static double part(const problem *p, int which, int64_t i, int64_t j, int of)
{
	const epg_layout *x = &p->layout[which];
	int width = is_complex(x->type) ? 2 : 1;
	return of >= width ? 0 : load(x->type, p->given[which], width * at(x, i, j) + of);
}

/* ---- What is right ---- */

/* op(A)[i,l] or op(B)[l,j]. */
static double factor(const problem *p, int which, int64_t row, int64_t col, int of)
{
	int32_t op = which == EPG_OPERAND_A ? p->desc.a.op : p->desc.b.op;
	int trans = op == EPG_OP_T || op == EPG_OP_C, conj = op == EPG_OP_C || op == EPG_OP_J;
	double x = part(p, which, trans ? col : row, trans ? row : col, of);
	return of && conj ? -x : x;
}

static double gelu(double z) { return 0.5 * z * (1 + tanh(0.79788456080286536 * (z + 0.044715 * z * z * z))); }

static double dgelu(double z)
{
	double t = tanh(0.79788456080286536 * (z + 0.044715 * z * z * z));
	return 0.5 * (1 + t) + 0.5 * z * (1 - t * t) * 0.79788456080286536 * (1 + 3 * 0.044715 * z * z);
}

static double activated(const problem *p, double z, int64_t i, int64_t j)
{
	int32_t e = p->desc.epilog, act = e & EPG_ACT_MASK;
	if (e & EPG_GRAD)
		return act == EPG_ACT_RELU ? part(p, EPG_OPERAND_AUX, i, j, 0) * z : dgelu(part(p, EPG_OPERAND_AUX, i, j, 0)) * z;
	return act == EPG_ACT_RELU ? (z < 0 ? 0 : z) : act == EPG_ACT_GELU ? gelu(z) : z;
}

static void solve(problem *p)
{
	int64_t m = p->desc.m, n = p->desc.n, k = p->desc.k;
	int width = is_complex(p->desc.d.type) ? 2 : 1, per_row = p->desc.axis == EPG_PER_ROW;
	for (int64_t j = 0; j < n; j++)
		for (int64_t i = 0; i < m; i++)
			for (int of = 0; of < width; of++) {
				double z = p->desc.beta[0] * (p->desc.beta[0] != 0 ? part(p, EPG_OPERAND_C, i, j, of) : 0);
				for (int64_t l = 0; l < k; l++)
					z += factor(p, EPG_OPERAND_A, i, l, of) * factor(p, EPG_OPERAND_B, l, j, 0)
						+ (width == 1 ? 0 : (of ? 1 : -1) * factor(p, EPG_OPERAND_A, i, l, !of) * factor(p, EPG_OPERAND_B, l, j, 1));
				if (p->desc.epilog & EPG_BIAS)
					z += load(p->layout[EPG_OPERAND_BIAS].type, p->given[EPG_OPERAND_BIAS], width * (per_row ? i : j) + of);
				p->z[width * (i + j * m) + of] = z;
				p->d[width * (i + j * m) + of] = activated(p, z, i, j);
			}
	for (int64_t s = 0; s < p->layout[EPG_OPERAND_BGRAD].rows; s++) {
		p->sums[s] = 0;
		for (int64_t x = 0; p->desc.epilog & (EPG_BGRADA | EPG_BGRADB) && x < k; x++)
			p->sums[s] += p->desc.epilog & EPG_BGRADA ? factor(p, EPG_OPERAND_A, s, x, 0) : factor(p, EPG_OPERAND_B, x, s, 0);
		for (int64_t x = 0; p->desc.epilog & EPG_BGRAD && x < (per_row ? n : m); x++)
			p->sums[s] += p->d[per_row ? s + x * m : x + s * m];
	}
}

/* ---- Comparing ---- */

/* How far GELU may be off, and a sum of so many of its gradients. */
static double allowed(const problem *p, double size, int64_t terms)
{
	int32_t type = p->desc.d.type;
	double u = type == EPG_F16 ? 4e-3 : type == EPG_BF16 ? 3.2e-2 : type == EPG_F64 ? 1e-13 : 4e-5;
	return (p->desc.epilog & EPG_ACT_MASK) == EPG_ACT_GELU ? u * (double)terms * (1 + fabs(size)) : 0;
}

static double worst_error(const problem *p)
{
	const epg_layout *d = &p->layout[EPG_OPERAND_D], *aux = &p->layout[EPG_OPERAND_AUX], *sums = &p->layout[EPG_OPERAND_BGRAD];
	int64_t m = p->desc.m, n = p->desc.n;
	int width = is_complex(d->type) ? 2 : 1, keeps = p->desc.epilog & EPG_AUX && !(p->desc.epilog & EPG_GRAD);
	double worst = 0;
	for (int64_t j = 0; j < n; j++)
		for (int64_t i = 0; i < m; i++) {
			for (int of = 0; of < width; of++) {
				double want = p->d[width * (i + j * m) + of], error = fabs(load(d->type, p->memory[EPG_OPERAND_D], width * at(d, i, j) + of) - want) - allowed(p, want, p->desc.k);
				worst = error <= worst ? worst : error;
			}
			double z = p->z[width * (i + j * m)], want = aux->type == EPG_BIT ? z >= 0 : z;
			double error = keeps ? fabs(load(aux->type, p->memory[EPG_OPERAND_AUX], at(aux, i, j)) - want) : 0;
			worst = error <= worst ? worst : error;
		}
	for (int64_t s = 0; s < sums->rows; s++) {
		double error = fabs(load(sums->type, p->memory[EPG_OPERAND_BGRAD], s) - p->sums[s]) - allowed(p, p->sums[s], (m + n) * p->desc.k);
		worst = error <= worst ? worst : error;
	}
	return worst;
}

/* ---- One problem ---- */

static void close_problem(problem *p)
{
	for (int which = 0; which < OPERANDS; which++)
		free(p->memory[which]), free(p->given[which]);
	free(p->d), free(p->z), free(p->sums);
}

/* 0: no memory, or the line is not understood. */
static int open_problem(problem *p, uint32_t seed)
{
	if (epg_matmul_desc_parse(p->line, &p->desc, sizeof p->desc))
		return 0;
	size_t count = (size_t)(p->desc.m * p->desc.n + p->desc.m + p->desc.n + 1) * 2;
	p->d = calloc(count, sizeof *p->d), p->z = calloc(count, sizeof *p->z), p->sums = calloc(count, sizeof *p->sums);
	int good = p->d && p->z && p->sums;
	for (int which = 0; which < OPERANDS && good; which++) {
		epg_layout *x = &p->layout[which];
		if (epg_matmul_desc_layout(&p->desc, which, x))
			return 0;
		size_t nbytes = (size_t)x->nbytes + 256;
		p->memory[which] = aligned_alloc(256, (nbytes + 255) / 256 * 256), p->given[which] = calloc(nbytes, 1);
		good = p->memory[which] && p->given[which];
		int width = is_complex(x->type) ? 2 : 1;
		for (int64_t line = 0; good && x->nbytes && line < (x->order == EPG_ROW ? x->rows : x->cols); line++)
			for (int64_t e = 0; e < width * (x->order == EPG_ROW ? x->cols : x->rows); e++) {
				seed = seed * 1664525 + 1013904223;
				store(x->type, p->given[which], width * line * x->ld + e, x->type == EPG_BIT ? (int)(seed >> 31) : (int)(seed >> 16) * 3 / 65536 - 1);
			}
	}
	if (good)
		solve(p);
	return good;
}

static void count_one(tally *t, const char *pin, const problem *p, const char *fault)
{
	char name[32];
	int i = 0;
	snprintf(name, sizeof name, "%.*s", (int)strcspn(pin, " "), pin);
	while (i < t->count && strcmp(t->lowering[i], name))
		i++;
	if (i == t->count && t->count < MAX_LOWERINGS)
		snprintf(t->lowering[t->count++], sizeof t->lowering[i], "%s", name);
	i = i < MAX_LOWERINGS ? i : MAX_LOWERINGS - 1;
	t->right[i] += !fault;
	t->wrong[i] += fault != NULL;
	if (fault && t->told++ < MAX_TOLD)
		printf("    wrong: %s\n           pin %s: %s\n", p->line, pin, fault);
}

static void try_pin(epg_context *context, problem *p, const char *pin, tally *t)
{
	epg_plan_options options;
	epg_operands x;
	epg_plan *plan = NULL;
	char fault[512];
	epg_plan_options_init(&options, sizeof options);
	epg_operands_init(&x, sizeof x);
	options.pin = pin;
	options.memory = EPG_MEMORY_HOST;
	for (int which = 0; which < OPERANDS; which++)
		memcpy(p->memory[which], p->given[which], (size_t)p->layout[which].nbytes);
	unsigned char **const memory = p->memory;
	x.a = memory[EPG_OPERAND_A], x.b = memory[EPG_OPERAND_B], x.d = memory[EPG_OPERAND_D];
	x.c = p->desc.beta[0] != 0 ? memory[EPG_OPERAND_C] : NULL;
	x.bias = p->layout[EPG_OPERAND_BIAS].nbytes ? memory[EPG_OPERAND_BIAS] : NULL;
	x.aux = p->layout[EPG_OPERAND_AUX].nbytes ? memory[EPG_OPERAND_AUX] : NULL;
	x.bgrad = p->layout[EPG_OPERAND_BGRAD].nbytes ? memory[EPG_OPERAND_BGRAD] : NULL;
	if (epg_plan_create(context, &p->desc, &options, &plan) || epg_execute(plan, &x, NULL)) {
		snprintf(fault, sizeof fault, "%s", epg_last_error());
		count_one(t, pin, p, fault);
	} else {
		double worst = worst_error(p);
		snprintf(fault, sizeof fault, "off by %g more than may be", worst);
		count_one(t, pin, p, worst == 0 ? NULL : fault);
	}
	epg_plan_destroy(plan);
}

static void try_problem(epg_context *context, const char *line, uint32_t seed, tally *t)
{
	problem p = {.line = ""};
	epg_plan *plan = NULL;
	epg_plan_info info = {.candidates = 0};
	char pin[MAX_PINS][PIN_NBYTES];
	int pins = 0;
	snprintf(p.line, sizeof p.line, "%s", line);
	if (!open_problem(&p, seed) || epg_plan_create(context, &p.desc, NULL, &plan) || epg_plan_get_info(plan, &info, sizeof info))
		count_one(t, "planning", &p, *epg_last_error() ? epg_last_error() : "no memory");
	for (; pins < info.candidates && pins < MAX_PINS && epg_plan_pin(plan, pins, pin[pins], PIN_NBYTES, NULL) == EPG_SUCCESS; pins++)
		;
	epg_plan_destroy(plan);
	for (int i = 0; i < pins; i++)
		try_pin(context, &p, pin[i], t);
	close_problem(&p);
}

/* ---- All of them ---- */

static void try_all(epg_context *context, tally *t)
{
	static const char *const types[] = {"f32", "f64", "f16", "bf16", "c64", "c128"}, *const ops[] = {"N", "T", "C"};
	static const int64_t shapes[][3] = {{1, 1, 1}, {7, 5, 3}, {1, 40, 33}, {40, 1, 33}, {16, 16, 16}, {65, 43, 130}, {130, 24, 64}};
	static const int32_t epilogs[] = {EPG_EPILOG_DEFAULT, EPG_EPILOG_BIAS, EPG_EPILOG_RELU_BIAS, EPG_EPILOG_RELU_AUX_BIAS, EPG_EPILOG_GELU_AUX_BIAS, EPG_EPILOG_DRELU_BGRAD, EPG_EPILOG_DGELU_BGRAD,
		EPG_EPILOG_BGRADA, EPG_EPILOG_BGRADB};
	char line[LINE_NBYTES];
	for (int type = 0; type < 6; type++)
		for (int e = 0; e < (type < 4 ? 9 : 2); e++)
			for (int s = 0; s < 7; s++)
				for (int form = 0; form < 9; form++) {
					snprintf(line, sizeof line, "%s m=%lld n=%lld k=%lld order=%s opa=%s opb=%s epilog=%s axis=%s beta=%d", types[type], (long long)shapes[s][0], (long long)shapes[s][1],
						(long long)shapes[s][2], form % 2 ? "row" : "col", ops[form % 3], ops[form / 3], epg_epilog_name(epilogs[e]), (form + s) % 3 ? "row" : "column", (form + e) % 2);
					try_problem(context, line, (uint32_t)(type * 1000 + e * 100 + s * 10 + form), t);
				}
}

int self_test(const char *backend)
{
	epg_context_options options;
	epg_context *context = NULL;
	tally t = {.count = 0};
	long wrong = 0, right = 0;
	if (epg_context_options_init(&options, sizeof options) == EPG_SUCCESS)
		options.backend = backend;
	if (epg_context_create(&options, &context)) {
		printf("self-test of %s: not here: %s\n", backend, epg_last_error());
		return -1;
	}
	printf("self-test of %s: every lowering against plain loops\n", backend);
	try_all(context, &t);
	for (int i = 0; i < t.count; i++) {
		printf("    %-14s %6ld right, %ld wrong\n", t.lowering[i], t.right[i], t.wrong[i]);
		right += t.right[i];
		wrong += t.wrong[i];
	}
	epg_context_destroy(context);
	return wrong || !right;
}
