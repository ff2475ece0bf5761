/* SPDX-License-Identifier: Apache-2.0
 *
 * See far.h. A far address is the host's plus one bit that makes it point nowhere, on x86-64 and arm64. Every pointer that comes in must lie
 * in a live block, as far as the operand reaches. Executions wait in one line, as on one stream, until something waits for them. */
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../src/backend.h"
#include "../../src/dtype.h"
#include "../../src/log.h"
#include "far.h"

enum { MAX_BLOCKS = 1024, MAX_PENDING = 64, NPOINTERS = 8 };

static const uintptr_t far_bit = (uintptr_t)1 << 54;

typedef struct far_plan {
	void *plan;
	epg_problem problem;
} far_plan;

typedef struct pending {
	const far_plan *plan;
	epg_call call;       /* pointers are still far */
} pending;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct { uintptr_t begin, end; const void *context; } blocks[MAX_BLOCKS];
static pending queue[MAX_PENDING];
static far_state state;
static epg_services core;

__attribute__((visibility("default"))) far_state *far_control(void);
__attribute__((visibility("default"))) const epg_backend *epigemm_backend(const epg_services *services);

far_state *far_control(void) { return &state; }

/* ---- Rules ---- */

static void complain(const char *format, ...)
{
	va_list list;
	if (state.complaint[0])
		return;
	va_start(list, format);
	vsnprintf(state.complaint, sizeof state.complaint, format, list);
	va_end(list);
	fprintf(stderr, "far device: %s\n", state.complaint);
}

/* The failure of our own copy of the CPU backend, told to the core. */
static epg_status told(epg_status status) { return status ? core.fail(status, "%s", epg_last_error()) : status; }

/* Counts a call that may fail, under the lock. */
static bool fails(bool alloc)
{
	bool now = ++state.calls == state.fail_at;
	if (now)
		state.failed_alloc = alloc;
	return now;
}

static epg_status refuse(const char *what) { return core.fail(EPG_DEVICE_ERROR, "the far device fails in %s", what); }

/* The host's pointer; NULL, and a complaint, unless all bytes lie in a live block. */
static void *near(const char *what, const void *far, size_t nbytes)
{
	uintptr_t begin = (uintptr_t)far;
	if (!far)
		return NULL;
	for (int i = 0; i < MAX_BLOCKS; i++)
		if (blocks[i].end && begin >= blocks[i].begin && begin + nbytes <= blocks[i].end)
			return (void *)(begin & ~far_bit);
	complain("%s is %p, whose %zu bytes are not the device's", what, far, nbytes);
	return NULL;
}

/* ---- The line of executions ---- */

static void extents_of(const epg_problem *p, size_t nbytes[NPOINTERS])
{
	const epg_view *views[] = {&p->a, &p->b, &p->c, &p->d, &p->aux};
	const epg_span *spans[] = {&p->bias, &p->bgrad};
	memset(nbytes, 0, NPOINTERS * sizeof *nbytes);
	for (int i = 0; i < 5; i++)
		nbytes[i] = i == 4 && !(p->epilog & EPG_AUX) ? 0 : (size_t)epg_type_nbytes(views[i]->type, epg_view_batch_extent(views[i], p->batch));
	for (int i = 0; i < 2; i++)
		if (spans[i]->length > 0)
			nbytes[5 + i] = (size_t)epg_type_nbytes(spans[i]->type, (p->batch - 1) * spans[i]->batch_stride + spans[i]->length);
}

static bool bring_near(const far_plan *plan, epg_operands *x)
{
	static const char *const names[NPOINTERS] = {"a", "b", "c", "d", "aux", "bias", "bgrad", "workspace"};
	void **const pointers[NPOINTERS] = {(void **)&x->a, (void **)&x->b, (void **)&x->c, &x->d, &x->aux, (void **)&x->bias, &x->bgrad, &x->workspace};
	size_t nbytes[NPOINTERS];
	extents_of(&plan->problem, nbytes);
	nbytes[NPOINTERS - 1] = x->workspace_nbytes;
	for (int i = 0; i < NPOINTERS; i++) {
		void *far = *pointers[i];
		*pointers[i] = near(names[i], far, nbytes[i]);
		if (far && !*pointers[i])
			return false;
	}
	return true;
}

static void read_scalar(int32_t type, const char *what, const void *far, double to[2])
{
	int32_t part = epg_type_complex(type) ? (type == EPG_C64 ? EPG_F32 : EPG_F64) : type;
	size_t nbytes = (size_t)epg_type_nbytes(type, 1);
	const char *from = far ? near(what, far, nbytes) : NULL;
	for (size_t i = 0; from && i < (epg_type_complex(type) ? 2 : 1); i++)
		to[i] = part == EPG_F32 ? (double)((const float *)from)[i] : ((const double *)from)[i];
}

