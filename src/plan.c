/* SPDX-License-Identifier: Apache-2.0
 *
 * Planning: collect the candidates from the backend's lowerings, order them by estimated cost, pick one, and say why. */
#include "plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "epilog.h"

/* ---- Pins ---- */

void epg_pin_print(const epg_backend *backend, const epg_variant *variant, char *text, size_t text_nbytes)
{
	const epg_lowering *lowering = &backend->lowerings[variant->lowering];
	epg_text out = {text, text_nbytes, 0};
	epg_text_add(&out, "%s/%s", backend->name, lowering->name);
	for (int i = 0; lowering->param_names[i]; i++)
		epg_text_add(&out, " %s=%lld", lowering->param_names[i], (long long)variant->param[i]);
}

static int32_t find_lowering(const epg_backend *backend, const char *text, size_t length)
{
	size_t prefix = strlen(backend->name);
	if (length <= prefix || strncmp(text, backend->name, prefix) || text[prefix] != '/')
		return -1;
	for (int32_t i = 0; i < backend->nlowerings; i++)
		if (strlen(backend->lowerings[i].name) == length - prefix - 1 && strncmp(backend->lowerings[i].name, text + prefix + 1, length - prefix - 1) == 0)
			return i;
	return -1;
}

/* One "name=number" at *text, which moves behind it. */
static epg_status parse_param(const char **text, const char *name, int64_t *value)
{
	size_t length = strlen(name);
	char *end;
	*text += strspn(*text, " ");
	if (strncmp(*text, name, length) || (*text)[length] != '=')
		return epg_fail(EPG_INVALID, "pin has '%.40s' where '%s=' was expected", *text, name);
	*value = strtoll(*text + length + 1, &end, 10);
	if (end == *text + length + 1 || (*end && *end != ' '))
		return epg_fail(EPG_INVALID, "pin has '%.40s', but %s must be a whole number", *text, name);
	*text = end;
	return EPG_SUCCESS;
}

epg_status epg_pin_parse(const epg_backend *backend, const char *text, epg_variant *variant)
{
	size_t length = strcspn(text, " ");
	int32_t lowering = find_lowering(backend, text, length);
	if (lowering < 0)
		return epg_fail(EPG_INVALID, "pin is '%.60s', but must begin with a lowering of this backend, as %s/%s", text, backend->name, backend->lowerings[0].name);
	epg_variant v = {.lowering = lowering};
	const char *at = text + length;
	epg_status status = EPG_SUCCESS;
	for (int i = 0; backend->lowerings[lowering].param_names[i] && !status; i++)
		status = parse_param(&at, backend->lowerings[lowering].param_names[i], &v.param[i]);
	if (status)
		return status;
	if (at[strspn(at, " ")])
		return epg_fail(EPG_INVALID, "pin has '%.40s' behind its last parameter", at);
	*variant = v;
	return EPG_SUCCESS;
}

/* ---- Candidates ---- */

epg_status epg_plan_refuse(epg_plan *plan, const char *name, const char *why)
{
	size_t used = plan->refusals ? strlen(plan->refusals) : 0, more = strlen(name) + strlen(why) + sizeof "  : \n";
	char *grown = realloc(plan->refusals, used + more);
	if (!grown)
		return epg_fail(EPG_NO_MEMORY, "no memory for the reasons against a lowering (%zu bytes)", used + more);
	plan->refusals = grown;
	snprintf(grown + used, more, "  %s: %s\n", name, why);
	return EPG_SUCCESS;
}

/* Keeps the variants sorted by cost. */
static void insert(epg_plan *plan, const epg_variant *variant)
{
	int32_t i = plan->nvariants++;
	for (; i > 0 && plan->variants[i - 1].cost_s > variant->cost_s; i--)
		plan->variants[i] = plan->variants[i - 1];
	plan->variants[i] = *variant;
}

/* Bytes by which the limit is too small; 0: it fits. */
static int64_t missing_nbytes(const epg_plan_options *options, const epg_variant *variant)
{
	int64_t limit = options->workspace_limit_nbytes, needed = (int64_t)variant->workspace_nbytes;
	return limit >= 0 && needed > limit ? needed - limit : 0;
}

