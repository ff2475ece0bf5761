/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks a desc and brings it into the canonical form of problem.h. Every rule about sizes, layouts and types is here, so
 * that a backend meets only problems that make sense. */
#include "problem.h"

#include <stdio.h>
#include <string.h>

#include "dtype.h"
#include "epilog.h"
#include "log.h"

enum { MASK_LINE_NBITS = 128, GELU_LINE_NELEMS = 8, MAX_STRUCT_NBYTES = 1 << 16 };

/* ---- Structs of any size ---- */

epg_status epg_struct_read(const char *name, void *to, size_t to_nbytes, const void *from, size_t min_nbytes)
{
	size_t nbytes;
	memcpy(&nbytes, from, sizeof nbytes);
	if (nbytes < min_nbytes || nbytes > MAX_STRUCT_NBYTES)
		return epg_fail(EPG_INVALID, "%s.size is %zu, but must be the size of the struct, at least %zu; its init function sets it", name,
			nbytes, min_nbytes);
	for (size_t i = to_nbytes; i < nbytes; i++)
		if (((const unsigned char *)from)[i])
			return epg_fail(EPG_INVALID,
				"%s.size is %zu and byte %zu of it is set, but epigemm %s knows %zu bytes; a field of a newer version must be 0 here", name,
				nbytes, i, EPG_VERSION, to_nbytes);
	memcpy(to, from, nbytes < to_nbytes ? nbytes : to_nbytes);
	memcpy(to, &to_nbytes, sizeof to_nbytes);
	return EPG_SUCCESS;
}

epg_status epg_matmul_desc_init(epg_matmul_desc *desc, size_t size, int64_t m, int64_t n, int64_t k, int32_t type, int32_t order)
{
	if (!desc)
		return epg_fail(EPG_INVALID, "desc is NULL");
	if (size < offsetof(epg_matmul_desc, aux) || size > MAX_STRUCT_NBYTES)
		return epg_fail(EPG_INVALID, "size is %zu, but must be sizeof(epg_matmul_desc), at least %zu", size, offsetof(epg_matmul_desc, aux));
	epg_matrix matrix = {.type = type, .order = order, .ld = EPG_TIGHT, .batch_stride = EPG_TIGHT};
	epg_vector vector = {.batch_stride = EPG_TIGHT};
	epg_matmul_desc full = {
		.size = size, .m = m, .n = n, .k = k, .batch = 1, .alpha = {1, 0}, .a = matrix, .b = matrix, .c = matrix, .d = matrix, .aux = matrix,
		.bias = vector, .bgrad = vector,
	};
	full.aux.type = EPG_NONE;
	memset(desc, 0, size);
	memcpy(desc, &full, size < sizeof full ? size : sizeof full);
	return EPG_SUCCESS;
}

epg_status epg_desc_read(const epg_matmul_desc *desc, epg_matmul_desc *full)
{
	if (!desc)
		return epg_fail(EPG_INVALID, "desc is NULL");
	epg_matmul_desc_init(full, sizeof *full, 0, 0, 0, EPG_F32, EPG_COL);
	epg_status status = epg_struct_read("desc", full, sizeof *full, desc, offsetof(epg_matmul_desc, aux));
	if (!status && desc->size == offsetof(epg_matmul_desc, aux))
		full->aux.order = full->d.order;
	return status;
}

/* ---- Plain fields ---- */

/* An enumerated field and the largest value it may have. */
typedef struct field_rule {
	const char *name;
	size_t offset;
	int32_t max;
} field_rule;

#define FIELD(field, max) {#field, offsetof(epg_matmul_desc, field), max}
#define MATRIX_FIELDS(x, max_op) \
	FIELD(x.type, EPG_BIT), FIELD(x.order, EPG_ROW), FIELD(x.op, max_op), FIELD(x.scale, EPG_SCALE_NV16), FIELD(x.reserved[0], 0), FIELD(x.reserved[1], 0)

static const field_rule field_rules[] = {
	FIELD(batch_mode, 0),
	FIELD(compute, EPG_COMPUTE_S32),
	FIELD(axis, EPG_PER_COLUMN),
	FIELD(flags, EPG_DETERMINISTIC | EPG_FAST_ACCUMULATION | EPG_BGRAD_ACCUMULATE | EPG_SCALARS_ON_DEVICE),
	FIELD(align_nbytes, 4096),
	MATRIX_FIELDS(a, EPG_OP_J),
	MATRIX_FIELDS(b, EPG_OP_J),
	MATRIX_FIELDS(c, EPG_OP_N),
	MATRIX_FIELDS(d, EPG_OP_N),
	MATRIX_FIELDS(aux, EPG_OP_N),
	FIELD(bias.type, EPG_BIT),
	FIELD(bias.reserved, 0),
	FIELD(bgrad.type, EPG_BIT),
	FIELD(bgrad.reserved, 0),
};

