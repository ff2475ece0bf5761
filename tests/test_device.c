/* SPDX-License-Identifier: Apache-2.0
 *
 * What the core does for a backend with memory of its own, tried on the far device (tests/far): plans for operands on the host, which
 * may only use what an execution needs, only write elements, and must give back everything when any call fails; tuning there; and
 * calls in one go. */
#include "robust.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "far/far.h"

enum { M = 37, N = 11, LD = 48, BATCH = 2, STRIDE = LD * N + 20, MASK_LD = 256, MASK_STRIDE = MASK_LD * N + 128, DS = STRIDE * BATCH, MASK_NBYTES = MASK_STRIDE * BATCH / 8 };

static epg_context *context;
static far_state *far;

static const unsigned char untouched = 0xa5;

static int no_complaint(const char *what)
{
	int good = ok(!far->complaint[0] && far->live == 0 && far->pending == 0, "%s: no rule was broken, all memory is given back", what);
	if (!good)
		diag("%s; %ld blocks, %ld executions pending", far->complaint, far->live, far->pending);
	far->complaint[0] = 0;
	return good;
}

static epg_plan *make_plan(const epg_matmul_desc *desc, int32_t memory, int32_t rigor)
{
	epg_plan_options options;
	epg_plan *plan = NULL;
	epg_plan_options_init(&options, sizeof options);
	options.memory = memory;
	options.rigor = rigor;
	if (epg_plan_create(context, desc, &options, &plan))
		diag("plan: %s", epg_last_error());
	return plan;
}

/* ---- Host memory: a forward product whose outputs, D and a mask, have gaps everywhere ---- */

static float a[BATCH * M * M], b[BATCH * M * N], bias[BATCH * M], d[DS], want[DS];
static unsigned char mask[MASK_NBYTES], want_mask[MASK_NBYTES];

static epg_matmul_desc forward(void)
{
	epg_matmul_desc desc;
	epg_matmul_desc_init(&desc, sizeof desc, M, N, M, EPG_F32, EPG_COL);
	desc.epilog = EPG_EPILOG_RELU_AUX_BIAS;
	desc.batch = BATCH;
	desc.d.ld = LD;
	desc.d.batch_stride = STRIDE;
	desc.aux.ld = MASK_LD;
	desc.aux.batch_stride = MASK_STRIDE;
	return desc;
}

static const epg_operands forward_operands = { .size = sizeof(epg_operands), .a = a, .b = b, .bias = bias, .d = d, .aux = mask };

static int is_element(int64_t i) { return i % STRIDE < (int64_t)LD * N && i % STRIDE % LD < M; }
/* Of a byte of the mask: a line begins at a whole byte, so its first bit tells. */
static int is_mask(int64_t i) { return 8 * i % MASK_STRIDE < (int64_t)MASK_LD * N && 8 * i % MASK_STRIDE % MASK_LD < M; }

static void clear_outputs(void)
{
	memset(d, untouched, sizeof d);
	memset(mask, untouched, sizeof mask);
}

/* The expected outputs, gaps included, from the CPU backend. */
static void make_expected(void)
{
	epg_context *cpu = new_context(1);
	epg_matmul_desc desc = forward();
	fill_numbers(a, 0, BATCH * M * M, 1);
	fill_numbers(b, 0, BATCH * M * N, 2);
	fill_numbers(bias, 0, BATCH * M, 3);
	clear_outputs();
	status_is(epg_matmul(cpu, &desc, &forward_operands, NULL), EPG_SUCCESS, "the CPU's result");
	memcpy(want, d, sizeof d);
	memcpy(want_mask, mask, sizeof mask);
	epg_context_destroy(cpu);
}

static int as_expected(void) { return !memcmp(d, want, sizeof d) && !memcmp(mask, want_mask, sizeof mask); }

