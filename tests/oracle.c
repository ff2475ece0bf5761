/* SPDX-License-Identifier: Apache-2.0
 *
 * See oracle.h. The order of the file: types, layouts, activations, the sums, one batch item, the whole.
 * A further element type is one more case in oracle_type_nbits, oracle_roundoff, oracle_load and oracle_store. */
#include "oracle.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Types ---- */

int64_t oracle_type_nbits(int32_t type)
{
	switch (type) {
	case EPG_F32: return 32;
	case EPG_F16: return 16;
	case EPG_BF16: return 16;
	case EPG_F64: return 64;
	case EPG_C64: return 64;
	case EPG_C128: return 128;
	case EPG_S32: return 32;
	case EPG_E4M3:
	case EPG_E5M2:
	case EPG_S8: return 8;
	case EPG_BIT: return 1;
	default: return 0;
	}
}

int oracle_type_is_complex(int32_t type) { return type == EPG_C64 || type == EPG_C128; }

double oracle_roundoff(int32_t type)
{
	if (type == EPG_E4M3 || type == EPG_E5M2)
		return type == EPG_E4M3 ? ldexp(1, -4) : ldexp(1, -3);
	if (type == EPG_S8 || type == EPG_S32)
		return 0;
	if (type == EPG_F16)
		return ldexp(1, -11);
	if (type == EPG_BF16)
		return ldexp(1, -8);
	return type == EPG_F32 || type == EPG_C64 ? FLT_EPSILON / 2 : DBL_EPSILON / 2;
}

/* Formats of 16 bits: a sign, an exponent, 'fraction' bits; the exponent's bias is bias, its largest value means infinity or NaN. */
typedef struct {
	int fraction, bias;
} small_format;

static const small_format f16_format = { 10, 15 }, bf16_format = { 7, 127 };

static oracle_real decode_bits(small_format f, unsigned bits)
{
	int exponent = (int)(bits >> f.fraction & ((1u << (15 - f.fraction)) - 1)), last = (1 << (15 - f.fraction)) - 1;
	oracle_real fraction = bits & ((1u << f.fraction) - 1), unit = ldexpl(1, -f.fraction), x;
	if (exponent == last)
		x = fraction == 0 ? (oracle_real)INFINITY : (oracle_real)NAN;
	else
		x = exponent == 0 ? ldexpl(fraction * unit, 1 - f.bias) : ldexpl(1 + fraction * unit, exponent - f.bias);
	return bits & 0x8000 ? -x : x;
}

/* All 65536 of them, decoded once. */
static oracle_real decode(const small_format *f, unsigned bits)
{
	static float tables[2][65536];
	static int made[2];
	int which = f == &bf16_format;
	for (unsigned i = 0; i < 65536 && !made[which]; i++)
		tables[which][i] = (float)decode_bits(*f, i);
	made[which] = 1;
	return tables[which][bits];
}

/* Counts in units of the last place of x's binade, to the nearest even count. */
static unsigned encode(small_format f, oracle_real x)
{
	unsigned sign = signbit(x) ? 0x8000 : 0, last = (1u << (15 - f.fraction)) - 1;
	if (isnan(x))
		return sign | last << f.fraction | 1u << (f.fraction - 1);
	if (isinf(x) || x == 0)
		return sign | (x == 0 ? 0 : last << f.fraction);
	int exponent = ilogbl(x) < 1 - f.bias ? 1 - f.bias : ilogbl(x);
	long count = (long)rintl(ldexpl(fabsl(x), f.fraction - exponent)), one = 1L << f.fraction;
	if (count == 2 * one) {
		count = one;
		exponent++;
	}
	if (exponent + f.bias >= (int)last)
		return sign | last << f.fraction;
	return sign | (count < one ? (unsigned)count : (unsigned)(exponent + f.bias) << f.fraction | (unsigned)(count - one));
}

/* Formats of 8 bits, as the list of their numbers that are not negative: NaN from 'nans' on, a finite one's pattern is its place. */
typedef struct {
	int fraction, bias, nans, infinity;
} byte_format;

static const byte_format e4m3_format = { 3, 7, 0x7f, -1 }, e5m2_format = { 2, 15, 0x7d, 0x7c };

