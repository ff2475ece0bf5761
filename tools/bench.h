/* SPDX-License-Identifier: Apache-2.0
 *
 * epigemm-bench: what its files share. One way through them: options and files become problem lines (bench_lines.c), each is planned and
 * timed (bench_run.c), compared with the oracle (bench_verify.c), printed (bench_report.c) and drawn (bench_plot.c). */
#ifndef BENCH_H
#define BENCH_H

#include <epigemm.h>
#include <stdio.h>

enum { LINE_NBYTES = 1024, TEXT_NBYTES = 1024, PIN_NBYTES = 256, OPERANDS = EPG_OPERAND_BGRAD + 1, MAX_ITERS = 10000, MAX_LINES = 100000 };
enum { FORMAT_TEXT, FORMAT_CSV, FORMAT_JSON };

typedef struct settings {
	const char *backend, *pin, *file, *plot;
	int device, threads, rigor, iters, cold_iters, rotating_mb, verify, compare, ceiling, format;
	long long seed;
} settings;

/* ---- Problem lines (bench_lines.c) ---- */

typedef struct line_list {
	char **line;
	int count;
} line_list;

typedef struct line_edits {
	char type[16];                               /* the first word of a line; "": as it is */
	char key[64][16], value[64][64];
	int count;
} line_edits;

/* Notes key=value for every line; 0: too long. The key "type" is the first word. */
int edits_add(line_edits *edits, const char *key, const char *value);
/* Edits a line, expands its sweeps (key=begin:end:*factor or begin:end:+step) and adds the lines to the list. NULL, or why not. */
const char *lines_add(line_list *list, const char *line, const line_edits *edits);
const char *lines_add_file(line_list *list, const char *path, const line_edits *edits);
void lines_free(line_list *list);

/* ---- One problem (bench_run.c) ---- */

/* A number that there is not is NaN. */
typedef struct result {
	char problem[LINE_NBYTES], type[16], epilog[32], lowering[32], algorithm[PIN_NBYTES], status[16], error[TEXT_NBYTES];
	double m, n, k, batch, us_min, us_median, gflops, gbytes, ceiling, plan_us, workspace, unfused, vendor_fused;
	double intensity, peak_gflops, peak_gbytes;  /* flop per byte, and this machine's ceilings */
	int failed;
} result;

/* Operands, copied as often as --rotating says: in a copy, operand x begins at at[x]. */
typedef struct bench {
	const settings *set;
	epg_context *context;
	int on_device, threads;
	epg_matmul_desc desc;
	epg_layout layout[OPERANDS];
	int is_output[OPERANDS];
	size_t at[OPERANDS], copy_nbytes;
	int64_t copies;
	unsigned char *before, *after, *memory;      /* host images of a copy, and the copies where the backend computes */
} bench;

void bench_problem(epg_context *context, const settings *set, const epg_matmul_desc *desc, result *r);


/* ---- Verification (bench_verify.c) ---- */

/* Fills an operand of a host image, nbytes of the type, with random data. */
void fill_random(int32_t type, unsigned char *data, size_t nbytes, double scale, unsigned long long seed);
/* Compares the outputs in after with the oracle's answer to before; 1 when right, else why has the first difference. */
int bench_verify(const bench *b, char why[TEXT_NBYTES]);

/* ---- Reports (bench_report.c, bench_plot.c) ---- */

void report_begin(const settings *set, const epg_context *context, const line_list *lines);
void report_row(const settings *set, const result *r);
void report_end(const settings *set);
/* 1 when gnuplot is there. */
int plot_possible(void);
/* Draws a sweep if the problems differ in one of m, n, k and batch, else a roofline; NULL, or why not. */
const char *plot_results(const char *path, const result *r, int count);

#endif
