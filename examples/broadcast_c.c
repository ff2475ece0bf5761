/* SPDX-License-Identifier: Apache-2.0
 *
 * C smaller than D: one matrix for all items of a batch (batch stride 0), one line for all columns (ld 0), or both. Only inputs are
 * broadcast.
 *
 * Prints:
 *     one matrix for all items: D[0] = 1 3 | 2 4
 *     one matrix for all items: D[1] = 2 3 | 2 5
 *     one line for each item: D[0] = 1 1 | 2 2
 *     one line for each item: D[1] = 4 3 | 4 5
 *     one line for everything: D[0] = 1 1 | 2 2
 *     one line for everything: D[1] = 2 1 | 2 3
 */
#include "example.h"

enum { BATCH = 2 };

int main(void)
{
	static const struct { const char *what; int64_t ld, batch_stride; } cases[] = {
		{"one matrix for all items", 2, 0},
		{"one line for each item", 0, 2},
		{"one line for everything", 0, 0},
	};
	static const float a[BATCH][4] = {{0, 0, 0, 0}, {1, 0, 0, 1}}, one[] = {1, 0, 0, 1}, c[] = {1, 2, 3, 4};
	float d[BATCH][4];
	epg_context *context = example_context();
	void *a_there = example_put(context, a, sizeof a), *b_there = example_put(context, one, sizeof one), *c_there = example_put(context, c, sizeof c);
	void *d_there = example_put(context, NULL, sizeof d);
	epg_matmul_desc desc;
	CHECK(epg_matmul_desc_init(&desc, sizeof desc, 2, 2, 2, EPG_F32, EPG_COL));
	desc.batch = BATCH;
	desc.b.batch_stride = 0;
	desc.beta[0] = 1;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		desc.c.ld = cases[i].ld;
		desc.c.batch_stride = cases[i].batch_stride;
		CHECK(epg_matmul(context, &desc, &EPG_OPERANDS(.a = a_there, .b = b_there, .c = c_there, .d = d_there), NULL));
		example_get(context, d, d_there, sizeof d);
		for (int item = 0; item < BATCH; item++) {
			printf("%s: D[%d]", cases[i].what, item);
			example_print(" =", d[item], 2, 2);
		}
	}
	epg_free(context, a_there), epg_free(context, b_there), epg_free(context, c_there), epg_free(context, d_there);
	epg_context_destroy(context);
	return 0;
}