static double decode_size(const byte_format *f, int size)
{
	int exponent = size >> f->fraction, unit = 1 << f->fraction;
	if (size >= f->nans)
		return NAN;
	if (size == f->infinity)
		return INFINITY;
	return ldexp(exponent ? unit + size % unit : size, (exponent ? exponent : 1) - f->bias - f->fraction);
}

/* The list, made once. */
static const double *numbers_of(const byte_format *f)
{
	static double lists[2][128];
	double *list = lists[f == &e5m2_format];
	for (int i = 0; i < 128 && list[1] == 0; i++)
		list[127 - i] = decode_size(f, 127 - i);
	return list;
}

static oracle_real decode_byte(const byte_format *f, unsigned bits)
{
	double x = numbers_of(f)[bits & 0x7f];
	return bits & 0x80 ? -x : x;
}

/* The nearest in the list: beyond the middle between it and the one before; at a middle the one whose pattern is even. */
static unsigned encode_byte(const byte_format *f, oracle_real x)
{
	const double *list = numbers_of(f);
	oracle_real size = fabsl(x);
	int last = f->infinity > 0 ? f->infinity - 1 : f->nans - 1, i = 0;
	unsigned sign = signbit(x) ? 0x80 : 0;
	if (isnan(x))
		return sign | 0x7f;
	while (i < last && (size > (list[i] + list[i + 1]) / 2 || (size == (list[i] + list[i + 1]) / 2 && i % 2 == 1)))
		i++;
	return sign | (unsigned)i;
}

static oracle_real nearest_integer(oracle_real x, oracle_real low, oracle_real high)
{
	return isnan(x) ? 0 : x < low ? low : x > high ? high : rintl(x);
}

oracle_num oracle_load(int32_t type, const void *base, int64_t index)
{
	const float *f = base;
	const uint16_t *h = base;
	const double *d = base;
	const unsigned char *byte = base;
	switch (type) {
	case EPG_F32: return (oracle_num){ f[index], 0 };
	case EPG_F16: return (oracle_num){ decode(&f16_format, h[index]), 0 };
	case EPG_BF16: return (oracle_num){ decode(&bf16_format, h[index]), 0 };
	case EPG_F64: return (oracle_num){ d[index], 0 };
	case EPG_E4M3: return (oracle_num){ decode_byte(&e4m3_format, byte[index]), 0 };
	case EPG_E5M2: return (oracle_num){ decode_byte(&e5m2_format, byte[index]), 0 };
	case EPG_S8: return (oracle_num){ ((const signed char *)base)[index], 0 };
	case EPG_S32: return (oracle_num){ ((const int32_t *)base)[index], 0 };
	case EPG_C64: return (oracle_num){ f[2 * index], f[2 * index + 1] };
	case EPG_C128: return (oracle_num){ d[2 * index], d[2 * index + 1] };
	case EPG_BIT: return (oracle_num){ byte[index / 8] >> index % 8 & 1, 0 };
	default: abort();
	}
}

static void store_bit(unsigned char *byte, int64_t index, int bit)
{
	unsigned char mask = (unsigned char)(1u << index % 8);
	byte[index / 8] = (unsigned char)(bit ? byte[index / 8] | mask : byte[index / 8] & ~mask);
}

void oracle_store(int32_t type, void *base, int64_t index, oracle_num value)
{
	float *f = base;
	uint16_t *h = base;
	double *d = base;
	switch (type) {
	case EPG_F32: f[index] = (float)value.re; break;
	case EPG_F16: h[index] = (uint16_t)encode(f16_format, value.re); break;
	case EPG_BF16: h[index] = (uint16_t)encode(bf16_format, value.re); break;
	case EPG_F64: d[index] = (double)value.re; break;
	case EPG_E4M3: ((unsigned char *)base)[index] = (unsigned char)encode_byte(&e4m3_format, value.re); break;
	case EPG_E5M2: ((unsigned char *)base)[index] = (unsigned char)encode_byte(&e5m2_format, value.re); break;
	case EPG_S8: ((signed char *)base)[index] = (signed char)nearest_integer(value.re, INT8_MIN, INT8_MAX); break;
	case EPG_S32: ((int32_t *)base)[index] = (int32_t)nearest_integer(value.re, INT32_MIN, INT32_MAX); break;
	case EPG_C64: f[2 * index] = (float)value.re, f[2 * index + 1] = (float)value.im; break;
	case EPG_C128: d[2 * index] = (double)value.re, d[2 * index + 1] = (double)value.im; break;
	case EPG_BIT: store_bit(base, index, value.re != 0); break;
	default: abort();
	}
}

