/* SPDX-License-Identifier: Apache-2.0
 *
 * The library on a GPU beside bare cuBLASLt, in one process: CUDA-graph trains on warm data, medians of five, every contestant of
 * a row in turn. The columns of the vendor are its first proposal and the best of sixteen, by the same clock. Random bf16 data.
 *
 *     bench/gpu      every table          bench/gpu layers|f64|host|gradients …      some of them */
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <epigemm.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PROPOSALS = 16, ROUNDS = 5, MAX_CONTESTANTS = PROPOSALS + 4, WORKSPACE = 32 << 20 };

static cudaStream_t stream;
static cublasLtHandle_t lt;
static epg_context *context;
static void *workspace;

static void must(int error, const char *what)
{
	if (!error)
		return;
	fprintf(stderr, "%s: error %d (%s)\n", what, error, epg_last_error());
	exit(1);
}

#define MUST(call) must((int)(call), #call)

/* ---- Problems ---- */

typedef struct problem {
	int64_t m, n, k;
	int32_t type, epilog;
	const char *name;
	void *a, *b, *d, *aux, *bias, *bgrad;
} problem;

static const int64_t shapes[][3] = {{104, 256, 784}, {1024, 512, 4096}, {4096, 512, 4096}, {4096, 4096, 4096}, {8192, 8192, 8192}, {64, 65536, 64},
	{256, 65536, 64}, {3072, 8192, 768}, {768, 8192, 3072}, {11008, 2048, 4096}};

static uint64_t random_state = 88172645463325252u;

static uint32_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 32);
}

/* Values in [-1, 1), bits for a mask: 4 MiB of them, over and over. */
static void *random_memory(int32_t type, int64_t count)
{
	enum { TILE = 4 << 20 };
	int64_t nbytes = count * epg_type_nbits(type) / 8 + 256;
	unsigned char *host = malloc(TILE);
	char *device = NULL;
	for (int64_t i = 0; i < TILE / 8 && type == EPG_F64; i++)
		((double *)host)[i] = (int32_t)next_random() / 2147483648.0;
	for (int64_t i = 0; i < TILE / 2 && type == EPG_BF16; i++) {
		float x = (float)(int32_t)next_random() / 2147483648.0f;
		uint32_t bits;
		memcpy(&bits, &x, sizeof bits);
		((uint16_t *)host)[i] = (uint16_t)(bits >> 16);
	}
	for (int64_t i = 0; i < TILE && type == EPG_BIT; i++)
		host[i] = (unsigned char)next_random();
	MUST(cudaMalloc((void **)&device, (size_t)nbytes));
	for (int64_t at = 0; at < nbytes; at += TILE)
		MUST(cudaMemcpy(device + at, host, (size_t)(nbytes - at < TILE ? nbytes - at : TILE), cudaMemcpyHostToDevice));
	free(host);
	return device;
}

static int64_t mask_ld(int64_t m) { return (m + 127) / 128 * 128; }
static int is_relu(int32_t epilog) { return (epilog & EPG_ACT_MASK) == EPG_ACT_RELU; }

static problem make_problem(int64_t m, int64_t n, int64_t k, int32_t type, int32_t epilog)
{
	problem p = {m, n, k, type, epilog, epg_epilog_name(epilog), random_memory(type, m * k), random_memory(type, k * n), random_memory(type, m * n), NULL, NULL, NULL};
	p.aux = is_relu(epilog) ? random_memory(EPG_BIT, mask_ld(m) * n) : random_memory(type, (m + 7) / 8 * 8 * n);
	p.bias = random_memory(type, m);
	p.bgrad = random_memory(type, m);
	return p;
}

static void free_problem(problem *p)
{
	void *all[] = {p->a, p->b, p->d, p->aux, p->bias, p->bgrad};
	for (int i = 0; i < 6; i++)
		cudaFree(all[i]);
}

/* ---- Contestants: something that enqueues one execution ---- */

