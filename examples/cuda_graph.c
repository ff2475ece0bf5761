/* SPDX-License-Identifier: Apache-2.0
 *
 * A CUDA graph: epg_execute only launches on the stream, so a whole layer is captured once and replayed. Scalars on the host are captured by
 * value; pointers too. A graph must not outlive its plans.
 *
 * Prints:
 *     D after three replays = 3
 */
#include <cuda_runtime_api.h>

#include "example.h"

int main(void)
{
	static const float one[] = {1}, zero[] = {0};
	float d;
	epg_context_options options;
	epg_context *context;
	CHECK(epg_context_options_init(&options, sizeof options));
	options.backend = "cuda";
	if (epg_context_create(&options, &context))
		return printf("no GPU: %s\n", epg_last_error()), 77;
	void *a = example_put(context, one, sizeof one), *b = example_put(context, one, sizeof one), *c = example_put(context, zero, sizeof zero);
	epg_matmul_desc desc;
	epg_plan *plan;
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t ready;
	CHECK(epg_matmul_desc_parse("f32 m=1 n=1 k=1 beta=1", &desc, sizeof desc));
	CHECK(epg_plan_create(context, &desc, NULL, &plan));
	int failed = cudaStreamCreate(&stream) || cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
	CHECK(epg_execute(plan, &EPG_OPERANDS(.a = a, .b = b, .c = c, .d = c), stream)); /* C in place: D = 1·1 + D */
	failed = failed || cudaStreamEndCapture(stream, &graph) || cudaGraphInstantiate(&ready, graph, 0);
	for (int i = 0; i < 3 && !failed; i++)
		failed = cudaGraphLaunch(ready, stream) != cudaSuccess;
	failed = failed || cudaStreamSynchronize(stream);
	example_get(context, &d, c, sizeof d);
	printf("D after three replays = %g\n", failed ? -1 : d);
	cudaGraphExecDestroy(ready), cudaGraphDestroy(graph), cudaStreamDestroy(stream);
	epg_plan_destroy(plan);
	epg_free(context, a), epg_free(context, b), epg_free(context, c);
	epg_context_destroy(context);
	return failed;
}