/* The variants of one lowering that fit the limit; why not, for those that do not. */
static epg_status collect_variants(epg_plan *plan, const epg_plan_options *options, int32_t lowering, int64_t *least_missing)
{
	const epg_backend *backend = plan->context->backend;
	const char *name = backend->lowerings[lowering].name;
	char why[EPG_WHY_NBYTES] = "";
	epg_variant found[EPG_MAX_VARIANTS];
	int32_t room = EPG_MAX_VARIANTS - plan->nvariants, share = EPG_MAX_VARIANTS / backend->nlowerings; /* no lowering crowds another out */
	int32_t count = backend->variants(plan->context->state, &plan->problem, lowering, options->rigor, found, room < share ? room : share, why);
	epg_status status = count == 0 && why[0] ? epg_plan_refuse(plan, name, why) : EPG_SUCCESS;
	for (int32_t i = 0; i < count && !status; i++) {
		int64_t missing = missing_nbytes(options, &found[i]);
		if (!missing) {
			insert(plan, &found[i]);
			continue;
		}
		*least_missing = missing < *least_missing ? missing : *least_missing;
		snprintf(why, sizeof why, "the workspace limit of %lld bytes is %lld bytes too small", (long long)options->workspace_limit_nbytes, (long long)missing);
		status = epg_plan_refuse(plan, name, why);
	}
	return status;
}

static epg_status collect(epg_plan *plan, const epg_plan_options *options, int64_t *least_missing)
{
	const epg_backend *backend = plan->context->backend;
	epg_status status = EPG_SUCCESS;
	*least_missing = INT64_MAX;
	for (int32_t l = 0; l < backend->nlowerings && !status; l++) {
		char why[EPG_WHY_NBYTES] = "";
		bool supported = backend->supports(plan->context->state, &plan->problem, l, why);
		status = supported ? collect_variants(plan, options, l, least_missing) : epg_plan_refuse(plan, backend->lowerings[l].name, why);
	}
	return status;
}

/* ---- Choosing ---- */

enum { KEY_NBYTES = EPG_TEXT_NBYTES + 64 };

/* Makes the pinned variant the chosen one, adding it to the candidates if it is not among them. */
static epg_status choose_pinned(epg_plan *plan, const char *pin, const epg_plan_options *options)
{
	const epg_backend *backend = plan->context->backend;
	epg_variant variant;
	char why[EPG_WHY_NBYTES] = "";
	epg_status status = epg_pin_parse(backend, pin, &variant);
	if (status)
		return status;
	if (!backend->supports(plan->context->state, &plan->problem, variant.lowering, why) || !backend->accepts(plan->context->state, &plan->problem, &variant, why))
		return epg_fail(EPG_UNSUPPORTED, "pin is '%s', which cannot carry this problem out: %s", pin, why);
	int64_t missing = missing_nbytes(options, &variant);
	if (missing)
		return epg_fail(EPG_NO_MEMORY, "pin is '%s', for which the workspace limit of %lld bytes is %lld bytes too small", pin,
			(long long)options->workspace_limit_nbytes, (long long)missing);
	for (int32_t i = 0; i < plan->nvariants; i++)
		if (plan->variants[i].lowering == variant.lowering && memcmp(plan->variants[i].param, variant.param, sizeof variant.param) == 0) {
			plan->chosen = i;
			return EPG_SUCCESS;
		}
	if (plan->nvariants == EPG_MAX_VARIANTS)
		plan->nvariants--;
	plan->chosen = plan->nvariants++;
	plan->variants[plan->chosen] = variant;
	return EPG_SUCCESS;
}

/* Wisdom's key: the problem line; what was measured under a limit has it behind the line, as a comment. */
static void wisdom_key(const epg_plan *plan, char key[KEY_NBYTES])
{
	int64_t limit = plan->problem.workspace_limit_nbytes;
	epg_text out = {key, KEY_NBYTES, 0};
	epg_text_add(&out, "%s", plan->line);
	if (limit >= 0)
		epg_text_add(&out, " # workspace limit %lld", (long long)limit);
}

