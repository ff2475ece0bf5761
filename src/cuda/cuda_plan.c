/* SPDX-License-Identifier: Apache-2.0
 *
 * The ways of the CUDA backend. A way is a recipe: copies of operands that the vendor does not take as they are, products by
 * the vendor with as much of the epilog as it may do, passes of ours for the rest, sums. What a recipe does is decided here from the
 * problem alone (recipe_of), written down as offsets into one workspace, and carried out by cuda_run.c.
 *
 * A plan has three: the chosen one; one that asks nothing of pointers but their element's alignment; and one without a product,
 * for alpha = 0 and k = 0. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../dtype.h"
#include "../epilog.h"
#include "cuda_recipe.h"

enum { FUSED, SPLIT, PAD, PASS };

/* So many algorithms are asked of the vendor; an H200 has about eight for a problem. */
enum { PROPOSALS = 16 };

const epg_lowering epg_cuda_lowerings[CUDA_NLOWERINGS] = {
	[FUSED] = {"fused", {EPG_CUDA_ALGO_NAMES, NULL}},
	[SPLIT] = {"split", {EPG_CUDA_ALGO_NAMES, NULL}},
	[PAD] = {"pad", {EPG_CUDA_ALGO_NAMES, "whole", NULL}},
	[PASS] = {"pass", {NULL}},
};

/* Most bytes of vendor's workspace (its own advice from compute capability 9 on), and of products that wait for their pass. */
static const int64_t vendor_limit = 32 << 20, safe_vendor_limit = 1 << 20, apart_limit = 64 << 20, safe_apart_limit = 8 << 20;
/* Lines from this length on are computed wrongly by cuBLASLt 13.1. */
static const int64_t line_limit_nbytes = (int64_t)1 << 31;

/* ---- What the vendor takes ---- */

static int64_t round_up(int64_t x, int64_t unit) { return (x + unit - 1) / unit * unit; }
static int64_t size_of(int32_t type) { return epg_type_nbytes(type, 1); }
static bool is_half(int32_t type) { return type == EPG_F16 || type == EPG_BF16; }
static int64_t line_of(const epg_view *v) { return v->trans ? v->cols : v->rows; }
static int64_t lines_of(const epg_view *v) { return v->trans ? v->rows : v->cols; }
static bool same_line_limit(int64_t ld, int32_t type) { return ld * size_of(type) < line_limit_nbytes; }

/* ld as the vendor wants it: at least a line, also where there is but one. */
static int64_t vendor_ld(const epg_view *v)
{
	int64_t line = line_of(v) > 1 ? line_of(v) : 1;
	return lines_of(v) <= 1 ? line : v->ld;
}

/* A or B as they are. */
static bool takes_operand(const epg_view *v)
{
	return !(v->conj && !v->trans) && vendor_ld(v) >= line_of(v) && same_line_limit(vendor_ld(v), v->type);
}

static bool aligned_lines(const epg_view *v, int64_t batch)
{
	return vendor_ld(v) * size_of(v->type) % 16 == 0 && (batch <= 1 || v->batch_stride * size_of(v->type) % 16 == 0);
}

/* C lies as D does. */
static bool c_is_as_d(const epg_problem *p)
{
	return p->c.type == p->d.type && !p->c.trans && vendor_ld(&p->c) == vendor_ld(&p->d) && (p->batch <= 1 || p->c.batch_stride == p->d.batch_stride);
}

/* As planned, C is not read: then it counts as one that lies as D does. An execution with another beta takes the safe recipe. */
static bool c_ignored(const epg_problem *p) { return p->beta[0] == 0 && p->beta[1] == 0 && !(p->flags & EPG_SCALARS_ON_DEVICE); }

/* May the vendor have C? Of different layouts both must have aligned lines: its kernels count on the same alignment for both. */
static bool takes_c(const epg_problem *p)
{
	const epg_view *c = &p->c;
	if (c_ignored(p) || c_is_as_d(p))
		return true;
	return c->type == p->d.type && !c->trans && vendor_ld(c) >= c->rows && same_line_limit(vendor_ld(c), c->type) && aligned_lines(c, p->batch)
		&& aligned_lines(&p->d, p->batch);
}

/* The vendor's bias: per row, of D's type, every item's on a 16-byte boundary (kernels fault below). */
static bool takes_vector(const epg_problem *p, const epg_span *v)
{
	return v->type == p->d.type && (p->batch <= 1 || v->batch_stride * size_of(v->type) % 16 == 0);
}

static bool takes_aux(const epg_problem *p)
{
	int64_t nbits = epg_type_nbits(p->aux.type);
	return !p->aux.trans && (p->batch <= 1 || p->aux.batch_stride * nbits % 128 == 0) && p->aux.ld * nbits % 128 == 0;
}

