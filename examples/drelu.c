/* SPDX-License-Identifier: Apache-2.0
 *
 * The backward half of a ReLU: the mask that RELU_AUX wrote says where the gradient passes.
 *
 * Prints:
 *     Y = 1 0 | 0 4
 *     G = 10 0 | 0 40
 */
#include "example.h"

int main(void)
{
	enum { MASK_NBYTES = 2 * 16 }; /* a column of D is a line of 128 bits */
	static const float w[] = {1, 0, 0, 1}, x[] = {1, -2, -3, 4}, dy[] = {10, 20, 30, 40};
	float y[4], g[4];
	epg_context *context = example_context();
	void *w_there = example_put(context, w, sizeof w), *x_there = example_put(context, x, sizeof x), *dy_there = example_put(context, dy, sizeof dy);
	void *y_there = example_put(context, NULL, sizeof y), *g_there = example_put(context, NULL, sizeof g), *mask = example_put(context, NULL, MASK_NBYTES);
	epg_matmul_desc desc;
	CHECK(epg_matmul_desc_init(&desc, sizeof desc, 2, 2, 2, EPG_F32, EPG_COL));
	desc.epilog = EPG_EPILOG_RELU_AUX;
	CHECK(epg_matmul(context, &desc, &EPG_OPERANDS(.a = w_there, .b = x_there, .d = y_there, .aux = mask), NULL));
	desc.epilog = EPG_EPILOG_DRELU;
	CHECK(epg_matmul(context, &desc, &EPG_OPERANDS(.a = w_there, .b = dy_there, .d = g_there, .aux = mask), NULL));
	example_get(context, y, y_there, sizeof y);
	example_get(context, g, g_there, sizeof g);
	example_print("Y =", y, 2, 2);
	example_print("G =", g, 2, 2);
	epg_free(context, w_there), epg_free(context, x_there), epg_free(context, dy_there), epg_free(context, y_there), epg_free(context, g_there), epg_free(context, mask);
	epg_context_destroy(context);
	return 0;
}
