/* SPDX-License-Identifier: Apache-2.0
 *
 * The demo's two pictures: the curves of a training, and a sheet of test pictures with what the network makes of them. */
#ifndef DEMO_FIGURES_H
#define DEMO_FIGURES_H

#include "dataset.h"

typedef struct epoch {
	double train_loss, test_loss;         /* means per picture */
	double train_accuracy, test_accuracy; /* 0 … 1; of training: while it went on */
	double seconds;                       /* of its training */
} epoch;

/* Both return 0, with errno set, when the file cannot be written. */
int figure_curves(const char *path, const epoch *epochs, int count, const char *subtitle);

/* predicted and certainty: one per test picture. */
int figure_predictions(const char *path, const dataset *set, const uint8_t *predicted, const float *certainty);

#endif
