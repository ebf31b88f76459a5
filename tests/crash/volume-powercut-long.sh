#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# crash/volume-powercut for a quarter of an hour.
# vm: mode=functional memory=3G timeout=1200 build=oracle long
LIMIT=${LIMIT:-900}
. "$TERRACE_TREE/tests/crash/volume-powercut.sh"
