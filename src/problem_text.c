/* SPDX-License-Identifier: Apache-2.0
 *
 * Problem lines, format version 1: one table of keys drives printing and parsing. The grammar is in doc/design.md. A key that
 * has init's value is left out; a value that has no name is written, and read, as a number, so that any desc can be written
 * down. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "epilog.h"
#include "log.h"
#include "problem.h"

/* What a value is: a number, a number with the word 'tight', a pair of doubles, or a word of a list. */
typedef enum { SIZE, INT32, LAYOUT, PAIR, TYPE, EPILOG, COMPUTE, ORDER, OP, AXIS, FLAGS } kind;

typedef struct key_row {
	const char *name;
	kind kind;
	size_t offset;
} key_row;

#define AT(field) offsetof(epg_matmul_desc, field)

static const key_row keys[] = {
	{"m", SIZE, AT(m)}, {"n", SIZE, AT(n)}, {"k", SIZE, AT(k)}, {"batch", SIZE, AT(batch)},
	{"ta", TYPE, AT(a.type)}, {"tb", TYPE, AT(b.type)}, {"tc", TYPE, AT(c.type)}, {"td", TYPE, AT(d.type)}, {"taux", TYPE, AT(aux.type)},
	{"tbias", TYPE, AT(bias.type)}, {"tbgrad", TYPE, AT(bgrad.type)}, {"compute", COMPUTE, AT(compute)},
	{"opa", OP, AT(a.op)}, {"opb", OP, AT(b.op)}, {"opc", OP, AT(c.op)}, {"opd", OP, AT(d.op)}, {"opaux", OP, AT(aux.op)},
	{"ordera", ORDER, AT(a.order)}, {"orderb", ORDER, AT(b.order)}, {"orderc", ORDER, AT(c.order)}, {"orderd", ORDER, AT(d.order)}, {"orderaux", ORDER, AT(aux.order)},
	{"lda", LAYOUT, AT(a.ld)}, {"ldb", LAYOUT, AT(b.ld)}, {"ldc", LAYOUT, AT(c.ld)}, {"ldd", LAYOUT, AT(d.ld)}, {"ldaux", LAYOUT, AT(aux.ld)},
	{"stridea", LAYOUT, AT(a.batch_stride)}, {"strideb", LAYOUT, AT(b.batch_stride)}, {"stridec", LAYOUT, AT(c.batch_stride)},
	{"strided", LAYOUT, AT(d.batch_stride)}, {"strideaux", LAYOUT, AT(aux.batch_stride)}, {"stridebias", LAYOUT, AT(bias.batch_stride)},
	{"stridebgrad", LAYOUT, AT(bgrad.batch_stride)}, {"biaslen", SIZE, AT(bias.length)}, {"bgradlen", SIZE, AT(bgrad.length)},
	{"epilog", EPILOG, AT(epilog)}, {"axis", AXIS, AT(axis)}, {"alpha", PAIR, AT(alpha)}, {"beta", PAIR, AT(beta)}, {"flags", FLAGS, AT(flags)},
	{"align", INT32, AT(align_nbytes)}, {"act", PAIR, AT(act_param)}, {"batchmode", INT32, AT(batch_mode)},
	{"scalea", INT32, AT(a.scale)}, {"scaleb", INT32, AT(b.scale)}, {"scalec", INT32, AT(c.scale)}, {"scaled", INT32, AT(d.scale)}, {"scaleaux", INT32, AT(aux.scale)},
	{"reserveda0", INT32, AT(a.reserved[0])}, {"reserveda1", INT32, AT(a.reserved[1])}, {"reservedb0", INT32, AT(b.reserved[0])},
	{"reservedb1", INT32, AT(b.reserved[1])}, {"reservedc0", INT32, AT(c.reserved[0])}, {"reservedc1", INT32, AT(c.reserved[1])},
	{"reservedd0", INT32, AT(d.reserved[0])}, {"reservedd1", INT32, AT(d.reserved[1])}, {"reservedaux0", INT32, AT(aux.reserved[0])},
	{"reservedaux1", INT32, AT(aux.reserved[1])}, {"reservedbias", INT32, AT(bias.reserved)}, {"reservedbgrad", INT32, AT(bgrad.reserved)},
};
enum { NKEYS = sizeof keys / sizeof *keys, NALWAYS = 3 /* m, n, k are always printed */ };

