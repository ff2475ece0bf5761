/* SPDX-License-Identifier: Apache-2.0
 *
 * The benchmark: this library against what a program does without it, in one process. Contestants run in turn, sample by
 * sample, on the same random data; the median of the samples counts, and ratios are what to read. A sample is one call that is not
 * timed and then so many as last SAMPLE_US, so the caches are warm as far as the data fits them. With more than one thread the
 * calls before go on for WARM_MS: OpenBLAS and OpenMP have a pool each, and one that still spins takes the other's processors.
 * (A pause instead would time the waking: libgomp's threads may then share a processor until the next tick, 8 ms.)
 *
 *     bench [--threads N] [--rounds N] [--quick] [--estimate] [overhead] [alone] [passes] [layers] [types] [onednn]
 */
#include <cblas.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "epigemm.h"
#include "onednn.h"

/* OpenBLAS's threads spin for 2^26 cycles before they sleep, about 30 ms. */
enum { MAX_ROUNDS = 201, SAMPLE_US = 200, WARM_MS = 40 };

static int rounds = 31, threads, rigor = EPG_MEASURE;
static epg_context *context;

/* A layer D = act(W·X + bias), W m×k, X k×n, column-major, and its parts. */
typedef struct layer {
	int64_t m, n, k;
	float *w, *x, *d, *bias, *c;
	void *aux; /* a mask of lines of whole 128 bits, or z */
	int64_t mask_ld;
	float *bgrad;
	epg_plan *plan;
	epg_operands operands;
	void *narrow[4]; /* w, x, d, bias in other types */
	onednn *peer;
} layer;

typedef struct contestant {
	const char *name;
	void (*run)(layer *);
	layer *on;     /* NULL: what all work on */
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

static epg_plan *plan_layer(epg_context *in, const layer *l, int32_t epilog, int32_t op, int32_t with)
{
	epg_matmul_desc desc;
	epg_plan_options options;
	epg_plan *plan;
	epg_matmul_desc_init(&desc, sizeof desc, l->m, l->n, l->k, EPG_F32, EPG_COL);
	desc.a.op = op;
	desc.epilog = epilog;
	desc.beta[0] = l->k == 0;
	epg_plan_options_init(&options, sizeof options);
	options.rigor = with;
	must(epg_plan_create(in, &desc, &options, &plan), "plan");
	return plan;
}

/* Everything but the plan. k = 0 takes C in place of the product, for GELU's gradient beside a random z. */
static layer make_data(int64_t m, int64_t n, int64_t k, int32_t epilog, bool in_place)
{
	layer l = {.m = m, .n = n, .k = k, .mask_ld = (m + 127) / 128 * 128};
	l.w = random_floats(m * k), l.x = random_floats(k * n), l.d = random_floats(m * n), l.bias = random_floats(m);
	l.c = k == 0 ? in_place ? l.d : random_floats(m * n) : NULL;
	l.bgrad = random_floats(m);
	l.aux = random_floats((m + 7) / 8 * 8 * n + l.mask_ld / 32 * n);
	l.operands = EPG_OPERANDS(.a = l.w, .b = l.x, .c = l.c, .d = l.d);
	l.operands.bias = epilog & EPG_BIAS ? l.bias : NULL;
	l.operands.aux = epilog & EPG_AUX ? l.aux : NULL;
	l.operands.bgrad = epilog & EPG_BGRAD ? l.bgrad : NULL;
	return l;
}

static layer make_layer(epg_context *in, int64_t m, int64_t n, int64_t k, int32_t epilog, bool in_place)
{
	layer l = make_data(m, n, k, epilog, in_place);
	l.plan = plan_layer(in, &l, epilog, EPG_OP_N, rigor);
	return l;
}

/* As many floats in another type; s8 from -127 to 127. */
static void *narrowed(const float *from, int64_t count, int32_t type)
{
	epg_matrix x = {.type = EPG_F32, .ld = EPG_TIGHT, .batch_stride = EPG_TIGHT}, y = x;
	void *to = aligned_alloc(256, (size_t)(count * 4 + 511) / 256 * 256);
	const float scale = type == EPG_S8 ? 127 : 1;
	y.type = type;
	must(epg_convert(context, count, 1, 1, &x, from, &y, to, &scale, NULL, NULL), "convert");
	return to;
}

/* Types of W and X, of D, and of the bias and its gradient. */
typedef struct type_set {
	const char *name;
	int32_t in, out, vector;
} type_set;

/* The same layer in other types; a mask is the same memory. */
static layer make_narrow_layer(const layer *l, const type_set *t, int32_t epilog)
{
	epg_matmul_desc desc;
	epg_plan_options options;
	layer n = *l;
	epg_matmul_desc_init(&desc, sizeof desc, l->m, l->n, l->k, t->in, EPG_COL);
	desc.c.type = desc.d.type = t->out;
	desc.bias.type = desc.bgrad.type = t->vector;
	desc.epilog = epilog;
	epg_plan_options_init(&options, sizeof options);
	options.rigor = rigor;
	must(epg_plan_create(context, &desc, &options, &n.plan), "plan");
	n.narrow[0] = narrowed(l->w, l->m * l->k, t->in), n.narrow[1] = narrowed(l->x, l->k * l->n, t->in), n.narrow[2] = narrowed(l->d, l->m * l->n, t->out);
	n.narrow[3] = narrowed(l->bias, l->m, t->vector);
	n.operands = EPG_OPERANDS(.a = n.narrow[0], .b = n.narrow[1], .d = n.narrow[2]);
	n.operands.bias = epilog & EPG_BIAS ? n.narrow[3] : NULL;
	n.operands.aux = l->operands.aux;
	n.operands.bgrad = epilog & EPG_BGRAD ? l->bgrad : NULL;
	return n;
}

static void free_narrow_layer(layer *n)
{
	epg_plan_destroy(n->plan);
	for (int i = 0; i < 4; i++)
		free(n->narrow[i]);
}

static void free_layer(layer *l)
{
	epg_plan_destroy(l->plan);
	if (l->c != l->d)
		free(l->c);
	free(l->w), free(l->x), free(l->d), free(l->bias), free(l->bgrad), free(l->aux);
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
			unsigned char *byte = (unsigned char *)l->aux + (i + j * l->mask_ld) / 8;
			if (*z >= 0) {
				*byte |= (unsigned char)(1 << i % 8);
			} else {
				*byte &= (unsigned char)~(1 << i % 8);
				*z = 0;
			}
		}
}

