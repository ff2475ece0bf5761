/* SPDX-License-Identifier: Apache-2.0
 *
 * EPG_MEMORY_HOST on a device: the operands that one execution uses are taken to device memory of its own, the plan runs there, and
 * the elements of the outputs are brought back. Nothing outside those elements is written on the host, whatever lies between them, and
 * nothing at all before everything that can run out of memory has been taken. */
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "plan.h"

/* One operand on its way. nbytes is 0 for those that this execution does not use. */
typedef struct staged {
	const void *host;
	void *device;
	char *image;       /* where an output with gaps lands first */
	int64_t nbytes;
	bool shared;       /* the device memory is another operand's */
	bool upload, download, gaps;
} staged;

typedef struct staging {
	const epg_plan *plan;
	void *stream, *workspace;
	staged x[EPG_NPOINTERS]; /* by EPG_OPERAND_… */
} staging;

static const epg_backend *backend_of(const staging *s) { return s->plan->context->backend; }
static void *context_of(const staging *s) { return s->plan->context->state; }

/* ---- Lines: what an output's elements are made of ---- */

typedef struct lines {
	int32_t type;
	int64_t length, count, pitch, batch_stride; /* elements, or bits of a mask */
} lines;

static lines lines_of(const epg_problem *p, int output)
{
	const epg_view *v = output == EPG_OPERAND_D ? &p->d : &p->aux;
	if (output == EPG_OPERAND_BGRAD)
		return (lines){p->bgrad.type, p->bgrad.length, 1, p->bgrad.length, p->bgrad.batch_stride};
	return (lines){v->type, v->trans ? v->cols : v->rows, v->trans ? v->rows : v->cols, v->ld, v->batch_stride};
}

/* Is there anything between the elements that is not ours? A mask's last byte is seldom ours alone. */
static bool has_gaps(const lines *l, int64_t batch)
{
	return l->type == EPG_BIT || (l->count > 1 && l->pitch != l->length) || (batch > 1 && l->batch_stride != l->length * l->count);
}

/* One line that begins 'first' elements on; a mask's lines begin at whole bytes. */
static void copy_line(const lines *l, int64_t first, const char *from, char *to)
{
	int64_t begin = epg_type_nbytes(l->type, first), rest = l->type == EPG_BIT ? l->length % 8 : 0, whole = epg_type_nbytes(l->type, l->length - rest);
	memcpy(to + begin, from + begin, (size_t)whole);
	if (rest) {
		unsigned ours = (1u << rest) - 1;
		to[begin + whole] = (char)(((unsigned char)to[begin + whole] & ~ours) | ((unsigned char)from[begin + whole] & ours));
	}
}

static void copy_elements(const epg_problem *p, int output, const char *from, char *to)
{
	lines l = lines_of(p, output);
	for (int64_t item = 0; item < p->batch; item++)
		for (int64_t line = 0; line < l.count; line++)
			copy_line(&l, item * l.batch_stride + line * l.pitch, from, to);
}

/* ---- Memory ---- */

static void describe(staging *s, const epg_call *call)
{
	const epg_problem *p = &s->plan->problem;
	const epg_operands *o = &call->x;
	const void *const hosts[EPG_NPOINTERS] = {o->a, o->b, o->c, o->d, o->aux, o->bias, o->bgrad};
	for (int i = 0; i < EPG_NPOINTERS; i++) {
		staged *x = &s->x[i];
		x->host = hosts[i];
		x->nbytes = epg_operand_needed(s->plan, call, i) ? s->plan->extent_nbytes[i] : 0;
		x->download = s->plan->pointers[i].output && x->nbytes > 0;
		x->upload = x->nbytes > 0 && (!s->plan->pointers[i].output || (i == EPG_OPERAND_BGRAD && p->flags & EPG_BGRAD_ACCUMULATE));
		if (x->download) {
			lines l = lines_of(p, i);
			x->gaps = has_gaps(&l, p->batch);
		}
	}
}

/* D in place of C, or of the aux that is read, lies in their memory on the device too. */
static void share_d(staging *s)
{
	staged *d = &s->x[EPG_OPERAND_D];
	const int others[] = {EPG_OPERAND_C, EPG_OPERAND_AUX};
	for (int i = 0; i < 2 && d->nbytes > 0; i++) {
		const staged *x = &s->x[others[i]];
		if (x->upload && x->host == d->host && x->nbytes == d->nbytes) {
			d->device = x->device;
			d->shared = true;
		}
	}
}

