#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The 1st, 2nd, 3rd ... write and flush of each drive fails, in turn, of each operation, until the operation is through: the volume opens again, sound, with all that was promised.
# vm: mode=functional memory=3G timeout=5400 build=oracle,orders long
#
# One command fails each time, and no other; then the volume is stopped, whatever it
# has come to, checked, opened and read, and must take writes. LIMIT= seconds are
# shared by the operations (what was not reached is said, and the next run goes on
# there; with COMPLETE=1 it is a failure), OPS= names some of them, LAYOUTS= some of
# those in operations.bash.
# shellcheck disable=SC2119,SC2154
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

SEED=${SEED:-1}
OPS=${OPS:-checkpoint resize grow append merge raise drop clean janitor discard wrap recovery stop start create add evacuate replace leave repair}
LAYOUTS=${LAYOUTS:-shared sync apart torn}
. "$TERRACE_TREE/tests/crash/operations.bash"

down=0

# One failed write takes a copy of the metadata out for good: it is made anew, or what comes would meet the other one alone.
whole() {
	local ctl=$TERRACE_TREE/build/terracectl
	"$ctl" check "${VOL_DRIVES[@]}" > /dev/shm/checked 2>&1 || die "$1: $(cat /dev/shm/checked)"
	grep -q 'its metadata is stale' /dev/shm/checked || return 0
	"$ctl" repair --in-place "${VOL_DRIVES[@]}" > /dev/shm/repaired 2>&1 || { cat /dev/shm/repaired; die "$1: the stale copy is not made anew (seed $SEED)"; }
	grep -q 'nothing lost' /dev/shm/repaired || { cat /dev/shm/repaired; die "$1: the repair of a stale copy lost something (seed $SEED)"; }
}

# fail OP DRIVE KIND N: fails when the operation did not come that far
fail() {
	local op=$1 drive=$2 kind=$3 n=$4 what="$layout, $1: $3 $4 of $2 fails" before
	down=0 crashed=0
	"before_$op"
	before=$(drive_get "$drive" errors)
	drive "$drive" error add "$kind" 0 0 nth="$n" count=1
	"do_$op" 2> /dev/null || true
	drive "$drive" error clear
	if [ "$(drive_get "$drive" errors)" = "$before" ] && [ "$down" = 0 ]; then
		[ $crashed = 0 ] || seen "$what, which was not reached"
		return 1
	fi
	unmap
	down=0
	opens "$op" "$what" whole
	[ "$VOL" != /dev/mapper/vol ] || check_eq "$what: mode after it was opened again" "$(vol_get mode)" write
	seen "$what"
	sized "$what"
	[ "$(drive_get "$drive" errors)" != "$before" ] || return 1
}

# each OP UNTIL: every write and flush of every drive
each() {
	local drive kind said
	for drive in "${DRIVES[@]}" $(beside "$1"); do
		said="$layout $1 $drive:"
		for kind in write flush; do row "$1" "$2" "$drive" $kind; done
		echo "$said"
	done
}

in_turn fail
judge "failed writes and flushes" faults
