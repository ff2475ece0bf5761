/* SPDX-License-Identifier: Apache-2.0
 *
 * The pass over D. A thread owns eight rows that follow each other (16 bytes of a 16-bit type, one byte of a mask) and walks
 * over columns, several in flight; the lanes of a warp take neighbouring rows, and where D has few rows, several columns. The
 * columns are walked from the last to the first, because the last ones that the product wrote are still in the cache.
 *
 * There are two kinds of kernels. The fast ones know their types and take eight rows in 16-byte accesses. The general ones read
 * types, strides and odd rows as they come; the fast ones call them for the rows behind the last eight.
 *
 * Sums are deterministic: who adds what is decided by the launch's shape alone. Sums per row are kept in registers over a
 * thread's columns, then added over the lanes and warps of a block, one line of partial sums for each block of columns; sums per
 * column are added over the lanes, one line for each block of rows. Summed is what D holds. */
#define EPG_FN __device__ static inline
#define EPG_EXP2_F32(p, by) exp2f((p) + (by))
#define EPG_QUOTIENT_F32(x, y) __fdividef(x, y)
#include "../pass_math.h"

#include "cuda_device.cuh"

enum { ROWS = 8, WARPS = 8, THREADS = 32 * WARPS, MAX_GRID_Y = 65535, MAX_GRID_Z = 65535 };
enum { ACT_NONE, ACT_RELU, ACT_GELU };

/* Blocks that a multiprocessor holds at once, and bytes that a thread waits for at once: of 2, 3, 4 and 64, 96, 128 the pair that was
 * fastest on an H200 (doc/perf). A launch is as many blocks as the device holds, so that none waits for another. */
enum { BLOCKS = 2, FLIGHT_NBYTES = 64 };

/* Columns in flight, for so many bytes a column. */
template <int NBYTES> struct in_flight { enum { columns = FLIGHT_NBYTES > NBYTES ? FLIGHT_NBYTES / NBYTES : 1 }; };

/* The pass as the kernels need it. lanes: of a warp beside each other along the rows, a power of two. */
typedef struct pass_args {
	epg_cuda_pass p;
	int lanes;
} pass_args;

__device__ static inline float relu(float z) { return epg_relu_f32(z); }
__device__ static inline double relu(double z) { return epg_relu_f64(z); }
__device__ static inline float gelu(float z) { return epg_gelu_f32(z); }
__device__ static inline double gelu(double z) { return epg_gelu_f64(z); }
__device__ static inline float gelu_slope(float z) { return epg_dgelu_f32(z); }
__device__ static inline double gelu_slope(double z) { return epg_dgelu_f64(z); }

/* The number of element (i,j) of a batch item; of its bit in a mask. */
__device__ static inline int64_t place(const epg_cuda_matrix &x, int64_t i, int64_t j, int64_t item)
{
	return item * x.stride + i * x.row + j * x.col;
}

template <typename A> __device__ static inline A beta_of(const epg_cuda_pass &p)
{
	if (!p.beta_device)
		return (A)p.beta[0];
	return sizeof(A) == 8 ? (A) * (const double *)p.beta_device : (A) * (const float *)p.beta_device;
}

/* ---- One column of eight rows, in general ---- */

__device__ static inline int mask_bit(const epg_cuda_matrix &mask, int64_t bit)
{
	return ((const unsigned char *)mask.data)[bit / 8] >> (bit % 8) & 1;
}

/* Bits behind the last row keep their values. */
__device__ static inline void store_mask(const epg_cuda_matrix &mask, int64_t bit, int count, unsigned bits)
{
	unsigned char *byte = (unsigned char *)mask.data + bit / 8;
	unsigned ours = 0xffu >> (8 - count);
	*byte = (unsigned char)(count == 8 ? bits : (bits & ours) | (*byte & ~ours));
}

