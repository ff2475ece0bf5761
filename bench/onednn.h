/* SPDX-License-Identifier: Apache-2.0
 *
 * A matrix product of oneDNN's, as a contestant of the benchmark. Where the build found no oneDNN, onednn_why tells so. */
#ifndef BENCH_ONEDNN_H
#define BENCH_ONEDNN_H

#include <stdbool.h>
#include <stdint.h>

typedef struct onednn onednn;

/* NULL if there is a oneDNN, else a sentence without its full stop. */
const char *onednn_why(void);

/* The library's version and threads, in static memory. */
const char *onednn_version(void);

/* D = W·X, column-major f32, W m×k (transposed: stored k×m), with bias per row if it is not NULL, and relu in the same primitive. The
 * caller owns what it returns and the matrices. NULL: oneDNN refused. */
onednn *onednn_create(int64_t m, int64_t n, int64_t k, bool transposed, bool relu, float *w, float *x, float *bias, float *d);
void onednn_run(onednn *product);
void onednn_destroy(onednn *product);

#endif
