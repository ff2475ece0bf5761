/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of the contract and the faults that users of such libraries have met, each as a named point with its exact
 * right answer: NaN and signed zero, what must not be read, the order of scalars and bias, axes, masks, gaps, batch
 * strides, complex numbers. test_place has the rules about memory, test_gelu those about accuracy. */
#include "values.h"

static epg_context *context;
static const double nan_ = NAN, inf = INFINITY;
static const int32_t real_types[] = { EPG_F32, EPG_F64 };

enum { A = EPG_OPERAND_A, B = EPG_OPERAND_B, C = EPG_OPERAND_C, D = EPG_OPERAND_D, AUX = EPG_OPERAND_AUX, BIAS = EPG_OPERAND_BIAS, BGRAD = EPG_OPERAND_BGRAD };

static problem open_problem(int32_t type, int64_t m, int64_t n, int64_t k, int32_t epilog)
{
	problem p;
	epg_matmul_desc desc = make_desc(type, m, n, k, EPG_COL, epilog);
	problem_open(&p, &desc, NULL);
	return p;
}

static problem open_line(const char *line)
{
	problem p;
	epg_matmul_desc desc;
	memset(&p, 0, sizeof p);
	if (parse_desc(line, &desc))
		problem_open(&p, &desc, NULL);
	return p;
}

static void put_identity(problem *p, int which)
{
	const oracle_layout *o = &p->x[which].layout;
	put_all(p, which, 0);
	for (int64_t b = 0; b < o->batch; b++)
		for (int64_t i = 0; i < o->rows && i < o->cols; i++)
			oracle_store(o->type, problem_before(p, which), oracle_index(o, b, i, i), (oracle_num){ 1, 0 });
}

/* ---- NaN, zeros and infinities in ReLU ---- */

static int relu_of_nan(int32_t type, int32_t epilog)
{
	problem p = open_problem(type, 2, 2, 2, epilog);
	put(&p, A, V(nan_, 1, -1, 2));
	put_identity(&p, B);
	put_all(&p, BIAS, 0);
	int good = gives(context, &p, D, V(nan_, nan_, 0, 2), 0);
	if (oracle_has_aux(&p.desc)) {
		const oracle_layout *o = &p.x[AUX].layout;
		good &= oracle_load(o->type, problem_after(&p, AUX), oracle_index(o, 0, 1, 0)).re == 0;
		good &= oracle_load(o->type, problem_after(&p, AUX), oracle_index(o, 0, 1, 1)).re == 1;
	}
	problem_close(&p);
	return good;
}

static int relu_of_minus_zero(int32_t type)
{
	problem p = open_problem(type, 1, 1, 1, EPG_EPILOG_RELU_AUX_BIAS);
	put(&p, A, V(-0.0));
	put(&p, B, V(1));
	put(&p, BIAS, V(-0.0));
	int good = gives(context, &p, D, V(0), 0) & holds(&p, AUX, V(1), 0);
	problem_close(&p);
	return good;
}

static int relu_of_infinity(int32_t type)
{
	problem p = open_problem(type, 2, 2, 1, EPG_EPILOG_RELU_AUX);
	put(&p, A, V(inf, -1));
	put(&p, B, V(1, -2));
	int good = gives(context, &p, D, V(inf, 0, 0, 2), 0) & holds(&p, AUX, V(1, 0, 0, 1), 0);
	problem_close(&p);
	return good;
}

/* DRELU selects: a 0 bit gives 0 even where z is NaN or infinite, a 1 bit gives z. */
static int drelu_selects(int32_t type)
{
	problem p = open_problem(type, 2, 3, 1, EPG_EPILOG_DRELU_BGRAD);
	put(&p, A, V(nan_, 1));
	put(&p, B, V(1, inf, -2));
	put(&p, AUX, V(0, 0, 0, 1, 0, 1));
	int good = gives(context, &p, D, V(0, 0, 0, 1, 0, -2), 0) & holds(&p, BGRAD, V(0, -1), 0);
	put(&p, AUX, V(0, 1, 0, 1, 1, 1));
	good &= gives(context, &p, D, V(0, nan_, 0, 1, inf, -2), 0) & holds(&p, BGRAD, V(nan_, inf), 0);
	problem_close(&p);
	return good;
}

