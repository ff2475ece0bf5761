/* SPDX-License-Identifier: Apache-2.0
 *
 * A network of two dense layers whose every product, bias, ReLU, mask and gradient is an epigemm plan. A picture is a
 * column: with n of them, all matrices are column-major and
 *
 *     forward                                                         epilog
 *     H  = relu(W1·X + b1)        hidden×n   = hidden×inputs · inputs×n     RELU_AUX_BIAS, aux: the mask of H
 *     Z  = W2·H + b2              outputs×n  = outputs×hidden · hidden×n    BIAS
 *     backward, from dZ, the gradient of the loss in Z
 *     dW2 = dZ·Hᵀ                 outputs×hidden                            BGRADA, bgrad: db2 = Σ over the pictures of dZ
 *     dH  = mask ⊙ (W2ᵀ·dZ)       hidden×n                                  DRELU_BGRAD, bgrad: db1 = Σ of dH
 *     dW1 = dH·Xᵀ                 hidden×inputs                             DEFAULT
 *
 * Transposes are ops of the plans, nothing is copied for them. The parameters are one block of memory, (W1, b1, W2, b2),
 * and the gradient is another like it. Gradients are either written or, with beta = 1 and BGRAD_ACCUMULATE, added to
 * that block: so several micro-batches make up one batch, and so, with the block first shrunk by the momentum, it *is*
 * the velocity of the descent.
 *
 * Everything lives in the memory of the context's backend. An error of the library ends the program: see must. */
#ifndef DEMO_NETWORK_H
#define DEMO_NETWORK_H

#include "epigemm.h"

/* Ends the program with the library's own sentence unless the status is a success. */
void must(epg_status status);

/* What becomes of the gradient that is there already: it is overwritten, or added to. */
enum { GRADIENT_WRITE = 0, GRADIENT_ADD = 1, GRADIENT_MODES = 2 };

/* Parts of the parameters. */
enum { PART_W1 = 0, PART_B1, PART_W2, PART_B2, PARTS };

/* The plans for one batch size. */
typedef struct network_plans {
	int64_t n;
	epg_plan *hidden, *hidden_only; /* with the mask for training, without it for prediction */
	epg_plan *output;
	epg_plan *output_gradient[GRADIENT_MODES], *hidden_gradient[GRADIENT_MODES], *input_gradient[GRADIENT_MODES];
	struct network_plans *next;
} network_plans;

typedef struct network {
	epg_context *context;
	int32_t type; /* EPG_F32 or EPG_F64 */
	int64_t inputs, hidden, outputs, max_n;
	int64_t start[PARTS], length[PARTS]; /* of a part in the block, in elements */
	int64_t block;                       /* elements of the block, padding included */
	void *parameters, *gradient;         /* blocks */
	void *x, *h, *z, *dz, *dh;           /* X, H, Z, dZ, dH as above */
	void *mask;                          /* of H, one bit per element */
	size_t mask_nbytes;
	void *one;                           /* the 1×1 matrix [1] */
	epg_plan *shrink, *step;             /* gradient ← μ·gradient; parameters ← parameters − rate·gradient·[1] */
	network_plans *plans;                /* made at the first use of each batch size */
	void *host;                          /* of Z's size */
} network;

typedef struct network_score {
	double loss;     /* sum over the pictures of −log p(label) */
	int64_t correct; /* pictures whose largest output is their label */
} network_score;

/* Makes a network for batches of up to max_n, with weights drawn from the seed and biases of 0. */
network *network_create(epg_context *context, int32_t type, int64_t inputs, int64_t hidden, int64_t outputs, int64_t max_n,
	uint64_t seed);
void network_destroy(network *net);

/* Computes Z for n pictures in host memory, inputs×n. Training also keeps the mask. */
void network_forward(network *net, const void *images, int64_t n, int training);

/* Softmax and cross-entropy of Z against the labels. With scale > 0 also dZ = scale·(softmax(Z) − onehot(label)); scale is
 * 1 / pictures in the batch. predicted and certainty (softmax of the predicted class), if not NULL, get one per picture. */
network_score network_loss(network *net, const uint8_t *labels, int64_t n, double scale, uint8_t *predicted, float *certainty);

/* Gradients of all parameters from dZ, mode as above. */
void network_backward(network *net, int64_t n, int mode);

/* gradient ← factor·gradient; parameters ← parameters − rate·gradient. */
void network_shrink_gradient(network *net, double factor);
void network_step(network *net, double rate);

/* Copies the n elements from start on out of a block, or into it, as double. */
void network_get(network *net, const void *block, int64_t start, int64_t n, double *to);
void network_set(network *net, void *block, int64_t start, int64_t n, const double *from);

#endif
