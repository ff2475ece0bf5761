/* SPDX-License-Identifier: Apache-2.0
 *
 * The split, tile and widen lowerings. D is cut into tiles, at most one for each thread where the sizes allow; a thread computes its tile's
 * product with a single-threaded GEMM and runs the pass over it while it is the tile's owner; the tile lowering does both step by step. Matrices of 8 and 16 bits go by way of small
 * tiles in f32 (cpu_wide.c). Which tiles there are is decided by the plan, so that the bits of D do not depend on how many threads turn up; with EPG_DETERMINISTIC not on the
 * plan's threads either. Bias gradients are summed in chunks of D (cpu_pass.h), so tiles end at chunk ends. */
#include "cpu.h"

#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "../dtype.h"
#include "../epilog.h"
#include "../half.h"

/* Work (multiply-adds, a pass counted as PASS_WORK of them for each element) below which a tile is not split: about 5 us on
 * one core, where waking a team costs about 1 us. */
enum { PASS_WORK = 32, MIN_TILE_WORK = 1 << 18 };

/* Tiles under EPG_DETERMINISTIC: large enough that packing is amortised, small enough to give 16 threads work at 1024². */
enum { FIXED_TILE_M = 512, FIXED_TILE_N = 256 };

/* Rows of tiles are whole mask words and cache lines; columns fill the micro-kernels of every core type. */
enum { TILE_UNIT_M = CPU_ROWS, TILE_UNIT_N = 8 };

/* Columns of a step at most: its D stays in the second-level cache until the pass. */
enum { MAX_STEP_N = 192 };

/* Chunk sums of one round of batch items are kept under this, so that they stay in cache. */
enum { SUMS_NBYTES = 1 << 20 };

/* Sides of the buffer for a product that may not go to D at once: 32 KiB, a first-level cache. */
enum { ASIDE = 64 };

static int64_t round_up(int64_t x, int64_t unit) { return (x + unit - 1) / unit * unit; }
static int64_t ceil_div(int64_t x, int64_t y) { return (x + y - 1) / y; }
static int64_t min64(int64_t x, int64_t y) { return x < y ? x : y; }

/* At most 32 chunks, of at least 64: sums of f32 stay accurate and cost little memory. */
int64_t epg_cpu_sum_chunk(int64_t extent)
{
	return round_up(extent > 32 * 64 ? ceil_div(extent, 32) : 64, 64);
}

static int64_t chunks_of(int64_t extent) { return ceil_div(extent, epg_cpu_sum_chunk(extent)); }

/* ---- Planning ---- */

static bool blas_takes(const epg_view *view, const char *name, char why[EPG_WHY_NBYTES])
{
	int64_t max = epg_cpu_blas()->max_dim;
	if (view->ld == 0)
		snprintf(why, EPG_WHY_NBYTES, "%s has ld 0, which a BLAS does not take", name);
	else if (view->ld > max)
		snprintf(why, EPG_WHY_NBYTES, "%s.ld is %lld, more than the BLAS's %lld", name, (long long)view->ld, (long long)max);
	else
		return true;
	return false;
}

bool epg_cpu_split_supports(const epg_problem *p, char why[EPG_WHY_NBYTES])
{
	bool one_type = p->a.type == p->d.type && p->c.type == p->d.type && (!p->bias.length || p->bias.type == p->d.type)
		&& (!p->bgrad.length || p->bgrad.type == p->d.type);
	if (!one_type || epg_type_nbits(p->d.type) < 32) {
		snprintf(why, EPG_WHY_NBYTES, "OpenBLAS has no product of these types");
		return false;
	}
	if (p->k == 0)
		return true;
	return blas_takes(&p->a, p->swapped ? "b" : "a", why) && blas_takes(&p->b, p->swapped ? "a" : "b", why) && blas_takes(&p->d, "d", why);
}

/* m·n·k of one step. OpenBLAS's AVX-512 core types have a kernel for products up to this that packs nothing. */
static const double small_product = 1e6;

/* That kernel wants real numbers and an untransposed A. Measured (doc/perf): it is faster in steps than the packing path where a thread
 * gets more than one step but too little to pay for packing, or k is short. */
