/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors and the log. An error is decided in one place: that place calls epg_fail, which keeps the sentence for
 * epg_last_error and hands the status back. The innermost sentence is the one that counts, callers only pass the
 * status on. Log messages go to the context's callback and nowhere else. */
#ifndef EPG_LOG_H
#define EPG_LOG_H

#include "epigemm.h"

#if defined(__GNUC__)
#define EPG_PRINTF(at, first) __attribute__((__format__(__printf__, at, first)))
#else
#define EPG_PRINTF(at, first)
#endif

enum { EPG_TEXT_NBYTES = 1024 }; /* longest sentence or problem line */

/* Where log messages of a context go; fn NULL: nowhere. */
typedef struct epg_log {
	void (*fn)(void *user, int32_t level, const char *message);
	void *user;
	int32_t level;
} epg_log;

/* Sets the thread's last error to the sentence and returns status. */
epg_status epg_fail(epg_status status, const char *format, ...) EPG_PRINTF(2, 3);

/* A call that tries what may fail, and succeeds all the same, leaves the last error as it was: it keeps that first and puts it back. */
typedef struct epg_error { char text[2 * EPG_TEXT_NBYTES]; } epg_error;
void epg_error_keep(epg_error *error);
void epg_error_restore(const epg_error *error);

/* Appends " [line]" to the thread's last error, once; for callers that know the problem. */
void epg_fail_context(const char *line);

void epg_log_write(const epg_log *log, int32_t level, const char *format, ...) EPG_PRINTF(3, 4);

/* Gives out a text under the header's rule for texts. */
epg_status epg_text_out(const char *from, char *text, size_t text_nbytes, size_t *needed_nbytes);

/* A text that is written piece by piece and cut, never overrun, at its capacity; length counts what would be needed. */
typedef struct epg_text {
	char *at;
	size_t nbytes, length;
} epg_text;

void epg_text_add(epg_text *text, const char *format, ...) EPG_PRINTF(2, 3);

#endif
