/* SPDX-License-Identifier: Apache-2.0
 *
 * epigemm-info: what this installation is and can do here, in words: version, backends and why one is missing, environment; what a plan for
 * a problem line would do; or which types go with which epilogs. Only the public interface is used. */
#include <epigemm.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "self_test.h"

extern char **environ;

static const char help[] =
	"Usage: epigemm-info [OPTION…]\n"
	"Tells the version of epigemm, the backends that can be used here, or why not, and the environment variables in force.\n"
	"  --explain LINE   tell what a plan for a problem line does, as 'bf16 m=4096 n=512 k=4096 epilog=relu_bias'\n"
	"  --support        print which types go with which epilogs, found by planning small problems\n"
	"  --self-test      compare every lowering with plain loops over small problems, and name what is broken\n"
	"  --backend NAME   cpu, cuda or auto, for the options above (default: auto; --self-test: each that is there)\n"
	"  --rigor NAME     estimate, measure or patient, for --explain (default: estimate)\n"
	"  --version        print the version alone\n"
	"  --help           print this\n"
	"Exit status: 0, 1 if the problem cannot be planned or something is broken, 2 for an option that is not understood.\n";

static int fail(const char *what)
{
	fprintf(stderr, "epigemm-info: %s: %s\n", what, epg_last_error());
	return 1;
}

/* ---- The report ---- */

static void print_field(const char *name, const char *value)
{
	if (*value)
		printf("    %-12s %s\n", name, value);
}

static void print_context(const char *backend)
{
	epg_context_options options;
	epg_context *context = NULL;
	epg_context_info info;
	char text[128];
	if (epg_context_options_init(&options, sizeof options) == EPG_SUCCESS)
		options.backend = backend;
	if (epg_context_create(&options, &context) || epg_context_get_info(context, &info, sizeof info)) {
		printf("    no context: %s\n", epg_last_error());
		epg_context_destroy(context);
		return;
	}
	print_field("device", info.device);
	print_field("library", info.library);
	print_field("threads by", info.flavour);
	print_field("core type", info.core);
	print_field("passes", info.isa);
	if (info.integer_nbits) {
		snprintf(text, sizeof text, "%d bits", info.integer_nbits);
		print_field("integers", text);
	}
	if (info.threads) {
		snprintf(text, sizeof text, "%d (%s)", info.threads, info.threads_reason);
		print_field("threads", text);
	}
	epg_context_destroy(context);
}

static void print_backend(const char *name)
{
	char text[1024] = "";
	epg_status status = epg_backend_status(name, text, sizeof text, NULL);
	printf("backend %s: %s%s\n", name, status ? "not here: " : "", text);
	if (!status)
		print_context(name);
}

