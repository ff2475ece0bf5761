/* SPDX-License-Identifier: Apache-2.0
 *
 * The backward half of a GELU: GELU_AUX keeps z, DGELU multiplies by gelu'(z). The lines of z are padded to eight elements:
 * epg_matmul_desc_layout tells how many bytes that makes.
 *
 * Prints:
 *     z is kept in 32 bytes
 *     gelu' of -1 0 1 is -0.083 0.500 1.083
 */
#include "example.h"

int main(void)
{
	static const float z[] = {-1, 0, 1}, one[] = {1}, ones[] = {1, 1, 1};
	float g[3];
	epg_context *context = example_context();
	void *z_there = example_put(context, z, sizeof z), *one_there = example_put(context, one, sizeof one), *ones_there = example_put(context, ones, sizeof ones);
	void *y_there = example_put(context, NULL, sizeof g), *g_there = example_put(context, NULL, sizeof g);
	epg_matmul_desc desc;
	epg_layout layout;
	CHECK(epg_matmul_desc_init(&desc, sizeof desc, 3, 1, 1, EPG_F32, EPG_COL));
	desc.epilog = EPG_EPILOG_GELU_AUX;
	CHECK(epg_matmul_desc_layout(&desc, EPG_OPERAND_AUX, &layout));
	size_t nbytes = (size_t)layout.ld * sizeof *z;
	void *aux = example_put(context, NULL, nbytes);
	printf("z is kept in %d bytes\n", (int)nbytes);
	CHECK(epg_matmul(context, &desc, &EPG_OPERANDS(.a = z_there, .b = one_there, .d = y_there, .aux = aux), NULL));
	desc.epilog = EPG_EPILOG_DGELU;
	CHECK(epg_matmul(context, &desc, &EPG_OPERANDS(.a = ones_there, .b = one_there, .d = g_there, .aux = aux), NULL));
	example_get(context, g, g_there, sizeof g);
	printf("gelu' of -1 0 1 is %.3f %.3f %.3f\n", g[0], g[1], g[2]);
	epg_free(context, z_there), epg_free(context, one_there), epg_free(context, ones_there), epg_free(context, y_there), epg_free(context, g_there), epg_free(context, aux);
	epg_context_destroy(context);
	return 0;
}
