/* SPDX-License-Identifier: Apache-2.0
 *
 * Bad input gets a status and a sentence that names the parameter, its value and the bound; outputs stay as they were.
 *
 * Prints:
 *     invalid: a.ld is 1, but must be at least 2, its line as stored, or 0 to broadcast one line [f32 m=2 n=2 k=2 lda=1]
 *     invalid: d is NULL, but this execution needs it [f32 m=2 n=2 k=2]
 *     D is untouched
 */
#include "example.h"

int main(void)
{
	epg_context *context = example_context();
	epg_matmul_desc desc;
	epg_plan *plan = NULL;
	float x[4] = {1, 2, 3, 4};
	CHECK(epg_matmul_desc_init(&desc, sizeof desc, 2, 2, 2, EPG_F32, EPG_COL));
	desc.a.ld = 1;
	epg_status status = epg_plan_create(context, &desc, NULL, &plan);
	printf("%s: %s\n", epg_status_string(status), epg_last_error());
	desc.a.ld = EPG_TIGHT;
	CHECK(epg_plan_create(context, &desc, NULL, &plan));
	status = epg_execute(plan, &EPG_OPERANDS(.a = x, .b = x), NULL);
	printf("%s: %s\n", epg_status_string(status), epg_last_error());
	printf("D is %s\n", x[0] == 1 && x[3] == 4 ? "untouched" : "touched");
	epg_plan_destroy(plan);
	epg_context_destroy(context);
	return 0;
}
