/* SPDX-License-Identifier: Apache-2.0
 *
 * GELU in its tanh form, with a bias: D = gelu(A·B + bias).
 *
 * Prints:
 *     gelu of -1 0 1 2 is -0.159 0.000 0.841 1.955
 */
#include "example.h"

int main(void)
{
	static const float a[] = {1, 1, 1, 1}, b[] = {1}, bias[] = {-2, -1, 0, 1};
	float d[4];
	epg_context *context = example_context();
	void *a_there = example_put(context, a, sizeof a), *b_there = example_put(context, b, sizeof b), *bias_there = example_put(context, bias, sizeof bias);
	void *d_there = example_put(context, NULL, sizeof d);
	epg_matmul_desc desc;
	CHECK(epg_matmul_desc_init(&desc, sizeof desc, 4, 1, 1, EPG_F32, EPG_COL));
	desc.epilog = EPG_EPILOG_GELU_BIAS;
	CHECK(epg_matmul(context, &desc, &EPG_OPERANDS(.a = a_there, .b = b_there, .bias = bias_there, .d = d_there), NULL));
	example_get(context, d, d_there, sizeof d);
	printf("gelu of -1 0 1 2 is %.3f %.3f %.3f %.3f\n", d[0], d[1], d[2], d[3]);
	epg_free(context, a_there), epg_free(context, b_there), epg_free(context, bias_there), epg_free(context, d_there);
	epg_context_destroy(context);
	return 0;
}