static epg_status check_fields(const epg_matmul_desc *desc)
{
	for (size_t i = 0; i < sizeof field_rules / sizeof *field_rules; i++) {
		int32_t value;
		memcpy(&value, (const char *)desc + field_rules[i].offset, sizeof value);
		if (value < 0 || value > field_rules[i].max)
			return epg_fail(EPG_INVALID, "%s is %d, but must be from 0 to %d", field_rules[i].name, value, field_rules[i].max);
	}
	if (!epg_epilog_name(desc->epilog))
		return epg_fail(EPG_INVALID, "epilog is %d, but must be one of the sixteen EPG_EPILOG_… values", desc->epilog);
	if (desc->align_nbytes & (desc->align_nbytes - 1))
		return epg_fail(EPG_INVALID, "align_nbytes is %d, but must be 0 or a power of two", desc->align_nbytes);
	if (desc->act_param[0] != 0 || desc->act_param[1] != 0)
		return epg_fail(EPG_INVALID, "act_param is (%g, %g), but must be 0: the activations of this version have no parameters",
			desc->act_param[0], desc->act_param[1]);
	return EPG_SUCCESS;
}

static epg_status check_sizes(const epg_matmul_desc *desc)
{
	const struct { const char *name; int64_t value; } sizes[] = {{"m", desc->m}, {"n", desc->n}, {"k", desc->k}, {"batch", desc->batch}};
	for (int i = 0; i < 4; i++)
		if (sizes[i].value < 0)
			return epg_fail(EPG_INVALID, "%s is %lld, but must be 0 or more", sizes[i].name, (long long)sizes[i].value);
	return EPG_SUCCESS;
}

/* ---- Types ---- */

static epg_status check_scalars(const epg_matmul_desc *desc)
{
	if (epg_type_complex(desc->d.type))
		return EPG_SUCCESS;
	if (desc->alpha[1] != 0)
		return epg_fail(EPG_INVALID, "alpha has the imaginary part %g, but must be real for real types", desc->alpha[1]);
	if (desc->beta[1] != 0)
		return epg_fail(EPG_INVALID, "beta has the imaginary part %g, but must be real for real types", desc->beta[1]);
	return EPG_SUCCESS;
}

static epg_status check_types(const epg_matmul_desc *desc, epg_problem *problem)
{
	const struct { const char *name; const epg_matrix *x; } matrices[] = {{"a", &desc->a}, {"b", &desc->b}, {"c", &desc->c}, {"d", &desc->d}, {"aux", &desc->aux}};
	for (int i = 0; i < 5; i++)
		if (matrices[i].x->scale != EPG_SCALE_NONE)
			return epg_fail(EPG_UNSUPPORTED, "%s.scale is %d: this version has no scales, it must be EPG_SCALE_NONE", matrices[i].name, matrices[i].x->scale);
	for (int i = 0; i < 4; i++)
		if (matrices[i].x->type == EPG_NONE)
			return epg_fail(EPG_INVALID, "%s.type is EPG_NONE, but must be an element type", matrices[i].name);
	char why[EPG_TEXT_NBYTES];
	const epg_combo *combo = epg_combo_find(desc->a.type, desc->b.type, desc->c.type, desc->d.type, desc->compute, why, sizeof why);
	if (!combo)
		return epg_fail(EPG_UNSUPPORTED, "%s", why);
	if (!combo->activations && desc->epilog != EPG_EPILOG_DEFAULT && desc->epilog != EPG_EPILOG_BIAS)
		return epg_fail(EPG_UNSUPPORTED, "epilog is %s, but %s has only default and bias", epg_epilog_name(desc->epilog), epg_type_name(desc->d.type));
	problem->compute = combo->compute;
	problem->scalar = combo->scalar;
	return check_scalars(desc);
}

/* ---- Matrices ---- */

static bool add_mul(int64_t x, int64_t y, int64_t z, int64_t *sum)
{
	int64_t product;
	return !__builtin_mul_overflow(x, y, &product) && !__builtin_add_overflow(product, z, sum);
}

