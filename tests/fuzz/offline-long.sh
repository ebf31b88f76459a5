#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# host: timeout=14400 long build=daemon
# fuzz/offline for ten minutes of each kind of volume, a million inputs at least: an hour on 2 cores
FUZZ_SECONDS=${FUZZ_SECONDS:-600} LEAST=${LEAST:-1000000} JOBS=${JOBS:-$(nproc)}
. "$TERRACE_TREE/tests/fuzz/offline.sh"