static void naive_gelu(layer *l)
{
	for (int64_t i = 0; i < l->m * l->n; i++) {
		float z = l->d[i];
		((float *)l->aux)[i] = z;
		l->d[i] = 0.5f * z * (1 + tanhf(0.7978845608f * (z + 0.044715f * z * z * z)));
	}
}

static void run_naive_relu_bias(layer *l) { run_sgemm(l), naive_bias(l), naive_relu(l); }
static void run_naive_relu_aux_bias(layer *l) { run_sgemm(l), naive_bias(l), naive_relu_mask(l); }
static void run_naive_gelu_aux_bias(layer *l) { run_sgemm(l), naive_bias(l), naive_gelu(l); }

static void run_naive_drelu_bgrad(layer *l)
{
	run_sgemm(l);
	memset(l->bgrad, 0, (size_t)l->m * sizeof *l->bgrad);
	for (int64_t j = 0; j < l->n; j++)
		for (int64_t i = 0; i < l->m; i++) {
			float *z = &l->d[i + j * l->m];
			if (!(((unsigned char *)l->aux)[(i + j * l->mask_ld) / 8] >> i % 8 & 1))
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
	l = c->on ? c->on : l;
	double begin = now();
	do
		c->run(l);
	while (threads > 1 && now() - begin < 1e-3 * WARM_MS);
	begin = now();
	for (int64_t i = 0; i < c->calls; i++)
		c->run(l);
	return (now() - begin) / (double)c->calls;
}

static void contest(contestant *c, int count, layer *l)
{
	for (int i = 0; i < count; i++) {
		c[i].calls = 1;
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
	printf("%s, %s\nepigemm %s, %s (%s, core type %s), passes %s, %d threads (%s), plans by %s\nmedians of %d samples in turn, random data, warm%s\n", date, info.device,
		epg_version(), info.library, info.flavour, info.core, info.isa, info.threads, info.threads_reason, rigor == EPG_MEASURE ? "MEASURE" : "ESTIMATE", rounds,
		threads > 1 ? ", threads of the contestant before asleep" : "");
}

static void layer_row(const char *epilog, int64_t m, int64_t n, int64_t k, int32_t number, void (*naive)(layer *), double *log_sum)
{
	layer l = make_layer(context, m, n, k, number, false);
	contestant c[3] = {{.name = "epigemm", .run = run_epigemm}, {.name = "sgemm", .run = run_sgemm}, {.name = "naive", .run = naive}};
	contest(c, 3, &l);
	double ours = median(&c[0]), bare = median(&c[1]), theirs = median(&c[2]);
	printf("%-15s %6lld %6lld %6lld %10.1f %10.1f %10.1f %8.2f %8.2f\n", epilog, (long long)m, (long long)n, (long long)k, ours * 1e6, bare * 1e6, theirs * 1e6,
		ours / bare, ours / theirs);
	*log_sum += log(ours / theirs);
	free_layer(&l);
}

/* m, n, k: out, batch, in of a layer. */
static const int64_t layer_shapes[][3] = {{100, 256, 784}, {10, 64, 128}, {128, 64, 784}, {512, 32, 512}, {1024, 1, 1024}, {1024, 16, 1024}, {4096, 512, 1024},
	{4096, 512, 4096}, {11008, 128, 4096}, {256, 8192, 64}, {64, 65536, 64}, {768, 512, 3072}, {3072, 512, 768}};
enum { NSHAPES = sizeof layer_shapes / sizeof *layer_shapes };

static void table_layers(void)
{
	double log_sum = 0, unused = 0;
	printf("\nA layer, f32, column-major; 'naive' is cblas_sgemm and then plain loops; us\n");
	printf("%-15s %6s %6s %6s %10s %10s %10s %8s %8s\n", "epilog", "m", "n", "k", "epigemm", "sgemm", "naive", "/sgemm", "/naive");
	layer_row("RELU_AUX_BIAS", 512, 4096, 256, EPG_EPILOG_RELU_AUX_BIAS, run_naive_relu_aux_bias, &unused);
	layer_row("GELU_AUX_BIAS", 512, 4096, 256, EPG_EPILOG_GELU_AUX_BIAS, run_naive_gelu_aux_bias, &unused);
	layer_row("DRELU_BGRAD", 512, 4096, 256, EPG_EPILOG_DRELU_BGRAD, run_naive_drelu_bgrad, &unused);
	for (int i = 0; i < NSHAPES; i++)
		layer_row("RELU_BIAS", layer_shapes[i][0], layer_shapes[i][1], layer_shapes[i][2], EPG_EPILOG_RELU_BIAS, run_naive_relu_bias, &log_sum);
	printf("RELU_BIAS, geometric mean of /naive: %.3f\n", exp(log_sum / NSHAPES));
	layer l = make_layer(context, 512, 4096, 256, EPG_EPILOG_RELU_BIAS, false);
	contestant c[2] = {{.run = run_epigemm}, {.run = run_fused_relu_bias}};
	contest(c, 2, &l);
	printf("RELU_BIAS 512×4096×256 against sgemm and one OpenMP pass: %.2f\n", median(&c[0]) / median(&c[1]));
	free_layer(&l);
}

static void table_overhead(void)
{
	printf("\nDEFAULT against bare cblas_sgemm, f32, cubes; us\n%6s %10s %10s %10s %8s\n", "size", "epigemm", "sgemm", "added ns", "added %");
	for (int64_t size = 64; size <= 1024; size *= 2) {
		layer l = make_layer(context, size, size, size, EPG_EPILOG_DEFAULT, false);
		contestant c[2] = {{.run = run_epigemm}, {.run = run_sgemm}};
		contest(c, 2, &l);
		double ours = median(&c[0]), bare = median(&c[1]);
		printf("%6lld %10.2f %10.2f %10.0f %8.1f\n", (long long)size, ours * 1e6, bare * 1e6, (ours - bare) * 1e9, 100 * (ours / bare - 1));
		free_layer(&l);
	}
}

static void table_epilog_alone(void)
{
	printf("\nThe epilog alone (k = 0), RELU_BIAS, f32 4096×4096, against memcpy of C to D with as many threads; us\n%-12s %10s %10s %8s\n", "", "epigemm", "copy", "speed");
	for (int in_place = 0; in_place < 2; in_place++) {
		layer l = make_layer(context, 4096, 4096, 0, EPG_EPILOG_RELU_BIAS, in_place), other = make_layer(context, 4096, 4096, 0, EPG_EPILOG_RELU_BIAS, false);
		contestant c[2] = {{.run = run_epigemm}, {.run = run_copy, .on = &other}};
		contest(c, 2, &l);
		double ours = median(&c[0]), copy = median(&c[1]);
		printf("%-12s %10.0f %10.0f %8.2f\n", in_place ? "C in place" : "C to D", ours * 1e6, copy * 1e6, copy / ours);
		free_layer(&l), free_layer(&other);
	}
}

/* ns per element of one pass from C to D, on one thread; negative where the processor lacks the instruction set. */
static double pass_ns(const char *isa, int32_t epilog)
{
	enum { M = 256, N = 64 };
	epg_context_options options;
	epg_context *own;
	int all = threads;
	epg_context_options_init(&options, sizeof options);
	options.threads = 1;
	setenv("EPIGEMM_ISA", isa, 1);
	epg_status status = epg_context_create(&options, &own);
	unsetenv("EPIGEMM_ISA");
	if (status)
		return -1;
	layer l = make_layer(own, M, N, 0, epilog, false);
	contestant c = {.run = run_epigemm};
	threads = 1;
	contest(&c, 1, &l);
	threads = all;
	free_layer(&l);
	epg_context_destroy(own);
	return median(&c) * 1e9 / (M * N);
}

static void table_passes(void)
{
	static const struct { const char *name; int32_t epilog; } rows[] = {{"BIAS", EPG_EPILOG_BIAS}, {"RELU_BIAS", EPG_EPILOG_RELU_BIAS},
		{"RELU_AUX_BIAS", EPG_EPILOG_RELU_AUX_BIAS}, {"DRELU", EPG_EPILOG_DRELU}, {"DRELU_BGRAD", EPG_EPILOG_DRELU_BGRAD}, {"GELU_BIAS", EPG_EPILOG_GELU_BIAS},
		{"GELU_AUX_BIAS", EPG_EPILOG_GELU_AUX_BIAS}, {"DGELU", EPG_EPILOG_DGELU}, {"DGELU_BGRAD", EPG_EPILOG_DGELU_BGRAD}};
	static const char *const isas[] = {"baseline", "avx2", "avx512"};
	printf("\nOne pass from C to D, f32 256×64, one thread; ns per element\n%-15s %10s %10s %10s\n", "epilog", isas[0], isas[1], isas[2]);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		printf("%-15s", rows[i].name);
		for (int s = 0; s < 3; s++) {
			double ns = pass_ns(isas[s], rows[i].epilog);
			if (ns < 0)
				printf(" %10s", "-");
			else
				printf(" %10.3f", ns);
		}
		printf("\n");
	}
}

static void table_types(void)
{
	static const int64_t shapes[][3] = {{1024, 1024, 256}, {1024, 256, 1024}, {512, 4096, 256}, {4096, 512, 1024}, {768, 512, 3072}};
	static const int32_t rows[] = {EPG_EPILOG_RELU_BIAS, EPG_EPILOG_RELU_AUX_BIAS, EPG_EPILOG_DRELU_BGRAD, EPG_EPILOG_DEFAULT};
	static const type_set sets[] = {{"bf16", EPG_BF16, EPG_BF16, EPG_BF16}, {"f16", EPG_F16, EPG_F16, EPG_F16}, {"e4m3→bf16", EPG_E4M3, EPG_BF16, EPG_BF16},
		{"e4m3", EPG_E4M3, EPG_E4M3, EPG_BF16}, {"e5m2→bf16", EPG_E5M2, EPG_BF16, EPG_BF16}, {"s8", EPG_S8, EPG_S8, EPG_F32}, {"s8→s32", EPG_S8, EPG_S32, EPG_S32}};
	enum { NSETS = sizeof sets / sizeof *sets };
	double logs[NSETS] = {0};
	int counts[NSETS] = {0};
	printf("\nThe same layer in other types: us in f32, and the speed of the others as a part of that\n%-15s %6s %6s %6s %10s", "epilog", "m", "n", "k", "f32");
	for (int i = 0; i < NSETS; i++)
		printf(" %*s", 9 + (strlen(sets[i].name) > 4 ? 2 : 0), sets[i].name); /* an arrow has three bytes */
	printf("\n");
	for (size_t e = 0; e < sizeof rows / sizeof *rows; e++)
		for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
			layer l = make_layer(context, shapes[s][0], shapes[s][1], shapes[s][2], rows[e], false), others[NSETS];
			contestant c[NSETS + 1] = {{.run = run_epigemm}};
			int which[NSETS + 1], count = 1;
			for (int i = 0; i < NSETS; i++) {
				if (sets[i].out == EPG_S32 && rows[e] != EPG_EPILOG_DEFAULT)
					continue;
				others[i] = make_narrow_layer(&l, &sets[i], rows[e]);
				which[count] = i;
				c[count++] = (contestant){.run = run_epigemm, .on = &others[i]};
			}
			contest(c, count, &l);
			double f32 = median(&c[0]), speed[NSETS] = {0};
			for (int i = 1; i < count; i++) {
				speed[which[i]] = f32 / median(&c[i]);
				logs[which[i]] += log(speed[which[i]]), counts[which[i]]++;
				free_narrow_layer(&others[which[i]]);
			}
			printf("%-15s %6lld %6lld %6lld %10.1f", epg_epilog_name(rows[e]), (long long)l.m, (long long)l.n, (long long)l.k, 1e6 * f32);
			for (int i = 0; i < NSETS; i++)
				if (speed[i] > 0)
					printf(" %9.2f", speed[i]);
				else
					printf(" %9s", "-");
			printf("\n");
			free_layer(&l);
		}
	printf("%-47s", "geometric means");
	for (int i = 0; i < NSETS; i++)
		printf(" %9.2f", exp(logs[i] / counts[i]));
	printf("\n");
}

