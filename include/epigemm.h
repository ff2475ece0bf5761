/* SPDX-License-Identifier: Apache-2.0
 *
 * epigemm: matrix products with the work that follows them fused in.
 *
 *     D = act(alpha · op(A) · op(B) + beta · C + bias)       and its gradients
 *
 * The header is in order of use: constants, context, problem, plan, execute, then wisdom and helpers.
 * Conventions that hold everywhere and are not repeated below:
 *   - Sizes, leading dimensions and strides are int64_t and count elements (a mask's count bits); names with
 *     _nbytes count bytes. Indices start at 0. op(A) is m×k, op(B) is k×n, C and D are m×n.
 *   - A function that returns epg_status writes its outputs only on EPG_SUCCESS. After any other status
 *     epg_last_error() gives a sentence that names the parameter, its value and the bound.
 *   - Structs that the caller fills begin with their size, which the init function sets: a program built against an
 *     older, shorter struct runs, and one built against a newer, longer one runs as long as the fields that this
 *     library does not know are zero. Fields of enumerated kind are int32_t.
 *   - Texts are returned as snprintf does it: at most text_nbytes bytes are written, always with a final NUL when
 *     text_nbytes > 0, and *needed_nbytes (may be NULL) gets the size of the whole text with its NUL. A text cut short
 *     is a success.
 *   - Threads: functions on different objects may run at the same time. A context and a plan may be shared: all calls
 *     that take them const may run at the same time; destroy must be the last call. Nothing is printed.
 */
#ifndef EPIGEMM_H
#define EPIGEMM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EPG_VERSION_MAJOR 0
#define EPG_VERSION_MINOR 1
#define EPG_VERSION_PATCH 0
#define EPG_VERSION "0.1.0"

/* ---- Constants ------------------------------------------------------------------------------------------------ */

typedef enum epg_status {
	EPG_SUCCESS = 0,
	EPG_INVALID = 1,      /* an argument breaks a rule of this header; nothing was written */
	EPG_UNSUPPORTED = 2,  /* a sound request that this backend or version cannot carry out; nothing was written */
	EPG_NO_MEMORY = 3,    /* host or device memory, or the plan's workspace limit */
	EPG_NO_BACKEND = 4,   /* the backend is not there: epg_backend_status says why */
	EPG_DEVICE_ERROR = 5, /* the driver or a vendor library failed; outputs are undefined */
	EPG_INTERNAL = 6      /* a fault of this library: please report the text of epg_last_error */
} epg_status;

/* Element types. EPG_NONE in a desc means 'derived'. EPG_BIT is the type of a mask. */
enum {
	EPG_NONE = 0, EPG_F64 = 1, EPG_F32 = 2, EPG_F16 = 3, EPG_BF16 = 4, EPG_E4M3 = 5, EPG_E5M2 = 6, EPG_E2M1 = 7,
	EPG_UE8M0 = 8, EPG_S8 = 9, EPG_S32 = 10, EPG_C64 = 11 /* two F32 */, EPG_C128 = 12 /* two F64 */, EPG_BIT = 13
};

/* Type of the accumulator. DEFAULT: F64 for F64 and C128, S32 for S8, else F32. TF32 and F16 only ever by name. */
enum { EPG_COMPUTE_DEFAULT = 0, EPG_COMPUTE_F64, EPG_COMPUTE_F32, EPG_COMPUTE_TF32, EPG_COMPUTE_F16, EPG_COMPUTE_S32 };

/* Order of a stored matrix: element (i,j) lies at i + j·ld (column-major) or at i·ld + j (row-major). */
enum { EPG_COL = 0, EPG_ROW = 1 };

/* op(X): X, its transpose, its conjugate transpose, its conjugate. C is T and J is N for real types. */
enum { EPG_OP_N = 0, EPG_OP_T = 1, EPG_OP_C = 2, EPG_OP_J = 3 };

/* Axis of the bias and of its gradient: one value per row of D (length m) or per column of D (length n). */
enum { EPG_PER_ROW = 0, EPG_PER_COLUMN = 1 };

/* Scales of narrow types. MX32 and NV16 are reserved. */
enum { EPG_SCALE_NONE = 0, EPG_SCALE_TENSOR, EPG_SCALE_VECTOR, EPG_SCALE_1X128, EPG_SCALE_128X128, EPG_SCALE_MX32, EPG_SCALE_NV16 };

