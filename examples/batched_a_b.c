/* SPDX-License-Identifier: Apache-2.0
 *
 * A batch in which A and B both have items of their own, while one C serves all of them (batch stride 0).
 *
 * Prints:
 *     D[0] = 1 0 | 0 2
 *     D[1] = 5 0 | 0 7
 */
#include "example.h"

int main(void)
{
	enum { BATCH = 2 };
	static const float a[BATCH][4] = {{1, 0, 0, 1}, {2, 0, 0, 2}}, b[BATCH][4] = {{0, 0, 0, 0}, {2, 0, 0, 2.5f}}, c[] = {1, 0, 0, 2};
	float d[BATCH][4];
	epg_context *context = example_context();
	void *a_there = example_put(context, a, sizeof a), *b_there = example_put(context, b, sizeof b), *c_there = example_put(context, c, sizeof c);
	void *d_there = example_put(context, NULL, sizeof d);
	epg_matmul_desc desc;
	CHECK(epg_matmul_desc_init(&desc, sizeof desc, 2, 2, 2, EPG_F32, EPG_COL));
	desc.batch = BATCH;
	desc.beta[0] = 1;
	desc.c.batch_stride = 0;
	CHECK(epg_matmul(context, &desc, &EPG_OPERANDS(.a = a_there, .b = b_there, .c = c_there, .d = d_there), NULL));
	example_get(context, d, d_there, sizeof d);
	example_print("D[0] =", d[0], 2, 2);
	example_print("D[1] =", d[1], 2, 2);
	epg_free(context, a_there), epg_free(context, b_there), epg_free(context, c_there), epg_free(context, d_there);
	epg_context_destroy(context);
	return 0;
}