static bool whole_lines(const epg_view *v) { return line_of(v) * size_of(v->type) % 16 == 0; }

/* Every line of A, B and D begins and ends on a 16-byte boundary. copied: A's and B's begin there by then. */
static bool is_regular(const epg_problem *p, bool copied)
{
	bool planned = p->align_nbytes == 0 || p->align_nbytes >= 16;
	bool begin = aligned_lines(&p->d, p->batch) && (copied || (aligned_lines(&p->a, p->batch) && aligned_lines(&p->b, p->batch)));
	return planned && begin && whole_lines(&p->a) && whole_lines(&p->b) && whole_lines(&p->d);
}

static bool refuse(char *why, const char *reason)
{
	snprintf(why, EPG_WHY_NBYTES, "%s", reason);
	return false;
}

/* Can one vendor's call do the whole epilog? */
static bool takes_epilog(const epg_problem *p, bool copied, char *why)
{
	bool per_row = p->axis == EPG_PER_ROW;
	/* Seen of cuBLASLt 13.1. */
	if (p->epilog & (EPG_BIAS | EPG_BGRAD) && is_half(p->d.type) && !is_regular(p, copied))
		return refuse(why, "cuBLASLt rounds D to 16 bits before the bias, or sums it wrongly, where lines are no multiples of 16 bytes");
	if (!takes_c(p))
		return refuse(why, "C has another order, type or leading dimension than cuBLASLt takes");
	if (!same_line_limit(vendor_ld(&p->d), p->d.type))
		return refuse(why, "d.ld spans 2^31 bytes or more");
	if (epg_type_complex(p->d.type) && p->epilog != EPG_EPILOG_DEFAULT)
		return refuse(why, "cuBLASLt has no epilogs for complex types");
	if (p->compute == EPG_COMPUTE_F64 && epg_epilog_act(p->epilog) == EPG_ACT_GELU)
		return refuse(why, "cuBLASLt's GELU is good to nine digits only in f64");
	if (p->epilog & (EPG_BIAS | EPG_BGRAD) && !per_row)
		return refuse(why, "cuBLASLt has the bias and its gradient along the contiguous dimension of D only");
	if ((p->epilog & EPG_BIAS && !takes_vector(p, &p->bias)) || (epg_epilog_bgrad(p->epilog) && !takes_vector(p, &p->bgrad)))
		return refuse(why, "cuBLASLt has bias and gradient in D's type only, each batch item's on a 16-byte boundary");
	if (p->epilog & EPG_AUX && !takes_aux(p))
		return refuse(why, "cuBLASLt has aux in D's order only, on 16-byte boundaries");
	if (p->epilog & EPG_BGRADA && p->a.trans)
		return refuse(why, "cuBLASLt has bgrada for an A that is not transposed only");
	if (p->epilog & EPG_BGRADB && !p->b.trans)
		return refuse(why, "cuBLASLt has bgradb for a transposed B only");
	if (epg_epilog_bgrad(p->epilog) && p->flags & (EPG_BGRAD_ACCUMULATE | EPG_DETERMINISTIC))
		return refuse(why, "cuBLASLt neither adds to a gradient nor promises the bits of its sums");
	return true;
}

static bool has_product(const epg_problem *p) { return p->m > 0 && p->n > 0 && p->k > 0 && p->batch > 0; }

static bool takes_sizes(const epg_problem *p, char *why)
{
	const struct { const char *name; int64_t value; } sizes[] = {{"m", p->m}, {"n", p->n}, {"k", p->k}, {"batch", p->batch}};
	for (int i = 0; i < 4; i++)
		if (sizes[i].value > INT32_MAX) {
			snprintf(why, EPG_WHY_NBYTES, "%s (of a column-major D) is %lld, but cuBLASLt takes at most %d", sizes[i].name, (long long)sizes[i].value, INT32_MAX);
			return false;
		}
	return true;
}

static bool takes_copy(const epg_view *v) { return same_line_limit(round_up(line_of(v), 16), v->type); }

