/* SPDX-License-Identifier: Apache-2.0
 *
 * The CUDA backend's table of functions, and the plug-in's one symbol: whether there is a device, contexts, memory, copies, times. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../dtype.h"
#include "cuda.h"

/* What timing needs, made when first asked for; one measurement at a time. */
typedef struct timer {
	pthread_mutex_t lock;
	cudaStream_t stream;
	cudaEvent_t begin, end;
	void *flush;
	size_t flush_nbytes;
} timer;

typedef struct owned_context {
	epg_cuda_context context;
	timer timer;
} owned_context;

/* ---- Is there a device? ---- */

static const char *visible(void)
{
	const char *list = getenv("CUDA_VISIBLE_DEVICES");
	return list && !*list ? ", CUDA_VISIBLE_DEVICES is set and empty" : list ? ", CUDA_VISIBLE_DEVICES is set" : "";
}

static bool no_device(cudaError_t error, int driver, int count, char *text, size_t text_nbytes)
{
	if (driver == 0)
		snprintf(text, text_nbytes, "no usable NVIDIA driver: libcuda.so.1 is not there or answers nothing");
	else if (error == cudaErrorStubLibrary)
		snprintf(text, text_nbytes, "no usable NVIDIA driver: the libcuda.so.1 that was found is the toolkit's stub");
	else if (error == cudaErrorInsufficientDriver)
		snprintf(text, text_nbytes, "the NVIDIA driver is too old: it does CUDA %d.%d, but this plug-in was built with %d.%d", driver / 1000, driver % 1000 / 10,
			CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
	else if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0))
		snprintf(text, text_nbytes, "no CUDA device%s", visible());
	else
		snprintf(text, text_nbytes, "no usable CUDA device%s: %s (%d), %s", visible(), cudaGetErrorName(error), (int)error, cudaGetErrorString(error));
	cudaGetLastError();
	return false;
}

static bool find_device(char *text, size_t text_nbytes)
{
	int driver = 0, count = 0;
	cudaDriverGetVersion(&driver);
	cudaError_t error = cudaGetDeviceCount(&count);
	if (error != cudaSuccess || count == 0)
		return no_device(error, driver, count, text, text_nbytes);
	snprintf(text, text_nbytes, "%d CUDA device%s, driver for CUDA %d.%d", count, count == 1 ? "" : "s", driver / 1000, driver % 1000 / 10);
	return true;
}

static bool probe(char *text, size_t text_nbytes)
{
	size_t used;
	if (!find_device(text, text_nbytes))
		return false;
	const epg_cuda_lt *lt = epg_cuda_lt_open(text, text_nbytes);
	if (!lt || !find_device(text, text_nbytes))
		return false;
	used = strlen(text);
	snprintf(text + used, text_nbytes - used, ", cuBLASLt %zu", lt->cublasLtGetVersion());
	return true;
}

/* ---- The current device ---- */

epg_status epg_cuda_enter(const epg_cuda_context *context, int *previous)
{
	epg_status status = epg_cuda_check(cudaGetDevice(previous), "cudaGetDevice");
	if (!status && *previous != context->device)
		status = epg_cuda_check(cudaSetDevice(context->device), "cudaSetDevice");
	return status;
}

void epg_cuda_leave(const epg_cuda_context *context, int previous)
{
	if (previous != context->device)
		cudaSetDevice(previous);
}

/* ---- Contexts ---- */

static epg_status read_device(epg_cuda_context *c)
{
	int major = 0, minor = 0, l2 = 0, bus_bits = 0, memory_khz = 0, clock_khz = 0;
	const struct { enum cudaDeviceAttr attribute; int *to; } rows[] = {
		{cudaDevAttrMultiProcessorCount, &c->multiprocessors}, {cudaDevAttrComputeCapabilityMajor, &major}, {cudaDevAttrComputeCapabilityMinor, &minor},
		{cudaDevAttrL2CacheSize, &l2}, {cudaDevAttrGlobalMemoryBusWidth, &bus_bits}, {cudaDevAttrMemoryClockRate, &memory_khz}, {cudaDevAttrClockRate, &clock_khz},
	};
	struct cudaDeviceProp properties;
	epg_status status = epg_cuda_check(cudaGetDeviceProperties(&properties, c->device), "cudaGetDeviceProperties");
	for (size_t i = 0; i < sizeof rows / sizeof *rows && !status; i++)
		status = epg_cuda_check(cudaDeviceGetAttribute(rows[i].to, rows[i].attribute, c->device), "cudaDeviceGetAttribute");
	if (status)
		return status;
	snprintf(c->name, sizeof c->name, "%.63s", properties.name);
	c->capability = 10 * major + minor;
	c->l2_nbytes = l2;
	c->clock_hz = clock_khz > 0 ? 1e3 * clock_khz : 1e9;
	c->bytes_per_s = memory_khz > 0 && bus_bits > 0 ? 2e3 * memory_khz * bus_bits / 8 : 5e11; /* two transfers a clock */
	return EPG_SUCCESS;
}

