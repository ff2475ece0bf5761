/* SPDX-License-Identifier: Apache-2.0
 *
 * One problem from desc to verdict: operands are built in host images with guard bytes around and a pattern in every
 * gap, copied to the backend, executed, copied back, and everything is compared: D, mask bits, aux and gradients with
 * the oracle; inputs, guards and padding with what they were.
 *
 * The verdict's diagnostics end with a problem line; what the line does not say stands behind '#test', and
 * test_problem takes the whole as an argument. The backend is $EPIGEMM_TEST_BACKEND, or cpu. */
#ifndef SUPPORT_H
#define SUPPORT_H

#include <stddef.h>

#include "oracle.h"

enum { OPERANDS = EPG_OPERAND_BGRAD + 1, PIN_NBYTES = 256, MAX_PINS = 64 };

/* INTEGERS: small ones, every sum is exact, so results must be equal (but for GELU). REALS: uniform in [-1,1). */
enum { DATA_INTEGERS, DATA_REALS };
enum { IN_PLACE_NO, IN_PLACE_C, IN_PLACE_AUX };

/* Everything about a check that is not in the desc. Zeros are a sound choice. */
typedef struct {
	int data;
	uint64_t seed;
	int in_place;
	int offset;           /* operands begin that many elements after a 256-byte boundary */
	int override_scalars; /* plan with other alpha and beta, and give the desc's at execute */
	int null_unread;      /* NULL instead of NaNs for an A, B or C that must not be read */
	int may_refuse;       /* EPG_UNSUPPORTED at plan is right as well */
	int all_pins;         /* 1: after the default plan also every lowering that it lists; 2: on a device also every algorithm */
	int workspace_limit;  /* bytes; 0: the backend's own */
	char pin[PIN_NBYTES]; /* only this lowering */
} check_options;

typedef struct {
	oracle_layout layout;
	int is_output;
	size_t total, start;  /* bytes of an image, and where the operand begins in it */
	unsigned char *before, *after;
	void *device;         /* total bytes, or NULL */
} operand;

typedef struct {
	epg_matmul_desc desc;
	check_options options;
	operand x[OPERANDS];
	oracle_result want;
	epg_context *context; /* that the device memory belongs to */
	int on_device;        /* the context is not the CPU's */
	int complaints;       /* diagnostics printed for this problem */
} problem;

/* ---- The one-call form ---- */

/* Checks layouts, then builds, solves, executes and compares; a desc without meaning must be refused as unsupported.
 * Returns 1 when all is right, else 0 and has printed why. options may be NULL. */
int check_problem(epg_context *context, const epg_matmul_desc *desc, const check_options *options);
/* The same for a problem line, '#test …' included. */
int check_line(epg_context *context, const char *line, const check_options *options);

/* ---- In steps ---- */

int problem_open(problem *p, const epg_matmul_desc *desc, const check_options *options);
void problem_solve(problem *p);
/* Runs with the pin (NULL: the planner's choice) and compares; 1 when right. */
int problem_run(epg_context *context, problem *p, const char *pin);
/* Lists the lowerings that a plan for p names; the count, 0 when there is no plan. */
int problem_pins(epg_context *context, problem *p, char pins[MAX_PINS][PIN_NBYTES]);
void problem_close(problem *p);

/* An operand's elements in the image before or after execution. */
void *problem_before(problem *p, int which);
void *problem_after(problem *p, int which);
int problem_layouts_agree(problem *p);
/* A diagnostic line about p; the problem line follows the first one. */
__attribute__((format(printf, 2, 3))) void problem_complain(problem *p, const char *format, ...);
/* Uploads, plans and executes; the status of the first call that failed. */
epg_status problem_execute(epg_context *context, problem *p, const char *pin);
/* Compares all outputs (compare.c). */
int problem_compare(problem *p);
/* Nothing may have changed: for calls that are refused. */
int problem_untouched(problem *p);

/* ---- Helpers ---- */

/* A context on the backend under test; NULL when it is not there, and *why says so (until the next failure). */
epg_context *test_context(int threads, const char **why);
/* What main returns then: the program is skipped where the backend is absent, and fails for any other reason. */
int without_context(const char *why);
int context_threads(const epg_context *context);
int context_is_device(const epg_context *context);

uint64_t next_random(uint64_t *state);
int random_below(uint64_t *state, int limit);
double random_real(uint64_t *state); /* in [-1, 1) */

epg_matmul_desc make_desc(int32_t type, int64_t m, int64_t n, int64_t k, int32_t order, int32_t epilog);
int parse_desc(const char *line, epg_matmul_desc *desc); /* 1 when understood, else it has said why not */
int can_be_in_place(const epg_matmul_desc *desc, int in_place);

extern const int32_t all_epilogs[16];

#endif
