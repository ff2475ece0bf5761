/* SPDX-License-Identifier: Apache-2.0
 *
 * D = 2·A·B - C where D lies over C: give the same pointer twice.
 *
 * Prints:
 *     D = 1 4 | 6 7
 */
#include "example.h"

int main(void)
{
	static const float a[] = {1, 3, 2, 4}, one[] = {1, 0, 0, 1}, c[] = {1, 0, 0, 1};
	float d[4];
	epg_context *context = example_context();
	void *a_there = example_put(context, a, sizeof a), *b_there = example_put(context, one, sizeof one), *d_there = example_put(context, c, sizeof c);
	epg_matmul_desc desc;
	CHECK(epg_matmul_desc_init(&desc, sizeof desc, 2, 2, 2, EPG_F32, EPG_COL));
	desc.alpha[0] = 2;
	desc.beta[0] = -1;
	CHECK(epg_matmul(context, &desc, &EPG_OPERANDS(.a = a_there, .b = b_there, .c = d_there, .d = d_there), NULL));
	example_get(context, d, d_there, sizeof d);
	example_print("D =", d, 2, 2);
	epg_free(context, a_there), epg_free(context, b_there), epg_free(context, d_there);
	epg_context_destroy(context);
	return 0;
}
