/* SPDX-License-Identifier: Apache-2.0
 *
 * Problem lines from options, arguments and files. Every option that is about the problem replaces or adds a word key=value, so there is
 * one grammar, the library's, and its parser finds the errors. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define BLANKS " \t\r\n\v\f"

/* ---- Words as others write them ---- */

/* hipblaslt-bench's names of types end with _r, or _c for complex ones. */
static const char *const alias[][2] = {{"f32_c", "c64"}, {"f64_c", "c128"}, {"xf32_r", "tf32"}, {"f64_r", "f64"}, {"f32_r", "f32"}, {"f16_r", "f16"}, {"bf16_r", "bf16"}};

static const char *plain_word(const char *value)
{
	for (size_t i = 0; i < sizeof alias / sizeof *alias; i++)
		if (strcmp(value, alias[i][0]) == 0)
			return alias[i][1];
	return value;
}

int edits_add(line_edits *e, const char *key, const char *value)
{
	int i = 0;
	value = plain_word(value);
	if (strlen(value) >= sizeof e->value[0] || strlen(value) != strcspn(value, BLANKS "#"))
		return 0;
	if (strcmp(key, "type") == 0)
		return snprintf(e->type, sizeof e->type, "%s", value) < (int)sizeof e->type;
	while (i < e->count && strcmp(e->key[i], key))
		i++;
	if (i == (int)(sizeof e->key / sizeof *e->key))
		return 0;
	e->count += i == e->count;
	snprintf(e->key[i], sizeof e->key[i], "%s", key);
	snprintf(e->value[i], sizeof e->value[i], "%s", value);
	return 1;
}

/* ---- Sweeps ---- */

static const char *add_plain(line_list *list, const char *line)
{
	if (list->count == MAX_LINES)
		return "there are more than 100000 problems";
	if (list->count % 64 == 0) {
		char **more = realloc(list->line, (size_t)(list->count + 64) * sizeof *more);
		if (!more)
			return "no memory";
		list->line = more;
	}
	char *copy = strdup(line);
	if (!copy)
		return "no memory";
	list->line[list->count++] = copy;
	return NULL;
}

typedef struct sweep {
	int64_t begin, end, by;
	int times;          /* by is a factor, else a step */
	int at, length;     /* of its text in the line */
} sweep;

/* The next value; past the end where it would overflow. */
static int64_t next_value(const sweep *s, int64_t x)
{
	int64_t next;
	return (s->times ? __builtin_mul_overflow(x, s->by, &next) : __builtin_add_overflow(x, s->by, &next)) ? INT64_MAX : next;
}

/* The first word of the line that is a sweep; what only looks like one is left to the parser, which refuses it. */
static int find_sweep(const char *line, sweep *s)
{
	for (const char *at = strchr(line, '='); at; at = strchr(at + 1, '=')) {
		long long begin, end, by;
		char sign;
		int length = 0;
		if (sscanf(at + 1, "%lld:%lld:%c%lld%n", &begin, &end, &sign, &by, &length) != 4 || (at[1 + length] && !strchr(BLANKS, at[1 + length])))
			continue;
		*s = (sweep){begin, end, by, sign == '*', (int)(at + 1 - line), length};
		if (begin <= end && end < INT64_MAX && ((sign == '*' && by > 1 && begin > 0) || (sign == '+' && by > 0)))
			return 1;
	}
	return 0;
}

static const char *expand(line_list *list, const char *line)
{
	sweep s;
	const char *wrong = NULL;
	if (!find_sweep(line, &s))
		return add_plain(list, line);
	for (int64_t x = s.begin; x <= s.end && !wrong; x = next_value(&s, x)) {
		char one[LINE_NBYTES];
		int length = snprintf(one, sizeof one, "%.*s%lld%s", s.at, line, (long long)x, line + s.at + s.length);
		wrong = length < LINE_NBYTES ? expand(list, one) : "a problem line is too long";
	}
	return wrong;
}

/* ---- Lines ---- */

static int is_edited(const line_edits *edits, const char *word)
{
	for (int i = 0; i < edits->count; i++)
		if (strncmp(word, edits->key[i], strlen(edits->key[i])) == 0 && word[strlen(edits->key[i])] == '=')
			return 1;
	return 0;
}

const char *lines_add(line_list *list, const char *line, const line_edits *edits)
{
	char text[LINE_NBYTES], out[LINE_NBYTES] = "", *rest;
	size_t length = strcspn(line, "#"), used = 0;
	if (length >= sizeof text)
		return "a problem line is too long";
	memcpy(text, line, length);
	text[length] = 0;
	const char *word = strtok_r(text, BLANKS, &rest);
	for (int first = 1; word && used < sizeof out; word = strtok_r(NULL, BLANKS, &rest), first = 0)
		if (first || !is_edited(edits, word))
			used += (size_t)snprintf(out + used, sizeof out - used, "%s%s", first ? "" : " ", first && *edits->type ? edits->type : word);
	for (int i = 0; i < edits->count && used < sizeof out; i++)
		used += (size_t)snprintf(out + used, sizeof out - used, " %s=%s", edits->key[i], edits->value[i]);
	return used < sizeof out ? expand(list, out) : "a problem line is too long";
}

const char *lines_add_file(line_list *list, const char *path, const line_edits *edits)
{
	char line[LINE_NBYTES];
	const char *wrong = NULL;
	FILE *file = strcmp(path, "-") ? fopen(path, "r") : stdin;
	if (!file)
		return strerror(errno);
	while (!wrong && fgets(line, sizeof line, file)) {
		if (!strchr(line, '\n') && !feof(file))
			wrong = "a line is too long";
		else if (line[strspn(line, BLANKS)] && line[strspn(line, BLANKS)] != '#')
			wrong = lines_add(list, line, edits);
	}
	if (file != stdin)
		fclose(file);
	return wrong;
}

void lines_free(line_list *list)
{
	for (int i = 0; i < list->count; i++)
		free(list->line[i]);
	free(list->line);
}
