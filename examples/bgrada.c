/* SPDX-License-Identifier: Apache-2.0
 *
 * BGRADA: besides D = A·B, the sums of A over k, one for each row. With A = G and B = Xᵀ these are the gradients of the weights and of the bias.
 *
 * Prints:
 *     D = 3 3 | 7 7
 *     sums of A = 3 7
 */
#include "example.h"

int main(void)
{
	static const float a[] = {1, 3, 2, 4}, b[] = {1, 1, 1, 1};
	float d[4], sums[2];
	epg_context *context = example_context();
	void *a_there = example_put(context, a, sizeof a), *b_there = example_put(context, b, sizeof b);
	void *d_there = example_put(context, NULL, sizeof d), *sums_there = example_put(context, NULL, sizeof sums);
	epg_matmul_desc desc;
	CHECK(epg_matmul_desc_init(&desc, sizeof desc, 2, 2, 2, EPG_F32, EPG_COL));
	desc.epilog = EPG_EPILOG_BGRADA; /* the sums have length m, whatever alpha and the axis */
	CHECK(epg_matmul(context, &desc, &EPG_OPERANDS(.a = a_there, .b = b_there, .d = d_there, .bgrad = sums_there), NULL));
	example_get(context, d, d_there, sizeof d);
	example_get(context, sums, sums_there, sizeof sums);
	example_print("D =", d, 2, 2);
	printf("sums of A = %g %g\n", sums[0], sums[1]);
	epg_free(context, a_there), epg_free(context, b_there), epg_free(context, d_there), epg_free(context, sums_there);
	epg_context_destroy(context);
	return 0;
}
