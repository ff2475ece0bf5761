/* SPDX-License-Identifier: Apache-2.0
 *
 * Plain arrays as operands on whichever backend there is: EPG_MEMORY_HOST. A GPU then copies them there and back within the call, which
 * returns when D is written; on the CPU nothing is copied.
 *
 * Prints:
 *     D = 4 0 | 7 0
 *     D = 8 0 | 14 0
 */
#include "example.h"

int main(void)
{
	static const float a[] = {1, 3, 2, 4}, b[] = {1, 2, -1, 0}, bias[] = {-1, -4};
	static const float twice_b[] = {2, 4, -2, 0}, twice_bias[] = {-2, -8};
	float d[4];
	epg_context *context = example_context();
	epg_matmul_desc desc;
	epg_plan_options options;
	epg_plan *plan;
	CHECK(epg_matmul_desc_init(&desc, sizeof desc, 2, 2, 2, EPG_F32, EPG_COL));
	desc.epilog = EPG_EPILOG_RELU_BIAS;
	CHECK(epg_plan_options_init(&options, sizeof options));
	options.memory = EPG_MEMORY_HOST;
	CHECK(epg_plan_create(context, &desc, &options, &plan));
	CHECK(epg_execute(plan, &EPG_OPERANDS(.a = a, .b = b, .bias = bias, .d = d), NULL));
	example_print("D =", d, 2, 2);
	CHECK(epg_execute(plan, &EPG_OPERANDS(.a = a, .b = twice_b, .bias = twice_bias, .d = d), NULL));
	example_print("D =", d, 2, 2);
	epg_plan_destroy(plan);
	epg_context_destroy(context);
	return 0;
}
