/* SPDX-License-Identifier: Apache-2.0
 *
 * A layer in the batch-major layout of most frameworks: Y = relu(X·Wᵀ + bias), all row-major, X batch×in, W out×in, one bias value per
 * column of Y.
 *
 * Prints:
 *     1 0 2
 *     2 1 4
 */
#include "example.h"

int main(void)
{
	enum { BATCH = 2, IN = 2, OUT = 3 };
	static const float x[BATCH][IN] = {{1, 0}, {1, 1}}, w[OUT][IN] = {{1, 1}, {-1, 1}, {1, 2}}, bias[OUT] = {0, 1, 1};
	float y[BATCH][OUT];
	epg_context *context = example_context();
	void *x_there = example_put(context, x, sizeof x), *w_there = example_put(context, w, sizeof w), *bias_there = example_put(context, bias, sizeof bias);
	void *y_there = example_put(context, NULL, sizeof y);
	epg_matmul_desc desc;
	CHECK(epg_matmul_desc_init(&desc, sizeof desc, BATCH, OUT, IN, EPG_F32, EPG_ROW));
	desc.b.op = EPG_OP_T;
	desc.epilog = EPG_EPILOG_RELU_BIAS;
	desc.axis = EPG_PER_COLUMN;
	CHECK(epg_matmul(context, &desc, &EPG_OPERANDS(.a = x_there, .b = w_there, .bias = bias_there, .d = y_there), NULL));
	example_get(context, y, y_there, sizeof y);
	for (int i = 0; i < BATCH; i++)
		printf("%g %g %g\n", y[i][0], y[i][1], y[i][2]);
	epg_free(context, x_there), epg_free(context, w_there), epg_free(context, bias_there), epg_free(context, y_there);
	epg_context_destroy(context);
	return 0;
}
