/* SPDX-License-Identifier: Apache-2.0
 *
 * What only a GPU can show, through the public API and the application's own CUDA runtime: graphs, streams, threads, pointers without
 * alignment, masks and aux that cross between the backends, memory that runs out, the host's memory, the workspace rule. */
#define _GNU_SOURCE
#include <cuda_runtime_api.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"
#include "tap.h"

static epg_context *context, *cpu;

static int done(cudaError_t error, const char *what)
{
	if (error)
		diag("%s: %s", what, cudaGetErrorString(error));
	return error == cudaSuccess;
}

static int fine(epg_status status, const char *what)
{
	if (status)
		diag("%s: %s: %s", what, epg_status_string(status), epg_last_error());
	return status == EPG_SUCCESS;
}

/* ---- A layer on device memory, with what the CPU makes of the same numbers ---- */

typedef struct {
	problem p;
	epg_plan *plan;
	void *workspace;
	epg_operands x;
} layer;

static void *at(problem *p, int which) { return p->x[which].layout.used ? (char *)p->x[which].device + p->x[which].start : NULL; }

static int open_layer(layer *l, const char *line, uint64_t seed, int own_workspace)
{
	epg_matmul_desc desc;
	epg_plan_info info;
	check_options options = { .data = DATA_INTEGERS, .seed = seed };
	memset(l, 0, sizeof *l);
	if (!parse_desc(line, &desc) || !problem_open(&l->p, &desc, &options))
		return 0;
	problem_solve(&l->p);
	if (!fine(problem_execute(context, &l->p, NULL), line) || !fine(epg_plan_create(context, &desc, NULL, &l->plan), line)
		|| !fine(epg_plan_get_info(l->plan, &info, sizeof info), line))
		return 0;
	epg_operands_init(&l->x, sizeof l->x);
	l->x.a = at(&l->p, EPG_OPERAND_A), l->x.b = at(&l->p, EPG_OPERAND_B), l->x.c = at(&l->p, EPG_OPERAND_C), l->x.d = at(&l->p, EPG_OPERAND_D);
	l->x.aux = at(&l->p, EPG_OPERAND_AUX), l->x.bias = at(&l->p, EPG_OPERAND_BIAS), l->x.bgrad = at(&l->p, EPG_OPERAND_BGRAD);
	if (own_workspace && info.workspace_nbytes && fine(epg_malloc(context, info.workspace_nbytes, &l->workspace), "workspace")) {
		l->x.workspace = l->workspace;
		l->x.workspace_nbytes = info.workspace_nbytes;
	}
	return 1;
}

static void close_layer(layer *l)
{
	epg_plan_destroy(l->plan);
	epg_free(context, l->workspace);
	problem_close(&l->p);
}

/* Clears the outputs on the device. */
static void clear(layer *l)
{
	for (int which = EPG_OPERAND_D; which < OPERANDS; which++)
		if (l->p.x[which].is_output && l->p.x[which].layout.used)
			done(cudaMemcpy(l->p.x[which].device, l->p.x[which].before, l->p.x[which].total, cudaMemcpyHostToDevice), "clear");
}

static int is_right(layer *l)
{
	for (int which = 0; which < OPERANDS; which++)
		if (!done(cudaMemcpy(l->p.x[which].after, l->p.x[which].device, l->p.x[which].total, cudaMemcpyDeviceToHost), "download"))
			return 0;
	return problem_compare(&l->p);
}

static const char *const lines[] = {
	"f16 m=512 n=256 k=128 epilog=gelu_aux_bias", "f64 m=96 n=80 k=64 epilog=gelu_bias", "bf16 m=264 n=100 k=64 epilog=drelu_bgrad", "f32 m=130 n=77 k=33 epilog=dgelu_bgrad axis=column",
	"f32 m=64 n=48 k=40 opa=T epilog=bgrada", "bf16 m=64 n=48 k=32 epilog=relu_aux_bias axis=column orderaux=row", "c64 m=33 n=17 k=9 opa=J epilog=bias",
};
enum { LINES = sizeof lines / sizeof *lines };

/* ---- Graphs ---- */

