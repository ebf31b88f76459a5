#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# host: timeout=28800 long build=daemon
# fuzz/offline for half an hour of each kind of volume, a million inputs at least.
FUZZ_SECONDS=${FUZZ_SECONDS:-1800} LEAST=${LEAST:-1000000}
. "$TERRACE_TREE/tests/fuzz/offline.sh"