static const char *const order_words[] = {"col", "row"}, *const op_words[] = {"N", "T", "C", "J"}, *const axis_words[] = {"row", "column"};
static const char *const flag_words[] = {"deterministic", "fast_accumulation", "bgrad_accumulate", "scalars_on_device"};

#define WORDS(list) list, sizeof list / sizeof *list

/* ---- Words of each kind ---- */

static const char *word_in(const char *const *words, size_t count, int32_t value)
{
	return value >= 0 && (size_t)value < count ? words[value] : NULL;
}

static int32_t find_word(const char *const *words, size_t count, const char *text, size_t length)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(words[i]) == length && memcmp(words[i], text, length) == 0)
			return (int32_t)i;
	return -1;
}

static const char *word_of(kind kind, int32_t value)
{
	switch (kind) {
	case TYPE: return value == EPG_NONE ? "none" : epg_type_name(value);
	case EPILOG: return epg_epilog_name(value);
	case COMPUTE: return epg_compute_name(value);
	case ORDER: return word_in(WORDS(order_words), value);
	case OP: return word_in(WORDS(op_words), value);
	case AXIS: return word_in(WORDS(axis_words), value);
	default: return NULL;
	}
}

static int32_t parse_word(kind kind, const char *text, size_t length)
{
	switch (kind) {
	case TYPE: return length == 4 && memcmp(text, "none", 4) == 0 ? EPG_NONE : epg_type_parse(text, length);
	case EPILOG: return epg_epilog_parse(text, length);
	case COMPUTE: return epg_compute_parse(text, length);
	case ORDER: return find_word(WORDS(order_words), text, length);
	case OP: return find_word(WORDS(op_words), text, length);
	case AXIS: return find_word(WORDS(axis_words), text, length);
	default: return -1;
	}
}

/* ---- Printing ---- */

/* What printf and strtod take for the decimal point follows the program's locale; a line always has '.'. */
static void locale_point(char point[16])
{
	char half[16] = "0.5";
	int length = snprintf(half, sizeof half, "%.1f", 0.5);
	snprintf(point, 16, "%.*s", length - 2, half + 1);
}

static void replace_point(char *text, size_t text_nbytes, const char *from, const char *to)
{
	char *at = strstr(text, from);
	if (!at || strlen(text) - strlen(from) + strlen(to) >= text_nbytes)
		return;
	memmove(at + strlen(to), at + strlen(from), strlen(at + strlen(from)) + 1);
	memcpy(at, to, strlen(to));
}

/* The shortest decimal that reads back as the same double. */
static void print_double(epg_text *out, double x)
{
	char text[40], point[16];
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, x);
		double back = strtod(text, NULL);
		if (memcmp(&back, &x, sizeof x) == 0)
			break;
	}
	locale_point(point);
	replace_point(text, sizeof text, point, ".");
	epg_text_add(out, "%s", text);
}

static void print_flags(epg_text *out, int32_t flags)
{
	const char *plus = "";
	if (flags < 0 || flags >= 1 << 4) {
		epg_text_add(out, "%d", flags);
		return;
	}
	for (int i = 0; i < 4; i++)
		if (flags >> i & 1) {
			epg_text_add(out, "%s%s", plus, flag_words[i]);
			plus = "+";
		}
	if (flags == 0)
		epg_text_add(out, "0");
}

static void print_int32(epg_text *out, kind kind, int32_t value)
{
	const char *word = word_of(kind, value);
	if (kind == FLAGS)
		print_flags(out, value);
	else if (word)
		epg_text_add(out, "%s", word);
	else
		epg_text_add(out, "%d", value);
}

static size_t value_nbytes(kind kind)
{
	return kind == PAIR ? 2 * sizeof(double) : kind == SIZE || kind == LAYOUT ? sizeof(int64_t) : sizeof(int32_t);
}

static void print_value(epg_text *out, kind kind, const void *at)
{
	int64_t wide;
	int32_t narrow;
	double pair[2];
	if (kind == PAIR) {
		memcpy(pair, at, sizeof pair);
		print_double(out, pair[0]);
		if (pair[1] != 0 || memcmp(&pair[1], &(double){0}, sizeof(double))) {
			epg_text_add(out, ",");
			print_double(out, pair[1]);
		}
	} else if (kind == SIZE || kind == LAYOUT) {
		memcpy(&wide, at, sizeof wide);
		if (kind == LAYOUT && wide == EPG_TIGHT)
			epg_text_add(out, "tight");
		else
			epg_text_add(out, "%lld", (long long)wide);
	} else {
		memcpy(&narrow, at, sizeof narrow);
		print_int32(out, kind, narrow);
	}
}

