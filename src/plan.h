/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts and plans as the core sees them. Planning walks the backend's lowerings in order, collects the variants of those
 * that support the problem, and picks one: the pinned, the known from wisdom, the measured fastest, or the best estimate. */
#ifndef EPG_PLAN_H
#define EPG_PLAN_H

#include <pthread.h>
#include <stdatomic.h>

#include "backend.h"
#include "log.h"
#include "wisdom.h"

enum { EPG_PIN_NBYTES = 512, EPG_EXPLAIN_NBYTES = 8192 };

struct epg_context {
	atomic_int references; /* the caller's and one for each plan */
	const epg_backend *backend;
	void *state;
	epg_allocator allocator;
	epg_log log;
	pthread_mutex_t wisdom_lock;
	epg_wisdom wisdom;
};

void epg_context_release(epg_context *context);

struct epg_plan {
	epg_context *context;
	void *state;
	epg_matmul_desc desc;
	epg_problem problem;
	epg_plan_info_backend info;
	epg_variant variants[EPG_MAX_VARIANTS]; /* every candidate, the best estimate first */
	int32_t nvariants, chosen;
	int64_t extent_nbytes[7]; /* by EPG_OPERAND_… in the canonical problem: bytes from the pointer to the end */
	char line[EPG_TEXT_NBYTES];
	char refusals[2048];      /* why lowerings or variants are not candidates, a line each */
	char reason[256];         /* why the chosen one was chosen */
};

/* "cpu/split threads=4", and back; the parsed variant has only lowering and param set. */
void epg_pin_print(const epg_backend *backend, const epg_variant *variant, char *text, size_t text_nbytes);
epg_status epg_pin_parse(const epg_backend *backend, const char *text, epg_variant *variant);

/* Checks the pointers of an execution and fills the call, in canonical form. *empty: there is nothing to do. In operands.c. */
epg_status epg_operands_check(const epg_plan *plan, const epg_operands *operands, epg_call *call, bool *empty);

/* Times the plan's candidates on scratch memory and sets plan->chosen and plan->reason. In tune.c. */
epg_status epg_tune(epg_plan *plan, int32_t rigor);

#endif
