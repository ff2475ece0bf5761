/* SPDX-License-Identifier: Apache-2.0
 *
 * Many threads at once: 64 of them, each with its own data, on a shared plan and on plans of their own, and from inside
 * OpenMP parallel regions. Each result must have the bits of the serial one; with the determinism flag for every number
 * of threads. The application's own settings, of the BLAS and of OpenMP, are what they were before. The last error
 * belongs to the thread. */
#include "robust.h"

#include <omp.h>
#include <pthread.h>

/* OpenBLAS's own functions; the library must leave what they tell unchanged. */
extern int openblas_get_num_threads(void);
extern void openblas_set_num_threads(int n);

enum { NTHREADS = 64, NROUNDS = 3 };

typedef struct {
	const char *line;
	int f64;
	int64_t a, b, d; /* elements */
} shape;

static const shape shapes[] = {
	{ "f64 m=300 n=200 k=300 epilog=relu", 1, 300 * 300, 300 * 200, 300 * 200 },
	{ "f32 m=1 n=128 k=3000", 0, 3000, 3000 * 128, 128 },
	{ "f32 m=64 n=64 k=64 epilog=gelu", 0, 64 * 64, 64 * 64, 64 * 64 },
};

typedef struct {
	const shape *s;
	void *a, *b, *d, *want;
} work;

typedef struct {
	epg_context *context;
	epg_plan *shared; /* NULL: a plan of its own */
	work *w;
	int rounds, bad;
	const char *why;
} job;

static size_t element(const shape *s) { return s->f64 ? sizeof(double) : sizeof(float); }

static void work_new(work *w, const shape *s, uint64_t seed)
{
	size_t e = element(s);
	*w = (work){ s, malloc(e * (size_t)s->a), malloc(e * (size_t)s->b), malloc(e * (size_t)s->d), malloc(e * (size_t)s->d) };
	fill_reals(w->a, s->f64, s->a, seed);
	fill_reals(w->b, s->f64, s->b, seed + 1000);
}

static void work_free(work *w)
{
	free(w->a);
	free(w->b);
	free(w->d);
	free(w->want);
}

static epg_status run(const epg_plan *plan, const work *w, void *d)
{
	return epg_execute(plan, &EPG_OPERANDS(.a = w->a, .b = w->b, .d = d), NULL);
}

static epg_plan *plan_of(epg_context *context, const shape *s, int32_t flags)
{
	epg_matmul_desc desc;
	epg_plan *plan = NULL;
	if (epg_matmul_desc_parse(s->line, &desc, sizeof desc))
		return NULL;
	desc.flags |= flags;
	if (epg_plan_create(context, &desc, NULL, &plan))
		return NULL;
	return plan;
}

static int equal(const work *w) { return !memcmp(w->d, w->want, element(w->s) * (size_t)w->s->d); }

static void *job_run(void *arg)
{
	job *j = arg;
	epg_plan *plan = j->shared ? j->shared : plan_of(j->context, j->w->s, EPG_DETERMINISTIC);
	for (int i = 0; i < j->rounds && plan; i++) {
		memset(j->w->d, 0xff, element(j->w->s) * (size_t)j->w->s->d);
		epg_status status = run(plan, j->w, j->w->d);
		if (status)
			j->why = epg_status_string(status);
		if (status || !equal(j->w))
			j->bad++;
	}
	if (!plan) {
		j->bad++;
		j->why = "no plan";
	}
	if (!j->shared)
		epg_plan_destroy(plan);
	return NULL;
}

/* All threads at once; the number of wrong results. */
static int run_jobs(job *jobs, int n)
{
	pthread_t ids[NTHREADS];
	int bad = 0, started = 0;
	for (; started < n; started++)
		if (pthread_create(&ids[started], NULL, job_run, &jobs[started]))
			break;
	for (int i = 0; i < started; i++) {
		pthread_join(ids[i], NULL);
		bad += jobs[i].bad;
		if (jobs[i].bad && jobs[i].why)
			diag("thread %d: %s", i, jobs[i].why);
	}
	return bad + (started != n);
}

