/* SPDX-License-Identifier: Apache-2.0
 *
 * What the robustness tests share: looking for words in the last error, buffers of any type filled with small integers,
 * a context with a given number of threads, and a wait for a child process that cannot hang the test. */
#ifndef ROBUST_H
#define ROBUST_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* so this header is the first of each test */
#endif

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <epigemm.h>

#include "tap.h"

#define UNUSED __attribute__((unused))
#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

/* Is one of the alternatives in text? "a.ld|lda" means either. An empty or NULL word is always there. */
UNUSED static int has_word(const char *text, const char *alternatives)
{
	char word[128];
	while (alternatives && *alternatives) {
		size_t n = strcspn(alternatives, "|");
		if (n < sizeof word) {
			memcpy(word, alternatives, n);
			word[n] = '\0';
			if (strstr(text, word))
				return 1;
		}
		alternatives += n;
		if (!*alternatives++)
			return 0;
	}
	return 1;
}

UNUSED static int says(const char *alternatives) { return has_word(epg_last_error(), alternatives); }

/* ok() for a status, with the last error as a diagnosis. */
UNUSED static int status_is(epg_status got, epg_status want, const char *what)
{
	int good = ok(got == want, "%s: %s", what, epg_status_string(want));
	if (!good)
		diag("got %s; last error: %s", epg_status_string(got), epg_last_error());
	return good;
}

UNUSED static epg_context *new_context(int threads)
{
	epg_context_options options;
	epg_context *context = NULL;
	if (epg_context_options_init(&options, sizeof options))
		return NULL;
	options.threads = threads;
	if (epg_context_create(&options, &context))
		diag("context: %s", epg_last_error());
	return context;
}

/* A 32-bit generator with a state of its own (numerical recipes' constants, high bits used). */
UNUSED static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

/* Integers -4 … 4 as f32 or f64 (count real numbers, so twice as many for complex). */
UNUSED static void fill_numbers(void *to, int is_f64, int64_t count, uint64_t seed)
{
	for (int64_t i = 0; i < count; i++) {
		double x = (double)(next_random(&seed) % 9) - 4;
		if (is_f64)
			((double *)to)[i] = x;
		else
			((float *)to)[i] = (float)x;
	}
}

/* Numbers in (-1, 1) that are no integers. */
UNUSED static void fill_reals(void *to, int is_f64, int64_t count, uint64_t seed)
{
	for (int64_t i = 0; i < count; i++) {
		double x = (double)next_random(&seed) / 1073741824.0 - 1;
		if (is_f64)
			((double *)to)[i] = x;
		else
			((float *)to)[i] = (float)x;
	}
}

UNUSED static double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Exit status of a child; -1 when it died of a signal, -2 (and it is killed) when it takes longer than limit_s. */
UNUSED static int wait_child(pid_t child, double limit_s)
{
	double end = now_s() + limit_s;
	struct timespec pause = { 0, 2000000 };
	for (;;) {
		int status;
		pid_t done = waitpid(child, &status, WNOHANG);
		if (done == child)
			return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
		if (done < 0)
			return -1;
		if (now_s() > end) {
			kill(child, SIGKILL);
			waitpid(child, &status, 0);
			return -2;
		}
		nanosleep(&pause, NULL);
	}
}

#endif
