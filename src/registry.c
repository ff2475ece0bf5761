/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of backends. One that is not linked in is a plug-in, a file with one symbol. It is looked for where
 * EPIGEMM_PLUGIN_DIR says and nowhere else, or, without that, in epigemm/ beside our own library, then where the package was
 * configured to be. It is opened once, when first asked for, and never closed. A failure is a reason, kept and told. */
#define _GNU_SOURCE
#include "registry.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"

enum { PATH_NBYTES = 4096, WHY_NBYTES = 512 };

typedef struct plugin {
	bool tried;
	const epg_backend *table;
	char why[WHY_NBYTES];
} plugin;

typedef struct registry_row {
	const char *name;
	const epg_backend *linked; /* NULL: a plug-in */
	plugin *plugin;
} registry_row;

static plugin cuda_plugin;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const registry_row rows[] = {
	{"cpu", &epg_cpu_backend, NULL},
	{"cuda", NULL, &cuda_plugin},
};

/* ---- Services ---- */

static void log_for_plugin(const void *log, int32_t level, const char *format, ...)
{
	char message[2 * EPG_TEXT_NBYTES];
	va_list list;
	va_start(list, format);
	vsnprintf(message, sizeof message, format, list);
	va_end(list);
	if (log)
		epg_log_write(log, level, "%s", message);
}

static const epg_services services = {
	.abi = EPG_BACKEND_ABI, .nbytes = sizeof services, .fail = epg_fail, .log = log_for_plugin, .last_error = epg_last_error,
};

/* ---- Opening ---- */

/* The reason so far, to be gone on with. */
static epg_text reason_of(plugin *p) { return (epg_text){p->why, sizeof p->why, strlen(p->why)}; }

static bool accept(plugin *p, const char *path, const epg_backend *table)
{
	epg_text why = reason_of(p);
	if (!table)
		epg_text_add(&why, "%s was built for another version of epigemm: it does not take ABI %d", path, EPG_BACKEND_ABI);
	else if (table->abi != EPG_BACKEND_ABI)
		epg_text_add(&why, "%s has ABI %u, but epigemm %s has %d", path, table->abi, EPG_VERSION, EPG_BACKEND_ABI);
	else if (table->nbytes != sizeof *table)
		epg_text_add(&why, "%s has a table of %u bytes, but that of epigemm %s has %zu", path, table->nbytes, EPG_VERSION, sizeof *table);
	else
		p->table = table;
	return p->table;
}

static bool open_file(plugin *p, const char *path)
{
	epg_backend_entry entry;
	epg_text why = reason_of(p);
	void *file = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!file) {
		epg_text_add(&why, "the plug-in cannot be opened: %s", dlerror());
		return false;
	}
	*(void **)&entry = dlsym(file, EPG_BACKEND_SYMBOL);
	if (!entry) {
		epg_text_add(&why, "%s has no symbol " EPG_BACKEND_SYMBOL, path);
		return false;
	}
	return accept(p, path, entry(&services));
}

/* The first file of that name that is there decides: true when there is one, usable or not. */
static bool try_directory(plugin *p, const char *directory, const char *name)
{
	char path[PATH_NBYTES];
	epg_text why = reason_of(p);
	if (snprintf(path, sizeof path, "%s/%s.so", directory, name) >= (int)sizeof path || access(path, F_OK)) {
		epg_text_add(&why, "%s%s/%s.so", why.length ? ", nor " : "there is no plug-in ", directory, name);
		return false;
	}
	open_file(p, path);
	return true;
}

/* The directory 'epigemm' beside the file that this code is in. Only an absolute name tells: that of a static program is argv[0]. */
static bool beside_us(char directory[PATH_NBYTES])
{
	Dl_info info;
	const char *slash;
	if (!dladdr(&services, &info) || !info.dli_fname || info.dli_fname[0] != '/' || !(slash = strrchr(info.dli_fname, '/')))
		return false;
	return snprintf(directory, PATH_NBYTES, "%.*s/epigemm", (int)(slash - info.dli_fname), info.dli_fname) < PATH_NBYTES;
}

static void open_plugin(plugin *p, const char *name)
{
	const char *forced = secure_getenv("EPIGEMM_PLUGIN_DIR");
	char directory[PATH_NBYTES];
	p->tried = true;
	if (forced && *forced) {
		try_directory(p, forced, name);
		return;
	}
	if (beside_us(directory) && try_directory(p, directory, name))
		return;
	try_directory(p, EPG_PKGLIBDIR, name);
}

static const epg_backend *table_of(const registry_row *row, char *why, size_t why_nbytes)
{
	if (row->linked)
		return row->linked;
	pthread_mutex_lock(&lock);
	if (!row->plugin->tried)
		open_plugin(row->plugin, row->name);
	pthread_mutex_unlock(&lock);
	if (!row->plugin->table)
		snprintf(why, why_nbytes, "%s", row->plugin->why);
	return row->plugin->table;
}

const epg_backend *epg_registry_find(const char *name, bool *known, char *why, size_t why_nbytes)
{
	*known = false;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (strcmp(rows[i].name, name))
			continue;
		*known = true;
		const epg_backend *table = table_of(&rows[i], why, why_nbytes);
		return table && table->probe(why, why_nbytes) ? table : NULL;
	}
	snprintf(why, why_nbytes, "backend is '%s', but must be cpu or cuda", name);
	return NULL;
}
