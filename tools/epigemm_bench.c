/* SPDX-License-Identifier: Apache-2.0
 *
 * epigemm-bench: times problems given as problem lines, or by options that users of other libraries' benchmarks know, compares every output with
 * plain loops, and tells how far from this machine's own ceilings the times are. Only the public interface is used, and the tests' oracle. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

static const char help[] =
	"Usage: epigemm-bench [OPTION…] ['PROBLEM LINE'…]\n"
	"Times matrix products with their epilogs, as 'bf16 m=4096 n=512 k=4096 opa=T epilog=relu_bias'.\n"
	"\n"
	"The problem; an option adds a word to every line, or replaces it:\n"
	"  -m, -n, -k SIZE             sizes\n"
	"  --batch, --batch-count N    batch items\n"
	"  -r, --precision TYPE        type of all matrices: f64 f32 f16 bf16 e4m3 e5m2 s8 c64 c128 (default: f32)\n"
	"  --a-type … --d-type TYPE    of one matrix; also --aux-type --bias-type --bgrad-type\n"
	"  --transA, --transB OP       N, T, C or J; also --opa --opb\n"
	"  --order ORDER               col or row; also --ordera … --orderaux\n"
	"  --lda … --ldd, --ldaux N    leading dimensions\n"
	"  --stride-a … --stride-d N   batch strides; also --stride-aux --stride-bias --stride-bgrad\n"
	"  --alpha, --beta X           scalars\n"
	"  --epilog NAME --axis AXIS --compute TYPE --flags FLAGS --align BYTES\n"
	"  --file FILE                 read problem lines from a file ('-': standard input)\n"
	"A number may be a sweep, BEGIN:END:*FACTOR or BEGIN:END:+STEP.\n"
	"\n"
	"The run:\n"
	"  --backend cpu|cuda|auto  --device N  --threads N\n"
	"  --rigor estimate|measure|patient     --pin TEXT    how plans are made\n"
	"  -i, --iters N               samples (default: 11)      -j, --cold-iters N   calls before them (default: 2)\n"
	"  --rotating MB               take copies of the operands in turn, so many megabytes beside the first\n"
	"  -v, --verify                compare every output with plain loops\n"
	"  --compare                   time separate steps, and the vendor's fused call, too\n"
	"  --no-ceiling                do not measure this machine's ceilings\n"
	"  --seed N                    of the random data (default: 1)\n"
	"  --format text|csv|json      --plot FILE.svg         draw a sweep or a roofline, by gnuplot\n"
	"  --version  --help\n"
	"Exit status: 0, 1 if a problem was refused, failed or is wrong, 2 if the request is not understood.\n";

/* ---- Options ---- */

/* Options of the problem; behind '=' the key that one sets, where that has another name. '_' in an option is read as '-'. */
static const char *const key_options[] = {
	"precision=type", "type", "m", "n", "k", "batch", "batch-count=batch", "transA=opa", "transB=opb", "opa", "opb", "order", "ordera", "orderb", "orderc",
	"orderd", "orderaux", "lda", "ldb", "ldc", "ldd", "ldaux", "stride-a=stridea", "stride-b=strideb", "stride-c=stridec", "stride-d=strided",
	"stride-aux=strideaux", "stride-bias=stridebias", "stride-bgrad=stridebgrad", "a-type=ta", "b-type=tb", "c-type=tc", "d-type=td", "aux-type=taux",
	"bias-type=tbias", "bgrad-type=tbgrad", "compute", "compute-type=compute", "alpha", "beta", "epilog", "axis", "flags", "align",
};
enum { NKEYS = sizeof key_options / sizeof *key_options };

enum { BACKEND = 256, PIN, FILE_NAME, PLOT, DEVICE, THREADS, ITERS, COLD_ITERS, ROTATING, SEED, RIGOR, FORMAT, VERIFY, COMPARE, NO_CEILING, VERSION, HELP, KEYS };

static const struct option run_options[] = {
	{"backend", 1, NULL, BACKEND}, {"pin", 1, NULL, PIN}, {"file", 1, NULL, FILE_NAME}, {"plot", 1, NULL, PLOT}, {"device", 1, NULL, DEVICE},
	{"threads", 1, NULL, THREADS}, {"iters", 1, NULL, ITERS}, {"cold-iters", 1, NULL, COLD_ITERS}, {"rotating", 1, NULL, ROTATING}, {"seed", 1, NULL, SEED},
	{"rigor", 1, NULL, RIGOR}, {"format", 1, NULL, FORMAT}, {"verify", 0, NULL, VERIFY}, {"compare", 0, NULL, COMPARE},
	{"no-ceiling", 0, NULL, NO_CEILING}, {"version", 0, NULL, VERSION}, {"help", 0, NULL, HELP},
};
enum { NRUN = sizeof run_options / sizeof *run_options };

