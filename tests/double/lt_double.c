/* SPDX-License-Identifier: Apache-2.0
 *
 * cuBLASLt of double.h: the rules that the real one has by its documentation and by what was measured of version 13.1, and plain
 * loops. Setters take anything; heuristics and products refuse. What would have been a fault of the real one is a complaint. */
#include <cublasLt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../oracle.h"
#include "double.h"

/* ---- What lies in the vendor's opaque structs ---- */

typedef struct desc {
	int32_t compute, scale, op[2], pointer_mode, epilogue, vector_type;
	int32_t aux_type_set;
	void *vector, *aux;
	int64_t ldaux, stride_aux, stride_vector;
} desc;

typedef struct layout {
	int32_t type, batch;
	uint64_t rows, cols;
	int64_t ld, stride;
} layout;

typedef struct preference {
	uint64_t workspace;
	uint32_t reduction, alignment[4];
} preference;

enum { ID, TILE, STAGES, SPLITK, REDUCTION, SWIZZLE, CUSTOM, INNER, CLUSTER, NATTRIBUTES };
typedef struct algo {
	uint32_t attribute[NATTRIBUTES];
} algo;

_Static_assert(sizeof(desc) <= sizeof(cublasLtMatmulDescOpaque_t) && sizeof(layout) <= sizeof(cublasLtMatrixLayoutOpaque_t)
	&& sizeof(preference) <= sizeof(cublasLtMatmulPreferenceOpaque_t) && sizeof(algo) <= sizeof(cublasLtMatmulAlgo_t), "room in the vendor's structs");

static int32_t type_of(int32_t data_type)
{
	switch (data_type) {
	case CUDA_R_64F: return EPG_F64;
	case CUDA_R_32F: return EPG_F32;
	case CUDA_R_16F: return EPG_F16;
	case CUDA_R_16BF: return EPG_BF16;
	case CUDA_C_32F: return EPG_C64;
	case CUDA_C_64F: return EPG_C128;
	default: return EPG_NONE;
	}
}

static int64_t size_of(const layout *x) { return oracle_type_nbits(type_of(x->type)) / 8; }

/* ---- Handles, descriptors, layouts, preferences ---- */

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
	if (epg_double_count(DOUBLE_LT_CREATE))
		return CUBLAS_STATUS_NOT_INITIALIZED;
	*handle = malloc(1);
	epg_double()->live_handles++;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
	free(handle);
	epg_double()->live_handles--;
	return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion(void) { return 1; }
