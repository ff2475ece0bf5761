/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernels share: element types, loads and stores, and launching. */
#ifndef EPG_CUDA_DEVICE_CUH
#define EPG_CUDA_DEVICE_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "epigemm.h"
#include "cuda_pass.h"

typedef __nv_bfloat16 bf16;
typedef __half f16;

/* What an element is computed in. */
template <typename T> struct compute_of { typedef float type; };
template <> struct compute_of<double> { typedef double type; };

__device__ static inline float widen(bf16 x) { return __bfloat162float(x); }
__device__ static inline float widen(f16 x) { return __half2float(x); }
__device__ static inline float widen(float x) { return x; }
__device__ static inline double widen(double x) { return x; }

template <typename T> __device__ static inline T narrow(double x);
template <> __device__ inline bf16 narrow<bf16>(double x) { return __double2bfloat16(x); }
template <> __device__ inline f16 narrow<f16>(double x) { return __double2half(x); }
template <> __device__ inline float narrow<float>(double x) { return (float)x; }
template <> __device__ inline double narrow<double>(double x) { return x; }
template <typename T> __device__ static inline T narrow(float x);
template <> __device__ inline bf16 narrow<bf16>(float x) { return __float2bfloat16(x); }
template <> __device__ inline f16 narrow<f16>(float x) { return __float2half(x); }
template <> __device__ inline float narrow<float>(float x) { return x; }
template <> __device__ inline double narrow<double>(float x) { return x; }

/* The element 'index' of an array of any real type. */
template <typename A> __device__ static inline A load_any(int type, const void *base, int64_t index)
{
	switch (type) {
	case EPG_F16: return widen(((const f16 *)base)[index]);
	case EPG_BF16: return widen(((const bf16 *)base)[index]);
	case EPG_F32: return ((const float *)base)[index];
	default: return (A)((const double *)base)[index];
	}
}

__device__ static inline void store_any(int type, void *base, int64_t index, double x)
{
	switch (type) {
	case EPG_F16: ((f16 *)base)[index] = narrow<f16>(x); break;
	case EPG_BF16: ((bf16 *)base)[index] = narrow<bf16>(x); break;
	case EPG_F32: ((float *)base)[index] = (float)x; break;
	default: ((double *)base)[index] = x; break;
	}
}

/* Eight elements that follow each other, on a 16-byte boundary. */
template <typename T> struct __align__(16) eight { T at[8]; };

template <typename T> __device__ static inline eight<T> load8(const T *from)
{
	eight<T> x;
	uint4 *to = (uint4 *)&x;
#pragma unroll
	for (int i = 0; i < (int)(sizeof(x) / sizeof(uint4)); i++)
		to[i] = ((const uint4 *)from)[i];
	return x;
}

template <typename T> __device__ static inline void store8(T *to, const eight<T> &x)
{
	const uint4 *from = (const uint4 *)&x;
#pragma unroll
	for (int i = 0; i < (int)(sizeof(x) / sizeof(uint4)); i++)
		((uint4 *)to)[i] = from[i];
}

/* A kernel launched with 'overlap' begins while the one before it ends; what it reads is there from here on. */
__device__ static inline void wait_for_the_kernel_before(void)
{
#if __CUDA_ARCH__ >= 900
	cudaGridDependencySynchronize();
	cudaTriggerProgrammaticLaunchCompletion();
#endif
}

static inline cudaError_t launch(const void *kernel, dim3 grid, dim3 block, void **arguments, bool overlap, cudaStream_t stream)
{
	cudaLaunchAttribute attribute = {};
	cudaLaunchConfig_t config = {};
	attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
	attribute.val.programmaticStreamSerializationAllowed = 1;
	config.gridDim = grid;
	config.blockDim = block;
	config.stream = stream;
	config.attrs = &attribute;
	config.numAttrs = overlap ? 1 : 0;
	return cudaLaunchKernelExC(&config, kernel, arguments);
}

#endif