bool epg_cuda_supports(const void *context, const epg_problem *p, int32_t lowering, char why[EPG_WHY_NBYTES])
{
	(void)context;
	bool a = takes_operand(&p->a), b = takes_operand(&p->b);
	if (epg_type_nbits(p->a.type) == 8)
		return refuse(why, "this version computes products of 8-bit types on the CPU only");
	if (lowering == PASS)
		return !has_product(p) || refuse(why, "there is a product to compute");
	if (!has_product(p))
		return refuse(why, "there is no product to compute");
	if (!takes_sizes(p, why))
		return false;
	if (!same_line_limit(p->m, p->d.type == EPG_F16 || p->d.type == EPG_BF16 ? EPG_F32 : p->d.type))
		return refuse(why, "a column of D spans 2^31 bytes or more, which cuBLASLt does not compute right");
	if (lowering == PAD && (!takes_copy(&p->a) || !takes_copy(&p->b)))
		return refuse(why, "a line of A or B spans 2^31 bytes or more, which cuBLASLt does not compute right");
	if (lowering == PAD)
		return !a || !b || !aligned_lines(&p->a, p->batch) || !aligned_lines(&p->b, p->batch) || refuse(why, "A and B are as cuBLASLt wants them");
	if (!a || !b)
		return refuse(why, "A or B is conjugated without being transposed, broadcast, or has a leading dimension of 2^31 bytes: pad copies it");
	if (lowering == FUSED)
		return takes_epilog(p, false, why);
	char unused[EPG_WHY_NBYTES];
	return p->epilog != EPG_EPILOG_DEFAULT || !takes_epilog(p, false, unused) || refuse(why, "nothing is left for a pass");
}

/* ---- Recipes ---- */

/* D and the aux that is read may be the same memory. */
static bool aux_may_be_d(const epg_problem *p)
{
	return epg_epilog_aux_in(p->epilog) && p->aux.type == p->d.type && !p->aux.trans && p->aux.ld == p->d.ld && (p->batch <= 1 || p->aux.batch_stride == p->d.batch_stride);
}

/* What a recipe is for: pointers as planned; the same where no algorithm takes the bias; pointers of which nothing is known. */
typedef enum recipe_kind { PLAIN, BIAS_APART, SAFE } recipe_kind;

/* Decides between vendor and pass. */
static void share_work(const epg_problem *p, bool whole, recipe_kind kind, bool copied, epg_cuda_recipe *r)
{
	bool safe = kind == SAFE, gelu = epg_epilog_act(p->epilog) == EPG_ACT_GELU, forward = !(p->epilog & EPG_GRAD), c_taken = safe ? c_is_as_d(p) : takes_c(p);
	bool bias = p->epilog & EPG_BIAS, vendor_bias = bias && kind == PLAIN && p->axis == EPG_PER_ROW && takes_vector(p, &p->bias) && c_taken && is_regular(p, copied);
	r->vendor_epilog = whole ? p->epilog : EPG_EPILOG_DEFAULT;
	r->c_as_d = c_taken && !safe && c_ignored(p) && !c_is_as_d(p);
	if (whole)
		return;
	r->pass = p->epilog & (EPG_ACT_MASK | EPG_BIAS | EPG_GRAD) || !c_taken;
	/* A 16-bit D is rounded once: nothing but relu or a derivative may come after that, and no C before that is D (cuda_run.c). */
	r->apart = (is_half(p->d.type) && (!c_taken || safe || (forward && (gelu || (bias && !vendor_bias))))) || (safe && (aux_may_be_d(p) || epg_type_complex(p->d.type)))
		|| !same_line_limit(vendor_ld(&p->d), p->d.type);
	if (is_half(p->d.type) && bias && !r->apart)
		r->vendor_epilog = EPG_EPILOG_BIAS;
	r->pass = r->pass || r->apart;
	r->c_in_pass = r->apart || !c_taken;
	r->z_type = is_half(p->d.type) ? EPG_F32 : p->d.type;
}

/* Columns and items of one product that waits for its pass. */
static void choose_chunks(const epg_problem *p, int64_t limit, epg_cuda_recipe *r)
{
	int64_t column = round_up(p->m, 8) * size_of(r->z_type);
	r->chunk_n = p->n;
	r->chunk_items = p->batch;
	if (!r->apart || column * p->n * p->batch <= limit)
		return;
	r->chunk_items = 1;
	r->chunk_n = limit / column / 16 * 16;
	r->chunk_n = r->chunk_n < 16 ? 16 : r->chunk_n;
	r->chunk_n = r->chunk_n < p->n ? r->chunk_n : p->n;
}

static size_t take(size_t *at, int64_t nbytes)
{
	size_t begin = *at;
	*at += (size_t)round_up(nbytes, CUDA_ALIGNMENT);
	return begin;
}

static int64_t copy_nbytes(const epg_view *v, int64_t batch)
{
	int64_t items = v->batch_stride == 0 ? 1 : batch;
	return epg_cuda_copy_ld(v) * lines_of(v) * items * size_of(v->type);
}

int64_t epg_cuda_copy_ld(const epg_view *v) { return round_up(line_of(v), 16 / (size_of(v->type) < 16 ? size_of(v->type) : 16)); }

