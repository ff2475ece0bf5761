/* SPDX-License-Identifier: Apache-2.0
 *
 * Entry points that are not a module's own: contexts, memory, execute, convert. Each checks its arguments, then calls down. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "plan.h"
#include "registry.h"

/* ---- Contexts ---- */

epg_status epg_context_options_init(epg_context_options *options, size_t size)
{
	const epg_context_options defaults = {.size = size};
	if (!options)
		return epg_fail(EPG_INVALID, "options is NULL");
	if (size < offsetof(epg_context_options, threads))
		return epg_fail(EPG_INVALID, "size is %zu, but must be sizeof(epg_context_options)", size);
	memset(options, 0, size);
	memcpy(options, &defaults, size < sizeof defaults ? size : sizeof defaults);
	return EPG_SUCCESS;
}

static epg_status read_context_options(const epg_context_options *from, epg_context_options *o)
{
	epg_context_options_init(o, sizeof *o);
	epg_status status = from ? epg_struct_read("context_options", o, sizeof *o, from, offsetof(epg_context_options, threads)) : EPG_SUCCESS;
	if (status)
		return status;
	if (!o->allocator.alloc != !o->allocator.free)
		return epg_fail(EPG_INVALID, "options.allocator.%s is NULL, but both functions must be given, or none", o->allocator.alloc ? "free" : "alloc");
	if (o->log_level < EPG_LOG_ERROR || o->log_level > EPG_LOG_DEBUG)
		return epg_fail(EPG_INVALID, "options.log_level is %d, but must be from 0 to %d", o->log_level, EPG_LOG_DEBUG);
	if (o->reserved != 0)
		return epg_fail(EPG_INVALID, "options.reserved is %d, but must be 0", o->reserved);
	return EPG_SUCCESS;
}

/* "auto" is EPIGEMM_BACKEND if set, else cuda if there, else cpu. */
static epg_status find_backend(const char *name, const epg_log *log, const epg_backend **backend)
{
	const char *forced = getenv("EPIGEMM_BACKEND");
	char why[512];
	bool known;
	if (!name)
		name = "cpu";
	bool any = strcmp(name, "auto") == 0;
	if (any && forced && *forced && strcmp(forced, "auto")) {
		name = forced;
		any = false;
	}
	*backend = epg_registry_find(any ? "cuda" : name, &known, why, sizeof why);
	if (any && !*backend) {
		epg_log_write(log, EPG_LOG_INFO, "auto: the CPU, because the cuda backend is not there: %s", why);
		*backend = epg_registry_find("cpu", &known, why, sizeof why);
	}
	if (*backend)
		return EPG_SUCCESS;
	return known ? epg_fail(EPG_NO_BACKEND, "backend %s is not there: %s", name, why)
		: epg_fail(EPG_INVALID, "options.backend is '%s', but must be cpu, cuda or auto", name);
}

epg_status epg_context_create(const epg_context_options *options, epg_context **out)
{
	epg_context_options o;
	const epg_backend *backend;
	if (!out)
		return epg_fail(EPG_INVALID, "context is NULL");
	epg_status status = read_context_options(options, &o);
	if (status)
		return status;
	epg_log log = {o.log, o.log_user, o.log_level};
	status = find_backend(o.backend, &log, &backend);
	if (status)
		return status;
	epg_context *context = calloc(1, sizeof *context);
	if (!context)
		return epg_fail(EPG_NO_MEMORY, "no memory for a context (%zu bytes)", sizeof *context);
	context->backend = backend;
	context->allocator = o.allocator;
	context->log = log;
	atomic_init(&context->references, 1);
	epg_backend_options backend_options = {o.device, o.threads, &context->allocator, &context->log};
	status = backend->context_create(&backend_options, &context->state);
	if (status) {
		free(context);
		return status;
	}
	pthread_mutex_init(&context->wisdom_lock, NULL);
	*out = context;
	return EPG_SUCCESS;
}

void epg_context_release(epg_context *context)
{
	if (atomic_fetch_sub(&context->references, 1) != 1)
		return;
	context->backend->context_destroy(context->state);
	epg_wisdom_free(&context->wisdom);
	pthread_mutex_destroy(&context->wisdom_lock);
	free(context);
}

void epg_context_destroy(epg_context *context)
{
	if (context)
		epg_context_release(context);
}

