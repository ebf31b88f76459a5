#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What other CPUs have taken of the slots, for writes to come, is not missing at the end of a volume that is written whole.
# vm: mode=functional cpus=8 memory=2G timeout=300
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

vol_ram 128 128
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "nvme:slots:atomic=${VOL_DRIVES[1]}"
vol_up
cpus=$(nproc)
[ "$cpus" -ge 2 ] || die "one CPU"
# avoided, then not: each CPU has some of both tiers
for avoid in 2 1; do
	vol_message set avoid_tiers=$avoid
	for ((cpu = 0; cpu < cpus; cpu++)); do
		taskset -c $cpu dd if=/dev/urandom of="$VOL" bs=4k seek=$((avoid * 64 + cpu)) count=1 oflag=direct status=none
	done
done
vol_message set avoid_tiers=0
for t in 0 1; do
	used=$(vol_tier $t used)
	[ "${used%/*}" -ge "$cpus" ] || die "tier $t has none of the blocks: $(vol_status)"
done
size=$(($(sectors "$VOL") / 2048))
taskset -c 0 dd if=/dev/zero of="$VOL" bs=256k count=$((size * 4)) oflag=direct status=none || die "refused within the virtual size: $(vol_status)"
vol_status
taskset -c 1 dd if=/dev/urandom of="$VOL" bs=256k count=$((size * 4)) oflag=direct status=none || die "refused, overwriting: $(vol_status)"
vol_down
vol_check
pass "$size MiB from one CPU of $cpus"
