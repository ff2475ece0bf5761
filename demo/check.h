/* SPDX-License-Identifier: Apache-2.0
 *
 * Is the gradient right? Two answers that need no second implementation: finite differences of the loss, and the sum of
 * micro-batches against the whole batch. */
#ifndef DEMO_CHECK_H
#define DEMO_CHECK_H

#include "dataset.h"
#include "network.h"

/* Runs both checks in f64 on a few training pictures and prints a line for each part of the parameters; returns 1 when all
 * are within their bounds. */
int check_gradients(epg_context *context, const dataset *set, uint64_t seed);

#endif
