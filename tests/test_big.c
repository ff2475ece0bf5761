/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers beyond 32 bits with little memory: leading dimensions and batch strides of more than 2^31 elements in sparse
 * mappings, k beyond 2^31 and 2^32 through operands of one broadcast element (with EPIGEMM_TEST_LONG=1), tall matrices, size queries beyond 2^31
 * bytes, and sizes that no 64-bit count of bytes can hold, which must be refused. CPU only, but for the queries. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* MAP_ANONYMOUS, MAP_NORESERVE */
#endif
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "values.h"

enum { A = EPG_OPERAND_A, B = EPG_OPERAND_B, C = EPG_OPERAND_C, D = EPG_OPERAND_D };

static epg_context *context;

static int is_cpu(void)
{
	const char *backend = getenv("EPIGEMM_TEST_BACKEND");
	return !backend || !*backend || !strcmp(backend, "cpu");
}

/* ---- Sparse operands ---- */

static void *sparse(int64_t nbytes)
{
	void *p = mmap(NULL, (size_t)nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

typedef struct {
	epg_matmul_desc desc;
	oracle_layout layout[4];
	void *memory[4];
} sparse_problem;

static int open_sparse(sparse_problem *p, const char *line)
{
	if (!parse_desc(line, &p->desc))
		return 0;
	for (int which = A; which <= D; which++) {
		oracle_get_layout(&p->desc, which, &p->layout[which]);
		p->memory[which] = sparse(p->layout[which].nbytes + 4096);
		if (!p->memory[which])
			return 0;
	}
	for (int which = A; which <= C; which++) {
		const oracle_layout *o = &p->layout[which];
		for (int64_t b = 0; b < o->batch; b++)
			for (int64_t e = 0; e < o->rows * o->cols; e++)
				oracle_store(o->type, p->memory[which], oracle_index(o, b, e / o->cols, e % o->cols), (oracle_num){ (double)((e * 5 + which + b) % 7 - 3), 0 });
	}
	return 1;
}

static void close_sparse(sparse_problem *p)
{
	for (int which = A; which <= D; which++)
		if (p->memory[which])
			munmap(p->memory[which], (size_t)p->layout[which].nbytes + 4096);
}

/* 1: right; 0: wrong; -1: refused by the library. */
static int run_sparse(sparse_problem *p)
{
	const oracle_layout *o = &p->layout[D];
	oracle_inputs in = { p->memory[A], p->memory[B], p->memory[C], NULL, NULL, NULL };
	oracle_result r;
	epg_operands x;
	int good = oracle_solve(&p->desc, &in, &r);
	epg_operands_init(&x, sizeof x);
	x.a = in.a, x.b = in.b, x.c = in.c, x.d = p->memory[D];
	epg_status status = epg_matmul(context, &p->desc, &x, NULL);
	if (status)
		diag("%s: %s", epg_status_string(status), epg_last_error());
	for (int64_t e = 0; good && e < r.count; e++)
		good &= oracle_load(o->type, x.d, oracle_index(o, e / (r.m * r.n), e % r.m, e / r.m % r.n)).re == r.d[e].re;
	oracle_free(&r);
	return status == EPG_UNSUPPORTED || status == EPG_NO_MEMORY ? -1 : good && !status;
}

static void test_sparse(const char *line)
{
	sparse_problem p = { 0 };
	if (!is_cpu())
		skip("host memory", "%s", line);
	else if (!open_sparse(&p, line))
		skip("no sparse mapping of this size here", "%s", line);
	else
		ok(run_sparse(&p) == 1, "O01: %s", line);
	close_sparse(&p);
}

/* ---- k beyond 32 bits: one element of A and B, ld 0, in a child whose memory is limited ---- */

static int child_sums(int64_t k)
{
	double a = 1, b = 1, d = 0;
	const struct rlimit limit = { (rlim_t)4 << 30, (rlim_t)4 << 30 };
	epg_matmul_desc desc = make_desc(EPG_F64, 1, 1, k, EPG_COL, EPG_EPILOG_DEFAULT);
	desc.a.ld = desc.b.ld = 0;
	desc.b.order = EPG_ROW;
	epg_operands x;
	epg_operands_init(&x, sizeof x);
	x.a = &a, x.b = &b, x.d = &d;
	setrlimit(RLIMIT_AS, &limit);
	alarm(120);
	epg_context *own = test_context(1, NULL);
	epg_status status = own ? epg_matmul(own, &desc, &x, NULL) : EPG_NO_BACKEND;
	if (status)
		diag("%s: %s", epg_status_string(status), epg_last_error());
	if (!status && d != (double)k)
		diag("the sum is %.17g", d);
	if (status == EPG_UNSUPPORTED || status == EPG_NO_MEMORY || status == EPG_NO_BACKEND)
		return 2;
	return status || d != (double)k;
}

static void test_long_k(int64_t k)
{
	int result = 1;
	if (!is_cpu() || !getenv("EPIGEMM_TEST_LONG")) {
		skip("takes half a minute: set EPIGEMM_TEST_LONG=1", "O03: k = %lld", (long long)k);
		return;
	}
	fflush(stdout);
	pid_t child = fork();
	if (child == 0)
		_exit(child_sums(k));
	int good = child > 0 && waitpid(child, &result, 0) == child && WIFEXITED(result);
	if (good && WEXITSTATUS(result) == 2)
		skip("refused by the library or for want of memory", "O03: k = %lld", (long long)k);
	else
		ok(good && WEXITSTATUS(result) == 0, "O03: a sum of k = %lld ones", (long long)k);
}

/* ---- Extents of 2^40 where nothing has to be read or written ---- */

static void test_empty(const char *line, epg_status want)
{
	epg_matmul_desc desc;
	epg_operands x;
	epg_operands_init(&x, sizeof x);
	epg_status status = parse_desc(line, &desc) ? epg_matmul(context, &desc, &x, NULL) : EPG_INTERNAL;
	ok(status == want, "%s: %s", line, epg_status_string(want));
	if (status != want)
		diag("%s: %s", epg_status_string(status), epg_last_error());
}

static void test_alpha_zero(void)
{
	epg_matmul_desc desc;
	void *d = NULL;
	float got[4] = { 0 }, want[4] = { 3, 3, 3, 3 };
	epg_operands x;
	epg_operands_init(&x, sizeof x);
	int good = parse_desc("f32 m=2 n=2 k=1099511627776 alpha=0 beta=1", &desc) && epg_malloc(context, sizeof got, &d) == EPG_SUCCESS;
	good = good && epg_upload(context, d, want, sizeof want, NULL) == EPG_SUCCESS;
	x.c = x.d = d;
	epg_status status = good ? epg_matmul(context, &desc, &x, NULL) : EPG_INTERNAL;
	epg_synchronize(context, NULL);
	epg_download(context, got, d, sizeof got, NULL);
	ok(status == EPG_SUCCESS && !memcmp(got, want, sizeof got), "alpha = 0 with k = 2^40");
	if (status)
		diag("%s: %s", epg_status_string(status), epg_last_error());
	epg_free(context, d);
}

/* ---- Tall: 655360×10 times 10×10 ones, bias per column ---- */

static int tall_is_right(const epg_matmul_desc *desc, const float *d, int64_t m)
{
	for (int64_t e = 0; e < 10 * m; e++) {
		float want = 10 + (float)(desc->d.order == EPG_COL ? e / m : e % 10);
		if (!(fabsf(d[e] - want) <= (oracle_act(desc) == EPG_ACT_GELU ? 2e-5f : 0)))
			return 0;
	}
	return 1;
}

static epg_status upload_filled(void **to, int64_t nbytes, float first, float step)
{
	float *host = malloc((size_t)nbytes + 4);
	epg_status status = host ? epg_malloc(context, (size_t)nbytes, to) : EPG_NO_MEMORY;
	for (int64_t i = 0; host && i < nbytes / 4; i++)
		host[i] = first + step * (float)i;
	if (!status)
		status = epg_upload(context, *to, host, (size_t)nbytes, NULL);
	free(host);
	return status;
}

static void test_tall(int32_t epilog, int order)
{
	int64_t m = 655360;
	epg_matmul_desc desc = make_desc(EPG_F32, m, 10, 10, order, epilog);
	void *a = NULL, *b = NULL, *bias = NULL, *d = NULL, *aux = NULL;
	float *got = calloc((size_t)m * 10, 4);
	oracle_layout mask;
	epg_operands x;
	desc.axis = EPG_PER_COLUMN;
	oracle_get_layout(&desc, EPG_OPERAND_AUX, &mask);
	epg_status status = upload_filled(&a, m * 40, 1, 0) || upload_filled(&b, 400, 1, 0) || upload_filled(&bias, 40, 0, 1)
		|| upload_filled(&d, m * 40, NAN, 0) || upload_filled(&aux, mask.nbytes, 0, 0) ? EPG_NO_MEMORY : EPG_SUCCESS;
	epg_operands_init(&x, sizeof x);
	x.a = a, x.b = b, x.d = d, x.bias = bias;
	x.aux = mask.used ? aux : NULL;
	if (!status)
		status = epg_matmul(context, &desc, &x, NULL);
	epg_synchronize(context, NULL);
	epg_download(context, got, d, (size_t)m * 40, NULL);
	if (!ok(!status && tall_is_right(&desc, got, m), "O01: 655360x10 %s %s", epg_epilog_name(epilog), order == EPG_COL ? "col" : "row"))
		diag("%s: %s", epg_status_string(status), epg_last_error());
	epg_free(context, a), epg_free(context, b), epg_free(context, bias), epg_free(context, d), epg_free(context, aux);
	free(got);
}

/* ---- Queries ---- */

static void test_query(const char *line, int operand, int64_t want)
{
	epg_matmul_desc desc;
	epg_layout layout;
	epg_status status = parse_desc(line, &desc) ? epg_matmul_desc_layout(&desc, operand, &layout) : EPG_INTERNAL;
	ok(status == EPG_SUCCESS && layout.nbytes == want, "%s: operand %d has %lld bytes", line, operand, (long long)want);
	if (status)
		diag("%s: %s", epg_status_string(status), epg_last_error());
}

static void test_overflow(const char *line)
{
	epg_matmul_desc desc;
	epg_layout layout;
	epg_plan *plan = NULL;
	if (!parse_desc(line, &desc)) {
		ok(0, "%s is understood", line);
		return;
	}
	epg_status by_plan = epg_plan_create(context, &desc, NULL, &plan), by_layout = epg_matmul_desc_layout(&desc, D, &layout);
	ok((by_plan == EPG_INVALID || by_plan == EPG_UNSUPPORTED) && by_layout == by_plan && !plan, "%s: refused by plan and layout", line);
	if (!by_plan || !by_layout)
		diag("plan: %s, layout: %s", epg_status_string(by_plan), epg_status_string(by_layout));
	epg_plan_destroy(by_plan ? NULL : plan);
}

static void test_queries(void)
{
	test_query("f32 m=131072 n=131072 k=1 epilog=relu_aux", EPG_OPERAND_AUX, (int64_t)1 << 31);
	test_query("f32 m=1048577 n=1048577 k=1 epilog=relu_aux", EPG_OPERAND_AUX, (int64_t)1048577 * 1048704 / 8);
	test_query("f32 m=131072 n=131072 k=1 epilog=drelu batch=64", EPG_OPERAND_AUX, (int64_t)1 << 37);
	test_query("f32 m=65536 n=65536 k=1 epilog=gelu_aux", EPG_OPERAND_AUX, (int64_t)1 << 34);
	test_query("f32 m=65536 n=65536 k=65536", D, (int64_t)1 << 34);
	test_query("f64 m=4294967296 n=3 k=1", D, (int64_t)3 << 35);
	test_query("f32 m=1073741824 n=1 k=1073741824", A, (int64_t)1 << 62);
	test_query("f32 m=3 n=2 k=2 lda=4294967300", A, (4294967300 + 3) * 4);
	test_query("c128 m=2 n=2 k=2 batch=3 stridea=4294967300", A, (2 * 4294967300 + 4) * 16);
	test_overflow("f32 m=2147483648 n=1 k=2147483648");
	test_overflow("f32 m=1099511627776 n=1099511627776 k=1");
	test_overflow("c128 m=1073741824 n=1073741824 k=1");
	test_overflow("f32 m=2 n=2 k=3 lda=4611686018427387904");
	test_overflow("f32 m=2 n=2 k=3 ldd=9223372036854775807");
	test_overflow("f32 m=2 n=2 k=3 batch=1099511627776 strided=1099511627776");
	test_overflow("f32 m=2 n=2 k=3 batch=9223372036854775807");
	test_overflow("f32 m=9223372036854775807 n=1 k=1 epilog=relu_aux");
	test_overflow("f32 m=9223372036854775807 n=2 k=0 epilog=gelu_aux");
}

int main(void)
{
	const char *why = "";
	context = test_context(0, &why);
	if (!context)
		return without_context(why);
	test_queries();
	test_empty("f32 m=1099511627776 n=0 k=5", EPG_SUCCESS);
	test_empty("f32 m=0 n=1099511627776 k=5", EPG_SUCCESS);
	test_empty("f32 m=0 n=0 k=1099511627776 epilog=relu_aux_bias batch=4096", EPG_SUCCESS);
	test_empty("f32 m=5 n=4 k=3 batch=0", EPG_SUCCESS);
	test_alpha_zero();
	test_sparse("f32 m=2 n=2 k=3 lda=1073741824");
	test_sparse("f32 m=2 n=3 k=2 ldb=1073741824 opb=N");
	test_sparse("f32 m=2 n=3 k=2 ldc=1073741824 ldd=1073741824 beta=1 epilog=relu");
	test_sparse("f64 m=3 n=2 k=2 lda=1073741824 order=row");
	test_sparse("f32 m=2 n=3 k=2 lda=4294967300");
	test_sparse("f32 m=2 n=2 k=3 ldb=4294967300 opb=T");
	test_sparse("f32 m=2 n=2 k=3 ldd=4294967300");
	test_sparse("f32 m=2 n=2 k=3 ldc=4294967300 beta=1 orderc=row");
	test_sparse("f32 m=2 n=2 k=3 batch=3 stridea=2147483653 strided=2147483655");
	test_sparse("f64 m=20 n=30 k=2 lda=2147483648 ldd=2147483649 epilog=relu");
	for (int i = 0; i < 16; i++)
		if (all_epilogs[i] & EPG_BIAS)
			test_tall(all_epilogs[i], i & 1);
	test_long_k(((int64_t)1 << 31) + 5);
	test_long_k(((int64_t)1 << 32) + 1);
	epg_context_destroy(context);
	return done_testing();
}