oracle_num oracle_round(int32_t type, oracle_num value)
{
	double memory[2];
	oracle_store(type, memory, 0, value);
	return oracle_load(type, memory, 0);
}

/* ---- The epilog and the layouts ---- */

int oracle_has_bias(const epg_matmul_desc *desc) { return (desc->epilog & EPG_BIAS) != 0; }
int oracle_has_aux(const epg_matmul_desc *desc) { return (desc->epilog & EPG_AUX) != 0; }
int oracle_is_gradient(const epg_matmul_desc *desc) { return (desc->epilog & EPG_GRAD) != 0; }
int oracle_act(const epg_matmul_desc *desc) { return desc->epilog & EPG_ACT_MASK; }

int oracle_has_bgrad(const epg_matmul_desc *desc)
{
	return (desc->epilog & (EPG_BGRAD | EPG_BGRADA | EPG_BGRADB)) != 0;
}

int oracle_is_defined(const epg_matmul_desc *desc)
{
	if (!oracle_type_is_complex(desc->d.type) && desc->d.type != EPG_S32)
		return 1;
	return desc->epilog == EPG_EPILOG_DEFAULT || desc->epilog == EPG_EPILOG_BIAS;
}

int32_t oracle_compute_type(const epg_matmul_desc *desc)
{
	if (desc->compute == EPG_COMPUTE_F64)
		return EPG_F64;
	return desc->a.type == EPG_F64 || desc->a.type == EPG_C128 ? EPG_F64 : EPG_F32;
}

static int64_t round_up(int64_t x, int64_t multiple) { return (x + multiple - 1) / multiple * multiple; }

static int64_t line_multiple(int operand, int32_t type)
{
	if (type == EPG_BIT)
		return 128;
	return operand == EPG_OPERAND_AUX ? 8 : 1;
}

/* ld and batch stride: given, or tight; then the bytes up to the end of the last line of the last item. */
static void finish_layout(int operand, oracle_layout *o, int64_t ld, int64_t stride)
{
	int64_t padded = round_up(o->length, line_multiple(operand, o->type));
	o->ld = ld == EPG_TIGHT ? padded : ld;
	o->stride = stride == EPG_TIGHT ? (o->ld ? o->ld * o->lines : padded) : stride;
	o->used = o->lines > 0 && o->length > 0 && o->batch > 0;
	if (!o->used)
		return;
	int64_t last = o->type == EPG_BIT ? padded : o->length;
	int64_t elems = (o->batch - 1) * o->stride + (o->lines - 1) * o->ld + last;
	o->nbytes = o->type == EPG_BIT ? (elems + 7) / 8 : elems * (oracle_type_nbits(o->type) / 8);
}

static void matrix_layout(const epg_matrix *x, int operand, int64_t rows, int64_t cols, int64_t batch, oracle_layout *o)
{
	int transposed = x->op == EPG_OP_T || x->op == EPG_OP_C;
	o->type = x->type;
	o->order = x->order;
	o->rows = transposed ? cols : rows;
	o->cols = transposed ? rows : cols;
	o->lines = x->order == EPG_COL ? o->cols : o->rows;
	o->length = x->order == EPG_COL ? o->rows : o->cols;
	o->batch = batch;
	finish_layout(operand, o, x->ld, x->batch_stride);
}

/* What an aux, a bias or its gradient is where nothing is said: of 16 bits beside 8. */
static int32_t default_type(const epg_matmul_desc *desc, int is_vector)
{
	int32_t d = desc->d.type, c = desc->c.type;
	if (oracle_type_nbits(d) != 8)
		return d;
	if (d == EPG_S8 && is_vector)
		return EPG_F32;
	return c == EPG_F16 ? EPG_F16 : EPG_BF16;
}

static void vector_layout(const epg_vector *x, int operand, int32_t d_type, int64_t length, int64_t batch, oracle_layout *o)
{
	o->type = x->type == EPG_NONE ? d_type : x->type;
	o->rows = o->length = length;
	o->cols = o->lines = 1;
	o->batch = batch;
	finish_layout(operand, o, EPG_TIGHT, x->batch_stride);
}