/* Lines of partial sums over all chunks, and where everything lies. */
static void lay_out(const epg_cuda_context *context, const epg_problem *p, epg_cuda_recipe *r)
{
	size_t at = 0;
	if (r->copy_a)
		r->a_at = take(&at, copy_nbytes(&p->a, p->batch));
	if (r->copy_b)
		r->b_at = take(&at, copy_nbytes(&p->b, p->batch));
	if (r->apart)
		r->z_at = take(&at, round_up(p->m, 8) * r->chunk_n * r->chunk_items * size_of(r->z_type));
	r->turn = r->pass && epg_epilog_aux_out(p->epilog) && p->aux.type == EPG_BIT && p->aux.trans;
	if (r->turn)
		r->mask_at = take(&at, round_up(p->m, 128) / 8 * p->n * p->batch);
	epg_cuda_sums_of(context, p, r);
	r->partial_at = take(&at, r->parts * r->length * p->batch * (int64_t)(r->wide ? sizeof(double) : sizeof(float)));
	r->vendor_at = at;
	r->nbytes = at;
}

static void sums_over_d(const epg_cuda_context *context, const epg_problem *p, epg_cuda_recipe *r)
{
	int64_t chunks = r->chunk_n > 0 ? (p->n + r->chunk_n - 1) / r->chunk_n : 0;
	r->sums = p->axis == EPG_PER_ROW ? EPG_CUDA_SUM_ROWS : EPG_CUDA_SUM_COLUMNS;
	r->chunk_parts = p->m > 0 && p->n > 0 ? epg_cuda_pass_parts(r->sums, p->m, r->chunk_n, r->chunk_items, context->multiprocessors) : 0;
	r->parts = r->sums == EPG_CUDA_SUM_ROWS ? r->chunk_parts * chunks : r->chunk_parts;
}

/* Sums of op(A) or op(B) over k, that is over the lines of the stored matrix or along them. */
static void sums_over_operand(const epg_cuda_context *context, const epg_problem *p, epg_cuda_recipe *r)
{
	const epg_view *v = p->epilog & EPG_BGRADA ? &p->a : &p->b;
	bool lines_are_summed = (p->epilog & EPG_BGRADA) ? v->trans : !v->trans;
	r->operand = v == &p->a ? EPG_OPERAND_A : EPG_OPERAND_B;
	r->operand_sums = lines_are_summed ? EPG_CUDA_SUM_COLUMNS : EPG_CUDA_SUM_ROWS;
	r->parts = p->k > 0 ? epg_cuda_pass_parts(r->operand_sums, line_of(v), lines_of(v), p->batch, context->multiprocessors) : 0;
}

void epg_cuda_sums_of(const epg_cuda_context *context, const epg_problem *p, epg_cuda_recipe *r)
{
	r->length = p->bgrad.length;
	r->wide = p->compute == EPG_COMPUTE_F64;
	if (r->length == 0 || r->vendor_epilog & (EPG_BGRAD | EPG_BGRADA | EPG_BGRADB))
		r->length = 0;
	else if (p->epilog & EPG_BGRAD)
		sums_over_d(context, p, r);
	else
		sums_over_operand(context, p, r);
}

/* The recipe without its product: sizes and offsets. whole: the vendor does the epilog. */
static epg_cuda_recipe recipe_of(const epg_cuda_context *context, const epg_problem *p, bool pad, bool whole, recipe_kind kind)
{
	bool safe = kind == SAFE;
	int64_t limit = safe ? safe_apart_limit : apart_limit;
	epg_cuda_recipe r = {.product = has_product(p), .alignment = (uint32_t)(safe ? epg_type_alignment(p->a.type) : 16)};
	if (p->align_nbytes && p->align_nbytes < 16 && r.alignment > (uint32_t)p->align_nbytes)
		r.alignment = (uint32_t)p->align_nbytes;
	/* The other half is for copies, masks and sums. */
	if (p->workspace_limit_nbytes >= 0 && p->workspace_limit_nbytes / 2 < limit)
		limit = p->workspace_limit_nbytes / 2;
	/* Of complex types the vendor wants more alignment than their parts have: nothing unaligned reaches it. */
	bool copy_all = safe && epg_type_complex(p->a.type);
	r.copy_a = copy_all || (pad && (!takes_operand(&p->a) || !aligned_lines(&p->a, p->batch)));
	r.copy_b = copy_all || (pad && (!takes_operand(&p->b) || !aligned_lines(&p->b, p->batch)));
	if (copy_all)
		r.alignment = 16;
	share_work(p, whole, kind, pad, &r);
	choose_chunks(p, limit, &r);
	/* Chunks begin at columns of B that only aligned lines keep aligned. */
	if ((r.chunk_n < p->n || r.chunk_items < p->batch) && !(r.copy_b || aligned_lines(&p->b, p->batch)))
		r.alignment = (uint32_t)epg_type_alignment(p->a.type);
	if (r.chunk_items < p->batch && !(r.copy_a || aligned_lines(&p->a, p->batch)))
		r.alignment = (uint32_t)epg_type_alignment(p->a.type);
	lay_out(context, p, &r);
	return r;
}

