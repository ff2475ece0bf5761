/* SPDX-License-Identifier: Apache-2.0
 *
 * What measuring learnt, kept in a file: a context that has loaded it plans without measuring, and says so in the plan's explanation.
 *
 * Prints:
 *     wisdom for this problem: yes
 */
#include <string.h>

#include "example.h"

static epg_plan *measured(epg_context *context)
{
	epg_matmul_desc desc;
	epg_plan_options options;
	epg_plan *plan;
	CHECK(epg_matmul_desc_parse("f32 m=96 n=64 k=128 epilog=gelu_bias", &desc, sizeof desc));
	CHECK(epg_plan_options_init(&options, sizeof options));
	options.rigor = EPG_MEASURE;
	CHECK(epg_plan_create(context, &desc, &options, &plan));
	return plan;
}

int main(void)
{
	static char text[16384];
	char path[] = "example.wisdom";
	epg_context *first = example_context();
	epg_plan_destroy(measured(first));
	CHECK(epg_wisdom_save(first, path));
	epg_context_destroy(first);

	epg_context *second = example_context(); /* another process, as a rule */
	CHECK(epg_wisdom_load(second, path, NULL, NULL));
	epg_plan *plan = measured(second);
	CHECK(epg_plan_explain(plan, text, sizeof text, NULL));
	printf("wisdom for this problem: %s\n", strstr(text, "wisdom") ? "yes" : "no");
	remove(path);
	epg_plan_destroy(plan);
	epg_context_destroy(second);
	return 0;
}
