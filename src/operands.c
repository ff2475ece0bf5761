/* SPDX-License-Identifier: Apache-2.0
 *
 * The pointers of an execution: each needed one must be there, aligned to its element, none may be superfluous, and no
 * output may overlap anything but where the header allows it. This is on the path of every execution, so the common case
 * is a few comparisons. */
#include <string.h>

#include "dtype.h"
#include "epilog.h"
#include "plan.h"

/* ---- Overlap ---- */

/* The bytes that an operand covers: lines of length bytes, pitch bytes apart. */
typedef struct footprint {
	uintptr_t begin, end;
	uint64_t length, pitch;
	bool lined; /* length and pitch describe all of it, the batch included */
} footprint;

/* Lines of an item; then the items, where they lie between each other's lines or a whole number of pitches apart. */
static footprint footprint_of(const void *ptr, const epg_view *view, int64_t batch, int64_t nbytes)
{
	int64_t length = view->trans ? view->cols : view->rows, lines = view->trans ? view->rows : view->cols, pitch = view->ld;
	int64_t stride = batch > 1 ? view->batch_stride : 0;
	if (lines <= 1 || pitch == 0 || pitch == length) { /* an item is one line */
		length *= pitch == 0 ? 1 : lines;
		pitch = stride > length ? stride : length;
	}
	bool dense = pitch == length && stride <= length, between = (batch - 1) * stride + length <= pitch;
	footprint f = {.begin = (uintptr_t)ptr, .end = (uintptr_t)ptr + (uintptr_t)nbytes};
	f.lined = dense || between || stride % pitch == 0;
	f.pitch = dense ? (uint64_t)nbytes : (uint64_t)epg_type_nbytes(view->type, pitch);
	f.length = dense ? (uint64_t)nbytes : (uint64_t)epg_type_nbytes(view->type, stride % pitch && between ? (batch - 1) * stride + length : length);
	return f;
}

static footprint footprint_of_span(const void *ptr, int64_t nbytes)
{
	return (footprint){(uintptr_t)ptr, (uintptr_t)ptr + (uintptr_t)nbytes, (uint64_t)nbytes, (uint64_t)nbytes, true};
}

/* True when they certainly share a byte; false when they do not, or when it cannot be seen. */
static bool overlap(const footprint *x, const footprint *y)
{
	if (x->begin >= y->end || y->begin >= x->end)
		return false;
	if (!x->lined || !y->lined)
		return false;
	if (x->pitch != y->pitch && x->length != x->pitch && y->length != y->pitch)
		return false;
	/* Of equal pitch, or one of them dense: is the later one's start, or its length from there, in a line of the earlier? */
	const footprint *first = x->begin <= y->begin ? x : y, *second = first == x ? y : x;
	if (first->length == first->pitch)
		return true;
	uint64_t offset = (second->begin - first->begin) % first->pitch;
	return offset < first->length || offset + second->length > first->pitch;
}

/* ---- The pointers ---- */

static bool nonzero(const double x[2]) { return x[0] != 0 || x[1] != 0; }

/* Scalars on a device are not known here: then A and B must be there, and C may be. */
static bool scalars_here(const epg_plan *plan) { return !(plan->problem.flags & EPG_SCALARS_ON_DEVICE) || plan->context->backend->host_memory; }

static bool is_needed(int need, const epg_call *call, bool known)
{
	return need == EPG_NEEDED || (need == EPG_NEEDED_BY_PRODUCT && (!known || nonzero(call->alpha))) || (need == EPG_NEEDED_BY_BETA && known && nonzero(call->beta));
}

bool epg_operand_needed(const epg_plan *plan, const epg_call *call, int operand)
{
	return is_needed(plan->pointers[operand].need, call, scalars_here(plan));
}

