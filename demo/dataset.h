/* SPDX-License-Identifier: Apache-2.0
 *
 * A labelled set of pictures in the four files of MNIST: {train,t10k}-{images,labels}, as IDX, with or without .gz.
 * Pictures stay bytes; a batch is gathered, scaled and converted to the network's type when it is needed. */
#ifndef DEMO_DATASET_H
#define DEMO_DATASET_H

#include <stddef.h>
#include <stdint.h>

typedef struct pictures {
	int64_t count;
	uint8_t *images; /* picture i lies at i·pixels, its rows from top to bottom */
	uint8_t *labels;
} pictures;

typedef struct dataset {
	int64_t rows, cols, pixels, classes;
	pictures train, test;
	double mean, deviation; /* of the training pixels, as 0 … 255: the network sees (pixel - mean) / deviation */
	int fashion;            /* whether the names of Fashion-MNIST's classes apply */
} dataset;

/* Reads the four files of a directory. Returns 1, or 0 and a sentence in text. */
int dataset_read(const char *directory, dataset *set, char *text, size_t text_nbytes);
void dataset_free(dataset *set);

/* Name of a class: "Sneaker" for Fashion-MNIST, else its number. Valid until the program ends. */
const char *dataset_class(const dataset *set, int label);

/* Writes n pictures as the columns of a column-major pixels×n matrix of type EPG_F32 or EPG_F64: the j-th is
 * from->images[order[j]], or picture first + j where order is NULL; labels get theirs. */
void dataset_batch(const dataset *set, const pictures *from, const int64_t *order, int64_t first, int64_t n, int32_t type,
	void *images, uint8_t *labels);

#endif