static cudaGraphExec_t capture(layer *l, cudaStream_t stream, int times)
{
	cudaGraph_t graph = NULL;
	cudaGraphExec_t ready = NULL;
	int good = done(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin");
	for (int i = 0; i < times && good; i++)
		good = fine(epg_execute(l->plan, &l->x, stream), "execute in a capture");
	if (done(cudaStreamEndCapture(stream, &graph), "end") && good)
		done(cudaGraphInstantiate(&ready, graph, 0), "instantiate");
	if (graph)
		cudaGraphDestroy(graph);
	return ready;
}

static void check_graph(const char *line)
{
	layer first, second;
	cudaStream_t stream;
	int good = open_layer(&first, line, 1, 1) & open_layer(&second, line, 2, 1) & done(cudaStreamCreate(&stream), "stream");
	second.x.workspace = second.workspace; /* two graphs of one plan, each with its own workspace */
	epg_plan *own = second.plan;
	second.plan = first.plan;
	cudaGraphExec_t a = good ? capture(&first, stream, 2) : NULL, b = good ? capture(&second, stream, 1) : NULL;
	second.plan = own;
	clear(&first);
	clear(&second);
	for (int replay = 0; replay < 3 && a && b; replay++)
		good &= done(cudaGraphLaunch(a, stream), "launch") & done(cudaGraphLaunch(b, stream), "launch");
	good &= done(cudaStreamSynchronize(stream), "synchronize");
	ok(good && a && b && is_right(&first) && is_right(&second), "%s: two graphs of one plan", line);
	if (a)
		cudaGraphExecDestroy(a);
	clear(&second);
	ok(b && done(cudaGraphLaunch(b, stream), "launch") && done(cudaStreamSynchronize(stream), "synchronize") && is_right(&second), "%s: one goes on without the other", line);
	if (b)
		cudaGraphExecDestroy(b);
	cudaStreamDestroy(stream);
	close_layer(&first);
	close_layer(&second);
}

/* Planning while a stream is being captured is refused, and the capture goes on. */
static void check_planning_in_a_capture(void)
{
	layer l;
	cudaStream_t stream;
	epg_plan *plan = NULL;
	epg_plan_options options;
	cudaGraph_t graph = NULL;
	int good = open_layer(&l, lines[1], 3, 0) & done(cudaStreamCreate(&stream), "stream") & done(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin");
	epg_plan_options_init(&options, sizeof options);
	options.rigor = EPG_MEASURE;
	ok(good && epg_plan_create(context, &l.p.desc, &options, &plan) == EPG_INVALID && strstr(epg_last_error(), "captured"), "a plan during a capture is refused: %s", epg_last_error());
	ok(fine(epg_execute(l.plan, &l.x, stream), "execute") && done(cudaStreamEndCapture(stream, &graph), "end") && graph, "and the capture is as good as before");
	if (graph)
		cudaGraphDestroy(graph);
	cudaStreamDestroy(stream);
	close_layer(&l);
}

/* ---- Streams and threads ---- */

enum { THREADS = 8, RUNS = 20 };

typedef struct {
	layer l;
	const epg_plan *plan;
	int good;
} worker;

static void *work(void *argument)
{
	worker *w = argument;
	cudaStream_t stream;
	w->good = done(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
	for (int run = 0; run < RUNS && w->good; run++)
		w->good = fine(epg_execute(w->plan, &w->l.x, stream), "execute");
	w->good = w->good && done(cudaStreamSynchronize(stream), "synchronize");
	cudaStreamDestroy(stream);
	return NULL;
}

static void check_threads(const char *line)
{
	static worker all[THREADS];
	pthread_t threads[THREADS];
	int good = 1;
	for (int i = 0; i < THREADS; i++) {
		good &= open_layer(&all[i].l, line, (uint64_t)i + 1, 1);
		all[i].plan = all[0].l.plan;
		clear(&all[i].l);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, &all[i]);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		good &= all[i].good && is_right(&all[i].l);
	}
	ok(good, "%s: one plan in %d threads, each with its stream and workspace", line, THREADS);
	for (int i = THREADS - 1; i >= 0; i--)
		close_layer(&all[i].l);
}

/* ---- Pointers ---- */

/* Each operand in turn 2, 4 and 8 bytes off what the plan counts on, where its type allows that. */
static void check_unaligned(const char *line)
{
	static const char *const names[OPERANDS] = { "A", "B", "C", "D", "aux", "bias", "bgrad" };
	for (int which = 0; which < OPERANDS; which++)
		for (int off = 2; off <= 8; off *= 2) {
			layer l;
			char *moved = NULL;
			if (!open_layer(&l, line, 5, 0))
				return;
			operand *x = &l.p.x[which];
			int64_t element = oracle_type_nbits(x->layout.type) / 8 / (oracle_type_is_complex(x->layout.type) ? 2 : 1);
			if (x->layout.used && off % (element ? element : 1) == 0 && done(cudaMalloc((void **)&moved, x->total + 256), "memory")) {
				void **pointers[OPERANDS] = { (void **)&l.x.a, (void **)&l.x.b, (void **)&l.x.c, &l.x.d, &l.x.aux, (void **)&l.x.bias, &l.x.bgrad };
				clear(&l);
				done(cudaMemcpy(moved + off, x->before, x->total, cudaMemcpyHostToDevice), "move");
				*pointers[which] = moved + off + x->start;
				int good = fine(epg_execute(l.plan, &l.x, NULL), "execute") && done(cudaDeviceSynchronize(), "synchronize");
				done(cudaMemcpy(x->device, moved + off, x->total, cudaMemcpyDeviceToDevice), "move back");
				ok(good && is_right(&l), "%s: %s %d bytes off", line, names[which], off);
			}
			cudaFree(moved);
			close_layer(&l);
		}
}

/* ---- Aux from one backend to the other ---- */

/* Forward with aux on one backend, backward on another: D of the backward pass is the oracle's for that very aux. */
static void check_crossing(epg_context *from, epg_context *to, int32_t type, int32_t forward, int32_t backward, const char *direction)
{
	problem f, b;
	epg_matmul_desc df = make_desc(type, 133, 37, 24, EPG_COL, forward), db = make_desc(type, 133, 37, 24, EPG_COL, backward);
	check_options options = { .data = DATA_INTEGERS, .seed = 11 };
	int good = problem_open(&f, &df, &options) && problem_open(&b, &db, &options) && fine(problem_execute(from, &f, NULL), "forward");
	if (good) {
		memcpy(problem_before(&b, EPG_OPERAND_AUX), problem_after(&f, EPG_OPERAND_AUX), (size_t)b.x[EPG_OPERAND_AUX].layout.nbytes);
		problem_solve(&b);
		good = fine(problem_execute(to, &b, NULL), "backward") && problem_compare(&b);
	}
	ok(good, "%s %s: aux of %s read by %s", epg_type_name(type), direction, epg_epilog_name(forward), epg_epilog_name(backward));
	problem_close(&f);
	problem_close(&b);
}

static void check_crossings(void)
{
	static const int32_t types[] = { EPG_F32, EPG_F64, EPG_BF16, EPG_F16 };
	for (int t = 0; t < 4; t++) {
		check_crossing(cpu, context, types[t], EPG_EPILOG_RELU_AUX_BIAS, EPG_EPILOG_DRELU_BGRAD, "CPU to GPU");
		check_crossing(context, cpu, types[t], EPG_EPILOG_RELU_AUX_BIAS, EPG_EPILOG_DRELU_BGRAD, "GPU to CPU");
		check_crossing(cpu, context, types[t], EPG_EPILOG_GELU_AUX_BIAS, EPG_EPILOG_DGELU_BGRAD, "CPU to GPU");
		check_crossing(context, cpu, types[t], EPG_EPILOG_GELU_AUX_BIAS, EPG_EPILOG_DGELU_BGRAD, "GPU to CPU");
	}
}

/* ---- Memory ---- */

/* With next to no memory left: the same pin as before, or a clear refusal; afterwards all is well again. */
static void check_exhausted(void)
{
	enum { BLOCKS = 64 };
	void *blocks[BLOCKS], *memory = NULL;
	size_t left = 0, all = 0;
	int count = 0;
	char before[256], after[256];
	epg_matmul_desc desc = make_desc(EPG_BF16, 4096, 4096, 4096, EPG_COL, EPG_EPILOG_DRELU_BGRAD);
	epg_plan *plan = NULL;
	int good = fine(epg_plan_create(context, &desc, NULL, &plan), "plan") && fine(epg_plan_pin(plan, 0, before, sizeof before, NULL), "pin");
	epg_plan_destroy(plan);
	plan = NULL;
	while (count < BLOCKS && done(cudaMemGetInfo(&left, &all), "memory") && left > (100u << 20)) {
		size_t nbytes = left - (64u << 20) < ((size_t)16 << 30) ? left - (64u << 20) : (size_t)16 << 30;
		if (cudaMalloc(&blocks[count], nbytes)) {
			cudaGetLastError();
			break;
		}
		count++;
	}
	epg_status status = epg_plan_create(context, &desc, NULL, &plan);
	if (!status)
		fine(epg_plan_pin(plan, 0, after, sizeof after, NULL), "pin");
	ok(good && (status == EPG_NO_MEMORY || (status == EPG_SUCCESS && strcmp(before, after) == 0)), "with %zu MB left: %s", left >> 20, status ? epg_last_error() : "the same pin");
	ok(epg_malloc(context, (size_t)8 << 30, &memory) == EPG_NO_MEMORY, "8 GB more: %s", epg_last_error());
	epg_plan_destroy(plan);
	for (int i = 0; i < count; i++)
		cudaFree(blocks[i]);
	epg_matmul_desc small = make_desc(EPG_F32, 33, 17, 9, EPG_COL, EPG_EPILOG_RELU_BIAS);
	ok(check_problem(context, &small, NULL), "afterwards all is well");
}

static void check_workspace_limits(void)
{
	static const int64_t limits[] = { 0, 1 << 20, 32 << 20 };
	for (int i = 0; i < 3; i++) {
		epg_matmul_desc desc = make_desc(EPG_F16, 64, 64, 65536, EPG_COL, EPG_EPILOG_BIAS);
		check_options check = { .data = DATA_INTEGERS };
		epg_plan_options options;
		epg_plan_info info;
		epg_plan *plan = NULL;
		problem p;
		int good = problem_open(&p, &desc, &check) && fine(problem_execute(context, &p, NULL), "execute"), wrong = 0;
		for (int which = 0; which <= EPG_OPERAND_B; which++)
			for (int64_t e = 0; e < 64 * 65536; e++)
				oracle_store(EPG_F16, problem_before(&p, which), e, (oracle_num){ which ? 0.015625L : 1, 0 });
		memset(problem_before(&p, EPG_OPERAND_BIAS), 0, 128);
		for (int which = 0; which < OPERANDS; which++)
			done(cudaMemcpy(p.x[which].device, p.x[which].before, p.x[which].total, cudaMemcpyHostToDevice), "upload");
		epg_plan_options_init(&options, sizeof options);
		options.workspace_limit_nbytes = limits[i];
		good = good && fine(epg_plan_create(context, &desc, &options, &plan), "plan") && fine(epg_plan_get_info(plan, &info, sizeof info), "info")
			&& (int64_t)info.workspace_nbytes <= limits[i];
		epg_operands x = EPG_OPERANDS(.a = at(&p, EPG_OPERAND_A), .b = at(&p, EPG_OPERAND_B), .d = at(&p, EPG_OPERAND_D), .bias = at(&p, EPG_OPERAND_BIAS));
		good = good && fine(epg_execute(plan, &x, NULL), "execute") && done(cudaMemcpy(problem_after(&p, EPG_OPERAND_D), x.d, 64 * 64 * 2, cudaMemcpyDeviceToHost), "download");
		for (int64_t e = 0; e < 64 * 64 && good; e++)
			wrong += oracle_load(EPG_F16, problem_after(&p, EPG_OPERAND_D), e).re != 1024;
		ok(good && wrong == 0, "workspace of at most %lld bytes: right, with %zu", (long long)limits[i], good ? info.workspace_nbytes : 0);
		epg_plan_destroy(plan);
		problem_close(&p);
	}
}

/* ---- Other entries ---- */

static void check_one_shot(void)
{
	layer l;
	cudaStream_t stream;
	int good = open_layer(&l, lines[3], 9, 0) & done(cudaStreamCreate(&stream), "stream");
	clear(&l);
	for (int i = 0; i < 10 && good; i++)
		good = fine(epg_matmul(context, &l.p.desc, &l.x, stream), "one shot");
	ok(good && done(cudaStreamSynchronize(stream), "synchronize") && is_right(&l), "one shot after another");
	cudaStreamDestroy(stream);
	close_layer(&l);
}

static void check_measured(void)
{
	for (int i = 0; i < LINES; i++) {
		epg_matmul_desc desc;
		epg_plan_options options;
		epg_plan *plan = NULL;
		char pin[PIN_NBYTES] = "";
		epg_plan_info info;
		epg_plan_options_init(&options, sizeof options);
		options.rigor = EPG_MEASURE;
		int good = parse_desc(lines[i], &desc) && fine(epg_plan_create(context, &desc, &options, &plan), "measured plan") && fine(epg_plan_get_info(plan, &info, sizeof info), "info")
			&& fine(epg_plan_pin(plan, info.candidate, pin, sizeof pin, NULL), "pin");
		check_options check = { .data = DATA_INTEGERS, .seed = 4 };
		snprintf(check.pin, sizeof check.pin, "%s", pin);
		ok(good && check_problem(context, &desc, &check), "%s: measured, %s", lines[i], pin);
		epg_plan_destroy(plan);
	}
}

/* Many elements: a column of ones times a matrix of ones, 2.3·10⁹ of them. */
static void check_many_elements(void)
{
	const int64_t m = 35783, k = 65133;
	epg_matmul_desc desc = make_desc(EPG_F32, m, 1, k, EPG_COL, EPG_EPILOG_BIAS);
	float *host = malloc((size_t)k * m / 8 * 4 + 64), *d = malloc((size_t)m * 4);
	void *a = NULL, *b = NULL, *out = NULL, *bias = NULL;
	int good = host && d && fine(epg_malloc(context, (size_t)(m * k) * 4, &a), "A") && fine(epg_malloc(context, (size_t)k * 4, &b), "B") && fine(epg_malloc(context, (size_t)m * 4, &out), "D")
		&& fine(epg_malloc(context, (size_t)m * 4, &bias), "bias"), wrong = 0;
	int64_t part = m * k / 8 + 1;
	for (int64_t i = 0; i < part && good; i++)
		host[i] = 1;
	for (int64_t first = 0; first < m * k && good; first += part)
		good = done(cudaMemcpy((float *)a + first, host, (size_t)(m * k - first < part ? m * k - first : part) * 4, cudaMemcpyHostToDevice), "ones");
	good = good && done(cudaMemcpy(b, host, (size_t)k * 4, cudaMemcpyHostToDevice), "ones") && done(cudaMemset(bias, 0, (size_t)m * 4), "zeros");
	good = good && fine(epg_matmul(context, &desc, &EPG_OPERANDS(.a = a, .b = b, .d = out, .bias = bias), NULL), "product") && done(cudaMemcpy(d, out, (size_t)m * 4, cudaMemcpyDeviceToHost), "download");
	for (int64_t i = 0; i < m && good; i++)
		wrong += d[i] != (float)k;
	ok(good && wrong == 0, "35783×65133 ones times ones: %d wrong", wrong);
	epg_free(context, a);
	epg_free(context, b);
	epg_free(context, out);
	epg_free(context, bias);
	free(host);
	free(d);
}

int main(void)
{
	const char *why = "";
	setenv("EPIGEMM_TEST_BACKEND", "cuda", 1);
	context = test_context(0, &why);
	if (!context)
		return without_context(why);
	setenv("EPIGEMM_TEST_BACKEND", "cpu", 1);
	cpu = test_context(0, &why);
	for (int i = 0; i < LINES; i++) {
		check_graph(lines[i]);
		check_threads(lines[i]);
	}
	check_planning_in_a_capture();
	check_unaligned("f16 m=64 n=64 k=64 epilog=relu_aux_bias beta=1");
	check_unaligned("bf16 m=64 n=64 k=64 epilog=dgelu_bgrad");
	check_unaligned("f32 m=64 n=64 k=64 epilog=gelu_aux_bias beta=-1");
	check_unaligned("c64 m=24 n=16 k=8 epilog=bias beta=1");
	check_crossings();
	check_workspace_limits();
	check_one_shot();
	check_measured();
	check_many_elements();
	check_exhausted();
	epg_context_destroy(cpu);
	epg_context_destroy(context);
	return done_testing();
}