static int64_t bgrad_length(const epg_matmul_desc *desc)
{
	if (desc->epilog & EPG_BGRADA)
		return desc->m;
	if (desc->epilog & EPG_BGRADB)
		return desc->n;
	return desc->axis == EPG_PER_ROW ? desc->m : desc->n;
}

void oracle_get_layout(const epg_matmul_desc *desc, int operand, oracle_layout *o)
{
	int64_t m = desc->m, n = desc->n, k = desc->k, batch = desc->batch;
	epg_matrix aux = desc->aux;
	memset(o, 0, sizeof *o);
	if (aux.type == EPG_NONE)
		aux.type = oracle_act(desc) == EPG_ACT_RELU ? EPG_BIT : default_type(desc, 0);
	switch (operand) {
	case EPG_OPERAND_A: matrix_layout(&desc->a, operand, m, k, batch, o); break;
	case EPG_OPERAND_B: matrix_layout(&desc->b, operand, k, n, batch, o); break;
	case EPG_OPERAND_C: matrix_layout(&desc->c, operand, m, n, batch, o); break;
	case EPG_OPERAND_D: matrix_layout(&desc->d, operand, m, n, batch, o); break;
	case EPG_OPERAND_AUX:
		if (oracle_has_aux(desc))
			matrix_layout(&aux, operand, m, n, batch, o);
		break;
	case EPG_OPERAND_BIAS:
		if (oracle_has_bias(desc))
			vector_layout(&desc->bias, operand, default_type(desc, 1), desc->axis == EPG_PER_ROW ? m : n, batch, o);
		break;
	case EPG_OPERAND_BGRAD:
		if (oracle_has_bgrad(desc))
			vector_layout(&desc->bgrad, operand, default_type(desc, 1), bgrad_length(desc), batch, o);
		break;
	}
}

int64_t oracle_index(const oracle_layout *o, int64_t b, int64_t i, int64_t j)
{
	return b * o->stride + (o->order == EPG_COL ? i + j * o->ld : i * o->ld + j);
}

/* ---- Activations ---- */

#define SQRT_2_OVER_PI 0.797884560802865355879892119868763737L
#define CUBIC 0.044715L

/* With t = √(2/π)(z + 0.044715 z³): (1 + tanh t)/2 = 1/(1 + e^(-2t)), which loses nothing where z is negative. */
static oracle_real exponent(oracle_real z) { return 2 * SQRT_2_OVER_PI * (z + CUBIC * z * z * z); }
static oracle_real sigmoid(oracle_real x) { return 1 / (1 + expl(-x)); }

oracle_real oracle_gelu(oracle_real z)
{
	if (isinf(z))
		return z > 0 ? z : 0;
	return z * sigmoid(exponent(z));
}

oracle_real oracle_dgelu(oracle_real z)
{
	if (isinf(z))
		return z > 0;
	oracle_real x = exponent(z), s = sigmoid(x), rest = sigmoid(-x);
	oracle_real tail = z * s * rest * 2 * SQRT_2_OVER_PI * (1 + 3 * CUBIC * z * z);
	return s * rest == 0 ? s : s + tail;
}

/* Ulps that GELU may be off: 64 up to |z| = 5; beyond, the exponent grows as z³ and its rounding with it. */
static double gelu_ulps(oracle_real z)
{
	oracle_real r = fabsl(z) / 5;
	return r > 1 && r < 100 ? (double)(64 * r * r * r) : 64;
}

static void forward_act(int act, int64_t e, oracle_result *r)
{
	oracle_real z = r->z[e].re;
	r->d[e] = r->z[e];
	r->slope[e] = 1;
	r->bit[e] = z >= 0;
	if (act == EPG_ACT_RELU)
		r->d[e].re = z < 0 ? 0 : z;
	if (act != EPG_ACT_GELU)
		return;
	r->d[e].re = oracle_gelu(z);
	r->slope[e] = 1.13; /* the largest derivative, at z = 1.4 */
	r->act_error[e] = 2 * gelu_ulps(z) * (double)fabsl(r->d[e].re);
}