/* The one without a product: z is beta·C. */
static epg_cuda_recipe bare_recipe(const epg_cuda_context *context, const epg_problem *p)
{
	epg_cuda_recipe r = {.pass = true, .c_in_pass = true, .chunk_n = p->n, .chunk_items = p->batch, .z_type = p->d.type};
	lay_out(context, p, &r);
	return r;
}

/* ---- The product of a recipe ---- */

static void operand_form(const epg_view *v, bool copied, bool *trans, bool *conj, int64_t *ld, int64_t *stride)
{
	*trans = v->trans;
	*conj = v->conj && !copied;
	*ld = copied ? epg_cuda_copy_ld(v) : vendor_ld(v);
	*stride = copied && v->batch_stride ? *ld * lines_of(v) : v->batch_stride;
}

static epg_cuda_form form_of(const epg_problem *p, const epg_cuda_recipe *r, int64_t n, int64_t items)
{
	const epg_span *vector = p->epilog & EPG_BIAS ? &p->bias : &p->bgrad;
	epg_cuda_form f = {
		.m = p->m, .n = n, .k = p->k, .batch = (int32_t)items, .ab_type = p->a.type, .d_type = r->apart ? r->z_type : p->d.type, .compute = p->compute, .scalar = p->scalar,
		.scalars_on_device = p->flags & EPG_SCALARS_ON_DEVICE, .ldd = r->apart ? round_up(p->m, 8) : vendor_ld(&p->d), .ldaux = p->aux.ld,
		.stride_d = r->apart ? round_up(p->m, 8) * n : p->d.batch_stride, .stride_aux = p->aux.batch_stride, .stride_vector = vector->batch_stride,
		.epilog = r->vendor_epilog, .alignment = r->alignment, .sm_count = p->sm_count,
	};
	operand_form(&p->a, r->copy_a, &f.a_trans, &f.a_conj, &f.lda, &f.stride_a);
	operand_form(&p->b, r->copy_b, &f.b_trans, &f.b_conj, &f.ldb, &f.stride_b);
	f.c_type = f.d_type;
	bool as_d = r->c_in_pass || r->c_as_d;
	f.ldc = as_d ? f.ldd : vendor_ld(&p->c);
	f.stride_c = as_d ? f.stride_d : p->c.batch_stride;
	return f;
}

/* Bytes that the vendor may use: what the plan's limit leaves. */
static size_t vendor_nbytes(const epg_problem *p, const epg_cuda_recipe *r, bool safe)
{
	int64_t limit = p->workspace_limit_nbytes, most = safe ? safe_vendor_limit : vendor_limit, left = limit < 0 ? most : limit - (int64_t)r->vendor_at;
	return left < 0 ? 0 : (size_t)(left < most ? left : most);
}

/* The number of columns or items of the last chunk, where it differs from the others; else 0. */
static bool last_chunk(const epg_problem *p, const epg_cuda_recipe *r, int64_t *n, int64_t *items)
{
	*n = p->n % r->chunk_n ? p->n % r->chunk_n : r->chunk_n;
	*items = p->batch % r->chunk_items ? p->batch % r->chunk_items : r->chunk_items;
	return *n != r->chunk_n || *items != r->chunk_items;
}

static epg_status make_products(const epg_cuda_context *context, const epg_problem *p, const epg_cuda_algo *algo, size_t vendor, epg_cuda_recipe *r)
{
	int64_t n, items;
	epg_cuda_form form = form_of(p, r, r->chunk_n, r->chunk_items);
	form.workspace_nbytes = vendor;
	epg_status status = epg_cuda_gemm_make(context, &form, algo, &r->gemm);
	size_t most = r->gemm.workspace_nbytes;
	if (!status && last_chunk(p, r, &n, &items)) {
		form = form_of(p, r, n, items);
		form.workspace_nbytes = vendor;
		status = epg_cuda_gemm_make(context, &form, NULL, &r->last);
		most = r->last.workspace_nbytes > most ? r->last.workspace_nbytes : most;
	}
	r->nbytes = r->vendor_at + (size_t)round_up((int64_t)most, CUDA_ALIGNMENT);
	return status;
}

/* ---- Variants ---- */

static bool is_pad(int32_t lowering) { return lowering == PAD; }
static bool is_whole(const epg_variant *v) { return v->lowering == FUSED || (v->lowering == PAD && v->param[CUDA_NALGO] == 1); }

/* The safe recipe fits the plan's limit. */
static bool safe_fits(const epg_problem *p, const epg_cuda_recipe *safe)
{
	return p->workspace_limit_nbytes < 0 || (int64_t)safe->nbytes <= p->workspace_limit_nbytes;
}