/* An epilog is an activation in the low byte plus flags. The allowed combinations are the names below, no others. */
enum {
	EPG_ACT_NONE = 0, EPG_ACT_RELU = 1, EPG_ACT_GELU = 2, EPG_ACT_MASK = 0xff,
	EPG_BIAS = 1 << 8, EPG_AUX = 1 << 9, EPG_GRAD = 1 << 10, EPG_BGRAD = 1 << 11, EPG_BGRADA = 1 << 12, EPG_BGRADB = 1 << 13
};

/* The epilogs. z = alpha·op(A)·op(B) + beta·C, plus bias[i] (EPG_PER_ROW) or bias[j] (EPG_PER_COLUMN) where named.
 *
 * RELU    D = z < 0 ? 0 : z. NaN stays NaN, relu(-0) is a zero.
 *         aux: a mask, bit 1 where z >= 0 (±0 included), unspecified where z is NaN.
 * GELU    D = 0.5·z·(1 + tanh(√(2/π)·(z + 0.044715·z³))), the tanh form of Hendrycks and Gimpel (arXiv:1606.08415).
 *         aux: z itself, in lines of a multiple of 8 elements: see EPG_TIGHT.
 * DRELU   D = mask bit ? z : 0; it selects, so a 0 bit gives 0 even where z is NaN or infinite.
 * DGELU   D = z · gelu'(aux), the exact derivative of the tanh form.
 * …BGRAD  besides, bgrad[i] = Σ_j D[i,j] (EPG_PER_ROW) or bgrad[j] = Σ_i D[i,j] (EPG_PER_COLUMN).
 * BGRADA  D = z, and bgrad[i] = Σ_l op(A)[i,l] (length m), whatever alpha and the axis.
 * BGRADB  D = z, and bgrad[j] = Σ_l op(B)[l,j] (length n), whatever alpha and the axis.
 * Sums run within one batch item, never over the batch. Gradients are overwritten, or added to with
 * EPG_BGRAD_ACCUMULATE. */
enum {
	EPG_EPILOG_DEFAULT = 0,
	EPG_EPILOG_RELU = EPG_ACT_RELU,
	EPG_EPILOG_RELU_AUX = EPG_ACT_RELU | EPG_AUX,
	EPG_EPILOG_BIAS = EPG_BIAS,
	EPG_EPILOG_RELU_BIAS = EPG_ACT_RELU | EPG_BIAS,
	EPG_EPILOG_RELU_AUX_BIAS = EPG_ACT_RELU | EPG_AUX | EPG_BIAS,
	EPG_EPILOG_DRELU = EPG_ACT_RELU | EPG_AUX | EPG_GRAD,
	EPG_EPILOG_DRELU_BGRAD = EPG_ACT_RELU | EPG_AUX | EPG_GRAD | EPG_BGRAD,
	EPG_EPILOG_GELU = EPG_ACT_GELU,
	EPG_EPILOG_GELU_AUX = EPG_ACT_GELU | EPG_AUX,
	EPG_EPILOG_GELU_BIAS = EPG_ACT_GELU | EPG_BIAS,
	EPG_EPILOG_GELU_AUX_BIAS = EPG_ACT_GELU | EPG_AUX | EPG_BIAS,
	EPG_EPILOG_DGELU = EPG_ACT_GELU | EPG_AUX | EPG_GRAD,
	EPG_EPILOG_DGELU_BGRAD = EPG_ACT_GELU | EPG_AUX | EPG_GRAD | EPG_BGRAD,
	EPG_EPILOG_BGRADA = EPG_BGRADA,
	EPG_EPILOG_BGRADB = EPG_BGRADB
};

/* Flags of a problem. DETERMINISTIC: the same bits from run to run, on the CPU also for every thread count.
 * FAST_ACCUMULATION: fp8 products may keep fewer bits in the accumulator (CUDA). SCALARS_ON_DEVICE: alpha and beta of
 * epg_operands are device pointers; on the CPU that is the same as host pointers. */
enum { EPG_DETERMINISTIC = 1, EPG_FAST_ACCUMULATION = 2, EPG_BGRAD_ACCUMULATE = 4, EPG_SCALARS_ON_DEVICE = 8 };

/* Rigor of the planner: ESTIMATE picks by a cost model; MEASURE times the candidates on scratch data; PATIENT times
 * more of them. The last two take seconds at worst, and need scratch memory for every operand. */
enum { EPG_ESTIMATE = 0, EPG_MEASURE = 1, EPG_PATIENT = 2 };

