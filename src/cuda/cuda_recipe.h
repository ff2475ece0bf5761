/* SPDX-License-Identifier: Apache-2.0
 *
 * Recipes: what an execution does, step by step, decided when a plan is made (cuda_plan.c) and carried out by cuda_run.c. Offsets
 * count bytes from the beginning of the workspace. */
#ifndef EPG_CUDA_RECIPE_H
#define EPG_CUDA_RECIPE_H

#include "cuda.h"

typedef struct epg_cuda_recipe {
	bool product;          /* the vendor computes alpha·op(A)·op(B) … */
	bool copy_a, copy_b;   /* … from copies with aligned lines, already conjugated … */
	int32_t vendor_epilog; /* … with this epilog … */
	bool apart;            /* … not into D but into workspace, as z_type, by chunks of columns or items */
	int32_t z_type;
	int64_t chunk_n, chunk_items;
	epg_cuda_gemm gemm, last; /* last: of the chunk that is smaller than the others */
	uint32_t alignment;    /* bytes, of A, B, C and D; bias and aux need 16 where the vendor sees them */

	bool c_as_d;           /* the plan's beta is 0, and the vendor was told that C lies as D does, which it does not */
	bool pass, c_in_pass;  /* a pass over every chunk; it also adds beta·C */
	bool turn;             /* the pass leaves its mask in workspace, column-major; it is turned at the end */

	int32_t sums;          /* EPG_CUDA_SUM_…: the pass sums D */
	int32_t operand_sums;  /* … or a pass sums A or B */
	int operand;           /* EPG_OPERAND_A or _B, as stored */
	bool wide;             /* partial sums are double */
	int64_t length, parts, chunk_parts; /* of the gradient; lines of partial sums in all and of one chunk */

	size_t a_at, b_at, z_at, mask_at, partial_at, vendor_at, nbytes;
} epg_cuda_recipe;

typedef struct epg_cuda_plan {
	epg_cuda_context *context;
	epg_problem problem;
	epg_cuda_recipe main, safe, bare;
	bool has_safe;
	size_t nbytes;         /* of a workspace that serves all three */
	void *workspace;       /* the plan's own, or NULL */
	void *scalars;         /* on the device: alpha, beta and zero, 16 bytes each, where they are wanted there; else NULL */
} epg_cuda_plan;

/* Leading dimension of a copy of A or B: its lines begin at multiples of 16 bytes. */
int64_t epg_cuda_copy_ld(const epg_view *view);

void epg_cuda_sums_of(const epg_cuda_context *context, const epg_problem *problem, epg_cuda_recipe *recipe);

#endif
