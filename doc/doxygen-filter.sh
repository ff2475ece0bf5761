#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Shows epigemm.h to Doxygen: a comment that begins a line documents what follows, one behind code what stands before it.
# Section lines and the head comment of the file are told apart; line numbers stay.
exec sed -e '1s|^/\* .*|/** @file|' -e '/^\/\* ----/b' -e '1!s|^/\* |/** |' \
	-e '/^[[:space:]]*[^[:space:]*/]/s|/\* |/**< |' "$1"
