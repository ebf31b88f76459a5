#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# fuzz/control for ten minutes.
# vm: mode=functional memory=2G timeout=1800 build=oracle,anyinput long
SECONDS_EACH=${SECONDS_EACH:-600}
. "$TERRACE_TREE/tests/fuzz/control.sh"
