/* SPDX-License-Identifier: Apache-2.0
 *
 * Reader for IDX, the format of MNIST and its relatives: two zero bytes, a type byte, the number of dimensions, each
 * dimension as a big-endian 32-bit number, then the elements. Only unsigned bytes (type 8) are read, which is what all
 * those sets hold. Files may be compressed with gzip where the program was built with zlib. */
#ifndef DEMO_IDX_H
#define DEMO_IDX_H

#include <stddef.h>
#include <stdint.h>

enum { IDX_DIMENSIONS = 4 };

typedef struct idx {
	int dimensions;
	int64_t extent[IDX_DIMENSIONS]; /* those beyond dimensions are 1 */
	int64_t nbytes;                 /* their product */
	uint8_t *bytes;
} idx;

/* Reads a file. Returns 1 and fills *file, which the caller ends with idx_free; or returns 0, leaves *file alone and
 * writes into text one sentence that names the file and what is wrong with it. */
int idx_read(const char *path, idx *file, char *text, size_t text_nbytes);
void idx_free(idx *file);

#endif
