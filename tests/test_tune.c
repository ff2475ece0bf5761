/* SPDX-License-Identifier: Apache-2.0
 *
 * Measuring must not be taken in by a way that is fast because it is wrong. The backend here is the CPU's, but of two
 * equal variants the second, and faster, writes nothing, or NaN, or an infinity, or numbers that are off; then it is
 * refused with a reason, and it wins only when it is right. The first takes several executions for one. */
#include "robust.h"

#include <math.h>

#include "../src/plan.h"

enum { RIGHT, NOTHING, NAN_EVERYWHERE, NAN_ONCE, INFINITY_ONCE, OFF, SLIGHTLY_OFF };

enum { N = 64, TIMES = 4 };

static epg_backend faulty;
static const void *second;
static int fault;

static epg_status plan_create(void *context, const epg_problem *problem, const epg_variant *variant, bool own_workspace, void **plan)
{
	epg_status status = epg_cpu_backend.plan_create(context, problem, variant, own_workspace, plan);
	if (!status && variant->cost_s == 2)
		second = *plan;
	return status;
}

static epg_status execute_right(const void *plan, const epg_call *call, int times)
{
	epg_status status = EPG_SUCCESS;
	for (int i = 0; i < times && !status; i++)
		status = epg_cpu_backend.execute(plan, call);
	return status;
}

static epg_status execute(const void *plan, const epg_call *call)
{
	double *d = call->x.d;
	if (plan != second)
		return execute_right(plan, call, TIMES);
	epg_status status = fault == NOTHING ? EPG_SUCCESS : execute_right(plan, call, 1);
	for (int i = 0; i < N * N && fault == NAN_EVERYWHERE; i++)
		d[i] = NAN;
	if (fault == NAN_ONCE)
		d[7] = NAN;
	if (fault == INFINITY_ONCE)
		d[7] = INFINITY;
	if (fault == OFF)
		d[N * N - 1] += 1e-3;
	if (fault == SLIGHTLY_OFF)
		d[N * N - 1] *= 1 + 1e-13;
	return status;
}

static void check_fault(epg_context *context, int which, int refused, const char *what)
{
	epg_matmul_desc desc;
	epg_plan *plan = NULL;
	fault = which;
	epg_matmul_desc_init(&desc, sizeof desc, N, N, N, EPG_F64, EPG_COL);
	if (!ok(!epg_plan_create(context, &desc, NULL, &plan), "%s: a plan", what))
		return;
	const epg_backend *real = context->backend;
	plan->nvariants = 2;
	plan->chosen = 0;
	plan->variants[1] = plan->variants[0];
	plan->variants[0].cost_s = 1;
	plan->variants[1].cost_s = 2;
	context->backend = &faulty;
	epg_status status = epg_tune(plan, EPG_MEASURE);
	context->backend = real;
	ok(!status && (plan->chosen == 0) == refused, "%s: candidate %d is chosen: %s", what, plan->chosen, plan->reason);
	ok((plan->refusals && strstr(plan->refusals, "candidate 1")) == refused, "%s: %s", what, refused ? "the reason is kept" : "nothing is refused");
	epg_plan_destroy(plan);
}

int main(void)
{
	epg_context *context = new_context(1);
	faulty = epg_cpu_backend;
	faulty.plan_create = plan_create;
	faulty.execute = execute;
	check_fault(context, RIGHT, 0, "a right one");
	check_fault(context, SLIGHTLY_OFF, 0, "another rounding");
	check_fault(context, NOTHING, 1, "writes nothing");
	check_fault(context, NAN_EVERYWHERE, 1, "writes NaN");
	check_fault(context, NAN_ONCE, 1, "one NaN");
	check_fault(context, INFINITY_ONCE, 1, "one infinity");
	check_fault(context, OFF, 1, "one number is off");
	epg_context_destroy(context);
	return done_testing();
}
