/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the CPU backend and what they owe each other. */
#ifndef EPG_CPU_H
#define EPG_CPU_H

#include "../backend.h"
#include "cpu_pass.h"

/* ---- cpu_threads.c: how many threads ---- */

/* The default number of threads: the smallest of affinity (CPUs in the mask), the cgroup's CPU quota rounded up, and
 * OMP_NUM_THREADS (its first number; ignored if it is none). cgroup_root stands for "/" (tests give a directory). *reason names
 * what decided: "affinity", "cgroup quota", "OMP_NUM_THREADS". At least 1. */
int32_t epg_cpu_default_threads(const char *cgroup_root, const char *omp_num_threads, int32_t affinity, const char **reason);

/* CPUs in the calling thread's mask. */
int32_t epg_cpu_affinity(void);

/* Threads that a parallel region may use now: 1 in a forked child (libgomp's pool did not survive) and inside a parallel region. */
int32_t epg_cpu_usable_threads(int32_t planned);

/* ---- cpu_blas.c: OpenBLAS, called safely ---- */

/* Facts about the linked BLAS, read at run time. */
typedef struct cpu_blas_facts {
	char version[48], core[32];
	const char *flavour; /* "serial", "pthread", "openmp" */
	int32_t parallel;    /* openblas_get_parallel(): 0, 1, 2 */
	int32_t max_calls;   /* that may run at once */
	int32_t int_nbits;   /* of the library that runs, found by a call; the headers' are those of blasint */
	int64_t max_dim;     /* largest size and leading dimension of one call */
} cpu_blas_facts;

const cpu_blas_facts *epg_cpu_blas(void);

/* Between enter and leave the BLAS computes each call in its caller's thread. They nest and overlap between threads; nothing
 * global is restored before the last one leaves. saved keeps what leave puts back for this thread. */
typedef struct cpu_blas_guard { int omp_threads; bool counted; } cpu_blas_guard;
void epg_cpu_blas_enter(cpu_blas_guard *guard);
void epg_cpu_blas_leave(const cpu_blas_guard *guard);

/* One panel: C = alpha·op(A)·op(B) + beta·C, column-major, of type F32, F64, C64 or C128. Sizes over max_dim are not for here, but k
 * may be anything (it is split). */
typedef struct cpu_gemm_args {
	int32_t type;
	bool a_trans, a_conj, b_trans, b_conj;
	int64_t m, n, k, lda, ldb, ldc;
	const double *alpha, *beta;
	const void *a, *b;
	void *c;
} cpu_gemm_args;

void epg_cpu_blas_gemm(const cpu_gemm_args *args);

/* ---- cpu_gemm.c: the split, tile and widen lowerings; cpu_ref.c: the reference lowering ---- */

typedef struct cpu_plan cpu_plan;

/* D is cut into tiles of tile_m×tile_n, the same for product and pass. The tile lowering goes through a tile in steps of step_m×step_n. */
struct cpu_plan {
	struct cpu_context *context;
	epg_problem problem;
	int32_t lowering, threads;
	int64_t tile_m, tile_n, step_m, step_n;
	int64_t wide_side, wide_ld;  /* of squares in f32; 0 unless the lowering is CPU_WIDEN */
	size_t workspace_nbytes;     /* for sums, and the widened tile of each thread */
};

enum { CPU_SPLIT, CPU_TILE, CPU_WIDEN, CPU_REFERENCE, CPU_NLOWERINGS };

bool epg_cpu_split_supports(const epg_problem *problem, char why[EPG_WHY_NBYTES]);
bool epg_cpu_tile_supports(const epg_problem *problem, char why[EPG_WHY_NBYTES]);
bool epg_cpu_widen_supports(const epg_problem *problem, char why[EPG_WHY_NBYTES]);
/* Rows of tiles and steps are multiples of this. */
enum { CPU_ROWS = 64 };
/* Is the tile lowering likely to be faster than the split one? */
bool epg_cpu_steps_pay(const epg_problem *problem);
/* Columns of a step of so many rows that is one small product; 0: none. */
int64_t epg_cpu_step_cols(const epg_problem *problem, int64_t rows);
/* Fills the sides of tiles and workspace_nbytes from problem, lowering, threads and, for CPU_TILE, step_m; all three lowerings. */
void epg_cpu_split_prepare(cpu_plan *plan);
epg_status epg_cpu_split_execute(const cpu_plan *plan, const epg_call *call, void *workspace);
epg_status epg_cpu_reference_execute(const cpu_plan *plan, const epg_call *call, void *workspace);

/* ---- cpu_wide.c: a tile of matrices of 8 and 16 bits, in f32 ---- */

/* Sides of a tile at most: products are then as fast as those of whole matrices but for some per cent (384 and 512 were measured alike, 256
 * slower). A plan's are wide_side; lines lie wide_ld apart; a thread's memory is three tiles, a fourth for the sums of integers, and a vector.
 * So many products of s8 add up to less than 2^24: exactly, in f32. */
enum { CPU_WIDE = 384 };
int64_t epg_cpu_wide_count(const cpu_plan *plan);

/* Rows i0 ≤ i < i1 and columns j0 ≤ j < j1 of an item of D. */
typedef struct cpu_tile { int64_t item, i0, i1, j0, j1; } cpu_tile;

/* Element (i,j) of an item; NULL stays NULL. */
const void *epg_cpu_at(const void *base, const epg_view *view, int64_t item, int64_t i, int64_t j);

/* The product of a tile, alpha·op(A)·op(B), in the first part of memory, columns wide_ld apart; of s8 also the sums themselves, in s32. */
void epg_cpu_wide_product(const cpu_plan *plan, const epg_call *call, const cpu_tile *tile, float *memory);
/* Makes pass and data, which come filled for the whole of D, those of the tile alone: its element (i0,j0) is their first. */
void epg_cpu_wide_begin(const cpu_plan *plan, const epg_call *call, const cpu_tile *tile, float *memory, cpu_pass *pass, cpu_pass_data *data);
/* Writes D, and a z that is kept as aux. For sums, memory then holds D as it was rounded. */
void epg_cpu_wide_end(const cpu_plan *plan, const epg_call *call, const cpu_tile *tile, float *memory);
/* All that is left to do for a D of type S32: alpha·product + beta·C + bias in double. */
void epg_cpu_wide_integers(const cpu_plan *plan, const epg_call *call, const cpu_tile *tile, bool product, const float *memory);
/* As cpu_pass_table.sum, of a rectangle of a matrix of 8 or 16 bits. */
void epg_cpu_wide_sum(const cpu_pass_table *table, int32_t type, const void *x, int64_t ld, int32_t axis, int64_t i0, int64_t i1, int64_t j0, int64_t j1, double *sums);

/* Sums of chunks, added up in order: gradient[i] = (accumulate ? gradient[i] : 0) + Σ_c sums[c·stride + i]. */
void epg_cpu_sum_finish(int32_t type, void *gradient, bool accumulate, const double *sums, int64_t chunks, int64_t length);

/* ---- cpu_convert.c ---- */

epg_status epg_cpu_convert(int64_t batch, const epg_view *from_view, const void *from, const epg_view *to_view, void *to, const void *scale, void *amax);

/* ---- cpu_backend.c ---- */

typedef struct cpu_context {
	int32_t threads;
	const char *threads_reason;
	const cpu_pass_table *pass;
	const epg_allocator *allocator;
	const void *log;
} cpu_context;

#endif
