/* SPDX-License-Identifier: Apache-2.0
 *
 * A logger and an allocator of one's own. The library prints nothing by itself, and its memory for data comes from here.
 *
 * Prints:
 *     as many frees as allocations
 *     the log has lines
 */
#include <stdatomic.h>

#include "example.h"

typedef struct counts {
	atomic_int allocations, frees, lines;
} counts;

/* Device memory of a GPU cannot come from malloc; a program would call its pool here. */
static void *take(void *user, size_t nbytes, size_t alignment, int32_t memory, void *stream)
{
	(void)memory, (void)stream;
	atomic_fetch_add(&((counts *)user)->allocations, 1);
	return aligned_alloc(alignment, (nbytes + alignment - 1) / alignment * alignment);
}

static void give(void *user, void *ptr, int32_t memory, void *stream)
{
	(void)memory, (void)stream;
	atomic_fetch_add(&((counts *)user)->frees, 1);
	free(ptr);
}

static void log_line(void *user, int32_t level, const char *message)
{
	(void)level, (void)message;
	atomic_fetch_add(&((counts *)user)->lines, 1);
}

int main(void)
{
	counts n = {0};
	epg_context_options options;
	epg_context *context;
	epg_matmul_desc desc;
	epg_plan *plan;
	void *memory;
	CHECK(epg_context_options_init(&options, sizeof options));
	options.backend = "cpu";
	options.allocator = (epg_allocator){.alloc = take, .free = give, .user = &n};
	options.log = log_line;
	options.log_user = &n;
	options.log_level = EPG_LOG_DEBUG;
	CHECK(epg_context_create(&options, &context));
	CHECK(epg_malloc(context, 1000, &memory));
	CHECK(epg_matmul_desc_parse("f32 m=64 n=64 k=64 epilog=bgrada", &desc, sizeof desc));
	CHECK(epg_plan_create(context, &desc, NULL, &plan));
	epg_plan_destroy(plan);
	epg_free(context, memory);
	epg_context_destroy(context);
	printf("%s\n", n.allocations > 0 && n.allocations == n.frees ? "as many frees as allocations" : "something is wrong");
	printf("the log has %s\n", n.lines > 0 ? "lines" : "no line");
	return 0;
}
