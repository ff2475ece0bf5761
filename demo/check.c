/* SPDX-License-Identifier: Apache-2.0
 *
 * A difference quotient approximates the derivative only where the loss is smooth between its two points. It is not when
 * some ReLU switches on or off between them. The forward plans tell: the quotient is used only if the masks at both points
 * and in the middle are the same, bit for bit; parameters left out for that reason are counted and shown.
 *
 * The relative error of a part is |analytic − numeric| / |analytic| in the Euclidean norm over the tested parameters:
 * elementwise it would measure the rounding of the smallest elements only. With h = 10⁻⁵ the quotient's own errors are
 * h²/6 · L''' ≈ 10⁻¹⁰ and u·L/h ≈ 10⁻¹¹, well below the bound. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HIDDEN = 128, PICTURES = 48, TESTED = 400 };

#define STEP 1e-5
#define DIFFERENCE_BOUND 1e-6
#define MICRO_BOUND 1e-12 /* the same sums in another order: some hundred roundings of 10⁻¹⁶ */

static const char *const part_name[PARTS] = {"W1", "b1", "W2", "b2"};

typedef struct checker {
	network *net;
	int64_t n;
	double *images;
	uint8_t *labels, *mask, *mask_other;
	double *analytic; /* the gradient block */
} checker;

static void *memory(size_t count, size_t nbytes)
{
	void *p = calloc(count, nbytes);
	if (!p) {
		fputs("No memory for the check.\n", stderr);
		exit(1);
	}
	return p;
}

/* Biases begin at 0 in training; here every parameter is to matter. */
static void draw_biases(network *net)
{
	static const int biases[] = {PART_B1, PART_B2};
	for (int b = 0; b < 2; b++)
		for (int64_t i = 0; i < net->length[biases[b]]; i++) {
			const double value = 0.3 * sin(1.7 * (double)i + b);
			network_set(net, net->parameters, net->start[biases[b]] + i, 1, &value);
		}
}

static checker begin(epg_context *context, const dataset *set, uint64_t seed)
{
	checker c = {.n = set->train.count < PICTURES ? set->train.count : PICTURES};
	c.net = network_create(context, EPG_F64, set->pixels, HIDDEN, set->classes, c.n, seed);
	c.images = memory((size_t)(set->pixels * c.n), sizeof *c.images);
	c.labels = memory((size_t)c.n, 1);
	c.mask = memory(c.net->mask_nbytes, 1);
	c.mask_other = memory(c.net->mask_nbytes, 1);
	c.analytic = memory((size_t)c.net->block, sizeof *c.analytic);
	dataset_batch(set, &set->train, NULL, 0, c.n, EPG_F64, c.images, c.labels);
	draw_biases(c.net);
	return c;
}

static void end(checker *c)
{
	network_destroy(c->net);
	free(c->images);
	free(c->labels);
	free(c->mask);
	free(c->mask_other);
	free(c->analytic);
}

/* The mean loss at the present parameters, and its mask. */
static double loss_and_mask(const checker *c, uint8_t *mask)
{
	network_forward(c->net, c->images, c->n, 1);
	must(epg_download(c->net->context, mask, c->net->mask, c->net->mask_nbytes, NULL));
	return network_loss(c->net, c->labels, c->n, 0, NULL, NULL).loss / (double)c->n;
}

/* The derivative by one parameter; 0 when a ReLU switches within the step. */
static int quotient(const checker *c, int64_t i, double *derivative)
{
	double middle, loss[2];
	int smooth = 1;
	network_get(c->net, c->net->parameters, i, 1, &middle);
	for (int side = 0; side < 2; side++) {
		const double moved = middle + (side ? STEP : -STEP);
		network_set(c->net, c->net->parameters, i, 1, &moved);
		loss[side] = loss_and_mask(c, c->mask_other);
		smooth &= !memcmp(c->mask, c->mask_other, c->net->mask_nbytes);
	}
	network_set(c->net, c->net->parameters, i, 1, &middle);
	*derivative = (loss[1] - loss[0]) / (2 * STEP);
	return smooth;
}