static void backward_act(int act, oracle_num aux, int64_t e, oracle_result *r)
{
	oracle_real z = r->z[e].re;
	if (act == EPG_ACT_RELU) {
		r->bit[e] = aux.re != 0;
		r->d[e] = (oracle_num){ r->bit[e] ? z : 0, 0 };
		r->slope[e] = r->bit[e];
		return;
	}
	oracle_real slope = oracle_dgelu(aux.re);
	r->d[e] = (oracle_num){ z * slope, 0 };
	r->slope[e] = (double)fabsl(slope);
	r->act_error[e] = (double)fabsl(z) * (16 + 128 * (double)fabsl(slope)); /* the derivative has a zero: 16 absolute */
}

/* ---- One batch item ---- */

/* op(X) of one item unpacked line by line: part 0 the real parts, 1 the imaginary parts, 2 the absolute values. */
typedef struct {
	int64_t lines, k;
	double *part[3];
} unpacked;

static void unpack_element(unpacked *u, int64_t at, oracle_num x, int conjugate)
{
	u->part[0][at] = (double)x.re;
	u->part[2][at] = x.im != 0 ? (double)hypotl(x.re, x.im) : (double)fabsl(x.re);
	if (u->part[1])
		u->part[1][at] = (double)(conjugate ? -x.im : x.im);
}

/* by_column: lines are the columns of op(X) (for B), else its rows (for A). */
static void unpack(const epg_matrix *x, const oracle_layout *o, const void *data, int64_t b, int by_column, unpacked *u)
{
	int transposed = x->op == EPG_OP_T || x->op == EPG_OP_C;
	int conjugate = x->op == EPG_OP_C || x->op == EPG_OP_J;
	for (int64_t line = 0; line < u->lines; line++)
		for (int64_t l = 0; l < u->k; l++) {
			int64_t first = transposed != by_column ? l : line, second = transposed != by_column ? line : l;
			int64_t at = oracle_index(o, b, first, second);
			unpack_element(u, line * u->k + l, oracle_load(o->type, data, at), conjugate);
		}
}

static int unpacked_alloc(unpacked *u, int64_t lines, int64_t k, int is_complex)
{
	size_t count = (size_t)(lines * k) + 1;
	*u = (unpacked){ lines, k, { NULL, NULL, NULL } };
	for (int p = 0; p < 3; p++)
		if ((p != 1 || is_complex) && !(u->part[p] = calloc(count, sizeof(double))))
			return 0;
	return 1;
}

static void unpacked_free(unpacked *u)
{
	for (int p = 0; p < 3; p++)
		free(u->part[p]);
}

/* Four partial sums, or the loop would wait for each addition. */
static oracle_real dot_wide(const double *x, const double *y, int64_t k)
{
	oracle_real sum[4] = { 0 };
	int64_t l = 0;
	for (; l + 4 <= k; l += 4)
		for (int i = 0; i < 4; i++)
			sum[i] += (oracle_real)x[l + i] * y[l + i];
	for (; l < k; l++)
		sum[0] += (oracle_real)x[l] * y[l];
	return sum[0] + sum[1] + (sum[2] + sum[3]);
}

static oracle_real dot(const double *x, const double *y, int64_t k, int wide)
{
	double sum[4] = { 0 };
	int64_t l = 0;
	if (wide)
		return dot_wide(x, y, k);
	for (; l + 4 <= k; l += 4)
		for (int i = 0; i < 4; i++)
			sum[i] += x[l + i] * y[l + i];
	for (; l < k; l++)
		sum[0] += x[l] * y[l];
	return sum[0] + sum[1] + (sum[2] + sum[3]);
}

static oracle_num product(const unpacked *a, const unpacked *b, int64_t i, int64_t j, int wide)
{
	int64_t k = a->k, p = i * k, q = j * k;
	oracle_num sum = { dot(a->part[0] + p, b->part[0] + q, k, wide), 0 };
	if (!a->part[1])
		return sum;
	sum.re -= dot(a->part[1] + p, b->part[1] + q, k, wide);
	sum.im = dot(a->part[0] + p, b->part[1] + q, k, wide) + dot(a->part[1] + p, b->part[0] + q, k, wide);
	return sum;
}

static oracle_num scale(const double factor[2], oracle_num x)
{
	if (factor[1] == 0)
		return (oracle_num){ factor[0] * x.re, factor[0] * x.im };
	return (oracle_num){ factor[0] * x.re - factor[1] * x.im, factor[0] * x.im + factor[1] * x.re };
}

