/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the four files, checks that they belong together, and turns bytes into numbers. */
#include "dataset.h"

#include "epigemm.h"
#include "idx.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads directory/part-kind-idxN-ubyte under whichever of its usual names is there. */
static int read_file(const char *directory, const char *part, const char *kind, int dimensions, idx *file, char *text,
	size_t text_nbytes)
{
	static const char *const endings[] = {"", ".gz"};
	char path[4096], first[4096];
	for (int name = 0; name < 4; name++) {
		snprintf(path, sizeof path, "%s/%s-%s%cidx%d-ubyte%s", directory, part, kind, name < 2 ? '-' : '.', dimensions,
			endings[name % 2]);
		if (name == 0)
			memcpy(first, path, sizeof first);
		FILE *there = fopen(path, "rb");
		if (!there)
			continue;
		fclose(there);
		if (!idx_read(path, file, text, text_nbytes))
			return 0;
		if (file->dimensions == dimensions)
			return 1;
		snprintf(text, text_nbytes, "%s: has %d dimensions instead of %d.", path, file->dimensions, dimensions);
		idx_free(file);
		return 0;
	}
	snprintf(text, text_nbytes, "%s: there is no such file, with or without .gz.", first);
	return 0;
}

static int read_pictures(const char *directory, const char *part, dataset *set, pictures *to, char *text, size_t text_nbytes)
{
	idx images = {0}, labels = {0};
	if (!read_file(directory, part, "images", 3, &images, text, text_nbytes))
		return 0;
	to->images = images.bytes;
	to->count = images.extent[0];
	if (!read_file(directory, part, "labels", 1, &labels, text, text_nbytes))
		return 0;
	to->labels = labels.bytes;
	if (labels.extent[0] != to->count) {
		snprintf(text, text_nbytes, "%s: %lld %s images but %lld labels.", directory, (long long)to->count, part,
			(long long)labels.extent[0]);
		return 0;
	}
	if (set->pixels && (images.extent[1] != set->rows || images.extent[2] != set->cols)) {
		snprintf(text, text_nbytes, "%s: training pictures are %lld×%lld, test pictures %lld×%lld.", directory,
			(long long)set->rows, (long long)set->cols, (long long)images.extent[1], (long long)images.extent[2]);
		return 0;
	}
	set->rows = images.extent[1];
	set->cols = images.extent[2];
	set->pixels = set->rows * set->cols;
	for (int64_t i = 0; i < to->count; i++)
		if (to->labels[i] >= set->classes)
			set->classes = to->labels[i] + 1;
	return 1;
}

/* Mean and deviation come from a histogram: exact, and one pass. */
static void measure(dataset *set)
{
	int64_t histogram[256] = {0}, pixels = set->train.count * set->pixels;
	double sum = 0, squares = 0;
	for (int64_t i = 0; i < pixels; i++)
		histogram[set->train.images[i]]++;
	for (int v = 0; v < 256; v++)
		sum += (double)v * (double)histogram[v];
	set->mean = sum / (double)pixels;
	for (int v = 0; v < 256; v++)
		squares += (v - set->mean) * (v - set->mean) * (double)histogram[v];
	set->deviation = squares > 0 ? sqrt(squares / (double)pixels) : 1;
}

int dataset_read(const char *directory, dataset *set, char *text, size_t text_nbytes)
{
	*set = (dataset){.classes = 2};
	if (!read_pictures(directory, "train", set, &set->train, text, text_nbytes) ||
		!read_pictures(directory, "t10k", set, &set->test, text, text_nbytes)) {
		dataset_free(set);
		return 0;
	}
	measure(set);
	set->fashion = strstr(directory, "fashion") && set->classes == 10; /* the files themselves do not say */
	return 1;
}

void dataset_free(dataset *set)
{
	free(set->train.images);
	free(set->train.labels);
	free(set->test.images);
	free(set->test.labels);
	*set = (dataset){0};
}

const char *dataset_class(const dataset *set, int label)
{
	static const char *const fashion[10] = {"T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker",
		"Bag", "Ankle boot"};
	static char numbers[256][4];
	if (set->fashion && label < 10)
		return fashion[label];
	snprintf(numbers[label & 255], sizeof numbers[0], "%d", label & 255);
	return numbers[label & 255];
}

void dataset_batch(const dataset *set, const pictures *from, const int64_t *order, int64_t first, int64_t n, int32_t type,
	void *images, uint8_t *labels)
{
	float table32[256];
	double table64[256];
	for (int v = 0; v < 256; v++) {
		table64[v] = (v - set->mean) / set->deviation;
		table32[v] = (float)table64[v];
	}
	for (int64_t j = 0; j < n; j++) {
		int64_t source = order ? order[j] : first + j;
		const uint8_t *picture = from->images + source * set->pixels;
		labels[j] = from->labels[source];
		if (type == EPG_F32)
			for (int64_t p = 0; p < set->pixels; p++)
				((float *)images)[j * set->pixels + p] = table32[picture[p]];
		else
			for (int64_t p = 0; p < set->pixels; p++)
				((double *)images)[j * set->pixels + p] = table64[picture[p]];
	}
}