/* Where the pointers given to epg_execute live: the context's device (for "cpu" that is the host), or the host. On CUDA an
 * execution with HOST takes the operands to the device and the outputs back, allocates for that, and returns when they are there. */
enum { EPG_MEMORY_DEVICE = 0, EPG_MEMORY_HOST = 1 };

enum { EPG_LOG_ERROR = 0, EPG_LOG_WARNING = 1, EPG_LOG_INFO = 2, EPG_LOG_DEBUG = 3 };

/* ---- Version, status, errors ---------------------------------------------------------------------------------- */

/* Version of the library that runs, as "0.1.0"; compare with EPG_VERSION. */
const char *epg_version(void);

/* The status as a word: "success", "invalid", … Any int is accepted. */
const char *epg_status_string(epg_status status);

/* Why the calling thread's last failed call failed: one sentence, and in brackets the whole problem as a problem line
 * where there is one. Empty before the first failure; a success does not clear it. The text belongs to the library and
 * holds until the thread's next failed call. */
const char *epg_last_error(void);

/* ---- Context: a backend on a device, with its threads ---------------------------------------------------------- */

typedef struct epg_context epg_context;

/* Memory for everything a context allocates for data (not for its own small structures): scratch, workspace, and
 * epg_malloc. alloc returns NULL when there is none; alignment is a power of two, at most 256. kind is
 * EPG_MEMORY_DEVICE or EPG_MEMORY_HOST; stream is NULL on the CPU. Both functions must be thread-safe, or both NULL. */
typedef struct epg_allocator {
	void *user;
	void *(*alloc)(void *user, size_t nbytes, size_t alignment, int32_t kind, void *stream);
	void (*free)(void *user, void *ptr, int32_t kind, void *stream);
} epg_allocator;

typedef struct epg_context_options {
	size_t size;
	const char *backend;     /* "cpu", "cuda", or "auto": cuda if it is there, else cpu; NULL: "cpu". The variable
	                            EPIGEMM_BACKEND, when set, decides what "auto" means. Read during create only. */
	int32_t device;          /* number of the GPU; 0 on the CPU */
	int32_t threads;         /* CPU threads of one execution; 0: the default, at most 4096. The default is the smallest
	                            of the affinity mask, the cgroup's CPU quota rounded up, and OMP_NUM_THREADS. */
	epg_allocator allocator; /* zeros: the library's own */
	void (*log)(void *user, int32_t level, const char *message); /* thread-safe, or NULL: no log */
	void *log_user;
	int32_t log_level;       /* EPG_LOG_…: messages up to this level are passed on */
	int32_t reserved;        /* 0 */
} epg_context_options;

/* Fills options with the defaults. size = sizeof *options. EPG_INVALID when options is NULL or size is too small. */
epg_status epg_context_options_init(epg_context_options *options, size_t size);

/* Creates a context. options may be NULL: the CPU with its default threads. The caller owns *context and ends it with
 * epg_context_destroy. EPG_NO_BACKEND when the backend is not there, EPG_INVALID, EPG_NO_MEMORY. */
epg_status epg_context_create(const epg_context_options *options, epg_context **context);

/* What a context is made of; what does not apply is 0 or "". */
typedef struct epg_context_info {
	size_t size;            /* bytes that the library filled */
	char backend[16];       /* "cpu" or "cuda" */
	char device[64];        /* name of the processor or GPU */
	char library[64];       /* the product's library and its version, as "OpenBLAS 0.3.21" */
	char flavour[16];       /* its threads: "serial", "pthread" or "openmp" */
	char core[32];          /* the core type that it chose */
	char isa[16];           /* instruction set of our own passes: "baseline", "avx2", "avx512" */
	int32_t integer_nbits;  /* integers of the BLAS: 32 or 64 */
	int32_t threads;        /* of one execution */
	char threads_reason[64];/* what decided them: "option", "affinity", "cgroup quota", "OMP_NUM_THREADS" */
} epg_context_info;

/* Fills the first size bytes of *info (size = sizeof *info; bytes that this version does not know are zeroed). */
epg_status epg_context_get_info(const epg_context *context, epg_context_info *info, size_t size);

/* Gives the context up; it ends with the last plan that holds it. NULL is allowed. */
void epg_context_destroy(epg_context *context);

/* Tells in words whether a backend ("cpu", "cuda") can be used here: EPG_SUCCESS and what it found, or EPG_NO_BACKEND
 * and why not; in both cases the text is written. EPG_INVALID for an unknown name. */