/* z of one element. */
template <typename A> __device__ static inline A affine(const epg_cuda_pass &p, int64_t i, int64_t j, int64_t item)
{
	A z = p.z.data ? load_any<A>(p.z.type, p.z.data, place(p.z, i, j, item)) : (A)0;
	if (p.c.data)
		z += beta_of<A>(p) * load_any<A>(p.c.type, p.c.data, place(p.c, i, j, item));
	if (p.bias.data)
		z += load_any<A>(p.bias.type, p.bias.data, item * p.bias.stride + (p.axis == EPG_PER_ROW ? i : j));
	return z;
}

/* From z to D and aux; summed, zeros before, gets the values that D holds now. */
template <typename A> __device__ __noinline__ void general_column(const epg_cuda_pass &p, int64_t i, int64_t j, int count, int64_t item, A summed[ROWS])
{
	bool is_relu = (p.epilog & EPG_ACT_MASK) == EPG_ACT_RELU, is_gelu = (p.epilog & EPG_ACT_MASK) == EPG_ACT_GELU, grad = p.epilog & EPG_GRAD;
	unsigned bits = 0;
	if (count == 0)
		return; /* summed is zeros already */
	for (int r = 0; r < ROWS; r++) {
		summed[r] = 0;
		if (r >= count)
			continue;
		int64_t aux = place(p.aux, i + r, j, item), d = place(p.d, i + r, j, item);
		A z = affine<A>(p, i + r, j, item);
		bits |= (unsigned)(z >= 0) << r;
		if (grad && is_relu)
			z = mask_bit(p.aux, aux) ? z : (A)0;
		else if (grad)
			z *= gelu_slope(load_any<A>(p.aux.type, p.aux.data, aux));
		else if (is_gelu && p.aux.data)
			store_any(p.aux.type, p.aux.data, aux, z);
		if (!grad && is_relu)
			z = relu(z);
		else if (!grad && is_gelu)
			z = gelu(z);
		if (p.d.data) {
			store_any(p.d.type, p.d.data, d, z);
			z = load_any<A>(p.d.type, p.d.data, d);
		}
		summed[r] = z;
	}
	if (!grad && is_relu && p.aux.data)
		store_mask(p.aux, place(p.aux, i, j, item), count, bits);
}

/* ---- Sums ---- */

template <typename A> __device__ static inline A add_eight(const A x[ROWS])
{
	return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
}

/* One column's sum over the rows of a block: over the lanes beside each other. */
template <typename A> __device__ static inline void finish_column_sum(const pass_args &a, A sum, int64_t j, int64_t item)
{
	for (int step = 1; step < a.lanes; step *= 2)
		sum += __shfl_xor_sync(0xffffffffu, sum, step);
	if (j >= 0 && threadIdx.x % a.lanes == 0)
		((A *)a.p.partial)[item * a.p.partial_stride + (int64_t)blockIdx.x * a.p.length + j] = sum;
}

/* One line of partial sums for the block: first over the lanes that share the rows, then over the warps in order. */
template <typename A> __device__ static inline void finish_row_sums(const pass_args &a, A sum[ROWS], int64_t block_row, int64_t item)
{
	__shared__ A all[WARPS][32 * ROWS];
	int lane = threadIdx.x % 32, warp = threadIdx.x / 32, height = a.lanes * ROWS;
#pragma unroll
	for (int r = 0; r < ROWS; r++) {
		for (int step = a.lanes; step < 32; step *= 2)
			sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], step);
		if (lane < a.lanes)
			all[warp][lane * ROWS + r] = sum[r];
	}
	__syncthreads();
	A *line = (A *)a.p.partial + item * a.p.partial_stride + (int64_t)blockIdx.y * a.p.length;
	for (int t = threadIdx.x; t < height; t += THREADS) {
		A total = 0;
		for (int w = 0; w < WARPS; w++)
			total += all[w][t];
		if (block_row + t < a.p.m)
			line[block_row + t] = total;
	}
	__syncthreads();
}

/* ---- The general kernel ---- */