bool epg_cpu_steps_pay(const epg_problem *p)
{
	static const char *const cores[] = {"SkylakeX", "Cooperlake", "SapphireRapids"};
	double work = (double)p->m * (double)p->n * (double)p->k;
	bool there = false;
	for (size_t i = 0; i < sizeof cores / sizeof *cores; i++)
		there |= strcmp(epg_cpu_blas()->core, cores[i]) == 0;
	return there && !epg_type_complex(p->d.type) && !p->a.trans && work > small_product && (p->k <= 128 || work <= 1e8);
}

int64_t epg_cpu_step_cols(const epg_problem *p, int64_t rows)
{
	double cols = small_product / ((double)rows * (double)(p->k > 0 ? p->k : 1));
	return cols > MAX_STEP_N ? MAX_STEP_N : (int64_t)cols / TILE_UNIT_N * TILE_UNIT_N;
}

bool epg_cpu_tile_supports(const epg_problem *p, char why[EPG_WHY_NBYTES])
{
	if (!epg_cpu_split_supports(p, why))
		return false;
	const char *reason = p->k == 0 ? "there is no product" : epg_cpu_step_cols(p, CPU_ROWS) == 0 ? "k is too long for a step of 64×8 elements of D" : NULL;
	if (reason)
		snprintf(why, EPG_WHY_NBYTES, "%s", reason);
	return !reason;
}

bool epg_cpu_widen_supports(const epg_problem *p, char why[EPG_WHY_NBYTES])
{
	if (epg_type_nbits(p->a.type) <= 16)
		return true;
	snprintf(why, EPG_WHY_NBYTES, "A and B have more than 16 bits");
	return false;
}

/* Cuts m×n into parts_m·parts_n ≤ threads tiles that read least of A and B, which is in proportion to k times the sum of their
 * sides; whole columns where that is equal. */
static void balanced_tiles(cpu_plan *plan, int64_t threads, int64_t unit_m, int64_t unit_n)
{
	int64_t m = plan->problem.m > 0 ? plan->problem.m : 1, n = plan->problem.n > 0 ? plan->problem.n : 1;
	int64_t best_tiles = 0;
	double best = 0;
	for (int64_t parts_n = threads; parts_n >= 1; parts_n--) {
		int64_t tile_m = round_up(ceil_div(m, threads / parts_n), unit_m), tile_n = round_up(ceil_div(n, parts_n), unit_n);
		int64_t tiles = ceil_div(m, tile_m) * ceil_div(n, tile_n);
		double reads = (double)plan->problem.k * (double)(min64(tile_m, m) + min64(tile_n, n));
		if (tiles > best_tiles || (tiles == best_tiles && reads < best)) {
			plan->tile_m = tile_m, plan->tile_n = tile_n;
			best = reads, best_tiles = tiles;
		}
	}
}

static int32_t useful_threads(const cpu_plan *plan, int64_t items)
{
	const epg_problem *p = &plan->problem;
	double most = (double)items * (double)p->m * (double)p->n * ((double)p->k + PASS_WORK) / MIN_TILE_WORK;
	return most < 1 ? 1 : most < plan->threads ? (int32_t)most : plan->threads;
}

static int64_t sums_per_item(const epg_problem *p)
{
	if (p->epilog & EPG_BGRAD)
		return p->bgrad.length * chunks_of(p->axis == EPG_PER_ROW ? p->n : p->m);
	return p->epilog & (EPG_BGRADA | EPG_BGRADB) ? p->bgrad.length * chunks_of(p->k) : 0;
}

/* Batch items whose sums fit the workspace together. */
static int64_t items_per_round(const epg_problem *p)
{
	int64_t each = sums_per_item(p) * (int64_t)sizeof(double);
	if (each == 0 || !(p->epilog & EPG_BGRAD))
		return p->batch;
	return each < SUMS_NBYTES ? min64(SUMS_NBYTES / each, p->batch) : 1;
}

static size_t sums_nbytes(const epg_problem *p)
{
	size_t nbytes = (size_t)(sums_per_item(p) * (p->epilog & EPG_BGRAD ? items_per_round(p) : 1)) * sizeof(double);
	return (nbytes + 63) / 64 * 64;
}

