/* SPDX-License-Identifier: Apache-2.0
 *
 * Pictures by gnuplot, which is a program of its own, looked for when it is wanted. Each pair of type and epilog is a series; the data are in the
 * script, so there are no files but the picture. */
#define _POSIX_C_SOURCE 200809L /* popen */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

typedef struct axis {
	const char *name;
	size_t offset;
} axis;

static const axis sizes[] = {{"m", offsetof(result, m)}, {"n", offsetof(result, n)}, {"k", offsetof(result, k)}, {"batch", offsetof(result, batch)}};
static const axis roofline = {"flop per byte", offsetof(result, intensity)};

static double value(const axis *x, const result *r) { return *(const double *)(const void *)((const char *)r + x->offset); }

int plot_possible(void) { return system("command -v gnuplot > /dev/null 2>&1") == 0; }

/* The one size that differs, else intensity. */
static const axis *choose_axis(const result *r, int count)
{
	const axis *found = &roofline;
	int differing = 0;
	for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
		for (int i = 1; i < count; i++)
			if (value(&sizes[s], &r[i]) != value(&sizes[s], &r[0])) {
				found = &sizes[s];
				differing++;
				break;
			}
	return differing == 1 ? found : &roofline;
}

static int same_series(const result *a, const result *b) { return !strcmp(a->type, b->type) && !strcmp(a->epilog, b->epilog); }

/* Whether a result can be drawn, on an axis that is logarithmic. */
static int is_drawn(const axis *x, const result *r) { return r->gflops > 0 && value(x, r) > 0; }

static int is_first(const axis *x, const result *r, int i)
{
	int j = 0;
	while (j < i && !(is_drawn(x, &r[j]) && same_series(&r[j], &r[i])))
		j++;
	return j == i && is_drawn(x, &r[i]);
}

static double roof(const result *r) { return fmin(r->peak_gflops, r->intensity * r->peak_gbytes); }

/* A block of data for each series: x, GFLOP/s, and the ceiling there. */
static int print_blocks(FILE *out, const axis *x, const result *r, int count)
{
	int series = 0;
	for (int i = 0; i < count; i++) {
		if (!is_first(x, r, i))
			continue;
		fprintf(out, "$series%d << EOD\n", series++);
		for (int j = i; j < count; j++)
			if (is_drawn(x, &r[j]) && same_series(&r[j], &r[i]))
				fprintf(out, isfinite(roof(&r[j])) ? "%.9g %.9g %.9g\n" : "%.9g %.9g NaN\n", value(x, &r[j]), r[j].gflops, roof(&r[j]));
		fprintf(out, "EOD\n");
	}
	return series;
}

static void print_script(FILE *out, const char *path, const axis *x, const result *r, int count)
{
	int series = 0, last = 0;
	fprintf(out, "set terminal svg size 900,600 background 'white' noenhanced\nset output '");
	for (const char *c = path; *c; c++)
		fprintf(out, *c == '\'' ? "''" : "%c", *c);
	fprintf(out, "'\nset logscale x\nset xlabel '%s'\nset ylabel 'GFLOP/s'\nset grid\nset key outside below\n", x->name);
	fprintf(out, x == &roofline ? "set logscale y\n" : "set yrange [0:*]\n");
	print_blocks(out, x, r, count);
	for (int i = 0; i < count; i++) {
		if (!is_first(x, r, i))
			continue;
		fprintf(out, "%s$series%d using 1:2 with %s pointtype 7 title '%s %s'", series ? ", " : "plot ", series, x == &roofline ? "points" : "linespoints", r[i].type, r[i].epilog);
		last = series++;
		if (isfinite(roof(&r[i])))
			fprintf(out, ", $series%d using 1:3 smooth unique with lines dashtype 2 linecolor 'gray' title '%s'", last, series == 1 ? "ceiling" : "");
	}
	fprintf(out, "\n");
}

const char *plot_results(const char *path, const result *r, int count)
{
	const axis *x = choose_axis(r, count);
	int drawn = 0;
	for (int i = 0; i < count; i++)
		drawn += is_drawn(x, &r[i]);
	if (!drawn)
		return "there is no result to draw";
	FILE *out = popen("gnuplot", "w");
	if (!out)
		return "gnuplot cannot be started";
	print_script(out, path, x, r, count);
	return pclose(out) ? "gnuplot failed" : NULL;
}
