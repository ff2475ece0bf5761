/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of epilogs: names, and what each needs. An epilog's bits say everything else (see epigemm.h). */
#ifndef EPG_EPILOG_H
#define EPG_EPILOG_H

#include <stdbool.h>

#include "epigemm.h"

enum { EPG_NEPILOGS = 16 };

typedef struct epg_epilog_row {
	int32_t epilog;
	const char *name;
} epg_epilog_row;

extern const epg_epilog_row epg_epilogs[EPG_NEPILOGS];

/* Number of the epilog whose name is the first length bytes of name, or -1. */
int32_t epg_epilog_parse(const char *name, size_t length);

static inline int32_t epg_epilog_act(int32_t epilog) { return epilog & EPG_ACT_MASK; }
static inline bool epg_epilog_aux_in(int32_t epilog) { return (epilog & EPG_GRAD) != 0; }
static inline bool epg_epilog_aux_out(int32_t epilog) { return (epilog & EPG_AUX) && !(epilog & EPG_GRAD); }
static inline bool epg_epilog_bgrad(int32_t epilog) { return (epilog & (EPG_BGRAD | EPG_BGRADA | EPG_BGRADB)) != 0; }

/* The epilog of the transposed problem: BGRADA and BGRADB change places. */
static inline int32_t epg_epilog_swap(int32_t epilog)
{
	int32_t ab = epilog & (EPG_BGRADA | EPG_BGRADB);
	return ab == EPG_BGRADA || ab == EPG_BGRADB ? epilog ^ (EPG_BGRADA | EPG_BGRADB) : epilog;
}

#endif
