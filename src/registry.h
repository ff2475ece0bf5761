/* SPDX-License-Identifier: Apache-2.0
 *
 * Which backends there are. */
#ifndef EPG_REGISTRY_H
#define EPG_REGISTRY_H

#include "backend.h"

/* The backend of that name, probed; NULL when it is not there, with the reason in why. known tells whether the name is one. */
const epg_backend *epg_registry_find(const char *name, bool *known, char *why, size_t why_nbytes);

#endif
