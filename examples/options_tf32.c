/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of a plan: a compute type by name (TF32 is never taken unasked), a workspace limit, the same bits from run to run. What cannot be
 * done under a limit is refused, with the bytes that are missing.
 *
 * Prints:
 *     f32 m=2 n=2 k=2 compute=tf32 flags=deterministic
 *     D = 1 3 | 2 4
 */
#include "example.h"

int main(void)
{
	static const float a[] = {1, 0, 0, 1}, b[] = {1, 2, 3, 4};
	float d[4];
	char line[256];
	epg_context *context = example_context();
	void *a_there = example_put(context, a, sizeof a), *b_there = example_put(context, b, sizeof b), *d_there = example_put(context, NULL, sizeof d);
	epg_matmul_desc desc;
	epg_plan_options options;
	epg_plan *plan;
	CHECK(epg_matmul_desc_init(&desc, sizeof desc, 2, 2, 2, EPG_F32, EPG_COL));
	desc.compute = EPG_COMPUTE_TF32;
	desc.flags = EPG_DETERMINISTIC;
	CHECK(epg_matmul_desc_print(&desc, line, sizeof line, NULL));
	printf("%s\n", line);
	CHECK(epg_plan_options_init(&options, sizeof options));
	options.workspace_limit_nbytes = 1 << 20;
	CHECK(epg_plan_create(context, &desc, &options, &plan));
	CHECK(epg_execute(plan, &EPG_OPERANDS(.a = a_there, .b = b_there, .d = d_there), NULL));
	example_get(context, d, d_there, sizeof d);
	example_print("D =", d, 2, 2);
	epg_plan_destroy(plan);
	epg_free(context, a_there), epg_free(context, b_there), epg_free(context, d_there);
	epg_context_destroy(context);
	return 0;
}
