/* SPDX-License-Identifier: Apache-2.0
 *
 * The benchmark: this library against what a program does without it, in one process. Contestants run in turn, sample by
 * sample, on the same random data, caches as the contestant before left them; the median of the samples counts and ratios are what to
 * read. A sample repeats short calls until it lasts SAMPLE_US.
 *
 *     bench [--threads N] [--rounds N] [--quick] [--estimate]
 */
#include <cblas.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "epigemm.h"

enum { MAX_ROUNDS = 201, SAMPLE_US = 200 };

static int rounds = 31, threads, rigor = EPG_MEASURE;
static epg_context *context;

/* A layer D = act(W·X + bias), W m×k, X k×n, column-major, and its parts. */
typedef struct layer {
	int64_t m, n, k;
	float *w, *x, *d, *bias, *c;
	unsigned char *mask; /* lines of whole 128 bits */
	int64_t mask_ld;
	float *bgrad;
	epg_plan *plan;
	epg_operands operands;
} layer;

typedef struct contestant {
	const char *name;
	void (*run)(layer *);
	double seconds[MAX_ROUNDS];
	int64_t calls; /* a sample */
} contestant;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(epg_status status, const char *what)
{
	if (status) {
		fprintf(stderr, "bench: %s: %s: %s\n", what, epg_status_string(status), epg_last_error());
		exit(1);
	}
}

/* ---- Data ---- */

static uint64_t seed = 88172645463325252u;

static float random_value(void)
{
	seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
	return (float)(int32_t)seed / 2147483648.0f;
}

static float *random_floats(int64_t count)
{
	float *x = aligned_alloc(256, (size_t)(count * 4 + 255) / 256 * 256 + 256);
	for (int64_t i = 0; x && i < count; i++)
		x[i] = random_value();
	return x;
}

/* epilog and its operands from one place; k = 0 takes C in place of the product. */
static layer make_layer(int64_t m, int64_t n, int64_t k, int32_t epilog)
{
	epg_matmul_desc desc;
	epg_plan_options options;
	layer l = {.m = m, .n = n, .k = k, .mask_ld = (m + 127) / 128 * 128};
	l.w = random_floats(m * k), l.x = random_floats(k * n), l.d = random_floats(m * n), l.bias = random_floats(m);
	l.c = k == 0 ? random_floats(m * n) : NULL;
	l.bgrad = random_floats(m);
	l.mask = (unsigned char *)random_floats(l.mask_ld / 8 * n / 4 + 64);
	epg_matmul_desc_init(&desc, sizeof desc, m, n, k, EPG_F32, EPG_COL);
	desc.epilog = epilog;
	desc.beta[0] = k == 0;
	epg_plan_options_init(&options, sizeof options);
	options.rigor = rigor;
	must(epg_plan_create(context, &desc, &options, &l.plan), "plan");
	l.operands = EPG_OPERANDS(.a = l.w, .b = l.x, .c = l.c, .d = l.d);
	l.operands.bias = epilog & EPG_BIAS ? l.bias : NULL;
	l.operands.aux = epilog & EPG_AUX ? l.mask : NULL;
	l.operands.bgrad = epilog & EPG_BGRAD ? l.bgrad : NULL;
	return l;
}

static void free_layer(layer *l)
{
	epg_plan_destroy(l->plan);
	free(l->w), free(l->x), free(l->d), free(l->bias), free(l->c), free(l->bgrad), free(l->mask);
}

/* ---- Contestants ---- */

static void run_epigemm(layer *l) { must(epg_execute(l->plan, &l->operands, NULL), "execute"); }

static void run_sgemm(layer *l)
{
	cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, (int)l->m, (int)l->n, (int)l->k, 1, l->w, (int)l->m, l->x, (int)l->k, 0, l->d, (int)l->m);
}

static void naive_bias(layer *l)
{
	for (int64_t j = 0; j < l->n; j++)
		for (int64_t i = 0; i < l->m; i++)
			l->d[i + j * l->m] += l->bias[i];
}

static void naive_relu(layer *l)
{
	for (int64_t i = 0; i < l->m * l->n; i++)
		l->d[i] = l->d[i] > 0 ? l->d[i] : 0;
}

static void naive_relu_mask(layer *l)
{
	for (int64_t j = 0; j < l->n; j++)
		for (int64_t i = 0; i < l->m; i++) {
			float *z = &l->d[i + j * l->m];
			unsigned char *byte = &l->mask[(i + j * l->mask_ld) / 8];
			if (*z >= 0) {
				*byte |= (unsigned char)(1 << i % 8);
			} else {
				*byte &= (unsigned char)~(1 << i % 8);
				*z = 0;
			}
		}
}