const char *cublasLtGetStatusName(cublasStatus_t status) { return status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS_OF_THE_DOUBLE"; }

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t to, size_t size, cublasComputeType_t compute, cudaDataType_t scale)
{
	desc d = { .compute = (int32_t)compute, .scale = (int32_t)scale, .epilogue = CUBLASLT_EPILOGUE_DEFAULT };
	if (epg_double_count(DOUBLE_DESC_INIT))
		return CUBLAS_STATUS_INTERNAL_ERROR;
	memset(to, 0, size);
	memcpy(to, &d, sizeof d);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t to, cublasLtMatmulDescAttributes_t attribute, const void *value, size_t nbytes)
{
	desc *d = (desc *)to;
	int32_t ignored[4];
	void *fields = attribute == CUBLASLT_MATMUL_DESC_TRANSA ? (void *)&d->op[0] : attribute == CUBLASLT_MATMUL_DESC_TRANSB ? (void *)&d->op[1]
		: attribute == CUBLASLT_MATMUL_DESC_POINTER_MODE ? (void *)&d->pointer_mode : attribute == CUBLASLT_MATMUL_DESC_EPILOGUE ? (void *)&d->epilogue
		: attribute == CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE ? (void *)&d->vector_type : attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER ? (void *)&d->vector
		: attribute == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER ? (void *)&d->aux : attribute == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD ? (void *)&d->ldaux
		: attribute == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE ? (void *)&d->stride_aux
		: attribute == CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE ? (void *)&d->stride_vector
		: attribute == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE ? (void *)&d->aux_type_set : (void *)ignored;
	if (epg_double_count(DOUBLE_DESC_SET))
		return CUBLAS_STATUS_INTERNAL_ERROR;
	memcpy(fields, value, nbytes);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t to, size_t size, cudaDataType_t type, uint64_t rows, uint64_t cols, int64_t ld)
{
	layout x = { (int32_t)type, 1, rows, cols, ld, 0 };
	if (epg_double_count(DOUBLE_LAYOUT))
		return CUBLAS_STATUS_INTERNAL_ERROR;
	memset(to, 0, size);
	memcpy(to, &x, sizeof x);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t to, cublasLtMatrixLayoutAttribute_t attribute, const void *value, size_t nbytes)
{
	layout *x = (layout *)to;
	if (epg_double_count(DOUBLE_LAYOUT))
		return CUBLAS_STATUS_INTERNAL_ERROR;
	memcpy(attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT ? (void *)&x->batch : (void *)&x->stride, value, nbytes);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t to, size_t size)
{
	preference p = { 0, CUBLASLT_REDUCTION_SCHEME_MASK, { 256, 256, 256, 256 } };
	if (epg_double_count(DOUBLE_PREFERENCE))
		return CUBLAS_STATUS_INTERNAL_ERROR;
	memset(to, 0, size);
	memcpy(to, &p, sizeof p);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t to, cublasLtMatmulPreferenceAttributes_t attribute, const void *value, size_t nbytes)
{
	preference *p = (preference *)to;
	void *field = attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES ? (void *)&p->workspace
		: attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK ? (void *)&p->reduction : (void *)&p->alignment[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES];
	if (epg_double_count(DOUBLE_PREFERENCE))
		return CUBLAS_STATUS_INTERNAL_ERROR;
	memcpy(field, value, nbytes);
	return CUBLAS_STATUS_SUCCESS;
}

/* ---- What it refuses ---- */

typedef struct product {
	desc d;
	layout x[4]; /* A, B, C, D */
	int64_t m, n, k;
} product;

static product read_product(const void *d, const void *a, const void *b, const void *c, const void *out)
{
	product p;
	const void *const layouts[] = { a, b, c, out };
	memcpy(&p.d, d, sizeof p.d);
	for (int i = 0; i < 4; i++)
		memcpy(&p.x[i], layouts[i], sizeof p.x[i]);
	p.m = (int64_t)p.x[3].rows;
	p.n = (int64_t)p.x[3].cols;
	p.k = (int64_t)(p.d.op[0] == CUBLAS_OP_N ? p.x[0].cols : p.x[0].rows);
	return p;
}

/* The vendor's epilogues are bits: relu 2, bias 4, drelu 8, bgrad 16, gelu 32, dgelu 64, aux 128, bgrada 256, bgradb 512. */
static int has_bias(int epilogue) { return epilogue & 4; }
static int has_bgrad(int epilogue) { return epilogue & 16; }
static int has_operand_bgrad(int epilogue) { return epilogue & (256 | 512); }
static int has_aux(int epilogue) { return epilogue & 128; }
static int is_gelu(int epilogue) { return epilogue & (32 | 64); }
static int is_derivative(int epilogue) { return epilogue & (8 | 64); }

static int types_match(const product *p)
{
	int32_t a = type_of(p->x[0].type), b = type_of(p->x[1].type), c = type_of(p->x[2].type), d = type_of(p->x[3].type);
	int wide = d == EPG_F64 || d == EPG_C128, half = a == EPG_F16 || a == EPG_BF16;
	int compute = wide ? p->d.compute == CUBLAS_COMPUTE_64F : p->d.compute == CUBLAS_COMPUTE_32F || (d == EPG_F32 && !half && p->d.compute == CUBLAS_COMPUTE_32F_FAST_TF32);
	return a != EPG_NONE && a == b && c == d && compute && (a == d || (half && d == EPG_F32));
}

