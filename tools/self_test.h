/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SELF_TEST_H
#define SELF_TEST_H

/* Tests a backend and prints what it found: 0 all is right, 1 something is wrong, -1 the backend is not here. */
int self_test(const char *backend);

#endif
