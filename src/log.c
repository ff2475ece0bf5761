/* SPDX-License-Identifier: Apache-2.0
 *
 * The thread's last error, the log callback, and texts given out to callers. */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Long enough for a sentence and the problem line behind it. */
static __thread char last_error[sizeof(epg_error)];

const char *epg_last_error(void)
{
	return last_error;
}

epg_status epg_fail(epg_status status, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(last_error, EPG_TEXT_NBYTES, format, args);
	va_end(args);
	return status;
}

void epg_error_keep(epg_error *error)
{
	memcpy(error->text, last_error, sizeof last_error);
}

void epg_error_restore(const epg_error *error)
{
	memcpy(last_error, error->text, sizeof last_error);
}

void epg_fail_context(const char *line)
{
	size_t length = strlen(last_error);
	if (length == 0 || last_error[length - 1] != ']')
		snprintf(last_error + length, sizeof last_error - length, " [%s]", line);
}

void epg_log_write(const epg_log *log, int32_t level, const char *format, ...)
{
	if (!log->fn || level > log->level)
		return;
	char message[2 * EPG_TEXT_NBYTES];
	va_list args;
	va_start(args, format);
	vsnprintf(message, sizeof message, format, args);
	va_end(args);
	log->fn(log->user, level, message);
}

epg_status epg_text_out(const char *from, char *text, size_t text_nbytes, size_t *needed_nbytes)
{
	size_t length = strlen(from);
	if (text_nbytes > 0 && !text)
		return epg_fail(EPG_INVALID, "text is NULL although text_nbytes is %zu", text_nbytes);
	if (text_nbytes > 0) {
		size_t kept = length < text_nbytes ? length : text_nbytes - 1;
		memcpy(text, from, kept);
		text[kept] = 0;
	}
	if (needed_nbytes)
		*needed_nbytes = length + 1;
	return EPG_SUCCESS;
}

void epg_text_add(epg_text *text, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	size_t room = text->length < text->nbytes ? text->nbytes - text->length : 0;
	int added = vsnprintf(room ? text->at + text->length : NULL, room, format, args);
	va_end(args);
	if (added > 0)
		text->length += (size_t)added;
}
