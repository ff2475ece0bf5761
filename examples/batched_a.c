/* SPDX-License-Identifier: Apache-2.0
 *
 * A batch of A with one B for all of them. Where A and D are row-major and dense, the same is one product with all rows of all items, which
 * is one large product instead of many small ones: worth a measurement.
 *
 * Prints:
 *     D[0] = 3 7
 *     D[1] = 11 15
 *     D[2] = 19 23
 *     as one product: 3 7 11 15 19 23
 */
#include "example.h"

int main(void)
{
	enum { BATCH = 3, M = 2, N = 1, K = 2 };
	static const float a[BATCH][M][K] = {{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}, {{9, 10}, {11, 12}}}, b[K][N] = {{1}, {1}};
	float d[BATCH][M][N];
	epg_context *context = example_context();
	void *a_there = example_put(context, a, sizeof a), *b_there = example_put(context, b, sizeof b), *d_there = example_put(context, NULL, sizeof d);
	epg_matmul_desc desc;
	CHECK(epg_matmul_desc_init(&desc, sizeof desc, M, N, K, EPG_F32, EPG_ROW));
	desc.batch = BATCH; /* A and D: one matrix after the other */
	desc.b.batch_stride = 0;
	CHECK(epg_matmul(context, &desc, &EPG_OPERANDS(.a = a_there, .b = b_there, .d = d_there), NULL));
	example_get(context, d, d_there, sizeof d);
	for (int i = 0; i < BATCH; i++)
		printf("D[%d] = %g %g\n", i, d[i][0][0], d[i][1][0]);
	CHECK(epg_matmul_desc_init(&desc, sizeof desc, BATCH * M, N, K, EPG_F32, EPG_ROW));
	CHECK(epg_matmul(context, &desc, &EPG_OPERANDS(.a = a_there, .b = b_there, .d = d_there), NULL));
	example_get(context, d, d_there, sizeof d);
	printf("as one product:");
	for (int i = 0; i < BATCH; i++)
		printf(" %g %g", d[i][0][0], d[i][1][0]);
	printf("\n");
	epg_free(context, a_there), epg_free(context, b_there), epg_free(context, d_there);
	epg_context_destroy(context);
	return 0;
}