static epg_status take_memory(staging *s, int i)
{
	staged *x = &s->x[i];
	epg_status status = EPG_SUCCESS;
	if (x->nbytes > 0 && !x->shared)
		status = backend_of(s)->alloc(context_of(s), (size_t)x->nbytes, &x->device);
	if (!status && x->gaps && !(x->image = malloc((size_t)x->nbytes)))
		status = epg_fail(EPG_NO_MEMORY, "no memory for %lld bytes of an output on its way to the host", (long long)x->nbytes);
	return status;
}

static epg_status take_all_memory(staging *s)
{
	epg_status status = EPG_SUCCESS;
	for (int i = 0; i < EPG_NPOINTERS && !status; i++)
		if (i != EPG_OPERAND_D)
			status = take_memory(s, i);
	share_d(s);
	if (!status)
		status = take_memory(s, EPG_OPERAND_D);
	if (!status && s->plan->staging_nbytes > 0)
		status = backend_of(s)->alloc(context_of(s), s->plan->staging_nbytes, &s->workspace);
	return status;
}

static void release_all(staging *s)
{
	for (int i = 0; i < EPG_NPOINTERS; i++) {
		if (s->x[i].device && !s->x[i].shared)
			backend_of(s)->release(context_of(s), s->x[i].device);
		free(s->x[i].image);
	}
	if (s->workspace)
		backend_of(s)->release(context_of(s), s->workspace);
}

int64_t epg_host_nbytes(const epg_plan *plan)
{
	int64_t sum = (int64_t)plan->staging_nbytes;
	for (int i = 0; i < EPG_NPOINTERS; i++)
		sum += plan->extent_nbytes[i];
	return sum;
}

/* ---- There and back ---- */

static epg_status send(staging *s)
{
	epg_status status = EPG_SUCCESS;
	for (int i = 0; i < EPG_NPOINTERS && !status; i++)
		if (s->x[i].upload)
			status = backend_of(s)->upload(context_of(s), s->x[i].device, s->x[i].host, (size_t)s->x[i].nbytes, s->stream);
	return status;
}

/* A failure may have left work on the stream that uses the memory; the first sentence is the one that counts. */
static epg_status drain(staging *s, epg_status status)
{
	epg_error error;
	epg_error_keep(&error);
	backend_of(s)->synchronize(context_of(s), s->stream);
	epg_error_restore(&error);
	return status;
}

static epg_status run(staging *s, const epg_call *call)
{
	epg_call there = *call;
	there.x.a = s->x[EPG_OPERAND_A].device;
	there.x.b = s->x[EPG_OPERAND_B].device;
	there.x.c = s->x[EPG_OPERAND_C].device;
	there.x.d = s->x[EPG_OPERAND_D].device;
	there.x.aux = s->x[EPG_OPERAND_AUX].device;
	there.x.bias = s->x[EPG_OPERAND_BIAS].device;
	there.x.bgrad = s->x[EPG_OPERAND_BGRAD].device;
	there.x.workspace = s->workspace;
	there.x.workspace_nbytes = s->plan->staging_nbytes;
	epg_status status = backend_of(s)->execute(s->plan->state, &there);
	return status ? drain(s, status) : backend_of(s)->synchronize(context_of(s), s->stream);
}

static epg_status fetch(staging *s)
{
	epg_status status = EPG_SUCCESS;
	for (int i = 0; i < EPG_NPOINTERS && !status; i++) {
		staged *x = &s->x[i];
		if (x->download)
			status = backend_of(s)->download(context_of(s), x->gaps ? x->image : (void *)x->host, x->device, (size_t)x->nbytes, s->stream);
		if (!status && x->gaps)
			copy_elements(&s->plan->problem, i, x->image, (char *)x->host);
	}
	return status;
}

epg_status epg_host_execute(const epg_plan *plan, const epg_call *call)
{
	staging s = {.plan = plan, .stream = call->stream};
	describe(&s, call);
	epg_status status = take_all_memory(&s);
	if (!status)
		status = send(&s);
	if (!status)
		status = run(&s, call);
	if (!status)
		status = fetch(&s);
	release_all(&s);
	return status;
}