/* One NaN in A of a problem that is large enough for other kernels: exactly its row is NaN. */
static int relu_of_nan_large(void)
{
	problem p = open_problem(EPG_F32, 512, 512, 512, EPG_EPILOG_RELU_AUX);
	oracle_store(EPG_F32, problem_before(&p, A), oracle_index(&p.x[A].layout, 0, 300, 200), (oracle_num){ nan_, 0 });
	problem_solve(&p);
	int good = problem_run(context, &p, NULL), count = 0;
	for (int64_t e = 0; e < 512 * 512; e++) {
		int is_nan = isnan(oracle_load(EPG_F32, problem_after(&p, D), e).re);
		count += is_nan;
		good &= is_nan == (e % 512 == 300);
	}
	problem_close(&p);
	return good && count == 512;
}

static void test_relu(void)
{
	static const int32_t epilogs[] = { EPG_EPILOG_RELU, EPG_EPILOG_RELU_BIAS, EPG_EPILOG_RELU_AUX, EPG_EPILOG_RELU_AUX_BIAS };
	for (int t = 0; t < COUNT(real_types); t++) {
		const char *name = epg_type_name(real_types[t]);
		for (int i = 0; i < COUNT(epilogs); i++)
			ok(relu_of_nan(real_types[t], epilogs[i]), "N01: %s %s keeps NaN", name, epg_epilog_name(epilogs[i]));
		ok(relu_of_minus_zero(real_types[t]), "N01: %s relu(-0) is a zero, its mask bit 1", name);
		ok(relu_of_infinity(real_types[t]), "%s relu of infinities", name);
		ok(drelu_selects(real_types[t]), "%s DRELU selects, it does not multiply", name);
	}
	ok(relu_of_nan_large(), "N01: one NaN in A makes one row of 512x512 NaN");
}

/* ---- What must not be read ---- */

static void test_beta_zero(void)
{
	static const int64_t shapes[][3] = { { 1, 1, 1 }, { 7, 5, 3 } };
	static const int32_t types[] = { EPG_F32, EPG_F64, EPG_C64, EPG_C128 };
	for (int t = 0; t < COUNT(types); t++)
		for (int s = 0; s < COUNT(shapes); s++) {
			int good = 1;
			for (int i = 0; i < COUNT(all_epilogs); i++) {
				epg_matmul_desc desc = make_desc(types[t], shapes[s][0], shapes[s][1], shapes[s][2], EPG_COL, all_epilogs[i]);
				good &= check_problem(context, &desc, &(check_options){ .seed = 9, .all_pins = 1 });
				good &= check_problem(context, &desc, &(check_options){ .seed = 9, .all_pins = 1, .null_unread = 1 });
			}
			ok(good, "N02: %s, beta = 0: C of NaN or NULL, D of NaN, %dx%dx%d, all epilogs", epg_type_name(types[t]), (int)shapes[s][0],
				(int)shapes[s][1], (int)shapes[s][2]);
		}
	problem p = open_problem(EPG_F32, 7, 5, 3, EPG_EPILOG_DEFAULT);
	p.desc.beta[0] = 1;
	p.x[C].layout.used = 0; /* so that its pointer is NULL */
	ok(refuses(context, &p, EPG_INVALID), "N02: C = NULL with beta = 1 is refused");
	problem_close(&p);
}

static int alpha_zero(int null)
{
	problem p = open_line("f32 m=4 n=3 k=2 alpha=0 beta=1 epilog=relu_bias");
	p.options.null_unread = null;
	put(&p, C, V(0, -1, -2, 1, 0, -1, 2, 1, 0, 3, 2, 1));
	put_all(&p, BIAS, 0.5);
	int good = gives(context, &p, D, V(0.5, 0, 0, 1.5, 0.5, 0, 2.5, 1.5, 0.5, 3.5, 2.5, 1.5), 0);
	problem_close(&p);
	p = open_line("f32 m=4 n=3 k=2 alpha=0 beta=0 epilog=relu_bias");
	p.options.null_unread = null;
	put(&p, BIAS, V(-1, 0, 1, 2));
	good &= gives(context, &p, D, V(0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2), 0);
	problem_close(&p);
	return good;
}

/* The scalars of execute count, also where they are 0 and the desc's are not: NaNs in A, B or C must not be read. */
static int overridden_by_zero(const char *line)
{
	problem p = open_line(line);
	p.options.override_scalars = 1;
	int good = gives(context, &p, D, NULL, 0);
	problem_close(&p);
	return good;
}