/* Length of a line and number of lines, as stored. */
static int64_t line_length(const epg_view *view) { return view->trans ? view->cols : view->rows; }
static int64_t line_count(const epg_view *view) { return view->trans ? view->rows : view->cols; }

/* A mask's lines are whole, padding included. */
int64_t epg_view_extent(const epg_view *view)
{
	int64_t unit = view->type == EPG_BIT ? MASK_LINE_NBITS : 1;
	if (view->rows == 0 || view->cols == 0)
		return 0;
	return (line_count(view) - 1) * view->ld + (line_length(view) + unit - 1) / unit * unit;
}

int64_t epg_view_batch_extent(const epg_view *view, int64_t batch)
{
	int64_t extent = epg_view_extent(view);
	return batch == 0 || extent == 0 ? 0 : (batch - 1) * view->batch_stride + extent;
}

/* What a matrix is used for decides what its layout may be. */
typedef struct matrix_role {
	const char *name;
	bool output;
	int64_t unit; /* lines and strides are multiples of it */
} matrix_role;

static epg_status check_ld(const matrix_role *role, const epg_matrix *x, epg_view *view)
{
	int64_t length = line_length(view), tight;
	if (!add_mul((length > 1 ? length - 1 : 0) / role->unit, role->unit, role->unit, &tight))
		return epg_fail(EPG_INVALID, "%s has lines of %lld elements, too long for 64 bits", role->name, (long long)length);
	view->ld = x->ld == EPG_TIGHT ? tight : x->ld;
	bool broadcast = view->ld == 0 && !role->output;
	if (!broadcast && view->ld < (length > 1 ? length : 1))
		return epg_fail(EPG_INVALID, "%s.ld is %lld, but must be at least %lld, its line as stored%s", role->name, (long long)view->ld,
			(long long)(length > 1 ? length : 1), role->output ? "; only inputs are broadcast" : ", or 0 to broadcast one line");
	if (view->ld % role->unit)
		return epg_fail(EPG_INVALID, "%s.ld is %lld, but must be a multiple of %lld", role->name, (long long)view->ld, (long long)role->unit);
	return EPG_SUCCESS;
}

/* Batch items of an output are apart when they follow each other, or when they lie between each other's lines. */
static bool items_apart(const epg_view *view, int64_t batch, int64_t extent)
{
	int64_t reach = 0;
	if (extent == 0 || view->batch_stride >= extent)
		return true;
	return view->batch_stride >= line_length(view) && add_mul(batch - 1, view->batch_stride, line_length(view), &reach) && reach <= view->ld;
}

static epg_status check_batch_stride(const matrix_role *role, const epg_matrix *x, int64_t batch, epg_view *view)
{
	int64_t extent = epg_view_extent(view), tight;
	if (!add_mul(view->ld ? line_count(view) : 0, view->ld, view->ld ? 0 : line_length(view), &tight))
		return epg_fail(EPG_INVALID, "%s spans more elements than 64 bits count", role->name);
	view->batch_stride = batch <= 1 || x->batch_stride == EPG_TIGHT ? tight : x->batch_stride;
	if (view->batch_stride < 0)
		return epg_fail(EPG_INVALID, "%s.batch_stride is %lld, but must be 0 or more", role->name, (long long)view->batch_stride);
	if (batch > 1 && role->unit == MASK_LINE_NBITS && view->batch_stride % role->unit)
		return epg_fail(EPG_INVALID, "%s.batch_stride is %lld, but must be a multiple of %lld bits", role->name, (long long)view->batch_stride, (long long)role->unit);
	if (batch > 1 && role->output && !items_apart(view, batch, extent))
		return epg_fail(EPG_INVALID, "%s.batch_stride is %lld, but must be at least %lld: batch items of an output may not overlap", role->name,
			(long long)view->batch_stride, (long long)extent);
	return EPG_SUCCESS;
}

/* The byte span must be addressable. */
static epg_status check_span(const matrix_role *role, int64_t batch, const epg_view *view)
{
	int64_t lines, all, nbytes;
	bool fits = add_mul(line_count(view) > 0 ? line_count(view) - 1 : 0, view->ld, line_length(view), &lines)
		&& add_mul(batch > 0 ? batch - 1 : 0, view->batch_stride, lines, &all)
		&& add_mul(all, (epg_type_nbits(view->type) + 7) / 8, 0, &nbytes);
	return fits ? EPG_SUCCESS : epg_fail(EPG_INVALID, "%s spans more bytes than 64 bits count (ld %lld, batch_stride %lld)", role->name,
		(long long)view->ld, (long long)view->batch_stride);
}

