/* SPDX-License-Identifier: Apache-2.0
 *
 * EPG_MEMORY_HOST on a device: the operands of one execution are taken to device memory of their own, the plan runs there, and the
 * elements of the outputs are brought back. Nothing outside those elements is written on the host, whatever lies between them. */
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "epilog.h"
#include "plan.h"

/* One operand on its way. */
typedef struct staged {
	const void *host;
	void *device;
	int64_t nbytes;
	bool shared; /* the device memory is another operand's */
	bool upload, download;
} staged;

typedef struct staging {
	const epg_plan *plan;
	void *stream, *workspace;
	staged x[EPG_NPOINTERS]; /* by EPG_OPERAND_… */
} staging;

static const epg_backend *backend_of(const staging *s) { return s->plan->context->backend; }
static void *context_of(const staging *s) { return s->plan->context->state; }

/* ---- There ---- */

static void describe(staging *s, const epg_call *call)
{
	const epg_problem *p = &s->plan->problem;
	const epg_operands *o = &call->x;
	const void *const hosts[EPG_NPOINTERS] = {o->a, o->b, o->c, o->d, o->aux, o->bias, o->bgrad};
	for (int i = 0; i < EPG_NPOINTERS; i++) {
		bool output = i == EPG_OPERAND_D || i == EPG_OPERAND_BGRAD || (i == EPG_OPERAND_AUX && epg_epilog_aux_out(p->epilog));
		staged *x = &s->x[i];
		x->host = hosts[i];
		x->nbytes = hosts[i] ? s->plan->extent_nbytes[i] : 0;
		x->download = output && x->nbytes > 0;
		x->upload = !output || (i == EPG_OPERAND_BGRAD && p->flags & EPG_BGRAD_ACCUMULATE);
	}
}

/* D in place of C or of the aux that is read lies in their memory on the device too. */
static void share_d(staging *s)
{
	staged *d = &s->x[EPG_OPERAND_D];
	const int others[] = {EPG_OPERAND_C, EPG_OPERAND_AUX};
	for (int i = 0; i < 2 && d->nbytes > 0; i++)
		if (s->x[others[i]].host == d->host && s->x[others[i]].device) {
			d->device = s->x[others[i]].device;
			d->shared = true;
		}
}

static epg_status send(staging *s, int i)
{
	staged *x = &s->x[i];
	epg_status status = EPG_SUCCESS;
	if (x->nbytes == 0 || x->device)
		return EPG_SUCCESS;
	status = backend_of(s)->alloc(context_of(s), (size_t)x->nbytes, &x->device);
	if (!status && x->upload)
		status = backend_of(s)->upload(context_of(s), x->device, x->host, (size_t)x->nbytes, s->stream);
	return status;
}

static epg_status send_all(staging *s)
{
	epg_status status = EPG_SUCCESS;
	for (int i = 0; i < EPG_NPOINTERS && !status; i++)
		if (i != EPG_OPERAND_D)
			status = send(s, i);
	share_d(s);
	if (!status)
		status = send(s, EPG_OPERAND_D);
	if (!status && s->plan->staging_nbytes > 0)
		status = backend_of(s)->alloc(context_of(s), s->plan->staging_nbytes, &s->workspace);
	return status;
}

/* ---- And back ---- */

/* count elements (bits of a mask) of a line that begins at a whole byte. */
static void copy_line(int32_t type, int64_t first, int64_t count, const char *from, char *to)
{
	int64_t begin = epg_type_nbytes(type, first), whole = type == EPG_BIT ? count / 8 : epg_type_nbytes(type, count), rest = type == EPG_BIT ? count % 8 : 0;
	memcpy(to + begin, from + begin, (size_t)whole);
	if (rest) {
		unsigned ours = (1u << rest) - 1;
		to[begin + whole] = (char)(((unsigned char)to[begin + whole] & ~ours) | ((unsigned char)from[begin + whole] & ours));
	}
}

static void copy_elements(const epg_plan *plan, int operand, const char *from, char *to)
{
	const epg_problem *p = &plan->problem;
	const epg_view *v = operand == EPG_OPERAND_D ? &p->d : &p->aux;
	if (operand == EPG_OPERAND_BGRAD) {
		for (int64_t item = 0; item < p->batch; item++)
			copy_line(p->bgrad.type, item * p->bgrad.batch_stride, p->bgrad.length, from, to);
		return;
	}
	int64_t lines = v->trans ? v->rows : v->cols, length = v->trans ? v->cols : v->rows;
	for (int64_t item = 0; item < p->batch; item++)
		for (int64_t line = 0; line < lines; line++)
			copy_line(v->type, item * v->batch_stride + line * v->ld, length, from, to);
}

/* Through a buffer, so that what lies between the elements is neither read nor written on the host. */
static epg_status fetch(staging *s, int i)
{
	staged *x = &s->x[i];
	if (!x->download)
		return EPG_SUCCESS;
	char *buffer = malloc((size_t)x->nbytes);
	if (!buffer)
		return epg_fail(EPG_NO_MEMORY, "no memory for %lld bytes of an output on its way", (long long)x->nbytes);
	epg_status status = backend_of(s)->download(context_of(s), buffer, x->device, (size_t)x->nbytes, s->stream);
	if (!status)
		copy_elements(s->plan, i, buffer, (char *)x->host);
	free(buffer);
	return status;
}

static void release_all(staging *s)
{
	for (int i = 0; i < EPG_NPOINTERS; i++)
		if (!s->x[i].shared)
			backend_of(s)->release(context_of(s), s->x[i].device);
	backend_of(s)->release(context_of(s), s->workspace);
}

epg_status epg_host_execute(const epg_plan *plan, const epg_call *call)
{
	staging s = {.plan = plan, .stream = call->stream};
	epg_call there = *call;
	describe(&s, call);
	epg_status status = send_all(&s);
	if (!status) {
		there.x.a = s.x[EPG_OPERAND_A].device;
		there.x.b = s.x[EPG_OPERAND_B].device;
		there.x.c = s.x[EPG_OPERAND_C].device;
		there.x.d = s.x[EPG_OPERAND_D].device;
		there.x.aux = s.x[EPG_OPERAND_AUX].device;
		there.x.bias = s.x[EPG_OPERAND_BIAS].device;
		there.x.bgrad = s.x[EPG_OPERAND_BGRAD].device;
		there.x.workspace = s.workspace;
		there.x.workspace_nbytes = plan->staging_nbytes;
		status = backend_of(&s)->execute(plan->state, &there);
	}
	if (!status)
		status = backend_of(&s)->synchronize(context_of(&s), s.stream);
	for (int i = 0; i < EPG_NPOINTERS && !status; i++)
		status = fetch(&s, i);
	release_all(&s);
	return status;
}
