#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# crash/sqlite with sixty power cuts.
# vm: mode=functional memory=2G timeout=3600 long
CUTS=${CUTS:-60}
. "$TERRACE_TREE/tests/crash/sqlite.sh"