/* rows×cols are the extents of op(X). */
static epg_status make_view(const matrix_role *role, const epg_matrix *x, int64_t rows, int64_t cols, int64_t batch, epg_view *view)
{
	bool op_transposes = x->op == EPG_OP_T || x->op == EPG_OP_C;
	*view = (epg_view){.type = x->type, .scale = x->scale, .rows = rows, .cols = cols};
	view->trans = (x->order == EPG_ROW) != op_transposes;
	view->conj = epg_type_complex(x->type) && (x->op == EPG_OP_C || x->op == EPG_OP_J);
	epg_status status = check_ld(role, x, view);
	if (!status)
		status = check_span(role, 1, view);
	if (!status)
		status = check_batch_stride(role, x, batch, view);
	return status ? status : check_span(role, batch, view);
}

epg_status epg_view_from_matrix(const char *name, const epg_matrix *x, int64_t rows, int64_t cols, int64_t batch, bool output, epg_view *view)
{
	if (!x)
		return epg_fail(EPG_INVALID, "%s is NULL", name);
	const struct { const char *name; int64_t value, max; } fields[] = {
		{"type", x->type, EPG_C128}, {"order", x->order, EPG_ROW}, {"op", x->op, output ? EPG_OP_N : EPG_OP_J}, {"scale", x->scale, EPG_SCALE_NV16},
		{"reserved[0]", x->reserved[0], 0}, {"reserved[1]", x->reserved[1], 0}};
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		if (fields[i].value < (i == 0) || fields[i].value > fields[i].max)
			return epg_fail(EPG_INVALID, "%s.%s is %lld, but must be from %d to %lld", name, fields[i].name, (long long)fields[i].value, i == 0, (long long)fields[i].max);
	if (x->scale != EPG_SCALE_NONE)
		return epg_fail(EPG_UNSUPPORTED, "%s.scale is %d: a conversion takes its scale as an argument, it must be EPG_SCALE_NONE", name, x->scale);
	if (rows < 0 || cols < 0 || batch < 0)
		return epg_fail(EPG_INVALID, "rows, cols and batch are %lld, %lld and %lld, but must be 0 or more", (long long)rows, (long long)cols, (long long)batch);
	matrix_role role = {name, output, 1};
	return make_view(&role, x, rows, cols, batch, view);
}

static epg_status check_aux_type(const epg_matmul_desc *desc, epg_matrix *aux)
{
	int32_t needed = epg_epilog_act(desc->epilog) == EPG_ACT_RELU ? EPG_BIT : epg_aux_type(desc->c.type, desc->d.type);
	if (aux->type == EPG_NONE)
		aux->type = needed;
	if (aux->type == needed)
		return EPG_SUCCESS;
	bool mask_expected = needed == EPG_BIT || aux->type == EPG_BIT;
	return epg_fail(mask_expected ? EPG_INVALID : EPG_UNSUPPORTED, "aux.type is %s, but must be %s for epilog %s", epg_type_name(aux->type),
		epg_type_name(needed), epg_epilog_name(desc->epilog));
}

static epg_status make_views(const epg_matmul_desc *desc, epg_problem *p)
{
	const struct { matrix_role role; const epg_matrix *x; int64_t rows, cols; epg_view *view; } views[] = {
		{{"a", false, 1}, &desc->a, p->m, p->k, &p->a},
		{{"b", false, 1}, &desc->b, p->k, p->n, &p->b},
		{{"c", false, 1}, &desc->c, p->m, p->n, &p->c},
		{{"d", true, 1}, &desc->d, p->m, p->n, &p->d},
	};
	for (int i = 0; i < 4; i++) {
		epg_status status = make_view(&views[i].role, views[i].x, views[i].rows, views[i].cols, p->batch, views[i].view);
		if (status)
			return status;
	}
	if (!(p->epilog & EPG_AUX))
		return EPG_SUCCESS;
	epg_matrix aux = desc->aux;
	epg_status status = check_aux_type(desc, &aux);
	matrix_role role = {"aux", epg_epilog_aux_out(p->epilog), aux.type == EPG_BIT ? MASK_LINE_NBITS : GELU_LINE_NELEMS};
	return status ? status : make_view(&role, &aux, p->m, p->n, p->batch, &p->aux);
}