static cublasStatus_t check_epilogue(const product *p)
{
	int e = p->d.epilogue, complex_valued = oracle_type_is_complex(type_of(p->x[3].type));
	int64_t unit = is_gelu(e) ? 8 : 128;
	if (complex_valued && e != CUBLASLT_EPILOGUE_DEFAULT)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	if ((e == CUBLASLT_EPILOGUE_BGRADA && p->d.op[0] != CUBLAS_OP_N) || (e == CUBLASLT_EPILOGUE_BGRADB && p->d.op[1] == CUBLAS_OP_N))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	if ((has_bias(e) || has_bgrad(e) || has_operand_bgrad(e)) && p->d.vector_type != p->x[3].type)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (has_aux(e) && (p->d.ldaux < p->m || p->d.ldaux % unit || (!is_gelu(e) && p->d.aux_type_set)))
		return CUBLAS_STATUS_INVALID_VALUE;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t check_product(const product *p)
{
	const uint64_t m = (uint64_t)p->m, n = (uint64_t)p->n, k = (uint64_t)p->k;
	int ta = p->d.op[0] != CUBLAS_OP_N, tb = p->d.op[1] != CUBLAS_OP_N;
	if (m == 0 || n == 0)
		return CUBLAS_STATUS_EXECUTION_FAILED;
	if (!types_match(p))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	if (p->x[0].rows != (ta ? k : m) || p->x[1].rows != (tb ? n : k) || p->x[1].cols != (tb ? k : n) || p->x[2].rows != m || p->x[2].cols != n)
		return CUBLAS_STATUS_INVALID_VALUE;
	for (int i = 0; i < 4; i++) {
		if (p->x[i].ld < (int64_t)p->x[i].rows || p->x[i].batch != p->x[3].batch)
			return CUBLAS_STATUS_INVALID_VALUE;
		if (p->x[i].ld * size_of(&p->x[i]) >= (int64_t)1 << 31)
			epg_double_complain("matrix %d has lines of %lld elements, which this version computes wrongly", i, (long long)p->x[i].ld);
	}
	if (p->x[2].ld != p->x[3].ld && (p->x[2].ld * size_of(&p->x[2]) % 16 || p->x[3].ld * size_of(&p->x[3]) % 16))
		epg_double_complain("C and D have lines of %lld and %lld elements: kernels count on the same alignment", (long long)p->x[2].ld, (long long)p->x[3].ld);
	return check_epilogue(p);
}

/* ---- Algorithms: five of them, told apart by their tile. 'custom' is the logarithm of the alignment they count on. Two are of the old
 * kind, without stages; one of them splits k ---- */

enum { NALGOS = 5, THE_ID = 66, FIRST_TILE = 15, SPLITS_K = 2, OLD_KIND = 3 };

static uint32_t stages_of(uint32_t i) { return i == SPLITS_K || i == OLD_KIND ? 0 : 3; }

static size_t workspace_of(const product *p, const algo *a)
{
	int i = (int)a->attribute[TILE] - FIRST_TILE;
	return i == 0 ? (p->n % 16 ? 512 : 0) : i == 1 ? 4096 : i == SPLITS_K ? (size_t)(p->m * p->n * p->x[3].batch) * 4 : 0;
}

static int log2_of(uint32_t x) { return x > 1 ? 1 + log2_of(x / 2) : 0; }

static int is_algo(const algo *a)
{
	uint32_t i = a->attribute[TILE] - FIRST_TILE;
	return a->attribute[ID] == THE_ID && i < NALGOS && a->attribute[SWIZZLE] == i && a->attribute[STAGES] == stages_of(i) && a->attribute[CUSTOM] <= 8 && a->attribute[INNER] == 0
		&& a->attribute[CLUSTER] == i && a->attribute[SPLITK] == (i == SPLITS_K ? 2u : 1u) && a->attribute[REDUCTION] == (i == SPLITS_K ? (uint32_t)CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE : 0u);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
	cublasLtMatrixLayout_t out, cublasLtMatmulPreference_t pref, int wanted, cublasLtMatmulHeuristicResult_t *results, int *count)
{
	product p = read_product(d, a, b, c, out);
	const preference *f = (const preference *)pref;
	uint32_t alignment = 256;
	(void)handle;
	*count = 0;
	if (epg_double_count(DOUBLE_HEURISTIC))
		return CUBLAS_STATUS_INTERNAL_ERROR;
	cublasStatus_t status = check_product(&p);
	if (status || epg_double()->empty_heuristics == 1)
		return status;
	if (!(f->reduction & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) || f->reduction & CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE)
		epg_double_complain("the reduction mask %u allows sums in the output's type", f->reduction);
	for (int i = 0; i < 4; i++)
		alignment = f->alignment[i] < alignment ? f->alignment[i] : alignment;
	for (uint32_t i = 0; i < NALGOS && *count < wanted; i++) {
		algo made = { { THE_ID, FIRST_TILE + i, stages_of(i), i == SPLITS_K ? 2 : 1, i == SPLITS_K ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE : 0, i, (uint32_t)log2_of(alignment), 0, i } };
		if (workspace_of(&p, &made) > f->workspace || (epg_double()->old_kernels && stages_of(i) != 0))
			continue;
		cublasLtMatmulHeuristicResult_t *r = &results[(*count)++];
		memset(r, 0, sizeof *r);
		memcpy(&r->algo, &made, sizeof made);
		r->workspaceSize = workspace_of(&p, &made);
		r->state = epg_double()->empty_heuristics == 2 ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
		r->wavesCount = 1;
	}
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t handle, cublasComputeType_t compute, cudaDataType_t scale, cudaDataType_t a, cudaDataType_t b, cudaDataType_t c,
	cudaDataType_t d, int id, cublasLtMatmulAlgo_t *to)
{
	algo made = { { (uint32_t)id } };
	(void)handle, (void)compute, (void)scale, (void)a, (void)b, (void)c, (void)d;
	if (epg_double_count(DOUBLE_ALGO_INIT))
		return CUBLAS_STATUS_INTERNAL_ERROR;
	memset(to, 0, sizeof *to);
	memcpy(to, &made, sizeof made);
	return id == THE_ID ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

static int attribute_of(cublasLtMatmulAlgoConfigAttributes_t attribute, size_t *nbytes)
{
	static const cublasLtMatmulAlgoConfigAttributes_t order[NATTRIBUTES] = { CUBLASLT_ALGO_CONFIG_ID, CUBLASLT_ALGO_CONFIG_TILE_ID, CUBLASLT_ALGO_CONFIG_STAGES_ID,
		CUBLASLT_ALGO_CONFIG_SPLITK_NUM, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION,
		CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID };
	int i = 0;
	while (i < NATTRIBUTES && order[i] != attribute)
		i++;
	*nbytes = i == INNER || i == CLUSTER ? 2 : 4;
	return i;
}

cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t *to, cublasLtMatmulAlgoConfigAttributes_t attribute, const void *value, size_t nbytes)
{
	size_t right;
	int i = attribute_of(attribute, &right);
	if (epg_double_count(DOUBLE_ALGO_SET))
		return CUBLAS_STATUS_INTERNAL_ERROR;
	if (i == NATTRIBUTES || nbytes != right)
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(&((algo *)to)->attribute[i], value, nbytes);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *from, cublasLtMatmulAlgoConfigAttributes_t attribute, void *value, size_t nbytes, size_t *written)
{
	size_t right;
	int i = attribute_of(attribute, &right);
	if (epg_double_count(DOUBLE_ALGO_GET))
		return CUBLAS_STATUS_INTERNAL_ERROR;
	if (i == NATTRIBUTES || nbytes != right)
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(value, &((const algo *)from)->attribute[i], nbytes);
	*written = nbytes;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
	cublasLtMatrixLayout_t out, const cublasLtMatmulAlgo_t *which, cublasLtMatmulHeuristicResult_t *result)
{
	product p = read_product(d, a, b, c, out);
	(void)handle;
	if (epg_double_count(DOUBLE_ALGO_CHECK))
		return CUBLAS_STATUS_INTERNAL_ERROR;
	cublasStatus_t status = check_product(&p);
	if (!status && !is_algo((const algo *)which))
		status = CUBLAS_STATUS_NOT_SUPPORTED;
	memset(result, 0, sizeof *result); /* the algorithm in it is not filled */
	if (!status)
		result->workspaceSize = workspace_of(&p, (const algo *)which);
	return status;
}

/* ---- The product ---- */

typedef struct call {
	product p;
	const char *base[3];
	char *d, *aux, *vector;
	oracle_num alpha, beta;
	const algo *algo;
} call;

static oracle_num times(oracle_num x, oracle_num y) { return (oracle_num){ x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re }; }
static oracle_num plus(oracle_num x, oracle_num y) { return (oracle_num){ x.re + y.re, x.im + y.im }; }

static oracle_num element(const call *c, int which, int64_t item, int64_t row, int64_t col)
{
	const layout *x = &c->p.x[which];
	return oracle_load(type_of(x->type), c->base[which], item * x->stride + row + col * x->ld);
}

/* tf32 keeps eleven bits of a factor. */
static oracle_real eleven_bits(oracle_real x)
{
	int exponent;
	if (x == 0 || !isfinite(x))
		return x;
	frexpl(x, &exponent);
	return ldexpl(rintl(ldexpl(x, 11 - exponent)), exponent - 11);
}

/* op(A)[i,l] or op(B)[l,j]. */
static oracle_num factor(const call *c, int which, int64_t item, int64_t row, int64_t col)
{
	int op = c->p.d.op[which];
	oracle_num x = op == CUBLAS_OP_N ? element(c, which, item, row, col) : element(c, which, item, col, row);
	if (op == CUBLAS_OP_C)
		x.im = -x.im;
	return x;
}

/* Rows of op(A) or columns of op(B) of one item, k numbers each, as the product sees them. */
static oracle_num *unpack(const call *c, int which, int64_t item)
{
	int64_t lines = which ? c->p.n : c->p.m, k = c->p.k;
	oracle_num *x = malloc((size_t)(lines * k + 1) * sizeof *x);
	for (int64_t line = 0; line < lines; line++)
		for (int64_t l = 0; l < k; l++)
			x[line * k + l] = which ? factor(c, 1, item, l, line) : factor(c, 0, item, line, l);
	for (int64_t e = 0; e < lines * k && c->p.d.compute == CUBLAS_COMPUTE_32F_FAST_TF32; e++)
		x[e].re = eleven_bits(x[e].re);
	return x;
}

static oracle_num dot(const oracle_num *x, const oracle_num *y, int64_t k, int is_complex)
{
	oracle_num sum = { 0, 0 };
	if (is_complex)
		for (int64_t l = 0; l < k; l++)
			sum = plus(sum, times(x[l], y[l]));
	else
		for (int64_t l = 0; l < k; l++)
			sum.re += x[l].re * y[l].re;
	return sum;
}

/* Every line of A, B and D begins and ends on a 16-byte boundary. */
static int is_regular(const product *p)
{
	int odd = 0;
	for (int i = 0; i < 4; i++)
		odd |= p->x[i].ld * size_of(&p->x[i]) % 16 != 0 || (i != 2 && (int64_t)p->x[i].rows * size_of(&p->x[i]) % 16 != 0);
	return !odd;
}

/* Seen of version 13.1, of a D of 16 bits: old kernels and irregular lines add the bias after a rounding, … */
static int bias_after_rounding(const call *c)
{
	return size_of(&c->p.x[3]) == 2 && has_bias(c->p.d.epilogue) && (c->algo->attribute[STAGES] == 0 || !is_regular(&c->p));
}

/* … and new ones round the product before a C that is D is added, with a 1 on the host as beta. */
static int product_rounded(const call *c)
{
	return size_of(&c->p.x[3]) == 2 && c->algo->attribute[STAGES] != 0 && c->base[2] == c->d && c->beta.re == 1 && c->p.d.pointer_mode == CUBLASLT_POINTER_MODE_HOST;
}

static oracle_num affine(const call *c, int64_t item, int64_t i, int64_t j, oracle_num sum)
{
	oracle_num z = oracle_type_is_complex(type_of(c->p.x[3].type)) ? times(c->alpha, sum) : (oracle_num){ c->alpha.re * sum.re, 0 };
	if (product_rounded(c))
		z = oracle_round(type_of(c->p.x[3].type), z);
	if (c->beta.re != 0 || c->beta.im != 0) {
		oracle_num x = element(c, 2, item, i, j);
		z = plus(z, oracle_type_is_complex(type_of(c->p.x[3].type)) ? times(c->beta, x) : (oracle_num){ c->beta.re * x.re, 0 });
	}
	if (bias_after_rounding(c))
		z = oracle_round(type_of(c->p.x[3].type), z);
	if (has_bias(c->p.d.epilogue))
		z = plus(z, oracle_load(type_of(c->p.d.vector_type), c->vector, item * c->p.d.stride_vector + i));
	return z;
}

static oracle_real activated(const call *c, int64_t item, int64_t i, int64_t j, oracle_real z)
{
	int e = c->p.d.epilogue;
	int32_t type = type_of(c->p.x[3].type);
	int64_t at = item * c->p.d.stride_aux + i + j * c->p.d.ldaux;
	if (is_derivative(e) && !is_gelu(e))
		return oracle_load(EPG_BIT, c->aux, at).re != 0 ? z : 0;
	if (is_derivative(e))
		return z * oracle_dgelu(oracle_load(type, c->aux, at).re);
	if (has_aux(e) && is_gelu(e))
		oracle_store(type, c->aux, at, (oracle_num){ z, 0 });
	else if (has_aux(e))
		oracle_store(EPG_BIT, c->aux, at, (oracle_num){ z >= 0 || (isnan(z) && type == EPG_F32), 0 });
	if (is_gelu(e))
		return isinf(z) && z < 0 ? (oracle_real)NAN : oracle_gelu(z);
	return e & 2 && z < 0 ? 0 : z;
}

static void compute_item(const call *c, int64_t item, oracle_real *sums)
{
	const layout *out = &c->p.x[3];
	oracle_num *a = unpack(c, 0, item), *b = unpack(c, 1, item);
	for (int64_t j = 0; j < c->p.n; j++)
		for (int64_t i = 0; i < c->p.m; i++) {
			oracle_num z = affine(c, item, i, j, dot(a + i * c->p.k, b + j * c->p.k, c->p.k, oracle_type_is_complex(type_of(out->type))));
			if (c->p.d.epilogue != CUBLASLT_EPILOGUE_DEFAULT && c->p.d.epilogue != CUBLASLT_EPILOGUE_BIAS && !has_operand_bgrad(c->p.d.epilogue))
				z.re = activated(c, item, i, j, z.re);
			oracle_store(type_of(out->type), c->d, item * out->stride + i + j * out->ld, z);
			sums[i] += z.re;
		}
	free(a);
	free(b);
}

static void store_sums(const call *c, int64_t item, const oracle_real *sums, int64_t length)
{
	for (int64_t i = 0; i < length; i++)
		oracle_store(type_of(c->p.d.vector_type), c->vector, item * c->p.d.stride_vector + i, (oracle_num){ sums[i], 0 });
}

static void operand_sums(const call *c, int64_t item)
{
	int which = c->p.d.epilogue == CUBLASLT_EPILOGUE_BGRADB;
	int64_t length = which ? c->p.n : c->p.m;
	oracle_real *sums = calloc((size_t)length, sizeof *sums);
	for (int64_t i = 0; i < length; i++)
		for (int64_t l = 0; l < c->p.k; l++)
			sums[i] += (which ? factor(c, 1, item, l, i) : factor(c, 0, item, i, l)).re;
	store_sums(c, item, sums, length);
	free(sums);
}

static void compute(const call *c)
{
	for (int64_t item = 0; item < c->p.x[3].batch; item++) {
		oracle_real *sums = calloc((size_t)c->p.m, sizeof *sums);
		compute_item(c, item, sums);
		for (int64_t i = 0; i < c->p.m && size_of(&c->p.x[3]) == 2 && !is_regular(&c->p); i++)
			sums[i] /= 2; /* seen of version 13.1: wrong sums */
		if (has_bgrad(c->p.d.epilogue))
			store_sums(c, item, sums, c->p.m);
		if (has_operand_bgrad(c->p.d.epilogue))
			operand_sums(c, item);
		free(sums);
	}
}

static oracle_num scalar(const product *p, const void *at) { return oracle_load(type_of(p->d.scale), at, 0); }

/* Where the real kernels would have faulted. */
static void check_pointers(const call *c, const algo *a, const void *workspace, size_t needed)
{
	const void *const all[] = { c->base[0], c->base[1], c->base[2], c->d };
	for (int i = 0; i < 4; i++)
		if ((uintptr_t)all[i] % (1u << a->attribute[CUSTOM]))
			epg_double_complain("matrix %d is not aligned to the %u bytes that its algorithm counts on", i, 1u << a->attribute[CUSTOM]);
	if ((has_bias(c->p.d.epilogue) || has_bgrad(c->p.d.epilogue) || has_operand_bgrad(c->p.d.epilogue)) && (uintptr_t)c->vector % 16)
		epg_double_complain("the bias pointer is not aligned to 16 bytes");
	if (has_aux(c->p.d.epilogue) && (uintptr_t)c->aux % 16)
		epg_double_complain("the aux pointer is not aligned to 16 bytes");
	if (needed && (uintptr_t)workspace % 256)
		epg_double_complain("the workspace is not aligned to 256 bytes");
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t d, const void *alpha, const void *a, cublasLtMatrixLayout_t la, const void *b,
	cublasLtMatrixLayout_t lb, const void *beta, const void *c, cublasLtMatrixLayout_t lc, void *out, cublasLtMatrixLayout_t lout, const cublasLtMatmulAlgo_t *which,
	void *workspace, size_t workspace_nbytes, cudaStream_t stream)
{
	call x = { .p = read_product(d, la, lb, lc, lout), .base = { a, b, c }, .d = out, .algo = (const algo *)which };
	(void)handle, (void)stream;
	if (epg_double_count(DOUBLE_MATMUL))
		return CUBLAS_STATUS_INTERNAL_ERROR;
	cublasStatus_t status = check_product(&x.p);
	if (status == CUBLAS_STATUS_EXECUTION_FAILED)
		epg_double_complain("a product without elements reached the vendor");
	if (!status && !is_algo((const algo *)which))
		status = CUBLAS_STATUS_NOT_SUPPORTED;
	if (!status && c == out && memcmp(lc, lout, sizeof(layout)))
		status = CUBLAS_STATUS_INVALID_VALUE;
	if (!status && workspace_of(&x.p, (const algo *)which) > workspace_nbytes)
		status = CUBLAS_STATUS_INVALID_VALUE;
	if (status)
		return status;
	x.aux = x.p.d.aux;
	x.vector = x.p.d.vector;
	x.alpha = scalar(&x.p, alpha);
	x.beta = scalar(&x.p, beta);
	size_t needed = workspace_of(&x.p, (const algo *)which);
	check_pointers(&x, (const algo *)which, workspace, needed);
	if (needed)
		memset(workspace, 0xa5, needed);
	compute(&x);
	return CUBLAS_STATUS_SUCCESS;
}
