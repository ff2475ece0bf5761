/* SPDX-License-Identifier: Apache-2.0
 *
 * Lives of objects: contexts and plans destroyed in any order, many of them, memory of epg_malloc, a log callback that
 * gets what its level asks for, an allocator that sees every block come back, and nothing on stdout or stderr whatever
 * goes wrong. Small, so that it also runs under valgrind, where it must leave nothing behind. */
#include "robust.h"

#include <fcntl.h>

static const double A[4] = { 1, 2, 3, 4 }, B[4] = { 1, 0, 0, 1 };

static epg_plan *small_plan(epg_context *context)
{
	epg_matmul_desc desc;
	epg_plan *plan = NULL;
	epg_matmul_desc_init(&desc, sizeof desc, 2, 2, 2, EPG_F64, EPG_COL);
	epg_plan_create(context, &desc, NULL, &plan);
	return plan;
}

static int works(const epg_plan *plan)
{
	double d[4] = { 0 };
	return plan && !epg_execute(plan, &EPG_OPERANDS(.a = A, .b = B, .d = d), NULL) && !memcmp(d, A, sizeof d);
}

static void check_orders(void)
{
	epg_context *context = new_context(1);
	epg_plan *first = small_plan(context), *second = small_plan(context);
	ok(works(first) && works(second), "two plans of one context");
	epg_context_destroy(context);
	ok(works(first) && works(second), "the context is given up first: its plans go on");
	epg_plan_destroy(second);
	ok(works(first), "the other plan is gone: this one goes on");
	epg_plan_destroy(first);
	epg_plan_destroy(NULL);
	epg_context_destroy(NULL);
	context = new_context(1);
	epg_plan_destroy(small_plan(context));
	first = small_plan(context);
	ok(works(first), "a plan after another was destroyed");
	epg_plan_destroy(first);
	epg_context_destroy(context);
}

static void check_many(void)
{
	enum { MANY = 40 };
	epg_context *contexts[MANY];
	epg_plan *plans[MANY];
	int good = 1;
	for (int i = 0; i < MANY; i++) {
		contexts[i] = new_context(1 + i % 3);
		plans[i] = small_plan(contexts[i]);
	}
	for (int i = 0; i < MANY; i += 2)
		epg_context_destroy(contexts[i]);
	for (int i = MANY - 1; i >= 0; i--) {
		good &= works(plans[i]);
		epg_plan_destroy(plans[i]);
	}
	for (int i = 1; i < MANY; i += 2)
		epg_context_destroy(contexts[i]);
	ok(good, "%d contexts with a plan each", MANY);
	epg_context *plain = NULL;
	ok(epg_context_create(NULL, &plain) == EPG_SUCCESS && plain, "NULL options: a context");
	epg_context_destroy(plain);
}

static void check_one_shot(void)
{
	epg_context *context = new_context(1);
	epg_matmul_desc desc;
	double d[4] = { 0 };
	epg_matmul_desc_init(&desc, sizeof desc, 2, 2, 2, EPG_F64, EPG_COL);
	status_is(epg_matmul(context, &desc, &EPG_OPERANDS(.a = A, .b = B, .d = d), NULL), EPG_SUCCESS, "one-shot");
	ok(!memcmp(d, A, sizeof d), "one-shot: right result");
	ok(epg_matmul(context, &desc, &EPG_OPERANDS(.a = A, .d = d), NULL) == EPG_INVALID && !memcmp(d, A, sizeof d), "one-shot without B");
	epg_context_destroy(context);
}

static void check_memory(void)
{
	epg_context *context = new_context(1);
	void *p = NULL, *none = &p;
	char out[5] = "", in[5] = "four";
	status_is(epg_malloc(context, 100, &p), EPG_SUCCESS, "epg_malloc");
	ok(p && (uintptr_t)p % 256 == 0, "aligned to 256 bytes");
	memset(p, 1, 100);
	status_is(epg_upload(context, p, in, 5, NULL), EPG_SUCCESS, "upload");
	memcpy(in, "gone", 5);
	status_is(epg_download(context, out, p, 5, NULL), EPG_SUCCESS, "download");
	status_is(epg_synchronize(context, NULL), EPG_SUCCESS, "synchronize");
	ok(!strcmp(out, "four") && ((char *)p)[5] == 1, "what was uploaded comes back, and no more");
	status_is(epg_malloc(context, 0, &none), EPG_SUCCESS, "epg_malloc of nothing");
	ok(none == NULL, "nothing is NULL");
	epg_free(context, none);
	epg_free(context, p);
	epg_context_destroy(context);
}

/* ---- The caller's allocator ------------------------------------------------------------------------------------ */

typedef struct {
	int allocs, frees, wrong; /* wrong: a kind, stream or alignment that does not belong */
} counts;

static void *count_alloc(void *user, size_t nbytes, size_t alignment, int32_t kind, void *stream)
{
	counts *c = user;
	c->allocs++;
	c->wrong += (kind != EPG_MEMORY_DEVICE && kind != EPG_MEMORY_HOST) || stream || alignment > 256 || !alignment || (alignment & (alignment - 1));
	return aligned_alloc(256, (nbytes + 255) / 256 * 256);
}

static void count_free(void *user, void *ptr, int32_t kind, void *stream)
{
	counts *c = user;
	c->frees += ptr != NULL;
	c->wrong += (kind != EPG_MEMORY_DEVICE && kind != EPG_MEMORY_HOST) || stream || !ptr;
	free(ptr);
}