static epg_status check_device(int32_t device)
{
	int count = 0;
	epg_status status = epg_cuda_check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
	if (!status && (device < 0 || device >= count))
		status = epg_cuda_fail(EPG_INVALID, "options.device is %d, but must be from 0 to %d", device, count - 1);
	return status;
}

static epg_status open_context(epg_cuda_context *c)
{
	int previous;
	epg_status status = epg_cuda_enter(c, &previous);
	if (status)
		return status;
	status = read_device(c);
	if (!status)
		status = epg_cuda_check_lt(c->lt, c->lt->cublasLtCreate(&c->handle), "cublasLtCreate");
	epg_cuda_leave(c, previous);
	return status;
}

static epg_status context_create(const epg_backend_options *options, void **out)
{
	char why[EPG_WHY_NBYTES];
	const epg_cuda_lt *lt = epg_cuda_lt_open(why, sizeof why);
	if (!lt)
		return epg_cuda_fail(EPG_NO_BACKEND, "backend cuda is not there: %s", why);
	if (options->threads < 0)
		return epg_cuda_fail(EPG_INVALID, "options.threads is %d, but must be 0 or more (it has no effect on CUDA)", options->threads);
	epg_status status = check_device(options->device);
	if (status)
		return status;
	owned_context *owned = calloc(1, sizeof *owned);
	if (!owned)
		return epg_cuda_fail(EPG_NO_MEMORY, "no memory for a CUDA context (%zu bytes)", sizeof *owned);
	owned->context = (epg_cuda_context){.lt = lt, .device = options->device, .allocator = options->allocator, .log = options->log};
	status = open_context(&owned->context);
	if (status) {
		free(owned);
		return status;
	}
	pthread_mutex_init(&owned->timer.lock, NULL);
	*out = owned;
	return EPG_SUCCESS;
}

static void close_timer(const epg_cuda_context *context, timer *t)
{
	if (t->begin)
		cudaEventDestroy(t->begin);
	if (t->end)
		cudaEventDestroy(t->end);
	epg_cuda_release(context, t->flush, false, NULL);
	if (t->stream)
		cudaStreamDestroy(t->stream);
	*t = (timer){.lock = t->lock};
}

static void context_destroy(void *state)
{
	owned_context *owned = state;
	int previous;
	bool entered = epg_cuda_enter(&owned->context, &previous) == EPG_SUCCESS;
	close_timer(&owned->context, &owned->timer);
	pthread_mutex_destroy(&owned->timer.lock);
	owned->context.lt->cublasLtDestroy(owned->context.handle);
	if (entered)
		epg_cuda_leave(&owned->context, previous);
	free(owned);
}

static void context_info(const void *state, epg_context_info *info)
{
	const epg_cuda_context *c = state;
	snprintf(info->device, sizeof info->device, "%s", c->name);
	snprintf(info->library, sizeof info->library, "cuBLASLt %zu", c->lt->cublasLtGetVersion());
	snprintf(info->isa, sizeof info->isa, "sm_%d", c->capability);
}

/* One word. Environment variables that change the vendor's numbers are part of it. */
static void stamp(const void *state, char *text, size_t text_nbytes)
{
	static const char *const variables[] = {"NVIDIA_TF32_OVERRIDE", "CUBLAS_EMULATE_SINGLE_PRECISION", "CUBLAS_EMULATE_DOUBLE_PRECISION", "CUBLAS_EMULATION_STRATEGY"};
	const epg_cuda_context *c = state;
	int used = snprintf(text, text_nbytes, "epigemm-%s,cuda,%zu,%s,sm_%d,%d", EPG_VERSION, c->lt->cublasLtGetVersion(), c->name, c->capability, c->multiprocessors);
	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
		const char *value = getenv(variables[i]);
		if (value && used > 0 && (size_t)used < text_nbytes)
			used += snprintf(text + used, text_nbytes - (size_t)used, ",%s=%.16s", variables[i], value);
	}
	for (char *at = text; *at; at++)
		if (*at == ' ' || *at == '|')
			*at = '-';
}

/* ---- Memory ---- */

/* A stream of this device that is being captured would be spoilt by an allocation. */
static epg_status check_capture(void)
{
	enum cudaStreamCaptureStatus status;
	if (cudaStreamIsCapturing(cudaStreamLegacy, &status) != cudaErrorStreamCaptureImplicit)
		return EPG_SUCCESS;
	cudaGetLastError();
	return epg_cuda_fail(EPG_INVALID, "a stream is being captured into a graph: plans and memory must be made before, or after");
}

