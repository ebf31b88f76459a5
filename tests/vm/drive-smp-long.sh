#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The same as drive-smp with more data, more changes and more cuts.
# vm: mode=functional memory=2G timeout=900 build=drive-tools long
export DRIVE_SMP_MB=24 DRIVE_SMP_SECONDS=30 DRIVE_SMP_CUTS=20
# shellcheck source=tests/vm/drive-smp.sh
. "$TERRACE_TREE/tests/vm/drive-smp.sh"
