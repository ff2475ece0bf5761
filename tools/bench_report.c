/* SPDX-License-Identifier: Apache-2.0
 *
 * Results as text for people, CSV (RFC 4180) or JSON (RFC 8259), all three from one table of columns. A number that there is not is '-', nothing,
 * or null. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "bench.h"

enum { ALWAYS, WITH_CEILING, WITH_COMPARE, NOT_IN_TEXT };

typedef struct column {
	const char *name, *heading; /* of CSV and JSON; of text */
	int width, decimals;        /* in text; decimals < 0: a text, not a number */
	int when;
	size_t offset;
} column;

#define AT(field) offsetof(result, field)

static const column columns[] = {
	{"problem", "problem", 0, -1, ALWAYS, AT(problem)},
	{"type", "", 0, -1, NOT_IN_TEXT, AT(type)},
	{"epilog", "", 0, -1, NOT_IN_TEXT, AT(epilog)},
	{"m", "", 0, 0, NOT_IN_TEXT, AT(m)},
	{"n", "", 0, 0, NOT_IN_TEXT, AT(n)},
	{"k", "", 0, 0, NOT_IN_TEXT, AT(k)},
	{"batch", "", 0, 0, NOT_IN_TEXT, AT(batch)},
	{"status", "status", 7, -1, ALWAYS, AT(status)},
	{"lowering", "lowering", 13, -1, ALWAYS, AT(lowering)},
	{"algorithm", "algorithm", 17, -1, ALWAYS, AT(algorithm)},
	{"us_min", "us min", 10, 2, ALWAYS, AT(us_min)},
	{"us_median", "us median", 10, 2, ALWAYS, AT(us_median)},
	{"gflop_per_s", "GFLOP/s", 9, 1, ALWAYS, AT(gflops)},
	{"gbyte_per_s", "GB/s", 8, 1, ALWAYS, AT(gbytes)},
	{"percent_of_ceiling", "% ceil.", 7, 1, WITH_CEILING, AT(ceiling)},
	{"plan_us", "plan us", 10, 0, ALWAYS, AT(plan_us)},
	{"workspace_nbytes", "workspace", 10, 0, ALWAYS, AT(workspace)},
	{"unfused_ratio", "unfused", 7, 2, WITH_COMPARE, AT(unfused)},
	{"vendor_fused_ratio", "vendor", 7, 2, WITH_COMPARE, AT(vendor_fused)},
	{"flop_per_byte", "", 0, 3, NOT_IN_TEXT, AT(intensity)},
	{"ceiling_gflop_per_s", "", 0, 1, NOT_IN_TEXT, AT(peak_gflops)},
	{"ceiling_gbyte_per_s", "", 0, 1, NOT_IN_TEXT, AT(peak_gbytes)},
	{"error", "", 0, -1, NOT_IN_TEXT, AT(error)},
};
enum { NCOLUMNS = sizeof columns / sizeof *columns };

static int problem_width, rows;

static const char *text_of(const column *c, const result *r) { return (const char *)r + c->offset; }
static double number_of(const column *c, const result *r) { return *(const double *)(const void *)((const char *)r + c->offset); }

static int is_shown(const settings *set, const column *c)
{
	return c->when == ALWAYS || (c->when == WITH_CEILING && set->ceiling) || (c->when == WITH_COMPARE && set->compare);
}

/* ---- JSON and CSV ---- */

static void print_json_text(const char *text)
{
	putchar('"');
	for (const unsigned char *c = (const unsigned char *)text; *c; c++)
		if (*c == '"' || *c == '\\')
			printf("\\%c", *c);
		else if (*c < 0x20)
			printf("\\u%04x", *c);
		else
			putchar(*c);
	putchar('"');
}

static void print_json_field(const char *before, const char *name, const char *text)
{
	printf("%s\"%s\": ", before, name);
	print_json_text(text);
}

static void json_row(const result *r)
{
	printf("%s\n    {", rows++ ? "," : "");
	for (int i = 0; i < NCOLUMNS; i++) {
		const column *c = &columns[i];
		const char *comma = i ? ", " : "";
		if (c->decimals < 0)
			print_json_field(comma, c->name, text_of(c, r));
		else if (isfinite(number_of(c, r)))
			printf("%s\"%s\": %.*f", comma, c->name, c->decimals, number_of(c, r));
		else
			printf("%s\"%s\": null", comma, c->name);
	}
	printf("}");
}

