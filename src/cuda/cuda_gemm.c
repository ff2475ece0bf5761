/* SPDX-License-Identifier: Apache-2.0
 *
 * One product by cuBLASLt: a form becomes a descriptor and four layouts, the vendor proposes algorithms, one of them is made
 * from its attributes. All of it lies in structs of ours (the vendor's opaque types of known size), so that a finished gemm
 * is plain data: a call copies the descriptor to its stack, puts its pointers in, and shares nothing with other calls.
 *
 * The vendor's setters check nothing, so forms are checked before (cuda_plan.c); what its functions do answer is kept. */
#include <stdio.h>
#include <string.h>

#include "../dtype.h"
#include "../epilog.h"
#include "cuda.h"

/* Never followed: the heuristics look at the alignment of the bias pointer's value. */
static void *const aligned_pointer = (void *)(uintptr_t)CUDA_ALIGNMENT;

static const cudaDataType_t data_types[] = {
	[EPG_F64] = CUDA_R_64F, [EPG_F32] = CUDA_R_32F, [EPG_F16] = CUDA_R_16F, [EPG_BF16] = CUDA_R_16BF, [EPG_C64] = CUDA_C_32F, [EPG_C128] = CUDA_C_64F,
};

static const cublasComputeType_t compute_types[] = {
	[EPG_COMPUTE_F64] = CUBLAS_COMPUTE_64F, [EPG_COMPUTE_F32] = CUBLAS_COMPUTE_32F, [EPG_COMPUTE_TF32] = CUBLAS_COMPUTE_32F_FAST_TF32,
};

typedef struct vendor_epilog {
	int32_t ours;
	cublasLtEpilogue_t theirs;
} vendor_epilog;

static const vendor_epilog vendor_epilogs[EPG_NEPILOGS] = {
	{EPG_EPILOG_DEFAULT, CUBLASLT_EPILOGUE_DEFAULT},
	{EPG_EPILOG_RELU, CUBLASLT_EPILOGUE_RELU},
	{EPG_EPILOG_RELU_AUX, CUBLASLT_EPILOGUE_RELU_AUX},
	{EPG_EPILOG_BIAS, CUBLASLT_EPILOGUE_BIAS},
	{EPG_EPILOG_RELU_BIAS, CUBLASLT_EPILOGUE_RELU_BIAS},
	{EPG_EPILOG_RELU_AUX_BIAS, CUBLASLT_EPILOGUE_RELU_AUX_BIAS},
	{EPG_EPILOG_DRELU, CUBLASLT_EPILOGUE_DRELU},
	{EPG_EPILOG_DRELU_BGRAD, CUBLASLT_EPILOGUE_DRELU_BGRAD},
	{EPG_EPILOG_GELU, CUBLASLT_EPILOGUE_GELU},
	{EPG_EPILOG_GELU_AUX, CUBLASLT_EPILOGUE_GELU_AUX},
	{EPG_EPILOG_GELU_BIAS, CUBLASLT_EPILOGUE_GELU_BIAS},
	{EPG_EPILOG_GELU_AUX_BIAS, CUBLASLT_EPILOGUE_GELU_AUX_BIAS},
	{EPG_EPILOG_DGELU, CUBLASLT_EPILOGUE_DGELU},
	{EPG_EPILOG_DGELU_BGRAD, CUBLASLT_EPILOGUE_DGELU_BGRAD},
	{EPG_EPILOG_BGRADA, CUBLASLT_EPILOGUE_BGRADA},
	{EPG_EPILOG_BGRADB, CUBLASLT_EPILOGUE_BGRADB},
};

static cublasLtEpilogue_t vendor_epilog_of(int32_t epilog)
{
	int i = 0;
	while (vendor_epilogs[i].ours != epilog)
		i++;
	return vendor_epilogs[i].theirs;
}

static bool has_vector(int32_t epilog) { return epilog & EPG_BIAS || epg_epilog_bgrad(epilog); }

