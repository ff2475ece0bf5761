/* SPDX-License-Identifier: Apache-2.0
 *
 * A layer in bf16: epg_convert brings f32 into it and back. Products are added up in f32, and D is rounded once.
 *
 * Prints:
 *     D = 3.00 7.00, 1/3 in bf16 is 0.333984
 */
#include "example.h"

/* count numbers of f32, where the context computes, in another type there; the caller frees them. */
static void *converted(epg_context *context, int64_t count, int32_t from_type, const void *from, int32_t to_type)
{
	epg_matrix layout = {.type = from_type, .ld = EPG_TIGHT, .batch_stride = EPG_TIGHT}, to_layout = layout;
	void *to = example_put(context, NULL, (size_t)count * 4);
	to_layout.type = to_type;
	CHECK(epg_convert(context, count, 1, 1, &layout, from, &to_layout, to, NULL, NULL, NULL));
	return to;
}

int main(void)
{
	static const float a[] = {1, 3, 2, 4}, b[] = {1, 1}, third[] = {1 / 3.0f};
	float d[2], rounded;
	epg_context *context = example_context();
	void *a32 = example_put(context, a, sizeof a), *b32 = example_put(context, b, sizeof b), *third32 = example_put(context, third, sizeof third);
	void *a16 = converted(context, 4, EPG_F32, a32, EPG_BF16), *b16 = converted(context, 2, EPG_F32, b32, EPG_BF16), *d16 = example_put(context, NULL, 4);
	epg_matmul_desc desc;
	CHECK(epg_matmul_desc_init(&desc, sizeof desc, 2, 1, 2, EPG_BF16, EPG_COL));
	CHECK(epg_matmul(context, &desc, &EPG_OPERANDS(.a = a16, .b = b16, .d = d16), NULL));
	void *d32 = converted(context, 2, EPG_BF16, d16, EPG_F32), *third16 = converted(context, 1, EPG_F32, third32, EPG_BF16);
	void *back = converted(context, 1, EPG_BF16, third16, EPG_F32);
	example_get(context, d, d32, sizeof d);
	example_get(context, &rounded, back, sizeof rounded);
	printf("D = %.2f %.2f, 1/3 in bf16 is %.6f\n", d[0], d[1], rounded);
	void *all[] = {a32, b32, third32, a16, b16, d16, d32, third16, back};
	for (int i = 0; i < 9; i++)
		epg_free(context, all[i]);
	epg_context_destroy(context);
	return 0;
}
