#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Homes on a drive that compresses inside: blocks go there as they are, are overwritten there, and leave it trimmed.
# vm: mode=functional cpus=1 memory=1G timeout=600 build=orders,daemon
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
. "$TERRACE_TREE/tests/vm/daemon.bash"
need zram

PATH=$TERRACE_TREE/build:$PATH in_ram orders
CSD=/dev/ram/csd
REGION=$((4 << 20))

# order STATUS REGION MODE [OPTION...]: it ends so; ok: all is done
order() {
	local want=${1/ok/done}
	shift
	from_ram orders /dev/terrace/vol move "$@" > /dev/shm/result || [ "$want" != "done" ] || die "order $*: $(cat /dev/shm/result)"
	grep -q "^status=$want " /dev/shm/result || die "order $* ended otherwise than $want: $(cat /dev/shm/result)"
}
result() { sed -nE "s/.*\b$1=([0-9]+).*/\1/p" /dev/shm/result; }
# until WHAT COMMAND...: a condition that comes in a while
until_() {
	local what=$1 end=$((SECONDS + 120))
	shift
	while [ $SECONDS -lt $end ]; do
		! "$@" || return 0
		vol_message commit
		sleep 0.1
	done
	die "$what does not come: $(vol_status), $(csd_stored csd) bytes stored"
}
stored_is() { [ "$(csd_stored csd)" -eq "$1" ]; }
fast_below() {
	local used
	used=$(vol_tier 0 used)
	[ "${used%/*}" -lt $((${used#*/} * $1 / 1000)) ]
}
stored_below() { [ "$(csd_stored csd)" -lt "$1" ]; }
same() { cmp -n "$3" <(dd if="$VOL" bs=1M iflag=direct skip="$2" count=$((($3 + 1048575) >> 20)) status=none) "$1" || die "data at $2 MiB differ"; }
put() { dd if="$1" of="$VOL" bs=1M seek="$2" oflag=direct conv=fsync status=none; }

mkram fast 32
mkzram csd 192
VOL_DRIVES=(/dev/ram/fast "$CSD")
vol_format --tier "optane:slots:atomic=${VOL_DRIVES[0]}" --tier "csd:atomic=${VOL_DRIVES[1]}"
vol_up commit_ms=100
check_eq "class and kind of the tier" "$(vol_status | grep -o ' 1:[a-z]*:[a-z]*')" " 1:csd:home"
sync
base=$(csd_stored csd) inside=$(csd_used csd)

# half of every page is zeros
head -c $((4 << 20)) /dev/urandom > /dev/shm/noise
perl -e 'while (read(STDIN, $b, 2048)) { print $b, "\0" x 2048 }' < /dev/shm/noise > /dev/shm/half
put /dev/shm/half 0
order ok 0 append tier_down=1
check_eq "blocks of region 0 that went home" "$(result down)" 1024
order ok 1 append tier_down=1 up=0-99
check_eq "blocks of region 1 that went home" "$(result down)" 924
check_eq "bytes stored in the drive" "$(($(csd_stored csd) - base))" $(((2048 - 100) * 4096))
grew=$(($(csd_used csd) - inside))
[ "$grew" -lt $((1948 * 4096 * 70 / 100)) ] || die "the drive did not compress: $grew bytes inside"
same /dev/shm/half 0 $((2 * REGION))

# in place, and not a new write
new=$(vol_get new) writes=$(vol_tier 1 writes)
put /dev/shm/noise 0
check_eq "new writes by overwriting at home" "$(vol_get new)" "$new"
[ "$(vol_tier 1 writes)" -gt "$writes" ] || die "the overwrite did not go home"
check_eq "bytes stored after it" "$(($(csd_stored csd) - base))" $((1948 * 4096))
same /dev/shm/noise 0 $REGION

# up again, by order: the homes are trimmed; and once more down, where they were
order ok 0 raise tier_up=0 up=0-511
check_eq "blocks raised" "$(result up)" 512
until_ "the trim of what was raised" stored_is $((base + 1436 * 4096))
same /dev/shm/noise 0 $REGION
order ok 0 append tier_down=1
check_eq "blocks down again" "$(result down)" 512
order ok 1 raise tier_up=0 up=all
order ok 1 append tier_down=1			# their homes are not trimmed yet
check_eq "blocks down at once" "$(result down)" 1024
check_eq "left out" "$(result raced)" 0
same /dev/shm/noise 0 $REGION
dd if=/dev/shm/half bs=1M skip=4 status=none > /dev/shm/second
same /dev/shm/second 4 $REGION

# a discard trims
blkdiscard -o 0 -l "$REGION" "$VOL"
until_ "the trim of what was discarded" stored_is $((base + 1024 * 4096))
check_eq "what was discarded reads as zeros" "$(dd if="$VOL" bs=1M count=4 iflag=direct status=none | tr -d '\0' | wc -c)" 0

# what a crash leaves at homes that are free is trimmed
vol_down
vol_check
before=$(csd_stored csd)
dd if=/dev/shm/noise of=$CSD bs=1M seek=150 oflag=direct conv=fsync status=none
check_eq "bytes stored by a crash, as it were" $(($(csd_stored csd) - before)) $REGION
vol_up commit_ms=100
until_ "the trim of stale homes" stored_below $((before + 64 * 4096))	# metadata are there, too
same /dev/shm/second 4 $REGION

# full inside, as the drive says: nothing more goes there
vol_message physical 1 900 1000
check_eq "physical use in sysfs" "$(cat /sys/fs/terrace/*/tier1/physical_used)/$(cat /sys/fs/terrace/*/tier1/physical_limit)" 900/1000
put /dev/shm/half 16
order no-room 4 append tier_down=1
check_eq "blocks of region 4 that went home" "$(result down)" 0
vol_message physical 1 899 1000
order ok 4 append tier_down=1
! vol_message physical 0 1 2 2> /dev/null || die "a report on slots was taken"
! vol_message physical 7 1 2 2> /dev/null || die "a report on no tier was taken"
vol_message physical 1 0 0

# more than the fast tier holds: overflow, and the janitor, bring it home
for ((at = 0; at < 64; at += 8)); do put /dev/shm/half $at; done
until_ "room on the fast tier, made by the janitor" fast_below 980
used=$(vol_tier 1 used)
[ "${used%/*}" -ge $((32 * 256)) ] || die "of 64 MiB only ${used%/*} blocks are at home"
for ((at = 0; at < 64; at += 8)); do same /dev/shm/half $at $((8 << 20)); done
vol_down
vol_check
vol_up
for ((at = 0; at < 64; at += 24)); do same /dev/shm/half $at $((8 << 20)); done

# terraced asks the drive how full it is, and tells the volume; again and again
zram=/sys/block/$(basename "$(readlink -f $CSD)")
tier=$(echo /sys/fs/terrace/*/tier1)
conf_written <<-EOF
	sense = none
EOF
# told LIMIT: some blocks are in use, and of so many
told() {
	local used
	used=$(cat "$tier/physical_used")
	[ "$(cat "$tier/physical_limit")" = "$1" ] && [ "$used" -gt 1024 ] && [ "$used" -lt 32768 ]
}
check_eq "limit before anybody has asked" "$(cat "$tier/physical_limit")" 0
echo 160M > "$zram/mem_limit"
daemon_start
until_ "the drive's own report" told 40960
echo 150M > "$zram/mem_limit"
until_ "its next report" told 38400
daemon_stop
vol_down
vol_check
pass "homes cost what the drive says, and nothing when they are empty"
