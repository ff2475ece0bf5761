/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of element types, and the table of which types may meet in one product. */
#ifndef EPG_DTYPE_H
#define EPG_DTYPE_H

#include <stdbool.h>

#include "epigemm.h"

typedef struct epg_type_row {
	const char *name;
	int32_t nbits;
	bool complex_valued;
} epg_type_row;

/* NULL for a number that is no type (EPG_NONE is none). */
const epg_type_row *epg_type(int32_t type);

/* Number of the type whose name is the first length bytes of name, or -1. */
int32_t epg_type_parse(const char *name, size_t length);

bool epg_type_complex(int32_t type);

/* May matrices of one type be converted to the other? Both real and of 8 bits or more, or both complex; false with the sentence. */
bool epg_type_converts(int32_t from, int32_t to, char *why, size_t why_nbytes);

/* What a pointer to elements must be a multiple of, in bytes: an element, or its part if complex; 1 for bits. */
size_t epg_type_alignment(int32_t type);

/* Bytes of count elements, rounded up for bits. */
int64_t epg_type_nbytes(int32_t type, int64_t count);

/* One allowed combination of types, accumulated in compute, scalars of type scalar. */
typedef struct epg_combo {
	int32_t a, b, c, d, compute, scalar;
	bool activations; /* false: DEFAULT and BIAS only */
} epg_combo;

/* The row for these types; compute may be EPG_COMPUTE_DEFAULT. NULL when there is none: then why tells the nearest. */
const epg_combo *epg_combo_find(int32_t a, int32_t b, int32_t c, int32_t d, int32_t compute, char *why, size_t why_nbytes);

/* Types where the desc leaves them open. GELU's aux: D's, beside a D of 8 bits C's of 16 bits or else BF16. Bias and its gradient: the
 * same, but F32 beside an S8. */
int32_t epg_aux_type(int32_t c, int32_t d);
int32_t epg_vector_type(int32_t c, int32_t d);

/* May the bias or its gradient have this type, where A has type a and D type d? D's own if that has 16 bits or more; F32 beside a D of 8 or
 * 16 bits and S32; A's 16-bit type beside an F32 D; any of 16 bits beside a D of 8 bits, or an F32 D where A has 8. */
bool epg_vector_type_allowed(int32_t type, int32_t a, int32_t d);

const char *epg_compute_name(int32_t compute);
int32_t epg_compute_parse(const char *name, size_t length);

#endif