static size_t max_size(size_t x, size_t y) { return x > y ? x : y; }

/* Bytes of workspace of a plan with this recipe, whose product wants 'vendor' bytes. */
static size_t plan_nbytes(const epg_cuda_context *context, const epg_problem *p, bool pad, const epg_cuda_recipe *r, size_t vendor)
{
	size_t nbytes = r->vendor_at + (size_t)round_up((int64_t)vendor, CUDA_ALIGNMENT);
	epg_cuda_recipe bare = bare_recipe(context, p);
	if (has_product(p)) {
		epg_cuda_recipe safe = recipe_of(context, p, pad, false, SAFE);
		if (safe_fits(p, &safe))
			nbytes = max_size(nbytes, safe.vendor_at + vendor_nbytes(p, &safe, true));
	}
	return max_size(nbytes, bare.nbytes);
}

static double recipe_s(const epg_cuda_context *context, const epg_problem *p, const epg_cuda_recipe *r)
{
	double elements = (double)p->batch * (double)p->m * (double)p->n, d = (double)size_of(p->d.type), nbytes = 0, s = 0;
	if (r->product)
		s += epg_cuda_cost_gemm(context, p, r->vendor_epilog);
	if (r->copy_a)
		s += epg_cuda_cost_pass(context, 2 * (double)copy_nbytes(&p->a, p->batch), false);
	if (r->copy_b)
		s += epg_cuda_cost_pass(context, 2 * (double)copy_nbytes(&p->b, p->batch), false);
	nbytes = elements * ((r->apart ? 2 * (double)size_of(r->z_type) : d) + d + (r->c_in_pass ? d : 0) + (p->epilog & EPG_AUX ? (double)epg_type_nbits(p->aux.type) / 8 : 0));
	if (r->pass)
		s += epg_cuda_cost_pass(context, nbytes, r->sums);
	if (r->operand_sums)
		s += epg_cuda_cost_pass(context, (double)p->batch * (double)p->k * (double)r->length * (double)size_of(p->a.type), true);
	return s;
}

static epg_variant variant_of(const epg_cuda_context *context, const epg_problem *p, int32_t lowering, bool whole, const epg_cuda_recipe *r, const epg_cuda_algo *algo)
{
	epg_variant v = {.lowering = lowering, .workspace_nbytes = plan_nbytes(context, p, is_pad(lowering), r, algo->workspace_nbytes)};
	memcpy(v.param, algo->attribute, sizeof algo->attribute);
	if (lowering == PAD)
		v.param[CUDA_NALGO] = whole;
	return v;
}

static int by_cost(const void *x, const void *y)
{
	double a = ((const epg_variant *)x)->cost_s, b = ((const epg_variant *)y)->cost_s;
	return (a > b) - (a < b);
}

/* Where no algorithm takes the bias, or not this one, the pass adds it. */
static bool has_alternative(const epg_cuda_recipe *r, bool whole) { return !whole && r->vendor_epilog == EPG_EPILOG_BIAS; }

/* The vendor's proposals for one recipe, by our cost; the first 'wanted' of them. */
static int32_t variants_of(const epg_cuda_context *context, const epg_problem *p, int32_t lowering, bool whole, int32_t wanted, epg_variant *out, char why[EPG_WHY_NBYTES])
{
	epg_cuda_algo algos[PROPOSALS];
	epg_variant all[PROPOSALS];
	epg_cuda_recipe r;
	epg_cuda_form form;
	int32_t count = 0;
	for (recipe_kind kind = PLAIN; kind == PLAIN || (kind == BIAS_APART && count == 0 && has_alternative(&r, whole)); kind++) {
		r = recipe_of(context, p, is_pad(lowering), whole, kind);
		form = form_of(p, &r, r.chunk_n, r.chunk_items);
		form.workspace_nbytes = vendor_nbytes(p, &r, false);
		count = epg_cuda_gemm_candidates(context, &form, algos, PROPOSALS, why);
	}
	double seconds = recipe_s(context, p, &r);
	for (int32_t i = 0; i < count; i++) {
		all[i] = variant_of(context, p, lowering, whole, &r, &algos[i]);
		all[i].cost_s = seconds * epg_cuda_cost_of_algo(&form, &algos[i], algos[0].waves, i);
	}
	qsort(all, (size_t)count, sizeof *all, by_cost);
	count = count < wanted ? count : wanted;
	memcpy(out, all, (size_t)count * sizeof *all);
	return count;
}