static epg_status vendor_alloc(size_t nbytes, bool ordered, void *stream, void **ptr)
{
	if (ordered)
		return epg_cuda_check(cudaMallocAsync(ptr, nbytes, stream), "cudaMallocAsync");
	enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	epg_status status = check_capture();
	if (status)
		return status;
	cudaThreadExchangeStreamCaptureMode(&mode);
	status = epg_cuda_check(cudaMalloc(ptr, nbytes), "cudaMalloc");
	cudaThreadExchangeStreamCaptureMode(&mode);
	return status;
}

epg_status epg_cuda_alloc(const epg_cuda_context *context, size_t nbytes, bool ordered, void *stream, void **ptr)
{
	const epg_allocator *allocator = context->allocator;
	int previous;
	epg_status status = epg_cuda_enter(context, &previous);
	if (status)
		return status;
	*ptr = NULL;
	if (allocator->alloc)
		*ptr = allocator->alloc(allocator->user, nbytes, CUDA_ALIGNMENT, EPG_MEMORY_DEVICE, stream);
	else
		status = vendor_alloc(nbytes, ordered, stream, ptr);
	epg_cuda_leave(context, previous);
	if (allocator->alloc && !*ptr)
		status = epg_cuda_fail(EPG_NO_MEMORY, "the allocator has no %zu bytes of device memory", nbytes);
	else if (status == EPG_NO_MEMORY)
		status = epg_cuda_fail(EPG_NO_MEMORY, "no %zu bytes of device memory: cudaMalloc failed with cudaErrorMemoryAllocation (2)", nbytes);
	return status;
}

void epg_cuda_release(const epg_cuda_context *context, void *ptr, bool ordered, void *stream)
{
	const epg_allocator *allocator = context->allocator;
	int previous;
	if (!ptr)
		return;
	bool entered = epg_cuda_enter(context, &previous) == EPG_SUCCESS; /* the runtime frees memory of any device all the same */
	if (allocator->alloc)
		allocator->free(allocator->user, ptr, EPG_MEMORY_DEVICE, stream);
	else if (ordered)
		cudaFreeAsync(ptr, stream);
	else
		cudaFree(ptr);
	if (entered)
		epg_cuda_leave(context, previous);
}

static epg_status memory_alloc(void *context, size_t nbytes, void **ptr) { return epg_cuda_alloc(context, nbytes, false, NULL, ptr); }
static void memory_release(void *context, void *ptr) { epg_cuda_release(context, ptr, false, NULL); }
static epg_status memory_alloc_ordered(void *context, size_t nbytes, void *stream, void **ptr) { return epg_cuda_alloc(context, nbytes, true, stream, ptr); }
static void memory_release_ordered(void *context, void *ptr, void *stream) { epg_cuda_release(context, ptr, true, stream); }

/* The host buffer may be used again on return, so the copy is waited for. */
static epg_status copy(const epg_cuda_context *context, void *to, const void *from, size_t nbytes, enum cudaMemcpyKind kind, void *stream)
{
	int previous;
	epg_status status = epg_cuda_enter(context, &previous);
	if (status)
		return status;
	status = epg_cuda_check(cudaMemcpyAsync(to, from, nbytes, kind, stream), "cudaMemcpyAsync");
	if (!status)
		status = epg_cuda_check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
	epg_cuda_leave(context, previous);
	return status;
}

static epg_status upload(void *context, void *to, const void *from_host, size_t nbytes, void *stream)
{
	return copy(context, to, from_host, nbytes, cudaMemcpyHostToDevice, stream);
}

static epg_status download(void *context, void *to_host, const void *from, size_t nbytes, void *stream)
{
	return copy(context, to_host, from, nbytes, cudaMemcpyDeviceToHost, stream);
}

static epg_status synchronize(void *context, void *stream)
{
	int previous;
	epg_status status = epg_cuda_enter(context, &previous);
	if (status)
		return status;
	status = epg_cuda_check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
	epg_cuda_leave(context, previous);
	return status;
}

/* ---- Times ---- */