/* True when wisdom knows the problem and its pin still works here. */
static bool choose_wise(epg_plan *plan, const epg_plan_options *options)
{
	epg_context *context = plan->context;
	char pin[EPG_PIN_NBYTES] = "", key[KEY_NBYTES];
	wisdom_key(plan, key);
	pthread_mutex_lock(&context->wisdom_lock);
	const char *known = epg_wisdom_find(&context->wisdom, key);
	if (!known)
		known = epg_wisdom_find(&context->wisdom, plan->line);
	if (known)
		snprintf(pin, sizeof pin, "%s", known);
	pthread_mutex_unlock(&context->wisdom_lock);
	if (!known || choose_pinned(plan, pin, options) != EPG_SUCCESS)
		return false;
	snprintf(plan->reason, sizeof plan->reason, "wisdom for this problem");
	return true;
}

static epg_status choose_measured(epg_plan *plan, int32_t rigor)
{
	epg_context *context = plan->context;
	char pin[EPG_PIN_NBYTES], key[KEY_NBYTES];
	epg_status status = epg_tune(plan, rigor);
	if (status || plan->problem.sm_count != 0) /* which the key does not tell */
		return status;
	wisdom_key(plan, key);
	epg_pin_print(context->backend, &plan->variants[plan->chosen], pin, sizeof pin);
	pthread_mutex_lock(&context->wisdom_lock);
	status = epg_wisdom_add(&context->wisdom, key, pin);
	pthread_mutex_unlock(&context->wisdom_lock);
	return status;
}

/* Pin, wisdom, measurement, estimate, in this order. Measuring never decides a deterministic plan. */
static epg_status choose(epg_plan *plan, const epg_plan_options *options)
{
	plan->chosen = 0;
	if (options->pin) {
		snprintf(plan->reason, sizeof plan->reason, "pinned by the caller");
		return choose_pinned(plan, options->pin, options);
	}
	snprintf(plan->reason, sizeof plan->reason, "the best estimate");
	if (options->sm_count == 0 && choose_wise(plan, options))
		return EPG_SUCCESS;
	if (options->rigor == EPG_ESTIMATE || plan->problem.flags & EPG_DETERMINISTIC || plan->nvariants < 2 || plan->problem.batch == 0)
		return EPG_SUCCESS;
	return choose_measured(plan, options->rigor);
}

/* ---- Creating ---- */

static epg_status check_options(const epg_plan_options *o)
{
	if (o->rigor < EPG_ESTIMATE || o->rigor > EPG_PATIENT)
		return epg_fail(EPG_INVALID, "options.rigor is %d, but must be from 0 to %d", o->rigor, EPG_PATIENT);
	if (o->memory < EPG_MEMORY_DEVICE || o->memory > EPG_MEMORY_HOST)
		return epg_fail(EPG_INVALID, "options.memory is %d, but must be from 0 to %d", o->memory, EPG_MEMORY_HOST);
	if (o->workspace_limit_nbytes < -1)
		return epg_fail(EPG_INVALID, "options.workspace_limit_nbytes is %lld, but must be -1 (none) or more", (long long)o->workspace_limit_nbytes);
	if (o->sm_count < 0)
		return epg_fail(EPG_INVALID, "options.sm_count is %d, but must be 0 or more", o->sm_count);
	if (o->reserved != 0)
		return epg_fail(EPG_INVALID, "options.reserved is %d, but must be 0", o->reserved);
	return EPG_SUCCESS;
}

epg_status epg_plan_options_init(epg_plan_options *options, size_t size)
{
	const epg_plan_options defaults = {.size = size, .workspace_limit_nbytes = -1};
	if (!options)
		return epg_fail(EPG_INVALID, "options is NULL");
	if (size < offsetof(epg_plan_options, workspace_limit_nbytes))
		return epg_fail(EPG_INVALID, "size is %zu, but must be sizeof(epg_plan_options)", size);
	memset(options, 0, size);
	memcpy(options, &defaults, size < sizeof defaults ? size : sizeof defaults);
	return EPG_SUCCESS;
}

