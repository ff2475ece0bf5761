/* SPDX-License-Identifier: Apache-2.0
 *
 * A backend with many ways: none crowds another out of the candidates, each candidate can be pinned, and the plan tells all of them and
 * all reasons, however long that text is. The backend is the CPU's with more lowerings, which all compute as its split. */
#include "robust.h"

#include "../src/plan.h"

enum { NLOWERINGS = 14, NSUPPORTED = 4, SHARE = EPG_MAX_VARIANTS / NLOWERINGS };

static epg_backend many;
static epg_lowering lowerings[NLOWERINGS];
static char names[NLOWERINGS][16];

static bool supports(const void *context, const epg_problem *problem, int32_t lowering, char why[EPG_WHY_NBYTES])
{
	(void)context, (void)problem;
	if (lowering < NSUPPORTED)
		return true;
	memset(why, 'a' + lowering, EPG_WHY_NBYTES - 1);
	why[EPG_WHY_NBYTES - 1] = '\0';
	return false;
}

/* As many as there is room for; the first lowering's are the cheapest, and one of each wants a large workspace. */
static int32_t variants(const void *context, const epg_problem *problem, int32_t lowering, int32_t rigor, epg_variant *out, int32_t capacity, char why[EPG_WHY_NBYTES])
{
	(void)context, (void)problem, (void)rigor, (void)why;
	for (int32_t i = 0; i < capacity; i++)
		out[i] = (epg_variant){ .lowering = lowering, .param = { i + 1 }, .cost_s = 1 + lowering + 0.001 * i, .workspace_nbytes = i == 1 ? 1 << 20 : 0 };
	return capacity;
}

/* As a backend that must fit its pins into a limit. */
static bool accepts(const void *context, const epg_problem *problem, epg_variant *variant, char why[EPG_WHY_NBYTES])
{
	(void)context, (void)variant;
	snprintf(why, EPG_WHY_NBYTES, "a limit of %lld bytes", (long long)problem->workspace_limit_nbytes);
	return problem->workspace_limit_nbytes < 0;
}

static epg_status plan_create(void *context, const epg_problem *problem, const epg_variant *variant, bool own_workspace, void **plan)
{
	epg_variant split = { .param = { 1 } };
	(void)variant;
	return epg_cpu_backend.plan_create(context, problem, &split, own_workspace, plan);
}

static epg_plan *make_plan(epg_context *context, int64_t limit)
{
	epg_matmul_desc desc;
	epg_plan_options options;
	epg_plan *plan = NULL;
	epg_matmul_desc_init(&desc, sizeof desc, 8, 8, 8, EPG_F32, EPG_COL);
	epg_plan_options_init(&options, sizeof options);
	options.rigor = EPG_ESTIMATE;
	options.workspace_limit_nbytes = limit;
	status_is(epg_plan_create(context, &desc, &options, &plan), EPG_SUCCESS, "a plan");
	return plan;
}

static void check_shares(const epg_plan *plan)
{
	int each[NLOWERINGS] = { 0 };
	epg_plan_info info;
	epg_plan_get_info(plan, &info, sizeof info);
	for (int32_t i = 0; i < info.candidates; i++)
		each[plan->variants[i].lowering]++;
	for (int l = 0; l < NSUPPORTED; l++)
		ok(each[l] == SHARE, "%s has %d candidates", names[l], each[l]);
}

static int has_line(const char *text, const char *line) { return strstr(text, line) != NULL; }

static void check_explain(const epg_plan *plan)
{
	size_t needed = 0, again = 0;
	char pin[256], line[512], reason[EPG_WHY_NBYTES];
	int missing = 0;
	status_is(epg_plan_explain(plan, NULL, 0, &needed), EPG_SUCCESS, "explain tells its size");
	char *text = calloc(needed + 8, 1);
	status_is(epg_plan_explain(plan, text, needed, &again), EPG_SUCCESS, "explain");
	ok(needed == again && strlen(text) + 1 == needed && needed > 2600, "the text has %zu bytes", needed);
	for (int32_t i = 0; i < plan->nvariants; i++) {
		epg_plan_pin(plan, i, pin, sizeof pin, NULL);
		snprintf(line, sizeof line, "candidate %d: %s, estimated", i, pin);
		missing += !has_line(text, line);
	}
	ok(missing == 0, "all %d candidates are in it", plan->nvariants);
	for (int l = NSUPPORTED; l < NLOWERINGS; l++) {
		supports(NULL, NULL, l, reason);
		snprintf(line, sizeof line, "  %s: %s\n", names[l], reason);
		missing += !has_line(text, line);
	}
	ok(missing == 0, "all %d reasons are in it", NLOWERINGS - NSUPPORTED);
	char cut[100];
	memset(cut, 'x', sizeof cut);
	status_is(epg_plan_explain(plan, cut, sizeof cut, &again), EPG_SUCCESS, "a text cut short");
	ok(strlen(cut) == sizeof cut - 1 && !strncmp(cut, text, sizeof cut - 1) && again == needed, "is its beginning");
	free(text);
}

static void check_limit(epg_context *context)
{
	epg_plan *plan = make_plan(context, 1000);
	char text[8192] = "";
	if (!plan)
		return;
	int told = 0;
	epg_plan_explain(plan, text, sizeof text, NULL);
	for (const char *at = text; (at = strstr(at, "the workspace limit of 1000 bytes is 1047576 bytes too small")); at++)
		told++;
	ok(plan->nvariants == NSUPPORTED * (SHARE - 1) && told == NSUPPORTED, "%d candidates fit the limit, %d are told not to", plan->nvariants, told);
	epg_plan_destroy(plan);
}

/* A file of wisdom is read before there is a plan: no limit is known then, and none may decide. */
static void check_wisdom(epg_context *context)
{
	char path[] = "/tmp/epigemm-candidates-XXXXXX";
	int64_t accepted = -1, rejected = -1;
	int file = mkstemp(path);
	status_is(epg_wisdom_add(&context->wisdom, "f32 m=8 n=8 k=8", "cpu/way2 number=7"), EPG_SUCCESS, "an entry");
	status_is(epg_wisdom_save(context, path), EPG_SUCCESS, "is saved");
	status_is(epg_wisdom_load(context, path, &accepted, &rejected), EPG_SUCCESS, "and loaded");
	ok(accepted == 1 && rejected == 0, "without a limit on its workspace (%d accepted, %d rejected)", (int)accepted, (int)rejected);
	epg_plan *plan = make_plan(context, -1);
	ok(plan && plan->variants[plan->chosen].lowering == 2 && plan->variants[plan->chosen].param[0] == 7, "its pin, which was no candidate, is taken");
	epg_plan_destroy(plan);
	close(file);
	unlink(path);
}

int main(void)
{
	epg_context *context = new_context(1);
	const epg_backend *real = context->backend;
	many = epg_cpu_backend;
	for (int l = 0; l < NLOWERINGS; l++) {
		snprintf(names[l], sizeof names[l], "way%d", l);
		lowerings[l] = (epg_lowering){ names[l], { "number" } };
	}
	many.lowerings = lowerings;
	many.nlowerings = NLOWERINGS;
	many.supports = supports;
	many.variants = variants;
	many.accepts = accepts;
	many.plan_create = plan_create;
	context->backend = &many;
	epg_plan *plan = make_plan(context, -1);
	if (plan) {
		check_shares(plan);
		check_explain(plan);
		epg_plan_destroy(plan);
	}
	check_limit(context);
	check_wisdom(context);
	context->backend = real;
	epg_context_destroy(context);
	return done_testing();
}