/* ---- Vectors ---- */

static epg_status make_span(const char *name, const epg_vector *x, const epg_problem *p, int64_t length, bool output, epg_span *span)
{
	int32_t type = x->type == EPG_NONE ? epg_vector_type(p->c.type, p->d.type) : x->type;
	if (!epg_vector_type_allowed(type, p->a.type, p->d.type))
		return epg_fail(EPG_UNSUPPORTED, "%s.type is %s, but must be %s%s%s", name, epg_type_name(type),
			epg_type_nbits(p->d.type) > 8 ? "D's type, " : "bf16, f16 or f32 where D is ", epg_type_name(p->d.type),
			epg_type_nbits(p->d.type) == 8 ? "" : p->a.type == p->d.type || p->d.type != EPG_F32 ? ", or f32 where D has 16 bits or is s32" : ", or A's of 16 bits, or any of 16 bits where A has 8");
	if (x->length != 0 && x->length != length)
		return epg_fail(EPG_INVALID, "%s.length is %lld, but must be %lld (axis %s of a %lld×%lld D), or 0", name, (long long)x->length, (long long)length,
			p->axis == EPG_PER_ROW ? "row" : "column", (long long)p->m, (long long)p->n);
	int64_t stride = p->batch <= 1 || x->batch_stride == EPG_TIGHT ? length : x->batch_stride, reach = 0;
	if (stride < (output ? length : 0))
		return epg_fail(EPG_INVALID, "%s.batch_stride is %lld, but must be at least %lld", name, (long long)stride, (long long)(output ? length : 0));
	if (!add_mul(p->batch > 0 ? p->batch - 1 : 0, stride, length, &reach) || reach > INT64_MAX / 16)
		return epg_fail(EPG_INVALID, "%s spans more bytes than 64 bits count (batch_stride %lld)", name, (long long)stride);
	*span = (epg_span){type, length, stride};
	return EPG_SUCCESS;
}

static epg_status make_spans(const epg_matmul_desc *desc, epg_problem *p)
{
	int64_t along_axis = p->axis == EPG_PER_ROW ? p->m : p->n;
	epg_status status = EPG_SUCCESS;
	if (p->epilog & EPG_BIAS)
		status = make_span("bias", &desc->bias, p, along_axis, false, &p->bias);
	if (!status && epg_epilog_bgrad(p->epilog)) {
		int64_t length = p->epilog & EPG_BGRADA ? p->m : p->epilog & EPG_BGRADB ? p->n : along_axis;
		status = make_span("bgrad", &desc->bgrad, p, length, true, &p->bgrad);
	}
	return status;
}

/* ---- The whole ---- */

static epg_view transposed(epg_view view)
{
	int64_t rows = view.rows;
	view.rows = view.cols;
	view.cols = rows;
	view.trans = !view.trans;
	return view;
}

void epg_problem_swap(epg_problem *p)
{
	epg_view a = p->a;
	int64_t m = p->m;
	p->a = transposed(p->b);
	p->b = transposed(a);
	p->c = transposed(p->c);
	p->d = transposed(p->d);
	if (p->epilog & EPG_AUX)
		p->aux = transposed(p->aux);
	p->m = p->n;
	p->n = m;
	p->axis = p->axis == EPG_PER_ROW ? EPG_PER_COLUMN : EPG_PER_ROW;
	p->epilog = epg_epilog_swap(p->epilog);
	p->swapped = !p->swapped;
}

void epg_operands_swap(epg_operands *x)
{
	const void *a = x->a, *scale_a = x->scale_a;
	x->a = x->b;
	x->b = a;
	x->scale_a = x->scale_b;
	x->scale_b = scale_a;
}

static epg_status fill_problem(const epg_matmul_desc *desc, epg_problem *p)
{
	epg_status status = check_fields(desc);
	if (!status)
		status = check_sizes(desc);
	if (!status)
		status = check_types(desc, p);
	if (status)
		return status;
	p->m = desc->m, p->n = desc->n, p->k = desc->k, p->batch = desc->batch;
	p->epilog = desc->epilog, p->axis = desc->axis, p->flags = desc->flags, p->align_nbytes = desc->align_nbytes;
	memcpy(p->alpha, desc->alpha, sizeof p->alpha);
	memcpy(p->beta, desc->beta, sizeof p->beta);
	status = make_views(desc, p);
	return status ? status : make_spans(desc, p);
}