/* The first word is A's type; order= is D's, and stands for every matrix that does not name its own. */
static void print_full(const epg_matmul_desc *desc, epg_text *out)
{
	epg_matmul_desc plain;
	bool named = epg_type(desc->a.type) != NULL;
	int32_t type = named ? desc->a.type : EPG_F32;
	int32_t order = desc->d.order == EPG_ROW ? EPG_ROW : EPG_COL;
	epg_matmul_desc_init(&plain, sizeof plain, desc->m, desc->n, desc->k, type, order);
	epg_text_add(out, "%s", epg_type_name(type));
	for (int i = 0; i < NKEYS; i++) {
		const char *at = (const char *)desc + keys[i].offset;
		if (i >= NALWAYS && memcmp(at, (const char *)&plain + keys[i].offset, value_nbytes(keys[i].kind)) == 0)
			continue;
		epg_text_add(out, " %s=", keys[i].name);
		print_value(out, keys[i].kind, at);
		if (i == NALWAYS - 1 && order == EPG_ROW)
			epg_text_add(out, " order=row");
	}
}

void epg_problem_line(const epg_matmul_desc *desc, char *line, size_t line_nbytes)
{
	epg_text out = {line, line_nbytes, 0};
	print_full(desc, &out);
}

epg_status epg_matmul_desc_print(const epg_matmul_desc *desc, char *text, size_t text_nbytes, size_t *needed_nbytes)
{
	epg_matmul_desc full;
	char line[2 * EPG_TEXT_NBYTES];
	epg_status status = epg_desc_read(desc, &full);
	if (status)
		return status;
	epg_problem_line(&full, line, sizeof line);
	return epg_text_out(line, text, text_nbytes, needed_nbytes);
}

/* ---- Parsing ---- */

typedef struct word { const char *at; size_t length; } word;

/* A whole number that is all of the text. */
static bool parse_integer(word text, int64_t *value)
{
	char digits[32], *end;
	if (text.length == 0 || text.length >= sizeof digits || text.at[0] == '+')
		return false;
	memcpy(digits, text.at, text.length);
	digits[text.length] = 0;
	errno = 0;
	long long parsed = strtoll(digits, &end, 10);
	*value = parsed;
	return !errno && *end == 0;
}

/* Infinity only by name. */
static bool parse_double(word text, double *value)
{
	char digits[80], point[16], *end;
	if (text.length == 0 || text.length >= 64)
		return false;
	memcpy(digits, text.at, text.length);
	digits[text.length] = 0;
	locale_point(point);
	replace_point(digits, sizeof digits, ".", point);
	errno = 0;
	*value = strtod(digits, &end);
	bool overflow = errno == ERANGE && (*value > 1 || *value < -1);
	return *end == 0 && !overflow;
}

static bool parse_pair(word text, double pair[2])
{
	const char *comma = memchr(text.at, ',', text.length);
	size_t first = comma ? (size_t)(comma - text.at) : text.length;
	pair[1] = 0;
	if (!parse_double((word){text.at, first}, &pair[0]))
		return false;
	return !comma || parse_double((word){comma + 1, text.length - first - 1}, &pair[1]);
}

static bool parse_flags(word text, int32_t *flags)
{
	for (*flags = 0; ; ) {
		const char *plus = memchr(text.at, '+', text.length);
		size_t length = plus ? (size_t)(plus - text.at) : text.length;
		int32_t flag = find_word(WORDS(flag_words), text.at, length);
		if (flag < 0)
			return false;
		*flags |= 1 << flag;
		if (!plus)
			return true;
		text.at += length + 1;
		text.length -= length + 1;
	}
}

static bool parse_int32(kind kind, word text, int32_t *value)
{
	int64_t number;
	if (parse_integer(text, &number)) {
		*value = (int32_t)number;
		return number >= INT32_MIN && number <= INT32_MAX;
	}
	if (kind == FLAGS)
		return parse_flags(text, value);
	*value = parse_word(kind, text.at, text.length);
	return *value >= 0;
}