template <typename A> __global__ void __launch_bounds__(THREADS) general_kernel(const __grid_constant__ pass_args a)
{
	wait_for_the_kernel_before();
	int across = 32 / a.lanes, own = threadIdx.x % 32 / a.lanes;
	int64_t block_row = (int64_t)blockIdx.x * a.lanes * ROWS, i = block_row + threadIdx.x % a.lanes * ROWS, left = a.p.m - i;
	int count = left >= ROWS ? ROWS : left > 0 ? (int)left : 0;
	for (int64_t item = blockIdx.z; item < a.p.batch; item += gridDim.z) {
		A sum[ROWS] = {};
		/* Every lane of a warp makes the same number of steps, because sums shuffle. */
		for (int64_t begin = ((int64_t)blockIdx.y * WARPS + threadIdx.x / 32) * across; begin < a.p.n; begin += (int64_t)gridDim.y * WARPS * across) {
			int64_t j = a.p.n - 1 - (begin + own);
			A column[ROWS] = {};
			if (j >= 0)
				general_column<A>(a.p, i, j, count, item, column);
			for (int r = 0; r < ROWS; r++)
				sum[r] += column[r];
			if (a.p.sums == EPG_CUDA_SUM_COLUMNS)
				finish_column_sum<A>(a, add_eight(column), j, item);
		}
		if (a.p.sums == EPG_CUDA_SUM_ROWS)
			finish_row_sums<A>(a, sum, block_row, item);
	}
}

/* ---- The fast kernels ---- */

/* Where a thread is: its eight rows in the column at hand, and what lies between that and the thread's next column, in bytes. */
typedef struct cursor {
	const char *z; /* C, if there is no product */
	char *d, *aux;
	int64_t z_step, d_step, aux_step;
} cursor;

__device__ static inline int64_t nbytes_of(const epg_cuda_matrix &x, int size, int64_t elements) { return x.type == EPG_BIT ? elements / 8 : elements * size; }

/* At column j; the next one is 'step' columns to the left. */
template <typename TZ, typename TD> __device__ static inline cursor cursor_at(const epg_cuda_pass &p, int64_t i, int64_t j, int64_t item, int64_t step)
{
	const epg_cuda_matrix &z = p.z.data ? p.z : p.c;
	cursor t;
	t.z = (const char *)z.data + place(z, i, j, item) * (int64_t)sizeof(TZ);
	t.d = (char *)p.d.data + place(p.d, i, j, item) * (int64_t)sizeof(TD);
	t.aux = (char *)p.aux.data + nbytes_of(p.aux, sizeof(TD), place(p.aux, i, j, item));
	t.z_step = step * z.col * (int64_t)sizeof(TZ);
	t.d_step = step * p.d.col * (int64_t)sizeof(TD);
	t.aux_step = nbytes_of(p.aux, sizeof(TD), step * p.aux.col);
	return t;
}

/* What a column of eight rows needs, loaded before anything is computed. */
template <typename TZ, typename TD> struct column_data {
	eight<TZ> z;
	eight<TD> aux;
	unsigned bits;
};

template <typename TZ, typename TD, int ACT, bool GRAD> __device__ static inline void load_column(const cursor &t, int u, column_data<TZ, TD> &x)
{
	x.z = load8((const TZ *)(t.z - u * t.z_step));
	if (GRAD && ACT == ACT_RELU)
		x.bits = *(const unsigned char *)(t.aux - u * t.aux_step);
	if (GRAD && ACT == ACT_GELU)
		x.aux = load8((const TD *)(t.aux - u * t.aux_step));
}

/* Zeros where a bit is 0. Types of 16 bits are masked two at a time. */
template <typename T> __device__ static inline void select(eight<T> &x, unsigned bits)
{
	if constexpr (sizeof(T) == 2) {
		unsigned *words = (unsigned *)&x;
#pragma unroll
		for (int w = 0; w < 4; w++)
			words[w] &= ((bits >> (2 * w) & 1) * 0xffffu) | ((bits >> (2 * w + 1) & 1) * 0xffff0000u);
	} else {
#pragma unroll
		for (int r = 0; r < ROWS; r++)
			x.at[r] = bits >> r & 1 ? x.at[r] : T(0.0f);
	}
}

