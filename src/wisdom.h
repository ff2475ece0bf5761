/* SPDX-License-Identifier: Apache-2.0
 *
 * Wisdom: which pin was measured fastest for a problem line. A small sorted array per context; the file is text, one entry
 * a line, each with its checksum and the stamp (library versions and device) that it holds for. Callers hold the context's
 * lock. */
#ifndef EPG_WISDOM_H
#define EPG_WISDOM_H

#include <stdbool.h>

#include "epigemm.h"
#include "log.h"

typedef struct epg_wisdom_entry {
	char *line, *pin;
} epg_wisdom_entry;

typedef struct epg_wisdom {
	epg_wisdom_entry *entries; /* sorted by line */
	size_t count, capacity;
} epg_wisdom;

/* The pin for a problem line, or NULL. */
const char *epg_wisdom_find(const epg_wisdom *wisdom, const char *line);

/* Adds or replaces an entry. EPG_NO_MEMORY leaves the wisdom as it was. */
epg_status epg_wisdom_add(epg_wisdom *wisdom, const char *line, const char *pin);

void epg_wisdom_free(epg_wisdom *wisdom);

/* The file functions; stamp is the backend's. */
epg_status epg_wisdom_write(const epg_wisdom *wisdom, const char *stamp, const char *path);

/* check says whether an entry makes sense for this context; NULL if so, else why not. */
epg_status epg_wisdom_read(epg_wisdom *wisdom, const char *stamp, const char *path, const epg_log *log,
	bool (*check)(const void *user, const char *line, const char *pin, char *why, size_t why_nbytes), const void *user, int64_t *accepted, int64_t *rejected);

#endif
