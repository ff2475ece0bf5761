/* SPDX-License-Identifier: Apache-2.0
 *
 * Wisdom: what measuring has learnt goes to a file and comes back in another context, which then takes the same ways.
 * Entries that are damaged or from another version or device are rejected one by one, each with a reason in the log,
 * while the others are kept; a file cut at any byte or with any byte changed never crashes. The file is replaced as a
 * whole: no temporary stays, and a failed save leaves the old one. */
#include "robust.h"

#include <dirent.h>
#include <sys/stat.h>

static const char *const lines[] = { "f32 m=64 n=48 k=32 epilog=relu_bias", "f64 m=40 n=30 k=20", "c64 m=16 n=16 k=16 opa=J epilog=bias" };

enum { NLINES = 3, TEXT = 1 << 16 };

static char folder[] = "/tmp/epigemm-wisdom-XXXXXX", path[128], other[128];

typedef struct {
	int messages;
	char last[1024];
} heard;

static void hear(void *user, int32_t level, const char *message)
{
	heard *h = user;
	if (level <= EPG_LOG_WARNING) {
		h->messages++;
		snprintf(h->last, sizeof h->last, "%s", message);
	}
}

static epg_context *context_with_log(heard *h)
{
	epg_context_options options;
	epg_context *context = NULL;
	memset(h, 0, sizeof *h);
	epg_context_options_init(&options, sizeof options);
	options.threads = 1;
	options.log = hear;
	options.log_user = h;
	options.log_level = EPG_LOG_INFO;
	if (epg_context_create(&options, &context))
		diag("context: %s", epg_last_error());
	return context;
}

/* The pin that a plan of this line has at this rigor. */
static int pin_of(epg_context *context, const char *line, int32_t rigor, char *pin, size_t nbytes)
{
	epg_matmul_desc desc;
	epg_plan_options options;
	epg_plan_info info;
	epg_plan *plan = NULL;
	epg_plan_options_init(&options, sizeof options);
	options.rigor = rigor;
	if (epg_matmul_desc_parse(line, &desc, sizeof desc) || epg_plan_create(context, &desc, &options, &plan))
		return 0;
	int good = !epg_plan_get_info(plan, &info, sizeof info) && !epg_plan_pin(plan, info.candidate, pin, nbytes, NULL);
	epg_plan_destroy(plan);
	return good;
}

static size_t read_file(const char *from, char *text)
{
	FILE *f = fopen(from, "rb");
	size_t n = f ? fread(text, 1, TEXT - 1, f) : 0;
	if (f)
		fclose(f);
	text[n] = '\0';
	return n;
}

static void write_file(const char *to, const char *text, size_t n)
{
	FILE *f = fopen(to, "wb");
	if (!f || fwrite(text, 1, n, f) != n)
		diag("cannot write %s", to);
	if (f)
		fclose(f);
}

/* Loads a text in a fresh context. */
static epg_status load_text(const char *text, size_t n, int64_t *accepted, int64_t *rejected, heard *h)
{
	write_file(other, text, n);
	*accepted = *rejected = -1;
	epg_context *context = context_with_log(h);
	epg_status status = epg_wisdom_load(context, other, accepted, rejected);
	epg_context_destroy(context);
	return status;
}

/* ---- Entries --------------------------------------------------------------------------------------------------------- */

/* Where the entry of a problem begins and ends in the text. */
static char *entry_of(char *text, const char *problem, size_t *length)
{
	char *at = strstr(text, problem);
	if (!at)
		return NULL;
	while (at > text && at[-1] != '\n')
		at--;
	*length = strcspn(at, "\n");
	return at;
}