epg_status epg_backend_status(const char *backend, char *text, size_t text_nbytes, size_t *needed_nbytes);

/* Memory where the context's backend computes, aligned to 256 bytes. nbytes 0 gives NULL. epg_free takes NULL. */
epg_status epg_malloc(epg_context *context, size_t nbytes, void **ptr);
void epg_free(epg_context *context, void *ptr);

/* Copies between host memory and memory of epg_malloc, in the order of the stream (CUDA; NULL: the default stream); on
 * the CPU a plain copy. The host buffer may be reused on return. epg_synchronize waits for all work on the stream. */
epg_status epg_upload(epg_context *context, void *to, const void *from_host, size_t nbytes, void *stream);
epg_status epg_download(epg_context *context, void *to_host, const void *from, size_t nbytes, void *stream);
epg_status epg_synchronize(epg_context *context, void *stream);

/* ---- Problem -------------------------------------------------------------------------------------------------- */

/* In a leading dimension or batch stride: as small as the layout allows. That is the length of a line, which the aux of GELU
 * and DGELU rounds up to a multiple of 8 elements and a mask to one of 128 bits, as an ld given for them must be; so a tight
 * GELU aux has D's tight ld only where D's lines are multiples of 8. 0 broadcasts: stride 0 is one matrix for all batch items,
 * ld 0 one line for all lines (the lines run along the order's contiguous dimension). Inputs only. */
#define EPG_TIGHT INT64_MIN

/* The roles of pointers, for epg_matmul_desc_layout. */
enum { EPG_OPERAND_A = 0, EPG_OPERAND_B, EPG_OPERAND_C, EPG_OPERAND_D, EPG_OPERAND_AUX, EPG_OPERAND_BIAS, EPG_OPERAND_BGRAD };

typedef struct epg_matrix {
	int32_t type, order, op, scale;  /* op: A and B only, EPG_OP_N for the others */
	int32_t reserved[2];             /* 0 */
	int64_t ld, batch_stride;
} epg_matrix;

typedef struct epg_vector {
	int32_t type, reserved;          /* EPG_NONE: D's type, beside a D of 8 bits C's 16-bit type or else BF16 (S8: F32). Allowed are D's
	                                    of 16 bits and more; F32 where D has 8 or 16 bits or is S32; A's where A has 16 bits and D is F32;
	                                    F16 and BF16 where D has 8 bits, or is F32 and A has 8 */
	int64_t length, batch_stride;    /* length 0: derived from the epilog and the axis */
} epg_vector;

/* A problem; epg_matmul_desc_init fills it and the caller changes what differs. */
typedef struct epg_matmul_desc {
	size_t size;
	int64_t m, n, k, batch;          /* 0 and up; zero sizes are defined, see below */
	int32_t batch_mode;              /* 0: strided */
	int32_t compute;                 /* EPG_COMPUTE_… */
	int32_t epilog;                  /* EPG_EPILOG_… */
	int32_t axis;                    /* EPG_PER_ROW (cuBLASLt's) or EPG_PER_COLUMN (a batch-major layer's) */
	int32_t flags;                   /* EPG_DETERMINISTIC … */
	int32_t align_nbytes;            /* alignment of pointers to plan for, a power of two up to 4096; 0: the backend's choice
	                                    (CPU: the element's, CUDA: 16). Pointers that have less, but their element's, are
	                                    taken too: on CUDA they can be slower. */
	double alpha[2], beta[2];        /* real and imaginary part; epg_execute may override them */
	double act_param[2];             /* for later activations; 0 */
	epg_matrix a, b, c, d, aux;      /* aux.type EPG_NONE: EPG_BIT for ReLU, D's type for GELU (beside a D of 8 bits
	                                    C's 16-bit type, or else BF16) */
	epg_vector bias, bgrad;
} epg_matmul_desc;

/* Fills desc: sizes as given, batch 1, every matrix of the type and order, op N, tight, alpha 1, beta 0, epilog DEFAULT,
 * bias per row. size = sizeof *desc. The sizes are checked later, by the plan. EPG_INVALID: desc NULL or size too small.
 *
 * Zero sizes. beta = 0: C is not read and may be NULL. alpha = 0: A and B are read only for BGRADA and BGRADB, and may
 * be NULL otherwise. k = 0: z = beta·C + bias, the epilog alone. m = 0 or n = 0: D is empty, sums over it are zeros.
 * batch = 0: nothing is done. */
