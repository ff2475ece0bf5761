/* SPDX-License-Identifier: Apache-2.0
 *
 * OpenBLAS, called so that each call computes in its caller's thread. Its own threads are never used: D is shared out by
 * us, which gives every flavour the same partition and keeps the pools of two runtimes from spinning against each other.
 *
 *   pthread  openblas_set_num_threads(1) holds for the process, so the first execution that comes in sets it and the last
 *            that leaves puts the application's number back.
 *   openmp   it asks omp_get_max_threads() and omp_in_parallel(): the calling thread's own setting is made 1 for the
 *            call; openblas_set_num_threads, which some versions turn into a global change or a deadlock, is not called.
 *   serial   nothing to do.
 *
 * The number of calls that run at once is limited to what the BLAS was built for: beyond it, it ends the process. A serial
 * build that does not say that it locks its buffers gets one call at a time. */
#include "../half.h"
#include "cpu.h"

#include <cblas.h>
#include <limits.h>
#include <omp.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONJ_NO_TRANS = 114 }; /* CblasConjNoTrans, an extension that OpenBLAS has */

static cpu_blas_facts facts;
static pthread_once_t facts_once = PTHREAD_ONCE_INIT;
static sem_t slots;

static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER;
static int inside;             /* executions between enter and leave */
static int application_threads; /* to put back; 0: nothing changed */

/* A fork waits until no call is under way: a child that inherits a lock of the BLAS, held by a thread that it does not have,
 * would wait for ever. In the child the executions of other threads are gone. */
static pthread_mutex_t fork_lock = PTHREAD_MUTEX_INITIALIZER;

static void take_slot(void)
{
	while (sem_wait(&slots))
		; /* interrupted by a signal */
}

static void before_fork(void)
{
	pthread_mutex_lock(&fork_lock);
	pthread_mutex_lock(&threads_lock);
	for (int i = 0; i < facts.max_calls; i++)
		take_slot();
}

static void after_fork(void)
{
	for (int i = 0; i < facts.max_calls; i++)
		sem_post(&slots);
	pthread_mutex_unlock(&threads_lock);
	pthread_mutex_unlock(&fork_lock);
}

static void in_child(void)
{
	inside = 0;
	sem_init(&slots, 0, (unsigned)facts.max_calls);
	pthread_mutex_init(&threads_lock, NULL);
	pthread_mutex_init(&fork_lock, NULL);
}

/* Another BLAS than the one built against may be in the process. This n is 2 for 32-bit integers and negative for 64-bit ones, for
 * which isamax answers 0 and touches no memory. */
static int32_t running_int_nbits(void)
{
	typedef size_t isamax_of_any(int64_t n, const float *x, int64_t incx);
	const float x[2] = {1, 5};
	isamax_of_any *isamax = (isamax_of_any *)(void (*)(void))cblas_isamax;
	return isamax(-4294967294LL, x, 1) == 1 ? 32 : 64;
}

/* The configuration reads "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH … MAX_THREADS=64". */
static void read_facts(void)
{
	static const char *const flavours[] = {"serial", "pthread", "openmp"};
	const char *config = openblas_get_config(), *max = strstr(config, "MAX_THREADS=");
	const char *number = strchr(config, ' ');
	int parallel = openblas_get_parallel();
	snprintf(facts.version, sizeof facts.version, "%.*s", number ? (int)(number + 1 + strcspn(number + 1, " ") - config) : 40, config);
	snprintf(facts.core, sizeof facts.core, "%s", openblas_get_corename());
	facts.parallel = parallel;
	facts.flavour = parallel >= 0 && parallel <= 2 ? flavours[parallel] : "unknown";
	facts.int_nbits = running_int_nbits();
	facts.max_dim = sizeof(blasint) == 8 ? INT64_MAX / 64 : INT_MAX;
	facts.max_calls = max ? atoi(max + strlen("MAX_THREADS=")) : 0;
	if (facts.max_calls < 1)
		facts.max_calls = parallel == 0 && !strstr(config, "USE_LOCKING") && !strstr(config, "USE_TLS") ? 1 : 16;
	sem_init(&slots, 0, (unsigned)facts.max_calls);
	pthread_atfork(before_fork, after_fork, in_child);
}

const cpu_blas_facts *epg_cpu_blas(void)
{
	pthread_once(&facts_once, read_facts);
	return &facts;
}

void epg_cpu_blas_enter(cpu_blas_guard *guard)
{
	*guard = (cpu_blas_guard){0};
	if (facts.parallel == 2 && !omp_in_parallel()) {
		guard->omp_threads = omp_get_max_threads();
		if (guard->omp_threads > 1)
			omp_set_num_threads(1);
	}
	if (facts.parallel != 1)
		return;
	guard->counted = true;
	pthread_mutex_lock(&threads_lock);
	if (inside++ == 0 && application_threads == 0) {
		int now = openblas_get_num_threads();
		if (now > 1) {
			application_threads = now;
			openblas_set_num_threads(1);
		}
	}
	pthread_mutex_unlock(&threads_lock);
}