static double modulus(oracle_num x) { return (double)hypotl(x.re, x.im); }

/* Element e += factor · x. */
static void add_term(oracle_result *r, int64_t e, const double factor[2], oracle_num x, double size)
{
	oracle_num term = scale(factor, x);
	r->z[e].re += term.re;
	r->z[e].im += term.im;
	r->terms[e] += hypot(factor[0], factor[1]) * size;
}

static int is_zero(const double factor[2]) { return factor[0] == 0 && factor[1] == 0; }

static void add_product(const epg_matmul_desc *desc, const unpacked *a, const unpacked *b, int64_t item, oracle_result *r)
{
	int wide = oracle_compute_type(desc) != EPG_F32;
	for (int64_t j = 0; j < desc->n; j++)
		for (int64_t i = 0; i < desc->m; i++) {
			double size = (double)dot(a->part[2] + i * a->k, b->part[2] + j * b->k, a->k, 0);
			oracle_num sum = product(a, b, i, j, wide);
			if (desc->a.type == EPG_S8) /* sums of integers wrap */
				sum.re = (int32_t)(uint32_t)(int64_t)sum.re;
			add_term(r, (item * desc->n + j) * desc->m + i, desc->alpha, sum, size);
		}
}

static void add_c_and_bias(const epg_matmul_desc *desc, const oracle_inputs *in, int64_t item, oracle_result *r)
{
	static const double one[2] = { 1, 0 };
	oracle_layout c, bias;
	oracle_get_layout(desc, EPG_OPERAND_C, &c);
	oracle_get_layout(desc, EPG_OPERAND_BIAS, &bias);
	for (int64_t j = 0; j < desc->n; j++)
		for (int64_t i = 0; i < desc->m; i++) {
			int64_t e = (item * desc->n + j) * desc->m + i, at = desc->axis == EPG_PER_ROW ? i : j;
			if (!is_zero(desc->beta)) {
				oracle_num x = oracle_load(c.type, in->c, oracle_index(&c, item, i, j));
				add_term(r, e, desc->beta, x, modulus(x));
			}
			if (bias.used) {
				oracle_num x = oracle_load(bias.type, in->bias, item * bias.stride + at);
				add_term(r, e, one, x, modulus(x));
			}
		}
}

static void apply_act(const epg_matmul_desc *desc, const oracle_inputs *in, int64_t item, oracle_result *r)
{
	oracle_layout aux;
	oracle_get_layout(desc, EPG_OPERAND_AUX, &aux);
	for (int64_t j = 0; j < desc->n; j++)
		for (int64_t i = 0; i < desc->m; i++) {
			int64_t e = (item * desc->n + j) * desc->m + i;
			if (oracle_is_gradient(desc))
				backward_act(oracle_act(desc), oracle_load(aux.type, in->aux, oracle_index(&aux, item, i, j)), e, r);
			else
				forward_act(oracle_act(desc), e, r);
		}
}

/* ---- Sums ---- */

static void add_to_sum(oracle_result *r, int64_t at, oracle_num x)
{
	r->sums[at].re += x.re;
	r->sums[at].im += x.im;
	r->sums_terms[at] += modulus(x);
}

/* Sums begin with the old gradient under EPG_BGRAD_ACCUMULATE, else with 0. */
static void begin_sums(const epg_matmul_desc *desc, const void *old, oracle_result *r)
{
	oracle_layout o;
	oracle_get_layout(desc, EPG_OPERAND_BGRAD, &o);
	for (int64_t at = 0; at < r->sums_count; at++) {
		int64_t item = at / r->sums_length, index = at % r->sums_length;
		r->sums[at] = (oracle_num){ 0, 0 };
		r->sums_terms[at] = 0;
		if (desc->flags & EPG_BGRAD_ACCUMULATE)
			add_to_sum(r, at, oracle_load(o.type, old, item * o.stride + index));
	}
}

static void sum_lines(const unpacked *u, int64_t item, oracle_result *r)
{
	for (int64_t line = 0; line < u->lines; line++)
		for (int64_t l = 0; l < u->k; l++) {
			int64_t at = line * u->k + l;
			add_to_sum(r, item * r->sums_length + line, (oracle_num){ u->part[0][at], u->part[1] ? u->part[1][at] : 0 });
		}
}

