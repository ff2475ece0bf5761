/* SPDX-License-Identifier: Apache-2.0
 *
 * Wisdom in memory and in its file, format version 1:
 *
 *     epigemm-wisdom 1
 *     <crc32 of the rest of the line, 8 hex digits> <stamp> | <problem line> | <pin>
 *
 * A file is trusted no further than its checksums: an entry that is damaged, from another stamp, or that this version cannot
 * read is left out, and the log says why. */
#include "wisdom.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "plan.h"

enum { LINE_NBYTES = 4096 };
static const char first_line[] = "epigemm-wisdom 1";

/* ---- In memory ---- */

/* Index of the line, or of where it belongs; *found tells which. */
static size_t position(const epg_wisdom *wisdom, const char *line, bool *found)
{
	size_t low = 0, high = wisdom->count;
	*found = false;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(wisdom->entries[middle].line, line);
		if (order == 0) {
			*found = true;
			return middle;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const char *epg_wisdom_find(const epg_wisdom *wisdom, const char *line)
{
	bool found;
	size_t i = position(wisdom, line, &found);
	return found ? wisdom->entries[i].pin : NULL;
}

static bool grow(epg_wisdom *wisdom)
{
	if (wisdom->count < wisdom->capacity)
		return true;
	size_t capacity = wisdom->capacity ? 2 * wisdom->capacity : 16;
	epg_wisdom_entry *entries = realloc(wisdom->entries, capacity * sizeof *entries);
	if (!entries)
		return false;
	wisdom->entries = entries;
	wisdom->capacity = capacity;
	return true;
}

epg_status epg_wisdom_add(epg_wisdom *wisdom, const char *line, const char *pin)
{
	bool found;
	size_t i = position(wisdom, line, &found);
	char *new_line = found ? NULL : strdup(line), *new_pin = strdup(pin);
	if (!new_pin || (!found && (!new_line || !grow(wisdom)))) {
		free(new_line);
		free(new_pin);
		return epg_fail(EPG_NO_MEMORY, "no memory for an entry of wisdom");
	}
	if (found) {
		free(wisdom->entries[i].pin);
		wisdom->entries[i].pin = new_pin;
		return EPG_SUCCESS;
	}
	memmove(&wisdom->entries[i + 1], &wisdom->entries[i], (wisdom->count - i) * sizeof *wisdom->entries);
	wisdom->entries[i] = (epg_wisdom_entry){new_line, new_pin};
	wisdom->count++;
	return EPG_SUCCESS;
}

void epg_wisdom_free(epg_wisdom *wisdom)
{
	for (size_t i = 0; i < wisdom->count; i++) {
		free(wisdom->entries[i].line);
		free(wisdom->entries[i].pin);
	}
	free(wisdom->entries);
	*wisdom = (epg_wisdom){0};
}

/* CRC-32 of IEEE 802.3, bit by bit: files are small. */
static uint32_t crc32_of(const char *text)
{
	uint32_t crc = 0xffffffff;
	for (; *text; text++) {
		crc ^= (unsigned char)*text;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

static epg_status file_error(const char *path, const char *what, int error)
{
	return epg_fail(error == ENOMEM ? EPG_NO_MEMORY : EPG_INVALID, "path is '%s', which cannot be %s: %s", path, what, strerror(error));
}

/* ---- Writing ---- */

static bool write_entries(FILE *file, const epg_wisdom *wisdom, const char *stamp)
{
	char rest[LINE_NBYTES];
	bool good = fprintf(file, "%s\n", first_line) > 0;
	for (size_t i = 0; i < wisdom->count && good; i++) {
		snprintf(rest, sizeof rest, "%s | %s | %s", stamp, wisdom->entries[i].line, wisdom->entries[i].pin);
		good = fprintf(file, "%08x %s\n", (unsigned)crc32_of(rest), rest) > 0;
	}
	return good && fflush(file) == 0 && fsync(fileno(file)) == 0;
}

/* A new file beside path; its name goes to temporary. Not mkstemp: its files are for the owner alone, and asking for the
 * umask would change it for other threads meanwhile. */
static int create_beside(const char *path, char *temporary, size_t nbytes)
{
	enum { ATTEMPTS = 100 };
	struct timespec time;
	int descriptor = -1;
	clock_gettime(CLOCK_REALTIME, &time);
	uint32_t unique = (uint32_t)time.tv_nsec ^ (uint32_t)getpid() << 12;
	errno = EEXIST;
	for (int i = 0; i < ATTEMPTS && descriptor < 0 && errno == EEXIST; i++) {
		snprintf(temporary, nbytes, "%s.%08x", path, (unsigned)unique++);
		descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	}
	return descriptor;
}

epg_status epg_wisdom_write(const epg_wisdom *wisdom, const char *stamp, const char *path)
{
	size_t nbytes = strlen(path) + sizeof ".12345678";
	char *temporary = malloc(nbytes);
	if (!temporary)
		return epg_fail(EPG_NO_MEMORY, "no memory for the name of a temporary file beside path '%s'", path);
	int descriptor = create_beside(path, temporary, nbytes);
	FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
	bool good = file && write_entries(file, wisdom, stamp);
	int error = errno;
	if (file && fclose(file) && good) {
		error = errno;
		good = false;
	} else if (!file && descriptor >= 0) {
		close(descriptor);
	}
	if (good && rename(temporary, path)) {
		error = errno;
		good = false;
	}
	if (!good && descriptor >= 0)
		unlink(temporary);
	free(temporary);
	return good ? EPG_SUCCESS : file_error(path, "written", error);
}

/* ---- Reading ---- */

typedef enum { LINE_NONE, LINE_GOOD, LINE_BAD, LINE_UNREADABLE } line_kind;

/* The next line without its end. LINE_BAD: too long, or with a NUL in it. LINE_UNREADABLE: errno says why. */
static line_kind read_line(FILE *file, char line[LINE_NBYTES])
{
	size_t length = 0;
	bool bad = false, any = false;
	for (int c; (c = fgetc(file)) != EOF && c != '\n'; ) {
		any = true;
		bad |= c == 0 || length == LINE_NBYTES - 1;
		if (!bad)
			line[length++] = (char)c;
	}
	line[length] = 0;
	if (ferror(file))
		return LINE_UNREADABLE;
	if (!any && feof(file))
		return LINE_NONE;
	return bad ? LINE_BAD : LINE_GOOD;
}

/* Cuts "crc stamp | line | pin" into its parts; why tells what is wrong with it. */
static const char *cut_entry(char *text, const char *stamp, char **line, char **pin)
{
	char *end;
	unsigned long crc = strtoul(text, &end, 16);
	if (end != text + 8 || *end != ' ')
		return "it does not begin with a checksum";
	if (crc != crc32_of(text + 9))
		return "its checksum is wrong";
	char *first = strstr(text + 9, " | "), *second = first ? strstr(first + 3, " | ") : NULL;
	if (!second)
		return "it has no three parts";
	*first = *second = 0;
	*line = first + 3;
	*pin = second + 3;
	return strcmp(text + 9, stamp) ? "it is from another version or device" : NULL;
}

static epg_status read_first_line(FILE *file, const char *path)
{
	char text[LINE_NBYTES];
	line_kind kind = read_line(file, text);
	if (kind == LINE_UNREADABLE)
		return file_error(path, "read", errno);
	if (kind != LINE_GOOD || strcmp(text, first_line))
		return epg_fail(EPG_INVALID, "path is '%s', which is no wisdom: its first line must be '%s'", path, first_line);
	return EPG_SUCCESS;
}

epg_status epg_wisdom_read(epg_wisdom *wisdom, const char *stamp, const char *path, const epg_log *log,
	bool (*check)(const void *user, const char *line, const char *pin, char *why, size_t why_nbytes), const void *user, int64_t *accepted, int64_t *rejected)
{
	char text[LINE_NBYTES], why[512], *line, *pin;
	int64_t good = 0, bad = 0;
	FILE *file = fopen(path, "re");
	if (!file)
		return file_error(path, "read", errno);
	epg_status status = read_first_line(file, path);
	for (line_kind kind; !status && (kind = read_line(file, text)) != LINE_NONE; ) {
		if (kind == LINE_UNREADABLE) {
			status = file_error(path, "read", errno);
			break;
		}
		const char *wrong = kind == LINE_BAD ? "it is too long, or binary" : cut_entry(text, stamp, &line, &pin);
		if (!wrong && !check(user, line, pin, why, sizeof why))
			wrong = why;
		if (wrong) {
			bad++;
			epg_log_write(log, EPG_LOG_WARNING, "wisdom: the entry in line %lld of '%s' is rejected: %s", (long long)(good + bad + 1), path, wrong);
		} else {
			good++;
			status = epg_wisdom_add(wisdom, line, pin);
		}
	}
	fclose(file);
	if (!status && accepted)
		*accepted = good;
	if (!status && rejected)
		*rejected = bad;
	return status;
}

/* ---- The public functions ---- */

static bool makes_sense(const void *user, const char *line, const char *pin, char *why, size_t why_nbytes)
{
	const epg_context *context = user;
	epg_matmul_desc desc;
	epg_problem problem;
	epg_variant variant;
	char refusal[EPG_WHY_NBYTES] = "";
	bool good = !epg_matmul_desc_parse(line, &desc, sizeof desc) && !epg_problem_from_desc(&desc, &problem) && !epg_pin_parse(context->backend, pin, &variant);
	if (!good) {
		snprintf(why, why_nbytes, "%s", epg_last_error());
		return false;
	}
	if (context->backend->supports(context->state, &problem, variant.lowering, refusal) && context->backend->accepts(context->state, &problem, &variant, refusal))
		return true;
	snprintf(why, why_nbytes, "its pin cannot carry the problem out: %s", refusal);
	return false;
}

epg_status epg_wisdom_save(const epg_context *context, const char *path)
{
	char stamp[EPG_TEXT_NBYTES];
	if (!context || !path)
		return epg_fail(EPG_INVALID, "%s is NULL", context ? "path" : "context");
	epg_context *shared = (epg_context *)context; /* only its lock changes */
	context->backend->stamp(context->state, stamp, sizeof stamp);
	pthread_mutex_lock(&shared->wisdom_lock);
	epg_status status = epg_wisdom_write(&context->wisdom, stamp, path);
	pthread_mutex_unlock(&shared->wisdom_lock);
	return status;
}

/* The file is read without the lock, and into wisdom of its own: plans need not wait for it, the log callback may use the
 * context, and a file that cannot be read to its end adds nothing. */
epg_status epg_wisdom_load(epg_context *context, const char *path, int64_t *accepted, int64_t *rejected)
{
	char stamp[EPG_TEXT_NBYTES];
	epg_wisdom fresh = {0};
	int64_t good, bad;
	epg_error before;
	epg_error_keep(&before);
	if (!context || !path)
		return epg_fail(EPG_INVALID, "%s is NULL", context ? "path" : "context");
	context->backend->stamp(context->state, stamp, sizeof stamp);
	epg_status status = epg_wisdom_read(&fresh, stamp, path, &context->log, makes_sense, context, &good, &bad);
	pthread_mutex_lock(&context->wisdom_lock);
	for (size_t i = 0; i < fresh.count && !status; i++)
		status = epg_wisdom_add(&context->wisdom, fresh.entries[i].line, fresh.entries[i].pin);
	pthread_mutex_unlock(&context->wisdom_lock);
	epg_wisdom_free(&fresh);
	if (!status && accepted)
		*accepted = good;
	if (!status && rejected)
		*rejected = bad;
	if (!status)
		epg_error_restore(&before);
	return status;
}
