/* SPDX-License-Identifier: Apache-2.0
 *
 * Test Anything Protocol, the few lines of it that we need: a test point per call of ok or skip, '# ' diagnostics, and
 * the plan as the last line. Every line is flushed, so that a crash loses nothing. A program that has printed 'not ok'
 * still exits 0: the driver counts the lines, and a non-zero exit would count the failure twice.
 *
 *     ok(x == 3, "x is %d", 3);     skip("no GPU", "graph capture");     return done_testing(); */
#ifndef TAP_H
#define TAP_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TAP_UNUSED __attribute__((unused))
#define TAP_PRINTF(string, first) __attribute__((unused, format(printf, string, first)))

static int tap_count, tap_failures;

/* One point: prints 'ok' or 'not ok' with its number and name, and returns whether it passed. */
TAP_PRINTF(2, 3) static int ok(int passed, const char *format, ...)
{
	char name[1024];
	va_list list;
	va_start(list, format);
	vsnprintf(name, sizeof name, format, list);
	va_end(list);
	for (char *c = name; *c; c++)
		if (*c == '#' || *c == '\n')
			*c = ' '; /* '#' would begin a directive */
	printf("%s %d - %s\n", passed ? "ok" : "not ok", ++tap_count, name);
	fflush(stdout);
	tap_failures += !passed;
	return passed;
}

/* A '# ' line for people, about the point that comes next or the one just printed; line ends inside begin new ones. */
TAP_PRINTF(1, 2) static void diag(const char *format, ...)
{
	char text[8192];
	va_list list;
	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	char *rest = text;
	do {
		size_t length = strcspn(rest, "\n");
		printf("# %.*s\n", (int)length, rest);
		rest += length + (rest[length] == '\n');
	} while (*rest);
	fflush(stdout);
}

/* A point that cannot be tested here, with the reason. */
TAP_PRINTF(2, 3) static void skip(const char *why, const char *format, ...)
{
	char name[1024];
	va_list list;
	va_start(list, format);
	vsnprintf(name, sizeof name, format, list);
	va_end(list);
	printf("ok %d - %s # SKIP %s\n", ++tap_count, name, why);
	fflush(stdout);
}

/* Instead of any point: the whole program cannot run here. Return its value from main. */
TAP_UNUSED static int skip_all(const char *why)
{
	printf("1..0 # SKIP %s\n", why);
	fflush(stdout);
	return 0;
}

/* The plan; the last line of main is 'return done_testing();'. */
TAP_UNUSED static int done_testing(void)
{
	if (tap_failures)
		diag("%d of %d points failed", tap_failures, tap_count);
	printf("1..%d\n", tap_count);
	fflush(stdout);
	return 0;
}

#endif
