/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of backends. Plug-ins come from files; this version has none, and says so. */
#include "registry.h"

#include <stdio.h>
#include <string.h>

typedef struct registry_row {
	const char *name;
	const epg_backend *linked; /* NULL: a plug-in */
} registry_row;

static const registry_row rows[] = {
	{"cpu", &epg_cpu_backend},
	{"cuda", NULL},
};

const epg_backend *epg_registry_find(const char *name, bool *known, char *why, size_t why_nbytes)
{
	*known = false;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (strcmp(rows[i].name, name))
			continue;
		*known = true;
		if (rows[i].linked)
			return rows[i].linked->probe(why, why_nbytes) ? rows[i].linked : NULL;
		snprintf(why, why_nbytes, "epigemm %s has no %s backend yet", EPG_VERSION, name);
		return NULL;
	}
	snprintf(why, why_nbytes, "backend is '%s', but must be cpu or cuda", name);
	return NULL;
}