void epg_operands_prepare(epg_plan *plan)
{
	const epg_problem *p = &plan->problem;
	const int64_t *nbytes = plan->extent_nbytes;
	bool some_d = nbytes[EPG_OPERAND_D] > 0, bias = p->epilog & EPG_BIAS, aux = p->epilog & EPG_AUX, bgrad = epg_epilog_bgrad(p->epilog);
	int product = some_d && p->k > 0 ? EPG_NEEDED_BY_PRODUCT : EPG_NOT_NEEDED, always = some_d ? EPG_NEEDED : EPG_NOT_NEEDED;
	const epg_pointer_rule rules[EPG_NPOINTERS] = {
		[EPG_OPERAND_A] = {p->swapped ? "b" : "a", p->epilog & EPG_BGRADA ? EPG_NEEDED : product, false, false, &p->a, p->a.type, 0, 0},
		[EPG_OPERAND_B] = {p->swapped ? "a" : "b", p->epilog & EPG_BGRADB ? EPG_NEEDED : product, false, false, &p->b, p->b.type, 0, 0},
		[EPG_OPERAND_C] = {"c", some_d ? EPG_NEEDED_BY_BETA : EPG_NOT_NEEDED, false, false, &p->c, p->c.type, 0, 0},
		[EPG_OPERAND_D] = {"d", always, false, true, &p->d, p->d.type, 0, 0},
		[EPG_OPERAND_AUX] = {"aux", aux ? always : EPG_NOT_NEEDED, !aux, epg_epilog_aux_out(p->epilog), &p->aux, aux ? p->aux.type : EPG_BIT, 0, 0},
		[EPG_OPERAND_BIAS] = {"bias", bias ? always : EPG_NOT_NEEDED, !bias, false, NULL, bias ? p->bias.type : p->d.type, 0, 0},
		[EPG_OPERAND_BGRAD] = {"bgrad", bgrad ? EPG_NEEDED : EPG_NOT_NEEDED, !bgrad, true, NULL, bgrad ? p->bgrad.type : p->d.type, 0, 0},
	};
	memcpy(plan->pointers, rules, sizeof rules);
	for (int i = 0; i < EPG_NPOINTERS; i++) {
		epg_pointer_rule *rule = &plan->pointers[i];
		rule->nbytes = nbytes[i];
		rule->misaligned = epg_type_alignment(rule->type) - 1;
		if (nbytes[i] == 0)
			rule->need = EPG_NOT_NEEDED;
	}
}

/* The pointers of one execution beside the rules of its plan. */
typedef struct pointer {
	const epg_pointer_rule *rule;
	const void *ptr;
	bool needed;
} pointer;

static epg_status check_pointer(const pointer *x)
{
	if (x->needed && !x->ptr)
		return epg_fail(EPG_INVALID, "%s is NULL, but this execution needs it", x->rule->name);
	if (x->rule->refused && x->ptr)
		return epg_fail(EPG_INVALID, "%s is %p, but must be NULL: this problem does not use it", x->rule->name, x->ptr);
	if (x->needed && (uintptr_t)x->ptr & x->rule->misaligned)
		return epg_fail(EPG_INVALID, "%s is %p, but must be aligned to %zu bytes", x->rule->name, x->ptr, (size_t)x->rule->misaligned + 1);
	return EPG_SUCCESS;
}

/* D may be exactly C, or exactly the aux that it reads. */
static bool in_place(const epg_problem *p, const pointer *d, const pointer *other)
{
	const epg_view *x = d->rule->view, *y = other->rule->view;
	bool readable = y == &p->c || (y == &p->aux && epg_epilog_aux_in(p->epilog));
	return readable && d->ptr == other->ptr && x->type == y->type && x->trans == y->trans && x->ld == y->ld && (p->batch <= 1 || x->batch_stride == y->batch_stride);
}

static footprint footprint_of_pointer(const pointer *x, int64_t batch)
{
	return x->rule->view ? footprint_of(x->ptr, x->rule->view, batch, x->rule->nbytes) : footprint_of_span(x->ptr, x->rule->nbytes);
}

static epg_status check_overlap(const epg_problem *p, const pointer *out, const pointer *other)
{
	uintptr_t x = (uintptr_t)out->ptr, y = (uintptr_t)other->ptr;
	if (!other->needed || out == other || x >= y + (uintptr_t)other->rule->nbytes || y >= x + (uintptr_t)out->rule->nbytes)
		return EPG_SUCCESS;
	footprint fx = footprint_of_pointer(out, p->batch), fy = footprint_of_pointer(other, p->batch);
	if (!overlap(&fx, &fy) || (out->rule->view == &p->d && in_place(p, out, other)))
		return EPG_SUCCESS;
	return epg_fail(EPG_INVALID, "%s (%p, %lld bytes) overlaps %s (%p, %lld bytes)", out->rule->name, out->ptr, (long long)out->rule->nbytes,
		other->rule->name, other->ptr, (long long)other->rule->nbytes);
}