static int all_untouched(void)
{
	const unsigned char *bytes = (const unsigned char *)d;
	size_t wrong = 0;
	for (size_t i = 0; i < sizeof d; i++)
		wrong += bytes[i] != untouched;
	for (size_t i = 0; i < sizeof mask; i++)
		wrong += mask[i] != untouched;
	return wrong == 0;
}

static void check_gaps(const epg_plan *plan)
{
	clear_outputs();
	status_is(epg_execute(plan, &forward_operands, NULL), EPG_SUCCESS, "operands on the host");
	ok(as_expected(), "D and the mask are the CPU's, and what lies between their lines is untouched");
	no_complaint("operands on the host");
}

/* Each call that the device can fail, failing in turn: the status fits, nothing stays allocated, and when memory ran out nothing was written. */
static void check_failures(const epg_plan *plan)
{
	int wrong = 0, n = 1, allocs = 0;
	for (; n < 100; n++) {
		far->calls = 0;
		far->fail_at = n;
		clear_outputs();
		epg_status status = epg_execute(plan, &forward_operands, NULL);
		int reached = far->calls >= n;
		far->fail_at = 0;
		if (!reached)
			break;
		allocs += far->failed_alloc != 0;
		int good = status == (far->failed_alloc ? EPG_NO_MEMORY : EPG_DEVICE_ERROR) && says("far device") && far->live == 0 && far->pending == 0;
		good &= !far->failed_alloc || all_untouched();
		if (!good)
			diag("call %d: %s: %s; %ld blocks, %ld pending", n, epg_status_string(status), epg_last_error(), far->live, far->pending);
		wrong += !good;
	}
	ok(wrong == 0 && n > 8 && n < 100 && allocs >= 5, "%d calls failing in turn, %d of them for memory", n - 1, allocs);
	ok(as_expected(), "and then none: the result is right");
	no_complaint("failures");
}

/* ---- A thread that owns what lies between the lines ---- */

typedef struct {
	atomic_int stop;
	unsigned char value[DS + MASK_NBYTES]; /* last written in each gap: to one byte of each element, and to the mask's bytes */
	int lost;
} neighbour;

static void write_byte(neighbour *n, volatile unsigned char *byte, unsigned char *value, unsigned char now)
{
	n->lost += *byte != *value;
	*byte = *value = now;
}

static void *write_gaps(void *arg)
{
	neighbour *n = arg;
	for (unsigned char round = 1; !n->stop; round++) {
		for (int64_t i = 0; i < DS; i++)
			if (!is_element(i))
				write_byte(n, (volatile unsigned char *)&d[i], &n->value[i], round);
		for (int64_t i = 0; i < MASK_NBYTES; i++)
			if (!is_mask(i))
				write_byte(n, &mask[i], &n->value[DS + i], round);
	}
	return NULL;
}

static void check_neighbour(const epg_plan *plan)
{
	static neighbour n;
	pthread_t thread;
	int wrong = 0;
	clear_outputs();
	memset(n.value, untouched, sizeof n.value);
	if (pthread_create(&thread, NULL, write_gaps, &n))
		return;
	for (int i = 0; i < 200; i++)
		wrong += epg_execute(plan, &forward_operands, NULL) != EPG_SUCCESS;
	n.stop = 1;
	pthread_join(thread, NULL);
	for (int64_t i = 0; i < DS; i++)
		wrong += is_element(i) && d[i] != want[i];
	for (int64_t i = 0; i < MASK_NBYTES; i++)
		wrong += is_mask(i) && mask[i] != want_mask[i];
	ok(wrong == 0, "200 executions while another thread writes between the lines (%d wrong)", wrong);
	ok(n.lost == 0, "which loses nothing of what it has written (%d)", n.lost);
}

/* ---- Many threads, one plan ---- */

enum { NTHREADS = 8 };

typedef struct {
	const epg_plan *plan;
	float d[DS];
	unsigned char mask[MASK_NBYTES];
	int wrong;
} worker;

