/* SPDX-License-Identifier: Apache-2.0
 *
 * Element types and the combinations that a product allows. A new combination is one row of combos[]. */
#include "dtype.h"

#include <stdio.h>
#include <string.h>

static const epg_type_row types[] = {
	[EPG_F64] = {"f64", 64, false},     [EPG_F32] = {"f32", 32, false},    [EPG_F16] = {"f16", 16, false},
	[EPG_BF16] = {"bf16", 16, false},   [EPG_E4M3] = {"e4m3", 8, false},   [EPG_E5M2] = {"e5m2", 8, false},
	[EPG_E2M1] = {"e2m1", 4, false},    [EPG_UE8M0] = {"ue8m0", 8, false}, [EPG_S8] = {"s8", 8, false},
	[EPG_S32] = {"s32", 32, false},     [EPG_C64] = {"c64", 64, true},     [EPG_C128] = {"c128", 128, true},
	[EPG_BIT] = {"bit", 1, false},
};
enum { NTYPES = sizeof types / sizeof *types };

static const char *const computes[] = {"default", "f64", "f32", "tf32", "f16", "s32"};
enum { NCOMPUTES = sizeof computes / sizeof *computes };

/* Products of 8 bits: A and B of any two fp8 types, or both s8. C has D's type or a wider one. */
#define FP8_TO(d, a, b) \
	{a, b, d, d, EPG_COMPUTE_F32, EPG_F32, true}, {a, b, EPG_BF16, d, EPG_COMPUTE_F32, EPG_F32, true}, {a, b, EPG_F16, d, EPG_COMPUTE_F32, EPG_F32, true}, \
	{a, b, EPG_F32, d, EPG_COMPUTE_F32, EPG_F32, true}
#define FP8_ROWS(a, b) \
	FP8_TO(EPG_E4M3, a, b), FP8_TO(EPG_E5M2, a, b), \
	{a, b, EPG_BF16, EPG_BF16, EPG_COMPUTE_F32, EPG_F32, true}, {a, b, EPG_F32, EPG_BF16, EPG_COMPUTE_F32, EPG_F32, true}, \
	{a, b, EPG_F16, EPG_F16, EPG_COMPUTE_F32, EPG_F32, true}, {a, b, EPG_F32, EPG_F16, EPG_COMPUTE_F32, EPG_F32, true}, \
	{a, b, EPG_F32, EPG_F32, EPG_COMPUTE_F32, EPG_F32, true}
#define S8_ROW(c, d, activations) {EPG_S8, EPG_S8, c, d, EPG_COMPUTE_S32, EPG_F32, activations}

/* The first row for a set of types is what EPG_COMPUTE_DEFAULT takes. */
static const epg_combo combos[] = {
	{EPG_F32, EPG_F32, EPG_F32, EPG_F32, EPG_COMPUTE_F32, EPG_F32, true},
	{EPG_F32, EPG_F32, EPG_F32, EPG_F32, EPG_COMPUTE_TF32, EPG_F32, true},
	{EPG_F64, EPG_F64, EPG_F64, EPG_F64, EPG_COMPUTE_F64, EPG_F64, true},
	{EPG_F16, EPG_F16, EPG_F16, EPG_F16, EPG_COMPUTE_F32, EPG_F32, true},
	{EPG_F16, EPG_F16, EPG_F32, EPG_F16, EPG_COMPUTE_F32, EPG_F32, true},
	{EPG_F16, EPG_F16, EPG_F32, EPG_F32, EPG_COMPUTE_F32, EPG_F32, true},
	{EPG_F16, EPG_F16, EPG_F16, EPG_F32, EPG_COMPUTE_F32, EPG_F32, true},
	{EPG_BF16, EPG_BF16, EPG_BF16, EPG_BF16, EPG_COMPUTE_F32, EPG_F32, true},
	{EPG_BF16, EPG_BF16, EPG_F32, EPG_BF16, EPG_COMPUTE_F32, EPG_F32, true},
	{EPG_BF16, EPG_BF16, EPG_F32, EPG_F32, EPG_COMPUTE_F32, EPG_F32, true},
	{EPG_BF16, EPG_BF16, EPG_BF16, EPG_F32, EPG_COMPUTE_F32, EPG_F32, true},
	FP8_ROWS(EPG_E4M3, EPG_E4M3), FP8_ROWS(EPG_E4M3, EPG_E5M2), FP8_ROWS(EPG_E5M2, EPG_E4M3), FP8_ROWS(EPG_E5M2, EPG_E5M2),
	S8_ROW(EPG_S32, EPG_S32, false), S8_ROW(EPG_S8, EPG_S8, true), S8_ROW(EPG_F32, EPG_S8, true), S8_ROW(EPG_F32, EPG_F32, true), S8_ROW(EPG_F16, EPG_F16, true),
	S8_ROW(EPG_F32, EPG_F16, true), S8_ROW(EPG_BF16, EPG_BF16, true), S8_ROW(EPG_F32, EPG_BF16, true),
	{EPG_C64, EPG_C64, EPG_C64, EPG_C64, EPG_COMPUTE_F32, EPG_C64, false},
	{EPG_C128, EPG_C128, EPG_C128, EPG_C128, EPG_COMPUTE_F64, EPG_C128, false},
};
enum { NCOMBOS = sizeof combos / sizeof *combos };