/* ---- Against oneDNN ---- */

#if defined __x86_64__ && defined __GNUC__ && !defined __clang__ && !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
#define FOR_EACH_ISA __attribute__((target_clones("default", "avx2", "arch=skylake-avx512")))
#else
#define FOR_EACH_ISA
#endif

/* What a user writes behind oneDNN's product, vectorised: eight comparisons become a byte by one multiplication. */
FOR_EACH_ISA static void relu_mask_column(int64_t m, float *d, unsigned char *mask)
{
	enum { STEP = 64 };
	for (int64_t i0 = 0; i0 < m; i0 += STEP) {
		const int count = m - i0 < STEP ? (int)(m - i0) : STEP;
		unsigned char flags[STEP] = {0};
#pragma omp simd
		for (int i = 0; i < count; i++) {
			float z = d[i0 + i];
			flags[i] = z >= 0;
			d[i0 + i] = z > 0 ? z : 0;
		}
		for (int byte = 0; byte < (count + 7) / 8; byte++) {
			uint64_t eight;
			memcpy(&eight, flags + 8 * byte, 8);
			mask[i0 / 8 + byte] = (unsigned char)(eight * 0x0102040810204080u >> 56);
		}
	}
}

FOR_EACH_ISA static void drelu_sum_column(int64_t m, float *d, const unsigned char *mask, float *sum)
{
	int64_t whole = m / 8 * 8;
	for (int64_t i0 = 0; i0 < whole; i0 += 8) {
		const unsigned bits = mask[i0 / 8];
#pragma omp simd
		for (int r = 0; r < 8; r++) {
			float z = bits >> r & 1 ? d[i0 + r] : 0;
			d[i0 + r] = z;
			sum[i0 + r] += z;
		}
	}
	for (int64_t i = whole; i < m; i++) {
		d[i] = mask[i / 8] >> i % 8 & 1 ? d[i] : 0;
		sum[i] += d[i];
	}
}

