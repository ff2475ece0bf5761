/* SPDX-License-Identifier: Apache-2.0
 *
 * The passes over D, compiled once per instruction set with EPG_ISA naming it. Plain C that the compiler vectorises; the
 * instruction sets differ in their flags only.
 *
 * A kernel is one loop over a tile that holds everything an epilog does, z never leaves the registers. One body with constant
 * flags makes the kernels, a table picks one. (A body that takes the steps one by one through a buffer in the first-level cache
 * was measured too: 3 to 5 times slower, its branches and buffers cost more than the arithmetic.) A kernel sees contiguous
 * columns only; whatever lies otherwise (a transposed C or aux, two summands besides the bias, a D to be stored past the cache)
 * goes through small buffers before and after it. Both are in cpu_pass_real.h. */
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
#include "../half.h"
#include "../pass_math.h"

#define CONCAT_(x, y) x##y
#define CONCAT(x, y) CONCAT_(x, y)
#define STRING_(x) #x
#define STRING(x) STRING_(x)
#define INLINE static inline __attribute__((always_inline))

/* Iterations of the loop are independent: an input is either apart from the outputs or exactly one of them. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

/* Elements of two vectors, those of the second numbered after those of the first. */
#if defined(__clang__)
#define SHUFFLE(x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#else
#define SHUFFLE(x, y, ...) __builtin_shuffle(x, y, (NAME(four_bits)){__VA_ARGS__})
#endif

#if defined(__AVX__)
enum { VECTOR_NBYTES = 32 };
#else
enum { VECTOR_NBYTES = 16 };
#endif

/* What a kernel does besides z = scale·source + bias. Without ROW_BIAS the bias is one value per column. The aux of RELU is a
 * mask, that of GELU is z. */
enum { ROW_BIAS = 1, RELU = 2, GELU = 4, AUX_OUT = 8, AUX_IN = 16, ROW_SUMS = 32, COLUMN_SUMS = 64 };

/* Rows whose mask bits are made or read together; rows of a tile with sums, whose running sums stay in the first-level cache;
 * columns whose sum is kept in the element's own type: 8 roundings of f32 are at most 5e-7. */
enum { LANES = 32, PANEL = 1024, RUN = 8 };

/* Elements of a staged tile: its three buffers take 24 KiB of f64 at most. */
enum { STAGE = 1024, TURN_ROWS = 64, TURN_COLS = STAGE / TURN_ROWS, SUMS_ROWS = 128, SUMS_COLS = STAGE / SUMS_ROWS };

/* ---- Masks ---- */

/* n ≤ 32 bits from a bit that begins a byte; bits beyond n are any. */
INLINE uint32_t load_bits(const unsigned char *bytes, int n)
{
	uint32_t word = 0;
	for (int b = 0; 8 * b < n; b++)
		word |= (uint32_t)bytes[b] << (8 * b);
	return word;
}

/* n ≤ 32 bits, the last byte's others kept. */
INLINE void store_bits(unsigned char *bytes, int n, uint32_t word)
{
	int whole = n / 8, left = n % 8;
	for (int b = 0; b < whole; b++)
		bytes[b] = (unsigned char)(word >> (8 * b));
	if (left) {
		unsigned keep = 0xffu << left & 0xff;
		bytes[whole] = (unsigned char)((bytes[whole] & keep) | ((word >> (8 * whole)) & ~keep & 0xff));
	}
}

/* Bit 8r + c goes to 8c + r (Hacker's Delight, 7-3). */
INLINE uint64_t turn_bits(uint64_t x)
{
	uint64_t t = (x ^ (x >> 7)) & 0x00aa00aa00aa00aa;
	x ^= t ^ (t << 7);
	t = (x ^ (x >> 14)) & 0x0000cccc0000cccc;
	x ^= t ^ (t << 14);
	t = (x ^ (x >> 28)) & 0x00000000f0f0f0f0;
	return x ^ t ^ (t << 28);
}

/* A tile of a mask whose bits run along its columns, at a bit that begins a byte, to one whose bits run along its rows. */
static void load_turned(const void *mask, int64_t bit, int64_t ld, int rows, int cols, unsigned char (*tile)[TURN_ROWS / 8])
{
	for (int c = 0; c < cols; c += 8)
		for (int r = 0; r < rows; r += 8) {
			const unsigned char *from = (const unsigned char *)mask + (bit + r * ld + c) / 8;
			uint64_t block = 0;
			for (int k = 0; k < 8 && r + k < rows; k++)
				block |= (uint64_t)from[k * (ld / 8)] << (8 * k);
			block = turn_bits(block);
			for (int k = 0; k < 8; k++)
				tile[c + k][r / 8] = (unsigned char)(block >> (8 * k));
		}
}

