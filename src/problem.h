/* SPDX-License-Identifier: Apache-2.0
 *
 * The problem: from the public desc, in any order and with defaults, to the one canonical form that backends see. There D
 * is column-major, every size and stride is explicit, and each matrix is a view: rows×cols of what the formula uses (so
 * op(A) is m×k whatever is stored), where element (i,j) lies at i + j·ld, or at i·ld + j when trans is set.
 * A row-major D is computed as Dᵀ = op(B)ᵀ·op(A)ᵀ: the same memory, with A and B, m and n, the axis, and BGRADA and BGRADB
 * exchanged. */
#ifndef EPG_PROBLEM_H
#define EPG_PROBLEM_H

#include <stdbool.h>

#include "epigemm.h"

typedef struct epg_view {
	int32_t type;
	int32_t scale;
	bool trans, conj;
	int64_t rows, cols, ld, batch_stride;
} epg_view;

typedef struct epg_span {
	int32_t type;
	int64_t length, batch_stride;
} epg_span;

typedef struct epg_problem {
	int64_t m, n, k, batch;
	int32_t compute, scalar, epilog, axis, flags, align_nbytes;
	/* Of the plan's options: multiprocessors to use (0: all), bytes of workspace (-1: no limit). Until there is a plan, these. */
	int32_t sm_count;
	int64_t workspace_limit_nbytes;
	double alpha[2], beta[2];
	bool swapped; /* the caller's A is b here, and so on */
	epg_view a, b, c, d, aux;
	epg_span bias, bgrad; /* length 0 when the epilog has none */
} epg_problem;

/* Checks the desc (any size of struct) and fills the canonical problem. EPG_INVALID or EPG_UNSUPPORTED with a sentence. */
epg_status epg_problem_from_desc(const epg_matmul_desc *desc, epg_problem *problem);

/* The transposed problem; twice is the identity. */
void epg_problem_swap(epg_problem *problem);

/* The operands as the canonical problem names them. */
void epg_operands_swap(epg_operands *operands);

/* The full desc of any size of struct: fields that a shorter one lacks get init's values. */
epg_status epg_desc_read(const epg_matmul_desc *desc, epg_matmul_desc *full);

/* Copies a struct that begins with its size over the defaults in to. name is for the error sentence, min_nbytes the
 * shortest struct that makes sense. */
epg_status epg_struct_read(const char *name, void *to, size_t to_nbytes, const void *from, size_t min_nbytes);

/* The view of a matrix outside any problem; rows×cols are the extents of op(X). name is for the error sentence. */
epg_status epg_view_from_matrix(const char *name, const epg_matrix *x, int64_t rows, int64_t cols, int64_t batch, bool output, epg_view *view);

/* Elements (bits for a mask) from the first to past the last one of one matrix, and of the whole batch. */
int64_t epg_view_extent(const epg_view *view);
int64_t epg_view_batch_extent(const epg_view *view, int64_t batch);

/* The problem as a line, at most EPG_TEXT_NBYTES. */
void epg_problem_line(const epg_matmul_desc *desc, char *line, size_t line_nbytes);

#endif
