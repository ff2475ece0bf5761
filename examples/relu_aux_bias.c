/* SPDX-License-Identifier: Apache-2.0
 *
 * The forward half of a layer: D = relu(W·x + bias), with one bit for each element that tells the backward half where z was not
 * negative. A line of the mask is as long as a column of D, padded to 128 bits.
 *
 * Prints:
 *     D = 1 0 | 0 4
 *     mask = 1 0 | 0 1
 */
#include "example.h"

int main(void)
{
	enum { M = 2, N = 2, MASK_LINE = 16 /* bytes */ };
	static const float w[] = {1, 0, 0, 1}, x[] = {0, -3, -2, 3}, bias[] = {1, 1};
	float d[M * N], bits[M * N];
	unsigned char mask[N * MASK_LINE];
	epg_context *context = example_context();
	void *w_there = example_put(context, w, sizeof w), *x_there = example_put(context, x, sizeof x), *bias_there = example_put(context, bias, sizeof bias);
	void *d_there = example_put(context, NULL, sizeof d), *mask_there = example_put(context, NULL, sizeof mask);
	epg_matmul_desc desc;
	CHECK(epg_matmul_desc_init(&desc, sizeof desc, M, N, 2, EPG_F32, EPG_COL));
	desc.epilog = EPG_EPILOG_RELU_AUX_BIAS; /* the bias is one value per row of D unless desc.axis says otherwise */
	CHECK(epg_matmul(context, &desc, &EPG_OPERANDS(.a = w_there, .b = x_there, .bias = bias_there, .d = d_there, .aux = mask_there), NULL));
	example_get(context, d, d_there, sizeof d);
	example_get(context, mask, mask_there, sizeof mask);
	for (int j = 0; j < N; j++)
		for (int i = 0; i < M; i++)
			bits[i + j * M] = mask[j * MASK_LINE + i / 8] >> (i % 8) & 1;
	example_print("D =", d, M, N);
	example_print("mask =", bits, M, N);
	epg_free(context, w_there), epg_free(context, x_there), epg_free(context, bias_there), epg_free(context, d_there), epg_free(context, mask_there);
	epg_context_destroy(context);
	return 0;
}
