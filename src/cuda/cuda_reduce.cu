/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels beside the pass: the last stage of sums, conversions, and the turning of a mask. */
#include <cuda_fp8.h>

#include "cuda_device.cuh"

static const int SIDE = 32, MAX_GRID = 65535;

/* A block adds 32 sums, up to 32 threads for each, as many as there are lines (measured: fewer threads that load more take 1 to 2 us
 * longer): every thread its lines in order, then the threads in order. */
template <typename P> __global__ void __launch_bounds__(SIDE * SIDE) finish_kernel(const __grid_constant__ epg_cuda_sum s)
{
	__shared__ double all[SIDE][SIDE + 1];
	wait_for_the_kernel_before();
	int64_t i = (int64_t)blockIdx.x * SIDE + threadIdx.x;
	for (int64_t item = blockIdx.y; item < s.batch; item += gridDim.y) {
		const P *partial = (const P *)s.partial + item * s.partial_stride + i;
		double sum = 0;
#pragma unroll 8
		for (int64_t p = threadIdx.y; p < s.parts; p += blockDim.y)
			sum += i < s.length ? (double)partial[p * s.length] : 0;
		all[threadIdx.y][threadIdx.x] = sum;
		for (int half = (int)blockDim.y / 2; half > 0; half /= 2) {
			__syncthreads();
			if ((int)threadIdx.y < half)
				all[threadIdx.y][threadIdx.x] += all[threadIdx.y + half][threadIdx.x];
		}
		if (threadIdx.y == 0 && i < s.length) {
			double total = all[0][threadIdx.x];
			if (s.accumulate)
				total += load_any<double>(s.type, s.gradient, item * s.stride + i);
			store_any(s.type, s.gradient, item * s.stride + i, total);
		}
		__syncthreads();
	}
}

cudaError_t epg_cuda_sum_finish(const epg_cuda_sum *s, cudaStream_t stream)
{
	epg_cuda_sum copy = *s;
	void *arguments[] = {&copy};
	unsigned height = 1;
	if (s->length == 0 || s->batch == 0)
		return cudaSuccess;
	while (height < (unsigned)SIDE && (int64_t)height < s->parts)
		height *= 2;
	dim3 grid((unsigned)((s->length + SIDE - 1) / SIDE), (unsigned)(s->batch < MAX_GRID ? s->batch : MAX_GRID));
	const void *kernel = s->wide ? (const void *)finish_kernel<double> : (const void *)finish_kernel<float>;
	return launch(kernel, grid, dim3(SIDE, height), arguments, s->overlap, stream);
}

/* ---- Conversions ---- */

typedef struct convert_args {
	int64_t rows, cols, batch;
	epg_cuda_matrix from, to;
	const void *scale;
	void *amax;
	bool pair, wide; /* complex; scale and amax are F64 */
} convert_args;

/* As load_any and store_any, also of 8 bits and integers. */
__device__ static inline double load_number(int type, const void *base, int64_t index)
{
	switch (type) {
	case EPG_E4M3: return __half2float(__half(__nv_cvt_fp8_to_halfraw(((const unsigned char *)base)[index], __NV_E4M3)));
	case EPG_E5M2: return __half2float(__half(__nv_cvt_fp8_to_halfraw(((const unsigned char *)base)[index], __NV_E5M2)));
	case EPG_S8: return ((const signed char *)base)[index];
	case EPG_S32: return ((const int *)base)[index];
	default: return load_any<double>(type, base, index);
	}
}

/* The nearest integer from low to high, 0 for NaN. */
__device__ static inline int to_integer(double x, double low, double high)
{
	return isnan(x) ? 0 : __double2int_rn(x < low ? low : x > high ? high : x);
}

__device__ static inline void store_number(int type, void *base, int64_t index, double x)
{
	switch (type) {
	case EPG_E4M3: ((unsigned char *)base)[index] = __nv_cvt_double_to_fp8(x, __NV_SATFINITE, __NV_E4M3); break;
	case EPG_E5M2: ((unsigned char *)base)[index] = __nv_cvt_double_to_fp8(x, __NV_SATFINITE, __NV_E5M2); break;
	case EPG_S8: ((signed char *)base)[index] = (signed char)to_integer(x, -128, 127); break;
	case EPG_S32: ((int *)base)[index] = to_integer(x, -2147483648.0, 2147483647.0); break;
	default: store_any(type, base, index, x);
	}
}

__device__ static inline int part_type(int type) { return type == EPG_C64 ? EPG_F32 : type == EPG_C128 ? EPG_F64 : type; }

/* Not negative, so the order of the numbers is the order of their bits. */
__device__ static inline void raise_amax(const convert_args &a, double x)
{
	if (a.wide)
		atomicMax((unsigned long long *)a.amax, (unsigned long long)__double_as_longlong(x));
	else
		atomicMax((unsigned *)a.amax, __float_as_uint((float)x));
}

