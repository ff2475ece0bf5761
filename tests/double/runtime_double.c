/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA runtime of double.h. Device memory is host memory with guards, filled with NaN when it is taken. */
#include <cuda_runtime_api.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "double.h"

enum { GUARD_NBYTES = 256, GUARD = 0x6b };

static double_state state = { .devices = 2, .driver_version = CUDART_VERSION };

double_state *epg_double(void) { return &state; }

int epg_double_count(double_call call)
{
	state.count[call]++;
	return state.fail == call && state.fail_at > 0 && --state.fail_at == 0;
}

void epg_double_complain(const char *format, ...)
{
	va_list list;
	if (state.complaint[0])
		return;
	va_start(list, format);
	vsnprintf(state.complaint, sizeof state.complaint, format, list);
	va_end(list);
}

static cudaError_t counted(double_call call, cudaError_t error) { return epg_double_count(call) ? error : cudaSuccess; }

/* ---- Devices ---- */

cudaError_t cudaDriverGetVersion(int *version)
{
	*version = state.driver_version;
	return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
	*count = state.device_count_error ? 0 : state.devices;
	return state.device_count_error ? (cudaError_t)state.device_count_error : counted(DOUBLE_QUERY, cudaErrorUnknown);
}

cudaError_t cudaGetDevice(int *device)
{
	*device = state.current_device;
	return counted(DOUBLE_DEVICE, cudaErrorUnknown);
}

cudaError_t cudaSetDevice(int device)
{
	if (device < 0 || device >= state.devices)
		return cudaErrorInvalidDevice;
	state.current_device = device;
	return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
	memset(properties, 0, sizeof *properties);
	snprintf(properties->name, sizeof properties->name, "double %d", device);
	return counted(DOUBLE_QUERY, cudaErrorUnknown);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
	(void)device;
	*value = attribute == cudaDevAttrComputeCapabilityMajor ? 9 : attribute == cudaDevAttrMultiProcessorCount ? 4 : attribute == cudaDevAttrL2CacheSize ? 4096
		: attribute == cudaDevAttrComputeCapabilityMinor ? 0 : 1000000;
	return counted(DOUBLE_QUERY, cudaErrorUnknown);
}

/* ---- Errors ---- */

const char *cudaGetErrorName(cudaError_t error) { return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaErrorOfTheDouble"; }

const char *cudaGetErrorString(cudaError_t error)
{
	(void)error;
	return "made by the double";
}

cudaError_t cudaGetLastError(void) { return cudaSuccess; }

/* ---- Memory ---- */

typedef struct block {
	size_t nbytes;
	unsigned char guard[GUARD_NBYTES - sizeof(size_t)];
} block;

static cudaError_t take(void **ptr, size_t nbytes)
{
	size_t total = GUARD_NBYTES + (nbytes + 255) / 256 * 256 + GUARD_NBYTES;
	block *b = aligned_alloc(256, total);
	if (!b)
		return cudaErrorMemoryAllocation;
	memset(b, GUARD, total);
	b->nbytes = nbytes;
	*ptr = b + 1;
	memset(*ptr, 0xff, nbytes);
	state.live_allocations++;
	return cudaSuccess;
}

static int damaged(const unsigned char *from, size_t nbytes)
{
	size_t i = 0;
	while (i < nbytes && from[i] == GUARD)
		i++;
	return i < nbytes;
}

static void give(void *ptr)
{
	if (!ptr)
		return;
	block *b = (block *)ptr - 1;
	if (damaged(b->guard, sizeof b->guard) || damaged((unsigned char *)ptr + b->nbytes, GUARD_NBYTES))
		state.damaged_guards++;
	state.live_allocations--;
	free(b);
}

cudaError_t cudaMalloc(void **ptr, size_t nbytes)
{
	if (state.capturing)
		epg_double_complain("cudaMalloc while a stream is being captured");
	return epg_double_count(DOUBLE_MALLOC) ? cudaErrorMemoryAllocation : take(ptr, nbytes);
}

cudaError_t cudaMallocAsync(void **ptr, size_t nbytes, cudaStream_t stream)
{
	(void)stream;
	return epg_double_count(DOUBLE_MALLOC_ASYNC) ? cudaErrorMemoryAllocation : take(ptr, nbytes);
}

cudaError_t cudaFree(void *ptr)
{
	epg_double_count(DOUBLE_FREE);
	give(ptr);
	return cudaSuccess;
}

cudaError_t cudaFreeAsync(void *ptr, cudaStream_t stream)
{
	(void)stream;
	epg_double_count(DOUBLE_FREE_ASYNC);
	give(ptr);
	return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t nbytes, enum cudaMemcpyKind kind)
{
	(void)kind;
	if (epg_double_count(DOUBLE_MEMCPY))
		return cudaErrorUnknown;
	memcpy(to, from, nbytes);
	return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t nbytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	(void)stream;
	return cudaMemcpy(to, from, nbytes, kind);
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t nbytes, cudaStream_t stream)
{
	(void)stream;
	if (epg_double_count(DOUBLE_MEMSET))
		return cudaErrorUnknown;
	memset(to, value, nbytes);
	return cudaSuccess;
}

/* ---- Streams and events ---- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
	(void)flags;
	if (epg_double_count(DOUBLE_STREAM))
		return cudaErrorUnknown;
	*stream = malloc(1);
	state.live_streams++;
	return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	free(stream);
	state.live_streams--;
	return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	(void)stream;
	return counted(DOUBLE_SYNCHRONIZE, cudaErrorUnknown);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
	(void)stream;
	*status = cudaStreamCaptureStatusNone;
	state.count[DOUBLE_QUERY]++;
	return state.capturing ? cudaErrorStreamCaptureImplicit : cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	static enum cudaStreamCaptureMode now = cudaStreamCaptureModeGlobal;
	enum cudaStreamCaptureMode before = now;
	now = *mode;
	*mode = before;
	return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	if (epg_double_count(DOUBLE_EVENT))
		return cudaErrorUnknown;
	*event = calloc(1, sizeof(struct timespec));
	state.live_events++;
	return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	free(event);
	state.live_events--;
	return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	(void)stream;
	clock_gettime(CLOCK_MONOTONIC, (struct timespec *)event);
	return counted(DOUBLE_EVENT, cudaErrorUnknown);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	(void)event;
	return counted(DOUBLE_SYNCHRONIZE, cudaErrorUnknown);
}

/* As if the device took a millisecond where the loops take a microsecond: then trains are short. */
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end)
{
	const struct timespec *a = (const struct timespec *)begin, *b = (const struct timespec *)end;
	*ms = (float)((double)(b->tv_sec - a->tv_sec) * 1e6 + (double)(b->tv_nsec - a->tv_nsec) * 1e-3);
	return cudaSuccess;
}
