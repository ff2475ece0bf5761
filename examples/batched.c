/* SPDX-License-Identifier: Apache-2.0
 *
 * A batch: three A of their own, one B for all of them (batch stride 0), and one line of C for every column (ld 0).
 *
 * Prints:
 *     D[0] = 1 0 | 0 1
 *     D[1] = 2 1 | 1 2
 *     D[2] = 3 2 | 2 3
 */
#include "example.h"

int main(void)
{
	enum { BATCH = 3 };
	static const float a[BATCH][4] = {{1, 0, 0, 1}, {1, 0, 0, 1}, {1, 0, 0, 1}}, b[] = {1, 0, 0, 1}, c[BATCH][2] = {{0, 0}, {1, 1}, {2, 2}};
	float d[BATCH][4];
	epg_context *context = example_context();
	void *a_there = example_put(context, a, sizeof a), *b_there = example_put(context, b, sizeof b), *c_there = example_put(context, c, sizeof c);
	void *d_there = example_put(context, NULL, sizeof d);
	epg_matmul_desc desc;
	CHECK(epg_matmul_desc_init(&desc, sizeof desc, 2, 2, 2, EPG_F32, EPG_COL));
	desc.batch = BATCH;      /* strides of A, B and D stay EPG_TIGHT: one matrix after the other */
	desc.b.batch_stride = 0;
	desc.beta[0] = 1;
	desc.c.ld = 0;
	desc.c.batch_stride = 2;
	CHECK(epg_matmul(context, &desc, &EPG_OPERANDS(.a = a_there, .b = b_there, .c = c_there, .d = d_there), NULL));
	example_get(context, d, d_there, sizeof d);
	for (int i = 0; i < BATCH; i++) {
		char name[32];
		snprintf(name, sizeof name, "D[%d] =", i);
		example_print(name, d[i], 2, 2);
	}
	epg_free(context, a_there), epg_free(context, b_there), epg_free(context, c_there), epg_free(context, d_there);
	epg_context_destroy(context);
	return 0;
}