typedef struct vendor {
	cublasLtMatmulDesc_t desc;
	cublasLtMatrixLayout_t a, b, d;
	cublasLtMatmulHeuristicResult_t found[PROPOSALS];
	int count;
	double alpha64, beta64;
	float alpha32, beta32;
} vendor;

typedef struct contestant {
	const problem *p;
	const vendor *v;
	int proposal;
	const epg_plan *plan; /* NULL: the vendor */
} contestant;

static void enqueue(const contestant *c)
{
	const problem *p = c->p;
	if (c->plan) {
		epg_operands x = EPG_OPERANDS(.a = p->a, .b = p->b, .d = p->d);
		x.aux = p->epilog & EPG_AUX ? p->aux : NULL;
		x.bias = p->epilog & EPG_BIAS ? p->bias : NULL;
		x.bgrad = p->epilog & EPG_BGRAD ? p->bgrad : NULL;
		MUST(epg_execute(c->plan, &x, stream));
		return;
	}
	const vendor *v = c->v;
	const void *alpha = p->type == EPG_F64 ? (const void *)&v->alpha64 : &v->alpha32, *beta = p->type == EPG_F64 ? (const void *)&v->beta64 : &v->beta32;
	MUST(cublasLtMatmul(lt, v->desc, alpha, p->a, v->a, p->b, v->b, beta, p->d, v->d, p->d, v->d, &v->found[c->proposal].algo, workspace, WORKSPACE, stream));
}

static const struct { int32_t ours; cublasLtEpilogue_t theirs; } epilogs[] = {
	{EPG_EPILOG_DEFAULT, CUBLASLT_EPILOGUE_DEFAULT}, {EPG_EPILOG_RELU_BIAS, CUBLASLT_EPILOGUE_RELU_BIAS}, {EPG_EPILOG_RELU_AUX_BIAS, CUBLASLT_EPILOGUE_RELU_AUX_BIAS},
	{EPG_EPILOG_GELU_AUX_BIAS, CUBLASLT_EPILOGUE_GELU_AUX_BIAS}, {EPG_EPILOG_DRELU_BGRAD, CUBLASLT_EPILOGUE_DRELU_BGRAD},
	{EPG_EPILOG_DGELU_BGRAD, CUBLASLT_EPILOGUE_DGELU_BGRAD},
};

static void set_desc(vendor *v, cublasLtMatmulDescAttributes_t attribute, const void *value, size_t nbytes)
{
	MUST(cublasLtMatmulDescSetAttribute(v->desc, attribute, value, nbytes));
}

/* D = op(A)·B with A transposed. */
static vendor make_vendor(const problem *p, int32_t epilog)
{
	vendor v = {.alpha64 = 1, .alpha32 = 1};
	const cudaDataType_t type = p->type == EPG_F64 ? CUDA_R_64F : p->type == EPG_F32 ? CUDA_R_32F : CUDA_R_16BF;
	const cublasOperation_t transposed = CUBLAS_OP_T;
	const int64_t ldaux = is_relu(epilog) ? mask_ld(p->m) : (p->m + 7) / 8 * 8;
	const void *vector = epilog & EPG_BIAS ? p->bias : p->bgrad;
	const uint64_t most = WORKSPACE;
	const uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
	cublasLtMatmulPreference_t preference;
	MUST(cublasLtMatmulDescCreate(&v.desc, p->type == EPG_F64 ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F, p->type == EPG_F64 ? CUDA_R_64F : CUDA_R_32F));
	set_desc(&v, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed);
	for (size_t i = 0; i < sizeof epilogs / sizeof *epilogs; i++)
		if (epilogs[i].ours == epilog)
			set_desc(&v, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogs[i].theirs, sizeof epilogs[i].theirs);
	if (epilog & (EPG_BIAS | EPG_BGRAD)) {
		set_desc(&v, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &vector, sizeof vector);
		set_desc(&v, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof type);
	}
	if (epilog & EPG_AUX) {
		set_desc(&v, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &p->aux, sizeof p->aux);
		set_desc(&v, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &ldaux, sizeof ldaux);
	}
	MUST(cublasLtMatrixLayoutCreate(&v.a, type, (uint64_t)p->k, (uint64_t)p->m, p->k));
	MUST(cublasLtMatrixLayoutCreate(&v.b, type, (uint64_t)p->k, (uint64_t)p->n, p->k));
	MUST(cublasLtMatrixLayoutCreate(&v.d, type, (uint64_t)p->m, (uint64_t)p->n, p->m));
	MUST(cublasLtMatmulPreferenceCreate(&preference));
	MUST(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most));
	MUST(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reduction, sizeof reduction));
	MUST(cublasLtMatmulAlgoGetHeuristic(lt, v.desc, v.a, v.b, v.d, v.d, preference, PROPOSALS, v.found, &v.count));
	cublasLtMatmulPreferenceDestroy(preference);
	return v;
}