static cublasOperation_t operation(bool trans, bool conj) { return !trans ? CUBLAS_OP_N : conj ? CUBLAS_OP_C : CUBLAS_OP_T; }

/* ---- Descriptor and layouts ---- */

/* An attribute, where it is, and its size. */
typedef struct setting {
	int attribute;
	const void *value;
	size_t nbytes;
	bool wanted;
} setting;

static epg_status set_desc(const epg_cuda_lt *lt, cublasLtMatmulDesc_t desc, const setting *settings, size_t count)
{
	epg_status status = EPG_SUCCESS;
	for (size_t i = 0; i < count && !status; i++)
		if (settings[i].wanted)
			status = epg_cuda_check_lt(lt, lt->cublasLtMatmulDescSetAttribute(desc, (cublasLtMatmulDescAttributes_t)settings[i].attribute,
				settings[i].value, settings[i].nbytes), "cublasLtMatmulDescSetAttribute");
	return status;
}

static epg_status make_desc(const epg_cuda_lt *lt, const epg_cuda_form *f, cublasLtMatmulDesc_t desc)
{
	const cublasOperation_t op_a = operation(f->a_trans, f->a_conj), op_b = operation(f->b_trans, f->b_conj);
	const cublasLtPointerMode_t device = CUBLASLT_POINTER_MODE_DEVICE;
	const cublasLtEpilogue_t epilog = vendor_epilog_of(f->epilog);
	const cudaDataType_t vector_type = data_types[f->d_type];
	bool vector = has_vector(f->epilog), aux = f->epilog & EPG_AUX, batched = f->batch > 1;
	const setting settings[] = {
		{CUBLASLT_MATMUL_DESC_TRANSA, &op_a, sizeof op_a, true},
		{CUBLASLT_MATMUL_DESC_TRANSB, &op_b, sizeof op_b, true},
		{CUBLASLT_MATMUL_DESC_POINTER_MODE, &device, sizeof device, f->scalars_on_device},
		{CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, &f->sm_count, sizeof f->sm_count, f->sm_count > 0},
		{CUBLASLT_MATMUL_DESC_EPILOGUE, &epilog, sizeof epilog, true},
		{CUBLASLT_MATMUL_DESC_BIAS_POINTER, &aligned_pointer, sizeof aligned_pointer, vector},
		{CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &vector_type, sizeof vector_type, vector},
		{CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, &f->stride_vector, sizeof f->stride_vector, vector && batched},
		{CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aligned_pointer, sizeof aligned_pointer, aux},
		{CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &f->ldaux, sizeof f->ldaux, aux},
		{CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, &f->stride_aux, sizeof f->stride_aux, aux && batched},
	};
	epg_status status = epg_cuda_check_lt(lt, lt->cublasLtMatmulDescInit_internal(desc, sizeof(cublasLtMatmulDescOpaque_t), compute_types[f->compute],
		data_types[f->scalar]), "cublasLtMatmulDescInit");
	return status ? status : set_desc(lt, desc, settings, sizeof settings / sizeof *settings);
}

static epg_status make_layout(const epg_cuda_lt *lt, cublasLtMatrixLayoutOpaque_t *layout, int32_t type, bool trans, int64_t rows, int64_t cols, int64_t ld,
	int32_t batch, int64_t stride)
{
	epg_status status = epg_cuda_check_lt(lt, lt->cublasLtMatrixLayoutInit_internal(layout, sizeof *layout, data_types[type], (uint64_t)(trans ? cols : rows),
		(uint64_t)(trans ? rows : cols), ld), "cublasLtMatrixLayoutInit");
	if (!status && batch > 1)
		status = epg_cuda_check_lt(lt, lt->cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch),
			"cublasLtMatrixLayoutSetAttribute");
	if (!status && batch > 1)
		status = epg_cuda_check_lt(lt, lt->cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
			"cublasLtMatrixLayoutSetAttribute");
	return status;
}

