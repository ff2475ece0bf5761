/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels' work on host memory, behind the same functions: plain loops over src/pass_math.h, which the kernels share. */
#include "../../src/cuda/cuda_pass.h"

#include <math.h>

#include "../../src/half.h"
#include "../../src/pass_math.h"
#include "double.h"

enum { MAX_LINES = 3 };

static int is_complex(int32_t type) { return type == EPG_C64 || type == EPG_C128; }
static int is_wide(int32_t type) { return type == EPG_F64 || type == EPG_C128; }
static int32_t part_of(int32_t type) { return type == EPG_C64 ? EPG_F32 : type == EPG_C128 ? EPG_F64 : type; }

static cudaError_t launched(void) { return epg_double_count(DOUBLE_LAUNCH) ? cudaErrorLaunchFailure : cudaSuccess; }

static int64_t place(const epg_cuda_matrix *x, int64_t i, int64_t j, int64_t item) { return item * x->stride + i * x->row + j * x->col; }

static double load(const epg_cuda_matrix *x, int64_t at, int part)
{
	int pair = is_complex(x->type);
	double value = epg_load_real(part_of(x->type), x->data, pair ? 2 * at + part : at);
	return part && x->conj ? -value : value;
}

static void store(const epg_cuda_matrix *x, int64_t at, int part, double value)
{
	epg_store_real(part_of(x->type), x->data, is_complex(x->type) ? 2 * at + part : at, value);
}

static int load_bit(const epg_cuda_matrix *x, int64_t bit) { return ((const unsigned char *)x->data)[bit / 8] >> (bit % 8) & 1; }

static void store_bit(const epg_cuda_matrix *x, int64_t bit, int on)
{
	unsigned char *byte = (unsigned char *)x->data + bit / 8;
	*byte = (unsigned char)((*byte & ~(1 << bit % 8)) | on << bit % 8);
}

/* ---- The pass ---- */

int64_t epg_cuda_pass_parts(int32_t sums, int64_t m, int64_t n, int64_t batch, int32_t multiprocessors)
{
	(void)batch, (void)multiprocessors;
	int64_t terms = sums == EPG_CUDA_SUM_ROWS ? n : m;
	return sums ? terms < MAX_LINES ? terms : MAX_LINES : 0;
}

static void affine(const epg_cuda_pass *p, int64_t i, int64_t j, int64_t item, double z[2])
{
	double beta[2] = {p->beta[0], p->beta[1]}, c[2] = {0, 0};
	for (int part = 0; part < 2 && p->beta_device; part++)
		beta[part] = part && !is_complex(p->d.type) ? 0 : epg_load_real(is_wide(p->d.type) ? EPG_F64 : EPG_F32, p->beta_device, part);
	for (int part = 0; part <= is_complex(p->d.type); part++) {
		z[part] = p->z.data ? load(&p->z, place(&p->z, i, j, item), part) : 0;
		z[part] += p->bias.data ? load(&p->bias, item * p->bias.stride + (p->axis == EPG_PER_ROW ? i : j), part) : 0;
		c[part] = p->c.data ? load(&p->c, place(&p->c, i, j, item), part) : 0;
	}
	if (!p->c.data)
		return;
	z[0] += beta[0] * c[0] - (is_complex(p->d.type) ? beta[1] * c[1] : 0);
	z[1] += is_complex(p->d.type) ? beta[0] * c[1] + beta[1] * c[0] : 0;
}

static double activated(const epg_cuda_pass *p, int64_t i, int64_t j, int64_t item, double z)
{
	int act = p->epilog & EPG_ACT_MASK, grad = (p->epilog & EPG_GRAD) != 0;
	int64_t at = place(&p->aux, i, j, item);
	if (grad && act == EPG_ACT_RELU)
		return load_bit(&p->aux, at) ? z : 0;
	if (grad)
		return z * (p->d.type == EPG_F64 ? epg_dgelu_f64(load(&p->aux, at, 0)) : epg_dgelu_f32((float)load(&p->aux, at, 0)));
	if (act == EPG_ACT_RELU && p->aux.data)
		store_bit(&p->aux, at, z >= 0);
	if (act == EPG_ACT_GELU && p->aux.data)
		store(&p->aux, at, 0, z);
	if (act == EPG_ACT_RELU)
		return epg_relu_f64(z);
	if (act == EPG_ACT_GELU)
		return p->d.type == EPG_F64 ? epg_gelu_f64(z) : epg_gelu_f32((float)z);
	return z;
}

