/* SPDX-License-Identifier: Apache-2.0
 *
 * The CPU backend's table of functions: contexts, memory, and which lowering does what. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "../dtype.h"
#include "../log.h"
#include "cpu.h"

enum { MAX_THREADS = 4096, MEMORY_ALIGNMENT = 256, WORKSPACE_ALIGNMENT = 64 };

/* ---- Instruction sets ---- */

typedef struct isa_row {
	const cpu_pass_table *table;
	bool (*runs_here)(void);
} isa_row;

static bool always(void) { return true; }
#ifdef EPG_HAVE_AVX2
static bool has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#endif
#ifdef EPG_HAVE_AVX512
static bool has_avx512(void)
{
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

/* The best first. */
static const isa_row isas[] = {
#ifdef EPG_HAVE_AVX512
	{&epg_cpu_pass_avx512, has_avx512},
#endif
#ifdef EPG_HAVE_AVX2
	{&epg_cpu_pass_avx2, has_avx2},
#endif
	{&epg_cpu_pass_baseline, always},
};

/* EPIGEMM_ISA, when set, names the one to take. */
static epg_status choose_isa(const cpu_pass_table **table)
{
	const char *forced = getenv("EPIGEMM_ISA");
	for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
		bool wanted = !forced || !*forced || strcmp(forced, isas[i].table->isa) == 0;
		if (wanted && isas[i].runs_here()) {
			*table = isas[i].table;
			return EPG_SUCCESS;
		}
	}
	return epg_fail(EPG_INVALID, "EPIGEMM_ISA is '%s', but must be an instruction set that was built in and that this processor has: baseline, avx2, avx512", forced);
}

/* ---- Contexts ---- */

static bool probe(char *text, size_t text_nbytes)
{
	const cpu_blas_facts *blas = epg_cpu_blas();
	int32_t built_nbits = blas->max_dim > INT32_MAX ? 64 : 32;
	if (blas->int_nbits != built_nbits) {
		snprintf(text, text_nbytes, "the BLAS in this process has integers of %d bits, but epigemm was built for %d", blas->int_nbits, built_nbits);
		return false;
	}
	snprintf(text, text_nbytes, "%s, %s threads, core type %s", blas->version, blas->flavour, blas->core);
	return true;
}

static epg_status context_create(const epg_backend_options *options, void **out)
{
	const cpu_pass_table *pass = NULL;
	if (options->threads < 0 || options->threads > MAX_THREADS)
		return epg_fail(EPG_INVALID, "options.threads is %d, but must be from 0 to %d", options->threads, MAX_THREADS);
	if (options->device != 0)
		return epg_fail(EPG_INVALID, "options.device is %d, but must be 0 on the CPU", options->device);
	epg_status status = choose_isa(&pass);
	if (status)
		return status;
	cpu_context *context = calloc(1, sizeof *context);
	if (!context)
		return epg_fail(EPG_NO_MEMORY, "no memory for a CPU context (%zu bytes)", sizeof *context);
	context->pass = pass;
	context->allocator = options->allocator;
	context->log = options->log;
	context->threads = options->threads;
	context->threads_reason = "option";
	if (options->threads == 0)
		context->threads = epg_cpu_default_threads("/", getenv("OMP_NUM_THREADS"), epg_cpu_affinity(), &context->threads_reason);
	if (context->threads > MAX_THREADS)
		context->threads = MAX_THREADS;
	epg_cpu_blas();
	*out = context;
	return EPG_SUCCESS;
}

static void context_destroy(void *context)
{
	free(context);
}

/* "model name : …" of the first processor. */
static void processor_name(char *text, size_t text_nbytes)
{
	char line[256];
	FILE *file = fopen("/proc/cpuinfo", "re");
	text[0] = 0;
	while (file && !text[0] && fgets(line, sizeof line, file))
		if (strncmp(line, "model name", 10) == 0 && strchr(line, ':'))
			snprintf(text, text_nbytes, "%.*s", (int)strcspn(strchr(line, ':') + 1, "\n") - 1, strchr(line, ':') + 2);
	if (file)
		fclose(file);
}

