#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# crash/drive-dies with all faults, read errors and five seconds as well, and fifteen seconds of use for each.
# vm: mode=functional memory=2G timeout=2400 build=oracle,orders long
FAULTS="dead writes reads slow" IN_USE=15
. "$TERRACE_TREE/tests/crash/drive-dies.sh"
