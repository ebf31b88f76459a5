#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A full volume says ENOSPC, loses nothing, and goes on when there is room.
# vm: mode=functional memory=3G timeout=600 build=oracle,orders
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

PATH=$TERRACE_TREE/build:$PATH in_ram orders
vol_ram 64 256
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "hdd:shelves:atomic=${VOL_DRIVES[1]}" --overcommit 1G
vol_up stream_kb=0
[ "$(sectors "$VOL")" -gt $((1024 * 2048)) ] || die "not overcommitted"
oracle_new 4

# more than fits: some writes must be refused, none may be lost
oracle_run --seed 4 --ops 3000 --depth 4 --hot 0 --overlap 0 --nospc-ok --weights write=50,read=5,flush=2 | tee /dev/shm/said
grep -q 'nospc=' /dev/shm/said || die "3000 writes of a volume that cannot hold them, and never ENOSPC"
check_eq "mode when full" "$(vol_get mode)" write
oracle_clean
pass "ENOSPC, and nothing lost"

# what is there can be overwritten and read; a reopened full volume is still sound
vol_down
vol_check
start=$(terracectl dump --json super "${VOL_DRIVES[@]}" |
	/usr/bin/python3 -ISc 'import json, sys; print(*[i["data_start"] for i in json.load(sys.stdin)["items"] if i["item"] == "label" and i["tier"] == 1])')
vol_up stream_kb=0
oracle_clean
# a scrub verifies the owner tables of the shelves that are full
said=$(terracectl scrub vol) || die "scrub: $said"
[[ $said =~ ", 0 blocks cannot be read; "[1-9][0-9]*" tables of shelves, 0 bad" ]] || die "scrub: $said"
# put FILE SHELF: as the sixth block of its table
put() { dd if="$1" of="${VOL_DRIVES[1]}" bs=4k seek=$((start + ($2 + 1) * 16384 - 33 + 5)) oflag=direct conv=notrunc status=none; }
for k in 0 1 2; do
	dd if="${VOL_DRIVES[1]}" of=/dev/shm/table$k bs=4k skip=$((start + (k + 1) * 16384 - 33 + 5)) count=1 iflag=direct status=none
	(head -c 2000 /dev/shm/table$k; echo damaged; tail -c +2009 /dev/shm/table$k) > /dev/shm/damaged
	put /dev/shm/damaged $k
done
klog_expect 'owner table of shelf \d+ of tier 1: 1 blocks are bad, the first is block \d+'
expect_fail "shelf [0-2] of tier 1: its owner table is damaged" terracectl scrub vol
for k in 0 1 2; do put /dev/shm/table$k $k; done
pass "owner tables of shelves scrubbed"
# discards make room again
oracle_run --seed 5 --ops 20 --max-discard-kb 131072 --weights discard=1
vol_message checkpoint
for ((i = 0; ; i++)); do
	status=0
	oracle_run --seed 6 --ops 40 --depth 2 --weights write=5,read=5,flush=1 --nospc-ok > /dev/shm/said || status=$?
	check_eq "status of writing after discards" "$status" 0
	grep -q nospc= /dev/shm/said || break
	[ "$i" -lt 20 ] || die "no room 20 rounds after discards"
	sleep 0.5
done
oracle_clean
vol_down
vol_check
pass "discards made room"

# ---- orders, when the shelves are full: two of them are left for packs, and 160 MiB do not fit ----

REGION=4194304 REGIONS=40
rmram fast
rmram slow
vol_ram 208 416
vol_format
vol_up stream_kb=0 janitor_high=1000 janitor_low=990 trim_ms=1
/usr/bin/python3 -ISc 'import sys; [sys.stdout.buffer.write(b"%08d" % block * 512) for block in range(int(sys.argv[1]))]' $((REGIONS * REGION / 4096)) > /dev/shm/data
dd if=/dev/shm/data of="$VOL" bs=1M oflag=direct status=none
state() { from_ram orders /dev/terrace/vol show "$1"; }
order() { from_ram orders /dev/terrace/vol move "$@" > /dev/shm/order; }
same() { cmp -i $(($1 * REGION)) -n $((${2:-1} * REGION)) /dev/shm/data "$VOL" || die "region $1: other data"; }
expect_fail "failed=[1-9]" from_ram orders /dev/terrace/vol sweep 0 $REGIONS append tier_down=1 codec=none
refused=() packed=()
for ((k = 0; k < REGIONS; k++)); do
	case $(state "$k") in
	"present=1024 fast=1024 packed=0 packs=0")	refused+=("$k") ;;
	"present=0 fast=0 packed=1024 packs=1")	packed+=("$k") ;;
	*)	die "region $k is neither where it was nor packed: $(state "$k")" ;;
	esac
done
[ ${#packed[@]} -ge 16 ] || die "only ${#packed[@]} regions were packed"
for mode in append merge; do
	! order "${refused[0]}" $mode tier_down=1 codec=none || die "a full tier took a region"
	grep -q "^status=no-room error=ENOSPC down=0 " /dev/shm/order || die "refused otherwise: $(cat /dev/shm/order)"
	check_eq "a region that was refused" "$(state "${refused[0]}")" "present=1024 fast=1024 packed=0 packs=0"
done
same 0 $REGIONS
for k in "${packed[@]:1}"; do blkdiscard -o $((k * REGION)) -l $REGION "$VOL"; done
vol_message commit
for ((i = 0; ; i++)); do
	! order "${refused[0]}" append tier_down=1 codec=none || break
	grep -q "^status=no-room error=ENOSPC " /dev/shm/order || die "refused otherwise: $(cat /dev/shm/order)"
	[ "$i" -lt 100 ] || die "no room long after discards: $(vol_status)"
	sleep 0.2
done
check_eq "a region that went down once there was room" "$(state "${refused[0]}")" "present=0 fast=0 packed=1024 packs=1"
for k in "${packed[0]}" "${refused[@]}"; do same "$k"; done
vol_down
vol_check
pass "${#refused[@]} of $REGIONS orders were refused, and are taken when there is room"