void epg_cpu_split_prepare(cpu_plan *plan)
{
	const epg_problem *p = &plan->problem;
	bool sums = (p->epilog & EPG_BGRAD) != 0;
	int64_t unit_m = sums && p->axis == EPG_PER_COLUMN ? epg_cpu_sum_chunk(p->m) : TILE_UNIT_M;
	int64_t unit_n = sums && p->axis == EPG_PER_ROW ? epg_cpu_sum_chunk(p->n) : TILE_UNIT_N;
	int64_t most = epg_cpu_blas()->max_dim / 2;
	if (p->flags & EPG_DETERMINISTIC) {
		plan->tile_m = round_up(FIXED_TILE_M, unit_m);
		plan->tile_n = round_up(FIXED_TILE_N, unit_n);
	} else {
		balanced_tiles(plan, p->batch >= plan->threads ? 1 : useful_threads(plan, 1), unit_m, unit_n);
	}
	plan->tile_m = plan->tile_m > most ? round_up(most - unit_m, unit_m) : plan->tile_m;
	plan->tile_n = plan->tile_n > most ? round_up(most - unit_n, unit_n) : plan->tile_n;
	plan->threads = useful_threads(plan, p->batch);
	plan->step_m = plan->lowering == CPU_TILE ? min64(plan->step_m, plan->tile_m) : plan->tile_m;
	plan->step_n = plan->lowering == CPU_TILE ? min64(epg_cpu_step_cols(p, plan->step_m), plan->tile_n) : plan->tile_n;
	if (plan->lowering == CPU_WIDEN) {
		int64_t longest = p->m > p->n ? p->m : p->n;
		plan->wide_side = min64(round_up(longest > p->k ? longest : p->k, TILE_UNIT_M), CPU_WIDE);
		plan->wide_ld = plan->wide_side + 16;
	}
	plan->workspace_nbytes = sums_nbytes(p) + (plan->lowering == CPU_WIDEN ? (size_t)plan->threads * (size_t)epg_cpu_wide_count(plan) * sizeof(float) : 0);
}

/* ---- Executing ---- */

/* What all threads of one execution share. */
typedef struct split_job {
	const cpu_plan *plan;
	const epg_call *call;
	cpu_pass pass;
	bool product, run_pass, blas_beta;
	bool wide;                    /* by way of tiles in f32 … */
	float *memory;                /* … each thread in its own */
	bool aside;                   /* D lies over aux, which the product may not overwrite: it goes to a buffer first */
	double *sums;                 /* of the round's items, one after the other */
	int64_t tiles_m, tiles;       /* of one item */
	int64_t first_item, items;    /* of the round */
} split_job;

const void *epg_cpu_at(const void *base, const epg_view *view, int64_t item, int64_t i, int64_t j)
{
	int64_t index = item * view->batch_stride + (view->trans ? i * view->ld + j : i + j * view->ld);
	return base ? (const char *)base + epg_type_nbytes(view->type, index) : NULL;
}

/* The product of a tile to c, which is D's or a buffer's element (i0,j0). */
static void product(const split_job *job, const cpu_tile *t, void *c, int64_t ldc)
{
	static const double zero[2] = {0, 0};
	const epg_problem *p = &job->plan->problem;
	const epg_operands *x = &job->call->x;
	cpu_gemm_args args = {
		.type = p->d.type, .a_trans = p->a.trans, .a_conj = p->a.conj, .b_trans = p->b.trans, .b_conj = p->b.conj,
		.m = t->i1 - t->i0, .n = t->j1 - t->j0, .k = p->k, .lda = p->a.ld, .ldb = p->b.ld, .ldc = ldc,
		.alpha = job->call->alpha, .beta = job->blas_beta ? job->call->beta : zero,
		.a = epg_cpu_at(x->a, &p->a, t->item, t->i0, 0), .b = epg_cpu_at(x->b, &p->b, t->item, 0, t->j0), .c = c,
	};
	epg_cpu_blas_gemm(&args);
}

/* The end of the summed chunk that s lies in, or of the tile; *sums: the chunk's of an item. */
static int64_t chunk_end(const split_job *job, const cpu_tile *t, int64_t s, double **sums)
{
	const epg_problem *p = &job->plan->problem;
	bool per_row = p->axis == EPG_PER_ROW;
	int64_t width = epg_cpu_sum_chunk(per_row ? p->n : p->m);
	*sums = job->sums + (t->item - job->first_item) * sums_per_item(p) + s / width * p->bgrad.length;
	return min64(s / width * width + width, per_row ? t->j1 : t->i1);
}

static bool begins_chunk(const epg_problem *p, int64_t s) { return s % epg_cpu_sum_chunk(p->axis == EPG_PER_ROW ? p->n : p->m) == 0; }

