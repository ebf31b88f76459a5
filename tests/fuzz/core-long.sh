#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# host: timeout=5400 long
# fuzz/core for five minutes of each decoder, ten million inputs at least.
FUZZ_SECONDS=${FUZZ_SECONDS:-300} LEAST=${LEAST:-10000000}
. "$TERRACE_TREE/tests/fuzz/core.sh"