static void run_naive_relu_bias(layer *l) { run_sgemm(l), naive_bias(l), naive_relu(l); }
static void run_naive_relu_aux_bias(layer *l) { run_sgemm(l), naive_bias(l), naive_relu_mask(l); }

static void run_naive_drelu_bgrad(layer *l)
{
	run_sgemm(l);
	memset(l->bgrad, 0, (size_t)l->m * sizeof *l->bgrad);
	for (int64_t j = 0; j < l->n; j++)
		for (int64_t i = 0; i < l->m; i++) {
			float *z = &l->d[i + j * l->m];
			if (!(l->mask[(i + j * l->mask_ld) / 8] >> i % 8 & 1))
				*z = 0;
			l->bgrad[i] += *z;
		}
}

/* What a user writes who knows OpenMP: bias and ReLU in one parallel sweep. */
static void run_fused_relu_bias(layer *l)
{
	run_sgemm(l);
#pragma omp parallel for num_threads(threads)
	for (int64_t j = 0; j < l->n; j++) {
		float *d = l->d + j * l->m;
#pragma omp simd
		for (int64_t i = 0; i < l->m; i++)
			d[i] = fmaxf(d[i] + l->bias[i], 0);
	}
}

static void run_copy(layer *l)
{
#pragma omp parallel for num_threads(threads)
	for (int64_t j = 0; j < l->n; j++)
		memcpy(l->d + j * l->m, l->c + j * l->m, (size_t)l->m * 4);
}

/* ---- Timing ---- */

static int by_value(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;
	return (a > b) - (a < b);
}

static double median(contestant *c)
{
	qsort(c->seconds, (size_t)rounds, sizeof *c->seconds, by_value);
	return c->seconds[rounds / 2];
}

static double sample(contestant *c, layer *l)
{
	double begin = now();
	for (int64_t i = 0; i < c->calls; i++)
		c->run(l);
	return (now() - begin) / (double)c->calls;
}

static void contest(contestant *c, int count, layer *l)
{
	for (int i = 0; i < count; i++) {
		c[i].calls = 1;
		sample(&c[i], l);
		c[i].calls = (int64_t)(SAMPLE_US * 1e-6 / sample(&c[i], l)) + 1;
	}
	for (int round = 0; round < rounds; round++)
		for (int i = 0; i < count; i++)
			c[i].seconds[round] = sample(&c[i], l);
}

/* ---- Tables ---- */

static void print_head(void)
{
	char date[32];
	time_t t = time(NULL);
	epg_context_info info;
	must(epg_context_get_info(context, &info, sizeof info), "info");
	strftime(date, sizeof date, "%Y-%m-%d", gmtime(&t));
	printf("%s, %s\nepigemm %s, %s (%s, core type %s), passes %s, %d threads (%s), plans by %s, medians of %d, OMP_WAIT_POLICY %s\n", date, info.device, epg_version(),
		info.library, info.flavour, info.core, info.isa, info.threads, info.threads_reason, rigor == EPG_MEASURE ? "MEASURE" : "ESTIMATE", rounds, getenv("OMP_WAIT_POLICY"));
}

static void layer_row(const char *epilog, int64_t m, int64_t n, int64_t k, int32_t number, void (*naive)(layer *), double *log_sum)
{
	layer l = make_layer(m, n, k, number);
	contestant c[3] = {{.name = "epigemm", .run = run_epigemm}, {.name = "sgemm", .run = run_sgemm}, {.name = "naive", .run = naive}};
	contest(c, 3, &l);
	double ours = median(&c[0]), bare = median(&c[1]), theirs = median(&c[2]);
	printf("%-15s %6lld %6lld %6lld %10.1f %10.1f %10.1f %8.2f %8.2f\n", epilog, (long long)m, (long long)n, (long long)k, ours * 1e6, bare * 1e6, theirs * 1e6,
		ours / bare, ours / theirs);
	*log_sum += log(ours / theirs);
	free_layer(&l);
}

