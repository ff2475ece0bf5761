/* SPDX-License-Identifier: Apache-2.0
 *
 * Our own kernels, as the rest of the backend calls them: one pass over D that does what the vendor's product left undone,
 * the last stage of its sums, conversions of matrices, and the turning of a mask. Each function only launches
 * on the stream and returns what the launch said. The .cu files carry them out; the tests have a second implementation on
 * host memory.
 *
 * A matrix is a base and two strides in elements: element (i,j) lies at i·row + j·col. Batch items are stride apart. A mask's
 * strides count bits. */
#ifndef EPG_CUDA_PASS_H
#define EPG_CUDA_PASS_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct epg_cuda_matrix {
	void *data;          /* NULL: there is none */
	int32_t type;        /* EPG_F32 … */
	bool conj;
	int64_t row, col, stride;
} epg_cuda_matrix;

/* What the sums of a pass run over, and where. A pass leaves partial sums, 'parts' lines of 'length' numbers each for every batch
 * item, of type double for F64 and float for all others; epg_cuda_sum_finish adds the lines up in order. */
enum { EPG_CUDA_SUM_NONE, EPG_CUDA_SUM_ROWS /* one sum per row of D */, EPG_CUDA_SUM_COLUMNS };

typedef struct epg_cuda_pass {
	int64_t m, n, batch;
	int32_t epilog;      /* EPG_EPILOG_…: its activation, EPG_AUX and EPG_GRAD count; the bias is there if bias.data is */
	int32_t axis;        /* of the bias: EPG_PER_ROW, EPG_PER_COLUMN */
	int32_t sums;        /* EPG_CUDA_SUM_… */
	epg_cuda_matrix z;   /* alpha·op(A)·op(B), type F32, F64, C64, C128 or d's, row stride 1; data NULL: zeros. May be d */
	epg_cuda_matrix c;   /* data NULL: beta·C is in z, or zero */
	epg_cuda_matrix bias;/* row 1 or 0; col likewise: the strides say the axis */
	epg_cuda_matrix d;   /* row stride 1; data NULL: only sums are wanted */
	epg_cuda_matrix aux; /* type BIT: row stride 1 for output, any for input */
	double beta[2];
	const void *beta_device; /* if not NULL, counts instead of beta; of the type of scalars: F32 for 16-bit types, else d's */
	void *partial;       /* sums: this launch's lines begin here */
	int64_t parts, length, partial_stride; /* lines of this launch, numbers in a line as stored, numbers between batch items */
	int32_t multiprocessors;
	bool overlap;        /* launch before the kernel in front has ended, and wait for it on the device (compute capability 9) */
} epg_cuda_pass;

/* Lines of partial sums that a pass over m×n leaves: it decides the shape of the launch, so that the sums' bits do not depend on
 * anything else. At least 1 where there is a sum. */
int64_t epg_cuda_pass_parts(int32_t sums, int64_t m, int64_t n, int64_t batch, int32_t multiprocessors);

cudaError_t epg_cuda_pass_launch(const epg_cuda_pass *pass, cudaStream_t stream);

/* gradient[b·stride + i] = (accumulate ? gradient[…] : 0) + Σ_p partial[b·partial_stride + p·length + i], added in double and in
 * order; parts may be 0. */
typedef struct epg_cuda_sum {
	int64_t length, batch, parts, partial_stride, stride;
	const void *partial;
	bool wide;           /* partial sums are double */
	int32_t type;        /* of the gradient */
	void *gradient;
	bool accumulate, overlap;
} epg_cuda_sum;

cudaError_t epg_cuda_sum_finish(const epg_cuda_sum *sum, cudaStream_t stream);

/* to = scale·from with one rounding, any types; amax (F32, or F64 where from is F64 or C128; NULL: none) gets the largest |scale·x|.
 * scale is on the device, NULL: 1. */
cudaError_t epg_cuda_convert_launch(int64_t rows, int64_t cols, int64_t batch, const epg_cuda_matrix *from, const epg_cuda_matrix *to,
	const void *scale, void *amax, cudaStream_t stream);

/* The mask 'from' with row stride 1 into the mask 'to' with column stride 1. */
cudaError_t epg_cuda_mask_turn_launch(int64_t rows, int64_t cols, int64_t batch, const epg_cuda_matrix *from, const epg_cuda_matrix *to, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