/* The pass over a tile of D where it lies, chunk by chunk where it sums. */
static void pass(const split_job *job, const cpu_tile *t, const void *buffer, int64_t buffer_ld)
{
	const epg_problem *p = &job->plan->problem;
	const epg_operands *x = &job->call->x;
	const cpu_pass_table *table = job->plan->context->pass;
	cpu_pass_data data = {
		.c = epg_cpu_at(x->c, &p->c, t->item, 0, 0), .d = (void *)epg_cpu_at(x->d, &p->d, t->item, 0, 0), .aux = (void *)epg_cpu_at(x->aux, &p->aux, t->item, 0, 0),
		.bias = x->bias ? (const char *)x->bias + epg_type_nbytes(p->bias.type, t->item * p->bias.batch_stride) : NULL,
		.beta = {job->call->beta[0], job->call->beta[1]}, .product = buffer, .product_ld = buffer_ld,
	};
	bool per_row = p->axis == EPG_PER_ROW;
	if (!(p->epilog & EPG_BGRAD))
		table->run(&job->pass, &data, t->i0, t->i1, t->j0, t->j1);
	for (int64_t s = per_row ? t->j0 : t->i0, e; p->epilog & EPG_BGRAD && s < (per_row ? t->j1 : t->i1); s = e) {
		e = chunk_end(job, t, s, &data.sums);
		data.continues = !begins_chunk(p, s);
		if (per_row)
			table->run(&job->pass, &data, t->i0, t->i1, s, e);
		else
			table->run(&job->pass, &data, s, e, t->j0, t->j1);
	}
}

/* A tile by way of a buffer on the stack: small squares that begin at multiples of 64, so that each lies in one chunk. */
static void run_tile_aside(const split_job *job, const cpu_tile *t)
{
	double buffer[ASIDE * ASIDE];
	for (int64_t j = t->j0; j < t->j1; j += ASIDE)
		for (int64_t i = t->i0; i < t->i1; i += ASIDE) {
			cpu_tile square = {t->item, i, min64(i + ASIDE, t->i1), j, min64(j + ASIDE, t->j1)};
			product(job, &square, buffer, ASIDE);
			pass(job, &square, buffer, ASIDE);
		}
}

/* Sums of the D that was written: memory holds it again, as float. */
static void sum_wide(const split_job *job, const cpu_tile *t, const float *memory)
{
	const epg_problem *p = &job->plan->problem;
	const cpu_pass_table *table = job->plan->context->pass;
	bool per_row = p->axis == EPG_PER_ROW;
	int64_t first = per_row ? t->i0 : t->j0, count = (per_row ? t->i1 : t->j1) - first;
	int64_t ld = job->plan->wide_ld;
	double part[CPU_WIDE], *sums;
	for (int64_t s = per_row ? t->j0 : t->i0, e; s < (per_row ? t->j1 : t->i1); s = e) {
		e = chunk_end(job, t, s, &sums);
		if (per_row)
			table->sum(EPG_F32, memory, ld, p->axis, 0, count, s - t->j0, e - t->j0, part);
		else
			table->sum(EPG_F32, memory, ld, p->axis, s - t->i0, e - t->i0, 0, count, part);
		for (int64_t i = 0; i < count; i++)
			sums[first + i] = (begins_chunk(p, s) ? 0 : sums[first + i]) + part[i];
	}
}

/* A tile by way of squares in f32. */
static void run_tile_wide(const split_job *job, const cpu_tile *t, float *memory)
{
	const cpu_plan *plan = job->plan;
	int64_t side = plan->wide_side;
	for (int64_t j = t->j0; j < t->j1; j += side)
		for (int64_t i = t->i0; i < t->i1; i += side) {
			cpu_tile square = {t->item, i, min64(i + side, t->i1), j, min64(j + side, t->j1)};
			cpu_pass pass = job->pass;
			cpu_pass_data data = {.beta = {job->call->beta[0], job->call->beta[1]}};
			pass.epilog &= ~EPG_BGRAD;
			if (job->product)
				epg_cpu_wide_product(plan, job->call, &square, memory);
			if (plan->problem.d.type == EPG_S32) {
				epg_cpu_wide_integers(plan, job->call, &square, job->product, memory);
				continue;
			}
			epg_cpu_wide_begin(plan, job->call, &square, memory, &pass, &data);
			if (job->run_pass)
				plan->context->pass->run(&pass, &data, 0, square.i1 - i, 0, square.j1 - j);
			epg_cpu_wide_end(plan, job->call, &square, memory);
			if (plan->problem.epilog & EPG_BGRAD)
				sum_wide(job, &square, memory);
		}
}

