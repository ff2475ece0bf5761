/* SPDX-License-Identifier: Apache-2.0
 *
 * The passes over D, compiled once per instruction set with EPG_ISA naming it. Plain C that the compiler vectorises; the
 * instruction sets differ in their flags only. Real types are in cpu_pass_real.h; complex ones, with BIAS at most, are here. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3") /* gcc 12 vectorises too little at -O2, and a user's CFLAGS come last */
#endif

#include "cpu_pass.h"

#ifdef __AVX__
#include <immintrin.h>
#endif
#include <stdint.h>
#include <string.h>

#include "../epilog.h"
#include "../pass_math.h"

#define CONCAT_(x, y) x##y
#define CONCAT(x, y) CONCAT_(x, y)
#define STRING_(x) #x
#define STRING(x) STRING_(x)
#define INLINE static inline __attribute__((always_inline))

/* Rows of a block (a mask's word) and of a panel, whose row sums stay in the first-level cache; columns whose sum is kept in
 * the element's own type: 8 roundings of f32 are at most 5e-7. */
enum { BLOCK = 64, PANEL = 1024, RUN = 8 };

/* Rows whose mask bits are made or read together. */
enum { LANES = 32 };

/* ---- Masks ---- */

/* n ≤ 64 bits from a bit that begins a byte; bits beyond n are any. */
static uint64_t load_word(const void *mask, int64_t bit, int n)
{
	const unsigned char *bytes = (const unsigned char *)mask + bit / 8;
	uint64_t word = 0;
	for (int b = 0; 8 * b < n; b++)
		word |= (uint64_t)bytes[b] << (8 * b);
	return word;
}

/* n bits, the last byte's others kept. */
static void store_word(void *mask, int64_t bit, int n, uint64_t word)
{
	unsigned char *bytes = (unsigned char *)mask + bit / 8;
	int whole = n / 8, left = n % 8;
	for (int b = 0; b < whole; b++)
		bytes[b] = (unsigned char)(word >> (8 * b));
	if (left) {
		unsigned keep = 0xffu << left & 0xff;
		bytes[whole] = (unsigned char)((bytes[whole] & keep) | ((word >> (8 * whole)) & ~keep & 0xff));
	}
}

/* A mask whose bits run along j: one byte a row for eight columns from j. words[c] has row i0 + r in bit r. */
static void load_turned(const void *mask, int64_t ld, int64_t i0, int64_t i1, int64_t j, int64_t j1, uint64_t words[8])
{
	int columns = j1 - j < 8 ? (int)(j1 - j) : 8;
	memset(words, 0, 8 * sizeof *words);
	for (int64_t i = i0; i < i1; i++) {
		uint64_t byte = load_word(mask, i * ld + j, columns);
		for (int c = 0; c < columns; c++)
			words[c] |= (byte >> c & 1) << (i - i0);
	}
}

static void store_turned(void *mask, int64_t ld, int64_t i0, int64_t i1, int64_t j, int64_t j1, const uint64_t words[8])
{
	int columns = j1 - j < 8 ? (int)(j1 - j) : 8;
	for (int64_t i = i0; i < i1; i++) {
		uint64_t byte = 0;
		for (int c = 0; c < columns; c++)
			byte |= (words[c] >> (i - i0) & 1) << c;
		store_word(mask, i * ld + j, columns, byte);
	}
}

/* A chunk's sums begin at 0. */
static void clear_sums(double *sums, int32_t axis, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
	int64_t from = axis == EPG_PER_ROW ? i0 : j0, to = axis == EPG_PER_ROW ? i1 : j1;
	if (sums && to > from)
		memset(sums + from, 0, (size_t)(to - from) * sizeof *sums);
}

/* ---- Stores past the cache, for a D that is written only and larger than the cache: it need not be read in first ---- */

/* Both are aligned to 64 bytes. */
INLINE void stream_block(void *to, const void *from, size_t nbytes)
{
#if defined(__AVX512F__)
	for (size_t at = 0; at < nbytes; at += 64)
		_mm512_stream_si512((__m512i *)((char *)to + at), _mm512_load_si512((const char *)from + at));
#elif defined(__AVX__)
	for (size_t at = 0; at < nbytes; at += 32)
		_mm256_stream_si256((__m256i *)((char *)to + at), _mm256_load_si256((const __m256i *)((const char *)from + at)));
#else
	memcpy(to, from, nbytes);
#endif
}