static void context_info(const void *state, epg_context_info *info)
{
	const cpu_context *context = state;
	const cpu_blas_facts *blas = epg_cpu_blas();
	processor_name(info->device, sizeof info->device);
	snprintf(info->library, sizeof info->library, "%s", blas->version);
	snprintf(info->flavour, sizeof info->flavour, "%s", blas->flavour);
	snprintf(info->core, sizeof info->core, "%s", blas->core);
	snprintf(info->isa, sizeof info->isa, "%s", context->pass->isa);
	snprintf(info->threads_reason, sizeof info->threads_reason, "%s", context->threads_reason);
	info->integer_nbits = blas->int_nbits;
	info->threads = context->threads;
}

/* One word: blanks of the version become dashes. */
static void stamp(const void *state, char *text, size_t text_nbytes)
{
	const cpu_context *context = state;
	const cpu_blas_facts *blas = epg_cpu_blas();
	snprintf(text, text_nbytes, "epigemm-%s,cpu,%s,%s,%s,%s,threads=%d", EPG_VERSION, blas->version, blas->flavour, blas->core, context->pass->isa, context->threads);
	for (char *c = text; *c; c++)
		if (*c == ' ')
			*c = '-';
}

/* ---- Memory ---- */

static epg_status memory_alloc(void *state, size_t nbytes, void **ptr)
{
	const cpu_context *context = state;
	size_t padded = (nbytes + MEMORY_ALIGNMENT - 1) / MEMORY_ALIGNMENT * MEMORY_ALIGNMENT;
	if (padded < nbytes)
		return epg_fail(EPG_NO_MEMORY, "nbytes is %zu, more than there can be", nbytes);
	if (context->allocator->alloc)
		*ptr = context->allocator->alloc(context->allocator->user, padded, MEMORY_ALIGNMENT, EPG_MEMORY_DEVICE, NULL);
	else
		*ptr = aligned_alloc(MEMORY_ALIGNMENT, padded);
	return *ptr ? EPG_SUCCESS : epg_fail(EPG_NO_MEMORY, "no memory for %zu bytes", padded);
}

static void memory_release(void *state, void *ptr)
{
	const cpu_context *context = state;
	if (!ptr)
		return;
	if (context->allocator->alloc)
		context->allocator->free(context->allocator->user, ptr, EPG_MEMORY_DEVICE, NULL);
	else
		free(ptr);
}

static epg_status copy(void *context, void *to, const void *from, size_t nbytes, void *stream)
{
	(void)context, (void)stream;
	memcpy(to, from, nbytes);
	return EPG_SUCCESS;
}

static epg_status synchronize(void *context, void *stream)
{
	(void)context, (void)stream;
	return EPG_SUCCESS;
}

/* ---- Lowerings ---- */

static const epg_lowering lowerings[CPU_NLOWERINGS] = {
	[CPU_SPLIT] = {"split", {"threads", NULL}},
	[CPU_TILE] = {"tile", {"threads", "rows", NULL}},
	[CPU_WIDEN] = {"widen", {"threads", NULL}},
	[CPU_REFERENCE] = {"reference", {"threads", NULL}},
};

static bool supports(const void *context, const epg_problem *problem, int32_t lowering, char why[EPG_WHY_NBYTES])
{
	(void)context;
	static bool (*const supports_fns[CPU_NLOWERINGS])(const epg_problem *, char *) = {
		[CPU_SPLIT] = epg_cpu_split_supports, [CPU_TILE] = epg_cpu_tile_supports, [CPU_WIDEN] = epg_cpu_widen_supports};
	return lowering == CPU_REFERENCE || supports_fns[lowering](problem, why);
}

/* Seconds, for comparing lowerings only: a core does 50 GF in a BLAS and 1 GF in plain loops, and moves 10 GB/s. */
static double cost(const epg_problem *p, int32_t lowering, int64_t threads)
{
	double elements = (double)p->batch * (double)p->m * (double)p->n;
	double flops = 2 * elements * (double)p->k, nbytes = elements * (double)epg_type_nbits(p->d.type) / 8;
	double rate = lowering == CPU_REFERENCE ? 1e9 : 50e9, steps = lowering != CPU_TILE ? 1 : epg_cpu_steps_pay(p) ? 0.9 : 1.1;
	return steps * (flops / rate + nbytes / (rate / 5)) / (double)threads;
}