static void run_tile(const split_job *job, int64_t task, int thread)
{
	const cpu_plan *plan = job->plan;
	int64_t tile = task % job->tiles, i0 = tile % job->tiles_m * plan->tile_m, j0 = tile / job->tiles_m * plan->tile_n;
	cpu_tile t = {job->first_item + task / job->tiles, i0, min64(i0 + plan->tile_m, plan->problem.m), j0, min64(j0 + plan->tile_n, plan->problem.n)};
	if (job->wide) {
		run_tile_wide(job, &t, job->memory + thread * epg_cpu_wide_count(plan));
		return;
	}
	if (job->aside) {
		run_tile_aside(job, &t);
		return;
	}
	for (int64_t j = t.j0; j < t.j1; j += plan->step_n)
		for (int64_t i = t.i0; i < t.i1; i += plan->step_m) {
			cpu_tile step = {t.item, i, min64(i + plan->step_m, t.i1), j, min64(j + plan->step_n, t.j1)};
			if (job->product)
				product(job, &step, (void *)epg_cpu_at(job->call->x.d, &plan->problem.d, t.item, i, j), plan->problem.d.ld);
			if (job->run_pass)
				pass(job, &step, NULL, 0);
		}
}

/* Calls each(job, task, thread) for every task; in the calling thread alone when there is one thread or one task. */
static void share_out(const split_job *job, int64_t tasks, void (*each)(const split_job *, int64_t, int))
{
	int threads = epg_cpu_usable_threads((int32_t)min64(job->plan->threads, tasks));
	if (threads <= 1) {
		for (int64_t task = 0; task < tasks; task++)
			each(job, task, 0);
		return;
	}
#pragma omp parallel for num_threads(threads) schedule(static)
	for (int64_t task = 0; task < tasks; task++)
		each(job, task, omp_get_thread_num());
}

void epg_cpu_sum_finish(int32_t type, void *gradient, bool accumulate, const double *sums, int64_t chunks, int64_t length)
{
	for (int64_t i = 0; i < length; i++) {
		double old = accumulate ? epg_load_real(type, gradient, i) : 0, sum = 0;
		for (int64_t c = 0; c < chunks; c++)
			sum += sums[c * length + i];
		epg_store_real(type, gradient, i, sum + old);
	}
}

static void finish_gradient(const split_job *job, int64_t item, const double *sums, int64_t chunks)
{
	const epg_span *span = &job->plan->problem.bgrad;
	void *gradient = (char *)job->call->x.bgrad + epg_type_nbytes(span->type, item * span->batch_stride);
	epg_cpu_sum_finish(span->type, gradient, job->plan->problem.flags & EPG_BGRAD_ACCUMULATE, sums, chunks, span->length);
}

static void finish_item(const split_job *job, int64_t task, int thread)
{
	(void)thread;
	const epg_problem *p = &job->plan->problem;
	int64_t chunks = p->m && p->n ? chunks_of(p->axis == EPG_PER_ROW ? p->n : p->m) : 0;
	finish_gradient(job, job->first_item + task, job->sums + task * sums_per_item(p), chunks);
}

/* ---- BGRADA and BGRADB: sums of an operand over k ---- */

/* Lines of the operand that one task sums. */
enum { OPERAND_BLOCK = 512 };

