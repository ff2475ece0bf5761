/* SPDX-License-Identifier: Apache-2.0
 *
 * A product in e4m3 with per-tensor scales, on the CPU: numbers are divided by their scale as they are converted, and alpha puts the scales
 * back. amax is the largest number before its conversion: what the scale of the next step is made from (delayed scaling).
 *
 * Prints:
 *     largest of A: 896, its scale 2
 *     D = 896.0
 */
#include "example.h"

int main(void)
{
	static const float a[] = {896, -3}, b[] = {1, 0}, scale = 0.5f;
	float amax, d;
	epg_context *context;
	CHECK(epg_context_create(NULL, &context)); /* 8-bit products are the CPU's alone in this version */
	unsigned char a8[2], b8[2];
	epg_matrix f32 = {.type = EPG_F32, .ld = EPG_TIGHT, .batch_stride = EPG_TIGHT}, e4m3 = f32;
	e4m3.type = EPG_E4M3; /* up to 448: larger ones saturate */
	CHECK(epg_convert(context, 2, 1, 1, &f32, a, &e4m3, a8, &scale, &amax, NULL));
	CHECK(epg_convert(context, 2, 1, 1, &f32, b, &e4m3, b8, NULL, NULL, NULL));
	printf("largest of A: %g, its scale %g\n", amax / scale, 1 / scale);
	epg_matmul_desc desc;
	CHECK(epg_matmul_desc_init(&desc, sizeof desc, 1, 1, 2, EPG_E4M3, EPG_COL));
	desc.c.type = desc.d.type = EPG_F32;
	desc.alpha[0] = 1 / scale;
	CHECK(epg_matmul(context, &desc, &EPG_OPERANDS(.a = a8, .b = b8, .d = &d), NULL));
	printf("D = %.1f\n", d);
	epg_context_destroy(context);
	return 0;
}
