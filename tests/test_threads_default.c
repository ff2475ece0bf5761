/* SPDX-License-Identifier: Apache-2.0
 *
 * How many threads a context takes by default: the smallest of the affinity mask, the cgroup's CPU quota rounded up, and
 * OMP_NUM_THREADS; an explicit count wins. The decision is an internal function of the CPU backend that reads the cgroup
 * files below a directory given to it, so the cases are trees of small files made here. */
#include "robust.h"

#include <sched.h>
#include <sys/stat.h>

/* src/cpu/cpu.h */
int32_t epg_cpu_default_threads(const char *cgroup_root, const char *omp_num_threads, int32_t affinity, const char **reason);

enum { NFILES = 4 };

typedef struct {
	const char *path, *text;
} file;

typedef struct {
	const char *what;
	file files[NFILES];
	const char *omp;
	int32_t affinity, threads;
	const char *reason; /* a word of it */
} row;

#define AFFINITY "affinity"
#define QUOTA "cgroup"
#define OMP "OMP_NUM_THREADS"
#define V2 "sys/fs/cgroup/"
#define SELF "proc/self/cgroup"

static const row rows[] = {
	{ "no files at all", { { 0 } }, NULL, 8, 8, AFFINITY },
	{ "v2, two CPUs", { { SELF, "0::/\n" }, { V2 "cpu.max", "200000 100000\n" } }, NULL, 8, 2, QUOTA },
	{ "v2, half a CPU", { { SELF, "0::/\n" }, { V2 "cpu.max", "50000 100000\n" } }, NULL, 8, 1, QUOTA },
	{ "v2, two and a half CPUs", { { SELF, "0::/\n" }, { V2 "cpu.max", "250000 100000\n" } }, NULL, 8, 3, QUOTA },
	{ "v2, no limit", { { SELF, "0::/\n" }, { V2 "cpu.max", "max 100000\n" } }, NULL, 8, 8, AFFINITY },
	{ "v2, another period", { { SELF, "0::/\n" }, { V2 "cpu.max", "60000 20000\n" } }, NULL, 8, 3, QUOTA },
	{ "v2, more than the mask", { { SELF, "0::/\n" }, { V2 "cpu.max", "6400000 100000\n" } }, NULL, 8, 8, AFFINITY },
	{ "v2, own group", { { SELF, "0::/app\n" }, { V2 "app/cpu.max", "300000 100000\n" } }, NULL, 8, 3, QUOTA },
	{ "v2, the parent's limit is smaller",
		{ { SELF, "0::/app/worker\n" }, { V2 "app/cpu.max", "200000 100000\n" }, { V2 "app/worker/cpu.max", "400000 100000\n" } }, NULL, 8, 2, QUOTA },
	{ "v2, the child's limit is smaller",
		{ { SELF, "0::/app/worker\n" }, { V2 "app/cpu.max", "400000 100000\n" }, { V2 "app/worker/cpu.max", "100000 100000\n" } }, NULL, 8, 1, QUOTA },
	{ "v2, child without limit",
		{ { SELF, "0::/app/worker\n" }, { V2 "app/cpu.max", "200000 100000\n" }, { V2 "app/worker/cpu.max", "max 100000\n" } }, NULL, 8, 2, QUOTA },
	{ "v2, the middle one has no file", { { SELF, "0::/a/b/c\n" }, { V2 "a/cpu.max", "500000 100000\n" }, { V2 "a/b/c/cpu.max", "700000 100000\n" } },
		NULL, 8, 5, QUOTA },
	{ "v1, quota", { { SELF, "3:memory:/\n4:cpu,cpuacct:/\n" }, { V2 "cpu,cpuacct/cpu.cfs_quota_us", "200000\n" },
		{ V2 "cpu,cpuacct/cpu.cfs_period_us", "100000\n" } }, NULL, 8, 2, QUOTA },
	{ "v1, no limit", { { SELF, "4:cpu,cpuacct:/\n" }, { V2 "cpu,cpuacct/cpu.cfs_quota_us", "-1\n" },
		{ V2 "cpu,cpuacct/cpu.cfs_period_us", "100000\n" } }, NULL, 8, 8, AFFINITY },
	{ "garbage in cpu.max", { { SELF, "0::/\n" }, { V2 "cpu.max", "many few\n" } }, NULL, 8, 8, AFFINITY },
	{ "period 0", { { SELF, "0::/\n" }, { V2 "cpu.max", "100000 0\n" } }, NULL, 8, 8, AFFINITY },
	{ "quota 0", { { SELF, "0::/\n" }, { V2 "cpu.max", "0 100000\n" } }, NULL, 8, -1, "" },
	{ "empty cpu.max", { { SELF, "0::/\n" }, { V2 "cpu.max", "" } }, NULL, 8, 8, AFFINITY },
	{ "huge quota", { { SELF, "0::/\n" }, { V2 "cpu.max", "9223372036854775807 1\n" } }, NULL, 8, 8, AFFINITY },
	{ "a path with dots", { { SELF, "0::/../..\n" }, { V2 "cpu.max", "200000 100000\n" } }, NULL, 8, -1, "" },
	{ "OMP_NUM_THREADS 3", { { 0 } }, "3", 8, 3, OMP },
	{ "OMP_NUM_THREADS a list", { { 0 } }, "4,2", 8, 4, OMP },
	{ "OMP_NUM_THREADS with blanks", { { 0 } }, " 3 ", 8, 3, OMP },
	{ "OMP_NUM_THREADS 0", { { 0 } }, "0", 8, 8, AFFINITY },
	{ "OMP_NUM_THREADS x", { { 0 } }, "x", 8, 8, AFFINITY },
	{ "OMP_NUM_THREADS 3x", { { 0 } }, "3x", 8, 8, AFFINITY },
	{ "OMP_NUM_THREADS empty", { { 0 } }, "", 8, 8, AFFINITY },
	{ "OMP_NUM_THREADS -2", { { 0 } }, "-2", 8, 8, AFFINITY },
	{ "OMP_NUM_THREADS overflows", { { 0 } }, "99999999999999999999", 8, 8, AFFINITY },
	{ "OMP_NUM_THREADS above the mask", { { 0 } }, "16", 8, 8, AFFINITY },
	{ "OMP_NUM_THREADS below the quota", { { SELF, "0::/\n" }, { V2 "cpu.max", "400000 100000\n" } }, "2", 8, 2, OMP },
	{ "OMP_NUM_THREADS above the quota", { { SELF, "0::/\n" }, { V2 "cpu.max", "400000 100000\n" } }, "6", 8, 4, QUOTA },
	{ "mask of one", { { SELF, "0::/\n" }, { V2 "cpu.max", "400000 100000\n" } }, "6", 1, 1, AFFINITY },
};

