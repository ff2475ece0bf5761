/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a fuzz target without a fuzzer, for make check: over each file of its corpus, then over some thousand mutations
 * of them that are the same each time. A fault ends the process, which the TAP driver counts as an error; the last
 * input is kept in a file whose name was printed first. With arguments: over those files only, to repeat a crash. */
#include "fuzz.h"

#include <dirent.h>
#include <unistd.h>

#include "../tap.h"

enum { NFILES = 256, LONGEST = 4096, MUTATIONS = 4000 };

static struct { uint8_t *data; size_t nbytes; } corpus[NFILES];
static int nfiles;
static uint64_t state = 88172645463325252u;

static uint32_t draw(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 32) % n;
}

static int read_input(const char *path)
{
	FILE *f = fopen(path, "rb");
	if (!f || nfiles == NFILES) {
		if (f)
			fclose(f);
		return 0;
	}
	corpus[nfiles].data = malloc(LONGEST);
	corpus[nfiles].nbytes = fread(corpus[nfiles].data, 1, LONGEST, f);
	fclose(f);
	nfiles++;
	return 1;
}

static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

static void read_corpus(void)
{
	const char *srcdir = getenv("srcdir");
	char folder[1024], path[2048];
	struct dirent **names;
	snprintf(folder, sizeof folder, "%s/tests/fuzz/corpus/%s", srcdir ? srcdir : ".", fuzz_name);
	int n = scandir(folder, &names, NULL, by_name);
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
		if (names[i]->d_name[0] != '.')
			read_input(path);
		free(names[i]);
	}
	if (n >= 0)
		free(names);
}

/* Changes the input in one to four places: a byte, a bit, a run deleted, repeated, or taken from another file. */
static size_t mutate(uint8_t *x, size_t n)
{
	for (uint32_t times = 1 + draw(4); times; times--) {
		uint32_t what = draw(6);
		size_t at = n ? draw((uint32_t)n) : 0, length = n ? 1 + draw((uint32_t)(n - at < 16 ? n - at : 16)) : 0;
		if (what == 0 && n) {
			x[at] = (uint8_t)draw(256);
		} else if (what == 1 && n) {
			x[at] ^= (uint8_t)(1u << draw(8));
		} else if (what == 2 && n > length) {
			memmove(x + at, x + at + length, n - at - length);
			n -= length;
		} else if (what == 3 && n + length <= LONGEST) {
			memmove(x + at + length, x + at, n - at);
			n += length;
		} else if (what == 4) {
			uint32_t other = draw((uint32_t)nfiles);
			size_t from = corpus[other].nbytes ? draw((uint32_t)corpus[other].nbytes) : 0, m = corpus[other].nbytes - from;
			m = m < LONGEST - at ? m : LONGEST - at;
			memcpy(x + at, corpus[other].data + from, m);
			n = n > at + m ? n : at + m;
		} else if (n < LONGEST) {
			x[n++] = (uint8_t)draw(256);
		}
	}
	return n;
}

/* The input on disk before it is run: after a crash it is still there. */
static void keep(FILE *f, const uint8_t *x, size_t n)
{
	rewind(f);
	if (ftruncate(fileno(f), 0) || fwrite(x, 1, n, f) != n || fflush(f))
		diag("cannot keep the input");
}

static void run_mutations(void)
{
	uint8_t *x = malloc(LONGEST), *exact;
	char path[64];
	snprintf(path, sizeof path, "%s.fuzz-input", fuzz_name);
	FILE *f = fopen(path, "wb");
	diag("last input in %s; repeat with %s as the argument", path, path);
	for (int i = 0; i < MUTATIONS; i++) {
		uint32_t which = draw((uint32_t)nfiles);
		memcpy(x, corpus[which].data, corpus[which].nbytes);
		size_t n = mutate(x, corpus[which].nbytes);
		if (f)
			keep(f, x, n);
		exact = malloc(n ? n : 1); /* so that a tool sees reads behind the end */
		memcpy(exact, x, n);
		LLVMFuzzerTestOneInput(exact, n);
		free(exact);
	}
	if (f)
		fclose(f);
	remove(path);
	free(x);
	ok(1, "%s: %d mutations", fuzz_name, MUTATIONS);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		ok(read_input(argv[i]), "read %s", argv[i]);
	if (argc == 1)
		read_corpus();
	ok(nfiles > 0, "%s: %d files", fuzz_name, nfiles);
	for (int i = 0; i < nfiles; i++)
		LLVMFuzzerTestOneInput(corpus[i].data, corpus[i].nbytes);
	ok(1, "%s: the files of the corpus", fuzz_name);
	if (argc == 1 && nfiles)
		run_mutations();
	for (int i = 0; i < nfiles; i++)
		free(corpus[i].data);
	return done_testing();
}