static void test_alpha_zero(void)
{
	ok(alpha_zero(0), "N03: alpha = 0 does not read A and B");
	ok(alpha_zero(1), "N03: alpha = 0 takes NULL for A and B");
	ok(overridden_by_zero("f32 m=7 n=5 k=3 beta=0 epilog=relu_aux_bias"), "beta = 0 at execute does not read C");
	ok(overridden_by_zero("f32 m=7 n=5 k=3 alpha=0 beta=1 epilog=relu_aux_bias"), "alpha = 0 at execute does not read A and B");
	ok(overridden_by_zero("f64 m=7 n=5 k=3 alpha=0 beta=0 epilog=bgrada"), "both = 0 at execute with BGRADA, f64");
	ok(overridden_by_zero("c64 m=7 n=5 k=3 alpha=0 beta=0 epilog=bias"), "both = 0 at execute, c64");
	ok(overridden_by_zero("c128 m=7 n=5 k=3 alpha=0,2 beta=1,1 epilog=bias"), "alpha = 2i at execute, c128");
}

/* ---- Scalars and bias ---- */

static void test_order_of_terms(void)
{
	for (int t = 0; t < COUNT(real_types); t++)
		for (int relu = 0; relu < 2; relu++) {
			problem p = open_problem(real_types[t], 2, 2, 2, relu ? EPG_EPILOG_RELU_BIAS : EPG_EPILOG_BIAS);
			p.desc.alpha[0] = 0.5;
			p.desc.beta[0] = 2;
			put_identity(&p, A);
			put_identity(&p, B);
			put_all(&p, C, 1);
			put(&p, BIAS, relu ? V(-10, 20) : V(10, 20));
			const double *want = relu ? V(0, 0, 22, 22.5) : V(12.5, 12, 22, 22.5);
			int good = gives(context, &p, D, want, 0);
			p.options.override_scalars = 1;
			good &= gives(context, &p, D, want, 0);
			ok(good, "N05: %s %s: bias is scaled by neither alpha nor beta", epg_type_name(real_types[t]), epg_epilog_name(p.desc.epilog));
			problem_close(&p);
		}
}

static void test_scalar_type(void)
{
	static const int32_t types[] = { EPG_F32, EPG_F64, EPG_C64, EPG_C128 };
	for (int t = 0; t < COUNT(types); t++) {
		epg_matmul_desc desc = make_desc(types[t], 3, 4, 5, EPG_COL, EPG_EPILOG_BIAS);
		epg_plan *plan = NULL;
		epg_plan_info info = { 0 };
		int good = epg_plan_create(context, &desc, NULL, &plan) == EPG_SUCCESS && epg_plan_get_info(plan, &info, sizeof info) == EPG_SUCCESS;
		ok(good && info.scalar_type == types[t], "%s: alpha and beta of execute are of that type", epg_type_name(types[t]));
		epg_plan_destroy(plan);
	}
}

static void test_precision(void)
{
	problem p = open_problem(EPG_F32, 64, 64, 64, EPG_EPILOG_DEFAULT);
	put_identity(&p, A);
	put_all(&p, B, 1 + 0x1p-12);
	put_all(&p, D, 0);
	int good = gives(context, &p, D, NULL, 0);
	ok(good && oracle_load(EPG_F32, problem_after(&p, D), 77).re == 1 + 0x1p-12, "D05: f32 products are not rounded to fewer bits");
	problem_close(&p);
}

/* ---- Axis of the bias ---- */

static int bias_axis(int32_t type, int32_t epilog, int order, int axis)
{
	double want[64];
	epg_matmul_desc desc = make_desc(type, 8, 8, 8, order, epilog);
	problem p;
	desc.axis = axis;
	problem_open(&p, &desc, NULL);
	put_all(&p, A, 0);
	put(&p, BIAS, V(1, 2, 3, 4, 5, 6, 7, 8));
	for (int e = 0; e < 64; e++)
		want[e] = axis == EPG_PER_ROW ? e / 8 + 1 : e % 8 + 1;
	int gelu = oracle_act(&desc) == EPG_ACT_GELU;
	for (int e = 0; gelu && e < 64; e++)
		want[e] = (double)oracle_gelu(want[e]);
	int good = gives(context, &p, D, want, gelu ? 1e-5 : 0);
	problem_close(&p);
	return good;
}