epg_status epg_matmul_desc_init(epg_matmul_desc *desc, size_t size, int64_t m, int64_t n, int64_t k, int32_t type, int32_t order);

/* The memory of one operand. Element (i,j) of batch item b lies b·batch_stride elements further than the order says.
 * A mask (EPG_BIT) counts in bits, least significant bit of each byte first; its lines run along the contiguous
 * dimension and are padded to 128 bits, padding bits are ignored on input and left alone on output. */
typedef struct epg_layout {
	int32_t type, order;
	int64_t rows, cols;              /* as stored, so k×m for a transposed A; a vector has cols 1 */
	int64_t ld, batch, batch_stride;
	int64_t nbytes;                  /* from the first to the last element of the last batch item; 0: not used */
	int64_t reserved[4];
} epg_layout;

/* Tells the layout of an operand (EPG_OPERAND_…), with every default resolved; an operand that the epilog does not have
 * is all zeros. EPG_INVALID or EPG_UNSUPPORTED for a desc that no plan would take. */
epg_status epg_matmul_desc_layout(const epg_matmul_desc *desc, int32_t operand, epg_layout *layout);

/* Prints the problem as one line of text, defaults left out, such as
 *     f32 m=4096 n=512 k=4096 opa=T epilog=relu_aux_bias
 * and parses such a line (format version 1; doc/design.md has the grammar; a '#' begins a comment). The parsed desc is
 * not validated. EPG_INVALID names the word that was not understood. */
epg_status epg_matmul_desc_print(const epg_matmul_desc *desc, char *text, size_t text_nbytes, size_t *needed_nbytes);
epg_status epg_matmul_desc_parse(const char *line, epg_matmul_desc *desc, size_t size);

/* Index into an operand's scales (EPG_OPERAND_A … _D, _AUX) that belongs to element (i,j) of op(A), op(B), C, D or aux.
 * EPG_UNSUPPORTED for scale modes that this version does not have. */
epg_status epg_scale_index(const epg_matmul_desc *desc, int32_t operand, int64_t i, int64_t j, int64_t *index);

/* ---- Plan ----------------------------------------------------------------------------------------------------- */

typedef struct epg_plan epg_plan;

typedef struct epg_plan_options {
	size_t size;
	int32_t rigor;                   /* EPG_ESTIMATE … */
	int32_t memory;                  /* EPG_MEMORY_… */
	int64_t workspace_limit_nbytes;  /* -1: the backend's own limit; 0 is a real limit */
	int32_t sm_count;                /* CUDA: multiprocessors to use, 0: all */
	int32_t reserved;                /* 0 */
	const char *pin;                 /* a text of epg_plan_pin: take this lowering and no other; NULL. Read during create. */
} epg_plan_options;

epg_status epg_plan_options_init(epg_plan_options *options, size_t size);

/* Checks the problem and decides how to carry it out: everything slow happens here. options may be NULL. The caller owns
 * *plan and ends it with epg_plan_destroy; the plan keeps the context alive. EPG_INVALID, EPG_UNSUPPORTED,
 * EPG_NO_MEMORY (also: the workspace limit forbids every way, the text says how many bytes are missing),
 * EPG_DEVICE_ERROR. */
epg_status epg_plan_create(epg_context *context, const epg_matmul_desc *desc, const epg_plan_options *options, epg_plan **plan);

typedef struct epg_plan_info {
	size_t size;                     /* bytes that the library filled */
	size_t workspace_nbytes;         /* what a caller's workspace must have */
	size_t workspace_alignment;      /* in bytes */
	int32_t launches;                /* kernels (CUDA) or parallel regions (CPU) of one execution */
	int32_t candidates;              /* ways that were possible; epg_plan_pin lists them */
	int32_t candidate;               /* number of the one that was chosen */
	int32_t scalar_type;             /* type that operands.alpha and .beta point to: EPG_F32, F64, C64, C128 */
	char lowering[32];               /* name of the way, as "split" */
} epg_plan_info;

/* As epg_context_get_info. */
epg_status epg_plan_get_info(const epg_plan *plan, epg_plan_info *info, size_t size);

/* Says what the plan does and why: the problem, lowering, workspace, roundings, and why the other lowerings were
 * refused or slower. For people: the wording may change. */
epg_status epg_plan_explain(const epg_plan *plan, char *text, size_t text_nbytes, size_t *needed_nbytes);