static void check_many(const shape *s, int threads, int rounds, int own_plans)
{
	static work w[NTHREADS];
	static job jobs[NTHREADS];
	epg_context *serial = new_context(1), *context = new_context(threads);
	epg_plan *reference = plan_of(serial, s, EPG_DETERMINISTIC), *plan = plan_of(context, s, EPG_DETERMINISTIC);
	ok(reference && plan, "plans of %s", s->line);
	int openblas = openblas_get_num_threads(), omp = omp_get_max_threads(), bad = 0;
	for (int i = 0; i < NTHREADS; i++) {
		work_new(&w[i], s, (uint64_t)i);
		bad += run(reference, &w[i], w[i].want) != EPG_SUCCESS;
		jobs[i] = (job){ context, own_plans ? NULL : plan, &w[i], rounds, 0, NULL };
	}
	bad += run_jobs(jobs, NTHREADS);
	ok(bad == 0, "%s: %d threads of the application, %d of the library, %s: the serial bits (%d wrong)", s->line, NTHREADS, threads,
		own_plans ? "own plans" : "one plan", bad);
	ok(openblas_get_num_threads() == openblas, "the BLAS's thread count is still %d (%d)", openblas, openblas_get_num_threads());
	ok(omp_get_max_threads() == omp, "OpenMP's thread count is still %d (%d)", omp, omp_get_max_threads());
	for (int i = 0; i < NTHREADS; i++)
		work_free(&w[i]);
	epg_plan_destroy(reference);
	epg_plan_destroy(plan);
	epg_context_destroy(serial);
	epg_context_destroy(context);
}

/* With the determinism flag the bits do not depend on the thread count; this is a claim about D too. */
static void check_thread_counts(const shape *s)
{
	work w;
	work_new(&w, s, 5);
	int wrong = 0;
	for (int threads = 1; threads <= 16; threads++) {
		epg_context *context = new_context(threads);
		epg_plan *plan = plan_of(context, s, EPG_DETERMINISTIC);
		if (!plan || run(plan, &w, threads == 1 ? w.want : w.d) || (threads > 1 && !equal(&w))) {
			diag("%d threads differ", threads);
			wrong++;
		}
		epg_plan_destroy(plan);
		epg_context_destroy(context);
	}
	ok(wrong == 0, "%s: the same bits with 1 to 16 threads", s->line);
	work_free(&w);
}

/* The application calls from its own parallel region; nested teams must neither hang nor change its settings. */
static void check_inside_openmp(const shape *s, int threads)
{
	enum { TEAM = 4 };
	work w[TEAM];
	epg_context *context = new_context(threads);
	epg_plan *plan = plan_of(context, s, EPG_DETERMINISTIC);
	int wrong = 0, inside[TEAM] = { 0 }, omp = omp_get_max_threads(), openblas = openblas_get_num_threads();
	for (int i = 0; i < TEAM; i++) {
		work_new(&w[i], s, 70 + (uint64_t)i);
		wrong += run(plan, &w[i], w[i].want) != EPG_SUCCESS;
	}
#pragma omp parallel num_threads(TEAM) reduction(+ : wrong)
	{
		int i = omp_get_thread_num(), max = omp_get_max_threads();
		for (int round = 0; round < NROUNDS; round++)
			wrong += run(plan, &w[i], w[i].d) != EPG_SUCCESS || !equal(&w[i]);
		inside[i] = omp_get_max_threads() == max;
	}
	ok(wrong == 0, "%s: inside an OpenMP region, %d threads of the library", s->line, threads);
	ok(inside[0] && omp_get_max_threads() == omp && openblas_get_num_threads() == openblas, "settings are as before, inside and outside");
	for (int i = 0; i < TEAM; i++)
		work_free(&w[i]);
	epg_plan_destroy(plan);
	epg_context_destroy(context);
}

static void *fail_differently(void *arg)
{
	char *before = arg;
	epg_context *context = NULL;
	epg_context_options options;
	snprintf(before, 256, "%s", epg_last_error());
	epg_context_options_init(&options, sizeof options);
	options.backend = "from-another-thread";
	epg_context_create(&options, &context);
	return NULL;
}

static void check_last_error(void)
{
	pthread_t id;
	char fresh[256], mine[256];
	epg_context_info info;
	epg_context_get_info(NULL, &info, sizeof info);
	snprintf(mine, sizeof mine, "%s", epg_last_error());
	pthread_create(&id, NULL, fail_differently, fresh);
	pthread_join(id, NULL);
	ok(*mine && !*fresh, "a new thread has no last error ('%s')", fresh);
	ok(!strcmp(mine, epg_last_error()), "another thread's failure does not change mine");
}

int main(void)
{
	for (int i = 0; i < COUNT(shapes); i++) {
		check_many(&shapes[i], 1, NROUNDS, 0);
		check_many(&shapes[i], 1, NROUNDS, 1);
	}
	check_many(&shapes[0], 2, 1, 0);
	check_many(&shapes[2], 2, NROUNDS, 1);
	openblas_set_num_threads(2);
	check_many(&shapes[1], 2, NROUNDS, 0);
	check_many(&shapes[2], 4, NROUNDS, 0);
	for (int i = 0; i < COUNT(shapes); i++) {
		check_thread_counts(&shapes[i]);
		check_inside_openmp(&shapes[i], 1);
		check_inside_openmp(&shapes[i], 3);
	}
	check_last_error();
	return done_testing();
}