static void table_layers(void)
{
	/* m, n, k: out, batch, in of a layer whose weights are not transposed. */
	static const int64_t shapes[][3] = {{100, 256, 784}, {10, 64, 128}, {128, 64, 784}, {512, 32, 512}, {1024, 1, 1024}, {1024, 16, 1024}, {4096, 512, 1024},
		{4096, 512, 4096}, {11008, 128, 4096}, {256, 8192, 64}, {64, 65536, 64}, {768, 512, 3072}, {3072, 512, 768}};
	const int count = sizeof shapes / sizeof *shapes;
	double log_sum = 0, unused = 0;
	printf("\nA layer, f32, column-major; 'naive' is cblas_sgemm and then plain loops; us\n");
	printf("%-15s %6s %6s %6s %10s %10s %10s %8s %8s\n", "epilog", "m", "n", "k", "epigemm", "sgemm", "naive", "/sgemm", "/naive");
	layer_row("RELU_AUX_BIAS", 512, 4096, 256, EPG_EPILOG_RELU_AUX_BIAS, run_naive_relu_aux_bias, &unused);
	layer_row("DRELU_BGRAD", 512, 4096, 256, EPG_EPILOG_DRELU_BGRAD, run_naive_drelu_bgrad, &unused);
	for (int i = 0; i < count; i++)
		layer_row("RELU_BIAS", shapes[i][0], shapes[i][1], shapes[i][2], EPG_EPILOG_RELU_BIAS, run_naive_relu_bias, &log_sum);
	printf("RELU_BIAS, geometric mean of /naive: %.3f\n", exp(log_sum / count));
	layer l = make_layer(512, 4096, 256, EPG_EPILOG_RELU_BIAS);
	contestant c[2] = {{.run = run_epigemm}, {.run = run_fused_relu_bias}};
	contest(c, 2, &l);
	printf("RELU_BIAS 512×4096×256 against sgemm and one OpenMP pass: %.2f\n", median(&c[0]) / median(&c[1]));
	free_layer(&l);
}

static void table_overhead(void)
{
	printf("\nDEFAULT against bare cblas_sgemm, f32, cubes; us\n%6s %10s %10s %10s %8s\n", "size", "epigemm", "sgemm", "added ns", "added %");
	for (int64_t size = 64; size <= 1024; size *= 2) {
		layer l = make_layer(size, size, size, EPG_EPILOG_DEFAULT);
		contestant c[2] = {{.run = run_epigemm}, {.run = run_sgemm}};
		contest(c, 2, &l);
		double ours = median(&c[0]), bare = median(&c[1]);
		printf("%6lld %10.2f %10.2f %10.0f %8.1f\n", (long long)size, ours * 1e6, bare * 1e6, (ours - bare) * 1e9, 100 * (ours / bare - 1));
		free_layer(&l);
	}
}

static void table_epilog_alone(void)
{
	layer l = make_layer(4096, 4096, 0, EPG_EPILOG_RELU_BIAS);
	contestant c[2] = {{.run = run_epigemm}, {.run = run_copy}};
	contest(c, 2, &l);
	double ours = median(&c[0]), copy = median(&c[1]);
	printf("\nThe epilog alone (k = 0): RELU_BIAS of C to D, f32 4096×4096, against memcpy with as many threads\n");
	printf("epigemm %.0f us, copy %.0f us: %.2f of the copy's speed\n", ours * 1e6, copy * 1e6, copy / ours);
	free_layer(&l);
}

/* Two thread pools are in this process, OpenMP's and the BLAS's own: neither may spin while the other's contestant runs. OpenMP
 * reads its setting once, at load. */
static void wait_passively(char **argv)
{
	if (getenv("OMP_WAIT_POLICY"))
		return;
	setenv("OMP_WAIT_POLICY", "passive", 1);
	execv("/proc/self/exe", argv);
}

int main(int argc, char **argv)
{
	wait_passively(argv);
	epg_context_options options;
	epg_context_info info;
	bool quick = false;
	epg_context_options_init(&options, sizeof options);
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
			options.threads = atoi(argv[++i]);
		else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
			rounds = atoi(argv[++i]);
		else if (strcmp(argv[i], "--quick") == 0)
			quick = true;
		else if (strcmp(argv[i], "--estimate") == 0)
			rigor = EPG_ESTIMATE;
		else
			return fprintf(stderr, "usage: bench [--threads N] [--rounds 1…%d] [--quick] [--estimate]\n", MAX_ROUNDS), 2;
	}
	if (quick)
		rounds = 5;
	if (rounds < 1 || rounds > MAX_ROUNDS)
		return fprintf(stderr, "bench: --rounds is %d, but must be from 1 to %d\n", rounds, MAX_ROUNDS), 2;
	must(epg_context_create(&options, &context), "context");
	must(epg_context_get_info(context, &info, sizeof info), "info");
	threads = info.threads;
	openblas_set_num_threads(threads);
	setvbuf(stdout, NULL, _IOLBF, 0);
	print_head();
	table_overhead();
	table_epilog_alone();
	table_layers();
	epg_context_destroy(context);
	return 0;
}
