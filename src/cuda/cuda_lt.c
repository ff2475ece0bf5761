/* SPDX-License-Identifier: Apache-2.0
 *
 * The vendor's functions, opened at run time, and its errors in words. Only the soname is asked for: a copy that the
 * application has already is taken, else LD_LIBRARY_PATH and the system's directories are searched; then the directory that
 * configure found. The library is never closed. */
#include "cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define SONAME "libcublasLt.so." TEXT(CUBLAS_VER_MAJOR)

epg_services epg_cuda_core;

static epg_cuda_lt functions;
static char reason[EPG_WHY_NBYTES];
static bool usable;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void *open_library(void)
{
	void *library = dlopen(SONAME, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		snprintf(reason, sizeof reason, "%.200s", dlerror());
#ifdef EPG_CUDA_LIBDIR
	if (!library)
		library = dlopen(EPG_CUDA_LIBDIR "/" SONAME, RTLD_NOW | RTLD_LOCAL);
#endif
	return library;
}

static void open_once(void)
{
	void *library = open_library();
	if (!library)
		return;
#define EPG_CUDA_LT_FIND(name) \
	functions.name = (__typeof__(&name))dlsym(library, #name); \
	if (!functions.name) { \
		snprintf(reason, sizeof reason, SONAME " has no " #name); \
		return; \
	}
	EPG_CUDA_LT_FUNCTIONS(EPG_CUDA_LT_FIND)
	usable = true;
}

const epg_cuda_lt *epg_cuda_lt_open(char *why, size_t why_nbytes)
{
	pthread_once(&once, open_once);
	if (!usable)
		snprintf(why, why_nbytes, "no usable cuBLASLt: %s", reason);
	return usable ? &functions : NULL;
}

epg_status epg_cuda_check(cudaError_t error, const char *call)
{
	if (error == cudaSuccess)
		return EPG_SUCCESS;
	cudaGetLastError(); /* an error that does not stick must not be found by the caller's next check */
	epg_status status = error == cudaErrorMemoryAllocation ? EPG_NO_MEMORY : EPG_DEVICE_ERROR;
	return epg_cuda_fail(status, "%s failed: %s (%d), %s", call, cudaGetErrorName(error), (int)error, cudaGetErrorString(error));
}

epg_status epg_cuda_check_lt(const epg_cuda_lt *lt, cublasStatus_t status, const char *call)
{
	if (status == CUBLAS_STATUS_SUCCESS)
		return EPG_SUCCESS;
	epg_status kind = status == CUBLAS_STATUS_ALLOC_FAILED ? EPG_NO_MEMORY : status == CUBLAS_STATUS_NOT_SUPPORTED ? EPG_UNSUPPORTED : EPG_DEVICE_ERROR;
	return epg_cuda_fail(kind, "%s failed: %s (%d)", call, lt->cublasLtGetStatusName(status), (int)status);
}