static epg_status open_timer(const epg_cuda_context *context, timer *t)
{
	if (t->flush)
		return EPG_SUCCESS;
	t->flush_nbytes = (size_t)(context->l2_nbytes > 0 ? 4 * context->l2_nbytes : 256 << 20);
	epg_status status = epg_cuda_check(cudaStreamCreateWithFlags(&t->stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
	if (!status)
		status = epg_cuda_check(cudaEventCreate(&t->begin), "cudaEventCreate");
	if (!status)
		status = epg_cuda_check(cudaEventCreate(&t->end), "cudaEventCreate");
	if (!status)
		status = epg_cuda_alloc(context, t->flush_nbytes, false, NULL, &t->flush);
	if (status)
		close_timer(context, t);
	return status;
}

/* While the device clears the cache, the host puts the calls behind it, so that their kernels have no gaps between them. */
static epg_status time_calls(const timer *t, const void *plan, const epg_call *call, int32_t calls, double *seconds)
{
	float ms = 0;
	epg_status status = EPG_SUCCESS;
	for (int32_t i = 0; i <= calls / 8 && !status; i++)
		status = epg_cuda_check(cudaMemsetAsync(t->flush, 0, t->flush_nbytes, t->stream), "cudaMemsetAsync");
	if (!status)
		status = epg_cuda_check(cudaEventRecord(t->begin, t->stream), "cudaEventRecord");
	for (int32_t i = 0; i < calls && !status; i++)
		status = epg_cuda_execute(plan, call);
	if (!status)
		status = epg_cuda_check(cudaEventRecord(t->end, t->stream), "cudaEventRecord");
	if (!status)
		status = epg_cuda_check(cudaEventSynchronize(t->end), "cudaEventSynchronize");
	if (!status)
		status = epg_cuda_check(cudaEventElapsedTime(&ms, t->begin, t->end), "cudaEventElapsedTime");
	*seconds = 1e-3 * ms / calls;
	return status;
}

epg_status epg_cuda_time(const void *plan, const epg_call *call, int32_t calls, double *seconds)
{
	owned_context *owned = (owned_context *)epg_cuda_context_of(plan);
	epg_call copy = *call;
	int previous;
	epg_status status = epg_cuda_enter(&owned->context, &previous);
	if (status)
		return status;
	pthread_mutex_lock(&owned->timer.lock);
	status = open_timer(&owned->context, &owned->timer);
	if (!status)
		copy.stream = owned->timer.stream;
	if (!status)
		status = time_calls(&owned->timer, plan, &copy, calls, seconds);
	pthread_mutex_unlock(&owned->timer.lock);
	epg_cuda_leave(&owned->context, previous);
	return status;
}

/* ---- Conversions ---- */

static epg_cuda_matrix matrix_of(const epg_view *v, const void *data)
{
	return (epg_cuda_matrix){(void *)data, v->type, v->conj, v->trans ? v->ld : 1, v->trans ? 1 : v->ld, v->batch_stride};
}

static epg_status convert(void *state, int64_t batch, const epg_view *from_view, const void *from, const epg_view *to_view, void *to, const void *scale,
	void *amax, void *stream)
{
	int previous;
	epg_cuda_matrix source = matrix_of(from_view, from), target = matrix_of(to_view, to);
	char why[EPG_WHY_NBYTES];
	if (!epg_type_converts(from_view->type, to_view->type, why, sizeof why))
		return epg_cuda_fail(EPG_UNSUPPORTED, "%s", why);
	epg_status status = epg_cuda_enter(state, &previous);
	if (status)
		return status;
	status = epg_cuda_check(epg_cuda_convert_launch(to_view->rows, to_view->cols, batch, &source, &target, scale, amax, stream), "the launch of a conversion");
	epg_cuda_leave(state, previous);
	return status;
}

/* ---- The table ---- */

static const epg_backend backend = {
	.abi = EPG_BACKEND_ABI,
	.nbytes = sizeof(epg_backend),
	.name = "cuda",
	.host_memory = false,
	.lowerings = epg_cuda_lowerings,
	.nlowerings = CUDA_NLOWERINGS,
	.probe = probe,
	.context_create = context_create,
	.context_destroy = context_destroy,
	.context_info = context_info,
	.stamp = stamp,
	.alloc = memory_alloc,
	.release = memory_release,
	.alloc_ordered = memory_alloc_ordered,
	.release_ordered = memory_release_ordered,
	.upload = upload,
	.download = download,
	.synchronize = synchronize,
	.supports = epg_cuda_supports,
	.variants = epg_cuda_variants,
	.accepts = epg_cuda_accepts,
	.plan_create = epg_cuda_plan_create,
	.plan_destroy = epg_cuda_plan_destroy,
	.plan_info = epg_cuda_plan_info,
	.plan_explain = epg_cuda_plan_explain,
	.execute = epg_cuda_execute,
	.time = epg_cuda_time,
	.convert = convert,
};

__attribute__((visibility("default"))) const epg_backend *epigemm_backend(const epg_services *services);

const epg_backend *epigemm_backend(const epg_services *services)
{
	if (services->abi != EPG_BACKEND_ABI || services->nbytes < sizeof epg_cuda_core)
		return NULL;
	epg_cuda_core = *services;
	return &backend;
}