/* IEEE 802.3, bit by bit. */
static uint32_t crc32_of(const char *text, size_t n)
{
	uint32_t crc = 0xffffffff;
	for (size_t i = 0; i < n; i++) {
		crc ^= (unsigned char)text[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

/* The text, but with another pin in the entry of a problem, and the checksum that belongs to it; 0 when there is no such entry. */
static int with_pin(char *text, const char *problem, const char *pin, char changed[TEXT])
{
	char entry[2048];
	size_t length = 0;
	char *at = entry_of(text, problem, &length), *bar = NULL;
	for (size_t i = 0; at && i < length; i++)
		bar = at[i] == '|' ? at + i : bar;
	if (!bar || length > 1024)
		return 0;
	int n = snprintf(entry, sizeof entry, "%.*s| %s", (int)(bar - at), at, pin);
	snprintf(changed, TEXT, "%.*s%08x%s%s", (int)(at - text), text, crc32_of(entry + 9, (size_t)n - 9), entry + 8, at + length);
	return 1;
}

/* ---- There and back -------------------------------------------------------------------------------------------------- */

static char pins[NLINES][256];

static void check_round_trip(void)
{
	heard h;
	epg_context *context = context_with_log(&h);
	int64_t accepted = -1, rejected = -1;
	char pin[256];
	for (int i = 0; i < NLINES; i++)
		ok(pin_of(context, lines[i], EPG_MEASURE, pins[i], sizeof pins[i]), "measured %s: %s", lines[i], pins[i]);
	status_is(epg_wisdom_save(context, path), EPG_SUCCESS, "save");
	epg_context_destroy(context);
	context = context_with_log(&h);
	status_is(epg_wisdom_load(context, path, &accepted, &rejected), EPG_SUCCESS, "load in a new context");
	ok(accepted == NLINES && rejected == 0, "%d entries: %d accepted, %d rejected", NLINES, (int)accepted, (int)rejected);
	for (int i = 0; i < NLINES; i++)
		ok(pin_of(context, lines[i], EPG_MEASURE, pin, sizeof pin) && !strcmp(pin, pins[i]), "%s: the plan takes '%s' (measured '%s')", lines[i], pin, pins[i]);
	status_is(epg_wisdom_load(context, path, NULL, NULL), EPG_SUCCESS, "the counts may be NULL, and loading twice is no harm");
	status_is(epg_wisdom_save(context, other), EPG_SUCCESS, "save what was loaded");
	epg_context_destroy(context);
	static char first[TEXT], second[TEXT];
	read_file(path, first);
	read_file(other, second);
	ok(*first && !strcmp(first, second), "a saved, loaded and saved file is the same");
}

/* A measured plan must not be able to choose otherwise than its wisdom: the entry is made to name another way. */
static void check_wisdom_rules(void)
{
	static char text[TEXT], changed[TEXT];
	char wanted[] = "cpu/reference threads=1", pin[256] = "";
	int64_t accepted = -1, rejected = -1;
	heard h;
	epg_context *context = context_with_log(&h);
	read_file(path, text);
	ok(strcmp(pins[1], wanted) && with_pin(text, lines[1], wanted, changed), "an entry is changed from '%s' to '%s'", pins[1], wanted);
	write_file(other, changed, strlen(changed));
	status_is(epg_wisdom_load(context, other, &accepted, &rejected), EPG_SUCCESS, "an entry that names another way");
	ok(accepted == NLINES && rejected == 0, "all entries are taken (%d, %d)", (int)accepted, (int)rejected);
	ok(pin_of(context, lines[1], EPG_MEASURE, pin, sizeof pin) && !strcmp(pin, wanted), "wisdom rules: '%s' is taken, '%s' was written", pin, wanted);
	epg_context_destroy(context);
}

/* ---- Limits ------------------------------------------------------------------------------------------------------------ */

/* Is a plan of the first line under this limit decided by wisdom? */
static int is_wise(epg_context *context, int32_t rigor, int64_t limit)
{
	epg_matmul_desc desc;
	epg_plan_options options;
	epg_plan *plan = NULL;
	char text[4096] = "";
	epg_plan_options_init(&options, sizeof options);
	options.rigor = rigor;
	options.workspace_limit_nbytes = limit;
	if (epg_matmul_desc_parse(lines[0], &desc, sizeof desc) || epg_plan_create(context, &desc, &options, &plan))
		diag("%s", epg_last_error());
	if (plan)
		epg_plan_explain(plan, text, sizeof text, NULL);
	epg_plan_destroy(plan);
	return strstr(text, "wisdom for this problem") != NULL;
}

/* What was learnt under a limit holds for that limit; what was learnt without one is asked under each. */
static void check_limits(void)
{
	heard h;
	int64_t accepted = -1, rejected = -1;
	epg_context *context = context_with_log(&h);
	ok(!is_wise(context, EPG_MEASURE, 4096) && is_wise(context, EPG_ESTIMATE, 4096), "measured under a limit: known under it");
	ok(!is_wise(context, EPG_ESTIMATE, -1) && !is_wise(context, EPG_ESTIMATE, 8192), "not known without one, nor under another");
	status_is(epg_wisdom_save(context, other), EPG_SUCCESS, "save");
	epg_context_destroy(context);
	context = context_with_log(&h);
	status_is(epg_wisdom_load(context, other, &accepted, &rejected), EPG_SUCCESS, "load");
	ok(accepted == 1 && rejected == 0 && is_wise(context, EPG_ESTIMATE, 4096) && !is_wise(context, EPG_ESTIMATE, -1), "the limit is in the file (%d, %d)", (int)accepted, (int)rejected);
	ok(!is_wise(context, EPG_MEASURE, -1) && is_wise(context, EPG_ESTIMATE, 8192), "measured without one: known under each");
	epg_context_destroy(context);
}

/* ---- Damage ------------------------------------------------------------------------------------------------------------ */

static void check_damaged_entry(const char *what, const char *replacement)
{
	static char text[TEXT], changed[TEXT];
	size_t length = 0, n = read_file(path, text);
	int64_t accepted, rejected;
	heard h;
	char *entry = entry_of(text, lines[1], &length);
	if (!ok(entry != NULL, "%s: the entry is found", what))
		return;
	snprintf(changed, sizeof changed, "%.*s%s%s", (int)(entry - text), text, replacement, entry + length);
	epg_status status = load_text(changed, strlen(changed), &accepted, &rejected, &h);
	ok(!status && accepted == NLINES - 1 && rejected == 1, "%s: rejected alone (%s, %d accepted, %d rejected)", what, epg_status_string(status), (int)accepted, (int)rejected);
	ok(h.messages == 1 && *h.last, "%s: the log says why: %s", what, h.last);
	(void)n;
}

/* An entry whose checksum is right and whose pin makes no sense: rejected with that reason, and a load that succeeds leaves the last error alone. */
static void check_senseless_pin(void)
{
	static char text[TEXT], changed[TEXT];
	char before[256];
	int64_t accepted, rejected;
	heard h;
	read_file(path, text);
	if (!ok(with_pin(text, lines[1], "cpu/split threads=none", changed), "the entry is found"))
		return;
	epg_context_create(NULL, NULL); /* fails: the error that must stay */
	snprintf(before, sizeof before, "%s", epg_last_error());
	epg_status status = load_text(changed, strlen(changed), &accepted, &rejected, &h);
	ok(!status && accepted == NLINES - 1 && rejected == 1 && strstr(h.last, "threads"), "a senseless pin: rejected alone (%d accepted, %d rejected): %s", (int)accepted,
		(int)rejected, h.last);
	ok(*before && strcmp(before, epg_last_error()) == 0, "a load that succeeds leaves the last error alone");
}

static void check_cut_and_changed(void)
{
	static char text[TEXT], changed[TEXT];
	size_t n = read_file(path, text);
	int64_t accepted, rejected;
	int odd = 0;
	heard h;
	for (size_t cut = 0; cut < n; cut += 1 + n / 200) {
		epg_status status = load_text(text, cut, &accepted, &rejected, &h);
		odd += status == EPG_SUCCESS ? accepted + rejected > NLINES || accepted < 0 || rejected < 0 : status != EPG_INVALID || accepted != -1 || rejected != -1;
	}
	ok(odd == 0, "cut anywhere: what is whole is taken or the file is invalid (%d odd)", odd);
	for (size_t i = 0; i < n; i += 1 + n / 300) {
		memcpy(changed, text, n);
		changed[i] = (char)(changed[i] ^ 0x15);
		epg_status status = load_text(changed, n, &accepted, &rejected, &h);
		int good = status == EPG_SUCCESS ? accepted >= 0 && accepted <= NLINES && h.messages >= (rejected > 0) : status == EPG_INVALID && accepted == -1;
		if (!good && ++odd < 4)
			diag("byte %d: %s, %d accepted, %d rejected: %s", (int)i, epg_status_string(status), (int)accepted, (int)rejected, h.last);
	}
	ok(odd == 0, "a byte changed anywhere: entries or the file are rejected, or still make sense (%d odd)", odd);
}

/* What is no wisdom at all. */
static void check_no_wisdom(void)
{
	static char big[TEXT];
	static const char nuls[64];
	int64_t accepted, rejected;
	heard h;
	ok(load_text("", 0, &accepted, &rejected, &h) == EPG_INVALID, "an empty file: %s", epg_last_error());
	ok(load_text("hello\nworld\n", 12, &accepted, &rejected, &h) == EPG_INVALID && accepted == -1, "another text: %s", epg_last_error());
	ok(load_text(nuls, sizeof nuls, &accepted, &rejected, &h) == EPG_INVALID, "zeros: %s", epg_last_error());
	memset(big, 'x', sizeof big);
	ok(load_text(big, sizeof big, &accepted, &rejected, &h) == EPG_INVALID, "one long line");
	epg_context *context = context_with_log(&h);
	ok(epg_wisdom_load(context, "/nonexistent/file", &accepted, &rejected) == EPG_INVALID && says("/nonexistent/file"), "a missing file: %s", epg_last_error());
	ok(epg_wisdom_load(context, folder, &accepted, &rejected) == EPG_INVALID, "a folder: %s", epg_last_error());
	epg_context_destroy(context);
}

/* An entry with a valid beginning and thousands of bytes behind must be one rejected entry, not several. */
static void check_long_entry(void)
{
	static char text[TEXT], changed[TEXT];
	size_t n = read_file(path, text), length;
	int64_t accepted, rejected;
	heard h;
	char *entry = entry_of(text, lines[0], &length);
	if (!ok(entry != NULL && n < TEXT / 2, "an entry to lengthen"))
		return;
	size_t before = (size_t)(entry - text) + length;
	memcpy(changed, text, before);
	memset(changed + before, 'z', 20000);
	strcpy(changed + before + 20000, text + before);
	epg_status status = load_text(changed, strlen(changed), &accepted, &rejected, &h);
	ok(!status && accepted == NLINES - 1 && rejected == 1, "an entry of 20000 bytes: %s, %d accepted, %d rejected", epg_status_string(status), (int)accepted, (int)rejected);
}

/* Another version or device, in the head or in the entry: nothing is taken on trust. */
static void check_stamp(const char *what, const char *word, const char *instead)
{
	static char text[TEXT], changed[TEXT];
	int64_t accepted, rejected;
	heard h;
	char *to = changed;
	int found = 0;
	read_file(path, text);
	for (const char *from = text; *from;) {
		if (!strncmp(from, word, strlen(word))) {
			to += sprintf(to, "%s", instead);
			from += strlen(word);
			found++;
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
	if (!found) {
		skip("the file does not hold it", "%s", what);
		return;
	}
	epg_status status = load_text(changed, strlen(changed), &accepted, &rejected, &h);
	ok(status == EPG_INVALID || (!status && accepted == 0 && rejected == NLINES && h.messages >= NLINES), "%s: %s, %d accepted, %d rejected: %s", what,
		epg_status_string(status), (int)accepted, (int)rejected, status ? epg_last_error() : h.last);
}

/* ---- Saving ------------------------------------------------------------------------------------------------------------- */

static int files_in_folder(void)
{
	int n = 0;
	DIR *d = opendir(folder);
	for (struct dirent *e; d && (e = readdir(d));)
		n += e->d_name[0] != '.' || (e->d_name[1] && e->d_name[1] != '.');
	if (d)
		closedir(d);
	return n;
}

static void check_saving(void)
{
	static char before[TEXT], after[TEXT];
	char missing[160];
	heard h;
	struct stat old, new;
	epg_context *context = context_with_log(&h);
	char pin[256];
	pin_of(context, "f32 m=20 n=20 k=20", EPG_MEASURE, pin, sizeof pin);
	remove(other);
	read_file(path, before);
	snprintf(missing, sizeof missing, "%s/none/wisdom", folder);
	ok(epg_wisdom_save(context, missing) != EPG_SUCCESS && says(missing), "a folder that is not there: %s", epg_last_error());
	mkdir(other, 0700);
	ok(epg_wisdom_save(context, other) != EPG_SUCCESS, "a folder of that name: %s", epg_last_error());
	rmdir(other);
	ok(files_in_folder() == 1, "no temporary is left by a failed save (%d files)", files_in_folder());
	chmod(folder, 0500);
	if (geteuid() == 0)
		skip("root may write anywhere", "an unwritable folder");
	else
		ok(epg_wisdom_save(context, path) != EPG_SUCCESS && read_file(path, after) && !strcmp(before, after), "an unwritable folder: the old file stays");
	chmod(folder, 0700);
	FILE *reader = fopen(path, "r");
	stat(path, &old);
	status_is(epg_wisdom_save(context, path), EPG_SUCCESS, "save over an old file");
	stat(path, &new);
	after[fread(after, 1, TEXT - 1, reader)] = '\0';
	fclose(reader);
	ok(old.st_ino != new.st_ino && !strcmp(before, after), "a reader that had the old file open still reads the old one");
	ok(files_in_folder() == 1, "no temporary is left (%d files)", files_in_folder());
	epg_context_destroy(context);
	context = context_with_log(&h);
	status_is(epg_wisdom_save(context, other), EPG_SUCCESS, "save without any wisdom");
	int64_t accepted = -1, rejected = -1;
	status_is(epg_wisdom_load(context, other, &accepted, &rejected), EPG_SUCCESS, "and load it");
	ok(accepted == 0 && rejected == 0, "nothing comes back");
	epg_context_destroy(context);
}

int main(void)
{
	if (!mkdtemp(folder))
		return skip_all("no temporary folder");
	snprintf(path, sizeof path, "%s/wisdom", folder);
	snprintf(other, sizeof other, "%s/other", folder);
	check_round_trip();
	check_wisdom_rules();
	check_limits();
	check_damaged_entry("no entry", "nonsense");
	check_damaged_entry("an entry without a way", lines[1]);
	check_damaged_entry("binary bytes", "\x01\x02\xff\xfe");
	check_senseless_pin();
	check_cut_and_changed();
	check_long_entry();
	check_no_wisdom();
	check_stamp("another version of this library", EPG_VERSION, "9.9.9");
	check_stamp("another format", "epigemm", "epigeme");
	check_stamp("another BLAS", "OpenBLAS", "GotoBLAS");
	check_saving();
	remove(path);
	remove(other);
	rmdir(folder);
	return done_testing();
}
