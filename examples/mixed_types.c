/* SPDX-License-Identifier: Apache-2.0
 *
 * Factors of bf16 with D in f32, and with D in bf16: the sum 256 + 1 is exact either way, but bf16 has no 257. A desc begins with one type
 * for all matrices; each may then have its own, as the table in README.md allows.
 *
 * Prints:
 *     f32 D = 257
 *     bf16 D = 256
 */
#include "example.h"

#include <string.h>

/* A bf16 is the upper half of an f32. */
static float from_bf16(uint16_t half)
{
	uint32_t bits = (uint32_t)half << 16;
	float x;
	memcpy(&x, &bits, sizeof x);
	return x;
}

int main(void)
{
	static const uint16_t a[] = {0x4380, 0x3f80}, b[] = {0x3f80, 0x3f80}; /* 256 1 and 1 1 */
	float wide;
	uint16_t narrow;
	epg_context *context = example_context();
	void *a_there = example_put(context, a, sizeof a), *b_there = example_put(context, b, sizeof b), *d_there = example_put(context, NULL, sizeof wide);
	epg_matmul_desc desc;
	CHECK(epg_matmul_desc_init(&desc, sizeof desc, 1, 1, 2, EPG_BF16, EPG_COL));
	CHECK(epg_matmul(context, &desc, &EPG_OPERANDS(.a = a_there, .b = b_there, .d = d_there), NULL));
	example_get(context, &narrow, d_there, sizeof narrow);
	desc.c.type = desc.d.type = EPG_F32;
	CHECK(epg_matmul(context, &desc, &EPG_OPERANDS(.a = a_there, .b = b_there, .d = d_there), NULL));
	example_get(context, &wide, d_there, sizeof wide);
	printf("f32 D = %g\nbf16 D = %g\n", wide, from_bf16(narrow));
	epg_free(context, a_there), epg_free(context, b_there), epg_free(context, d_there);
	epg_context_destroy(context);
	return 0;
}