static void check_allocator(void)
{
	counts c = { 0, 0, 0 };
	epg_context_options options;
	epg_context *context = NULL;
	void *p = NULL;
	epg_context_options_init(&options, sizeof options);
	options.threads = 1;
	options.allocator = (epg_allocator){ &c, count_alloc, count_free };
	status_is(epg_context_create(&options, &context), EPG_SUCCESS, "context with an allocator");
	int before = c.allocs;
	status_is(epg_malloc(context, 1000, &p), EPG_SUCCESS, "epg_malloc through it");
	ok(c.allocs == before + 1 && (uintptr_t)p % 256 == 0, "the allocator was asked");
	epg_plan *plan = small_plan(context);
	ok(works(plan), "a plan");
	epg_free(context, p);
	ok(c.frees >= 1, "epg_free goes through it");
	epg_context_destroy(context);
	epg_plan_destroy(plan);
	ok(c.allocs == c.frees && !c.wrong, "every block came back, with the right kind (%d, %d, %d wrong)", c.allocs, c.frees, c.wrong);
}

/* ---- The log ---------------------------------------------------------------------------------------------------- */

typedef struct {
	int per_level[5], empty;
} heard;

static void listen(void *user, int32_t level, const char *message)
{
	heard *h = user;
	h->per_level[level >= 0 && level < 4 ? level : 4]++;
	h->empty += !message || !*message;
}

static heard hear(int32_t level)
{
	heard h = { { 0 }, 0 };
	epg_context_options options;
	epg_context *context = NULL;
	epg_matmul_desc desc;
	epg_context_options_init(&options, sizeof options);
	options.threads = 1;
	options.log = listen;
	options.log_user = &h;
	options.log_level = level;
	if (epg_context_create(&options, &context))
		ok(0, "context with a log: %s", epg_last_error());
	epg_plan *plan = small_plan(context);
	ok(works(plan), "level %d: a plan", (int)level);
	epg_plan_destroy(plan);
	epg_matmul_desc_init(&desc, sizeof desc, -2, 2, 2, EPG_F64, EPG_COL);
	ok(epg_plan_create(context, &desc, NULL, &plan) == EPG_INVALID, "level %d: a refused plan", (int)level);
	epg_context_destroy(context);
	return h;
}

static void check_log(void)
{
	int total[4];
	for (int level = EPG_LOG_ERROR; level <= EPG_LOG_DEBUG; level++) {
		heard h = hear(level);
		int above = h.per_level[4];
		total[level] = 0;
		for (int i = 0; i < 4; i++) {
			total[level] += h.per_level[i];
			above += i > level ? h.per_level[i] : 0;
		}
		ok(above == 0 && h.empty == 0, "level %d: no message above it, none empty", level);
	}
	ok(total[1] >= total[0] && total[2] >= total[1] && total[3] >= total[2], "a higher level tells no less (%d %d %d %d)", total[0], total[1], total[2], total[3]);
	ok(total[3] > 0, "the debug level tells something");
}

/* ---- Silence ------------------------------------------------------------------------------------------------------ */

static void make_a_noise(void)
{
	epg_context *context = new_context(2);
	epg_matmul_desc desc;
	epg_plan *plan = small_plan(context);
	double d[4];
	char text[64];
	works(plan);
	epg_execute(plan, &EPG_OPERANDS(.a = A, .d = d), NULL);
	epg_plan_explain(plan, text, sizeof text, NULL);
	epg_plan_destroy(plan);
	plan = NULL;
	epg_matmul_desc_init(&desc, sizeof desc, 2, 2, 2, EPG_UE8M0, EPG_COL);
	epg_plan_create(context, &desc, NULL, &plan);
	epg_plan_destroy(plan);
	epg_matmul_desc_parse("f32 nonsense", &desc, sizeof desc);
	epg_wisdom_load(context, "/nonexistent/wisdom", NULL, NULL);
	epg_wisdom_save(context, "/nonexistent/wisdom");
	epg_backend_status("cuda", text, sizeof text, NULL);
	epg_context_destroy(context);
	epg_context_options options;
	epg_context_options_init(&options, sizeof options);
	options.backend = "cuda";
	if (!epg_context_create(&options, &context))
		epg_context_destroy(context);
}

/* Both descriptors go to a file meanwhile; not a byte may arrive there. */
static void check_silence(void)
{
	char path[] = "/tmp/epigemm-silence-XXXXXX";
	int file = mkstemp(path), out = dup(1), err = dup(2);
	fflush(stdout);
	dup2(file, 1);
	dup2(file, 2);
	make_a_noise();
	fflush(stdout);
	fflush(stderr);
	dup2(out, 1);
	dup2(err, 2);
	off_t nbytes = lseek(file, 0, SEEK_END);
	ok(nbytes == 0, "nothing was printed (%lld bytes)", (long long)nbytes);
	close(file);
	close(out);
	close(err);
	unlink(path);
}

static void check_backend_status(void)
{
	char text[512] = "", cut[8];
	size_t needed = 0;
	status_is(epg_backend_status("cpu", text, sizeof text, &needed), EPG_SUCCESS, "the cpu backend is there");
	ok(needed == strlen(text) + 1 && needed > 1, "and says what it found: %s", text);
	epg_status cuda = epg_backend_status("cuda", text, sizeof text, &needed);
	ok((cuda == EPG_SUCCESS || cuda == EPG_NO_BACKEND) && *text, "cuda: %s: %s", epg_status_string(cuda), text);
	epg_backend_status("cpu", cut, sizeof cut, &needed);
	ok(strlen(cut) == sizeof cut - 1 && needed > sizeof cut, "a short buffer gets a cut text with its NUL");
}

int main(void)
{
	check_orders();
	check_many();
	check_one_shot();
	check_memory();
	check_allocator();
	check_log();
	check_silence();
	check_backend_status();
	return done_testing();
}
