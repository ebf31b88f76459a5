#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# crash/drive-dies with all drives, the metadata's too, and all faults: dead, writes, reads and flushes that fail, five seconds; fifteen seconds of use for each.
# vm: mode=functional memory=2G timeout=3600 build=oracle,orders long
FAULTS=${FAULTS:-dead writes reads flush slow} DRIVES=${DRIVES:-meta fast next slow} IN_USE=${IN_USE:-15}
. "$TERRACE_TREE/tests/crash/drive-dies.sh"
