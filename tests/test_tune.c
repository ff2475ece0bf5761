/* SPDX-License-Identifier: Apache-2.0
 *
 * Measuring must not be taken in by a way that is fast because it is wrong. The backend here is the CPU's, but of two
 * equal variants the second, and faster, writes nothing, or NaN, or an infinity, or numbers or bits that are off; then it is
 * refused with a reason, and it wins only when it is right. The first takes several executions for one. A variant that
 * cannot be made or executed leaves the choice to the other. */
#include "robust.h"

#include <math.h>

#include "../src/plan.h"

enum { RIGHT, NOTHING, NAN_EVERYWHERE, NAN_ONCE, INFINITY_ONCE, OFF, SLIGHTLY_OFF, MASK_OFF, FEW_BITS_OFF, SUM_OFF };

enum { N = 64, TIMES = 4 };

static epg_backend faulty;
static const void *second;
static int fault;
static int64_t size; /* of D, in each direction */

/* Which variants fail, by their number, where, and how. */
static struct {
	bool victim[2], at_create;
	epg_status status;
} failing;

static epg_status plan_create(void *context, const epg_problem *problem, const epg_variant *variant, bool own_workspace, void **plan)
{
	int number = variant->cost_s == 2;
	if (failing.victim[number] && failing.at_create)
		return epg_fail(failing.status, "cannot be made");
	epg_status status = epg_cpu_backend.plan_create(context, problem, variant, own_workspace, plan);
	if (!status && number == 1)
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
	double *d = call->x.d, *sums = call->x.bgrad;
	unsigned char *mask = call->x.aux;
	if (failing.victim[plan == second] && !failing.at_create)
		return epg_fail(failing.status, "cannot be executed");
	if (plan != second)
		return execute_right(plan, call, TIMES);
	epg_status status = fault == NOTHING ? EPG_SUCCESS : execute_right(plan, call, 1);
	for (int64_t i = 0; i < size * size && fault == NAN_EVERYWHERE; i++)
		d[i] = NAN;
	if (fault == NAN_ONCE)
		d[7] = NAN;
	if (fault == INFINITY_ONCE)
		d[7] = INFINITY;
	if (fault == OFF)
		d[size * size - 1] += 1e-3;
	if (fault == SLIGHTLY_OFF)
		d[size * size - 1] *= 1 + 1e-13;
	for (int i = 0; i < 8 && fault == MASK_OFF; i++)
		mask[16 * i] ^= 0xff;
	if (fault == FEW_BITS_OFF)
		mask[0] ^= 3;
	if (fault == SUM_OFF)
		sums[size - 1] += 1e-3;
	return status;
}

/* Measures the two variants of a problem; NULL when there is no plan. */
static epg_plan *tune(epg_context *context, const epg_matmul_desc *desc, epg_status *status)
{
	epg_plan *plan = NULL;
	size = desc->n;
	second = NULL;
	if (epg_plan_create(context, desc, NULL, &plan))
		return NULL;
	const epg_backend *real = context->backend;
	plan->nvariants = 2;
	plan->chosen = 0;
	plan->variants[1] = plan->variants[0];
	plan->variants[0].cost_s = 1;
	plan->variants[1].cost_s = 2;
	context->backend = &faulty;
	*status = epg_tune(plan, EPG_MEASURE);
	context->backend = real;
	return plan;
}

static void check_fault(epg_context *context, int which, const char *line, int refused, const char *what)
{
	epg_matmul_desc desc;
	epg_status status;
	fault = which;
	epg_matmul_desc_parse(line, &desc, sizeof desc);
	epg_plan *plan = tune(context, &desc, &status);
	if (!ok(plan != NULL, "%s: a plan", what))
		return;
	ok(!status && (plan->chosen == 0) == refused, "%s: candidate %d is chosen: %s", what, plan->chosen, plan->reason);
	ok((plan->refusals && strstr(plan->refusals, "candidate 1")) == refused, "%s: %s", what, refused ? "the reason is kept" : "nothing is refused");
	epg_plan_destroy(plan);
}

/* chosen: the variant that is left, or -1: then the status is the failure's. */
static void check_failure(epg_context *context, int first, int other, bool at_create, epg_status with, int chosen)
{
	epg_matmul_desc desc;
	epg_status status;
	char what[80];
	snprintf(what, sizeof what, "%s cannot be %s (%s)", first && other ? "none" : first ? "the first" : "the second", at_create ? "made" : "executed", epg_status_string(with));
	fault = RIGHT;
	epg_matmul_desc_init(&desc, sizeof desc, N, N, N, EPG_F64, EPG_COL);
	failing.victim[0] = first;
	failing.victim[1] = other;
	failing.at_create = at_create;
	failing.status = with;
	epg_plan *plan = tune(context, &desc, &status);
	failing.victim[0] = failing.victim[1] = false;
	if (!ok(plan != NULL, "%s: a plan", what))
		return;
	ok(status == (chosen < 0 ? with : EPG_SUCCESS), "%s: %s", what, epg_status_string(status));
	if (chosen >= 0)
		ok(plan->chosen == chosen && plan->refusals && strstr(plan->refusals, chosen ? "candidate 0: cannot be" : "candidate 1: cannot be"), "%s: candidate %d is taken: %s",
			what, plan->chosen, plan->refusals ? plan->refusals : "");
	else
		ok(says("cannot be"), "%s: %s", what, epg_last_error());
	epg_plan_destroy(plan);
}

int main(void)
{
	static const char small[] = "f64 m=64 n=64 k=64", mask[] = "f64 m=64 n=64 k=64 epilog=relu_aux", sums[] = "f64 m=64 n=64 k=64 epilog=dgelu_bgrad";
	epg_context *context = new_context(1);
	faulty = epg_cpu_backend;
	faulty.plan_create = plan_create;
	faulty.execute = execute;
	check_fault(context, RIGHT, small, 0, "a right one");
	check_fault(context, SLIGHTLY_OFF, small, 0, "another rounding");
	check_fault(context, NOTHING, small, 1, "writes nothing");
	check_fault(context, NAN_EVERYWHERE, small, 1, "writes NaN");
	check_fault(context, NAN_ONCE, small, 1, "one NaN");
	check_fault(context, INFINITY_ONCE, small, 1, "one infinity");
	check_fault(context, OFF, small, 1, "one number is off");
	check_fault(context, OFF, "f64 m=3000 n=3000 k=1", 1, "the last number of a large D is off");
	check_fault(context, RIGHT, mask, 0, "a right mask");
	check_fault(context, FEW_BITS_OFF, "f64 m=8 n=4 k=4 epilog=relu_aux", 0, "two bits of a small mask differ");
	check_fault(context, MASK_OFF, mask, 1, "eight bytes of the mask are off");
	check_fault(context, RIGHT, sums, 0, "a right gradient");
	check_fault(context, SUM_OFF, sums, 1, "one sum of the gradient is off");
	for (int at_create = 0; at_create < 2; at_create++) {
		check_failure(context, 0, 1, at_create, EPG_UNSUPPORTED, 0);
		check_failure(context, 0, 1, at_create, EPG_DEVICE_ERROR, 0);
		check_failure(context, 1, 0, at_create, EPG_UNSUPPORTED, 1);
		check_failure(context, 1, 0, at_create, EPG_DEVICE_ERROR, 1);
		check_failure(context, 1, 1, at_create, EPG_UNSUPPORTED, -1);
		check_failure(context, 0, 1, at_create, EPG_NO_MEMORY, -1);
	}
	epg_context_destroy(context);
	return done_testing();
}