static cpu_plan plan_of(const cpu_context *context, const epg_problem *problem, int32_t lowering, const int64_t param[2])
{
	cpu_plan plan = {.context = (cpu_context *)context, .problem = *problem, .lowering = lowering, .threads = (int32_t)param[0], .step_m = param[1]};
	if (lowering != CPU_REFERENCE)
		epg_cpu_split_prepare(&plan);
	return plan;
}

static void weigh(const void *context, const epg_problem *problem, epg_variant *variant)
{
	variant->cost_s = cost(problem, variant->lowering, variant->param[0]);
	variant->workspace_nbytes = plan_of(context, problem, variant->lowering, variant->param).workspace_nbytes;
}

/* Rows of a step, the estimate's first: 128, or 64 where k leaves too few columns or there are no more rows. */
static int32_t step_rows(const epg_problem *p, int32_t rigor, int64_t rows[2])
{
	int32_t count = 0;
	if (p->m > CPU_ROWS && epg_cpu_step_cols(p, 2 * CPU_ROWS) > 0)
		rows[count++] = 2 * CPU_ROWS;
	if (count == 0 || rigor != EPG_ESTIMATE)
		rows[count++] = CPU_ROWS;
	return count;
}

/* ESTIMATE: all threads. MEASURE also tries half of them and one, PATIENT every power of two between. */
static int32_t variants(const void *state, const epg_problem *problem, int32_t lowering, int32_t rigor, epg_variant *out, int32_t capacity,
	char why[EPG_WHY_NBYTES])
{
	(void)why;
	const cpu_context *context = state;
	int64_t rows[2] = {0};
	int32_t count = 0, nrows = lowering == CPU_TILE ? step_rows(problem, rigor, rows) : 1, tried = 0;
	for (int64_t threads = context->threads; threads >= 1; threads = rigor == EPG_MEASURE && threads > 2 && tried == 1 ? 1 : threads / 2, tried++) {
		for (int32_t r = 0; r < nrows && count < capacity; r++) {
			out[count] = (epg_variant){.lowering = lowering, .param = {threads, rows[r]}};
			weigh(context, problem, &out[count++]);
		}
		if (rigor == EPG_ESTIMATE || lowering == CPU_REFERENCE)
			break;
	}
	return count;
}

static bool accepts(const void *state, const epg_problem *problem, epg_variant *variant, char why[EPG_WHY_NBYTES])
{
	int64_t threads = variant->param[0], rows = variant->param[1];
	if (threads < 1 || threads > MAX_THREADS) {
		snprintf(why, EPG_WHY_NBYTES, "threads is %lld, but must be from 1 to %d", (long long)threads, MAX_THREADS);
		return false;
	}
	if (variant->lowering == CPU_TILE && (rows < CPU_ROWS || rows % CPU_ROWS || epg_cpu_step_cols(problem, rows) == 0)) {
		snprintf(why, EPG_WHY_NBYTES, "rows is %lld, but must be a multiple of %d that leaves a step at least 8 columns", (long long)rows, CPU_ROWS);
		return false;
	}
	weigh(state, problem, variant);
	return true;
}

/* ---- Plans ---- */

/* A plan and its own workspace, which one execution at a time may use; others that come meanwhile allocate theirs. */
typedef struct owned_plan {
	cpu_plan plan;
	void *workspace;
	atomic_flag busy;
} owned_plan;

static epg_status plan_create(void *context, const epg_problem *problem, const epg_variant *variant, bool own_workspace, void **out)
{
	owned_plan *owned = calloc(1, sizeof *owned);
	if (!owned)
		return epg_fail(EPG_NO_MEMORY, "no memory for a CPU plan (%zu bytes)", sizeof *owned);
	owned->plan = plan_of(context, problem, variant->lowering, variant->param);
	atomic_flag_clear(&owned->busy);
	if (own_workspace && owned->plan.workspace_nbytes) {
		epg_status status = memory_alloc(context, owned->plan.workspace_nbytes, &owned->workspace);
		if (status) {
			free(owned);
			return status;
		}
	}
	*out = owned;
	return EPG_SUCCESS;
}

static void plan_destroy(void *plan)
{
	owned_plan *owned = plan;
	memory_release(owned->plan.context, owned->workspace);
	free(owned);
}