epg_status epg_backend_status(const char *name, char *text, size_t text_nbytes, size_t *needed_nbytes)
{
	char why[512];
	bool known;
	if (!name)
		return epg_fail(EPG_INVALID, "backend is NULL");
	const epg_backend *backend = epg_registry_find(name, &known, why, sizeof why);
	if (!known)
		return epg_fail(EPG_INVALID, "%s", why);
	epg_status status = epg_text_out(why, text, text_nbytes, needed_nbytes);
	return status || backend ? status : epg_fail(EPG_NO_BACKEND, "backend %s is not there: %s", name, why);
}

/* ---- Infos: structs of any size that the library fills ---- */

static epg_status info_out(const void *from, size_t from_nbytes, void *to, size_t size)
{
	if (!to)
		return epg_fail(EPG_INVALID, "info is NULL");
	if (size < sizeof(size_t))
		return epg_fail(EPG_INVALID, "size is %zu, but must be the size of the struct", size);
	size_t filled = size < from_nbytes ? size : from_nbytes;
	memset(to, 0, size);
	memcpy(to, from, filled);
	memcpy(to, &filled, sizeof filled);
	return EPG_SUCCESS;
}

epg_status epg_context_get_info(const epg_context *context, epg_context_info *info, size_t size)
{
	epg_context_info all = {0};
	if (!context)
		return epg_fail(EPG_INVALID, "context is NULL");
	snprintf(all.backend, sizeof all.backend, "%s", context->backend->name);
	context->backend->context_info(context->state, &all);
	return info_out(&all, sizeof all, info, size);
}

epg_status epg_plan_get_info(const epg_plan *plan, epg_plan_info *info, size_t size)
{
	if (!plan)
		return epg_fail(EPG_INVALID, "plan is NULL");
	epg_plan_info all = {
		.workspace_nbytes = plan->info.workspace_nbytes, .workspace_alignment = plan->info.workspace_alignment, .launches = plan->info.launches,
		.candidates = plan->nvariants, .candidate = plan->chosen, .scalar_type = plan->problem.scalar,
	};
	snprintf(all.lowering, sizeof all.lowering, "%s", plan->context->backend->lowerings[plan->variants[plan->chosen].lowering].name);
	return info_out(&all, sizeof all, info, size);
}

/* ---- Memory ---- */

epg_status epg_malloc(epg_context *context, size_t nbytes, void **ptr)
{
	if (!context || !ptr)
		return epg_fail(EPG_INVALID, "%s is NULL", context ? "ptr" : "context");
	if (nbytes == 0) {
		*ptr = NULL;
		return EPG_SUCCESS;
	}
	void *got = NULL;
	epg_status status = context->backend->alloc(context->state, nbytes, &got);
	if (!status)
		*ptr = got;
	return status;
}

void epg_free(epg_context *context, void *ptr)
{
	if (context && ptr)
		context->backend->release(context->state, ptr);
}

static epg_status check_copy(const epg_context *context, const void *to, const void *from, size_t nbytes)
{
	if (!context)
		return epg_fail(EPG_INVALID, "context is NULL");
	if (nbytes > 0 && (!to || !from))
		return epg_fail(EPG_INVALID, "%s is NULL although nbytes is %zu", to ? "from" : "to", nbytes);
	return EPG_SUCCESS;
}

epg_status epg_upload(epg_context *context, void *to, const void *from_host, size_t nbytes, void *stream)
{
	epg_status status = check_copy(context, to, from_host, nbytes);
	return status || nbytes == 0 ? status : context->backend->upload(context->state, to, from_host, nbytes, stream);
}

epg_status epg_download(epg_context *context, void *to_host, const void *from, size_t nbytes, void *stream)
{
	epg_status status = check_copy(context, to_host, from, nbytes);
	return status || nbytes == 0 ? status : context->backend->download(context->state, to_host, from, nbytes, stream);
}

epg_status epg_synchronize(epg_context *context, void *stream)
{
	return context ? context->backend->synchronize(context->state, stream) : epg_fail(EPG_INVALID, "context is NULL");
}

/* ---- Execute ---- */