int32_t epg_cuda_variants(const void *state, const epg_problem *p, int32_t lowering, int32_t rigor, epg_variant *out, int32_t capacity, char why[EPG_WHY_NBYTES])
{
	const epg_cuda_context *context = state;
	char unused[EPG_WHY_NBYTES];
	int32_t count = 0, wanted = rigor == EPG_ESTIMATE ? 1 : rigor == EPG_MEASURE ? PROPOSALS / 2 : PROPOSALS;
	if (lowering == PASS) {
		epg_cuda_recipe r = bare_recipe(context, p);
		out[0] = (epg_variant){.lowering = PASS, .cost_s = recipe_s(context, p, &r), .workspace_nbytes = r.nbytes};
		return 1;
	}
	if (lowering == FUSED || (lowering == PAD && takes_epilog(p, true, unused)))
		count = variants_of(context, p, lowering, true, wanted < capacity ? wanted : capacity, out, why);
	if (lowering == SPLIT || (lowering == PAD && (p->epilog != EPG_EPILOG_DEFAULT || !takes_epilog(p, true, unused))))
		count += variants_of(context, p, lowering, false, wanted < capacity - count ? wanted : capacity - count, out + count, why);
	return count;
}

static epg_cuda_algo algo_of(const epg_variant *v)
{
	epg_cuda_algo algo = {.workspace_nbytes = 0};
	memcpy(algo.attribute, v->param, sizeof algo.attribute);
	return algo;
}

/* The recipe of a variant, with its products. */
static epg_status make_main(const epg_cuda_context *context, const epg_problem *p, const epg_variant *v, epg_cuda_recipe *r)
{
	epg_cuda_algo algo = algo_of(v);
	epg_status status = EPG_UNSUPPORTED;
	for (recipe_kind kind = PLAIN; kind == PLAIN || (kind == BIAS_APART && status == EPG_UNSUPPORTED && has_alternative(r, is_whole(v))); kind++) {
		*r = recipe_of(context, p, is_pad(v->lowering), is_whole(v), kind);
		status = make_products(context, p, &algo, vendor_nbytes(p, r, false), r);
	}
	return status;
}

bool epg_cuda_accepts(const void *state, const epg_problem *p, epg_variant *v, char why[EPG_WHY_NBYTES])
{
	const epg_cuda_context *context = state;
	bool pad = is_pad(v->lowering);
	epg_cuda_recipe r = bare_recipe(context, p);
	if (pad && is_whole(v) && !takes_epilog(p, true, why))
		return false;
	if (pad && (v->param[CUDA_NALGO] < 0 || v->param[CUDA_NALGO] > 1))
		return refuse(why, "whole must be 0 or 1");
	for (int i = 0; i < CUDA_NALGO; i++)
		if (v->param[i] < 0 || v->param[i] > UINT32_MAX)
			return refuse(why, "an attribute of the algorithm is no 32-bit number");
	if (v->lowering != PASS && make_main(context, p, v, &r))
		return refuse(why, epg_cuda_core.last_error());
	v->cost_s = recipe_s(context, p, &r);
	v->workspace_nbytes = plan_nbytes(context, p, pad, &r, r.nbytes - r.vendor_at);
	return true;
}

/* ---- Plans ---- */

/* The plan's scalars are wanted on the device: an execution may not bring its own, or adds to a D of 16 bits (cuda_run.c). */
static bool wants_scalars(const epg_cuda_plan *plan)
{
	const epg_problem *p = &plan->problem;
	return p->flags & EPG_SCALARS_ON_DEVICE || (is_half(p->d.type) && plan->main.gemm.staged && !plan->main.c_in_pass && p->beta[0] == 1 && c_is_as_d(p));
}

/* alpha, beta, zero, 16 bytes each. */
static epg_status make_scalars(epg_cuda_plan *plan)
{
	const epg_problem *p = &plan->problem;
	bool narrow = p->scalar == EPG_F32 || p->scalar == EPG_C64;
	double values[3][2] = {{p->alpha[0], p->alpha[1]}, {p->beta[0], p->beta[1]}, {0, 0}};
	char image[48] = {0};
	for (int i = 0; i < 3; i++)
		for (int part = 0; part < 2; part++) {
			float x = (float)values[i][part];
			memcpy(image + 16 * i + (narrow ? 4 : 8) * part, narrow ? (void *)&x : (void *)&values[i][part], narrow ? 4 : 8);
		}
	epg_status status = epg_cuda_alloc(plan->context, sizeof image, false, NULL, &plan->scalars);
	return status ? status : epg_cuda_check(cudaMemcpy(plan->scalars, image, sizeof image, cudaMemcpyHostToDevice), "cudaMemcpy");
}

