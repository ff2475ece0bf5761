/* SPDX-License-Identifier: Apache-2.0
 *
 * Integers, on the CPU: s8 times s8 adds up exactly in s32.
 *
 * Prints:
 *     D = 16384 -16256
 */
#include "example.h"

int main(void)
{
	static const int8_t a[] = {-128, 127}, b[] = {-128};
	int32_t d[2];
	epg_context *context;
	CHECK(epg_context_create(NULL, &context));
	epg_matmul_desc desc;
	CHECK(epg_matmul_desc_init(&desc, sizeof desc, 2, 1, 1, EPG_S8, EPG_COL));
	desc.c.type = desc.d.type = EPG_S32;
	CHECK(epg_matmul(context, &desc, &EPG_OPERANDS(.a = a, .b = b, .d = d), NULL));
	printf("D = %d %d\n", d[0], d[1]);
	epg_context_destroy(context);
	return 0;
}