static void test_axis(void)
{
	for (int t = 0; t < COUNT(real_types); t++)
		for (int i = 0; i < COUNT(all_epilogs); i++) {
			int good = 1;
			for (int bits = 0; bits < 4 && all_epilogs[i] & EPG_BIAS; bits++)
				good &= bias_axis(real_types[t], all_epilogs[i], bits & 1, bits >> 1);
			if (all_epilogs[i] & EPG_BIAS)
				ok(good, "L01: %s %s: axis of the bias for a square D, both orders", epg_type_name(real_types[t]), epg_epilog_name(all_epilogs[i]));
		}
	epg_matmul_desc desc = make_desc(EPG_F32, 8, 4, 8, EPG_COL, EPG_EPILOG_BIAS);
	epg_plan *plan = NULL;
	desc.bias.length = 4;
	epg_status status = epg_plan_create(context, &desc, NULL, &plan);
	ok(status == EPG_INVALID && strchr(epg_last_error(), '8') && strchr(epg_last_error(), '4'), "L01: a bias of length 4 for 8 rows is refused, naming both");
	epg_plan_destroy(status ? NULL : plan);
}

/* ---- Masks ---- */

static double mask_value(int i, int j) { return (i + j) % 3 - 1; }

static int mask_of_130_rows(int64_t batch)
{
	epg_matmul_desc desc = make_desc(EPG_F32, 130, 3, 130, EPG_COL, EPG_EPILOG_RELU_AUX);
	problem p;
	epg_layout mask;
	int good = 1;
	desc.batch = batch;
	good &= epg_matmul_desc_layout(&desc, AUX, &mask) == EPG_SUCCESS && mask.type == EPG_BIT && mask.ld == 256 && mask.nbytes == 96 * batch;
	problem_open(&p, &desc, NULL);
	put_identity(&p, A);
	for (int64_t b = 0; b < batch; b++)
		for (int e = 0; e < 390; e++)
			oracle_store(EPG_F32, problem_before(&p, B), oracle_index(&p.x[B].layout, b, e % 130, e / 130), (oracle_num){ mask_value(e % 130, e / 130), 0 });
	good &= gives(context, &p, D, NULL, 0);
	const unsigned char *bits = problem_after(&p, AUX);
	for (int64_t b = 0; b < batch; b++)
		for (int j = 0; j < 3; j++)
			for (int i = 0; i < 130; i++)
				good &= (bits[96 * b + 32 * j + i / 8] >> i % 8 & 1) == ((i + j) % 3 != 0);
	good &= bits[96 * batch] == p.x[AUX].before[p.x[AUX].start + 96 * (size_t)batch];
	problem_close(&p);
	return good;
}

static int padding_bits_are_ignored(int64_t batch)
{
	float d[2][4 * 390];
	epg_matmul_desc desc = make_desc(EPG_F32, 130, 3, 2, EPG_COL, EPG_EPILOG_DRELU_BGRAD);
	int good = 1;
	desc.batch = batch;
	for (int fill = 0; fill < 2; fill++) {
		problem p;
		problem_open(&p, &desc, NULL);
		memset(problem_before(&p, AUX), fill ? 0xff : 0, (size_t)p.x[AUX].layout.nbytes);
		for (int64_t b = 0; b < batch; b++)
			for (int e = 0; e < 390; e++)
				oracle_store(EPG_BIT, problem_before(&p, AUX), oracle_index(&p.x[AUX].layout, b, e % 130, e / 130), (oracle_num){ e * 7 % 5 < 2, 0 });
		good &= gives(context, &p, D, NULL, 0);
		memcpy(d[fill], problem_after(&p, D), sizeof(float) * 390 * (size_t)batch);
		problem_close(&p);
	}
	return good && memcmp(d[0], d[1], sizeof(float) * 390 * (size_t)batch) == 0;
}

static void test_mask(void)
{
	ok(mask_of_130_rows(1), "L04: the mask of 130x3: 256 bits a line, 96 bytes, bits as documented");
	ok(mask_of_130_rows(4), "L04: the same for batch 4");
	ok(padding_bits_are_ignored(1), "L04: padding bits of 1 or 0 give the same DRELU_BGRAD");
	ok(padding_bits_are_ignored(4), "L04: the same for batch 4");
}

