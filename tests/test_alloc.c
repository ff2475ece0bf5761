/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocation failing at every call. The program brings its own malloc and its kin, which fail the n-th request that this
 * thread makes from inside the library (or from libc on its behalf) while armed; n grows until the call succeeds. Each
 * failure must say 'no memory', leave nothing allocated and the output alone. Requests of the BLAS and of OpenMP are
 * let through, as both end the process when memory runs out; for execute, where they work, only the allocator that the
 * context was given fails. */
#include "robust.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define INTERPOSED 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define INTERPOSED 0
#endif
#endif
#ifndef INTERPOSED
#define INTERPOSED 1
#endif

enum { MAX_CALLS = 400 };

/* ---- The interposed allocator ------------------------------------------------------------------------------------ */

enum { NRANGES = 8 };

static struct { uintptr_t from, to; } ranges[NRANGES]; /* code whose requests count */
static int nranges;
static _Thread_local int armed, requests, fail_at, failed;
static int nlive; /* blocks allocated while armed and not yet freed */

/* Code of the library, wherever it is linked, and of libc. */
static int note_module(struct dl_phdr_info *info, size_t size, void *unused)
{
	const char *name = info->dlpi_name ? info->dlpi_name : "";
	const char *base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
	(void)size;
	(void)unused;
	if (*base && !strstr(base, "libepigemm") && strncmp(base, "libc.so", 7) && strncmp(base, "libc-", 5))
		return 0;
	for (int i = 0; i < info->dlpi_phnum && nranges < NRANGES; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		ranges[nranges].from = info->dlpi_addr + p->p_vaddr;
		ranges[nranges++].to = info->dlpi_addr + p->p_vaddr + p->p_memsz;
	}
	return 0;
}

#if INTERPOSED
enum { NLIVE = 1024 };

static pthread_mutex_t live_lock = PTHREAD_MUTEX_INITIALIZER;
static void *live[NLIVE]; /* those blocks */

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static int counts(const void *caller)
{
	for (int i = 0; i < nranges; i++)
		if ((uintptr_t)caller >= ranges[i].from && (uintptr_t)caller < ranges[i].to)
			return 1;
	return 0;
}

/* Must this request fail? */
static int refuse(const void *caller)
{
	if (!armed || !counts(caller) || ++requests != fail_at)
		return 0;
	failed = 1;
	errno = ENOMEM;
	return 1;
}

static void *noted(void *p, const void *caller)
{
	if (!armed || !p || !counts(caller))
		return p;
	pthread_mutex_lock(&live_lock);
	if (nlive < NLIVE)
		live[nlive++] = p;
	pthread_mutex_unlock(&live_lock);
	return p;
}

static void forget(const void *p)
{
	if (!p || !nlive)
		return;
	pthread_mutex_lock(&live_lock);
	for (int i = 0; i < nlive; i++)
		if (live[i] == p) {
			live[i] = live[--nlive];
			break;
		}
	pthread_mutex_unlock(&live_lock);
}

#define CALLER __builtin_return_address(0)

void *malloc(size_t n) { return refuse(CALLER) ? NULL : noted(__libc_malloc(n), CALLER); }
void *calloc(size_t n, size_t each) { return refuse(CALLER) ? NULL : noted(__libc_calloc(n, each), CALLER); }
void *aligned_alloc(size_t align, size_t n) { return refuse(CALLER) ? NULL : noted(__libc_memalign(align, n), CALLER); }
void *memalign(size_t align, size_t n) { return refuse(CALLER) ? NULL : noted(__libc_memalign(align, n), CALLER); }

void *realloc(void *p, size_t n)
{
	if (refuse(CALLER))
		return NULL;
	forget(p);
	return noted(__libc_realloc(p, n), CALLER);
}

int posix_memalign(void **to, size_t align, size_t n)
{
	if (refuse(CALLER))
		return ENOMEM;
	void *p = noted(__libc_memalign(align, n), CALLER);
	if (p)
		*to = p;
	return p ? 0 : ENOMEM;
}

void free(void *p)
{
	forget(p);
	__libc_free(p);
}
#endif

/* ---- What is called ------------------------------------------------------------------------------------------------ */

static epg_context *context;
static epg_matmul_desc desc;
static char wisdom[] = "/tmp/epigemm-alloc-XXXXXX";
static double a[16], b[16], d[16], bias[4], want[16];

static epg_status create_context(void)
{
	epg_context *fresh = NULL;
	epg_context_options options;
	epg_context_options_init(&options, sizeof options);
	options.threads = 1;
	epg_status status = epg_context_create(&options, &fresh);
	epg_context_destroy(fresh);
	return status;
}