static epg_status execute_now(const pending *one)
{
	epg_call call = one->call;
	const epg_problem *p = &one->plan->problem;
	if (!bring_near(one->plan, &call.x))
		return core.fail(EPG_INTERNAL, "%s", state.complaint);
	if (p->flags & EPG_SCALARS_ON_DEVICE) {
		read_scalar(p->scalar, "alpha", call.x.alpha, call.alpha);
		read_scalar(p->scalar, "beta", call.x.beta, call.beta);
	}
	return told(epg_cpu_backend.execute(one->plan->plan, &call));
}

/* Under the lock. */
static epg_status flush(void)
{
	epg_status status = EPG_SUCCESS;
	for (long i = 0; i < state.pending && !status; i++)
		status = execute_now(&queue[i]);
	state.pending = 0;
	return status;
}

static epg_status enqueue(const far_plan *plan, const epg_call *call)
{
	pending one = {plan, *call};
	epg_call look = *call;
	if (!bring_near(plan, &look.x)) /* at once, too, so that the fault is the caller's */
		return core.fail(EPG_INTERNAL, "%s", state.complaint);
	epg_status status = state.pending == MAX_PENDING ? flush() : EPG_SUCCESS;
	if (!status)
		queue[state.pending++] = one;
	return status;
}

static epg_status execute(const void *plan, const epg_call *call)
{
	pthread_mutex_lock(&lock);
	epg_status status = fails(false) ? refuse("execute") : enqueue(plan, call);
	pthread_mutex_unlock(&lock);
	return status;
}

static epg_status synchronize(void *context, void *stream)
{
	(void)context, (void)stream;
	pthread_mutex_lock(&lock);
	bool failed = fails(false);
	epg_status status = flush();
	if (failed)
		status = refuse("synchronize");
	pthread_mutex_unlock(&lock);
	return status;
}

static double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static epg_status time_plan(const void *plan, const epg_call *call, int32_t calls, double *seconds)
{
	pthread_mutex_lock(&lock);
	state.timed++;
	epg_status status = fails(false) ? refuse("time") : flush();
	double begin = now_s();
	for (int32_t i = 0; i < calls && !status; i++)
		status = enqueue(plan, call);
	if (!status)
		status = flush();
	*seconds = (now_s() - begin) / calls;
	pthread_mutex_unlock(&lock);
	return status;
}

/* ---- Memory ---- */

static epg_status add_block(const void *context, void *memory, size_t nbytes, void **far)
{
	for (int i = 0; i < MAX_BLOCKS; i++)
		if (!blocks[i].end) {
			blocks[i].begin = (uintptr_t)memory | far_bit;
			blocks[i].end = blocks[i].begin + nbytes;
			blocks[i].context = context;
			state.live++;
			*far = (void *)blocks[i].begin;
			return EPG_SUCCESS;
		}
	complain("more than %d blocks of memory", MAX_BLOCKS);
	return core.fail(EPG_NO_MEMORY, "%s", state.complaint);
}

static epg_status memory_alloc(void *context, size_t nbytes, void **far)
{
	void *memory = NULL;
	pthread_mutex_lock(&lock);
	epg_status status = fails(true) ? core.fail(EPG_NO_MEMORY, "the far device has no %zu bytes", nbytes) : told(epg_cpu_backend.alloc(context, nbytes, &memory));
	if (!status)
		status = add_block(context, memory, nbytes, far);
	pthread_mutex_unlock(&lock);
	return status;
}

/* An execution that is still to come must not lose its memory. */
static bool awaited(uintptr_t begin, uintptr_t end)
{
	for (long i = 0; i < state.pending; i++) {
		const epg_operands *x = &queue[i].call.x;
		const void *const used[] = {x->a, x->b, x->c, x->d, x->aux, x->bias, x->bgrad, x->workspace};
		for (size_t j = 0; j < sizeof used / sizeof *used; j++)
			if ((uintptr_t)used[j] >= begin && (uintptr_t)used[j] < end)
				return true;
	}
	return false;
}

static void memory_release(void *context, void *far)
{
	if (!far)
		return;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < MAX_BLOCKS; i++)
		if (blocks[i].end && blocks[i].begin == (uintptr_t)far) {
			if (awaited(blocks[i].begin, blocks[i].end))
				complain("memory %p is given back before the execution that uses it", far);
			flush();
			epg_cpu_backend.release(context, (void *)(blocks[i].begin & ~far_bit));
			blocks[i].begin = blocks[i].end = 0;
			state.live--;
			far = NULL;
			break;
		}
	if (far)
		complain("memory %p is given back, but is none", far);
	pthread_mutex_unlock(&lock);
}

static epg_status alloc_ordered(void *context, size_t nbytes, void *stream, void **far)
{
	(void)stream;
	return memory_alloc(context, nbytes, far);
}

static void release_ordered(void *context, void *far, void *stream)
{
	(void)stream;
	pthread_mutex_lock(&lock);
	flush();
	pthread_mutex_unlock(&lock);
	memory_release(context, far);
}