/* ---- Gaps and batches ---- */

static void test_gaps(void)
{
	static const char *const epilogs[] = { "default", "bias", "relu_aux_bias", "gelu", "drelu_bgrad", "gelu_aux_bias", "dgelu_bgrad" };
	char line[256];
	for (int i = 0; i < COUNT(epilogs); i++) {
		int good = 1;
		for (int beta = 0; beta < 2; beta++) {
			snprintf(line, sizeof line, "f32 m=7 n=5 k=3 batch=3 lda=11 ldb=6 ldc=9 ldd=13 strided=200 stridea=70 beta=%d epilog=%s", beta, epilogs[i]);
			good &= check_line(context, line, &(check_options){ .seed = 5, .offset = 2 + 13, .all_pins = 1 });
		}
		ok(good, "L06: %s writes nothing between the columns and the items, reads no NaN there", epilogs[i]);
	}
}

static void test_batches(void)
{
	problem p = open_line("f32 m=2 n=2 k=1 batch=3 stridea=0 epilog=bias");
	put(&p, A, V(1, 2, 1, 2, 1, 2));
	put(&p, B, V(1, 0, 2, 0, 3, 0));
	put(&p, BIAS, V(0, 0, 10, 0, 20, 0));
	ok(gives(context, &p, D, V(1, 0, 2, 0, 12, 10, 4, 0, 23, 20, 6, 0), 0), "L07: A shared, a bias per item");
	problem_close(&p);
	p = open_line("f32 m=2 n=2 k=1 batch=3 stridea=0 stridebias=0 epilog=bias");
	put(&p, A, V(1, 2, 1, 2, 1, 2));
	put(&p, B, V(1, 0, 2, 0, 3, 0));
	put(&p, BIAS, V(10, 0, 10, 0, 10, 0));
	ok(gives(context, &p, D, V(11, 10, 2, 0, 12, 10, 4, 0, 13, 10, 6, 0), 0), "L07: A and the bias shared");
	problem_close(&p);
	p = open_line("f32 m=2 n=2 k=1 batch=3");
	p.desc.d.batch_stride = 0;
	ok(refuses(context, &p, EPG_INVALID), "L07: a D of stride 0 in a batch of 3 is refused");
	problem_close(&p);
	ok(check_line(context, "f32 m=2 n=2 k=1 strided=0 stridea=1 stridebias=0 epilog=bias", NULL), "L07: any stride is good for a batch of 1");
	p = open_line("f32 m=2 n=2 k=2 batch=2 epilog=bgrada");
	put(&p, A, V(1, 2, 3, 4, 5, 6, 7, 8));
	ok(gives(context, &p, BGRAD, V(3, 7, 11, 15), 0), "gradients are sums within an item, never over the batch");
	problem_close(&p);
}

static void test_accumulate(void)
{
	problem p = open_line("f32 m=2 n=3 k=1 epilog=drelu_bgrad flags=bgrad_accumulate");
	put(&p, A, V(1, 2));
	put(&p, B, V(1, 2, 4));
	put(&p, AUX, V(1, 1, 0, 0, 1, 1));
	put(&p, BGRAD, V(100, 200));
	ok(gives(context, &p, BGRAD, V(103, 212), 0), "BGRAD_ACCUMULATE adds to the gradient");
	p.desc.flags = 0;
	ok(gives(context, &p, BGRAD, V(3, 12), 0), "without it the gradient is overwritten");
	problem_close(&p);
	p = open_line("f64 m=2 n=0 k=2 epilog=bgrada flags=bgrad_accumulate");
	put(&p, A, V(1, 2, 3, 4));
	put(&p, BGRAD, V(10, 20));
	ok(gives(context, &p, BGRAD, V(13, 27), 0), "BGRADA accumulates also where D is empty");
	problem_close(&p);
	p = open_line("f32 m=2 n=0 k=3 epilog=drelu_bgrad flags=bgrad_accumulate");
	put(&p, BGRAD, V(10, 20));
	ok(gives(context, &p, BGRAD, V(10, 20), 0), "sums over an empty D add nothing");
	p.desc.flags = 0;
	ok(gives(context, &p, BGRAD, V(0, 0), 0), "sums over an empty D are zeros");
	problem_close(&p);
}

/* ---- Complex numbers and f64 ---- */