static void free_vendor(vendor *v)
{
	cublasLtMatmulDescDestroy(v->desc);
	cublasLtMatrixLayoutDestroy(v->a);
	cublasLtMatrixLayoutDestroy(v->b);
	cublasLtMatrixLayoutDestroy(v->d);
}

static epg_plan *make_plan(const problem *p, int32_t rigor)
{
	epg_matmul_desc desc;
	epg_plan_options options;
	epg_plan *plan;
	MUST(epg_matmul_desc_init(&desc, sizeof desc, p->m, p->n, p->k, p->type, EPG_COL));
	desc.epilog = p->epilog;
	desc.a.op = EPG_OP_T;
	MUST(epg_plan_options_init(&options, sizeof options));
	options.rigor = rigor;
	MUST(epg_plan_create(context, &desc, &options, &plan));
	return plan;
}

/* ---- Timing ---- */

static int by_value(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;
	return (a > b) - (a < b);
}

static double median(double *x, int count)
{
	qsort(x, (size_t)count, sizeof *x, by_value);
	return x[count / 2];
}

static cudaGraphExec_t capture(const contestant *c, int train)
{
	cudaGraph_t graph;
	cudaGraphExec_t ready;
	enqueue(c);
	MUST(cudaStreamSynchronize(stream));
	MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	for (int i = 0; i < train; i++)
		enqueue(c);
	MUST(cudaStreamEndCapture(stream, &graph));
	MUST(cudaGraphInstantiate(&ready, graph, 0));
	cudaGraphDestroy(graph);
	return ready;
}

static double run_us(cudaGraphExec_t graph, int train, cudaEvent_t begin, cudaEvent_t end)
{
	float ms;
	MUST(cudaEventRecord(begin, stream));
	MUST(cudaGraphLaunch(graph, stream));
	MUST(cudaEventRecord(end, stream));
	MUST(cudaEventSynchronize(end));
	MUST(cudaEventElapsedTime(&ms, begin, end));
	return 1e3 * ms / train;
}

/* Microseconds of each contestant: medians of rounds in which every one runs once, after a first round that only warms up. */
static void race(const contestant *all, int count, int train, double *us)
{
	static double samples[MAX_CONTESTANTS][ROUNDS];
	cudaGraphExec_t graphs[MAX_CONTESTANTS];
	cudaEvent_t begin, end;
	MUST(cudaEventCreate(&begin));
	MUST(cudaEventCreate(&end));
	for (int i = 0; i < count; i++)
		graphs[i] = capture(&all[i], train);
	for (int round = -1; round < ROUNDS; round++)
		for (int i = 0; i < count; i++) {
			double x = run_us(graphs[i], train, begin, end);
			if (round >= 0)
				samples[i][round] = x;
		}
	for (int i = 0; i < count; i++) {
		us[i] = median(samples[i], ROUNDS);
		cudaGraphExecDestroy(graphs[i]);
	}
	cudaEventDestroy(begin);
	cudaEventDestroy(end);
}

static int train_length(const problem *p) { return 2.0 * (double)p->m * (double)p->n * (double)p->k > 3e11 ? 8 : 40; }

/* ---- Tables ---- */

