/* SPDX-License-Identifier: Apache-2.0
 *
 * One plan on two streams at once, each with a workspace of its own.
 *
 * Prints:
 *     sums of D = 64 128
 */
#include <cuda_runtime_api.h>

#include "example.h"

enum { N = 64, MASK_NBYTES = N * 16 };

int main(void)
{
	static const float factors[] = {1, 2};
	static float g[N];
	static unsigned char mask[MASK_NBYTES];
	float sums[2];
	epg_context_options options;
	epg_context *context;
	epg_matmul_desc desc;
	epg_plan *plan;
	epg_plan_info info;
	CHECK(epg_context_options_init(&options, sizeof options));
	options.backend = "cuda";
	if (epg_context_create(&options, &context))
		return printf("no GPU: %s\n", epg_last_error()), 77;
	for (int j = 0; j < N; j++)
		g[j] = 1, mask[j * 16] = 1;
	CHECK(epg_matmul_desc_parse("f32 m=1 n=64 k=1 epilog=drelu_bgrad", &desc, sizeof desc));
	CHECK(epg_plan_create(context, &desc, NULL, &plan));
	CHECK(epg_plan_get_info(plan, &info, sizeof info));
	void *g_there = example_put(context, g, sizeof g), *mask_there = example_put(context, mask, sizeof mask);
	void *factor[2], *d[2], *sum[2], *workspace[2];
	cudaStream_t stream[2];
	int failed = 0;
	for (int i = 0; i < 2; i++) {
		factor[i] = example_put(context, &factors[i], sizeof factors[i]), d[i] = example_put(context, NULL, sizeof g);
		sum[i] = example_put(context, NULL, sizeof sums[i]), workspace[i] = example_put(context, NULL, info.workspace_nbytes);
		failed |= cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking) != cudaSuccess;
	}
	for (int i = 0; i < 2; i++)
		CHECK(epg_execute(plan, &EPG_OPERANDS(.a = factor[i], .b = g_there, .aux = mask_there, .d = d[i], .bgrad = sum[i], .workspace = workspace[i],
			.workspace_nbytes = info.workspace_nbytes), stream[i]));
	for (int i = 0; i < 2; i++) {
		failed |= cudaStreamSynchronize(stream[i]) != cudaSuccess;
		example_get(context, &sums[i], sum[i], sizeof sums[i]);
		cudaStreamDestroy(stream[i]);
		epg_free(context, factor[i]), epg_free(context, d[i]), epg_free(context, sum[i]), epg_free(context, workspace[i]);
	}
	printf("sums of D = %g %g\n", sums[0], sums[1]);
	epg_plan_destroy(plan);
	epg_free(context, g_there), epg_free(context, mask_there);
	epg_context_destroy(context);
	return failed;
}