static bool parse_value(kind kind, word text, void *at)
{
	int64_t wide;
	int32_t narrow;
	double pair[2];
	bool good;
	if (kind == PAIR) {
		good = parse_pair(text, pair);
		memcpy(at, pair, good ? sizeof pair : 0);
	} else if (kind == SIZE || kind == LAYOUT) {
		bool tight = kind == LAYOUT && text.length == 5 && memcmp(text.at, "tight", 5) == 0;
		wide = EPG_TIGHT;
		good = tight || parse_integer(text, &wide);
		memcpy(at, &wide, good ? sizeof wide : 0);
	} else {
		good = parse_int32(kind, text, &narrow);
		memcpy(at, &narrow, good ? sizeof narrow : 0);
	}
	return good;
}

/* The next word; a '#' ends the line. */
static bool next_word(const char **line, word *out)
{
	*line += strspn(*line, " \t\r\n\v\f");
	if (**line == 0 || **line == '#')
		return false;
	*out = (word){*line, strcspn(*line, " \t\r\n\v\f")};
	*line += out->length;
	return true;
}

static epg_status not_understood(word w, const char *why)
{
	return epg_fail(EPG_INVALID, "the word '%.*s' of the problem line %s", w.length < 80 ? (int)w.length : 80, w.at, why);
}

static int find_key(word w)
{
	const char *equals = memchr(w.at, '=', w.length);
	for (int i = 0; equals && i < NKEYS; i++)
		if (strlen(keys[i].name) == (size_t)(equals - w.at) && memcmp(keys[i].name, w.at, (size_t)(equals - w.at)) == 0)
			return i;
	return -1;
}

/* order= stands for all five orders, and holds whatever its place in the line. */
static epg_status parse_order(const char *line, int32_t *order)
{
	word w;
	bool seen = false;
	while (next_word(&line, &w)) {
		if (w.length < 6 || memcmp(w.at, "order=", 6))
			continue;
		if (seen)
			return not_understood(w, "repeats a key");
		seen = true;
		if (!parse_int32(ORDER, (word){w.at + 6, w.length - 6}, order))
			return not_understood(w, "has no value that the key takes");
	}
	return EPG_SUCCESS;
}

static epg_status parse_words(const char *line, epg_matmul_desc *desc)
{
	bool seen[NKEYS] = {false};
	word w;
	while (next_word(&line, &w)) {
		if (w.length >= 6 && memcmp(w.at, "order=", 6) == 0)
			continue;
		int key = find_key(w);
		if (key < 0)
			return not_understood(w, "is not a key=value of this version");
		if (seen[key])
			return not_understood(w, "repeats a key");
		seen[key] = true;
		size_t name = strlen(keys[key].name) + 1;
		if (!parse_value(keys[key].kind, (word){w.at + name, w.length - name}, (char *)desc + keys[key].offset))
			return not_understood(w, "has no value that the key takes");
	}
	for (int i = 0; i < NALWAYS; i++)
		if (!seen[i])
			return epg_fail(EPG_INVALID, "the problem line has no %s=", keys[i].name);
	return EPG_SUCCESS;
}

epg_status epg_matmul_desc_parse(const char *line, epg_matmul_desc *desc, size_t size)
{
	epg_matmul_desc full;
	int32_t type, order = EPG_COL;
	word first;
	if (!line || !desc)
		return epg_fail(EPG_INVALID, "%s is NULL", line ? "desc" : "line");
	if (size < offsetof(epg_matmul_desc, aux) || size > 1 << 16)
		return epg_fail(EPG_INVALID, "size is %zu, but must be sizeof(epg_matmul_desc), at least %zu", size, offsetof(epg_matmul_desc, aux));
	if (strlen(line) >= 2 * EPG_TEXT_NBYTES)
		return epg_fail(EPG_INVALID, "the problem line has %zu bytes, but may have %d", strlen(line), 2 * EPG_TEXT_NBYTES - 1);
	if (!next_word(&line, &first))
		return epg_fail(EPG_INVALID, "the problem line is empty");
	type = epg_type_parse(first.at, first.length);
	if (type < 0)
		return not_understood(first, "is not a type, which must come first");
	epg_status status = parse_order(line, &order);
	if (status)
		return status;
	epg_matmul_desc_init(&full, sizeof full, 0, 0, 0, type, order);
	status = parse_words(line, &full);
	if (status)
		return status;
	memset(desc, 0, size);
	memcpy(desc, &full, size < sizeof full ? size : sizeof full);
	desc->size = size;
	return EPG_SUCCESS;
}
