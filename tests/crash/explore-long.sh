#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# crash/explore with every layout, each several times over, and all states; some of them are recovered by the module as well.
# host: timeout=7200 build=kmod,drive,daemon,oracle,orders,explore long
LAYOUTS=${LAYOUTS:-shared torn sync apart home tight uncached}
ROUNDS=${ROUNDS:-4}
PER=${PER:-40}
STATES=${STATES:-0}
LIMIT=${LIMIT:-600}
LEAST=${LEAST:-10000}
SAMPLE=${SAMPLE:-50}
TABLE=1
. "$TERRACE_TREE/tests/crash/explore.sh"
