#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Thousands of random operations, with clean stops and power cuts between: every block holds what it may, the volume is sound.
# vm: mode=functional memory=3G timeout=720 build=oracle
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/volume-oracle.bash"

vol_drives 64 384
vol_format
oracle_life
