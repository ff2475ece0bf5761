/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target: any bytes as a problem line. What parses must print, the printed line must parse to the same problem and
 * print as itself; what does not parse must say why and leave the desc alone. */
#include "fuzz.h"

#include <math.h>

const char fuzz_name[] = "line";

enum { LONGEST = 4096 };

/* NaN differs from itself and may lose its payload as text; then only the texts are compared. */
static int has_nan(const epg_matmul_desc *desc)
{
	return isnan(desc->alpha[0]) || isnan(desc->alpha[1]) || isnan(desc->beta[0]) || isnan(desc->beta[1]) || isnan(desc->act_param[0]) || isnan(desc->act_param[1]);
}

static void check_refused(const epg_matmul_desc *desc, epg_status status)
{
	epg_matmul_desc before;
	memset(&before, 0x33, sizeof before);
	MUST(status == EPG_INVALID && *epg_last_error(), "status %d", (int)status);
	MUST(!memcmp(desc, &before, sizeof before), "a refused line changed the desc");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
	static char line[LONGEST + 1], first[2 * LONGEST], second[2 * LONGEST];
	epg_matmul_desc x, y;
	size_t n = nbytes < LONGEST ? nbytes : LONGEST, needed = 0;
	memcpy(line, data, n);
	line[n] = '\0';
	memset(&x, 0x33, sizeof x);
	epg_status status = epg_matmul_desc_parse(line, &x, sizeof x);
	if (status) {
		check_refused(&x, status);
		return 0;
	}
	MUST(epg_matmul_desc_print(&x, first, sizeof first, &needed) == EPG_SUCCESS && needed == strlen(first) + 1, "print of '%s'", line);
	MUST(epg_matmul_desc_parse(first, &y, sizeof y) == EPG_SUCCESS, "parse of '%s' from '%s'", first, line);
	MUST(has_nan(&x) || !memcmp(&x, &y, sizeof x), "'%s' is not '%s'", line, first);
	MUST(epg_matmul_desc_print(&y, second, sizeof second, NULL) == EPG_SUCCESS && !strcmp(first, second), "'%s' prints as '%s'", first, second);
	return 0;
}
