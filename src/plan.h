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

enum { EPG_PIN_NBYTES = 512 };

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

/* What an execution must give: decided by the plan as far as it can be. In the order of EPG_OPERAND_…, canonical problem. */
enum { EPG_NOT_NEEDED, EPG_NEEDED, EPG_NEEDED_BY_PRODUCT /* unless alpha is 0 */, EPG_NEEDED_BY_BETA /* unless beta is 0 */, EPG_NPOINTERS = 7 };

typedef struct epg_pointer_rule {
	const char *name;     /* the caller's */
	int need;
	bool refused, output;
	const epg_view *view; /* of the plan's problem; NULL: a vector */
	int32_t type;
	int64_t nbytes;
	uintptr_t misaligned; /* bits that must be 0 */
} epg_pointer_rule;

struct epg_plan {
	epg_context *context;
	void *state;
	epg_matmul_desc desc;
	epg_problem problem;
	epg_plan_info_backend info;
	epg_variant variants[EPG_MAX_VARIANTS]; /* every candidate, the best estimate first */
	int32_t nvariants, chosen;
	bool staged;                            /* pointers are the host's, and the backend's memory is not: host_memory.c */
	size_t staging_nbytes;                  /* workspace of one such execution */
	int64_t extent_nbytes[EPG_NPOINTERS]; /* by EPG_OPERAND_… in the canonical problem: bytes from the pointer to the end */
	epg_pointer_rule pointers[EPG_NPOINTERS];
	char line[EPG_TEXT_NBYTES];
	double measured_s[EPG_MAX_VARIANTS]; /* 0: not measured */
	char *refusals;           /* why lowerings or variants are not candidates, a line each; NULL: none */
	char reason[256];         /* why the chosen one was chosen */
};

/* "cpu/split threads=4", and back; the parsed variant has only lowering and param set. */
void epg_pin_print(const epg_backend *backend, const epg_variant *variant, char *text, size_t text_nbytes);
epg_status epg_pin_parse(const epg_backend *backend, const char *text, epg_variant *variant);

/* epg_plan_create, but the plan need not own its workspace: then every execution must be given one. */
epg_status epg_plan_make(epg_context *context, const epg_matmul_desc *desc, const epg_plan_options *options, bool own_workspace, epg_plan **plan);

/* Adds "name: why" to plan->refusals. EPG_NO_MEMORY. */
epg_status epg_plan_refuse(epg_plan *plan, const char *name, const char *why);

/* Fills plan->pointers from the problem and the extents. */
void epg_operands_prepare(epg_plan *plan);

/* Checks the pointers of an execution and fills the call, in canonical form. *empty: there is nothing to do. In operands.c. */
epg_status epg_operands_check(const epg_plan *plan, const epg_operands *operands, epg_call *call, bool *empty);

/* Does this execution use the operand (EPG_OPERAND_…, canonical problem)? For a call that has been checked. */
bool epg_operand_needed(const epg_plan *plan, const epg_call *call, int operand);

/* Carries a staged plan out: operands to the device, outputs back. In host_memory.c. */
epg_status epg_host_execute(const epg_plan *plan, const epg_call *call);

/* Device memory of one such execution, at most. */
int64_t epg_host_nbytes(const epg_plan *plan);

/* Times the plan's candidates on scratch memory and sets plan->chosen and plan->reason. In tune.c. */
epg_status epg_tune(epg_plan *plan, int32_t rigor);

#endif