static const struct { char letter; int option; const char *key; } short_options[] = {
	{'m', KEYS, "m"}, {'n', KEYS, "n"}, {'k', KEYS, "k"}, {'r', KEYS, "type"}, {'i', ITERS, NULL}, {'j', COLD_ITERS, NULL}, {'v', VERIFY, NULL},
};

static void usage(const char *option, const char *value, const char *must)
{
	fprintf(stderr, "epigemm-bench: --%s is '%s', but must be %s\n", option, value, must);
	exit(2);
}

static long long number(const char *option, const char *text, long long least, long long most)
{
	char *end, must[64];
	long long x = strtoll(text, &end, 10);
	snprintf(must, sizeof must, "a whole number from %lld to %lld", least, most);
	if (!*text || *end || x < least || x > most)
		usage(option, text, must);
	return x;
}

static int word(const char *option, const char *text, const char *const words[3], const char *must)
{
	for (int i = 0; i < 3; i++)
		if (strcmp(text, words[i]) == 0)
			return i;
	usage(option, text, must);
	return 0;
}

static void set_run_option(settings *s, int which, const char *text)
{
	static const char *const rigors[] = {"estimate", "measure", "patient"}, *const formats[] = {"text", "csv", "json"};
	switch (which) {
	case BACKEND: s->backend = text; break;
	case PIN: s->pin = text; break;
	case FILE_NAME: s->file = text; break;
	case PLOT: s->plot = text; break;
	case DEVICE: s->device = (int)number("device", text, 0, 1 << 20); break;
	case THREADS: s->threads = (int)number("threads", text, 0, 4096); break;
	case ITERS: s->iters = (int)number("iters", text, 1, MAX_ITERS); break;
	case COLD_ITERS: s->cold_iters = (int)number("cold-iters", text, 0, 1 << 20); break;
	case ROTATING: s->rotating_mb = (int)number("rotating", text, 0, 1 << 20); break;
	case SEED: s->seed = number("seed", text, 0, (long long)1 << 40); break;
	case RIGOR: s->rigor = word("rigor", text, rigors, "estimate, measure or patient"); break;
	case FORMAT: s->format = word("format", text, formats, "text, csv or json"); break;
	case VERIFY: s->verify = 1; break;
	case COMPARE: s->compare = 1; break;
	case NO_CEILING: s->ceiling = 0; break;
	case VERSION: puts(epg_version()); exit(0);
	case HELP: fputs(help, stdout); exit(0);
	default: fputs("epigemm-bench --help lists the options.\n", stderr); exit(2);
	}
}

static void add_edit(line_edits *edits, const char *key, const char *value)
{
	if (!edits_add(edits, key, value))
		usage(key, value, "a word of a problem line");
}

/* getopt's table: the options of the run and those of the problem. */
static void fill_table(struct option table[NRUN + NKEYS + 1])
{
	static char names[NKEYS][32];
	memset(table, 0, (NRUN + NKEYS + 1) * sizeof *table);
	memcpy(table, run_options, sizeof run_options);
	for (int i = 0; i < NKEYS; i++) {
		snprintf(names[i], sizeof names[i], "%.*s", (int)strcspn(key_options[i], "="), key_options[i]);
		table[NRUN + i] = (struct option){names[i], 1, NULL, KEYS + i};
	}
}

static void parse_options(int argc, char **argv, settings *set, line_edits *edits)
{
	struct option table[NRUN + NKEYS + 1];
	fill_table(table);
	for (int i = 1; i < argc; i++)
		for (char *c = argv[i]; argv[i][0] == '-' && argv[i][1] == '-' && *c && *c != '='; c++)
			*c = *c == '_' ? '-' : *c;
	for (int which; (which = getopt_long(argc, argv, "m:n:k:r:i:j:v", table, NULL)) != -1;) {
		const char *key = which < KEYS ? NULL : strchr(key_options[which - KEYS], '=') ? strchr(key_options[which - KEYS], '=') + 1 : key_options[which - KEYS];
		for (size_t i = 0; which < BACKEND && i < sizeof short_options / sizeof *short_options; i++)
			if (which == short_options[i].letter) {
				key = short_options[i].key;
				which = short_options[i].option;
			}
		if (key)
			add_edit(edits, key, optarg);
		else
			set_run_option(set, which, optarg);
	}
}

/* ---- Problems ---- */

static void refuse_line(const char *line, const char *why)
{
	fprintf(stderr, "epigemm-bench: %s: %s\n", line, why);
	exit(2);
}