/* One part: all of its parameters, or TESTED of them, spread evenly. A part with most left out proves nothing: it fails. */
static int check_part(const checker *c, int which)
{
	const int64_t length = c->net->length[which], tested = length < TESTED ? length : TESTED;
	int64_t left_out = 0;
	double difference = 0, norm = 0;
	for (int64_t t = 0; t < tested; t++) {
		const int64_t i = c->net->start[which] + t * length / tested;
		double numeric;
		if (!quotient(c, i, &numeric)) {
			left_out++;
			continue;
		}
		difference += (c->analytic[i] - numeric) * (c->analytic[i] - numeric);
		norm += c->analytic[i] * c->analytic[i];
	}
	const double error = sqrt(difference / norm);
	const int good = error < DIFFERENCE_BOUND && 2 * left_out < tested;
	printf("  %s: %3d of %6d tested, %2d left out at a kink of ReLU, relative error %.1e  %s\n", part_name[which], (int)tested,
		(int)length, (int)left_out, error, good ? "ok" : "WRONG");
	fflush(stdout);
	return good;
}

static int check_differences(checker *c)
{
	int good = 1;
	printf("Gradients against central differences, f64, %d pictures, bound %g:\n", (int)c->n, DIFFERENCE_BOUND);
	loss_and_mask(c, c->mask);
	network_loss(c->net, c->labels, c->n, 1.0 / (double)c->n, NULL, NULL);
	network_backward(c->net, c->n, GRADIENT_WRITE);
	network_get(c->net, c->net->gradient, 0, c->net->block, c->analytic);
	for (int which = 0; which < PARTS; which++)
		good &= check_part(c, which);
	return good;
}

/* The whole batch in pieces of unequal sizes. The gradient is full of NaN before: the first piece must overwrite it, and
 * with beta = 0 must not read it. */
static void run_micro_batches(checker *c, int *pieces)
{
	double *nan = memory((size_t)c->net->block, sizeof *nan);
	for (int64_t i = 0; i < c->net->block; i++)
		nan[i] = NAN;
	network_set(c->net, c->net->gradient, 0, c->net->block, nan);
	free(nan);
	*pieces = 0;
	for (int64_t first = 0, n; first < c->n; first += n, ++*pieces) {
		n = 7 * (*pieces + 1) < c->n - first ? 7 * (*pieces + 1) : c->n - first;
		network_forward(c->net, c->images + c->net->inputs * first, n, 1);
		network_loss(c->net, c->labels + first, n, 1.0 / (double)c->n, NULL, NULL);
		network_backward(c->net, n, first ? GRADIENT_ADD : GRADIENT_WRITE);
	}
}

static int check_micro_batches(checker *c)
{
	int good = 1, pieces;
	double *sum = memory((size_t)c->net->block, sizeof *sum);
	run_micro_batches(c, &pieces);
	network_get(c->net, c->net->gradient, 0, c->net->block, sum);
	printf("Gradients of %d micro-batches added up (beta = 1, BGRAD_ACCUMULATE) against the whole batch, bound %g:\n", pieces,
		MICRO_BOUND);
	for (int which = 0; which < PARTS; which++) {
		double difference = 0, norm = 0;
		for (int64_t i = c->net->start[which]; i < c->net->start[which] + c->net->length[which]; i++) {
			difference += (sum[i] - c->analytic[i]) * (sum[i] - c->analytic[i]);
			norm += c->analytic[i] * c->analytic[i];
		}
		const double error = sqrt(difference / norm);
		const int fine = error < MICRO_BOUND; /* also wrong when NaN */
		good &= fine;
		printf("  %s: relative error %.1e  %s\n", part_name[which], error, fine ? "ok" : "WRONG");
	}
	free(sum);
	return good;
}

int check_gradients(epg_context *context, const dataset *set, uint64_t seed)
{
	checker c = begin(context, set, seed);
	const int differences = check_differences(&c);
	const int micro_batches = check_micro_batches(&c);
	end(&c);
	puts(differences && micro_batches ? "All gradients are right." : "Some gradients are WRONG.");
	return differences && micro_batches;
}