void epg_cpu_blas_leave(const cpu_blas_guard *guard)
{
	if (guard->omp_threads > 1)
		omp_set_num_threads(guard->omp_threads);
	if (!guard->counted)
		return;
	pthread_mutex_lock(&threads_lock);
	if (--inside == 0 && application_threads > 0) {
		openblas_set_num_threads(application_threads);
		application_threads = 0;
	}
	pthread_mutex_unlock(&threads_lock);
}

static CBLAS_TRANSPOSE trans_of(bool trans, bool conj)
{
	if (conj)
		return trans ? CblasConjTrans : (CBLAS_TRANSPOSE)CONJ_NO_TRANS;
	return trans ? CblasTrans : CblasNoTrans;
}

/* One call; every size fits the BLAS's integers. */
static void gemm_call(const cpu_gemm_args *x, const void *a, const void *b, int64_t k, const double beta[2])
{
	CBLAS_TRANSPOSE ta = trans_of(x->a_trans, x->a_conj), tb = trans_of(x->b_trans, x->b_conj);
	blasint m = (blasint)x->m, n = (blasint)x->n, kk = (blasint)k, lda = (blasint)x->lda, ldb = (blasint)x->ldb, ldc = (blasint)x->ldc;
	const float alpha32[2] = {(float)x->alpha[0], (float)x->alpha[1]}, beta32[2] = {(float)beta[0], (float)beta[1]};
	switch (x->type) {
	case EPG_F32:
		cblas_sgemm(CblasColMajor, ta, tb, m, n, kk, alpha32[0], a, lda, b, ldb, beta32[0], x->c, ldc);
		break;
	case EPG_F64:
		cblas_dgemm(CblasColMajor, ta, tb, m, n, kk, x->alpha[0], a, lda, b, ldb, beta[0], x->c, ldc);
		break;
	case EPG_C64:
		cblas_cgemm(CblasColMajor, ta, tb, m, n, kk, alpha32, a, lda, b, ldb, beta32, x->c, ldc);
		break;
	default:
		cblas_zgemm(CblasColMajor, ta, tb, m, n, kk, x->alpha, a, lda, b, ldb, beta, x->c, ldc);
		break;
	}
}

/* y = alpha·op(M)·v + beta·y, M as stored; y is set to 0 first where it must not be read: not every version ignores it then. */
static void gemv_call(const cpu_gemm_args *x, bool trans, int64_t rows, int64_t cols, const void *matrix, int64_t ld, const void *v, int64_t v_step, int64_t y_step, const double beta[2])
{
	CBLAS_TRANSPOSE t = trans ? CblasTrans : CblasNoTrans;
	blasint r = (blasint)rows, c = (blasint)cols, lda = (blasint)ld, incv = (blasint)v_step, incy = (blasint)y_step;
	int64_t length = trans ? cols : rows;
	for (int64_t i = 0; beta[0] == 0 && i < length; i++)
		epg_store_real(x->type, x->c, i * y_step, 0);
	if (x->type == EPG_F32)
		cblas_sgemv(CblasColMajor, t, r, c, (float)x->alpha[0], matrix, lda, v, incv, (float)beta[0], x->c, incy);
	else
		cblas_dgemv(CblasColMajor, t, r, c, x->alpha[0], matrix, lda, v, incv, beta[0], x->c, incy);
}

/* A product with one column or one row is a matrix times a vector, which a gemm packs as if it were large. */
static void product_call(const cpu_gemm_args *x, const void *a, const void *b, int64_t k, const double beta[2])
{
	bool real = x->type == EPG_F32 || x->type == EPG_F64;
	if (real && x->n == 1)
		gemv_call(x, x->a_trans, x->a_trans ? k : x->m, x->a_trans ? x->m : k, a, x->lda, b, x->b_trans ? x->ldb : 1, 1, beta);
	else if (real && x->m == 1)
		gemv_call(x, !x->b_trans, x->b_trans ? x->n : k, x->b_trans ? k : x->n, b, x->ldb, a, x->a_trans ? 1 : x->lda, x->ldc, beta);
	else
		gemm_call(x, a, b, k, beta);
}

void epg_cpu_blas_gemm(const cpu_gemm_args *x)
{
	static const double one[2] = {1, 0};
	int64_t element = x->type == EPG_F32 ? 4 : x->type == EPG_C128 ? 16 : 8;
	int64_t a_step = (x->a_trans ? 1 : x->lda) * element, b_step = (x->b_trans ? x->ldb : 1) * element;
	take_slot();
	for (int64_t l = 0; l < x->k; l += facts.max_dim) {
		int64_t k = x->k - l < facts.max_dim ? x->k - l : facts.max_dim;
		product_call(x, (const char *)x->a + l * a_step, (const char *)x->b + l * b_step, k, l == 0 ? x->beta : one);
	}
	sem_post(&slots);
}
