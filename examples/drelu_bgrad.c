/* SPDX-License-Identifier: Apache-2.0
 *
 * The backward half: D = (Wᵀ·G) where the mask's bit is 1, else 0, and the bias gradient, the sum of D over its columns, in the same pass.
 *
 * Prints:
 *     D = 1 0 | 0 4
 *     bias gradient = 1 | 4
 */
#include "example.h"

int main(void)
{
	enum { M = 2, N = 2, MASK_LINE = 16 };
	static const float w[] = {1, 0, 0, 1}, g[] = {1, 2, 3, 4};
	static const unsigned char mask[N * MASK_LINE] = {[0] = 1, [MASK_LINE] = 2}; /* (0,0) and (1,1) */
	float d[M * N], sums[M];
	epg_context *context = example_context();
	void *w_there = example_put(context, w, sizeof w), *g_there = example_put(context, g, sizeof g), *mask_there = example_put(context, mask, sizeof mask);
	void *d_there = example_put(context, NULL, sizeof d), *sums_there = example_put(context, NULL, sizeof sums);
	epg_matmul_desc desc;
	CHECK(epg_matmul_desc_init(&desc, sizeof desc, M, N, 2, EPG_F32, EPG_COL));
	desc.a.op = EPG_OP_T;
	desc.epilog = EPG_EPILOG_DRELU_BGRAD; /* flags |= EPG_BGRAD_ACCUMULATE would add to the gradient */
	CHECK(epg_matmul(context, &desc, &EPG_OPERANDS(.a = w_there, .b = g_there, .aux = mask_there, .d = d_there, .bgrad = sums_there), NULL));
	example_get(context, d, d_there, sizeof d);
	example_get(context, sums, sums_there, sizeof sums);
	example_print("D =", d, M, N);
	example_print("bias gradient =", sums, M, 1);
	epg_free(context, w_there), epg_free(context, g_there), epg_free(context, mask_there), epg_free(context, d_there), epg_free(context, sums_there);
	epg_context_destroy(context);
	return 0;
}
