/* SPDX-License-Identifier: Apache-2.0
 *
 * One product in one call: D = A·B, column-major, f32.
 *
 * Prints:
 *     D = 19 22 | 43 50
 */
#include "example.h"

int main(void)
{
	static const float a[] = {1, 3, 2, 4}, b[] = {5, 7, 6, 8}; /* columns of [1 2; 3 4] and [5 6; 7 8] */
	float d[4];
	epg_context *context = example_context();
	void *a_there = example_put(context, a, sizeof a), *b_there = example_put(context, b, sizeof b), *d_there = example_put(context, NULL, sizeof d);

	epg_matmul_desc desc;
	CHECK(epg_matmul_desc_init(&desc, sizeof desc, 2, 2, 2, EPG_F32, EPG_COL)); /* m, n, k */
	CHECK(epg_matmul(context, &desc, &EPG_OPERANDS(.a = a_there, .b = b_there, .d = d_there), NULL));

	example_get(context, d, d_there, sizeof d);
	example_print("D =", d, 2, 2);
	epg_free(context, a_there), epg_free(context, b_there), epg_free(context, d_there);
	epg_context_destroy(context);
	return 0;
}