static void *work(void *arg)
{
	worker *w = arg;
	epg_operands x = forward_operands;
	x.d = w->d;
	x.aux = w->mask;
	for (int round = 0; round < 10; round++) {
		memset(w->d, untouched, sizeof w->d);
		memset(w->mask, untouched, sizeof w->mask);
		w->wrong += epg_execute(w->plan, &x, NULL) || memcmp(w->d, want, sizeof want) || memcmp(w->mask, want_mask, sizeof want_mask);
	}
	return NULL;
}

static void check_threads(const epg_plan *plan)
{
	static worker workers[NTHREADS];
	pthread_t threads[NTHREADS];
	int wrong = 0, started = 0;
	for (; started < NTHREADS; started++) {
		workers[started].plan = plan;
		if (pthread_create(&threads[started], NULL, work, &workers[started]))
			break;
	}
	for (int i = 0; i < started; i++) {
		pthread_join(threads[i], NULL);
		wrong += workers[i].wrong;
	}
	ok(wrong == 0 && started == NTHREADS, "%d threads execute one plan (%d wrong)", started, wrong);
	no_complaint("threads");
}

/* ---- What is not used is not touched ---- */

static void check_unused(void)
{
	void *nowhere = mmap(NULL, 1 << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	epg_matmul_desc desc;
	double x[16], zero = 0, two = 2;
	epg_matmul_desc_init(&desc, sizeof desc, 4, 4, 4, EPG_F64, EPG_ROW);
	epg_plan *plan = make_plan(&desc, EPG_MEMORY_HOST, EPG_ESTIMATE);
	fill_numbers(x, 1, 16, 5);
	double result[16], once[16];
	status_is(epg_execute(plan, &EPG_OPERANDS(.a = x, .b = x, .c = nowhere, .d = once), NULL), EPG_SUCCESS, "beta = 0: C is not read");
	memcpy(result, x, sizeof x);
	status_is(epg_execute(plan, &EPG_OPERANDS(.a = nowhere, .b = nowhere, .c = result, .d = result, .alpha = &zero, .beta = &two), NULL), EPG_SUCCESS,
		"alpha = 0: A and B are not read, C is D in place");
	int wrong = 0;
	for (int i = 0; i < 16; i++)
		wrong += result[i] != 2 * x[i];
	ok(wrong == 0, "D = 2 C in place (%d wrong)", wrong);
	memset(result, 0xff, sizeof result);
	status_is(epg_execute(plan, &EPG_OPERANDS(.a = x, .b = x, .c = result, .d = result), NULL), EPG_SUCCESS, "beta = 0 in place");
	ok(!memcmp(result, once, sizeof once), "does not read the NaNs that were there");
	epg_plan_destroy(plan);
	no_complaint("unused operands");
	munmap(nowhere, 1 << 16);
}

/* D over the aux that is read, a gradient that is added to, and a workspace. */
static void check_in_place(void)
{
	enum { K = 5 };
	epg_context *cpu = new_context(1);
	epg_matmul_desc desc;
	double left[M * K], right[K * N], z[2][M * N], sums[2][M];
	epg_matmul_desc_init(&desc, sizeof desc, M, N, K, EPG_F64, EPG_COL);
	desc.epilog = EPG_EPILOG_DGELU_BGRAD;
	desc.flags = EPG_BGRAD_ACCUMULATE;
	desc.aux.ld = desc.d.ld = 40;
	desc.n = N - 3; /* 40 × 8 of the 37 × 11 */
	fill_reals(left, 1, M * K, 1);
	fill_reals(right, 1, K * N, 2);
	for (int i = 0; i < 2; i++) {
		fill_reals(z[i], 1, M * N, 3);
		fill_reals(sums[i], 1, M, 4);
	}
	epg_plan *plan = make_plan(&desc, EPG_MEMORY_HOST, EPG_ESTIMATE);
	status_is(epg_matmul(cpu, &desc, &EPG_OPERANDS(.a = left, .b = right, .d = z[0], .aux = z[0], .bgrad = sums[0]), NULL), EPG_SUCCESS, "DGELU in place on the CPU");
	status_is(epg_execute(plan, &EPG_OPERANDS(.a = left, .b = right, .d = z[1], .aux = z[1], .bgrad = sums[1]), NULL), EPG_SUCCESS, "and by way of the device");
	ok(!memcmp(z[0], z[1], sizeof z[0]) && !memcmp(sums[0], sums[1], sizeof sums[0]), "D over aux, and a gradient added to");
	epg_plan_destroy(plan);
	epg_context_destroy(cpu);
	no_complaint("in place");
}

/* ---- Refusals, and what the plan says ---- */

static void check_refusals(const epg_plan *plan)
{
	epg_matmul_desc desc = forward();
	epg_plan_options options;
	epg_plan *refused = NULL;
	char text[8192] = "";
	desc.flags = EPG_SCALARS_ON_DEVICE;
	epg_plan_options_init(&options, sizeof options);
	options.memory = EPG_MEMORY_HOST;
	status_is(epg_plan_create(context, &desc, &options, &refused), EPG_INVALID, "scalars on the device, operands on the host");
	ok(says("EPG_SCALARS_ON_DEVICE"), "which the sentence says: %s", epg_last_error());
	epg_operands x = forward_operands;
	x.workspace = want;
	x.workspace_nbytes = sizeof want;
	status_is(epg_execute(plan, &x, NULL), EPG_INVALID, "a workspace beside operands on the host");
	ok(says("workspace") && says("EPG_MEMORY_HOST"), "which the sentence says: %s", epg_last_error());
	epg_plan_explain(plan, text, sizeof text, NULL);
	ok(strstr(text, "operands are on the host") != NULL, "the plan says where its operands are");
	no_complaint("refusals");
}

/* ---- Operands on the device: in one go, scalars there, tuning there ---- */

static void *to_device(const void *from, size_t nbytes)
{
	void *there = NULL;
	if (epg_malloc(context, nbytes, &there) || epg_upload(context, there, from, nbytes, NULL))
		diag("to the device: %s", epg_last_error());
	return there;
}

static void check_one_shot(void)
{
	epg_matmul_desc desc;
	float x[64], got[8] = { 0 };
	epg_matmul_desc_init(&desc, sizeof desc, 8, 8, 1, EPG_F32, EPG_COL);
	desc.epilog = EPG_EPILOG_BGRADA; /* wants a workspace */
	fill_numbers(x, 0, 64, 7);
	void *there = to_device(x, sizeof x), *out = to_device(x, sizeof x), *sums = to_device(x, sizeof got);
	status_is(epg_matmul(context, &desc, &EPG_OPERANDS(.a = there, .b = there, .d = out, .bgrad = sums), NULL), EPG_SUCCESS, "in one call, on the device");
	status_is(epg_download(context, got, sums, sizeof got, NULL), EPG_SUCCESS, "download");
	ok(!memcmp(got, x, sizeof got), "the sums are right");
	epg_free(context, there);
	epg_free(context, out);
	epg_free(context, sums);
	no_complaint("in one call");
}

static void check_measured(const char *line)
{
	epg_matmul_desc desc;
	char text[8192] = "";
	long timed = far->timed;
	if (epg_matmul_desc_parse(line, &desc, sizeof desc))
		diag("%s", epg_last_error());
	epg_plan *plan = make_plan(&desc, EPG_MEMORY_DEVICE, EPG_MEASURE);
	ok(plan && far->timed > timed, "%s: measured by the device's clock (%ld times)", line, far->timed - timed);
	if (plan)
		epg_plan_explain(plan, text, sizeof text, NULL);
	ok(strstr(text, ", measured ") && !strstr(text, "differs"), "%s: all candidates agree, and their times are told", line);
	epg_plan_destroy(plan);
	no_complaint(line);
}

static void check_device_scalars(void)
{
	epg_matmul_desc desc;
	double x[4] = { 1, 2, 3, 4 }, one[4] = { 1, 0, 0, 1 }, factors[2] = { 3, -1 }, got[4];
	epg_matmul_desc_init(&desc, sizeof desc, 2, 2, 2, EPG_F64, EPG_COL);
	desc.flags = EPG_SCALARS_ON_DEVICE;
	epg_plan *plan = make_plan(&desc, EPG_MEMORY_DEVICE, EPG_MEASURE);
	void *fx = to_device(x, sizeof x), *fone = to_device(one, sizeof one), *fd = to_device(one, sizeof one);
	double *ff = to_device(factors, sizeof factors);
	status_is(epg_execute(plan, &EPG_OPERANDS(.a = fx, .b = fone, .c = fone, .d = fd, .alpha = ff, .beta = ff + 1), NULL), EPG_SUCCESS, "scalars on the device");
	epg_download(context, got, fd, sizeof got, NULL);
	ok(got[0] == 2 && got[1] == 6 && got[2] == 9 && got[3] == 11, "D = 3 A - C (%g %g %g %g)", got[0], got[1], got[2], got[3]);
	void *const memory[] = { fx, fone, fd, ff };
	for (int i = 0; i < COUNT(memory); i++)
		epg_free(context, memory[i]);
	epg_plan_destroy(plan);
	no_complaint("scalars on the device");
}

/* ---- The far device itself ---- */

static void check_far(void)
{
	epg_matmul_desc desc;
	float x = 1, y = 1;
	epg_matmul_desc_init(&desc, sizeof desc, 1, 1, 1, EPG_F32, EPG_COL);
	epg_plan *plan = make_plan(&desc, EPG_MEMORY_DEVICE, EPG_ESTIMATE);
	ok(epg_execute(plan, &EPG_OPERANDS(.a = &x, .b = &x, .d = &y), NULL) == EPG_INTERNAL && far->complaint[0], "the far device notices pointers of the host: %s", far->complaint);
	far->complaint[0] = 0;
	epg_plan_destroy(plan);
}

static epg_context *far_context(char *path, size_t path_nbytes)
{
	const char *folder = getenv("FAR_DIR");
	epg_context_options options;
	epg_context *made = NULL;
	snprintf(path, path_nbytes, "%s/cuda.so", folder ? folder : "tests/far/.libs");
	setenv("EPIGEMM_PLUGIN_DIR", folder ? folder : "tests/far/.libs", 1);
	epg_context_options_init(&options, sizeof options);
	options.backend = "cuda";
	options.threads = 2;
	if (epg_context_create(&options, &made))
		diag("%s", epg_last_error());
	return made;
}

int main(void)
{
	char path[4096];
	far_state *(*control)(void) = NULL;
	context = far_context(path, sizeof path);
	void *plugin = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
	if (plugin)
		*(void **)&control = dlsym(plugin, "far_control");
	if (!ok(context && control, "the far device")) {
		diag("%s: %s", path, plugin ? "no far_control" : dlerror());
		return done_testing();
	}
	far = control();
	check_far();
	make_expected();
	epg_matmul_desc desc = forward();
	epg_plan *plan = make_plan(&desc, EPG_MEMORY_HOST, EPG_ESTIMATE);
	check_gaps(plan);
	check_failures(plan);
	check_neighbour(plan);
	check_threads(plan);
	check_refusals(plan);
	epg_plan_destroy(plan);
	check_unused();
	check_in_place();
	check_one_shot();
	check_measured("f32 m=70 n=50 k=30 epilog=relu_aux_bias");
	check_measured("f64 m=70 n=50 k=30 epilog=dgelu_bgrad flags=bgrad_accumulate batch=2");
	check_measured("f32 m=40 n=40 k=40 beta=1 flags=scalars_on_device");
	check_device_scalars();
	epg_context_destroy(context);
	dlclose(plugin);
	return done_testing();
}