/* Variables that decide what this library, OpenBLAS, OpenMP or CUDA do. */
static void print_environment(void)
{
	static const char *const prefixes[] = {"EPIGEMM_", "OMP_", "OPENBLAS_", "GOTO_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "NVIDIA_TF32_OVERRIDE", "CUBLAS"};
	int count = 0;
	for (char **variable = environ; *variable; variable++)
		for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
			if (strncmp(*variable, prefixes[i], strlen(prefixes[i])) == 0) {
				printf("%s    %s\n", count++ ? "" : "environment:\n", *variable);
				break;
			}
	if (count == 0)
		printf("environment: no variable that counts is set\n");
}

static int report(void)
{
	printf("epigemm %s\n", epg_version());
	print_backend("cpu");
	print_backend("cuda");
	print_environment();
	return 0;
}

/* ---- --explain ---- */

static int explain(const char *line, const char *backend, int32_t rigor)
{
	epg_context_options context_options;
	epg_plan_options plan_options;
	epg_context *context = NULL;
	epg_plan *plan = NULL;
	epg_matmul_desc desc;
	size_t nbytes = 0;
	char *text = NULL;
	int failed = 0;
	if (epg_context_options_init(&context_options, sizeof context_options) == EPG_SUCCESS)
		context_options.backend = backend;
	if (epg_plan_options_init(&plan_options, sizeof plan_options) == EPG_SUCCESS)
		plan_options.rigor = rigor;
	if (epg_matmul_desc_parse(line, &desc, sizeof desc) || epg_context_create(&context_options, &context) || epg_plan_create(context, &desc, &plan_options, &plan)
		|| epg_plan_explain(plan, NULL, 0, &nbytes))
		failed = fail("cannot explain");
	else if ((text = malloc(nbytes)) && epg_plan_explain(plan, text, nbytes, NULL) == EPG_SUCCESS)
		fputs(text, stdout);
	else
		failed = fail("cannot explain");
	free(text);
	epg_plan_destroy(plan);
	epg_context_destroy(context);
	return failed;
}

/* ---- --support ---- */

enum { NTYPES = EPG_BIT, NCOMPUTES = EPG_COMPUTE_S32 + 1, NSIXTEEN = 16 };

static const int32_t epilogs[NSIXTEEN] = {
	EPG_EPILOG_DEFAULT, EPG_EPILOG_RELU, EPG_EPILOG_RELU_AUX, EPG_EPILOG_BIAS, EPG_EPILOG_RELU_BIAS, EPG_EPILOG_RELU_AUX_BIAS, EPG_EPILOG_DRELU, EPG_EPILOG_DRELU_BGRAD,
	EPG_EPILOG_GELU, EPG_EPILOG_GELU_AUX, EPG_EPILOG_GELU_BIAS, EPG_EPILOG_GELU_AUX_BIAS, EPG_EPILOG_DGELU, EPG_EPILOG_DGELU_BGRAD, EPG_EPILOG_BGRADA, EPG_EPILOG_BGRADB,
};

static int plans(epg_context *context, const epg_matmul_desc *desc)
{
	epg_plan *plan = NULL;
	int good = epg_plan_create(context, desc, NULL, &plan) == EPG_SUCCESS;
	epg_plan_destroy(plan);
	return good;
}

/* How many of 'count' problems can be planned: every pair of ops, both orders of D, both axes, an even and an odd size, with and without C. */
static int count_forms(epg_context *context, const epg_matmul_desc *types, int *count)
{
	int planned = 0;
	*count = 4 * 4 * 2 * 2 * 2 * 2;
	for (int form = 0; form < *count; form++) {
		epg_matmul_desc desc = *types;
		desc.a.op = form & 3;
		desc.b.op = form >> 2 & 3;
		desc.d.order = form >> 4 & 1;
		desc.axis = form >> 5 & 1;
		desc.m = desc.n = desc.k = form >> 6 & 1 ? 16 : 7;
		desc.beta[0] = form >> 7 & 1;
		planned += plans(context, &desc);
	}
	return planned;
}

/* What the table says of a set of types but for A and B, which other sets may share. */
typedef struct {
	int32_t a, b;
	char text[512];
} support_row;

enum { MAX_ROWS = 512 };

static void add_text(support_row *row, const char *format, ...)
{
	va_list list;
	size_t at = strlen(row->text);
	va_start(list, format);
	vsnprintf(row->text + at, sizeof row->text - at, format, list);
	va_end(list);
}

static void add_vectors(epg_context *context, const epg_matmul_desc *types, support_row *row)
{
	const char *between = "";
	for (int32_t t = 1; t <= NTYPES; t++) {
		epg_matmul_desc desc = *types;
		desc.epilog = EPG_EPILOG_BIAS;
		desc.bias.type = t;
		if (!plans(context, &desc))
			continue;
		add_text(row, "%s%s", between, epg_type_name(t));
		between = ", ";
	}
}

/* Fills the row of a set of types, if there is an epilog for it. */
static int find_support(epg_context *context, epg_matmul_desc *desc, support_row *row)
{
	static const char *const computes[NCOMPUTES] = {"default", "f64", "f32", "tf32", "f16", "s32"};
	int whole = 0, partly = 0, count;
	char names[384] = "";
	desc->epilog = EPG_EPILOG_DEFAULT;
	if (!plans(context, desc))
		return 0;
	for (int e = 0; e < NSIXTEEN; e++) {
		desc->epilog = epilogs[e];
		int planned = count_forms(context, desc, &count);
		whole += planned == count;
		partly += planned > 0 && planned < count;
		if (planned > 0)
			snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s%s", *names ? ", " : "", epg_epilog_name(epilogs[e]), planned < count ? " (partly)" : "");
	}
	desc->epilog = EPG_EPILOG_DEFAULT;
	*row = (support_row){.a = desc->a.type, .b = desc->b.type};
	add_text(row, "| %-4s | %-4s | %-4s | ", epg_type_name(desc->c.type), epg_type_name(desc->d.type), computes[desc->compute]);
	add_vectors(context, desc, row);
	add_text(row, " | %s |", whole == NSIXTEEN && !partly ? "all sixteen" : names);
	return 1;
}

static int same_line(const support_row *x, const support_row *y) { return epg_type_nbits(x->a) == epg_type_nbits(y->a) && strcmp(x->text, y->text) == 0; }

/* "x, y" for the types of A, or of B, that share a line. */
static void print_types(const support_row *rows, int count, const support_row *line, int of_b)
{
	const char *between = "| ";
	for (int32_t t = 1; t <= NTYPES; t++)
		for (int i = 0; i < count; i++)
			if ((of_b ? rows[i].b : rows[i].a) == t && same_line(&rows[i], line)) {
				printf("%s%s", between, epg_type_name(t));
				between = ", ";
				break;
			}
	printf(" ");
}

/* Sets with one text and as many bits are one line, of A's types and B's: they go together in every combination, or the line would say too much. */
static int print_support(const support_row *rows, int count)
{
	for (int i = 0; i < count; i++) {
		int same = 0, first = 1, as = 0, bs = 0;
		for (int j = 0; j < count; j++) {
			if (!same_line(&rows[j], &rows[i]))
				continue;
			first = first && j >= i;
			same++;
			as += rows[j].b == rows[i].b;
			bs += rows[j].a == rows[i].a;
		}
		if (same != as * bs)
			return fprintf(stderr, "epigemm-info: types of A and B that do not go together in every combination\n"), 1;
		if (!first)
			continue;
		print_types(rows, count, &rows[i], 0);
		print_types(rows, count, &rows[i], 1);
		printf("%s\n", rows[i].text);
	}
	return 0;
}

static int support(const char *backend)
{
	static support_row rows[MAX_ROWS];
	epg_context_options options;
	epg_context *context = NULL;
	epg_matmul_desc desc;
	int count = 0;
	if (epg_context_options_init(&options, sizeof options) == EPG_SUCCESS)
		options.backend = backend;
	if (epg_context_create(&options, &context))
		return fail("no support table");
	printf("| A | B | C | D | compute | bias | epilogs |\n|---|---|---|---|---|---|---|\n");
	for (int types = 0; types < NTYPES * NTYPES * NTYPES * NTYPES; types++)
		for (int32_t compute = EPG_COMPUTE_DEFAULT + 1; compute < NCOMPUTES && count < MAX_ROWS; compute++) {
			epg_matmul_desc_init(&desc, sizeof desc, 16, 16, 16, types / NTYPES / NTYPES / NTYPES + 1, EPG_COL);
			desc.b.type = types / NTYPES / NTYPES % NTYPES + 1;
			desc.c.type = types / NTYPES % NTYPES + 1;
			desc.d.type = types % NTYPES + 1;
			desc.compute = compute;
			count += find_support(context, &desc, &rows[count]);
		}
	epg_context_destroy(context);
	return count == 0 || count == MAX_ROWS || print_support(rows, count);
}

/* One backend, or each that is there. */
static int test_all(const char *backend)
{
	if (backend)
		return self_test(backend) != 0;
	int cpu = self_test("cpu"), cuda = self_test("cuda");
	return cpu != 0 || cuda > 0;
}

static int rigor_of(const char *name)
{
	static const char *const names[] = {"estimate", "measure", "patient"};
	for (int i = 0; i < 3; i++)
		if (strcmp(name, names[i]) == 0)
			return i;
	fprintf(stderr, "epigemm-info: --rigor is '%s', but must be estimate, measure or patient\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	enum { EXPLAIN = 1, SUPPORT, SELF_TEST, BACKEND, RIGOR, VERSION, HELP };
	static const struct option table[] = {{"explain", 1, NULL, EXPLAIN}, {"support", 0, NULL, SUPPORT}, {"self-test", 0, NULL, SELF_TEST}, {"backend", 1, NULL, BACKEND}, {"rigor", 1, NULL, RIGOR}, {"version", 0, NULL, VERSION},
		{"help", 0, NULL, HELP}, {NULL, 0, NULL, 0}};
	const char *line = NULL, *backend = NULL;
	int32_t rigor = EPG_ESTIMATE;
	int table_wanted = 0, test_wanted = 0;
	for (int which; (which = getopt_long(argc, argv, "", table, NULL)) != -1;)
		switch (which) {
		case EXPLAIN: line = optarg; break;
		case SUPPORT: table_wanted = 1; break;
		case SELF_TEST: test_wanted = 1; break;
		case BACKEND: backend = optarg; break;
		case RIGOR: rigor = rigor_of(optarg); break;
		case VERSION: puts(epg_version()); return 0;
		case HELP: fputs(help, stdout); return 0;
		default: fputs("epigemm-info --help lists the options.\n", stderr); return 2;
		}
	if (optind < argc) {
		fprintf(stderr, "epigemm-info: '%s' is no option; --help lists them\n", argv[optind]);
		return 2;
	}
	if (test_wanted)
		return test_all(backend);
	backend = backend ? backend : "auto";
	return table_wanted ? support(backend) : line ? explain(line, backend, rigor) : report();
}