/* A tile of 32×32 goes through shared memory, so that both sides are read and written along their contiguous direction. */
__global__ void __launch_bounds__(SIDE * 8) convert_kernel(const convert_args a)
{
	__shared__ double tile[2][SIDE][SIDE + 1];
	int64_t tiles_m = (a.rows + SIDE - 1) / SIDE, tiles_n = (a.cols + SIDE - 1) / SIDE, all = tiles_m * tiles_n * a.batch;
	int parts = a.pair ? 2 : 1, from_type = part_type(a.from.type), to_type = part_type(a.to.type);
	bool read_along_cols = a.from.row > a.from.col, write_along_cols = a.to.row > a.to.col;
	double scale = !a.scale ? 1 : a.wide ? *(const double *)a.scale : (double)*(const float *)a.scale, largest = 0;
	for (int64_t t = blockIdx.x; t < all; t += gridDim.x) {
		int64_t item = t / (tiles_m * tiles_n), i0 = t % tiles_m * SIDE, j0 = t / tiles_m % tiles_n * SIDE;
		for (int slow = threadIdx.y; slow < SIDE; slow += 8) {
			int r = read_along_cols ? slow : threadIdx.x, c = read_along_cols ? threadIdx.x : slow;
			int64_t i = i0 + r, j = j0 + c, at = item * a.from.stride + i * a.from.row + j * a.from.col;
			for (int part = 0; part < parts && i < a.rows && j < a.cols; part++) {
				double x = load_number(from_type, a.from.data, parts * at + part);
				tile[part][c][r] = scale * (part && a.from.conj ? -x : x);
			}
		}
		__syncthreads();
		for (int slow = threadIdx.y; slow < SIDE; slow += 8) {
			int r = write_along_cols ? slow : threadIdx.x, c = write_along_cols ? threadIdx.x : slow;
			int64_t i = i0 + r, j = j0 + c, at = item * a.to.stride + i * a.to.row + j * a.to.col;
			if (i >= a.rows || j >= a.cols)
				continue;
			for (int part = 0; part < parts; part++)
				store_number(to_type, a.to.data, parts * at + part, tile[part][c][r]);
			double size = a.pair ? hypot(tile[0][c][r], tile[1][c][r]) : fabs(tile[0][c][r]);
			largest = largest < size || isnan(size) ? size : largest;
		}
		__syncthreads();
	}
	if (a.amax)
		raise_amax(a, largest);
}

static bool is_complex(int type) { return type == EPG_C64 || type == EPG_C128; }

cudaError_t epg_cuda_convert_launch(int64_t rows, int64_t cols, int64_t batch, const epg_cuda_matrix *from, const epg_cuda_matrix *to, const void *scale,
	void *amax, cudaStream_t stream)
{
	convert_args a = {rows, cols, batch, *from, *to, scale, amax, is_complex(from->type), from->type == EPG_F64 || from->type == EPG_C128};
	void *arguments[] = {&a};
	int64_t tiles = (rows + SIDE - 1) / SIDE * ((cols + SIDE - 1) / SIDE) * batch;
	cudaError_t error = amax ? cudaMemsetAsync(amax, 0, a.wide ? 8 : 4, stream) : cudaSuccess;
	if (error || tiles == 0)
		return error;
	return launch((const void *)convert_kernel, dim3((unsigned)(tiles < MAX_GRID ? tiles : MAX_GRID)), dim3(SIDE, 8), arguments, false, stream);
}

/* ---- Masks ---- */

/* One thread a byte of the result: eight columns of one row. Bits behind the last column keep their values. */
__global__ void turn_kernel(int64_t rows, int64_t cols, int64_t batch, epg_cuda_matrix from, epg_cuda_matrix to)
{
	int64_t bytes = (cols + 7) / 8, all = rows * bytes * batch;
	for (int64_t e = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; e < all; e += (int64_t)gridDim.x * blockDim.x) {
		int64_t i = e % rows, j = e / rows % bytes * 8, item = e / rows / bytes;
		const unsigned char *bits = (const unsigned char *)from.data + item * from.stride / 8;
		unsigned char *byte = (unsigned char *)to.data + (item * to.stride + i * to.row + j) / 8;
		int count = cols - j < 8 ? (int)(cols - j) : 8;
		unsigned ours = 0xffu >> (8 - count), x = 0;
		for (int c = 0; c < count; c++)
			x |= (bits[(i + (j + c) * from.col) / 8] >> (i % 8) & 1u) << c;
		*byte = (unsigned char)(x | (*byte & ~ours));
	}
}

cudaError_t epg_cuda_mask_turn_launch(int64_t rows, int64_t cols, int64_t batch, const epg_cuda_matrix *from, const epg_cuda_matrix *to, cudaStream_t stream)
{
	epg_cuda_matrix x = *from, y = *to;
	void *arguments[] = {&rows, &cols, &batch, &x, &y};
	int64_t blocks = (rows * ((cols + 7) / 8) * batch + 255) / 256;
	if (blocks == 0)
		return cudaSuccess;
	return launch((const void *)turn_kernel, dim3((unsigned)(blocks < MAX_GRID ? blocks : MAX_GRID)), dim3(256), arguments, false, stream);
}