static void plan_info(const void *state, epg_plan_info_backend *info)
{
	const cpu_plan *plan = &((const owned_plan *)state)->plan;
	info->workspace_nbytes = plan->workspace_nbytes;
	info->workspace_alignment = WORKSPACE_ALIGNMENT;
	info->launches = 1;
}

static void plan_explain(const void *state, char *text, size_t text_nbytes)
{
	const cpu_plan *plan = &((const owned_plan *)state)->plan;
	const cpu_blas_facts *blas = epg_cpu_blas();
	const char *tf32 = plan->problem.compute == EPG_COMPUTE_TF32 ? "tf32 is computed in f32 on the CPU\n" : "";
	if (plan->lowering == CPU_REFERENCE)
		snprintf(text, text_nbytes, "%splain loops on %d threads, accumulated in double, one rounding\n", tf32, plan->threads);
	else if (plan->lowering == CPU_WIDEN)
		snprintf(text, text_nbytes,
			"product: %s (%s, core type %s) in f32, one thread a call, on widened tiles of at most %lld×%lld of D, shared out to %d threads\n"
			"epilog: one pass over each tile in f32, instruction set %s; D is rounded once\n",
			blas->version, blas->flavour, blas->core, (long long)plan->wide_side, (long long)plan->wide_side, plan->threads, plan->context->pass->isa);
	else
		snprintf(text, text_nbytes,
			"%sproduct: %s (%s, core type %s), one thread a call, on tiles of %lld×%lld of D shared out to %d threads, in steps of at most %lld×%lld\n"
			"epilog: one pass over each step, instruction set %s; D is rounded once by the product and once by the pass\n",
			tf32, blas->version, blas->flavour, blas->core, (long long)plan->tile_m, (long long)plan->tile_n, plan->threads, (long long)plan->step_m, (long long)plan->step_n,
			plan->context->pass->isa);
}

typedef epg_status execute_fn(const cpu_plan *plan, const epg_call *call, void *workspace);
static execute_fn *const execute_fns[CPU_NLOWERINGS] = {
	[CPU_SPLIT] = epg_cpu_split_execute, [CPU_TILE] = epg_cpu_split_execute, [CPU_WIDEN] = epg_cpu_split_execute, [CPU_REFERENCE] = epg_cpu_reference_execute};

static epg_status execute(const void *state, const epg_call *call)
{
	owned_plan *owned = (owned_plan *)state; /* only its flag changes */
	execute_fn *fn = execute_fns[owned->plan.lowering];
	if (owned->plan.workspace_nbytes == 0 || call->x.workspace)
		return fn(&owned->plan, call, call->x.workspace);
	bool mine = !atomic_flag_test_and_set(&owned->busy);
	void *workspace = owned->workspace;
	epg_status status = mine ? EPG_SUCCESS : memory_alloc(owned->plan.context, owned->plan.workspace_nbytes, &workspace);
	if (!status)
		status = fn(&owned->plan, call, workspace);
	if (mine)
		atomic_flag_clear(&owned->busy);
	else if (!status)
		memory_release(owned->plan.context, workspace);
	return status;
}

static epg_status convert(void *context, int64_t batch, const epg_view *from_view, const void *from, const epg_view *to_view, void *to,
	const void *scale, void *amax, void *stream)
{
	(void)context, (void)stream;
	return epg_cpu_convert(batch, from_view, from, to_view, to, scale, amax);
}

const epg_backend epg_cpu_backend = {
	.abi = EPG_BACKEND_ABI,
	.nbytes = sizeof(epg_backend),
	.name = "cpu",
	.host_memory = true,
	.lowerings = lowerings,
	.nlowerings = CPU_NLOWERINGS,
	.probe = probe,
	.context_create = context_create,
	.context_destroy = context_destroy,
	.context_info = context_info,
	.stamp = stamp,
	.alloc = memory_alloc,
	.release = memory_release,
	.upload = copy,
	.download = copy,
	.synchronize = synchronize,
	.supports = supports,
	.variants = variants,
	.accepts = accepts,
	.plan_create = plan_create,
	.plan_destroy = plan_destroy,
	.plan_info = plan_info,
	.plan_explain = plan_explain,
	.execute = execute,
	.convert = convert,
};