static int complex_product(int32_t type, int opa, int opb, double re, double im)
{
	problem p = open_problem(type, 1, 1, 1, EPG_EPILOG_DEFAULT);
	p.desc.a.op = opa;
	p.desc.b.op = opb;
	put(&p, A, V(1, 2));
	put(&p, B, V(3, -1));
	int good = gives(context, &p, D, V(re, im), 0);
	problem_close(&p);
	return good;
}

static int ones(int bits)
{
	epg_matmul_desc desc = make_desc(EPG_C64, 2, 3, 1, EPG_COL, EPG_EPILOG_DEFAULT);
	problem p;
	desc.b.op = EPG_OP_C;
	desc.a.order = bits & 1;
	desc.b.order = bits >> 1 & 1;
	desc.d.order = bits >> 2 & 1;
	for (int i = 0; bits & 8 && i < 3; i++) {
		epg_matrix *x[] = { &desc.a, &desc.b, &desc.d };
		oracle_layout o;
		oracle_get_layout(&desc, i == 2 ? D : i, &o);
		x[i]->ld = o.ld + 5;
	}
	problem_open(&p, &desc, NULL);
	put_all(&p, A, 1);
	put_all(&p, B, 1);
	int good = gives(context, &p, D, V(1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0), 0);
	problem_close(&p);
	return good;
}

static void test_complex(void)
{
	static const double want[4][4][2] = { /* opa, opb: N T C J */
		{ { 5, 5 }, { 5, 5 }, { 1, 7 }, { 1, 7 } }, { { 5, 5 }, { 5, 5 }, { 1, 7 }, { 1, 7 } },
		{ { 1, -7 }, { 1, -7 }, { 5, -5 }, { 5, -5 } }, { { 1, -7 }, { 1, -7 }, { 5, -5 }, { 5, -5 } } };
	for (int32_t type = EPG_C64; type <= EPG_C128; type++) {
		int good = 1;
		for (int ops = 0; ops < 16; ops++)
			good &= complex_product(type, ops >> 2, ops & 3, want[ops >> 2][ops & 3][0], want[ops >> 2][ops & 3][1]);
		ok(good, "D07: %s: the sixteen pairs of ops on one number", epg_type_name(type));
		problem p = open_problem(type, 1, 1, 1, EPG_EPILOG_BIAS);
		put(&p, A, V(1, 2));
		put(&p, B, V(3, -1));
		put(&p, BIAS, V(1, 1));
		ok(gives(context, &p, D, V(6, 6), 0), "D06: %s with a bias", epg_type_name(type));
		problem_close(&p);
		p = open_problem(type, 2, 2, 2, EPG_EPILOG_RELU);
		ok(refuses(context, &p, EPG_UNSUPPORTED) && strlen(epg_last_error()) > 20, "D06: %s with ReLU is refused with a sentence", epg_type_name(type));
		problem_close(&p);
	}
	int good = 1;
	for (int bits = 0; bits < 16; bits++)
		good &= ones(bits);
	ok(good, "D07: ones, op C, orders and leading dimensions mixed");
	for (int i = 0; i < COUNT(all_epilogs); i++) {
		epg_matmul_desc desc = make_desc(EPG_F64, 3, 5, 4, EPG_COL, all_epilogs[i]);
		ok(check_problem(context, &desc, &(check_options){ .data = DATA_REALS, .seed = 6, .all_pins = 1 }), "D06: f64 3x4x5 %s", epg_epilog_name(all_epilogs[i]));
	}
	problem p = open_line("f32 m=2 n=2 k=3 opa=C opb=C");
	put(&p, A, V(1, 4, 2, 5, 3, 6)); /* op(A) = [1 2 3; 4 5 6] */
	put(&p, B, V(1, 0, 1, 0, 1, 0));
	ok(gives(context, &p, D, V(4, 2, 10, 5), 0), "D07: C of real numbers is T");
	problem_close(&p);
}

int main(void)
{
	const char *why = "";
	context = test_context(0, &why);
	if (!context)
		return without_context(why);
	test_relu();
	test_beta_zero();
	test_alpha_zero();
	test_order_of_terms();
	test_scalar_type();
	test_precision();
	test_axis();
	test_mask();
	test_gaps();
	test_batches();
	test_accumulate();
	test_complex();
	epg_context_destroy(context);
	return done_testing();
}