/* D of a backward column. With relu it is z itself, or 0. */
template <typename T, int ACT, typename A> __device__ static inline eight<T> backward(const column_data<T, T> &x)
{
	eight<T> y = x.z;
	if (ACT == ACT_RELU)
		select(y, x.bits);
	else
#pragma unroll
		for (int r = 0; r < ROWS; r++)
			y.at[r] = narrow<T>(widen(x.z.at[r]) * gelu_slope((A)widen(x.aux.at[r])));
	return y;
}

/* What is added to z, in registers: the factor is beta where z is C. */
template <typename A> struct addends {
	A factor, bias[ROWS];
};

/* D of a forward column, and aux if there is one. */
template <typename TZ, typename TD, int ACT, typename A>
__device__ static inline eight<TD> forward(const cursor &t, int u, bool aux, const addends<A> &more, A column_bias, const column_data<TZ, TD> &x)
{
	A z[ROWS];
	eight<TD> y;
	unsigned bits = 0;
#pragma unroll
	for (int r = 0; r < ROWS; r++) {
		z[r] = more.factor * widen(x.z.at[r]) + (more.bias[r] + column_bias);
		y.at[r] = narrow<TD>(z[r]);
		bits |= (unsigned)(z[r] >= 0) << r;
	}
	if (ACT == ACT_RELU && aux)
		*(unsigned char *)(t.aux - u * t.aux_step) = (unsigned char)bits;
	if (ACT == ACT_GELU && aux)
		store8((TD *)(t.aux - u * t.aux_step), y);
	if (ACT != ACT_NONE)
#pragma unroll
		for (int r = 0; r < ROWS; r++)
			y.at[r] = narrow<TD>(ACT == ACT_RELU ? relu(z[r]) : gelu(z[r]));
	return y;
}

template <bool GRAD, typename A> __device__ static inline addends<A> find_addends(const epg_cuda_pass &p, int64_t i, int64_t item)
{
	addends<A> more;
	more.factor = p.z.data ? (A)1 : beta_of<A>(p);
	if (!GRAD)
#pragma unroll
		for (int r = 0; r < ROWS; r++)
			more.bias[r] = p.bias.data && p.axis == EPG_PER_ROW ? load_any<A>(p.bias.type, p.bias.data, item * p.bias.stride + i + r) : (A)0;
	return more;
}

/* One column from x to D and the sums. */
template <typename TZ, typename TD, int ACT, bool GRAD, int SUMS, typename A>
__device__ static inline void do_column(const pass_args &a, const cursor &t, int u, const addends<A> &more, int64_t j, int64_t item, const column_data<TZ, TD> &x, A sum[ROWS])
{
	eight<TD> y;
	if constexpr (GRAD)
		y = backward<TD, ACT, A>(x);
	else
		y = forward<TZ, TD, ACT, A>(t, u, a.p.aux.data, more, a.p.bias.data && a.p.axis == EPG_PER_COLUMN ? load_any<A>(a.p.bias.type, a.p.bias.data, item * a.p.bias.stride + j) : (A)0, x);
	if (a.p.d.data)
		store8((TD *)(t.d - u * t.d_step), y);
	if (SUMS)
#pragma unroll
		for (int r = 0; r < ROWS; r++)
			sum[r] = (SUMS == EPG_CUDA_SUM_ROWS ? sum[r] : (A)0) + widen(y.at[r]);
}