static void run_peer(layer *l) { onednn_run(l->peer); }

static void run_peer_relu_aux_bias(layer *l)
{
	onednn_run(l->peer);
#pragma omp parallel for num_threads(threads)
	for (int64_t j = 0; j < l->n; j++)
		relu_mask_column(l->m, l->d + j * l->m, (unsigned char *)l->aux + j * l->mask_ld / 8);
}

static void run_peer_drelu_bgrad(layer *l)
{
	float *sums = l->bgrad;
	onednn_run(l->peer);
	memset(sums, 0, (size_t)l->m * sizeof *sums);
#pragma omp parallel for num_threads(threads) reduction(+ : sums[:l->m])
	for (int64_t j = 0; j < l->n; j++)
		drelu_sum_column(l->m, l->d + j * l->m, (const unsigned char *)l->aux + j * l->mask_ld / 8, sums);
}

typedef struct peer_row {
	const char *name;
	int32_t epilog;
	bool relu; /* in oneDNN's primitive */
	void (*run)(layer *);
} peer_row;

static const peer_row peer_rows[] = {{"RELU_BIAS", EPG_EPILOG_RELU_BIAS, true, run_peer}, {"RELU_AUX_BIAS", EPG_EPILOG_RELU_AUX_BIAS, false, run_peer_relu_aux_bias},
	{"DRELU_BGRAD", EPG_EPILOG_DRELU_BGRAD, false, run_peer_drelu_bgrad}};