INLINE void stream_end(void)
{
#if defined(__AVX__)
	_mm_sfence();
#endif
}

/* ---- Real types ---- */

#define REAL float
#define BITS uint32_t
#define NAME(x) CONCAT(x, _f32)
#define MATH(x) CONCAT(epg_, CONCAT(x, _f32))
#include "cpu_pass_real.h"
#undef REAL
#undef BITS
#undef NAME
#undef MATH

#define REAL double
#define BITS uint64_t
#define NAME(x) CONCAT(x, _f64)
#define MATH(x) CONCAT(epg_, CONCAT(x, _f64))
#include "cpu_pass_real.h"
#undef REAL
#undef BITS
#undef NAME
#undef MATH

/* ---- Complex types: z = D + beta·C + bias ---- */

typedef struct pair { double re, im; } pair;

INLINE pair load_pair(const void *base, bool narrow, int64_t index)
{
	if (narrow)
		return (pair){((const float *)base)[2 * index], ((const float *)base)[2 * index + 1]};
	return (pair){((const double *)base)[2 * index], ((const double *)base)[2 * index + 1]};
}

INLINE void complex_element(const cpu_pass *pass, const cpu_pass_data *data, bool narrow, int64_t i, int64_t j)
{
	int64_t at = i + j * pass->d_ld;
	pair z = pass->has_product ? load_pair(data->d, narrow, at) : (pair){0, 0};
	if (pass->add_c) {
		pair c = load_pair(data->c, narrow, pass->c_trans ? i * pass->c_ld + j : i + j * pass->c_ld);
		z.re += data->beta[0] * c.re - data->beta[1] * c.im;
		z.im += data->beta[0] * c.im + data->beta[1] * c.re;
	}
	if (pass->epilog & EPG_BIAS) {
		pair bias = load_pair(data->bias, narrow, pass->axis == EPG_PER_ROW ? i : j);
		z.re += bias.re;
		z.im += bias.im;
	}
	if (narrow)
		((float *)data->d)[2 * at] = (float)z.re, ((float *)data->d)[2 * at + 1] = (float)z.im;
	else
		((double *)data->d)[2 * at] = z.re, ((double *)data->d)[2 * at + 1] = z.im;
}

INLINE void complex_body(const cpu_pass *pass, const cpu_pass_data *data, bool narrow, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
	for (int64_t p = i0; p < i1; p += BLOCK)
		for (int64_t j = j0; j < j1; j++)
			for (int64_t i = p; i < i1 && i < p + BLOCK; i++)
				complex_element(pass, data, narrow, i, j);
}

static void run_c64(const cpu_pass *pass, const cpu_pass_data *data, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
	complex_body(pass, data, true, i0, i1, j0, j1);
}

static void run_c128(const cpu_pass *pass, const cpu_pass_data *data, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
	complex_body(pass, data, false, i0, i1, j0, j1);
}

/* ---- The table ---- */

static void run(const cpu_pass *pass, const cpu_pass_data *data, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
	static void (*const by_type[])(const cpu_pass *, const cpu_pass_data *, int64_t, int64_t, int64_t, int64_t) = {
		[EPG_F32] = run_f32, [EPG_F64] = run_f64, [EPG_C64] = run_c64, [EPG_C128] = run_c128};
	by_type[pass->type](pass, data, i0, i1, j0, j1);
}

static void sum(int32_t type, const void *x, int64_t ld, int32_t axis, int64_t i0, int64_t i1, int64_t j0, int64_t j1, double *sums)
{
	if (type == EPG_F32)
		sum_f32(x, ld, axis, i0, i1, j0, j1, sums);
	else
		sum_f64(x, ld, axis, i0, i1, j0, j1, sums);
}

const cpu_pass_table CONCAT(epg_cpu_pass_, EPG_ISA) = {.isa = STRING(EPG_ISA), .run = run, .sum = sum};