/* A thread that has all its eight rows walks over its columns of one batch item. */
template <typename TZ, typename TD, int ACT, bool GRAD, int SUMS, typename A>
__device__ static inline void whole_rows(const pass_args &a, int64_t i, int64_t item, A sum[ROWS])
{
	enum { FLIGHT = in_flight<(int)sizeof(eight<TZ>) * (GRAD && ACT == ACT_GELU ? 2 : 1)>::columns };
	int across = 32 / a.lanes, own = threadIdx.x % 32 / a.lanes, step = (int)gridDim.y * WARPS * across, first = ((int)blockIdx.y * WARPS + (int)threadIdx.x / 32) * across;
	int64_t j = a.p.n - 1 - first - own;
	const addends<A> more = find_addends<GRAD, A>(a.p, i, item);
	cursor t = cursor_at<TZ, TD>(a.p, i, j, item, step);
	/* Sums over columns shuffle: there every lane of a warp makes the same number of steps. */
	for (int64_t left = a.p.n - first; left > 0; left -= (int64_t)step * FLIGHT, j -= (int64_t)step * FLIGHT) {
		column_data<TZ, TD> x[FLIGHT];
#pragma unroll
		for (int u = 0; u < FLIGHT; u++)
			if (j - (int64_t)u * step >= 0)
				load_column<TZ, TD, ACT, GRAD>(t, u, x[u]);
#pragma unroll
		for (int u = 0; u < FLIGHT; u++) {
			int64_t at = j - (int64_t)u * step;
			if (at >= 0)
				do_column<TZ, TD, ACT, GRAD, SUMS, A>(a, t, u, more, at, item, x[u], sum);
			if (SUMS == EPG_CUDA_SUM_COLUMNS)
				finish_column_sum<A>(a, add_eight(sum), at, item);
		}
		t.z -= FLIGHT * t.z_step;
		t.d -= FLIGHT * t.d_step;
		t.aux -= FLIGHT * t.aux_step;
	}
}

/* The same for a thread behind the last eight rows. */
template <typename A> __device__ __noinline__ void last_rows(const pass_args &a, int64_t i, int count, int64_t item, A sum[ROWS])
{
	int64_t across = 32 / a.lanes, step = gridDim.y * WARPS * across, begin = (blockIdx.y * WARPS + threadIdx.x / 32) * across;
	for (int r = 0; r < ROWS; r++)
		sum[r] = 0;
	for (int64_t j = a.p.n - 1 - begin - threadIdx.x % 32 / a.lanes; j >= 0; j -= step) {
		A summed[ROWS] = {};
		general_column<A>(a.p, i, j, count, item, summed);
		for (int r = 0; r < ROWS; r++)
			sum[r] += summed[r];
	}
}

template <typename TZ, typename TD, int ACT, bool GRAD, int SUMS>
__global__ void __launch_bounds__(THREADS, BLOCKS) fast_kernel(const __grid_constant__ pass_args a)
{
	typedef typename compute_of<TD>::type A;
	wait_for_the_kernel_before();
	int64_t block_row = (int64_t)blockIdx.x * a.lanes * ROWS, i = block_row + threadIdx.x % a.lanes * ROWS;
	for (int64_t item = blockIdx.z; item < a.p.batch; item += gridDim.z) {
		A sum[ROWS] = {};
		if (i + ROWS <= a.p.m)
			whole_rows<TZ, TD, ACT, GRAD, SUMS, A>(a, i, item, sum);
		else if (SUMS != EPG_CUDA_SUM_COLUMNS && i < a.p.m) {
			A few[ROWS];
			last_rows<A>(a, i, (int)(a.p.m - i), item, few);
#pragma unroll
			for (int r = 0; r < ROWS; r++)
				sum[r] = few[r];
		}
		if (SUMS == EPG_CUDA_SUM_ROWS)
			finish_row_sums<A>(a, sum, block_row, item);
	}
}

