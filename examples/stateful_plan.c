/* SPDX-License-Identifier: Apache-2.0
 *
 * Plan once, execute often, with fresh pointers and other scalars each time. The plan holds every slow decision.
 *
 * Prints:
 *     D = 1 2 | 3 4
 *     D = 10 20 | 30 40
 */
#include "example.h"

int main(void)
{
	static const float one[] = {1, 0, 0, 1}, a[] = {1, 3, 2, 4}, scale = 10;
	float d[4];
	epg_context *context = example_context();
	void *a_there = example_put(context, a, sizeof a), *one_there = example_put(context, one, sizeof one);
	epg_matmul_desc desc;
	epg_plan *plan;
	CHECK(epg_matmul_desc_init(&desc, sizeof desc, 2, 2, 2, EPG_F32, EPG_COL));
	CHECK(epg_plan_create(context, &desc, NULL, &plan));
	for (int i = 0; i < 2; i++) {
		void *d_there = example_put(context, NULL, sizeof d);
		/* An alpha here counts instead of the desc's; its type is the plan's scalar_type, f32 for f32. */
		CHECK(epg_execute(plan, &EPG_OPERANDS(.a = a_there, .b = one_there, .d = d_there, .alpha = i == 1 ? &scale : NULL), NULL));
		example_get(context, d, d_there, sizeof d);
		example_print("D =", d, 2, 2);
		epg_free(context, d_there);
	}
	epg_plan_destroy(plan);
	epg_free(context, a_there), epg_free(context, one_there);
	epg_context_destroy(context);
	return 0;
}
