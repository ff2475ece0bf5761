/* SPDX-License-Identifier: Apache-2.0
 *
 * fork after use. The parent computes with four threads, forks, and the child must compute the same bits within half a
 * minute, with the plan it inherited and with a context of its own; neither BLAS's nor OpenMP's threads exist there. The
 * parent goes on afterwards. Also a fork while another thread is in the middle of an execution. */
#include "robust.h"

#include <pthread.h>
#include <stdatomic.h>

enum { N = 512, CHILD_LIMIT_S = 30 };

static const char line[] = "f32 m=512 n=512 k=512 epilog=gelu_bias";
static float *a, *b, *bias, *d, *want;

static epg_plan *new_plan(epg_context *context, int32_t flags)
{
	epg_matmul_desc desc;
	epg_plan *plan = NULL;
	if (epg_matmul_desc_parse(line, &desc, sizeof desc))
		return NULL;
	desc.flags |= flags;
	epg_plan_create(context, &desc, NULL, &plan);
	return plan;
}

static epg_status run(const epg_plan *plan, float *to)
{
	return epg_execute(plan, &EPG_OPERANDS(.a = a, .b = b, .bias = bias, .d = to), NULL);
}

static int right(const epg_plan *plan)
{
	memset(d, 0xff, sizeof *d * N * N);
	return plan && !run(plan, d) && !memcmp(d, want, sizeof *d * N * N);
}

/* What a child does; it returns 0 for right and never prints TAP lines. */
static int child_inherited(epg_context *context, epg_plan *plan)
{
	(void)context;
	return right(plan) && right(plan) ? 0 : 1;
}

static int child_plans_again(epg_context *context, epg_plan *plan)
{
	(void)plan;
	epg_plan *own = new_plan(context, EPG_DETERMINISTIC);
	int good = right(own);
	epg_plan_destroy(own);
	return good ? 0 : 1;
}

static int child_new_context(epg_context *context, epg_plan *plan)
{
	epg_context *own = new_context(4);
	int result = own ? child_plans_again(own, plan) : 2;
	epg_context_destroy(own);
	(void)context;
	return result;
}

static int child_destroys(epg_context *context, epg_plan *plan)
{
	int good = right(plan);
	epg_plan_destroy(plan);
	epg_context_destroy(context);
	return good ? 0 : 1;
}

/* A grandchild: fork in the forked. */
static int child_forks(epg_context *context, epg_plan *plan)
{
	int good = right(plan);
	pid_t id = fork();
	if (id == 0)
		_exit(child_new_context(context, plan));
	return good && id > 0 && wait_child(id, CHILD_LIMIT_S / 2) == 0 ? 0 : 1;
}

static const struct {
	const char *what;
	int (*run)(epg_context *context, epg_plan *plan);
} children[] = {
	{ "the child executes the plan it inherited", child_inherited },
	{ "the child plans in the context it inherited", child_plans_again },
	{ "the child creates a context", child_new_context },
	{ "the child destroys what it inherited", child_destroys },
	{ "the child forks again", child_forks },
};

static void check_children(int threads)
{
	epg_context *context = new_context(threads);
	epg_plan *plan = new_plan(context, EPG_DETERMINISTIC);
	status_is(plan ? run(plan, want) : EPG_INTERNAL, EPG_SUCCESS, "the parent before the fork");
	for (int i = 0; i < COUNT(children); i++) {
		fflush(stdout);
		pid_t id = fork();
		if (id == 0)
			_exit(children[i].run(context, plan));
		int result = id > 0 ? wait_child(id, CHILD_LIMIT_S) : -3;
		ok(result == 0, "%d threads: %s (0 right, 1 wrong bits, -1 died, -2 hung: %d)", threads, children[i].what, result);
	}
	ok(right(plan), "%d threads: the parent computes the same afterwards", threads);
	epg_plan_destroy(plan);
	epg_context_destroy(context);
}

static atomic_int stop, rounds, wrong;

static void *busy(void *plan)
{
	float *mine = malloc(sizeof *mine * N * N);
	while (!atomic_load(&stop)) {
		if (run(plan, mine) || memcmp(mine, want, sizeof *mine * N * N))
			atomic_fetch_add(&wrong, 1);
		atomic_fetch_add(&rounds, 1);
	}
	free(mine);
	return NULL;
}

/* Whatever lock the executing thread held at the moment of the fork, nobody will ever release it in the child. */
static void check_fork_while_busy(void)
{
	enum { FORKS = 12 };
	pthread_t id;
	epg_context *context = new_context(2);
	epg_plan *plan = new_plan(context, EPG_DETERMINISTIC);
	int bad = 0, worst = 0;
	status_is(plan ? run(plan, want) : EPG_INTERNAL, EPG_SUCCESS, "before the busy thread");
	pthread_create(&id, NULL, busy, plan);
	for (int i = 0; i < FORKS && worst != -2; i++) {
		int before = atomic_load(&rounds);
		while (atomic_load(&rounds) < before + 1)
			nanosleep(&(struct timespec){ 0, 100000 * (i + 1) }, NULL);
		fflush(stdout);
		pid_t child = fork();
		if (child == 0)
			_exit(i % 2 ? child_inherited(context, plan) : child_new_context(context, plan));
		int result = wait_child(child, CHILD_LIMIT_S);
		bad += result != 0;
		if (result)
			worst = result;
	}
	atomic_store(&stop, 1);
	pthread_join(id, NULL);
	ok(bad == 0, "%d forks while a thread executes: the children compute (%d did not, last result %d)", FORKS, bad, worst);
	ok(atomic_load(&wrong) == 0, "the busy thread's results stay right (%d wrong of %d)", atomic_load(&wrong), atomic_load(&rounds));
	epg_plan_destroy(plan);
	epg_context_destroy(context);
}

int main(void)
{
	a = malloc(sizeof *a * N * N);
	b = malloc(sizeof *b * N * N);
	d = malloc(sizeof *d * N * N);
	want = malloc(sizeof *want * N * N);
	bias = malloc(sizeof *bias * N);
	fill_reals(a, 0, N * N, 1);
	fill_reals(b, 0, N * N, 2);
	fill_reals(bias, 0, N, 3);
	check_children(4);
	check_children(1);
	check_fork_while_busy();
	free(a);
	free(b);
	free(d);
	free(want);
	free(bias);
	return done_testing();
}