static epg_status create_plan(int32_t rigor)
{
	epg_plan *plan = NULL;
	epg_plan_options options;
	epg_plan_options_init(&options, sizeof options);
	options.rigor = rigor;
	epg_status status = epg_plan_create(context, &desc, &options, &plan);
	epg_plan_destroy(plan);
	return status;
}

static epg_status estimate(void) { return create_plan(EPG_ESTIMATE); }

static epg_status measure(void) { return create_plan(EPG_MEASURE); }

static epg_status one_shot(void)
{
	memset(d, 0, sizeof d);
	epg_status status = epg_matmul(context, &desc, &EPG_OPERANDS(.a = a, .b = b, .bias = bias, .d = d), NULL);
	static const double zeros[16];
	if (memcmp(d, status ? zeros : want, sizeof d)) /* untouched or complete */
		return EPG_INTERNAL;
	return status;
}

static epg_status save(void) { return epg_wisdom_save(context, wisdom); }

static epg_status load(void)
{
	epg_context *fresh = NULL;
	int64_t accepted = 0, rejected = 0;
	int was = armed;
	armed = 0;
	fresh = new_context(1);
	armed = was;
	epg_status status = epg_wisdom_load(fresh, wisdom, &accepted, &rejected);
	epg_context_destroy(fresh);
	return status;
}

static epg_status convert(void)
{
	epg_matrix from = { .type = EPG_F64, .order = EPG_COL, .ld = EPG_TIGHT, .batch_stride = EPG_TIGHT }, to = from;
	float out[16];
	to.type = EPG_F32;
	to.order = EPG_ROW;
	return epg_convert(context, 4, 4, 1, &from, a, &to, out, NULL, NULL, NULL);
}

static epg_status get_memory(void)
{
	void *p = NULL;
	epg_status status = epg_malloc(context, 10000, &p);
	epg_free(context, p);
	return status;
}

static epg_status parse_and_print(void)
{
	epg_matmul_desc other;
	char text[256];
	epg_status status = epg_matmul_desc_parse("f64 m=4 n=4 k=4 epilog=bias", &other, sizeof other);
	return status ? status : epg_matmul_desc_print(&other, text, sizeof text, NULL);
}

static const struct {
	const char *what;
	epg_status (*call)(void);
	int allocates; /* at least one request must be seen, else this test tests nothing */
} calls[] = {
	{ "epg_context_create", create_context, 1 },
	{ "epg_plan_create, ESTIMATE", estimate, 1 },
	{ "epg_plan_create, MEASURE", measure, 1 },
	{ "epg_matmul", one_shot, 1 },
	{ "epg_wisdom_save", save, 0 },
	{ "epg_wisdom_load", load, 0 },
	{ "epg_convert", convert, 0 },
	{ "epg_malloc", get_memory, 1 },
	{ "parse and print", parse_and_print, 0 },
};

static void check_call(int i)
{
	int n = 1, wrong = 0, leaks = 0;
	epg_status status = calls[i].call(); /* what is made once per process is made now */
	ok(status == EPG_SUCCESS, "%s with memory: %s", calls[i].what, status ? epg_last_error() : "success");
	for (; n <= MAX_CALLS; n++) {
		nlive = requests = failed = 0;
		fail_at = n;
		armed = 1;
		status = calls[i].call();
		armed = 0;
		leaks += nlive;
		if (!failed)
			break;
		if (status != EPG_NO_MEMORY && status != EPG_SUCCESS) {
			diag("%s, request %d fails: %s: %s", calls[i].what, n, epg_status_string(status), epg_last_error());
			wrong++;
		}
	}
	ok(wrong == 0 && n <= MAX_CALLS && status == EPG_SUCCESS, "%s: %d requests failing in turn: no memory or success", calls[i].what, n - 1);
	ok(leaks == 0, "%s: nothing stays allocated (%d blocks)", calls[i].what, leaks);
	if (calls[i].allocates)
		ok(n > 1, "%s: requests were seen", calls[i].what);
}

/* ---- The caller's allocator ------------------------------------------------------------------------------------------ */

static struct { int allocs, frees, fail_at, wrong; } own;

static void *own_alloc(void *user, size_t nbytes, size_t alignment, int32_t kind, void *stream)
{
	own.wrong += user != &own || stream || alignment > 256 || (kind != EPG_MEMORY_DEVICE && kind != EPG_MEMORY_HOST);
	if (++own.allocs == own.fail_at) {
		own.allocs--;
		own.fail_at = -1;
		return NULL;
	}
	return aligned_alloc(256, (nbytes + 511) / 256 * 256);
}

