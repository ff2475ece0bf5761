/* SPDX-License-Identifier: Apache-2.0
 *
 * A weight gradient dW = G·Xᵀ, and with it the sums of G over the batch, which are the bias gradient: BGRADA sums op(A) over k, BGRADB op(B).
 *
 * Prints:
 *     dW = 5 11 | 11 25
 *     sums of A = 3 | 7
 *     sums of B = 3 | 7
 */
#include "example.h"

int main(void)
{
	static const float g[] = {1, 3, 2, 4}; /* [1 2; 3 4], and X is the same */
	static const int32_t epilogs[] = {EPG_EPILOG_BGRADA, EPG_EPILOG_BGRADB};
	float dw[4], sums[2];
	epg_context *context = example_context();
	void *g_there = example_put(context, g, sizeof g), *dw_there = example_put(context, NULL, sizeof dw), *sums_there = example_put(context, NULL, sizeof sums);
	for (int i = 0; i < 2; i++) {
		epg_matmul_desc desc;
		CHECK(epg_matmul_desc_init(&desc, sizeof desc, 2, 2, 2, EPG_F32, EPG_COL));
		desc.b.op = EPG_OP_T;
		desc.epilog = epilogs[i];
		CHECK(epg_matmul(context, &desc, &EPG_OPERANDS(.a = g_there, .b = g_there, .d = dw_there, .bgrad = sums_there), NULL));
		example_get(context, dw, dw_there, sizeof dw);
		example_get(context, sums, sums_there, sizeof sums);
		if (i == 0)
			example_print("dW =", dw, 2, 2);
		example_print(i == 0 ? "sums of A =" : "sums of B =", sums, 2, 1);
	}
	epg_free(context, g_there), epg_free(context, dw_there), epg_free(context, sums_there);
	epg_context_destroy(context);
	return 0;
}