/* All lines are read before anything runs, so that a slip of the pen costs no time. */
static void collect(int argc, char **argv, const settings *set, const line_edits *edits, line_list *lines)
{
	const char *wrong = set->file ? lines_add_file(lines, set->file, edits) : NULL;
	epg_matmul_desc desc;
	if (wrong)
		refuse_line(set->file, wrong);
	for (int i = optind; i < argc; i++)
		if ((wrong = lines_add(lines, argv[i], edits)))
			refuse_line(argv[i], wrong);
	if (!set->file && optind == argc && edits->count == 0)
		refuse_line("no problem", "give sizes (-m -n -k), problem lines or --file; --help lists the options");
	if (!set->file && optind == argc && (wrong = lines_add(lines, "f32", edits)))
		refuse_line("the options", wrong);
	for (int i = 0; i < lines->count; i++) { /* and written as the library writes them */
		char text[LINE_NBYTES];
		if (epg_matmul_desc_parse(lines->line[i], &desc, sizeof desc) || epg_matmul_desc_print(&desc, text, sizeof text, NULL))
			refuse_line(lines->line[i], epg_last_error());
		free(lines->line[i]);
		lines->line[i] = strdup(text);
		if (!lines->line[i])
			refuse_line(text, "no memory");
	}
}

static void print_repeat(const settings *set, const result *r)
{
	fprintf(stderr, "epigemm-bench: %s: %s\nepigemm-bench: to repeat: epigemm-bench --backend %s", r->status, r->error, set->backend);
	if (set->threads)
		fprintf(stderr, " --threads %d", set->threads);
	if (set->device)
		fprintf(stderr, " --device %d", set->device);
	if (set->rigor)
		fprintf(stderr, " --rigor %s", set->rigor == EPG_MEASURE ? "measure" : "patient");
	if (set->pin)
		fprintf(stderr, " --pin '%s'", set->pin);
	fprintf(stderr, "%s --seed %lld '%s'\n", set->verify ? " --verify" : "", set->seed, r->problem);
}

/* On a terminal, and where there is something to wait for. done < 0 removes it. */
static void progress(int done, int all, time_t begin)
{
	enum { WIDTH = 30 };
	char bar[WIDTH + 1];
	if (all < 5 || !isatty(STDERR_FILENO))
		return;
	if (done < 0) {
		fprintf(stderr, "\r\033[K");
		return;
	}
	memset(bar, ' ', WIDTH);
	memset(bar, '=', (size_t)(WIDTH * done / all));
	bar[WIDTH] = 0;
	fprintf(stderr, "\r[%s] %d of %d", bar, done, all);
	if (done)
		fprintf(stderr, ", %.0f s to go", difftime(time(NULL), begin) * (all - done) / done);
}

static int run_all(epg_context *context, const settings *set, const line_list *lines, result *results)
{
	epg_matmul_desc desc;
	time_t begin = time(NULL);
	int failed = 0;
	report_begin(set, context, lines);
	for (int i = 0; i < lines->count; i++) {
		progress(i, lines->count, begin);
		epg_matmul_desc_parse(lines->line[i], &desc, sizeof desc);
		bench_problem(context, set, &desc, &results[i]);
		progress(-1, lines->count, begin);
		report_row(set, &results[i]);
		if (results[i].failed)
			print_repeat(set, &results[i]);
		failed |= results[i].failed;
	}
	report_end(set);
	return failed;
}

static epg_context *open_context(const settings *set)
{
	epg_context_options options;
	epg_context *context = NULL;
	epg_status status = epg_context_options_init(&options, sizeof options);
	options.backend = set->backend;
	options.device = set->device;
	options.threads = set->threads;
	if (!status)
		status = epg_context_create(&options, &context);
	if (status) {
		fprintf(stderr, "epigemm-bench: no context: %s\n", epg_last_error());
		exit(status == EPG_INVALID ? 2 : 1);
	}
	return context;
}

int main(int argc, char **argv)
{
	settings set = {.backend = "auto", .iters = 11, .cold_iters = 2, .ceiling = 1, .seed = 1};
	static line_edits edits;
	line_list lines = {NULL, 0};
	parse_options(argc, argv, &set, &edits);
	collect(argc, argv, &set, &edits, &lines);
	if (set.plot && !plot_possible())
		refuse_line("--plot", "needs gnuplot, which is not among the programs of PATH (Debian's package is gnuplot-nox)");
	epg_context *context = open_context(&set);
	result *results = calloc((size_t)lines.count + 1, sizeof *results);
	if (!results)
		refuse_line("the results", "no memory");
	int failed = run_all(context, &set, &lines, results);
	const char *wrong = set.plot ? plot_results(set.plot, results, lines.count) : NULL;
	if (wrong)
		fprintf(stderr, "epigemm-bench: %s was not drawn: %s\n", set.plot, wrong);
	epg_context_destroy(context);
	free(results);
	lines_free(&lines);
	return failed || wrong;
}