/* The reverse. */
static void store_turned(void *mask, int64_t bit, int64_t ld, int rows, int cols, unsigned char (*tile)[TURN_ROWS / 8])
{
	for (int c = 0; c < cols; c += 8)
		for (int r = 0; r < rows; r += 8) {
			unsigned char *to = (unsigned char *)mask + (bit + r * ld + c) / 8;
			uint64_t block = 0;
			for (int k = 0; k < 8; k++)
				block |= (uint64_t)tile[c + k][r / 8] << (8 * k);
			block = turn_bits(block);
			for (int k = 0; k < 8 && r + k < rows; k++)
				store_bits(to + k * (ld / 8), cols - c < 8 ? cols - c : 8, (uint32_t)(block >> (8 * k)) & 0xff);
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

#if defined(__AVX512F__)
typedef __m512i stream_vector;
#define STREAM_STORE(to, from) _mm512_stream_si512((void *)(to), _mm512_loadu_si512(from))
#elif defined(__AVX__)
typedef __m256i stream_vector;
#define STREAM_STORE(to, from) _mm256_stream_si256((__m256i *)(to), _mm256_loadu_si256((const __m256i *)(from)))
#endif

/* As memcpy; to is aligned to its elements. */
static void stream_copy(void *to, const void *from, size_t nbytes)
{
#if defined(__AVX__)
	size_t width = sizeof(stream_vector), head = -(uintptr_t)to % width, at = head;
	if (nbytes >= head + width) {
		memcpy(to, from, head);
		for (; at + width <= nbytes; at += width)
			STREAM_STORE((char *)to + at, (const char *)from + at);
		memcpy((char *)to + at, (const char *)from + at, nbytes - at);
		return;
	}
#endif
	memcpy(to, from, nbytes);
}

static void stream_end(void)
{
#if defined(__AVX__)
	_mm_sfence();
#endif
}

/* ---- One set of functions for each real type, and for the complex type that is two of it ---- */

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

/* ---- Lines of narrow elements ---- */

static void widen_f16(const void *restrict from, int64_t length, float *restrict to)
{
	const uint16_t *x = from;
	int64_t i = 0;
#if defined(__F16C__)
	for (; i + 8 <= length; i += 8)
		_mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(x + i))));
#endif
	for (; i < length; i++)
		to[i] = epg_from_f16(x[i]);
}

static void narrow_f16(const float *restrict from, int64_t length, void *restrict to)
{
	uint16_t *y = to;
	int64_t i = 0;
#if defined(__F16C__)
	for (; i + 8 <= length; i += 8)
		_mm_storeu_si128((__m128i *)(y + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#endif
	for (; i < length; i++)
		y[i] = epg_to_f16(from[i]);
}

static void widen_bf16(const void *restrict from, int64_t length, float *restrict to)
{
	for (int64_t i = 0; i < length; i++)
		to[i] = epg_from_bf16(((const uint16_t *)from)[i]);
}

static void narrow_bf16(const float *restrict from, int64_t length, void *restrict to)
{
	for (int64_t i = 0; i < length; i++) {
		uint32_t bits = epg_bits_from_float(from[i]), rounded = bits + 0x7fff + (bits >> 16 & 1);
		bool nan = (bits & 0x7fffffff) > 0x7f800000;
		((uint16_t *)to)[i] = (uint16_t)((nan ? bits | 0x400000 : rounded) >> 16);
	}
}

/* e5m2 is the upper half of f16. e4m3, its sign apart and moved up by 7 bits, is an f16 of 2^-8 times its value, all of the subnormal ones too. */
static void widen_e4m3(const void *restrict from, int64_t length, float *restrict to)
{
	const uint8_t *x = from;
	int64_t i = 0;
#if defined(__AVX2__) && defined(__F16C__)
	for (; i + 8 <= length; i += 8) {
		__m128i bytes = _mm_cvtepu8_epi16(_mm_loadl_epi64((const __m128i *)(x + i))), size = _mm_and_si128(bytes, _mm_set1_epi16(0x7f));
		__m128i nan = _mm_and_si128(_mm_cmpeq_epi16(size, _mm_set1_epi16(0x7f)), _mm_set1_epi16(0x7e00));
		__m128i half = _mm_or_si128(_mm_or_si128(_mm_slli_epi16(size, 7), nan), _mm_slli_epi16(_mm_andnot_si128(_mm_set1_epi16(0x7f), bytes), 8));
		_mm256_storeu_ps(to + i, _mm256_mul_ps(_mm256_cvtph_ps(half), _mm256_set1_ps(256.0f)));
	}
#endif
	for (; i < length; i++)
		to[i] = epg_from_e4m3(x[i]);
}

static void widen_e5m2(const void *restrict from, int64_t length, float *restrict to)
{
	const uint8_t *x = from;
	int64_t i = 0;
#if defined(__AVX2__) && defined(__F16C__)
	for (; i + 8 <= length; i += 8)
		_mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_slli_epi16(_mm_cvtepu8_epi16(_mm_loadl_epi64((const __m128i *)(x + i))), 8)));
#endif
	for (; i < length; i++)
		to[i] = epg_from_e5m2(x[i]);
}

