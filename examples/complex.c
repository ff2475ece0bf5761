/* SPDX-License-Identifier: Apache-2.0
 *
 * Complex numbers: D = Aᴴ·B.
 *
 * Prints:
 *     D = 2-1i
 */
#include "example.h"

int main(void)
{
	static const float a[][2] = {{1, 1}, {0, 1}}, b[][2] = {{1, 0}, {0, 1}}; /* A and B are columns of two: 1+i, i and 1, i */
	float d[2];
	epg_context *context = example_context();
	void *a_there = example_put(context, a, sizeof a), *b_there = example_put(context, b, sizeof b), *d_there = example_put(context, NULL, sizeof d);
	epg_matmul_desc desc;
	CHECK(epg_matmul_desc_init(&desc, sizeof desc, 1, 1, 2, EPG_C64, EPG_COL));
	desc.a.op = EPG_OP_C;
	CHECK(epg_matmul(context, &desc, &EPG_OPERANDS(.a = a_there, .b = b_there, .d = d_there), NULL));
	example_get(context, d, d_there, sizeof d);
	printf("D = %g%+gi\n", d[0], d[1]);
	epg_free(context, a_there), epg_free(context, b_there), epg_free(context, d_there);
	epg_context_destroy(context);
	return 0;
}
