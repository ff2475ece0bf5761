/* SPDX-License-Identifier: Apache-2.0
 *
 * EPG_MEASURE times the candidates of a plan; a pin names the one that was taken, and makes it again without measuring; wisdom keeps what
 * was learnt in a file for the next process.
 *
 * Prints:
 *     the pinned plan is the measured one
 *     wisdom: 1 accepted, 0 rejected
 */
#include <string.h>

#include "example.h"

static void name_of(const epg_plan *plan, char pin[256])
{
	epg_plan_info info;
	CHECK(epg_plan_get_info(plan, &info, sizeof info));
	CHECK(epg_plan_pin(plan, info.candidate, pin, 256, NULL));
}

int main(void)
{
	char measured_pin[256], pinned_pin[256], path[] = "autotune.wisdom";
	int64_t accepted, rejected;
	epg_context *context = example_context();
	epg_matmul_desc desc;
	epg_plan_options options;
	epg_plan *measured, *pinned;
	CHECK(epg_matmul_desc_parse("f32 m=256 n=64 k=128 epilog=relu_bias", &desc, sizeof desc));
	CHECK(epg_plan_options_init(&options, sizeof options));
	options.rigor = EPG_MEASURE;
	CHECK(epg_plan_create(context, &desc, &options, &measured));
	name_of(measured, measured_pin);

	options.rigor = EPG_ESTIMATE;
	options.pin = measured_pin;
	CHECK(epg_plan_create(context, &desc, &options, &pinned));
	name_of(pinned, pinned_pin);
	printf("the pinned plan is %s\n", strcmp(measured_pin, pinned_pin) == 0 ? "the measured one" : pinned_pin);

	CHECK(epg_wisdom_save(context, path));
	CHECK(epg_wisdom_load(context, path, &accepted, &rejected));
	printf("wisdom: %d accepted, %d rejected\n", (int)accepted, (int)rejected);
	remove(path);
	epg_plan_destroy(measured);
	epg_plan_destroy(pinned);
	epg_context_destroy(context);
	return 0;
}
