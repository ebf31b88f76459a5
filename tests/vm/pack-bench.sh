#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The first block of a 64 KiB cluster is read 5 times cheaper than the whole, the last one no dearer; ratio >= 1.9.
# vm: mode=vtime memory=512M timeout=600 build=pack-bench
. "$TERRACE_TREE/tests/vm/lib.sh"

PATH=$TERRACE_TREE/build:$PATH in_ram pack-bench
from_ram pack-bench --check 2 || die "a claim was missed"
