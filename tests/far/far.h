/* SPDX-License-Identifier: Apache-2.0
 *
 * A device that is not there: a plug-in by the name of cuda that computes with the CPU backend, but whose memory cannot be touched from
 * the host (its addresses have a bit too many), and whose executions happen only when they are waited for. It finds out what a program
 * or the core does that only works where memory is the host's and everything is done at once. Its symbol far_control gives the
 * state below. */
#ifndef FAR_H
#define FAR_H

typedef struct far_state {
	long calls;          /* that may fail: alloc, upload, download, synchronize, plan_create, execute, time */
	long fail_at;        /* this one of them fails, counted from 1; 0: none */
	long failed_alloc;   /* the one that failed was an alloc (1), or another (0) */
	long live;           /* blocks of device memory */
	long pending;        /* executions that nobody has waited for */
	long timed;          /* calls of time */
	char complaint[256]; /* the first rule that was broken */
} far_state;

far_state *far_control(void);

#endif