static char root[64];

/* Writes the file below root and the folders that lead there. */
static int put(const file *f)
{
	char path[512];
	snprintf(path, sizeof path, "%s/%s", root, f->path);
	for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')) != NULL; p++) {
		*p = '\0';
		mkdir(path, 0700);
		*p = '/';
	}
	FILE *to = fopen(path, "w");
	if (!to)
		return 0;
	fputs(f->text, to);
	return fclose(to) == 0;
}

static void remove_root(void)
{
	char command[128];
	snprintf(command, sizeof command, "rm -rf '%s'", root);
	if (system(command))
		diag("could not remove %s", root);
}

static void check_row(const row *r)
{
	const char *reason = NULL;
	int made = 1;
	snprintf(root, sizeof root, "/tmp/epigemm-cgroup-XXXXXX");
	if (!mkdtemp(root)) {
		ok(0, "mkdtemp");
		return;
	}
	for (int i = 0; i < NFILES && r->files[i].path; i++)
		made &= put(&r->files[i]);
	int32_t got = epg_cpu_default_threads(root, r->omp, r->affinity, &reason);
	remove_root();
	if (r->threads < 0)
		ok(made && got >= 1 && got <= r->affinity && reason, "%s: between 1 and the mask (%d, %s)", r->what, (int)got, reason ? reason : "-");
	else
		ok(made && got == r->threads && reason && strstr(reason, r->reason), "%s: %d threads by %s (got %d by %s)", r->what, (int)r->threads, r->reason,
			(int)got, reason ? reason : "-");
}

/* ---- The same through the API, in children whose affinity and environment differ ------------------------------------ */

typedef struct {
	const char *what;
	int cpus;        /* in the mask; 0: as it is */
	const char *omp;
	int option, lowest, highest;
	const char *reason;
} api_row;

static const api_row api_rows[] = {
	{ "mask of one CPU", 1, NULL, 0, 1, 1, NULL },
	{ "mask of two CPUs", 2, NULL, 0, 1, 2, NULL },
	{ "an explicit count wins over the mask", 1, NULL, 3, 3, 3, "option" },
	{ "an explicit count wins over OMP_NUM_THREADS", 0, "1", 5, 5, 5, "option" },
	{ "OMP_NUM_THREADS=1", 0, "1", 0, 1, 1, NULL },
	{ "OMP_NUM_THREADS=64 does not raise it", 2, "64", 0, 1, 2, NULL },
};

static int narrow_mask(int cpus)
{
	cpu_set_t all, some;
	CPU_ZERO(&some);
	if (sched_getaffinity(0, sizeof all, &all))
		return 0;
	for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&some) < cpus; i++)
		if (CPU_ISSET(i, &all))
			CPU_SET(i, &some);
	return CPU_COUNT(&some) == 0 || sched_setaffinity(0, sizeof some, &some) == 0;
}

static int api_child(const api_row *r)
{
	epg_context_info info;
	if (r->cpus && !narrow_mask(r->cpus))
		return 77;
	if (r->omp)
		setenv("OMP_NUM_THREADS", r->omp, 1);
	else
		unsetenv("OMP_NUM_THREADS");
	epg_context *context = new_context(r->option);
	if (!context || epg_context_get_info(context, &info, sizeof info))
		return 3;
	epg_context_destroy(context);
	if (info.threads < r->lowest || info.threads > r->highest)
		return 1;
	return !*info.threads_reason || (r->reason && !strstr(info.threads_reason, r->reason)) ? 2 : 0;
}

static void check_api(const api_row *r)
{
	fflush(stdout);
	pid_t id = fork();
	if (id == 0)
		_exit(api_child(r));
	int result = wait_child(id, 20);
	if (result == 77)
		skip("sched_setaffinity refuses", "%s", r->what);
	else
		ok(result == 0, "%s: %d to %d threads (0 right, 1 count, 2 reason: %d)", r->what, r->lowest, r->highest, result);
}

int main(void)
{
	for (int i = 0; i < COUNT(rows); i++)
		check_row(&rows[i]);
	for (int i = 0; i < COUNT(api_rows); i++)
		check_api(&api_rows[i]);
	return done_testing();
}
