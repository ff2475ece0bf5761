/* SPDX-License-Identifier: Apache-2.0
 *
 * getopt_long, with numbers that are checked to the last character. */
#include "options.h"

#include "epigemm.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
	"Usage: train [OPTION]...\n"
	"Trains a network of two dense layers to recognise pictures; every matrix product is an epigemm plan.\n"
	"\n"
	"  --backend NAME   cpu, cuda, or auto: cuda if it is there, else cpu (default: auto)\n"
	"  --data DIR       directory of an IDX set such as MNIST: train-images-idx3-ubyte, train-labels-idx1-ubyte,\n"
	"                   t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte, each also as .gz\n"
	"                   (default: /usr/share/datasets/fashion-mnist)\n"
	"  --epochs N       times that the whole training set is seen (default: 10)\n"
	"  --batch N        pictures per step; a rest makes a smaller last step (default: 256)\n"
	"  --lr X           learning rate of the first step; it falls in a straight line to 0 (default: 0.05)\n"
	"  --momentum X     (default: 0.9)\n"
	"  --type NAME      f32 or f64 (default: f32)\n"
	"  --seed N         of the first weights and the order of the pictures (default: 1)\n"
	"  --threads N      CPU threads (default: the library's choice)\n"
	"  --out DIR        where curves.svg and predictions.svg go (default: the current directory)\n"
	"  --losses FILE    write the loss of each mini-batch to FILE, one a line: backends can be compared\n"
	"  --check          instead of training, check the gradients: against finite differences, and micro-batches against\n"
	"                   the whole batch; the exit status is 0 only when all are right\n"
	"  --quiet          print the result alone\n"
	"  --help           print this\n";

enum { BACKEND = 1, DATA, EPOCHS, BATCH, RATE, MOMENTUM, TYPE, SEED, THREADS, OUT, LOSSES, CHECK, QUIET, HELP };

static const struct option table[] = {{"backend", 1, NULL, BACKEND}, {"data", 1, NULL, DATA}, {"epochs", 1, NULL, EPOCHS},
	{"batch", 1, NULL, BATCH}, {"lr", 1, NULL, RATE}, {"momentum", 1, NULL, MOMENTUM}, {"type", 1, NULL, TYPE},
	{"seed", 1, NULL, SEED}, {"threads", 1, NULL, THREADS}, {"out", 1, NULL, OUT}, {"losses", 1, NULL, LOSSES}, {"check", 0, NULL, CHECK},
	{"quiet", 0, NULL, QUIET}, {"help", 0, NULL, HELP}, {NULL, 0, NULL, 0}};

static _Noreturn void refuse(const char *name, const char *text, const char *wanted)
{
	fprintf(stderr, "--%s %s: it must be %s.\n", name, text, wanted);
	exit(2);
}

static int64_t integer(const char *name, const char *text, int64_t low, int64_t high)
{
	char *end, wanted[80];
	errno = 0;
	const long long value = strtoll(text, &end, 10);
	snprintf(wanted, sizeof wanted, "a whole number from %lld to %lld", (long long)low, (long long)high);
	if (end == text || *end || errno || value < low || value > high)
		refuse(name, text, wanted);
	return value;
}

static double real(const char *name, const char *text, double low, double high)
{
	char *end, wanted[80];
	const double value = strtod(text, &end);
	snprintf(wanted, sizeof wanted, "a number from %g to %g", low, high);
	if (end == text || *end || !(value >= low && value <= high))
		refuse(name, text, wanted);
	return value;
}

static int32_t type(const char *text)
{
	if (strcmp(text, "f32") && strcmp(text, "f64"))
		refuse("type", text, "f32 or f64");
	return strcmp(text, "f32") ? EPG_F64 : EPG_F32;
}

static const char *backend(const char *text)
{
	if (strcmp(text, "cpu") && strcmp(text, "cuda") && strcmp(text, "auto"))
		refuse("backend", text, "cpu, cuda or auto");
	return text;
}

static void read_one(options *o, int which)
{
	switch (which) {
	case BACKEND: o->backend = backend(optarg); break;
	case DATA: o->data = optarg; break;
	case EPOCHS: o->epochs = integer("epochs", optarg, 1, 10000); break;
	case BATCH: o->batch = integer("batch", optarg, 1, 1000000); break;
	case RATE: o->rate = real("lr", optarg, 0, 1000); break;
	case MOMENTUM: o->momentum = real("momentum", optarg, 0, 1); break;
	case TYPE: o->type = type(optarg); break;
	case SEED: o->seed = (uint64_t)integer("seed", optarg, 0, INT64_MAX); break;
	case THREADS: o->threads = integer("threads", optarg, 0, 4096); break;
	case OUT: o->out = optarg; break;
	case LOSSES: o->losses = optarg; break;
	case CHECK: o->check = 1; break;
	case QUIET: o->quiet = 1; break;
	case HELP: fputs(help, stdout); exit(0);
	default: fputs("train --help lists the options.\n", stderr); exit(2);
	}
}

void options_read(options *o, int argc, char **argv)
{
	*o = (options){.backend = "auto", .data = "/usr/share/datasets/fashion-mnist", .out = ".", .epochs = 10, .batch = 256,
		.seed = 1, .rate = 0.05, .momentum = 0.9, .type = EPG_F32};
	for (int which; (which = getopt_long(argc, argv, "", table, NULL)) != -1;)
		read_one(o, which);
	if (optind < argc) {
		fprintf(stderr, "%s: this is no option; train --help lists them.\n", argv[optind]);
		exit(2);
	}
}
