/* SPDX-License-Identifier: Apache-2.0
 *
 * The epilog without a product, as after a reduction over devices: k = 0, beta = 1, and C is what was reduced. Here in place.
 *
 * Prints:
 *     D = 2 0 | 0 5
 */
#include "example.h"

int main(void)
{
	static const float reduced[] = {1, -4, -2, 4}, bias[] = {1, 1};
	float d[4];
	epg_context *context = example_context();
	void *d_there = example_put(context, reduced, sizeof reduced), *bias_there = example_put(context, bias, sizeof bias);
	epg_matmul_desc desc;
	CHECK(epg_matmul_desc_init(&desc, sizeof desc, 2, 2, 0, EPG_F32, EPG_COL));
	desc.beta[0] = 1;
	desc.epilog = EPG_EPILOG_RELU_BIAS;
	CHECK(epg_matmul(context, &desc, &EPG_OPERANDS(.c = d_there, .d = d_there, .bias = bias_there), NULL));
	example_get(context, d, d_there, sizeof d);
	example_print("D =", d, 2, 2);
	epg_free(context, d_there), epg_free(context, bias_there);
	epg_context_destroy(context);
	return 0;
}