static epg_status make_all(const epg_cuda_lt *lt, const epg_cuda_form *f, epg_cuda_gemm *g)
{
	*g = (epg_cuda_gemm){.epilog = f->epilog, .scalar = f->scalar, .scalars_on_device = f->scalars_on_device,
		.c_is_as_d = f->ldc == f->ldd && f->c_type == f->d_type && (f->batch <= 1 || f->stride_c == f->stride_d)};
	epg_status status = make_desc(lt, f, &g->desc);
	if (!status)
		status = make_layout(lt, &g->a, f->ab_type, f->a_trans, f->m, f->k, f->lda, f->batch, f->stride_a);
	if (!status)
		status = make_layout(lt, &g->b, f->ab_type, f->b_trans, f->k, f->n, f->ldb, f->batch, f->stride_b);
	if (!status)
		status = make_layout(lt, &g->c, f->c_type, false, f->m, f->n, f->ldc, f->batch, f->stride_c);
	if (!status)
		status = make_layout(lt, &g->d, f->d_type, false, f->m, f->n, f->ldd, f->batch, f->stride_d);
	return status;
}

/* ---- Algorithms ---- */

typedef struct algo_row {
	cublasLtMatmulAlgoConfigAttributes_t attribute;
	size_t nbytes;
} algo_row;

/* In the order of EPG_CUDA_ALGO_NAMES; the first is given to AlgoInit. */
static const algo_row algo_rows[CUDA_NALGO] = {
	{CUBLASLT_ALGO_CONFIG_ID, 4}, {CUBLASLT_ALGO_CONFIG_TILE_ID, 4}, {CUBLASLT_ALGO_CONFIG_STAGES_ID, 4}, {CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 4},
	{CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 4}, {CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4}, {CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 4},
	{CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 2}, {CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 2},
};

static epg_status read_algo(const epg_cuda_lt *lt, const cublasLtMatmulAlgo_t *from, epg_cuda_algo *to)
{
	epg_status status = EPG_SUCCESS;
	for (int i = 0; i < CUDA_NALGO && !status; i++) {
		uint32_t word = 0;
		uint16_t half = 0;
		size_t written;
		bool narrow = algo_rows[i].nbytes == 2;
		status = epg_cuda_check_lt(lt, lt->cublasLtMatmulAlgoConfigGetAttribute(from, algo_rows[i].attribute, narrow ? (void *)&half : (void *)&word,
			algo_rows[i].nbytes, &written), "cublasLtMatmulAlgoConfigGetAttribute");
		to->attribute[i] = narrow ? half : word;
	}
	return status;
}

static epg_status write_algo(const epg_cuda_lt *lt, const epg_cuda_form *f, const epg_cuda_algo *from, cublasLtHandle_t handle, cublasLtMatmulAlgo_t *to)
{
	epg_status status = epg_cuda_check_lt(lt, lt->cublasLtMatmulAlgoInit(handle, compute_types[f->compute], data_types[f->scalar], data_types[f->ab_type],
		data_types[f->ab_type], data_types[f->c_type], data_types[f->d_type], (int)from->attribute[0], to), "cublasLtMatmulAlgoInit");
	for (int i = 1; i < CUDA_NALGO && !status; i++) {
		uint32_t word = (uint32_t)from->attribute[i];
		uint16_t half = (uint16_t)word;
		bool narrow = algo_rows[i].nbytes == 2;
		status = epg_cuda_check_lt(lt, lt->cublasLtMatmulAlgoConfigSetAttribute(to, algo_rows[i].attribute, narrow ? (void *)&half : (void *)&word,
			algo_rows[i].nbytes), "cublasLtMatmulAlgoConfigSetAttribute");
	}
	return status;
}