static void sum_operand_block(const split_job *job, int64_t task, int thread)
{
	(void)thread;
	const epg_problem *p = &job->plan->problem;
	bool of_a = (p->epilog & EPG_BGRADA) != 0;
	const epg_view *view = of_a ? &p->a : &p->b;
	const void *x = epg_cpu_at(of_a ? job->call->x.a : job->call->x.b, view, job->first_item, 0, 0);
	int64_t blocks = ceil_div(p->bgrad.length, OPERAND_BLOCK), width = epg_cpu_sum_chunk(p->k), chunk = task / blocks;
	int64_t l0 = chunk * width, l1 = min64(l0 + width, p->k);
	int64_t s0 = task % blocks * OPERAND_BLOCK, s1 = min64(s0 + OPERAND_BLOCK, p->bgrad.length);
	double *sums = job->sums + chunk * p->bgrad.length;
	/* k runs over the columns of the stored matrix for A as it is and for Bᵀ. */
	const cpu_pass_table *table = job->plan->context->pass;
	bool per_row = of_a != view->trans;
	int32_t axis = per_row ? EPG_PER_ROW : EPG_PER_COLUMN;
	int64_t i0 = per_row ? s0 : l0, i1 = per_row ? s1 : l1, j0 = per_row ? l0 : s0, j1 = per_row ? l1 : s1;
	if (job->wide)
		epg_cpu_wide_sum(table, view->type, x, view->ld, axis, i0, i1, j0, j1, sums);
	else
		table->sum(view->type, x, view->ld, axis, i0, i1, j0, j1, sums);
}

static void sum_operands(split_job *job)
{
	const epg_problem *p = &job->plan->problem;
	int64_t chunks = chunks_of(p->k);
	for (int64_t item = 0; item < p->batch; item++) {
		job->first_item = item;
		share_out(job, chunks * ceil_div(p->bgrad.length, OPERAND_BLOCK), sum_operand_block);
		finish_gradient(job, item, job->sums, chunks);
	}
}

/* ---- The whole ---- */

static bool same_memory(const epg_problem *p, const epg_operands *x)
{
	return x->c == x->d && !p->c.trans && p->c.ld == p->d.ld && (p->batch <= 1 || p->c.batch_stride == p->d.batch_stride);
}

/* A D of so many bytes is out of the caches by the time it is read again. Virtual machines tell the last-level cache of the whole
 * host, so it is not asked. */
enum { STREAM_NBYTES = 32 << 20 };

static split_job make_job(const cpu_plan *plan, const epg_call *call, void *workspace)
{
	const epg_problem *p = &plan->problem;
	bool beta = call->beta[0] != 0 || call->beta[1] != 0;
	split_job job = {.plan = plan, .call = call, .sums = workspace, .wide = plan->lowering == CPU_WIDEN};
	job.memory = (float *)((char *)workspace + sums_nbytes(p));
	job.product = p->k > 0 && (call->alpha[0] != 0 || call->alpha[1] != 0);
	job.aside = !job.wide && job.product && epg_epilog_aux_in(p->epilog) && call->x.aux == call->x.d;
	job.blas_beta = job.product && !job.aside && !job.wide && beta && same_memory(p, &call->x);
	job.pass = (cpu_pass){
		.type = job.wide ? EPG_F32 : p->d.type, .epilog = p->epilog, .axis = p->axis, .has_product = job.product, .add_c = beta && !job.blas_beta,
		.c_trans = p->c.trans, .aux_trans = p->aux.trans, .c_ld = p->c.ld, .d_ld = p->d.ld, .aux_ld = p->aux.ld,
	};
	job.pass.stream = !job.wide && !job.product && call->x.c != call->x.d && call->x.aux != call->x.d
		&& epg_type_nbytes(p->d.type, epg_view_batch_extent(&p->d, p->batch)) >= STREAM_NBYTES;
	job.run_pass = !job.product || job.pass.add_c || (p->epilog & ~(EPG_BGRADA | EPG_BGRADB));
	job.tiles_m = ceil_div(p->m, plan->tile_m);
	job.tiles = job.tiles_m * ceil_div(p->n, plan->tile_n);
	return job;
}

epg_status epg_cpu_split_execute(const cpu_plan *plan, const epg_call *call, void *workspace)
{
	const epg_problem *p = &plan->problem;
	split_job job = make_job(plan, call, workspace);
	if (p->epilog & (EPG_BGRADA | EPG_BGRADB))
		sum_operands(&job); /* first: D may not overlap A or B, but sums need no D */
	cpu_blas_guard guard;
	epg_cpu_blas_enter(&guard);
	int64_t round = items_per_round(p);
	for (int64_t item = 0; item < p->batch; item += round) {
		job.first_item = item;
		job.items = min64(round, p->batch - item);
		share_out(&job, job.items * job.tiles, run_tile);
		if (p->epilog & EPG_BGRAD)
			share_out(&job, job.items, finish_item);
	}
	epg_cpu_blas_leave(&guard);
	return EPG_SUCCESS;
}
