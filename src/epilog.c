/* SPDX-License-Identifier: Apache-2.0
 *
 * The sixteen epilogs by name. The names are cuBLASLt's without its prefix, in lower case. */
#include "epilog.h"

#include <string.h>

const epg_epilog_row epg_epilogs[EPG_NEPILOGS] = {
	{EPG_EPILOG_DEFAULT, "default"},
	{EPG_EPILOG_RELU, "relu"},
	{EPG_EPILOG_RELU_AUX, "relu_aux"},
	{EPG_EPILOG_BIAS, "bias"},
	{EPG_EPILOG_RELU_BIAS, "relu_bias"},
	{EPG_EPILOG_RELU_AUX_BIAS, "relu_aux_bias"},
	{EPG_EPILOG_DRELU, "drelu"},
	{EPG_EPILOG_DRELU_BGRAD, "drelu_bgrad"},
	{EPG_EPILOG_GELU, "gelu"},
	{EPG_EPILOG_GELU_AUX, "gelu_aux"},
	{EPG_EPILOG_GELU_BIAS, "gelu_bias"},
	{EPG_EPILOG_GELU_AUX_BIAS, "gelu_aux_bias"},
	{EPG_EPILOG_DGELU, "dgelu"},
	{EPG_EPILOG_DGELU_BGRAD, "dgelu_bgrad"},
	{EPG_EPILOG_BGRADA, "bgrada"},
	{EPG_EPILOG_BGRADB, "bgradb"},
};

const char *epg_epilog_name(int32_t epilog)
{
	for (int i = 0; i < EPG_NEPILOGS; i++)
		if (epg_epilogs[i].epilog == epilog)
			return epg_epilogs[i].name;
	return NULL;
}

int32_t epg_epilog_parse(const char *name, size_t length)
{
	for (int i = 0; i < EPG_NEPILOGS; i++)
		if (strlen(epg_epilogs[i].name) == length && memcmp(epg_epilogs[i].name, name, length) == 0)
			return epg_epilogs[i].epilog;
	return -1;
}
