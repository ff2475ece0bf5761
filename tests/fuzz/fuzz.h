/* SPDX-License-Identifier: Apache-2.0
 *
 * What the fuzz targets share: the entry point of libFuzzer, the name of the target (its folder in corpus/), and a
 * check that ends the process, because a fuzzer knows a fault by the crash. */
#ifndef FUZZ_H
#define FUZZ_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* memfd_create */
#endif

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epigemm.h>

extern const char fuzz_name[];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

#define MUST(condition, ...) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
			fprintf(stderr, __VA_ARGS__); \
			fprintf(stderr, "\nlast error: %s\n", epg_last_error()); \
			abort(); \
		} \
	} while (0)

/* One context with one thread for the whole run. */
static inline epg_context *fuzz_context(void)
{
	static epg_context *context;
	epg_context_options options;
	if (!context) {
		epg_context_options_init(&options, sizeof options);
		options.threads = 1;
		MUST(epg_context_create(&options, &context) == EPG_SUCCESS, "context");
	}
	return context;
}

#endif
