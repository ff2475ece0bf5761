/* SPDX-License-Identifier: Apache-2.0
 *
 * A test double of the CUDA runtime and of cuBLASLt on host memory, as far as the CUDA backend calls them. It computes by plain loops,
 * counts what it is asked for, keeps the vendor's rules (and its traps: it validates nothing where the vendor does not), and fails on
 * request. 'Kernels' are those of pass_double.c. Work is done at once, in the order it comes. Not thread-safe but for counting. */
#ifndef DOUBLE_H
#define DOUBLE_H

#include <stddef.h>
#include <stdint.h>

/* Everything the backend may call, for counting and for failing. */
typedef enum double_call {
	DOUBLE_NONE,
	/* never while an execution is on its way */
	DOUBLE_MALLOC, DOUBLE_FREE, DOUBLE_MALLOC_ASYNC, DOUBLE_FREE_ASYNC, DOUBLE_MEMCPY, DOUBLE_SYNCHRONIZE, DOUBLE_QUERY, DOUBLE_EVENT, DOUBLE_STREAM,
	DOUBLE_LT_CREATE, DOUBLE_HEURISTIC, DOUBLE_ALGO_INIT, DOUBLE_ALGO_SET, DOUBLE_ALGO_GET, DOUBLE_ALGO_CHECK, DOUBLE_LAYOUT, DOUBLE_DESC_INIT, DOUBLE_PREFERENCE,
	/* allowed there */
	DOUBLE_DEVICE, DOUBLE_MEMSET, DOUBLE_DESC_SET, DOUBLE_MATMUL, DOUBLE_LAUNCH,
	DOUBLE_CALLS
} double_call;

typedef struct double_state {
	long count[DOUBLE_CALLS];
	double_call fail;         /* this function … */
	long fail_at;             /* … fails at its fail_at-th call from now, counted from 1; 0: never */
	long live_allocations, live_handles, live_events, live_streams;
	int devices;              /* how many there are */
	int driver_version;       /* as cudaDriverGetVersion tells it; 0: no driver */
	int device_count_error;   /* what cudaGetDeviceCount answers */
	int current_device;
	int capturing;            /* a stream of the device is being captured */
	int empty_heuristics;     /* 1: success without a result; 2: a result whose own state is not success */
	int old_kernels;          /* only algorithms without stages are proposed */
	int damaged_guards;       /* allocations that were written outside of their bounds */
	char complaint[512];      /* the first rule that was broken: what the real one would not have survived */
} double_state;

/* The one state, in the shared library. */
double_state *epg_double(void);

/* Counts a call; nonzero when it is to fail. For pass_double.c. */
int epg_double_count(double_call call);
void epg_double_complain(const char *format, ...);

#endif