static epg_status read_options(const epg_plan_options *from, epg_plan_options *options)
{
	epg_plan_options_init(options, sizeof *options);
	epg_status status = from ? epg_struct_read("plan_options", options, sizeof *options, from, offsetof(epg_plan_options, workspace_limit_nbytes)) : EPG_SUCCESS;
	return status ? status : check_options(options);
}

static void fill_extents(epg_plan *plan)
{
	const epg_problem *p = &plan->problem;
	const epg_view *views[] = {&p->a, &p->b, &p->c, &p->d, &p->aux};
	const epg_span *spans[] = {&p->bias, &p->bgrad};
	for (int i = 0; i < 5; i++)
		if (i < EPG_OPERAND_AUX || p->epilog & EPG_AUX)
			plan->extent_nbytes[i] = epg_type_nbytes(views[i]->type, epg_view_batch_extent(views[i], p->batch));
	for (int i = 0; i < 2; i++)
		if (spans[i]->length > 0 && p->batch > 0)
			plan->extent_nbytes[EPG_OPERAND_BIAS + i] = epg_type_nbytes(spans[i]->type, (p->batch - 1) * spans[i]->batch_stride + spans[i]->length);
}

/* Everything but the plan's own memory: problem, candidates, choice, backend's plan. */
static epg_status build(epg_plan *plan, const epg_plan_options *options, bool own_workspace)
{
	const epg_backend *backend = plan->context->backend;
	int64_t missing;
	plan->staged = options->memory == EPG_MEMORY_HOST && !backend->host_memory;
	if (plan->staged && plan->problem.flags & EPG_SCALARS_ON_DEVICE)
		return epg_fail(EPG_INVALID, "options.memory is EPG_MEMORY_HOST, but desc.flags has EPG_SCALARS_ON_DEVICE: scalars must be on the host too");
	fill_extents(plan);
	epg_operands_prepare(plan);
	epg_status status = collect(plan, options, &missing);
	if (status)
		return status;
	if (plan->nvariants == 0 && missing != INT64_MAX)
		return epg_fail(EPG_NO_MEMORY, "options.workspace_limit_nbytes is %lld, but must be at least %lld more for this problem",
			(long long)options->workspace_limit_nbytes, (long long)missing);
	if (plan->nvariants == 0)
		return epg_fail(EPG_UNSUPPORTED, "no lowering of the %s backend takes this problem:\n%s", backend->name, plan->refusals ? plan->refusals : "");
	status = choose(plan, options);
	if (!status)
		status = backend->plan_create(plan->context->state, &plan->problem, &plan->variants[plan->chosen], own_workspace && !plan->staged, &plan->state);
	if (status)
		return status;
	backend->plan_info(plan->state, &plan->info);
	if (plan->staged) {
		plan->staging_nbytes = plan->info.workspace_nbytes;
		plan->info.workspace_nbytes = 0;
	}
	return EPG_SUCCESS;
}

epg_status epg_plan_make(epg_context *context, const epg_matmul_desc *desc, const epg_plan_options *options, bool own_workspace, epg_plan **out)
{
	epg_plan_options full;
	epg_error before;
	epg_error_keep(&before);
	if (!context || !out)
		return epg_fail(EPG_INVALID, "%s is NULL", context ? "plan" : "context");
	epg_status status = read_options(options, &full);
	if (status)
		return status;
	epg_plan *plan = calloc(1, sizeof *plan);
	if (!plan)
		return epg_fail(EPG_NO_MEMORY, "no memory for a plan (%zu bytes)", sizeof *plan);
	plan->context = context;
	status = epg_problem_from_desc(desc, &plan->problem);
	if (status) {
		free(plan);
		return status;
	}
	epg_desc_read(desc, &plan->desc);
	epg_problem_line(&plan->desc, plan->line, sizeof plan->line);
	plan->problem.sm_count = full.sm_count;
	plan->problem.workspace_limit_nbytes = full.workspace_limit_nbytes;
	status = build(plan, &full, own_workspace);
	if (status) {
		epg_fail_context(plan->line);
		epg_log_write(&context->log, EPG_LOG_ERROR, "plan: %s", epg_last_error());
		free(plan->refusals);
		free(plan);
		return status;
	}
	atomic_fetch_add(&context->references, 1);
	char pin[EPG_PIN_NBYTES];
	epg_pin_print(context->backend, &plan->variants[plan->chosen], pin, sizeof pin);
	epg_log_write(&context->log, EPG_LOG_INFO, "plan: %s: %s, %s", plan->line, pin, plan->reason);
	*out = plan;
	epg_error_restore(&before);
	return EPG_SUCCESS;
}

