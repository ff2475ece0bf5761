/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the CUDA backend and what they owe each other: the vendor's functions (cuda_lt.c), one product by them
 * (cuda_gemm.c), what a way costs (cuda_cost.c), ways and plans (cuda_plan.c), contexts and memory (cuda_backend.c). */
#ifndef EPG_CUDA_H
#define EPG_CUDA_H

#include <cublasLt.h>

#include "../backend.h"
#include "cuda_pass.h"

/* Alignment of workspaces, and of everything in them, in bytes. */
enum { CUDA_ALIGNMENT = 256 };

/* ---- cuda_lt.c: the vendor's functions, and its errors in words ---- */

#define EPG_CUDA_LT_FUNCTIONS(LT) \
	LT(cublasLtCreate) LT(cublasLtDestroy) LT(cublasLtGetVersion) LT(cublasLtGetStatusName) \
	LT(cublasLtMatmulDescInit_internal) LT(cublasLtMatmulDescSetAttribute) \
	LT(cublasLtMatrixLayoutInit_internal) LT(cublasLtMatrixLayoutSetAttribute) \
	LT(cublasLtMatmulPreferenceInit_internal) LT(cublasLtMatmulPreferenceSetAttribute) \
	LT(cublasLtMatmulAlgoGetHeuristic) LT(cublasLtMatmulAlgoInit) LT(cublasLtMatmulAlgoCheck) \
	LT(cublasLtMatmulAlgoConfigSetAttribute) LT(cublasLtMatmulAlgoConfigGetAttribute) LT(cublasLtMatmul)

#define EPG_CUDA_LT_MEMBER(name) __typeof__(&name) name;
typedef struct epg_cuda_lt {
	EPG_CUDA_LT_FUNCTIONS(EPG_CUDA_LT_MEMBER)
} epg_cuda_lt;

/* Opens the library once; NULL with the reason in why. */
const epg_cuda_lt *epg_cuda_lt_open(char *why, size_t why_nbytes);

/* The core's services, set by the plug-in's entry. */
extern epg_services epg_cuda_core;
#define epg_cuda_fail epg_cuda_core.fail

/* EPG_DEVICE_ERROR, EPG_NO_MEMORY or EPG_INVALID with the call and its code in the sentence; EPG_SUCCESS for success. */
epg_status epg_cuda_check(cudaError_t error, const char *call);
epg_status epg_cuda_check_lt(const epg_cuda_lt *lt, cublasStatus_t status, const char *call);

/* ---- cuda_backend.c: contexts ---- */

typedef struct epg_cuda_context {
	const epg_cuda_lt *lt;
	cublasLtHandle_t handle;
	int device;
	int multiprocessors, capability; /* capability: 90 for 9.0 */
	int64_t l2_nbytes;
	double bytes_per_s, clock_hz;    /* of the memory; of the multiprocessors */
	char name[64];
	const epg_allocator *allocator;
	const void *log;
} epg_cuda_context;

/* Makes the context's device current for the calling thread, and the one before again. */
epg_status epg_cuda_enter(const epg_cuda_context *context, int *previous);
void epg_cuda_leave(const epg_cuda_context *context, int previous);

/* Device memory for data, from the context's allocator. stream NULL and ordered false: usable at once. */
epg_status epg_cuda_alloc(const epg_cuda_context *context, size_t nbytes, bool ordered, void *stream, void **ptr);
void epg_cuda_release(const epg_cuda_context *context, void *ptr, bool ordered, void *stream);

/* ---- cuda_gemm.c: one product by the vendor's library ---- */

/* D = epilog(alpha·op(A)·op(B) + beta·C), column-major. */
typedef struct epg_cuda_form {
	int64_t m, n, k;
	int32_t batch;
	int32_t ab_type, c_type, d_type, compute, scalar;
	bool a_trans, a_conj, b_trans, b_conj, scalars_on_device;
	int64_t lda, ldb, ldc, ldd, ldaux;
	int64_t stride_a, stride_b, stride_c, stride_d, stride_aux, stride_vector;
	int32_t epilog;           /* EPG_EPILOG_…, of those that the vendor has */
	uint32_t alignment;       /* bytes, of A, B, C and D */
	int32_t sm_count;
	size_t workspace_nbytes;  /* most that it may use */
} epg_cuda_form;

