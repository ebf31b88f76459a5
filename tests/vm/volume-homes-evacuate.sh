#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A drive that says it is 90 % full inside gives homes on to shelves until it is at 85 %, loose or in packs; below that, and later, none.
# vm: mode=functional cpus=1 memory=1G timeout=300 build=orders
# shellcheck disable=SC2034,SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/orders.bash"

REGIONS=6
ALL=$((REGIONS * 1024))

physical() { cat /sys/fs/terrace/*/tier1/physical_used; }
used() { local all; all=$(vol_tier "$1" used); echo "${all%/*}"; }
same() { cmp -n $((REGIONS << 22)) /dev/shm/data "$VOL" || die "$1: data differ"; }
# stays WHAT: for two seconds, in which much else is committed, no home moves
stays() {
	local moved at
	moved=$(vol_get moved) at=$(physical)
	for _ in 1 2 3 4 5 6 7 8; do
		vol_message commit
		sleep 0.25
	done
	check_eq "blocks that moved $1" "$(vol_get moved)" "$moved"
	check_eq "physical use $1" "$(physical)" "$at"
	check_eq "homes in use $1" "$(used 1)" "$homes"
}
# left WHAT LEAST MOST: the drive reaches 85 % by the janitor's account, so many homes have gone to shelves
left() {
	local tries=0 gone
	until [ "$(physical)" -le 850 ] && [ "$(used 1)" -lt "$homes" ]; do
		[ $((++tries)) -le 100 ] || die "$1: no home is given up: $(vol_status)"
		vol_message commit
		sleep 0.2
	done
	while [ "$(used 1)" != "${gone:-}" ]; do gone=$(used 1); vol_message commit; sleep 1; done	# what is freed is, after a while
	gone=$((homes - gone))
	{ [ $gone -ge "$2" ] && [ $gone -le "$3" ]; } || die "$1: $gone homes of $homes were given up, not $2 to $3: $(vol_status)"
	homes=$((homes - gone))
	echo "$1: $gone homes went, physical $(physical), on shelves $(used 2)"
}
packed() {
	local r sum=0 said
	for ((r = 0; r < REGIONS; r++)); do
		said=$(ask show $r)
		said=${said##*packed=}
		sum=$((sum + ${said%% *}))
	done
	echo $sum
}
# at_home [FORMAT...]: a volume whose blocks are all at home
at_home() {
	local r
	vol_format --tier "optane:slots:atomic=/dev/ram/fast" --tier "csd:atomic=/dev/ram/csd" --tier "hdd:shelves:atomic=/dev/ram/slow" "$@"
	vol_up stream_kb=0 commit_ms=100
	dd if=/dev/shm/data of="$VOL" bs=1M oflag=direct status=none
	for ((r = 0; r < REGIONS; r++)); do order $r append tier_down=1; done
	homes=$(used 1) shelves=$(used 2)
	check_eq "blocks at home" "$homes" $ALL
	check_eq "blocks in packs" "$(packed)" 0
}

mkram fast 32
mkram csd 128
mkram slow 640
VOL_DRIVES=(/dev/ram/fast /dev/ram/csd /dev/ram/slow)
# half of every page is zeros
head -c $((REGIONS << 21)) /dev/urandom > /dev/shm/noise
perl -e 'while (read(STDIN, $b, 2048)) { print $b, "\0" x 2048 }' < /dev/shm/noise > /dev/shm/data

at_home
vol_message physical 1 899 1000
stays "at 899 of 1000"
vol_message physical 1 950 1000
left "950 of 1000" $((ALL * 100 / 950)) $((ALL / 2))
[ "$(used 2)" -ge $((shelves + ALL - homes)) ] || die "$(used 2) blocks on shelves, $shelves before"
stays "once there is room inside"
same "after homes were given up"
vol_down
vol_check
vol_up stream_kb=0
check_eq "homes in use after reopening" "$(used 1)" "$homes"
same "after reopening"
vol_down
pass "homes go to shelves from 90 % on"

# where there is more volume than drives they go into packs
at_home --overcommit 256M
vol_message physical 1 899 1000
stays "at 899 of 1000, over-committed"
vol_message physical 1 900 1000
left "900 of 1000, over-committed" $((ALL * 50 / 900)) $((ALL / 2))
check_eq "blocks in packs" "$(packed)" $((ALL - homes))
same "after homes were packed"
vol_down
vol_check
pass "where the volume is over-committed they are packed"