epg_status epg_plan_create(epg_context *context, const epg_matmul_desc *desc, const epg_plan_options *options, epg_plan **plan)
{
	return epg_plan_make(context, desc, options, true, plan);
}

void epg_plan_destroy(epg_plan *plan)
{
	if (!plan)
		return;
	epg_context *context = plan->context;
	context->backend->plan_destroy(plan->state);
	free(plan->refusals);
	free(plan);
	epg_context_release(context);
}

/* ---- Telling ---- */

static void explain_candidates(const epg_plan *plan, epg_text *out)
{
	char pin[EPG_PIN_NBYTES];
	for (int32_t i = 0; i < plan->nvariants; i++) {
		epg_pin_print(plan->context->backend, &plan->variants[i], pin, sizeof pin);
		epg_text_add(out, "candidate %d: %s, estimated %.3g us", i, pin, plan->variants[i].cost_s * 1e6);
		if (plan->measured_s[i] > 0)
			epg_text_add(out, ", measured %.3g us", plan->measured_s[i] * 1e6);
		epg_text_add(out, "\n");
	}
}

/* Straight into the caller's text: there may be any number of lines. */
epg_status epg_plan_explain(const epg_plan *plan, char *text, size_t text_nbytes, size_t *needed_nbytes)
{
	char own[2048] = "", pin[EPG_PIN_NBYTES];
	if (!plan)
		return epg_fail(EPG_INVALID, "plan is NULL");
	if (text_nbytes > 0 && !text)
		return epg_fail(EPG_INVALID, "text is NULL although text_nbytes is %zu", text_nbytes);
	epg_text out = {text, text_nbytes, 0};
	epg_pin_print(plan->context->backend, &plan->variants[plan->chosen], pin, sizeof pin);
	plan->context->backend->plan_explain(plan->state, own, sizeof own);
	epg_text_add(&out, "problem: %s\nway: %s (%s)\nworkspace: %zu bytes\n%s", plan->line, pin, plan->reason, plan->info.workspace_nbytes, own);
	if (plan->staged)
		epg_text_add(&out, "operands are on the host: each execution takes them to %lld bytes of the device's memory, and the outputs back\n",
			(long long)epg_host_nbytes(plan));
	if (plan->problem.swapped)
		epg_text_add(&out, "D is row-major: computed as its transpose, with a and b exchanged\n");
	explain_candidates(plan, &out);
	if (plan->refusals)
		epg_text_add(&out, "not taken:\n%s", plan->refusals);
	if (needed_nbytes)
		*needed_nbytes = out.length + 1;
	return EPG_SUCCESS;
}

epg_status epg_plan_pin(const epg_plan *plan, int32_t i, char *text, size_t text_nbytes, size_t *needed_nbytes)
{
	char pin[EPG_PIN_NBYTES];
	if (!plan)
		return epg_fail(EPG_INVALID, "plan is NULL");
	if (i < 0 || i >= plan->nvariants)
		return epg_fail(EPG_INVALID, "i is %d, but must be from 0 to %d", i, plan->nvariants - 1);
	epg_pin_print(plan->context->backend, &plan->variants[i], pin, sizeof pin);
	return epg_text_out(pin, text, text_nbytes, needed_nbytes);
}