static void narrow_e4m3(const float *restrict from, int64_t length, void *restrict to)
{
	for (int64_t i = 0; i < length; i++)
		((uint8_t *)to)[i] = epg_e4m3_of_bits(epg_bits_from_float(from[i]));
}

static void narrow_e5m2(const float *restrict from, int64_t length, void *restrict to)
{
	for (int64_t i = 0; i < length; i++)
		((uint8_t *)to)[i] = epg_e5m2_of_bits(epg_bits_from_float(from[i]));
}

static void widen_s8(const void *restrict from, int64_t length, float *restrict to)
{
	for (int64_t i = 0; i < length; i++)
		to[i] = ((const int8_t *)from)[i];
}

/* Adding 1.5·2^23 rounds to an integer. */
static void narrow_s8(const float *restrict from, int64_t length, void *restrict to)
{
	const float shift = 12582912.0f;
	for (int64_t i = 0; i < length; i++) {
		float x = from[i] > -128 ? from[i] : -128, whole = (x < 127 ? x : 127) + shift;
		((int8_t *)to)[i] = (int8_t)(from[i] == from[i] ? (int32_t)(whole - shift) : 0);
	}
}

static void widen_f32(const void *restrict from, int64_t length, float *restrict to) { memcpy(to, from, (size_t)length * sizeof *to); }
static void narrow_f32(const float *restrict from, int64_t length, void *restrict to) { memcpy(to, from, (size_t)length * sizeof *from); }

static const struct line_row {
	void (*widen)(const void *restrict from, int64_t length, float *restrict to);
	void (*narrow)(const float *restrict from, int64_t length, void *restrict to);
	int64_t nbytes;
} lines_of[] = {
	[EPG_F32] = {widen_f32, narrow_f32, 4}, [EPG_F16] = {widen_f16, narrow_f16, 2}, [EPG_BF16] = {widen_bf16, narrow_bf16, 2},
	[EPG_E4M3] = {widen_e4m3, narrow_e4m3, 1}, [EPG_E5M2] = {widen_e5m2, narrow_e5m2, 1}, [EPG_S8] = {widen_s8, narrow_s8, 1},
};

static void widen(int32_t type, const void *from, int64_t from_ld, int64_t length, int64_t lines, float *to, int64_t to_ld)
{
	for (int64_t l = 0; l < lines; l++)
		lines_of[type].widen((const char *)from + l * from_ld * lines_of[type].nbytes, length, to + l * to_ld);
}

static void narrow(int32_t type, const float *from, int64_t from_ld, int64_t length, int64_t lines, void *to, int64_t to_ld)
{
	for (int64_t l = 0; l < lines; l++)
		lines_of[type].narrow(from + l * from_ld, length, (char *)to + l * to_ld * lines_of[type].nbytes);
}

/* ---- Integers ---- */

static void add_integers(const float *restrict products, int64_t rows, int64_t cols, int64_t ld, bool first, int32_t *restrict sums)
{
	for (int64_t j = 0; j < cols; j++, products += ld, sums += ld)
		if (first)
			for (int64_t i = 0; i < rows; i++)
				sums[i] = (int32_t)products[i];
		else
			for (int64_t i = 0; i < rows; i++)
				sums[i] = (int32_t)((uint32_t)sums[i] + (uint32_t)(int32_t)products[i]);
}

static void scale_integers(const int32_t *restrict sums, int64_t rows, int64_t cols, int64_t ld, double alpha, float *restrict to)
{
	for (int64_t j = 0; j < cols; j++, sums += ld, to += ld)
		if (alpha == 1)
			for (int64_t i = 0; i < rows; i++)
				to[i] = (float)sums[i];
		else
			for (int64_t i = 0; i < rows; i++)
				to[i] = (float)(alpha * sums[i]);
}

/* ---- The table ---- */

static void run(const cpu_pass *pass, const cpu_pass_data *data, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
	static void (*const by_type[])(const cpu_pass *, const cpu_pass_data *, int64_t, int64_t, int64_t, int64_t) = {
		[EPG_F32] = run_f32, [EPG_F64] = run_f64, [EPG_C64] = complex_f32, [EPG_C128] = complex_f64};
	by_type[pass->type](pass, data, i0, i1, j0, j1);
}

static void sum(int32_t type, const void *x, int64_t ld, int32_t axis, int64_t i0, int64_t i1, int64_t j0, int64_t j1, double *sums)
{
	if (type == EPG_F32)
		sum_f32(x, ld, axis, i0, i1, j0, j1, sums);
	else
		sum_f64(x, ld, axis, i0, i1, j0, j1, sums);
}

const cpu_pass_table CONCAT(epg_cpu_pass_, EPG_ISA) = {
	.isa = STRING(EPG_ISA), .run = run, .sum = sum, .widen = widen, .narrow = narrow, .add_integers = add_integers, .scale_integers = scale_integers,
};
