/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target: any bytes as a wisdom file. Loading counts its entries or refuses the file; whatever was taken, a plan of
 * a small problem can be made afterwards and computes. The file lies in memory. */
#include "fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

const char fuzz_name[] = "wisdom";

static void plan_afterwards(epg_context *context)
{
	static const double a[4] = { 1, 2, 3, 4 }, b[4] = { 1, 0, 0, 1 };
	double d[4] = { 0 };
	epg_matmul_desc desc;
	MUST(epg_matmul_desc_parse("f64 m=2 n=2 k=2", &desc, sizeof desc) == EPG_SUCCESS, "parse");
	MUST(epg_matmul(context, &desc, &EPG_OPERANDS(.a = a, .b = b, .d = d), NULL) == EPG_SUCCESS, "a plan with this wisdom");
	MUST(!memcmp(a, d, sizeof d), "another result with this wisdom");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
	char path[64];
	int64_t accepted = -1, rejected = -1;
	epg_context *context = NULL;
	epg_context_options options;
	int file = memfd_create("wisdom", 0);
	MUST(file >= 0 && write(file, data, nbytes) == (ssize_t)nbytes, "memfd");
	snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	epg_context_options_init(&options, sizeof options);
	options.threads = 1;
	MUST(epg_context_create(&options, &context) == EPG_SUCCESS, "context");
	epg_status status = epg_wisdom_load(context, path, &accepted, &rejected);
	if (status == EPG_SUCCESS)
		MUST(accepted >= 0 && rejected >= 0, "%lld accepted, %lld rejected", (long long)accepted, (long long)rejected);
	else
		MUST(status == EPG_INVALID && accepted == -1 && rejected == -1, "status %d", (int)status);
	plan_afterwards(context);
	epg_context_destroy(context);
	close(file);
	return 0;
}
