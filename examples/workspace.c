/* SPDX-License-Identifier: Apache-2.0
 *
 * A workspace of the caller's: then executions of one plan may run at once on several CUDA streams, each with its own. On the CPU it saves
 * an allocation where several threads execute one plan.
 *
 * Prints:
 *     bias gradient = 64
 */
#include "example.h"

int main(void)
{
	enum { N = 64, MASK_LINE = 16 };
	static const float w[] = {1};
	static float g[N];
	static unsigned char mask[N * MASK_LINE];
	float sum;
	for (int j = 0; j < N; j++)
		g[j] = 1, mask[j * MASK_LINE] = 1;
	epg_context *context = example_context();
	void *w_there = example_put(context, w, sizeof w), *g_there = example_put(context, g, sizeof g), *mask_there = example_put(context, mask, sizeof mask);
	void *d_there = example_put(context, NULL, sizeof g), *sum_there = example_put(context, NULL, sizeof sum);
	epg_matmul_desc desc;
	epg_plan *plan;
	epg_plan_info info;
	CHECK(epg_matmul_desc_parse("f32 m=1 n=64 k=1 epilog=drelu_bgrad", &desc, sizeof desc));
	CHECK(epg_plan_create(context, &desc, NULL, &plan));
	CHECK(epg_plan_get_info(plan, &info, sizeof info));
	void *workspace = example_put(context, NULL, info.workspace_nbytes);
	CHECK(epg_execute(plan, &EPG_OPERANDS(.a = w_there, .b = g_there, .aux = mask_there, .d = d_there, .bgrad = sum_there, .workspace = workspace,
		.workspace_nbytes = info.workspace_nbytes), NULL));
	example_get(context, &sum, sum_there, sizeof sum);
	printf("bias gradient = %g\n", sum);
	epg_plan_destroy(plan);
	epg_free(context, workspace), epg_free(context, w_there), epg_free(context, g_there), epg_free(context, mask_there), epg_free(context, d_there), epg_free(context, sum_there);
	epg_context_destroy(context);
	return 0;
}
