#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Makes configure in a fresh checkout. Needs autoconf, automake, libtool and pkg-config.
cd "$(dirname "$0")" && exec autoreconf --force --install --warnings=all