static epg_status set_preference(const epg_cuda_lt *lt, const epg_cuda_form *f, cublasLtMatmulPreferenceOpaque_t *preference)
{
	const uint64_t workspace = f->workspace_nbytes;
	/* Partial sums in the compute type only: never in a 16-bit output. */
	const uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
	const struct { cublasLtMatmulPreferenceAttributes_t attribute; const void *value; size_t nbytes; } settings[] = {
		{CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace},
		{CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reduction, sizeof reduction},
		{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &f->alignment, sizeof f->alignment},
		{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &f->alignment, sizeof f->alignment},
		{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &f->alignment, sizeof f->alignment},
		{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &f->alignment, sizeof f->alignment},
	};
	epg_status status = epg_cuda_check_lt(lt, lt->cublasLtMatmulPreferenceInit_internal(preference, sizeof *preference), "cublasLtMatmulPreferenceInit");
	for (size_t i = 0; i < sizeof settings / sizeof *settings && !status; i++)
		status = epg_cuda_check_lt(lt, lt->cublasLtMatmulPreferenceSetAttribute(preference, settings[i].attribute, settings[i].value, settings[i].nbytes),
			"cublasLtMatmulPreferenceSetAttribute");
	return status;
}

enum { MAX_PROPOSALS = 32 };
enum { STAGES = 2 }; /* its place in epg_cuda_algo */

/* Seen of cuBLASLt 13.1 on an H200 (doc/perf): kernels without stages may add the bias to a 16-bit D after rounding it. */
static bool rounds_early(const epg_cuda_form *f, const epg_cuda_algo *algo)
{
	return epg_type_nbits(f->d_type) == 16 && f->epilog & EPG_BIAS && algo->attribute[STAGES] == 0;
}

/* The vendor's proposals whose own state is success and that round once. 'Not supported' and none at all are answers, not errors. */
static epg_status propose(const epg_cuda_context *context, const epg_cuda_form *f, const epg_cuda_gemm *g, cublasLtMatmulHeuristicResult_t *results,
	int32_t capacity, int32_t *count)
{
	const epg_cuda_lt *lt = context->lt;
	cublasLtMatmulPreferenceOpaque_t preference;
	int found = 0;
	*count = 0;
	epg_status status = set_preference(lt, f, &preference);
	if (status)
		return status;
	status = epg_cuda_check_lt(lt, lt->cublasLtMatmulAlgoGetHeuristic(context->handle, (cublasLtMatmulDesc_t)&g->desc, (cublasLtMatrixLayout_t)&g->a,
		(cublasLtMatrixLayout_t)&g->b, (cublasLtMatrixLayout_t)&g->c, (cublasLtMatrixLayout_t)&g->d, &preference, capacity, results, &found),
		"cublasLtMatmulAlgoGetHeuristic");
	for (int i = 0; i < found && !status; i++) {
		epg_cuda_algo algo;
		if (results[i].state != CUBLAS_STATUS_SUCCESS || results[i].workspaceSize > f->workspace_nbytes)
			continue;
		status = read_algo(lt, &results[i].algo, &algo);
		if (!status && !rounds_early(f, &algo))
			results[(*count)++] = results[i];
	}
	if (!status && *count == 0)
		status = epg_cuda_fail(EPG_UNSUPPORTED, "cublasLtMatmulAlgoGetHeuristic has no algorithm for this problem");
	return status;
}

int32_t epg_cuda_gemm_candidates(const epg_cuda_context *context, const epg_cuda_form *form, epg_cuda_algo *algos, int32_t capacity, char why[EPG_WHY_NBYTES])
{
	epg_cuda_gemm g;
	cublasLtMatmulHeuristicResult_t results[MAX_PROPOSALS];
	int32_t count = 0;
	epg_status status = make_all(context->lt, form, &g);
	if (!status)
		status = propose(context, form, &g, results, capacity < MAX_PROPOSALS ? capacity : MAX_PROPOSALS, &count);
	for (int32_t i = 0; i < count && !status; i++) {
		algos[i] = (epg_cuda_algo){.workspace_nbytes = results[i].workspaceSize, .waves = results[i].wavesCount};
		status = read_algo(context->lt, &results[i].algo, &algos[i]);
	}
	if (!status)
		return count;
	snprintf(why, EPG_WHY_NBYTES, "%s", epg_cuda_core.last_error());
	return 0;
}