static epg_status copy(const char *what, void *to, const void *from, size_t nbytes)
{
	epg_status status = fails(false) ? refuse(what) : flush();
	if (!status && (!to || !from))
		status = core.fail(EPG_INTERNAL, "%s", state.complaint);
	if (!status)
		memcpy(to, from, nbytes);
	return status;
}

static epg_status upload(void *context, void *to, const void *from_host, size_t nbytes, void *stream)
{
	(void)context, (void)stream;
	pthread_mutex_lock(&lock);
	epg_status status = copy("upload", near("to", to, nbytes), from_host, nbytes);
	pthread_mutex_unlock(&lock);
	return status;
}

static epg_status download(void *context, void *to_host, const void *from, size_t nbytes, void *stream)
{
	(void)context, (void)stream;
	pthread_mutex_lock(&lock);
	epg_status status = copy("download", to_host, near("from", from, nbytes), nbytes);
	pthread_mutex_unlock(&lock);
	return status;
}

/* ---- Plans, and what the CPU backend does as it is ---- */

static bool probe(char *text, size_t text_nbytes)
{
	if (!epg_cpu_backend.probe(text, text_nbytes))
		return false;
	snprintf(text, text_nbytes, "the tests' far device");
	return true;
}

static epg_status context_create(const epg_backend_options *options, void **context) { return told(epg_cpu_backend.context_create(options, context)); }

static void context_destroy(void *context)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < MAX_BLOCKS; i++)
		if (blocks[i].end && blocks[i].context == context)
			complain("a context ends before %zu bytes of its memory at %p are given back", (size_t)(blocks[i].end - blocks[i].begin), (void *)blocks[i].begin);
	pthread_mutex_unlock(&lock);
	epg_cpu_backend.context_destroy(context);
}

static void context_info(const void *context, epg_context_info *info)
{
	epg_cpu_backend.context_info(context, info);
	snprintf(info->device, sizeof info->device, "far");
}

static epg_status plan_create(void *context, const epg_problem *problem, const epg_variant *variant, bool own_workspace, void **out)
{
	far_plan *plan = calloc(1, sizeof *plan);
	if (!plan)
		return core.fail(EPG_NO_MEMORY, "no memory for a far plan");
	plan->problem = *problem;
	pthread_mutex_lock(&lock);
	epg_status status = fails(false) ? refuse("plan_create") : told(epg_cpu_backend.plan_create(context, problem, variant, own_workspace, &plan->plan));
	pthread_mutex_unlock(&lock);
	if (status)
		free(plan);
	else
		*out = plan;
	return status;
}

static void plan_destroy(void *state_of_plan)
{
	far_plan *plan = state_of_plan;
	pthread_mutex_lock(&lock);
	flush();
	pthread_mutex_unlock(&lock);
	epg_cpu_backend.plan_destroy(plan->plan);
	free(plan);
}

static void plan_info(const void *plan, epg_plan_info_backend *info) { epg_cpu_backend.plan_info(((const far_plan *)plan)->plan, info); }
static void plan_explain(const void *plan, char *text, size_t text_nbytes) { epg_cpu_backend.plan_explain(((const far_plan *)plan)->plan, text, text_nbytes); }

static epg_status convert(void *context, int64_t batch, const epg_view *from_view, const void *from, const epg_view *to_view, void *to, const void *scale,
	void *amax, void *stream)
{
	pthread_mutex_lock(&lock);
	epg_status status = flush();
	const void *source = near("from", from, (size_t)epg_type_nbytes(from_view->type, epg_view_batch_extent(from_view, batch)));
	void *target = near("to", to, (size_t)epg_type_nbytes(to_view->type, epg_view_batch_extent(to_view, batch)));
	if (!status)
		status = told(epg_cpu_backend.convert(context, batch, from_view, source, to_view, target, near("scale", scale, 4), near("amax", amax, 4), stream));
	pthread_mutex_unlock(&lock);
	return status;
}

const epg_backend *epigemm_backend(const epg_services *services)
{
	static epg_backend table;
	if (services->abi != EPG_BACKEND_ABI || services->nbytes < sizeof core)
		return NULL;
	core = *services;
	table = epg_cpu_backend; /* stamp, lowerings, supports, variants, accepts */
	table.name = "cuda";
	table.host_memory = false;
	table.probe = probe;
	table.context_create = context_create;
	table.context_destroy = context_destroy;
	table.context_info = context_info;
	table.alloc = memory_alloc;
	table.release = memory_release;
	table.alloc_ordered = alloc_ordered;
	table.release_ordered = release_ordered;
	table.upload = upload;
	table.download = download;
	table.synchronize = synchronize;
	table.plan_create = plan_create;
	table.plan_destroy = plan_destroy;
	table.plan_info = plan_info;
	table.plan_explain = plan_explain;
	table.execute = execute;
	table.time = time_plan;
	table.convert = convert;
	return &table;
}
