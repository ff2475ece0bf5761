/* SPDX-License-Identifier: Apache-2.0
 *
 * Forward and backward of a layer of a network that reads digits, 784 inputs, 100 outputs, 256 pictures, checked against plain loops:
 *     Y = relu(W·X + b), mask kept        G ← dY where the mask is 1, db = sums of G        dW = G·Xᵀ        dX = Wᵀ·G
 * The gradient that comes from behind, dY, is the product P·Q of the layer behind; its plan applies the mask as it writes G.
 *
 * Prints:
 *     Y, G, db, dW, dX agree with plain loops
 */
#include <math.h>

#include "example.h"

enum { IN = 784, OUT = 100, BATCH = 256, BEHIND = 10, MASK_LINE = 16 };

static float w[OUT * IN], x[IN * BATCH], b[OUT], p[OUT * BEHIND], q[BEHIND * BATCH];
static float y[OUT * BATCH], g[OUT * BATCH], db[OUT], dw[OUT * IN], dx[IN * BATCH];

static void fill(float *to, int count, unsigned seed)
{
	for (int i = 0; i < count; i++) {
		seed = seed * 1664525 + 1013904223;
		to[i] = (float)(seed >> 8) / (1 << 23) - 1;
	}
}

/* Is got, column-major, within f32's rounding of op(a)·op(b) [+ bias, relu'd] [where 'where' is positive]? */
static int agrees(const float *got, int m, int n, int k, const float *a, int lda, int ta, const float *c, int ldc, int tc, const float *bias, const float *where)
{
	for (int j = 0; j < n; j++)
		for (int i = 0; i < m; i++) {
			double z = bias ? bias[i] : 0, size = 1;
			for (int l = 0; l < k; l++) {
				double term = (double)a[ta ? l + i * lda : i + l * lda] * c[tc ? j + l * ldc : l + j * ldc];
				z += term, size += fabs(term);
			}
			z = bias && z < 0 ? 0 : where && where[i + j * m] <= 0 ? 0 : z;
			if (fabs(got[i + j * m] - z) > 1e-5 * size)
				return printf("element %d,%d is %g, not %g\n", i, j, got[i + j * m], z), 0;
		}
	return 1;
}

static void product(epg_context *context, const char *line, const epg_operands *operands)
{
	epg_matmul_desc desc;
	CHECK(epg_matmul_desc_parse(line, &desc, sizeof desc));
	CHECK(epg_matmul(context, &desc, operands, NULL)); /* a training loop would keep a plan for each */
}

int main(void)
{
	fill(w, OUT * IN, 1), fill(x, IN * BATCH, 2), fill(b, OUT, 3), fill(p, OUT * BEHIND, 4), fill(q, BEHIND * BATCH, 5);
	epg_context *context = example_context();
	void *W = example_put(context, w, sizeof w), *X = example_put(context, x, sizeof x), *B = example_put(context, b, sizeof b), *P = example_put(context, p, sizeof p);
	void *Q = example_put(context, q, sizeof q), *Y = example_put(context, NULL, sizeof y), *G = example_put(context, NULL, sizeof g), *DB = example_put(context, NULL, sizeof db);
	void *DW = example_put(context, NULL, sizeof dw), *DX = example_put(context, NULL, sizeof dx), *mask = example_put(context, NULL, BATCH * MASK_LINE);

	product(context, "f32 m=100 n=256 k=784 epilog=relu_aux_bias", &EPG_OPERANDS(.a = W, .b = X, .bias = B, .d = Y, .aux = mask));
	product(context, "f32 m=100 n=256 k=10 epilog=drelu_bgrad", &EPG_OPERANDS(.a = P, .b = Q, .aux = mask, .d = G, .bgrad = DB));
	product(context, "f32 m=100 n=784 k=256 opb=T", &EPG_OPERANDS(.a = G, .b = X, .d = DW));
	product(context, "f32 m=784 n=256 k=100 opa=T", &EPG_OPERANDS(.a = W, .b = G, .d = DX));

	example_get(context, y, Y, sizeof y), example_get(context, g, G, sizeof g), example_get(context, db, DB, sizeof db);
	example_get(context, dw, DW, sizeof dw), example_get(context, dx, DX, sizeof dx);
	int good = agrees(y, OUT, BATCH, IN, w, OUT, 0, x, IN, 0, b, NULL) && agrees(g, OUT, BATCH, BEHIND, p, OUT, 0, q, BEHIND, 0, NULL, y)
		&& agrees(dw, OUT, IN, BATCH, g, OUT, 0, x, IN, 1, NULL, NULL) && agrees(dx, IN, BATCH, OUT, w, OUT, 1, g, OUT, 0, NULL, NULL);
	for (int i = 0; i < OUT; i++) {
		double sum = 0;
		for (int j = 0; j < BATCH; j++)
			sum += g[i + j * OUT];
		good &= fabs(db[i] - sum) < 1e-4;
	}
	printf("Y, G, db, dW, dX %s plain loops\n", good ? "agree with" : "differ from");
	void *all[] = {W, X, B, P, Q, Y, G, DB, DW, DX, mask};
	for (int i = 0; i < 11; i++)
		epg_free(context, all[i]);
	epg_context_destroy(context);
	return !good;
}
