/* SPDX-License-Identifier: Apache-2.0
 *
 * The MLP of a transformer block in batch-major (row-major) layout, forward and backward, checked against central differences:
 *     Z = X·W1ᵀ + b1,  H = gelu(Z),  Y = H·W2ᵀ + b2,      loss = Σ Y∘R, so dY = R
 *     dW2 = dYᵀ·H,  db2 = sums of dY,  dZ = (dY·W2)∘gelu'(Z),  db1 = sums of dZ,  dW1 = dZᵀ·X,  dX = dZ·W1
 * The bias runs along a row, so its axis is 'per column'; Z is kept as the aux of the first product.
 *
 * Prints:
 *     gradients agree with central differences
 */
#include <math.h>
#include <string.h>

#include "example.h"

enum { TOKENS = 5, WIDTH = 6, HIDDEN = 16, NW = HIDDEN * WIDTH };

typedef struct block { /* all f64, where the context computes */
	double *x, *w1, *b1, *w2, *b2, *z, *h, *y, *dy, *dw1, *db1, *dw2, *db2, *dz, *dx;
} block;

static void product(epg_context *context, const char *line, const epg_operands *operands)
{
	epg_matmul_desc desc;
	CHECK(epg_matmul_desc_parse(line, &desc, sizeof desc));
	CHECK(epg_matmul(context, &desc, operands, NULL)); /* a training loop would keep a plan for each */
}

static void forward(epg_context *context, const block *b)
{
	product(context, "f64 m=5 n=16 k=6 order=row opb=T epilog=gelu_aux_bias axis=column", &EPG_OPERANDS(.a = b->x, .b = b->w1, .bias = b->b1, .d = b->h, .aux = b->z));
	product(context, "f64 m=5 n=6 k=16 order=row opb=T epilog=bias axis=column", &EPG_OPERANDS(.a = b->h, .b = b->w2, .bias = b->b2, .d = b->y));
}

static void backward(epg_context *context, const block *b)
{
	product(context, "f64 m=6 n=16 k=5 order=row opa=T epilog=bgrada", &EPG_OPERANDS(.a = b->dy, .b = b->h, .d = b->dw2, .bgrad = b->db2));
	product(context, "f64 m=5 n=16 k=6 order=row epilog=dgelu_bgrad axis=column", &EPG_OPERANDS(.a = b->dy, .b = b->w2, .aux = b->z, .d = b->dz, .bgrad = b->db1));
	product(context, "f64 m=16 n=6 k=5 order=row opa=T", &EPG_OPERANDS(.a = b->dz, .b = b->x, .d = b->dw1));
	product(context, "f64 m=5 n=6 k=16 order=row", &EPG_OPERANDS(.a = b->dz, .b = b->w1, .d = b->dx));
}

static double loss(epg_context *context, const block *b, const double *dy)
{
	double y[TOKENS * WIDTH], sum = 0;
	forward(context, b);
	example_get(context, y, b->y, sizeof y);
	for (int i = 0; i < TOKENS * WIDTH; i++)
		sum += y[i] * dy[i];
	return sum;
}

/* Each element of a parameter is moved to both sides: the loss must change as its gradient says. */
static int agrees(epg_context *context, const block *b, const double *dy, double *parameter, const double *gradient, int count)
{
	double x[NW], g[NW], step = 1e-4;
	int good = 1;
	example_get(context, x, parameter, (size_t)count * sizeof *x);
	example_get(context, g, gradient, (size_t)count * sizeof *g);
	for (int i = 0; i < count; i++) {
		double change[2], old = x[i];
		for (int side = 0; side < 2; side++) {
			x[i] = old + (side ? step : -step);
			CHECK(epg_upload(context, parameter, x, (size_t)count * sizeof *x, NULL));
			change[side] = loss(context, b, dy);
		}
		x[i] = old;
		good &= fabs((change[1] - change[0]) / (2 * step) - g[i]) < 1e-6;
	}
	CHECK(epg_upload(context, parameter, x, (size_t)count * sizeof *x, NULL));
	return good;
}

static double *put(epg_context *context, int count, unsigned seed)
{
	double x[NW];
	for (int i = 0; i < count; i++) {
		seed = seed * 1664525 + 1013904223;
		x[i] = (double)(seed >> 8) / (1 << 23) - 1;
	}
	return example_put(context, x, (size_t)count * sizeof *x);
}

int main(void)
{
	double dy[TOKENS * WIDTH];
	epg_context *context = example_context();
	static const int counts[] = {TOKENS * WIDTH, NW, HIDDEN, NW, WIDTH, TOKENS * HIDDEN, TOKENS * HIDDEN, TOKENS * WIDTH, TOKENS * WIDTH, NW, HIDDEN, NW, WIDTH, TOKENS * HIDDEN, TOKENS * WIDTH};
	double *all[15];
	block b;
	for (unsigned i = 0; i < 15; i++)
		all[i] = put(context, counts[i], i + 1);
	memcpy(&b, all, sizeof b);
	example_get(context, dy, b.dy, sizeof dy);
	forward(context, &b);
	backward(context, &b);
	int good = agrees(context, &b, dy, b.w1, b.dw1, NW) && agrees(context, &b, dy, b.b1, b.db1, HIDDEN) && agrees(context, &b, dy, b.w2, b.dw2, NW)
		&& agrees(context, &b, dy, b.b2, b.db2, WIDTH) && agrees(context, &b, dy, b.x, b.dx, TOKENS * WIDTH);
	printf("gradients %s central differences\n", good ? "agree with" : "differ from");
	for (int i = 0; i < 15; i++)
		epg_free(context, all[i]);
	epg_context_destroy(context);
	return !good;
}
