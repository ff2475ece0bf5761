/* SPDX-License-Identifier: Apache-2.0
 *
 * How far an output may be from the oracle's: one element of D, one of aux, one sum. Only the oracle and the desc are known here. */
#ifndef BOUND_H
#define BOUND_H

#include "oracle.h"

typedef struct {
	int exact;     /* the operands are small integers */
	int on_device; /* the product is computed by a GPU's library */
} bound_case;

/* Whether element e of D or aux, or sum s, as loaded from an output of the type, is right. *error is what was allowed beside roundings of the output.
 * The sums in w are of the D that was written (oracle_sum_d), or of A or B. */
typedef int bound_holds(const epg_matmul_desc *desc, bound_case how, const oracle_result *w, int64_t e, int32_t type, oracle_num got, double *error);
bound_holds bound_d_holds, bound_aux_holds, bound_sum_holds;

#endif