static void own_free(void *user, void *p, int32_t kind, void *stream)
{
	own.wrong += user != &own || !p || stream || (kind != EPG_MEMORY_DEVICE && kind != EPG_MEMORY_HOST);
	own.frees++;
	free(p);
}

static const char *const lines[] = { "f64 m=4 n=4 k=4 epilog=bias", "c128 m=20 n=30 k=40 opa=J epilog=bias", "f32 m=33 n=65 k=17 epilog=dgelu_bgrad",
	"f32 m=65 n=43 k=21 batch=3 beta=1 epilog=bias", "f32 m=50 n=60 k=70 epilog=bgrada" };

/* Plan and execute once with a context of our allocator; memory must be balanced whatever the outcome. */
static epg_status run_line(const char *line, int32_t rigor, int *written)
{
	enum { BIG = 1 << 15 };
	static double in[BIG], zeros[BIG], out[3][BIG];
	epg_context_options options;
	epg_context *c = NULL;
	epg_matmul_desc problem;
	epg_plan *plan = NULL;
	epg_plan_options how;
	epg_context_options_init(&options, sizeof options);
	epg_plan_options_init(&how, sizeof how);
	options.threads = 2;
	options.allocator = (epg_allocator){ &own, own_alloc, own_free };
	how.rigor = rigor;
	memset(out, 0, sizeof out);
	epg_status status = epg_matmul_desc_parse(line, &problem, sizeof problem);
	if (!status)
		status = epg_context_create(&options, &c);
	if (!status)
		status = epg_plan_create(c, &problem, &how, &plan);
	if (!status) {
		epg_operands x = EPG_OPERANDS(.a = in, .b = in, .c = in, .d = out[0]);
		x.bias = problem.epilog & EPG_BIAS ? in : NULL;
		x.aux = problem.epilog & EPG_AUX ? out[1] : NULL;
		x.bgrad = problem.epilog & (EPG_BGRAD | EPG_BGRADA | EPG_BGRADB) ? out[2] : NULL;
		fill_reals(in, 1, BIG, 1);
		status = epg_execute(plan, &x, NULL);
	}
	*written = status && (memcmp(out[0], zeros, sizeof zeros) || memcmp(out[2], zeros, sizeof zeros));
	epg_plan_destroy(plan);
	epg_context_destroy(c);
	return status;
}

static void check_allocator(const char *line, int32_t rigor)
{
	int n = 1, wrong = 0, written = 0;
	epg_status status = EPG_SUCCESS;
	for (; n <= MAX_CALLS; n++) {
		memset(&own, 0, sizeof own);
		own.fail_at = n;
		status = run_line(line, rigor, &written);
		wrong += own.wrong + written + (own.allocs != own.frees) + (status != EPG_SUCCESS && status != EPG_NO_MEMORY);
		if (wrong)
			diag("request %d: %s, %d allocated, %d freed, %d wrong, written %d: %s", n, epg_status_string(status), own.allocs, own.frees, own.wrong, written,
				epg_last_error());
		if (own.fail_at > 0 || wrong > 3)
			break;
	}
	ok(!wrong && status == EPG_SUCCESS, "%s, rigor %d: %d requests to the caller's allocator failing in turn", line, (int)rigor, n - 1);
}

int main(void)
{
	dl_iterate_phdr(note_module, NULL);
	close(mkstemp(wisdom));
	context = new_context(1);
	epg_matmul_desc_init(&desc, sizeof desc, 4, 4, 4, EPG_F64, EPG_COL);
	desc.epilog = EPG_EPILOG_BIAS;
	fill_numbers(a, 1, 16, 1);
	fill_numbers(b, 1, 16, 2);
	fill_numbers(bias, 1, 4, 3);
	status_is(epg_matmul(context, &desc, &EPG_OPERANDS(.a = a, .b = b, .bias = bias, .d = want), NULL), EPG_SUCCESS, "the result to expect");
	status_is(measure(), EPG_SUCCESS, "something for wisdom");
	for (int i = 0; i < COUNT(calls); i++)
		if (INTERPOSED)
			check_call(i);
		else
			skip("a sanitizer owns malloc", "%s", calls[i].what);
	for (int i = 0; i < COUNT(lines); i++) {
		check_allocator(lines[i], EPG_ESTIMATE);
		check_allocator(lines[i], EPG_MEASURE);
	}
	epg_context_destroy(context);
	unlink(wisdom);
	return done_testing();
}