/* One row; adds the logarithms of MEASURE over oneDNN and of ESTIMATE over MEASURE. */
static void onednn_row(const peer_row *row, const int64_t shape[3], int32_t op, double logs[2], double *largest)
{
	layer l = make_data(shape[0], shape[1], shape[2], row->epilog, false), estimate = l;
	l.plan = plan_layer(context, &l, row->epilog, op, EPG_MEASURE);
	estimate.plan = plan_layer(context, &l, row->epilog, op, EPG_ESTIMATE);
	l.peer = onednn_create(l.m, l.n, l.k, op == EPG_OP_T, row->relu, l.w, l.x, row->epilog & EPG_BIAS ? l.bias : NULL, l.d);
	if (!l.peer) {
		printf("%-14s %6lld %6lld %6lld %2s oneDNN refuses it\n", row->name, (long long)l.m, (long long)l.n, (long long)l.k, op == EPG_OP_T ? "T" : "N");
	} else {
		epg_plan_info info;
		contestant c[3] = {{.run = run_epigemm}, {.run = row->run}, {.run = run_epigemm, .on = &estimate}};
		must(epg_plan_get_info(l.plan, &info, sizeof info), "info");
		contest(c, 3, &l);
		double ours = median(&c[0]), theirs = median(&c[1]), estimated = median(&c[2]);
		printf("%-14s %6lld %6lld %6lld %2s %10.1f %10.1f %8.2f %8.2f  %s\n", row->name, (long long)l.m, (long long)l.n, (long long)l.k, op == EPG_OP_T ? "T" : "N", ours * 1e6, theirs * 1e6,
			ours / theirs, estimated / ours, info.lowering);
		logs[0] += log(ours / theirs), logs[1] += log(estimated / ours);
		*largest = fmax(*largest, ours / theirs);
	}
	onednn_destroy(l.peer);
	epg_plan_destroy(estimate.plan);
	free_layer(&l);
}