/* The lowering, and the numbers of the vendor's algorithm and tile. */
static void lowering_of(const epg_plan *plan, char text[32])
{
	epg_plan_info info;
	char pin[256];
	int id = 0, tile = 0;
	MUST(epg_plan_get_info(plan, &info, sizeof info));
	MUST(epg_plan_pin(plan, info.candidate, pin, sizeof pin, NULL));
	const char *at = strstr(pin, " id=");
	if (at)
		sscanf(at, " id=%d tile=%d", &id, &tile);
	snprintf(text, 32, "%.15s:%d/%d", info.lowering, id, tile);
}

typedef struct row_times {
	double plain, first, best, estimate, measure;
} row_times;

static row_times time_row(const problem *p, char lowering[2][32])
{
	vendor plain = make_vendor(p, EPG_EPILOG_DEFAULT), fused = make_vendor(p, p->epilog);
	epg_plan *estimate = make_plan(p, EPG_ESTIMATE), *measure = make_plan(p, EPG_MEASURE);
	contestant all[MAX_CONTESTANTS];
	double us[MAX_CONTESTANTS];
	int count = 0;
	all[count++] = (contestant){p, &plain, 0, NULL};
	all[count++] = (contestant){p, NULL, 0, estimate};
	all[count++] = (contestant){p, NULL, 0, measure};
	for (int i = 0; i < fused.count; i++)
		all[count++] = (contestant){p, &fused, i, NULL};
	race(all, count, train_length(p), us);
	row_times t = {us[0], us[3], us[3], us[1], us[2]};
	for (int i = 3; i < count; i++)
		t.best = us[i] < t.best ? us[i] : t.best;
	lowering_of(estimate, lowering[0]);
	lowering_of(measure, lowering[1]);
	epg_plan_destroy(estimate);
	epg_plan_destroy(measure);
	free_vendor(&plain);
	free_vendor(&fused);
	return t;
}

static void layers(void)
{
	static const int32_t rows[] = {EPG_EPILOG_RELU_BIAS, EPG_EPILOG_RELU_AUX_BIAS, EPG_EPILOG_GELU_AUX_BIAS, EPG_EPILOG_DRELU_BGRAD, EPG_EPILOG_DGELU_BGRAD};
	printf("\nLayers, bf16, D = op(A)·B with A transposed; us. 'plain' is the vendor's product alone, 'first' and 'best' its fused call.\n");
	printf("%-14s %6s %6s %6s %9s %9s %9s %9s %9s  %6s %6s %6s  %s\n", "epilog", "m", "n", "k", "plain", "first", "best", "ESTIMATE", "MEASURE", "M/pl", "M/best", "E/M", "ways");
	for (size_t e = 0; e < sizeof rows / sizeof *rows; e++) {
		double log_m = 0, log_e = 0;
		for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
			char ways[2][32];
			problem p = make_problem(shapes[s][0], shapes[s][1], shapes[s][2], EPG_BF16, rows[e]);
			row_times t = time_row(&p, ways);
			log_m += log(t.measure / t.best) / (sizeof shapes / sizeof *shapes);
			log_e += log(t.estimate / t.measure) / (sizeof shapes / sizeof *shapes);
			printf("%-14s %6lld %6lld %6lld %9.2f %9.2f %9.2f %9.2f %9.2f  %6.3f %6.3f %6.3f  %s %s\n", p.name, (long long)p.m, (long long)p.n, (long long)p.k, t.plain, t.first, t.best,
				t.estimate, t.measure, t.measure / t.plain, t.measure / t.best, t.estimate / t.measure, ways[0], ways[1]);
			fflush(stdout);
			free_problem(&p);
		}
		printf("%-14s geometric means: MEASURE over the vendor's best %.3f, ESTIMATE over MEASURE %.3f\n", epg_epilog_name(rows[e]), exp(log_m), exp(log_e));
	}
}

