/* SPDX-License-Identifier: Apache-2.0
 *
 * Choosing a way by hand: a plan lists its candidates as pins; a pin in the options takes that one and no other. Here each is executed.
 *
 * Prints:
 *     every candidate computes D = 19
 */
#include "example.h"

int main(void)
{
	static const float a[] = {1, 2, 3, 4}, b[] = {1, 1, 4, 1};
	float d;
	int good = 1;
	char pin[256];
	epg_context *context = example_context();
	void *a_there = example_put(context, a, sizeof a), *b_there = example_put(context, b, sizeof b), *d_there = example_put(context, NULL, sizeof d);
	epg_matmul_desc desc;
	epg_plan_options options;
	epg_plan_info info;
	epg_plan *plan, *pinned;
	CHECK(epg_matmul_desc_parse("f32 m=1 n=1 k=4 epilog=relu", &desc, sizeof desc));
	CHECK(epg_plan_create(context, &desc, NULL, &plan));
	CHECK(epg_plan_get_info(plan, &info, sizeof info)); /* info.candidate is the one that the plan took */
	CHECK(epg_plan_options_init(&options, sizeof options));
	for (int32_t i = 0; i < info.candidates; i++) {
		CHECK(epg_plan_pin(plan, i, pin, sizeof pin, NULL));
		options.pin = pin; /* such as "cpu/split threads=2" */
		CHECK(epg_plan_create(context, &desc, &options, &pinned));
		CHECK(epg_execute(pinned, &EPG_OPERANDS(.a = a_there, .b = b_there, .d = d_there), NULL));
		example_get(context, &d, d_there, sizeof d);
		good &= d == 19;
		epg_plan_destroy(pinned);
	}
	printf("%s candidate computes D = 19\n", good ? "every" : "not every");
	epg_plan_destroy(plan);
	epg_free(context, a_there), epg_free(context, b_there), epg_free(context, d_there);
	epg_context_destroy(context);
	return !good;
}