static void add_to_sum(const epg_cuda_pass *p, int64_t i, int64_t j, int64_t item, double x)
{
	int32_t type = is_wide(p->z.data ? p->z.type : p->d.type) ? EPG_F64 : EPG_F32;
	int64_t index = p->sums == EPG_CUDA_SUM_ROWS ? i : j, line = (p->sums == EPG_CUDA_SUM_ROWS ? j : i) % p->parts;
	int64_t at = item * p->partial_stride + line * p->length + index, first = (p->sums == EPG_CUDA_SUM_ROWS ? j : i) == line;
	epg_store_real(type, p->partial, at, (first ? 0 : epg_load_real(type, p->partial, at)) + x);
}

static void pass_element(const epg_cuda_pass *p, int64_t i, int64_t j, int64_t item)
{
	double z[2] = {0, 0};
	affine(p, i, j, item, z);
	z[0] = p->epilog & EPG_ACT_MASK ? activated(p, i, j, item, z[0]) : z[0];
	for (int part = 0; part <= is_complex(p->d.type) && p->d.data; part++)
		store(&p->d, place(&p->d, i, j, item), part, z[part]);
	if (p->sums)
		add_to_sum(p, i, j, item, p->d.data ? load(&p->d, place(&p->d, i, j, item), 0) : z[0]);
}

cudaError_t epg_cuda_pass_launch(const epg_cuda_pass *p, cudaStream_t stream)
{
	(void)stream;
	cudaError_t error = launched();
	for (int64_t item = 0; item < p->batch && !error; item++)
		for (int64_t j = 0; j < p->n; j++)
			for (int64_t i = 0; i < p->m; i++)
				pass_element(p, i, j, item);
	return error;
}

cudaError_t epg_cuda_sum_finish(const epg_cuda_sum *s, cudaStream_t stream)
{
	(void)stream;
	cudaError_t error = launched();
	for (int64_t item = 0; item < s->batch && !error; item++)
		for (int64_t i = 0; i < s->length; i++) {
			double sum = s->accumulate ? epg_load_real(s->type, s->gradient, item * s->stride + i) : 0;
			for (int64_t line = 0; line < s->parts; line++)
				sum += epg_load_real(s->wide ? EPG_F64 : EPG_F32, s->partial, item * s->partial_stride + line * s->length + i);
			epg_store_real(s->type, s->gradient, item * s->stride + i, sum);
		}
	return error;
}

/* ---- Conversions and masks ---- */

cudaError_t epg_cuda_convert_launch(int64_t rows, int64_t cols, int64_t batch, const epg_cuda_matrix *from, const epg_cuda_matrix *to, const void *scale, void *amax,
	cudaStream_t stream)
{
	int32_t scale_type = is_wide(from->type) ? EPG_F64 : EPG_F32;
	double factor = scale ? epg_load_real(scale_type, scale, 0) : 1, largest = 0;
	(void)stream;
	cudaError_t error = launched();
	for (int64_t item = 0; item < batch && !error; item++)
		for (int64_t j = 0; j < cols; j++)
			for (int64_t i = 0; i < rows; i++) {
				double x[2] = {0, 0};
				for (int part = 0; part <= is_complex(from->type); part++) {
					x[part] = factor * load(from, place(from, i, j, item), part);
					store(to, place(to, i, j, item), part, x[part]);
				}
				double size = hypot(x[0], x[1]);
				largest = size > largest || isnan(size) ? size : largest;
			}
	if (amax && !error)
		epg_store_real(scale_type, amax, 0, largest);
	return error;
}

cudaError_t epg_cuda_mask_turn_launch(int64_t rows, int64_t cols, int64_t batch, const epg_cuda_matrix *from, const epg_cuda_matrix *to, cudaStream_t stream)
{
	(void)stream;
	cudaError_t error = launched();
	for (int64_t item = 0; item < batch && !error; item++)
		for (int64_t j = 0; j < cols; j++)
			for (int64_t i = 0; i < rows; i++)
				store_bit(to, place(to, i, j, item), load_bit(from, place(from, i, j, item)));
	return error;
}
