/* SPDX-License-Identifier: Apache-2.0
 *
 * All 2^32 numbers of f32 to every narrower type, by epg_convert. What is right is found without rounding anything: the numbers of the
 * type in order with the middles between them, along which an index walks as the floats grow. Minutes, so a layer of its own:
 * 'dev/check floats'. */
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"

enum { BLOCK = 1 << 20, MOST = 1 << 16 };

static epg_context *context;
static double list[MOST], middle[MOST]; /* numbers from 0 on; middle[i] lies between number i-1 and number i */
static int numbers;

/* Positive patterns of a floating type are in the order of their numbers. e4m3, e5m2: the largest finite one takes all above. */
static void list_floats(int32_t type, int patterns, int saturates)
{
	numbers = 0;
	for (int i = 0; i < patterns / 2; i++) {
		uint16_t x = (uint16_t)i;
		double value = (double)oracle_load(type, &x, 0).re;
		if (isnan(value) || (saturates && isinf(value)))
			break;
		list[numbers++] = value;
	}
	for (int i = 1; i < numbers; i++)
		middle[i] = isinf(list[i]) ? list[i - 1] + (list[i - 1] - list[i - 2]) / 2 : (list[i - 1] + list[i]) / 2;
}

static uint64_t pattern_at(int32_t type, const void *base, int64_t i)
{
	return epg_type_nbits(type) == 8 ? ((const unsigned char *)base)[i] : ((const uint16_t *)base)[i];
}

static int is_nan(int32_t type, uint64_t pattern)
{
	uint16_t x = (uint16_t)pattern;
	return isnan((double)oracle_load(type, &x, 0).re);
}

static void must(epg_status status)
{
	if (!status)
		return;
	printf("Bail out! %s\n", epg_last_error());
	exit(1);
}

static int64_t check_block(int32_t type, uint32_t first, int *at, int top)
{
	static float x[BLOCK];
	static uint16_t y[BLOCK];
	epg_matrix f = { .type = EPG_F32, .ld = EPG_TIGHT, .batch_stride = EPG_TIGHT }, t = f;
	size_t nbytes = (size_t)BLOCK * (size_t)epg_type_nbits(type) / 8;
	int64_t wrong = 0;
	t.type = type;
	for (uint32_t i = 0, bits; i < BLOCK; i++) {
		bits = first + i;
		memcpy(&x[i], &bits, sizeof bits);
	}
	void *from, *to;
	must(epg_malloc(context, sizeof x, &from));
	must(epg_malloc(context, nbytes, &to));
	must(epg_upload(context, from, x, sizeof x, NULL));
	must(epg_convert(context, BLOCK, 1, 1, &f, from, &t, to, NULL, NULL, NULL));
	must(epg_download(context, y, to, nbytes, NULL));
	must(epg_synchronize(context, NULL));
	epg_free(context, from);
	epg_free(context, to);
	for (int i = 0; i < BLOCK; i++) {
		double size = fabs((double)x[i]);
		uint64_t got = pattern_at(type, y, i);
		while (*at + 1 < numbers && (size > middle[*at + 1] || (size == middle[*at + 1] && *at % 2)))
			(*at)++;
		if (isnan(x[i]) ? !is_nan(type, got) : got != (uint64_t)(*at | (signbit(x[i]) ? top : 0)))
			if (++wrong < 3)
				diag("%s of %.9g is pattern %llx", epg_type_name(type), (double)x[i], (unsigned long long)got);
	}
	return wrong;
}

static void check_type(int32_t type, int saturates)
{
	int64_t wrong = 0;
	int patterns = epg_type_nbits(type) == 8 ? 256 : 65536;
	list_floats(type, patterns, saturates);
	for (int sign = 0; sign < 2; sign++) {
		int at = 0;
		for (uint32_t block = 0; block < 2048; block++)
			wrong += check_block(type, (uint32_t)sign << 31 | block << 20, &at, patterns / 2);
	}
	ok(wrong == 0, "%s: %lld of 2^32 numbers of f32 are rounded wrongly", epg_type_name(type), (long long)wrong);
}

int main(void)
{
	const char *why = "";
	context = test_context(0, &why);
	if (!context)
		return without_context(why);
	check_type(EPG_F16, 0);
	check_type(EPG_BF16, 0);
	check_type(EPG_E4M3, 1);
	check_type(EPG_E5M2, 1);
	epg_context_destroy(context);
	return done_testing();
}
