#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The power goes before and after the 1st, 2nd, 3rd ... flush and FUA write of each drive, in turn, of each operation: all that was promised is there.
# vm: mode=functional memory=3G timeout=5400 build=oracle,orders long
#
# For each operation, drive, kind of barrier and side n is counted up until the
# operation ends with the power on. After each cut: terracectl check --full, a
# start, the oracle reads what was touched. LIMIT= seconds are shared by the
# operations (what was not reached is said, and the next run goes on there; with
# COMPLETE=1 it is a failure), OPS= names some of them, LAYOUTS= some of those in
# operations.bash.
# shellcheck disable=SC2119,SC2154
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

SEED=${SEED:-1}
OPS=${OPS:-append merge raise drop clean janitor discard checkpoint wrap recovery resize grow stop start create add evacuate replace leave repair}
LAYOUTS=${LAYOUTS:-shared sync apart torn}
. "$TERRACE_TREE/tests/crash/operations.bash"

down=0

# cut OP DRIVE KIND N before|after: fails when the operation ended with the power on
cut() {
	local op=$1 drive=$2 what="$layout, $1: $2 $3 $4 $5" reached=0 side=$5
	down=0 crashed=0
	"before_$op"
	# shellcheck disable=SC2086 # a word or none
	drive "$drive" arm "$3" "$4" ${side#before}
	"do_$op" 2> /dev/null || true
	[ "$(drive_get "$drive" state)" != off ] || reached=1
	if [ $reached = 1 ] || [ "$down" = 1 ]; then
		dmsetup info vol > /dev/null 2>&1 || down=1
		off
		on
		opens "$op" "$what"
		seen "$what"
		sized "$what"
	else
		drive "$drive" disarm
		[ $crashed = 0 ] || seen "$what, which was not reached"
	fi
	[ $reached = 1 ]
}

# each OP UNTIL: every barrier of every drive
each() {
	local drive kind side said
	for drive in "${DRIVES[@]}" $(beside "$1"); do
		said="$layout $1 $drive:"
		for kind in fua flush; do
			for side in before after; do row "$1" "$2" "$drive" $kind $side; done
		done
		echo "$said"
	done
}

in_turn cut
judge "cuts at flushes and FUA writes" cuts