static void sum_exact_d(const epg_matmul_desc *desc, oracle_result *r)
{
	for (int64_t e = 0; e < r->count; e++) {
		int64_t item = e / (r->m * r->n), index = desc->axis == EPG_PER_ROW ? e % r->m : e / r->m % r->n;
		add_to_sum(r, item * r->sums_length + index, r->d[e]);
	}
}

void oracle_sum_d(const epg_matmul_desc *desc, const void *d, const void *old_bgrad, oracle_result *r)
{
	oracle_layout o;
	if (!(desc->epilog & EPG_BGRAD))
		return;
	oracle_get_layout(desc, EPG_OPERAND_D, &o);
	begin_sums(desc, old_bgrad, r);
	for (int64_t e = 0; e < r->count; e++) {
		int64_t item = e / (r->m * r->n), i = e % r->m, j = e / r->m % r->n;
		int64_t at = item * r->sums_length + (desc->axis == EPG_PER_ROW ? i : j);
		add_to_sum(r, at, oracle_load(o.type, d, oracle_index(&o, item, i, j)));
	}
}

/* ---- The whole ---- */

static void solve_item(const epg_matmul_desc *desc, const oracle_inputs *in, int64_t item, unpacked *a, unpacked *b, oracle_result *r)
{
	oracle_layout layout;
	if (!is_zero(desc->alpha) || desc->epilog & EPG_BGRADA) {
		oracle_get_layout(desc, EPG_OPERAND_A, &layout);
		unpack(&desc->a, &layout, in->a, item, 0, a);
	}
	if (!is_zero(desc->alpha) || desc->epilog & EPG_BGRADB) {
		oracle_get_layout(desc, EPG_OPERAND_B, &layout);
		unpack(&desc->b, &layout, in->b, item, 1, b);
	}
	if (!is_zero(desc->alpha))
		add_product(desc, a, b, item, r);
	add_c_and_bias(desc, in, item, r);
	apply_act(desc, in, item, r);
	if (desc->epilog & EPG_BGRADA)
		sum_lines(a, item, r);
	if (desc->epilog & EPG_BGRADB)
		sum_lines(b, item, r);
}

static int result_alloc(const epg_matmul_desc *desc, oracle_result *r)
{
	*r = (oracle_result){ .m = desc->m, .n = desc->n, .batch = desc->batch, .count = desc->m * desc->n * desc->batch };
	size_t count = (size_t)r->count + 1;
	r->sums_length = oracle_has_bgrad(desc) ? bgrad_length(desc) : 0;
	r->sums_count = r->sums_length * r->batch;
	r->z = calloc(count, sizeof *r->z);
	r->d = calloc(count, sizeof *r->d);
	r->terms = calloc(count, sizeof *r->terms);
	r->slope = calloc(count, sizeof *r->slope);
	r->act_error = calloc(count, sizeof *r->act_error);
	r->bit = calloc(count, 1);
	r->sums = calloc((size_t)r->sums_count + 1, sizeof *r->sums);
	r->sums_terms = calloc((size_t)r->sums_count + 1, sizeof *r->sums_terms);
	return r->z && r->d && r->terms && r->slope && r->act_error && r->bit && r->sums && r->sums_terms;
}

void oracle_free(oracle_result *r)
{
	free(r->z);
	free(r->d);
	free(r->terms);
	free(r->slope);
	free(r->act_error);
	free(r->bit);
	free(r->sums);
	free(r->sums_terms);
	memset(r, 0, sizeof *r);
}

int oracle_solve(const epg_matmul_desc *desc, const oracle_inputs *in, oracle_result *r)
{
	unpacked a = { 0 }, b = { 0 };
	int is_complex = oracle_type_is_complex(desc->a.type);
	int good = result_alloc(desc, r) && unpacked_alloc(&a, desc->m, desc->k, is_complex) && unpacked_alloc(&b, desc->n, desc->k, is_complex);
	if (good) {
		begin_sums(desc, in->bgrad, r);
		for (int64_t item = 0; item < desc->batch; item++)
			solve_item(desc, in, item, &a, &b, r);
		if (desc->epilog & EPG_BGRAD)
			sum_exact_d(desc, r);
	}
	unpacked_free(&a);
	unpacked_free(&b);
	return good;
}