/* z + beta·C + bias in complex numbers, one thread an element. */
template <typename A> __global__ void complex_kernel(const __grid_constant__ pass_args a)
{
	const epg_cuda_pass &p = a.p;
	wait_for_the_kernel_before();
	A beta[2] = {(A)p.beta[0], (A)p.beta[1]};
	for (int part = 0; part < 2 && p.beta_device; part++)
		beta[part] = ((const A *)p.beta_device)[part];
	int64_t all = p.m * p.n * p.batch;
	for (int64_t e = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; e < all; e += (int64_t)gridDim.x * blockDim.x) {
		int64_t i = e % p.m, j = e / p.m % p.n, item = e / p.m / p.n;
		A z[2] = {0, 0};
		for (int part = 0; part < 2; part++) {
			if (p.z.data)
				z[part] = ((const A *)p.z.data)[2 * (item * p.z.stride + i + j * p.z.col) + part];
			if (p.bias.data)
				z[part] += ((const A *)p.bias.data)[2 * (item * p.bias.stride + (p.axis == EPG_PER_ROW ? i : j)) + part];
		}
		if (p.c.data) {
			const A *c = (const A *)p.c.data + 2 * (item * p.c.stride + i * p.c.row + j * p.c.col);
			z[0] += beta[0] * c[0] - beta[1] * c[1];
			z[1] += beta[0] * c[1] + beta[1] * c[0];
		}
		A *d = (A *)p.d.data + 2 * (item * p.d.stride + i + j * p.d.col);
		d[0] = z[0];
		d[1] = z[1];
	}
}

/* ---- Launching ---- */

typedef void (*pass_function)(const pass_args);

/* Kernels for a pair of types: forward none, relu, gelu; backward relu, gelu, each with the three kinds of sums; sums alone. */
enum { FORWARD = 0, BACKWARD = 3, SUM_ALONE = 9, NFUNCTIONS = 11 };

#define FORWARD_KERNELS(TZ, TD) fast_kernel<TZ, TD, ACT_NONE, false, 0>, fast_kernel<TZ, TD, ACT_RELU, false, 0>, fast_kernel<TZ, TD, ACT_GELU, false, 0>
#define ALL_KERNELS(TZ, TD) \
	FORWARD_KERNELS(TZ, TD), \
	fast_kernel<TZ, TD, ACT_RELU, true, 0>, fast_kernel<TZ, TD, ACT_RELU, true, 1>, fast_kernel<TZ, TD, ACT_RELU, true, 2>, \
	fast_kernel<TZ, TD, ACT_GELU, true, 0>, fast_kernel<TZ, TD, ACT_GELU, true, 1>, fast_kernel<TZ, TD, ACT_GELU, true, 2>, \
	fast_kernel<TZ, TD, ACT_NONE, false, 1>, fast_kernel<TZ, TD, ACT_NONE, false, 2>

typedef struct type_row {
	int z, d;
	pass_function function[NFUNCTIONS];
} type_row;

/* NULL where the general kernel must do. */
static const type_row type_rows[] = {
	{EPG_BF16, EPG_BF16, {ALL_KERNELS(bf16, bf16)}},    {EPG_F16, EPG_F16, {ALL_KERNELS(f16, f16)}},
	{EPG_F32, EPG_F32, {ALL_KERNELS(float, float)}},    {EPG_F64, EPG_F64, {ALL_KERNELS(double, double)}},
	{EPG_F32, EPG_BF16, {FORWARD_KERNELS(float, bf16)}}, {EPG_F32, EPG_F16, {FORWARD_KERNELS(float, f16)}},
};

static int function_of(const epg_cuda_pass *p)
{
	int act = p->epilog & EPG_ACT_MASK;
	if (p->epilog & EPG_GRAD)
		return BACKWARD + (act == EPG_ACT_GELU ? 3 : 0) + p->sums;
	return p->sums ? SUM_ALONE + p->sums - 1 : FORWARD + (act == EPG_ACT_RELU ? 1 : act == EPG_ACT_GELU ? 2 : 0);
}

static int lanes_of(int64_t m)
{
	int lanes = 1;
	while (lanes < 32 && lanes * ROWS < m)
		lanes *= 2;
	return lanes;
}

static int64_t row_blocks(int64_t m) { return (m + lanes_of(m) * ROWS - 1) / (lanes_of(m) * ROWS); }

/* Blocks along the columns: what the device holds at once, no more than there are columns for. */
static int64_t column_blocks(int64_t m, int64_t n, int64_t batch, int32_t multiprocessors)
{
	int64_t across = WARPS * (32 / lanes_of(m)), most = (n + across - 1) / across, wanted = BLOCKS * (int64_t)multiprocessors / (row_blocks(m) * (batch ? batch : 1));
	if (most > MAX_GRID_Y)
		most = MAX_GRID_Y;
	return wanted < 1 ? 1 : wanted < most ? wanted : most;
}

