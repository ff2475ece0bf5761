/* SPDX-License-Identifier: Apache-2.0
 *
 * How many threads: the default of a context, and what an execution may use at the moment. In a container the processors
 * that the machine has are not those that the process gets, so the cgroup's CPU quota counts, of versions 1 and 2, its own
 * and that of every group above it. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cpu.h"

enum { PATH_NBYTES = 1024 };

/* ---- The cgroup ---- */

/* The two numbers that begin a file ("max" or a missing second one is 0); false if there is no such file. */
static bool read_numbers(const char *path, int64_t *first, int64_t *second)
{
	char text[128] = "", *end;
	FILE *file = fopen(path, "re");
	if (!file)
		return false;
	bool got = fgets(text, sizeof text, file) != NULL;
	fclose(file);
	*first = strtoll(text, &end, 10);
	*second = end == text ? 0 : strtoll(end, NULL, 10);
	return got && end != text;
}

/* Processors that a quota of so many microseconds a period is worth, rounded up; INT32_MAX: no limit. */
static int32_t quota_threads(int64_t quota, int64_t period)
{
	if (quota <= 0 || period <= 0)
		return INT32_MAX;
	int64_t threads = quota / period + (quota % period != 0);
	return threads < INT32_MAX ? (int32_t)threads : INT32_MAX;
}

/* The quota that the files of one folder set. */
static int32_t folder_threads(const char *folder, bool v2)
{
	char path[2 * PATH_NBYTES + 64];
	int64_t quota = 0, period = 0, unused;
	snprintf(path, sizeof path, "%s/%s", folder, v2 ? "cpu.max" : "cpu.cfs_quota_us");
	if (!read_numbers(path, &quota, &period))
		return INT32_MAX;
	if (v2)
		return quota_threads(quota, period);
	snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
	return read_numbers(path, &period, &unused) ? quota_threads(quota, period) : INT32_MAX;
}

/* The smallest quota from the group's folder up to the mount. */
static int32_t path_threads(const char *mount, const char *group, bool v2)
{
	char folder[2 * PATH_NBYTES];
	int32_t least = INT32_MAX;
	size_t root = strlen(mount);
	int needed = snprintf(folder, sizeof folder, "%s%s", mount, strstr(group, "..") ? "" : group);
	if (needed < 0 || (size_t)needed >= sizeof folder)
		return INT32_MAX;
	for (;;) {
		int32_t threads = folder_threads(folder, v2);
		least = threads < least ? threads : least;
		char *slash = strrchr(folder + root, '/');
		if (!slash)
			return least;
		*slash = 0;
	}
}

/* Does the comma list name the controller? */
static bool lists_cpu(const char *controllers)
{
	size_t length;
	for (; *controllers; controllers += length + (controllers[length] == ',')) {
		length = strcspn(controllers, ",");
		if (length == 3 && memcmp(controllers, "cpu", 3) == 0)
			return true;
	}
	return false;
}

/* A line "number:controllers:/path"; no controllers is version 2. */
static int32_t line_threads(const char *cgroup_root, char *line)
{
	char mount[2 * PATH_NBYTES];
	char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
	if (!group)
		return INT32_MAX;
	*group++ = 0;
	controllers++;
	group[strcspn(group, "\n")] = 0;
	bool v2 = *controllers == 0;
	if (!v2 && !lists_cpu(controllers))
		return INT32_MAX;
	snprintf(mount, sizeof mount, "%s/sys/fs/cgroup%s%s", cgroup_root, v2 ? "" : "/", controllers);
	int32_t threads = path_threads(mount, group, v2);
	if (v2)
		return threads;
	snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/cpu", cgroup_root);
	int32_t short_name = path_threads(mount, group, false);
	return short_name < threads ? short_name : threads;
}

static int32_t cgroup_threads(const char *cgroup_root)
{
	char path[PATH_NBYTES], line[PATH_NBYTES];
	int32_t least = INT32_MAX;
	snprintf(path, sizeof path, "%s/proc/self/cgroup", cgroup_root);
	FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file)) {
		int32_t threads = line_threads(cgroup_root, line);
		least = threads < least ? threads : least;
	}
	if (file)
		fclose(file);
	return least;
}

/* ---- The default ---- */

/* The first number of OMP_NUM_THREADS; INT32_MAX when it is none. */
static int32_t omp_threads(const char *text)
{
	char *end;
	if (!text)
		return INT32_MAX;
	errno = 0;
	long long number = strtoll(text, &end, 10);
	end += strspn(end, " \t");
	return end == text || (*end && *end != ',') || errno || number < 1 || number > INT32_MAX ? INT32_MAX : (int32_t)number;
}

int32_t epg_cpu_default_threads(const char *cgroup_root, const char *omp_num_threads, int32_t affinity, const char **reason)
{
	const struct { int32_t threads; const char *name; } limits[] = {
		{affinity < 1 ? 1 : affinity, "affinity"}, {cgroup_threads(cgroup_root), "cgroup quota"}, {omp_threads(omp_num_threads), "OMP_NUM_THREADS"}};
	int least = 0;
	for (int i = 1; i < 3; i++)
		if (limits[i].threads < limits[least].threads)
			least = i;
	*reason = limits[least].name;
	return limits[least].threads;
}

int32_t epg_cpu_affinity(void)
{
	for (int cpus = 1024; cpus <= 1 << 20; cpus *= 4) {
		cpu_set_t *set = CPU_ALLOC((size_t)cpus);
		if (!set)
			break;
		bool got = sched_getaffinity(0, CPU_ALLOC_SIZE((size_t)cpus), set) == 0;
		int count = got ? CPU_COUNT_S(CPU_ALLOC_SIZE((size_t)cpus), set) : 0;
		CPU_FREE(set);
		if (got)
			return count;
	}
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	return online < 1 ? 1 : online > INT32_MAX ? INT32_MAX : (int32_t)online;
}

/* ---- At the moment ---- */

static volatile bool forked;

static void in_child(void)
{
	forked = true;
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

int32_t epg_cpu_usable_threads(int32_t planned)
{
	return planned > 1 && (forked || omp_in_parallel()) ? 1 : planned;
}