/* An algorithm as the vendor's attributes: it can be written down and made again. In the order of epg_cuda_algo_names. */
enum { CUDA_NALGO = 9 };
#define EPG_CUDA_ALGO_NAMES "id", "tile", "stages", "splitk", "reduction", "swizzle", "custom", "inner", "cluster"
typedef struct epg_cuda_algo {
	int64_t attribute[CUDA_NALGO];
	size_t workspace_nbytes;
	float waves;
} epg_cuda_algo;

typedef struct epg_cuda_gemm {
	cublasLtMatmulDescOpaque_t desc;
	cublasLtMatrixLayoutOpaque_t a, b, c, d;
	cublasLtMatmulAlgo_t algo;
	size_t workspace_nbytes;
	int32_t epilog, scalar;
	bool scalars_on_device, c_is_as_d;
	bool staged; /* a chosen algorithm of the newer kind */
} epg_cuda_gemm;

/* The pointers of one call; alpha and beta are doubles on the host (re, im), unless alpha_device says where both are on the device. */
typedef struct epg_cuda_gemm_call {
	const void *a, *b, *c;
	void *d, *aux, *vector, *workspace;
	const double *alpha, *beta;
	const void *alpha_device, *beta_device;
	cudaStream_t stream;
} epg_cuda_gemm_call;

/* What the vendor proposes, best first; the count, which can be 0 (then why says so). */
int32_t epg_cuda_gemm_candidates(const epg_cuda_context *context, const epg_cuda_form *form, epg_cuda_algo *algos, int32_t capacity, char why[EPG_WHY_NBYTES]);

/* Fills gemm. algo NULL: the vendor's first proposal. EPG_UNSUPPORTED when the algorithm is not for this form. */
epg_status epg_cuda_gemm_make(const epg_cuda_context *context, const epg_cuda_form *form, const epg_cuda_algo *algo, epg_cuda_gemm *gemm);

epg_status epg_cuda_gemm_run(const epg_cuda_context *context, const epg_cuda_gemm *gemm, const epg_cuda_gemm_call *call);

/* ---- cuda_cost.c: estimates in seconds ---- */

double epg_cuda_cost_gemm(const epg_cuda_context *context, const epg_problem *problem, int32_t vendor_epilog);
/* The factor of the vendor's proposal number i against its first (which has first_waves), by what was seen of epilogs and tiles. */
double epg_cuda_cost_of_algo(const epg_cuda_form *form, const epg_cuda_algo *algo, float first_waves, int32_t i);
double epg_cuda_cost_pass(const epg_cuda_context *context, double nbytes, bool sums);

/* ---- cuda_plan.c ---- */

extern const epg_lowering epg_cuda_lowerings[];
enum { CUDA_NLOWERINGS = 4 };
bool epg_cuda_supports(const void *context, const epg_problem *problem, int32_t lowering, char why[EPG_WHY_NBYTES]);
int32_t epg_cuda_variants(const void *context, const epg_problem *problem, int32_t lowering, int32_t rigor, epg_variant *variants, int32_t capacity,
	char why[EPG_WHY_NBYTES]);
bool epg_cuda_accepts(const void *context, const epg_problem *problem, epg_variant *variant, char why[EPG_WHY_NBYTES]);
epg_status epg_cuda_plan_create(void *context, const epg_problem *problem, const epg_variant *variant, bool own_workspace, void **plan);
void epg_cuda_plan_destroy(void *plan);
void epg_cuda_plan_info(const void *plan, epg_plan_info_backend *info);
void epg_cuda_plan_explain(const void *plan, char *text, size_t text_nbytes);
epg_cuda_context *epg_cuda_context_of(const void *plan);

/* ---- cuda_run.c ---- */

epg_status epg_cuda_execute(const void *plan, const epg_call *call);

/* ---- cuda_backend.c: times ---- */

epg_status epg_cuda_time(const void *plan, const epg_call *call, int32_t calls, double *seconds);

#endif