epg_status epg_operands_init(epg_operands *operands, size_t size)
{
	if (!operands)
		return epg_fail(EPG_INVALID, "operands is NULL");
	if (size < offsetof(epg_operands, alpha))
		return epg_fail(EPG_INVALID, "size is %zu, but must be sizeof(epg_operands)", size);
	memset(operands, 0, size);
	operands->size = size;
	return EPG_SUCCESS;
}

epg_status epg_execute(const epg_plan *plan, const epg_operands *operands, void *stream)
{
	epg_call call;
	bool empty;
	if (!plan || !operands)
		return epg_fail(EPG_INVALID, "%s is NULL", plan ? "operands" : "plan");
	epg_status status = epg_operands_check(plan, operands, &call, &empty);
	call.stream = stream;
	if (!status && !empty)
		status = plan->staged ? epg_host_execute(plan, &call) : plan->context->backend->execute(plan->state, &call);
	if (status) {
		epg_fail_context(plan->line);
		epg_log_write(&plan->context->log, EPG_LOG_ERROR, "execute: %s", epg_last_error());
	}
	return status;
}

/* With a workspace that is taken and given back in the order of the stream, unless the caller brings one. */
static epg_status execute_once(const epg_plan *plan, const epg_operands *operands, void *stream)
{
	const epg_backend *backend = plan->context->backend;
	void *state = plan->context->state, *workspace = NULL;
	size_t nbytes = plan->info.workspace_nbytes;
	epg_operands x;
	epg_operands_init(&x, sizeof x);
	epg_status status = operands ? epg_struct_read("operands", &x, sizeof x, operands, offsetof(epg_operands, alpha)) : EPG_SUCCESS;
	if (status || !operands || x.workspace || nbytes == 0)
		return status ? status : epg_execute(plan, operands, stream);
	status = backend->alloc_ordered ? backend->alloc_ordered(state, nbytes, stream, &workspace) : backend->alloc(state, nbytes, &workspace);
	if (status)
		return status;
	x.workspace = workspace;
	x.workspace_nbytes = nbytes;
	status = epg_execute(plan, &x, stream);
	if (backend->release_ordered)
		backend->release_ordered(state, workspace, stream);
	else
		backend->release(state, workspace);
	return status;
}

epg_status epg_matmul(epg_context *context, const epg_matmul_desc *desc, const epg_operands *operands, void *stream)
{
	epg_plan *plan;
	epg_status status = epg_plan_make(context, desc, NULL, false, &plan);
	if (status)
		return status;
	status = execute_once(plan, operands, stream);
	epg_plan_destroy(plan);
	return status;
}

/* ---- Convert ---- */

static bool overlap(const epg_view *x, const void *px, const epg_view *y, const void *py, int64_t batch)
{
	uintptr_t bx = (uintptr_t)px, by = (uintptr_t)py;
	return bx < by + (uintptr_t)epg_type_nbytes(y->type, epg_view_batch_extent(y, batch)) && by < bx + (uintptr_t)epg_type_nbytes(x->type, epg_view_batch_extent(x, batch));
}

epg_status epg_convert(epg_context *context, int64_t rows, int64_t cols, int64_t batch, const epg_matrix *from_layout, const void *from,
	const epg_matrix *to_layout, void *to, const void *scale, void *amax, void *stream)
{
	epg_view from_view, to_view;
	if (!context)
		return epg_fail(EPG_INVALID, "context is NULL");
	epg_status status = epg_view_from_matrix("from_layout", from_layout, rows, cols, batch, false, &from_view);
	if (!status)
		status = epg_view_from_matrix("to_layout", to_layout, rows, cols, batch, true, &to_view);
	if (status)
		return status;
	bool some = rows > 0 && cols > 0 && batch > 0;
	if (some && (!from || !to))
		return epg_fail(EPG_INVALID, "%s is NULL", from ? "to" : "from");
	if (some && ((uintptr_t)from % epg_type_alignment(from_view.type) || (uintptr_t)to % epg_type_alignment(to_view.type)))
		return epg_fail(EPG_INVALID, "from is %p and to is %p, but they must be aligned to %zu and %zu bytes", from, to, epg_type_alignment(from_view.type),
			epg_type_alignment(to_view.type));
	if (some && overlap(&from_view, from, &to_view, to, batch))
		return epg_fail(EPG_INVALID, "to (%p) overlaps from (%p)", to, from);
	return context->backend->convert(context->state, batch, &from_view, from, &to_view, to, scale, amax, stream);
}
