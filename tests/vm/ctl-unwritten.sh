#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# terracectl add, replace and leave end when the volume that they stop cannot write down what it has acknowledged: that is still there, and a flush fails.
# vm: mode=functional memory=1G cpus=1 timeout=180
# shellcheck disable=SC2119,SC2120
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/ctl.bash"

dd if=/dev/urandom of=/dev/shm/data bs=1M count=1 status=none
put() { dd if=/dev/shm/data of="$VOL" bs=1M oflag=direct conv=notrunc"${1:-}" status=none; }
klog_allow 'device-mapper: '

for call in "add vol --tier hdd=/dev/mapper/spare" "replace --to /dev/mapper/spare vol 0" "leave --to /dev/mapper/spare vol"; do
	vol_models 1 fast:64 slow:320 spare:256
	VOL_DRIVES=(/dev/mapper/fast /dev/mapper/slow)
	vol_format --size 64M --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}"
	vol_up commit_ms=60000
	read -r at len <<< "$(vol_layout fast journal)"
	put
	drive fast error add write "$at" "$len" nth=1 count=1
	# shellcheck disable=SC2086 # words
	refuses 1 "what was last written to '.*' cannot be written to its devices: it is not stopped" $call --yes
	cmp -n 1048576 /dev/shm/data "$VOL" || die "$call: what was acknowledged is gone"
	expect_fail 'Input/output error|Read-only' put ,fsync
	check_eq "$call: mappings of the volume" "$(dmsetup ls | grep -c ^vol)" 1
	check_eq "$call: table" "$(dmsetup table vol | cut -d' ' -f3,5)" "terrace 2"
	dmr vol
	for d in fast slow spare; do rmdrive $d; done
done
pass "add, replace, leave"