int64_t epg_cuda_pass_parts(int32_t sums, int64_t m, int64_t n, int64_t batch, int32_t multiprocessors)
{
	return sums == EPG_CUDA_SUM_COLUMNS ? row_blocks(m) : sums ? column_blocks(m, n, batch, multiprocessors) : 0;
}

/* May 16 bytes at a time be taken from every column of it, if it is there? */
static bool whole(const epg_cuda_matrix *x)
{
	int nbytes = x->type == EPG_F64 ? 8 : x->type == EPG_F32 ? 4 : 2;
	if (!x->data || x->type == EPG_BIT)
		return !x->data || x->row == 1;
	return x->row == 1 && (uintptr_t)x->data % 16 == 0 && x->col * nbytes % 16 == 0 && x->stride * nbytes % 16 == 0;
}

/* The fast kernel for a pass, or NULL for the general one. Sums per column need every lane at every step, so there rows come in eights. */
static pass_function find_fast(const epg_cuda_pass *p)
{
	const epg_cuda_matrix *z = p->z.data ? &p->z : &p->c;
	int d = p->d.data ? p->d.type : z->type;
	bool one_type = (!p->c.data || p->c.type == d) && (!(p->epilog & EPG_AUX) || !p->aux.data || p->aux.type == EPG_BIT || p->aux.type == d);
	/* z and C together, and a derivative without a product, are for the general kernel. */
	if (!z->data || (p->z.data && p->c.data) || (p->epilog & EPG_GRAD && !p->z.data) || !one_type || !whole(&p->z) || !whole(&p->c) || !whole(&p->d) || !whole(&p->aux))
		return NULL;
	if (p->sums == EPG_CUDA_SUM_COLUMNS && p->m % (lanes_of(p->m) * ROWS))
		return NULL;
	for (size_t r = 0; r < sizeof type_rows / sizeof *type_rows; r++)
		if (type_rows[r].z == z->type && type_rows[r].d == d)
			return type_rows[r].function[function_of(p)];
	return NULL;
}

static const void *kernel_for(const epg_cuda_pass *p)
{
	pass_function fast = find_fast(p);
	bool wide = p->z.data ? p->z.type == EPG_F64 : p->d.type == EPG_F64;
	if (fast)
		return (const void *)fast;
	return wide ? (const void *)general_kernel<double> : (const void *)general_kernel<float>;
}

static cudaError_t launch_complex(pass_args *a, cudaStream_t stream)
{
	void *arguments[] = {a};
	int64_t blocks = (a->p.m * a->p.n * a->p.batch + 255) / 256, most = 16 * (int64_t)a->p.multiprocessors;
	const void *kernel = a->p.d.type == EPG_C64 ? (const void *)complex_kernel<float> : (const void *)complex_kernel<double>;
	return launch(kernel, dim3((unsigned)(blocks < most ? blocks : most)), dim3(256), arguments, a->p.overlap, stream);
}

cudaError_t epg_cuda_pass_launch(const epg_cuda_pass *p, cudaStream_t stream)
{
	pass_args a = {*p, lanes_of(p->m)};
	if (p->m == 0 || p->n == 0 || p->batch == 0)
		return cudaSuccess;
	if (p->d.data && (p->d.type == EPG_C64 || p->d.type == EPG_C128))
		return launch_complex(&a, stream);
	dim3 grid((unsigned)row_blocks(p->m), (unsigned)column_blocks(p->m, p->n, p->batch, p->multiprocessors),
		(unsigned)(p->batch < MAX_GRID_Z ? p->batch : (int64_t)MAX_GRID_Z));
	void *arguments[] = {&a};
	return launch(kernel_for(p), grid, dim3(THREADS), arguments, p->overlap, stream);
}