static void table_onednn(void)
{
	if (onednn_why()) {
		printf("\nNo table against oneDNN: %s.\n", onednn_why());
		return;
	}
	printf("\nAgainst oneDNN %s, f32; W as stored (N) or transposed (T). Behind a mask, aux or gradient its side is the product with the bias and a vectorised pass; us\n", onednn_version());
	printf("%-14s %6s %6s %6s %2s %10s %10s %8s %8s  %s\n", "epilog", "m", "n", "k", "W", "MEASURE", "oneDNN", "/oneDNN", "E/M", "lowering");
	for (size_t r = 0; r < sizeof peer_rows / sizeof *peer_rows; r++)
		for (int transposed = 0; transposed < 2; transposed++) {
			double logs[2] = {0}, largest = 0;
			for (int i = 0; i < NSHAPES; i++)
				onednn_row(&peer_rows[r], layer_shapes[i], transposed ? EPG_OP_T : EPG_OP_N, logs, &largest);
			printf("%-14s W %s, geometric means: %.3f of oneDNN's time (largest %.2f); ESTIMATE %.3f of MEASURE's\n", peer_rows[r].name, transposed ? "transposed" : "as stored",
				exp(logs[0] / NSHAPES), largest, exp(logs[1] / NSHAPES));
		}
}

typedef struct table_row {
	const char *name;
	void (*print)(void);
	bool wanted;
} table_row;

static table_row tables[] = {{"overhead", table_overhead, false}, {"alone", table_epilog_alone, false}, {"passes", table_passes, false}, {"layers", table_layers, false}, {"types", table_types, false}, {"onednn", table_onednn, false}};
enum { NTABLES = sizeof tables / sizeof *tables };

/* False: there is no table of that name. */
static bool want_table(const char *name)
{
	for (int t = 0; t < NTABLES; t++)
		if (strcmp(tables[t].name, name) == 0)
			return tables[t].wanted = true;
	return false;
}

int main(int argc, char **argv)
{
	epg_context_options options;
	epg_context_info info;
	bool quick = false, some = false;
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
		else if (want_table(argv[i]))
			some = true;
		else
			return fprintf(stderr, "usage: bench [--threads N] [--rounds 1…%d] [--quick] [--estimate] [overhead] [alone] [passes] [layers] [types] [onednn]\n", MAX_ROUNDS), 2;
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
	for (int t = 0; t < NTABLES; t++)
		if (!some || tables[t].wanted)
			tables[t].print();
	epg_context_destroy(context);
	return 0;
}
