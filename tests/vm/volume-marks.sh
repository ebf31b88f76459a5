#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A policy that marks hundreds of dead tables is not held up by each mark.
# vm: mode=functional cpus=2 memory=1G timeout=300 build=orders
# debug-kernel: not, it is ten times slower, and this is about time
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

PATH=$TERRACE_TREE/build:$PATH in_ram orders
vol_ram 64 256
vol_format
vol_up

# each of 512 changes waiting for all readers of the marks would take at least a tick of 4 ms: with two CPUs that is 2 s
ms=$(from_ram orders /dev/terrace/vol marks 1024 256)
[ "$ms" -lt 1000 ] || die "256 marks, set and taken back, took $ms ms"
pass "256 marks, set and taken back: $ms ms"
vol_down
vol_check
