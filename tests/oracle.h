/* SPDX-License-Identifier: Apache-2.0
 *
 * The right answer of a problem, by plain loops over the definition in epigemm.h; no code of the library is used, only
 * the header's structs and constants. Products of 32-bit numbers are summed in double, all others in long double.
 * The answer also holds, per element, the sum of absolute terms that the error bound is a multiple of. */
#ifndef ORACLE_H
#define ORACLE_H

#include <epigemm.h>

typedef long double oracle_real;
typedef struct {
	oracle_real re, im;
} oracle_num;

/* An operand in memory: element (i,j) as stored is number b·stride + line·ld + position in line. */
typedef struct {
	int used;                    /* 0: the epilog does not have it, or it is empty */
	int32_t type, order;
	int64_t rows, cols;          /* as stored */
	int64_t lines, length;       /* number of lines and elements of one, along the contiguous dimension */
	int64_t ld, batch, stride;
	int64_t nbytes;
} oracle_layout;

typedef struct {
	const void *a, *b, *c, *bias;
	const void *aux, *bgrad;     /* the values before execution */
} oracle_inputs;

/* Elements are numbered (b·n + j)·m + i; sums b·length + index. */
typedef struct {
	int64_t m, n, batch, count;
	oracle_num *z, *d;
	double *terms;               /* |alpha|·|A||B| + |beta||C| + |bias| */
	double *slope;               /* how much an error of z counts in D */
	double *act_error;           /* allowance for the activation function itself, in units of roundoff */
	unsigned char *bit;          /* mask bit: z >= 0 forward, the bit that was read backward */
	int64_t sums_length, sums_count;
	oracle_num *sums;            /* the bias gradient, of the exact D or of A or B */
	double *sums_terms;          /* sum of absolute values */
} oracle_result;

int64_t oracle_type_nbits(int32_t type);
int oracle_type_is_complex(int32_t type);
double oracle_roundoff(int32_t type); /* half an ulp of 1 */

oracle_num oracle_load(int32_t type, const void *base, int64_t index);
void oracle_store(int32_t type, void *base, int64_t index, oracle_num value);
oracle_num oracle_round(int32_t type, oracle_num value);

int oracle_has_bias(const epg_matmul_desc *desc);
int oracle_has_aux(const epg_matmul_desc *desc);
int oracle_has_bgrad(const epg_matmul_desc *desc);
int oracle_is_gradient(const epg_matmul_desc *desc); /* aux is an input */
int oracle_act(const epg_matmul_desc *desc);
int32_t oracle_compute_type(const epg_matmul_desc *desc); /* EPG_F32 or EPG_F64: what products are summed in */
/* 1 when the contract gives the problem a meaning for its types (complex: DEFAULT and BIAS only). */
int oracle_is_defined(const epg_matmul_desc *desc);

void oracle_get_layout(const epg_matmul_desc *desc, int operand, oracle_layout *layout);
int64_t oracle_index(const oracle_layout *layout, int64_t b, int64_t i, int64_t j);

oracle_real oracle_gelu(oracle_real z);
oracle_real oracle_dgelu(oracle_real z); /* derivative */

/* Computes the answer; 0 when there is no memory. */
int oracle_solve(const epg_matmul_desc *desc, const oracle_inputs *inputs, oracle_result *result);
/* Sums of a D in memory (not of the exact one) into result->sums, for the epilogs that sum D. */
void oracle_sum_d(const epg_matmul_desc *desc, const void *d, const void *old_bgrad, oracle_result *result);
void oracle_free(oracle_result *result);

#endif