static void f64(void)
{
	char ways[2][32];
	problem p = make_problem(4096, 4096, 4096, EPG_F64, EPG_EPILOG_RELU_BIAS);
	row_times t = time_row(&p, ways);
	printf("\nf64 RELU_BIAS 4096×4096×4096; us: plain %.0f, vendor fused %.0f, best %.0f, ESTIMATE %.0f (%.3f of plain, %s), MEASURE %.0f (%.3f, %s)\n", t.plain, t.first, t.best,
		t.estimate, t.estimate / t.plain, ways[0], t.measure, t.measure / t.plain, ways[1]);
	free_problem(&p);
}

/* The gradients alone, beside the plain product. */
static void gradients(void)
{
	static const int32_t rows[] = {EPG_EPILOG_DRELU, EPG_EPILOG_DRELU_BGRAD, EPG_EPILOG_DGELU_BGRAD};
	printf("\nGradients, bf16; us: the plain product, and the estimate's way\n");
	for (size_t e = 0; e < sizeof rows / sizeof *rows; e++)
		for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
			problem p = make_problem(shapes[s][0], shapes[s][1], shapes[s][2], EPG_BF16, rows[e]);
			vendor plain = make_vendor(&p, EPG_EPILOG_DEFAULT);
			epg_plan *plan = make_plan(&p, EPG_ESTIMATE);
			contestant all[] = {{&p, &plain, 0, NULL}, {&p, NULL, 0, plan}};
			double us[2];
			race(all, 2, train_length(&p), us);
			printf("%-14s %6lld %6lld %6lld %9.2f %9.2f  %6.3f\n", p.name, (long long)p.m, (long long)p.n, (long long)p.k, us[0], us[1], us[1] / us[0]);
			epg_plan_destroy(plan);
			free_vendor(&plain);
			free_problem(&p);
		}
}

static double host_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* Host time of one call, the mean over a batch that fits the launch queue. */
static double host_us(const contestant *c)
{
	enum { CALLS = 100 };
	MUST(cudaStreamSynchronize(stream));
	double begin = host_now();
	for (int i = 0; i < CALLS; i++)
		enqueue(c);
	return (host_now() - begin) / CALLS;
}

static void host(void)
{
	problem p = make_problem(104, 256, 784, EPG_BF16, EPG_EPILOG_RELU_BIAS);
	vendor v = make_vendor(&p, p.epilog);
	epg_plan *plan = make_plan(&p, EPG_ESTIMATE);
	contestant bare = {&p, &v, 0, NULL}, ours = {&p, NULL, 0, plan};
	enum { BATCHES = 101 };
	double theirs[BATCHES], our[BATCHES], added[BATCHES];
	for (int b = 0; b < BATCHES; b++) {
		theirs[b] = host_us(&bare);
		our[b] = host_us(&ours);
		added[b] = our[b] - theirs[b];
	}
	printf("\nHost time of a call, bf16 RELU_BIAS 104×256×784, medians of %d pairs of batches; us: cublasLtMatmul with prepared descriptors %.2f, epg_execute %.2f, added %.2f\n", BATCHES,
		median(theirs, BATCHES), median(our, BATCHES), median(added, BATCHES));
	epg_plan_destroy(plan);
	free_vendor(&v);
	free_problem(&p);
}

int main(int argc, char **argv)
{
	static const struct { const char *name; void (*run)(void); } tables[] = {{"layers", layers}, {"f64", f64}, {"host", host}, {"gradients", gradients}};
	epg_context_options options;
	epg_context_info info;
	MUST(epg_context_options_init(&options, sizeof options));
	options.backend = "cuda";
	MUST(epg_context_create(&options, &context));
	MUST(epg_context_get_info(context, &info, sizeof info));
	MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	MUST(cublasLtCreate(&lt));
	MUST(cudaMalloc(&workspace, WORKSPACE));
	printf("epigemm %s, %s, %s; CUDA-graph trains, medians of %d, random data\n", epg_version(), info.device, info.library, ROUNDS);
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
		for (int a = argc > 1 ? 1 : 0; a < (argc > 1 ? argc : 1); a++)
			if (argc == 1 || strcmp(argv[a], tables[i].name) == 0)
				tables[i].run();
	epg_context_destroy(context);
	return 0;
}
