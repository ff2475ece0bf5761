/* SPDX-License-Identifier: Apache-2.0
 *
 * The file is read front to back through two small functions, so that zlib and stdio look alike. Nothing in the header
 * is believed before it is checked: sizes are bounded, and memory grows with the bytes that really come, so that a
 * damaged header cannot ask for gigabytes. */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "idx.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef HAVE_ZLIB
#include <zlib.h>
#endif

#define IDX_MAX_NBYTES ((int64_t)1 << 30) /* MNIST has 47 MB; its largest relative, EMNIST, 550 MB */

/* ---- Bytes from a file, compressed or not ---- */

#ifdef HAVE_ZLIB
typedef gzFile stream;

static stream stream_open(const char *path)
{
	return gzopen(path, "rb"); /* also reads files that are not compressed */
}

/* Bytes read, fewer at the end of the file; -1 and a reason when the file is damaged. */
static int64_t stream_read(stream from, void *to, int64_t nbytes, const char **why)
{
	int got = gzread(from, to, (unsigned)nbytes), code = Z_OK;
	const char *message = gzerror(from, &code);
	/* Z_BUF_ERROR: the compressed data end too early. zlib still hands out what it had. */
	if (got >= 0 && code != Z_BUF_ERROR && code != Z_DATA_ERROR)
		return got;
	const char *colon = strrchr(message, ':'); /* zlib puts the path before its message, and so do we */
	*why = code == Z_ERRNO ? strerror(errno) : code == Z_BUF_ERROR ? "the gzip data end too early" : colon ? colon + 2 : message;
	return -1;
}

static void stream_close(stream from)
{
	gzclose_r(from);
}
#else
typedef FILE *stream;

static stream stream_open(const char *path)
{
	return fopen(path, "rb");
}

static int64_t stream_read(stream from, void *to, int64_t nbytes, const char **why)
{
	int64_t got = (int64_t)fread(to, 1, (size_t)nbytes, from);
	if (got == nbytes || !ferror(from))
		return got;
	*why = strerror(errno);
	return -1;
}

static void stream_close(stream from)
{
	fclose(from);
}
#endif

/* ---- IDX ---- */

#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
static int refuse(const char *path, char *text, size_t text_nbytes, const char *format, ...)
{
	char why[256];
	va_list list;
	va_start(list, format);
	vsnprintf(why, sizeof why, format, list);
	va_end(list);
	snprintf(text, text_nbytes, "%s: %s.", path, why);
	return 0;
}

static int64_t big_endian(const uint8_t *b)
{
	return (int64_t)b[0] << 24 | (int64_t)b[1] << 16 | (int64_t)b[2] << 8 | b[3];
}

static int read_header(stream from, const char *path, idx *file, char *text, size_t text_nbytes)
{
	uint8_t head[4 + 4 * IDX_DIMENSIONS] = {0};
	const char *why = NULL;
	int64_t got = stream_read(from, head, 4, &why);
	if (got < 0)
		return refuse(path, text, text_nbytes, "cannot be read: %s", why);
	if (got >= 2 && head[0] == 0x1f && head[1] == 0x8b)
		return refuse(path, text, text_nbytes,
			"is compressed with gzip, and this program was built without zlib; gunzip it, or install zlib's headers and build again");
	if (got < 4 || head[0] || head[1] || head[2] != 8)
		return refuse(path, text, text_nbytes, "is not an IDX file of unsigned bytes (it should begin with 00 00 08)");
	if (head[3] < 1 || head[3] > IDX_DIMENSIONS)
		return refuse(path, text, text_nbytes, "has %d dimensions; 1 to %d are understood", head[3], IDX_DIMENSIONS);
	got = stream_read(from, head + 4, 4 * head[3], &why);
	if (got < 4 * head[3])
		return refuse(path, text, text_nbytes, "ends within its header%s%s", got < 0 ? ": " : "", got < 0 ? why : "");
	file->dimensions = head[3];
	file->nbytes = 1;
	for (int i = 0; i < IDX_DIMENSIONS; i++) {
		file->extent[i] = i < head[3] ? big_endian(head + 4 + 4 * i) : 1;
		if (file->extent[i] < 1 || file->extent[i] > IDX_MAX_NBYTES / file->nbytes)
			return refuse(path, text, text_nbytes, "has an extent of %lld, which makes it empty or larger than 1 GiB",
				(long long)file->extent[i]);
		file->nbytes *= file->extent[i];
	}
	return 1;
}

/* The elements, in steps of at most 16 MiB; then the end of the file must come. */
static int read_elements(stream from, const char *path, idx *file, char *text, size_t text_nbytes)
{
	const int64_t step = (int64_t)1 << 24;
	const char *why = NULL;
	int64_t have = 0, got = 0;
	uint8_t surplus;
	while (have < file->nbytes) {
		int64_t want = file->nbytes - have < step ? file->nbytes - have : step;
		uint8_t *larger = realloc(file->bytes, (size_t)(have + want));
		if (!larger)
			return refuse(path, text, text_nbytes, "does not fit into memory (%lld bytes)", (long long)file->nbytes);
		file->bytes = larger;
		got = stream_read(from, file->bytes + have, want, &why);
		if (got < 0)
			return refuse(path, text, text_nbytes, "is damaged: %s", why);
		have += got;
		if (got < want)
			return refuse(path, text, text_nbytes, "ends after %lld of %lld bytes", (long long)have, (long long)file->nbytes);
	}
	got = stream_read(from, &surplus, 1, &why); /* this is also where zlib checks the sum of the whole */
	if (got < 0)
		return refuse(path, text, text_nbytes, "is damaged: %s", why);
	if (got > 0)
		return refuse(path, text, text_nbytes, "goes on after its %lld bytes", (long long)file->nbytes);
	return 1;
}

int idx_read(const char *path, idx *file, char *text, size_t text_nbytes)
{
	idx found = {0};
	stream from = stream_open(path);
	if (!from)
		return refuse(path, text, text_nbytes, "cannot be opened: %s", strerror(errno));
	int good = read_header(from, path, &found, text, text_nbytes) && read_elements(from, path, &found, text, text_nbytes);
	stream_close(from);
	if (good)
		*file = found;
	else
		free(found.bytes);
	return good;
}

void idx_free(idx *file)
{
	free(file->bytes);
	*file = (idx){0};
}