epg_status epg_problem_from_desc(const epg_matmul_desc *desc, epg_problem *problem)
{
	epg_matmul_desc full;
	epg_status status = epg_desc_read(desc, &full);
	if (status)
		return status;
	epg_problem p = {.workspace_limit_nbytes = -1};
	status = fill_problem(&full, &p);
	if (status) {
		char line[EPG_TEXT_NBYTES];
		epg_problem_line(&full, line, sizeof line);
		epg_fail_context(line);
		return status;
	}
	if (p.d.trans)
		epg_problem_swap(&p);
	*problem = p;
	return EPG_SUCCESS;
}

/* ---- Layouts for the caller ---- */

static void layout_of_view(const epg_view *view, int64_t batch, bool swapped, int32_t op, epg_layout *layout)
{
	epg_view v = swapped ? transposed(*view) : *view;
	bool op_transposes = op == EPG_OP_T || op == EPG_OP_C;
	layout->type = v.type;
	layout->order = v.trans != op_transposes ? EPG_ROW : EPG_COL;
	layout->rows = op_transposes ? v.cols : v.rows;
	layout->cols = op_transposes ? v.rows : v.cols;
	layout->ld = v.ld;
	layout->batch = batch;
	layout->batch_stride = v.batch_stride;
	layout->nbytes = epg_type_nbytes(v.type, epg_view_batch_extent(&v, batch));
}

static void layout_of_span(const epg_span *span, int64_t batch, epg_layout *layout)
{
	layout->type = span->type;
	layout->rows = span->length;
	layout->cols = 1;
	layout->ld = span->length > 1 ? span->length : 1;
	layout->batch = batch;
	layout->batch_stride = span->batch_stride;
	layout->nbytes = batch == 0 || span->length == 0 ? 0 : epg_type_nbytes(span->type, (batch - 1) * span->batch_stride + span->length);
}

epg_status epg_matmul_desc_layout(const epg_matmul_desc *desc, int32_t operand, epg_layout *layout)
{
	epg_problem p;
	epg_matmul_desc full;
	if (!layout)
		return epg_fail(EPG_INVALID, "layout is NULL");
	if (operand < EPG_OPERAND_A || operand > EPG_OPERAND_BGRAD)
		return epg_fail(EPG_INVALID, "operand is %d, but must be from %d to %d (EPG_OPERAND_…)", operand, EPG_OPERAND_A, EPG_OPERAND_BGRAD);
	epg_status status = epg_problem_from_desc(desc, &p);
	if (status)
		return status;
	epg_desc_read(desc, &full);
	const struct { const epg_view *view; int32_t op; } views[] = {
		{p.swapped ? &p.b : &p.a, full.a.op}, {p.swapped ? &p.a : &p.b, full.b.op}, {&p.c, EPG_OP_N}, {&p.d, EPG_OP_N}, {&p.aux, EPG_OP_N}};
	epg_layout out = {0};
	if (operand == EPG_OPERAND_BIAS && p.epilog & EPG_BIAS)
		layout_of_span(&p.bias, p.batch, &out);
	else if (operand == EPG_OPERAND_BGRAD && epg_epilog_bgrad(p.epilog))
		layout_of_span(&p.bgrad, p.batch, &out);
	else if (operand < EPG_OPERAND_AUX || (operand == EPG_OPERAND_AUX && p.epilog & EPG_AUX))
		layout_of_view(views[operand].view, p.batch, p.swapped, views[operand].op, &out);
	*layout = out;
	return EPG_SUCCESS;
}

epg_status epg_scale_index(const epg_matmul_desc *desc, int32_t operand, int64_t i, int64_t j, int64_t *index)
{
	epg_matmul_desc full;
	epg_status status = epg_desc_read(desc, &full);
	if (status)
		return status;
	const epg_matrix *matrices[] = {&full.a, &full.b, &full.c, &full.d, &full.aux};
	if (!index)
		return epg_fail(EPG_INVALID, "index is NULL");
	if (operand < EPG_OPERAND_A || operand > EPG_OPERAND_AUX)
		return epg_fail(EPG_INVALID, "operand is %d, but must be from %d to %d", operand, EPG_OPERAND_A, EPG_OPERAND_AUX);
	(void)i, (void)j;
	return epg_fail(EPG_UNSUPPORTED, "the scale mode %d of operand %d: this version has no scales", matrices[operand]->scale, operand);
}