static void csv_row(const result *r)
{
	for (int i = 0; i < NCOLUMNS; i++) {
		const column *c = &columns[i];
		printf("%s", i ? "," : "");
		if (c->decimals >= 0) {
			if (isfinite(number_of(c, r)))
				printf("%.*f", c->decimals, number_of(c, r));
			continue;
		}
		putchar('"');
		for (const char *at = text_of(c, r); *at; at++)
			printf(*at == '"' ? "\"\"" : "%c", *at);
		putchar('"');
	}
	printf("\r\n");
}

/* ---- Text ---- */

static int width_of(const column *c) { return c->width ? c->width : problem_width; }

/* The first two parameters of an algorithm tell the kernel and its tile. */
static void short_text(const column *c, const result *r, char *out, size_t out_nbytes)
{
	const char *text = text_of(c, r), *second = strchr(text, ' '), *third = second ? strchr(second + 1, ' ') : NULL;
	int cut = c->offset == AT(algorithm) && third;
	snprintf(out, out_nbytes, "%.*s", cut ? (int)(third - text) : (int)out_nbytes - 1, *text ? text : "-");
}

static void text_row(const settings *set, const result *r)
{
	char text[LINE_NBYTES];
	for (int i = 0; i < NCOLUMNS; i++) {
		const column *c = &columns[i];
		const char *gap = i ? "  " : "";
		if (!is_shown(set, c))
			continue;
		if (c->decimals < 0) {
			short_text(c, r, text, sizeof text);
			printf("%s%-*s", gap, width_of(c), text);
		} else if (isfinite(number_of(c, r))) {
			printf("%s%*.*f", gap, width_of(c), c->decimals, number_of(c, r));
		} else {
			printf("%s%*s", gap, width_of(c), "-");
		}
	}
	printf("\n");
}

static void text_head(const settings *set, const epg_context_info *info, const char *rigor)
{
	printf("epigemm %s on %s: %s%s%s", epg_version(), info->backend, info->device, *info->library ? ", " : "", info->library);
	if (info->threads)
		printf(", %d threads", info->threads);
	printf("; plans by %s%s%s\n%d samples, random data of seed %lld, ", rigor, set->pin ? ", pinned to " : "", set->pin ? set->pin : "", set->iters, set->seed);
	printf(set->rotating_mb ? "rotating over %d MB\n" : "warm\n", set->rotating_mb);
	if (set->compare)
		printf("unfused, vendor: the time of separate steps, and of the vendor's fused call, over us median\n");
	printf("\n");
	for (int i = 0; i < NCOLUMNS; i++)
		if (is_shown(set, &columns[i]))
			printf(columns[i].decimals < 0 ? "%s%-*s" : "%s%*s", i ? "  " : "", width_of(&columns[i]), columns[i].heading);
	printf("\n");
}

/* ---- The three ---- */

void report_begin(const settings *set, const epg_context *context, const line_list *lines)
{
	static const char *const rigors[] = {"estimate", "measure", "patient"};
	epg_context_info info = {.size = 0};
	problem_width = (int)strlen("problem");
	for (int i = 0; i < lines->count; i++)
		problem_width = (int)strlen(lines->line[i]) > problem_width ? (int)strlen(lines->line[i]) : problem_width;
	if (epg_context_get_info(context, &info, sizeof info))
		return;
	if (set->format == FORMAT_TEXT) {
		text_head(set, &info, rigors[set->rigor]);
	} else if (set->format == FORMAT_CSV) {
		for (int i = 0; i < NCOLUMNS; i++)
			printf("%s%s", i ? "," : "", columns[i].name);
		printf("\r\n");
	} else {
		print_json_field("{", "epigemm", epg_version());
		print_json_field(", ", "backend", info.backend);
		print_json_field(", ", "device", info.device);
		print_json_field(", ", "library", info.library);
		print_json_field(", ", "rigor", rigors[set->rigor]);
		print_json_field(", ", "pin", set->pin ? set->pin : "");
		printf(", \"threads\": %d, \"iters\": %d, \"cold_iters\": %d, \"rotating_mb\": %d, \"seed\": %lld, \"results\": [", info.threads, set->iters, set->cold_iters, set->rotating_mb,
			set->seed);
	}
}

void report_row(const settings *set, const result *r)
{
	if (set->format == FORMAT_TEXT)
		text_row(set, r);
	else if (set->format == FORMAT_CSV)
		csv_row(r);
	else
		json_row(r);
	fflush(stdout);
}

void report_end(const settings *set)
{
	if (set->format == FORMAT_JSON)
		printf("\n]}\n");
}