static epg_status make_recipes(epg_cuda_plan *plan, const epg_variant *v)
{
	const epg_cuda_context *context = plan->context;
	const epg_problem *p = &plan->problem;
	plan->bare = bare_recipe(context, p);
	plan->nbytes = plan->bare.nbytes;
	if (!has_product(p))
		return EPG_SUCCESS;
	epg_status status = make_main(context, p, v, &plan->main);
	plan->nbytes = max_size(plan->nbytes, plan->main.nbytes);
	plan->safe = recipe_of(context, p, is_pad(v->lowering), false, SAFE);
	plan->has_safe = !status && safe_fits(p, &plan->safe) && make_products(context, p, NULL, vendor_nbytes(p, &plan->safe, true), &plan->safe) == EPG_SUCCESS;
	if (plan->has_safe)
		plan->nbytes = max_size(plan->nbytes, plan->safe.nbytes);
	return status;
}

static epg_status fill_plan(epg_cuda_plan *plan, const epg_variant *variant, bool own_workspace)
{
	epg_status status = make_recipes(plan, variant);
	if (!status && wants_scalars(plan))
		status = make_scalars(plan);
	if (!status && own_workspace && plan->nbytes > 0)
		status = epg_cuda_alloc(plan->context, plan->nbytes, false, NULL, &plan->workspace);
	return status;
}

epg_status epg_cuda_plan_create(void *state, const epg_problem *problem, const epg_variant *variant, bool own_workspace, void **out)
{
	epg_cuda_context *context = state;
	int previous;
	epg_cuda_plan *plan = calloc(1, sizeof *plan);
	if (!plan)
		return epg_cuda_fail(EPG_NO_MEMORY, "no memory for a CUDA plan (%zu bytes)", sizeof *plan);
	plan->context = context;
	plan->problem = *problem;
	epg_status status = epg_cuda_enter(context, &previous);
	if (!status) {
		status = fill_plan(plan, variant, own_workspace);
		epg_cuda_leave(context, previous);
	}
	if (status) {
		epg_cuda_plan_destroy(plan);
		return status;
	}
	*out = plan;
	return EPG_SUCCESS;
}

epg_cuda_context *epg_cuda_context_of(const void *plan) { return ((const epg_cuda_plan *)plan)->context; }

void epg_cuda_plan_destroy(void *state)
{
	epg_cuda_plan *plan = state;
	epg_cuda_release(plan->context, plan->workspace, false, NULL);
	epg_cuda_release(plan->context, plan->scalars, false, NULL);
	free(plan);
}

static int32_t launches_of(const epg_problem *p, const epg_cuda_recipe *r)
{
	int64_t chunks = r->chunk_n && r->chunk_items ? ((p->n + r->chunk_n - 1) / r->chunk_n) * ((p->batch + r->chunk_items - 1) / r->chunk_items) : 0;
	int64_t count = r->copy_a + r->copy_b + chunks * (r->product + r->pass) + r->turn + (r->length > 0) + (r->operand_sums != 0);
	return (int32_t)(count < INT32_MAX ? count : INT32_MAX);
}

void epg_cuda_plan_info(const void *state, epg_plan_info_backend *info)
{
	const epg_cuda_plan *plan = state;
	info->workspace_nbytes = plan->nbytes;
	info->workspace_alignment = CUDA_ALIGNMENT;
	info->launches = launches_of(&plan->problem, has_product(&plan->problem) ? &plan->main : &plan->bare);
}

static const char *copies_text(const epg_cuda_recipe *r) { return r->copy_a ? r->copy_b ? "A and B are copied; " : "A is copied; " : r->copy_b ? "B is copied; " : ""; }

void epg_cuda_plan_explain(const void *state, char *text, size_t text_nbytes)
{
	const epg_cuda_plan *plan = state;
	const epg_problem *p = &plan->problem;
	const epg_cuda_recipe *r = has_product(p) ? &plan->main : &plan->bare;
	bool half = is_half(p->d.type);
	const char *rounding = r->apart ? "the product stays in f32 until the pass rounds it once" : !half || !r->pass || !r->product ? "D is rounded once"
		: p->epilog & EPG_GRAD ? "the product is rounded to D's type, and the derivative once more" : "D is rounded once, by the product";
	int used = snprintf(text, text_nbytes, "device: %s, %d multiprocessors\n%sproduct: %s with epilog %s\n%s%s; %s\n", plan->context->name, plan->context->multiprocessors, copies_text(r),
		r->product ? "cuBLASLt" : "none", epg_epilog_name(r->vendor_epilog), r->pass ? "then one pass of epigemm's own for the rest" : "no pass",
		r->length ? ", sums in order" : "", rounding);
	if (r->product && used > 0 && (size_t)used < text_nbytes)
		snprintf(text + used, text_nbytes - (size_t)used, "pointers below %u bytes of alignment: %s\n", r->alignment,
			plan->has_safe ? "another product that needs none, and a pass" : "refused, the workspace limit leaves no room for them");
}
