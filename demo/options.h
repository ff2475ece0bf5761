/* SPDX-License-Identifier: Apache-2.0
 *
 * The demo's command line. */
#ifndef DEMO_OPTIONS_H
#define DEMO_OPTIONS_H

#include <stdint.h>

typedef struct options {
	const char *backend, *data, *out, *losses; /* losses NULL: none */
	int64_t epochs, batch, threads;
	uint64_t seed;
	double rate, momentum;
	int32_t type; /* EPG_F32 or EPG_F64 */
	int check, quiet;
} options;

/* Reads the command line. Ends the program after --help, and after a sentence when something is not understood. */
void options_read(options *o, int argc, char **argv);

#endif