epg_status epg_cuda_gemm_make(const epg_cuda_context *context, const epg_cuda_form *form, const epg_cuda_algo *algo, epg_cuda_gemm *g)
{
	cublasLtMatmulHeuristicResult_t result;
	int32_t count = 1;
	epg_status status = make_all(context->lt, form, g);
	if (!status && algo && rounds_early(form, algo))
		status = epg_cuda_fail(EPG_UNSUPPORTED, "cuBLASLt's algorithm %lld rounds D to 16 bits before it adds the bias", (long long)algo->attribute[0]);
	else if (!status && !algo)
		status = propose(context, form, g, &result, 1, &count);
	else if (!status) {
		status = write_algo(context->lt, form, algo, context->handle, &result.algo);
		cublasLtMatmulAlgo_t made = result.algo;
		if (!status)
			status = epg_cuda_check_lt(context->lt, context->lt->cublasLtMatmulAlgoCheck(context->handle, &g->desc, &g->a, &g->b, &g->c, &g->d, &made, &result),
				"cublasLtMatmulAlgoCheck");
		result.algo = made;
	}
	if (!status && result.workspaceSize > form->workspace_nbytes)
		status = epg_cuda_fail(EPG_UNSUPPORTED, "the algorithm wants a workspace of %zu bytes, but may have %zu", result.workspaceSize, form->workspace_nbytes);
	g->algo = result.algo;
	g->staged = algo && algo->attribute[STAGES] != 0;
	g->workspace_nbytes = status ? 0 : result.workspaceSize;
	return status;
}

/* ---- A call ---- */

/* alpha or beta as the vendor reads it. */
typedef union scalar {
	float f32[2];
	double f64[2];
} scalar;

static scalar scalar_of(int32_t type, const double value[2])
{
	if (type == EPG_F32 || type == EPG_C64)
		return (scalar){.f32 = {(float)value[0], (float)value[1]}};
	return (scalar){.f64 = {value[0], value[1]}};
}

/* Where there is no C to read, D stands for it, or A where D has another layout than C: in place the vendor wants the same. */
epg_status epg_cuda_gemm_run(const epg_cuda_context *context, const epg_cuda_gemm *g, const epg_cuda_gemm_call *call)
{
	const epg_cuda_lt *lt = context->lt;
	cublasLtMatmulDescOpaque_t desc = g->desc;
	const cublasLtPointerMode_t device_mode = CUBLASLT_POINTER_MODE_DEVICE;
	bool on_device = call->alpha_device != NULL;
	scalar alpha, beta;
	cublasStatus_t error = CUBLAS_STATUS_SUCCESS;
	if (has_vector(g->epilog))
		error = lt->cublasLtMatmulDescSetAttribute(&desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &call->vector, sizeof call->vector);
	if (!error && g->epilog & EPG_AUX)
		error = lt->cublasLtMatmulDescSetAttribute(&desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &call->aux, sizeof call->aux);
	if (!error && on_device && !g->scalars_on_device)
		error = lt->cublasLtMatmulDescSetAttribute(&desc, CUBLASLT_MATMUL_DESC_POINTER_MODE, &device_mode, sizeof device_mode);
	if (error)
		return epg_cuda_check_lt(lt, error, "cublasLtMatmulDescSetAttribute");
	if (!on_device) {
		alpha = scalar_of(g->scalar, call->alpha);
		beta = scalar_of(g->scalar, call->beta);
	}
	error = lt->cublasLtMatmul(context->handle, &desc, on_device ? call->alpha_device : &alpha, call->a, (cublasLtMatrixLayout_t)&g->a, call->b,
		(cublasLtMatrixLayout_t)&g->b, on_device ? call->beta_device : &beta, call->c ? call->c : g->c_is_as_d ? call->d : call->a,
		(cublasLtMatrixLayout_t)&g->c, call->d, (cublasLtMatrixLayout_t)&g->d, &g->algo, call->workspace, g->workspace_nbytes, call->stream);
	return epg_cuda_check_lt(lt, error, "cublasLtMatmul");
}
