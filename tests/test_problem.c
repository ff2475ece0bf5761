/* SPDX-License-Identifier: Apache-2.0
 *
 * The problem lines of tests/problems, one point per line: small integers and reals, in place where the layouts
 * allow it, with scalars overridden, under the default plan, every lowering that the plan lists, and every algorithm.
 *
 *     test_problem                       all files of $srcdir/tests/problems, $srcdir/problems or $PROBLEMS
 *     test_problem FILE…                 the lines of these files
 *     test_problem 'f32 m=3 n=4 k=5'     this line, or one that a failing test has printed, with its '#test …' */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* strdup */
#endif
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"
#include "tap.h"

enum { LINE_NBYTES = 1024, MAX_FILES = 64 };

static epg_context *context;

/* print and parse must be inverse to each other. */
static int survives_printing(const epg_matmul_desc *desc)
{
	char first[LINE_NBYTES], second[LINE_NBYTES];
	epg_matmul_desc again;
	if (epg_matmul_desc_print(desc, first, sizeof first, NULL) != EPG_SUCCESS || !parse_desc(first, &again)) {
		diag("print or parse: %s", epg_last_error());
		return 0;
	}
	epg_matmul_desc_print(&again, second, sizeof second, NULL);
	if (strcmp(first, second) == 0 && memcmp(desc, &again, sizeof again) == 0)
		return 1;
	diag("printed as %s, parsed, and printed as %s", first, second);
	return 0;
}

static int check_all(const epg_matmul_desc *desc)
{
	int scalars = desc->alpha[0] != 0 || desc->alpha[1] != 0; /* an overridden alpha = 0 has a test of its own */
	int good = check_problem(context, desc, &(check_options){ .data = DATA_INTEGERS, .seed = 1, .all_pins = 1 });
	good &= check_problem(context, desc, &(check_options){ .data = DATA_REALS, .seed = 2, .offset = 1, .null_unread = 1, .all_pins = 1 });
	good &= check_problem(context, desc, &(check_options){ .data = DATA_REALS, .seed = 5, .all_pins = 2 });
	if (scalars)
		good &= check_problem(context, desc, &(check_options){ .data = DATA_INTEGERS, .seed = 3, .override_scalars = 1, .all_pins = 1 });
	for (int place = IN_PLACE_C; place <= IN_PLACE_AUX; place++)
		if (can_be_in_place(desc, place) && oracle_is_defined(desc))
			for (int data = DATA_INTEGERS; data <= DATA_REALS; data++)
				good &= check_problem(context, desc, &(check_options){ .data = data, .seed = 4, .in_place = place, .all_pins = 1 });
	return good;
}

static int check_one_line(const char *line)
{
	epg_matmul_desc desc;
	if (strstr(line, "#test "))
		return check_line(context, line, NULL);
	if (!parse_desc(line, &desc))
		return 0;
	return survives_printing(&desc) & check_all(&desc);
}

static void run_line(char *line)
{
	line[strcspn(line, "\n")] = '\0';
	if (line[strspn(line, " \t")] != '\0' && line[strspn(line, " \t")] != '#')
		ok(check_one_line(line), "%s", line);
}

static void run_file(const char *path)
{
	char line[LINE_NBYTES];
	FILE *file = fopen(path, "r");
	if (!file) {
		ok(0, "%s can be read", path);
		return;
	}
	diag("%s", path);
	while (fgets(line, sizeof line, file))
		run_line(line);
	fclose(file);
}

static int by_name(const void *x, const void *y) { return strcmp(*(char *const *)x, *(char *const *)y); }

static int run_folder(const char *path)
{
	char *names[MAX_FILES], full[4096];
	int count = 0;
	DIR *folder = opendir(path);
	if (!folder)
		return 0;
	for (struct dirent *entry; count < MAX_FILES && (entry = readdir(folder));)
		if (strlen(entry->d_name) > 4 && !strcmp(entry->d_name + strlen(entry->d_name) - 4, ".txt"))
			names[count++] = strdup(entry->d_name);
	closedir(folder);
	qsort(names, (size_t)count, sizeof *names, by_name);
	for (int i = 0; i < count; i++) {
		snprintf(full, sizeof full, "%s/%s", path, names[i]);
		run_file(full);
		free(names[i]);
	}
	return count;
}

static void run_default(void)
{
	const char *problems = getenv("PROBLEMS"), *srcdir = getenv("srcdir");
	char below[4096], here[4096];
	snprintf(below, sizeof below, "%s/tests/problems", srcdir ? srcdir : ".");
	snprintf(here, sizeof here, "%s/problems", srcdir ? srcdir : ".");
	int files = problems ? run_folder(problems) : run_folder(below);
	if (!files && !problems)
		files = run_folder(here);
	ok(files > 0, "there are problem files");
}

int main(int argc, char **argv)
{
	const char *why = "";
	context = test_context(0, &why);
	if (!context)
		return without_context(why);
	for (int i = 1; i < argc; i++)
		if (strchr(argv[i], '='))
			run_line(argv[i]);
		else
			run_file(argv[i]);
	if (argc < 2)
		run_default();
	epg_context_destroy(context);
	return done_testing();
}