static epg_status check_pointers(const epg_plan *plan, const epg_call *call, bool known)
{
	const epg_operands *x = &call->x;
	const void *const ptrs[EPG_NPOINTERS] = {x->a, x->b, x->c, x->d, x->aux, x->bias, x->bgrad};
	pointer all[EPG_NPOINTERS];
	epg_status status = EPG_SUCCESS;
	for (int i = 0; i < EPG_NPOINTERS && !status; i++) {
		all[i] = (pointer){&plan->pointers[i], ptrs[i], is_needed(plan->pointers[i].need, call, known)};
		status = check_pointer(&all[i]);
	}
	for (int i = 0; i < EPG_NPOINTERS && !status; i++)
		for (int j = 0; j < EPG_NPOINTERS && all[i].needed && all[i].rule->output && !status; j++)
			status = check_overlap(&plan->problem, &all[i], &all[j]);
	return status;
}

/* What this version has no use for. */
static epg_status check_reserved(const epg_operands *x)
{
	if (!x->scale_a && !x->scale_b && !x->scale_c && !x->scale_d && !x->scale_aux && !x->scale_d_out && !x->amax_d && !x->amax_aux)
		return EPG_SUCCESS;
	const struct { const char *name; const void *ptr; } unused[] = {
		{"scale_a", x->scale_a}, {"scale_b", x->scale_b}, {"scale_c", x->scale_c}, {"scale_d", x->scale_d}, {"scale_aux", x->scale_aux},
		{"scale_d_out", x->scale_d_out}, {"amax_d", x->amax_d}, {"amax_aux", x->amax_aux}};
	for (size_t i = 0; i < sizeof unused / sizeof *unused; i++)
		if (unused[i].ptr)
			return epg_fail(EPG_INVALID, "%s is %p, but must be NULL: this problem does not use it", unused[i].name, unused[i].ptr);
	return EPG_SUCCESS;
}

static epg_status check_workspace(const epg_plan *plan, const epg_operands *x)
{
	if (plan->staged && x->workspace)
		return epg_fail(EPG_INVALID, "workspace is %p, but must be NULL for a plan with EPG_MEMORY_HOST", x->workspace);
	if (!x->workspace)
		return x->workspace_nbytes == 0 ? EPG_SUCCESS : epg_fail(EPG_INVALID, "workspace is NULL although workspace_nbytes is %zu", x->workspace_nbytes);
	if (x->workspace_nbytes < plan->info.workspace_nbytes)
		return epg_fail(EPG_INVALID, "workspace_nbytes is %zu, but must be at least %zu", x->workspace_nbytes, plan->info.workspace_nbytes);
	if (plan->info.workspace_nbytes && (uintptr_t)x->workspace % plan->info.workspace_alignment)
		return epg_fail(EPG_INVALID, "workspace is %p, but must be aligned to %zu bytes", x->workspace, plan->info.workspace_alignment);
	return EPG_SUCCESS;
}

static void read_scalar(int32_t type, const void *from, double to[2])
{
	bool pair = epg_type_complex(type), narrow = type == EPG_F32 || type == EPG_C64;
	for (int i = 0; i <= pair; i++)
		to[i] = narrow ? (double)((const float *)from)[i] : ((const double *)from)[i];
}

epg_status epg_operands_check(const epg_plan *plan, const epg_operands *operands, epg_call *call, bool *empty)
{
	const epg_problem *p = &plan->problem;
	epg_status status = EPG_SUCCESS;
	if (operands->size == sizeof *operands) {
		call->x = *operands;
	} else {
		call->x = (epg_operands){.size = sizeof call->x};
		status = epg_struct_read("operands", &call->x, sizeof call->x, operands, offsetof(epg_operands, alpha));
	}
	*empty = p->batch == 0;
	if (status || *empty)
		return status;
	memcpy(call->alpha, p->alpha, sizeof call->alpha);
	memcpy(call->beta, p->beta, sizeof call->beta);
	bool known = scalars_here(plan);
	if (call->x.alpha && known)
		read_scalar(p->scalar, call->x.alpha, call->alpha);
	if (call->x.beta && known)
		read_scalar(p->scalar, call->x.beta, call->beta);
	if (p->swapped)
		epg_operands_swap(&call->x);
	status = check_reserved(&call->x);
	if (!status)
		status = check_pointers(plan, call, known);
	return status ? status : check_workspace(plan, &call->x);
}
