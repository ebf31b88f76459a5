#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# fuzz/metadata for half an hour, from another seed.
# vm: mode=functional memory=3G timeout=3600 build=oracle,orders,scribble long
LIMIT=${LIMIT:-1800}
SEED=${SEED:-2}
. "$TERRACE_TREE/tests/fuzz/metadata.sh"