/* Names candidate i (0 … candidates-1, the cheapest by the cost model first) as a short text for epg_plan_options.pin. */
epg_status epg_plan_pin(const epg_plan *plan, int32_t i, char *text, size_t text_nbytes, size_t *needed_nbytes);

/* Ends a plan. No execution, and no CUDA graph captured from one, may use it any more. NULL is allowed. */
void epg_plan_destroy(epg_plan *plan);

/* ---- Execute -------------------------------------------------------------------------------------------------- */

/* The pointers of one execution; what the problem does not use must be NULL (a, b and c always may be given). alpha and
 * beta, if given, override the desc's; they point to the plan's scalar_type. In place: d may be exactly c, or exactly
 * aux, if type and layout are identical (DGELU: d.ld is aux's, a multiple of 8); any other overlap of an output is
 * undefined, and refused where the pointers show it. */
typedef struct epg_operands {
	size_t size;
	const void *a, *b, *c, *bias;
	void *d, *aux, *bgrad;           /* aux: output of …_AUX epilogs, input of DRELU and DGELU */
	const void *alpha, *beta;
	const void *scale_a, *scale_b, *scale_c, *scale_d, *scale_aux;
	void *scale_d_out, *amax_d, *amax_aux;
	void *workspace;                 /* NULL: the plan's own */
	size_t workspace_nbytes;
} epg_operands;

epg_status epg_operands_init(epg_operands *operands, size_t size);

#ifndef __cplusplus
/* epg_execute(plan, &EPG_OPERANDS(.a = A, .b = B, .d = D), NULL) */
#define EPG_OPERANDS(...) ((epg_operands){.size = sizeof(epg_operands), __VA_ARGS__})
#endif

/* Carries the plan out. CPU: returns when the outputs are written. CUDA: enqueues on stream (a cudaStream_t; NULL: the
 * default stream) and returns; no allocation, query or synchronisation, so it can be captured into a graph.
 * One plan may be executed by several threads at once: on the CPU always; on CUDA concurrent streams (and graphs that
 * are replayed concurrently) each give their own workspace, otherwise executions must be ordered on one stream.
 * EPG_INVALID: a pointer is missing, superfluous, misaligned or overlaps; nothing was written. EPG_NO_MEMORY,
 * EPG_DEVICE_ERROR. */
epg_status epg_execute(const epg_plan *plan, const epg_operands *operands, void *stream);

/* Plan, execute, destroy in one call, with the default plan options. */
epg_status epg_matmul(epg_context *context, const epg_matmul_desc *desc, const epg_operands *operands, void *stream);

/* ---- Wisdom: what measuring has learnt ------------------------------------------------------------------------- */

/* Saves the context's wisdom to a text file (written beside it and renamed, so that readers see the old or the new).
 * Loads such a file and adds to the context's wisdom: entries that are damaged, or from another library version or
 * device, are rejected one by one, each with its reason in the log. accepted and rejected may be NULL. EPG_INVALID: no
 * such file, or not wisdom at all. */
epg_status epg_wisdom_save(const epg_context *context, const char *path);
epg_status epg_wisdom_load(epg_context *context, const char *path, int64_t *accepted, int64_t *rejected);

/* ---- Helpers -------------------------------------------------------------------------------------------------- */

/* "f32", "bf16", …; NULL for a number that is no type. Bits of one element, 1 for EPG_BIT; 0 for no type. */
const char *epg_type_name(int32_t type);
int32_t epg_type_nbits(int32_t type);

/* "relu_aux_bias", …; NULL for a number that is no epilog. */
const char *epg_epilog_name(int32_t epilog);

/* Converts batch matrices of rows×cols from one type, order, ld and stride to another: to = (type)(scale · op(from)),
 * rows×cols being the extents of to. One rounding to nearest even; e4m3, e5m2, s8 and s32 then saturate (at 448, 57344, -128 and
 * 127, -2^31 and 2^31-1), infinities too; NaN stays NaN, and is 0 as an integer. scale (F32, or F64 where from is F64 or C128) and
 * amax (the same type: the largest |scale·x|) may be NULL; they live where the matrices do. scale fields of the matrices are
 * EPG_SCALE_NONE. from and to must not overlap. EPG_UNSUPPORTED: a complex and a real type, or one that is no single number. */
epg_status epg_convert(epg_context *context, int64_t rows, int64_t cols, int64_t batch, const epg_matrix *from_layout, const void *from,
	const epg_matrix *to_layout, void *to, const void *scale, void *amax, void *stream);

#ifdef __cplusplus
}
#endif
#endif
