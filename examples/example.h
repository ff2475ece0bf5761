/* SPDX-License-Identifier: Apache-2.0
 *
 * What the examples share: a check of every call, and memory on whatever the context computes on. Nothing here is part of the library. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <epigemm.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call) example_check((call), #call)

static inline void example_check(epg_status status, const char *call)
{
	if (status == EPG_SUCCESS)
		return;
	fprintf(stderr, "%s: %s: %s\n", call, epg_status_string(status), epg_last_error());
	exit(1);
}

/* The GPU if there is one that can be used, else the CPU; EPIGEMM_BACKEND decides otherwise. */
static inline epg_context *example_context(void)
{
	epg_context_options options;
	epg_context *context;
	CHECK(epg_context_options_init(&options, sizeof options));
	options.backend = "auto";
	CHECK(epg_context_create(&options, &context));
	return context;
}

/* Memory of the context with a copy of nbytes from the host; NULL: anything. epg_free gives it back. */
static inline void *example_put(epg_context *context, const void *from, size_t nbytes)
{
	void *to;
	CHECK(epg_malloc(context, nbytes, &to));
	if (from)
		CHECK(epg_upload(context, to, from, nbytes, NULL));
	return to;
}

static inline void example_get(epg_context *context, void *to, const void *from, size_t nbytes)
{
	CHECK(epg_download(context, to, from, nbytes, NULL));
	CHECK(epg_synchronize(context, NULL));
}

/* A column-major matrix, row by row. */
static inline void example_print(const char *name, const float *x, int rows, int cols)
{
	for (int i = 0; i < rows; i++) {
		printf("%s", i == 0 ? name : "");
		for (int j = 0; j < cols; j++)
			printf(" %g", x[i + j * rows]);
		printf(i + 1 < rows ? " |" : "\n");
	}
}

#endif
