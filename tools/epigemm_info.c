/* SPDX-License-Identifier: Apache-2.0
 *
 * epigemm-info: what this installation is and can do here, in words: version, backends and why one is missing, environment; or what a
 * plan for a problem line would do. Only the public interface is used. */
#include <epigemm.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

static const char help[] =
	"Usage: epigemm-info [OPTION…]\n"
	"Tells the version of epigemm, the backends that can be used here, or why not, and the environment variables in force.\n"
	"  --explain LINE   tell what a plan for a problem line does, as 'bf16 m=4096 n=512 k=4096 epilog=relu_bias'\n"
	"  --backend NAME   cpu, cuda or auto, for --explain (default: auto)\n"
	"  --rigor NAME     estimate, measure or patient, for --explain (default: estimate)\n"
	"  --version        print the version alone\n"
	"  --help           print this\n"
	"Exit status: 0, 1 if the problem cannot be planned, 2 for an option that is not understood.\n";

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
	enum { EXPLAIN = 1, BACKEND, RIGOR, VERSION, HELP };
	static const struct option table[] = {{"explain", 1, NULL, EXPLAIN}, {"backend", 1, NULL, BACKEND}, {"rigor", 1, NULL, RIGOR}, {"version", 0, NULL, VERSION},
		{"help", 0, NULL, HELP}, {NULL, 0, NULL, 0}};
	const char *line = NULL, *backend = "auto";
	int32_t rigor = EPG_ESTIMATE;
	for (int which; (which = getopt_long(argc, argv, "", table, NULL)) != -1;)
		switch (which) {
		case EXPLAIN: line = optarg; break;
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
	return line ? explain(line, backend, rigor) : report();
}