const epg_type_row *epg_type(int32_t type)
{
	return type > EPG_NONE && type < NTYPES ? &types[type] : NULL;
}

const char *epg_type_name(int32_t type)
{
	const epg_type_row *row = epg_type(type);
	return row ? row->name : NULL;
}

int32_t epg_type_nbits(int32_t type)
{
	const epg_type_row *row = epg_type(type);
	return row ? row->nbits : 0;
}

bool epg_type_complex(int32_t type)
{
	const epg_type_row *row = epg_type(type);
	return row && row->complex_valued;
}

static bool is_number(int32_t type) { return type != EPG_BIT && type != EPG_E2M1 && type != EPG_UE8M0; }

bool epg_type_converts(int32_t from, int32_t to, char *why, size_t why_nbytes)
{
	if (is_number(from) && is_number(to) && epg_type_complex(from) == epg_type_complex(to))
		return true;
	snprintf(why, why_nbytes, "from_layout.type is %s and to_layout.type is %s, but both must be real (f64, f32, f16, bf16, e4m3, e5m2, s8, s32), or both complex",
		epg_type_name(from), epg_type_name(to));
	return false;
}

int64_t epg_type_nbytes(int32_t type, int64_t count)
{
	int32_t nbits = epg_type_nbits(type);
	return nbits >= 8 ? count * (nbits / 8) : (count * nbits + 7) / 8;
}

size_t epg_type_alignment(int32_t type)
{
	int64_t nbytes = epg_type_nbytes(type, 1);
	return (size_t)(epg_type_complex(type) ? nbytes / 2 : nbytes);
}

int32_t epg_type_parse(const char *name, size_t length)
{
	for (int32_t i = 1; i < NTYPES; i++)
		if (strlen(types[i].name) == length && memcmp(types[i].name, name, length) == 0)
			return i;
	return -1;
}

static bool is_half(int32_t type) { return type == EPG_F16 || type == EPG_BF16; }

int32_t epg_aux_type(int32_t c, int32_t d)
{
	return epg_type_nbits(d) > 8 ? d : is_half(c) ? c : EPG_BF16;
}

int32_t epg_vector_type(int32_t c, int32_t d) { return d == EPG_S8 ? EPG_F32 : epg_aux_type(c, d); }

bool epg_vector_type_allowed(int32_t type, int32_t a, int32_t d)
{
	if (epg_type_nbits(d) == 8)
		return is_half(type) || type == EPG_F32;
	if (type == d)
		return true;
	if (is_half(d) || d == EPG_S32)
		return type == EPG_F32;
	return d == EPG_F32 && (is_half(a) ? type == a : epg_type_nbits(a) == 8 && is_half(type));
}

const char *epg_compute_name(int32_t compute)
{
	return compute >= 0 && compute < NCOMPUTES ? computes[compute] : NULL;
}

int32_t epg_compute_parse(const char *name, size_t length)
{
	for (int32_t i = 0; i < NCOMPUTES; i++)
		if (strlen(computes[i]) == length && memcmp(computes[i], name, length) == 0)
			return i;
	return -1;
}

static int matches(const epg_combo *row, int32_t a, int32_t b, int32_t c, int32_t d, int32_t compute)
{
	return (row->a == a) + (row->b == b) + (row->c == c) + (row->d == d)
		+ (compute == EPG_COMPUTE_DEFAULT || row->compute == compute);
}

const epg_combo *epg_combo_find(int32_t a, int32_t b, int32_t c, int32_t d, int32_t compute, char *why, size_t why_nbytes)
{
	const epg_combo *nearest = &combos[0];
	for (int i = 0; i < NCOMBOS; i++) {
		if (matches(&combos[i], a, b, c, d, compute) == 5)
			return &combos[i];
		if (matches(&combos[i], a, b, c, d, compute) > matches(nearest, a, b, c, d, compute))
			nearest = &combos[i];
	}
	snprintf(why, why_nbytes, "the types A %s, B %s, C %s, D %s with compute %s are not in this version; the nearest choice is A %s, B %s, C %s, D %s with compute %s",
		epg_type_name(a), epg_type_name(b), epg_type_name(c), epg_type_name(d), epg_compute_name(compute), epg_type_name(nearest->a),
		epg_type_name(nearest->b), epg_type_name(nearest->c), epg_type_name(nearest->d), epg_compute_name(nearest->compute));
	return NULL;
}
