/* SPDX-License-Identifier: Apache-2.0
 *
 * Version and status words. */
#include "epigemm.h"

static const char *const status_words[] = {
	[EPG_SUCCESS] = "success",
	[EPG_INVALID] = "invalid",
	[EPG_UNSUPPORTED] = "unsupported",
	[EPG_NO_MEMORY] = "no memory",
	[EPG_NO_BACKEND] = "no backend",
	[EPG_DEVICE_ERROR] = "device error",
	[EPG_INTERNAL] = "internal",
};

const char *epg_version(void)
{
	return EPG_VERSION;
}

const char *epg_status_string(epg_status status)
{
	unsigned i = (unsigned)status;
	return i < sizeof status_words / sizeof *status_words ? status_words[i] : "unknown status";
}
