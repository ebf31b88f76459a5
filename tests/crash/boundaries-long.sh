#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The power goes before and after the 1st, 2nd, 3rd ... flush and FUA write of each drive, in turn, of each operation: all that was promised is there.
# vm: mode=functional memory=3G timeout=5400 build=oracle,orders long
#
# For each operation, drive, kind of barrier and side n is counted up until the
# operation ends with the power on. After each cut: terracectl check --full, a
# start, the oracle reads what was touched. LIMIT= seconds are shared by the
# operations (what was not reached is said), OPS= names some of them, LAYOUTS=
# some of those in operations.bash.
# shellcheck disable=SC2119,SC2154
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"

SEED=${SEED:-1}
LIMIT=${LIMIT:-2400}
LEAST=${LEAST:-$((LIMIT / 20))}	# fewer is a failure
OPS=${OPS:-append merge raise drop clean janitor discard checkpoint wrap recovery resize grow}
LAYOUTS=${LAYOUTS:-shared sync apart torn}
. "$TERRACE_TREE/tests/crash/operations.bash"

declare -A COUNT
cuts=0 down=0

# cut OP DRIVE KIND N [after]: fails when the operation ended with the power on
cut() {
	local op=$1 drive=$2 what="$layout, $1: $2 $3 $4 ${5:-before}" reached=0
	down=0 crashed=0
	"before_$op"
	# shellcheck disable=SC2086 # a word or none
	drive "$drive" arm "$3" "$4" ${5:-}
	"do_$op" 2> /dev/null || true
	[ "$(drive_get "$drive" state)" != off ] || reached=1
	if [ $reached = 1 ] || [ "$down" = 1 ]; then
		dmsetup info vol > /dev/null 2>&1 || down=1
		off
		on
		(vol_check) > /dev/shm/checked || { cat /dev/shm/checked; oracle_keep 1 || true; die "$what: the check finds problems (seed $SEED)"; }
		vol_up "${UP[@]}" || die "$what: the volume does not come up (seed $SEED)"
		seen "$what"
		sized "$what"
		cuts=$((cuts + 1))
		COUNT[$op]=$((${COUNT[$op]:-0} + 1))
	else
		drive "$drive" disarm
		[ $crashed = 0 ] || seen "$what, which was not reached"
	fi
	[ $reached = 1 ]
}

# each OP UNTIL: every barrier of every drive
each() {
	local op=$1 until=$2 drive kind side n row
	for drive in "${DRIVES[@]}"; do
		row="$layout $op $drive:"
		for kind in fua flush; do
			for side in "" after; do
				for ((n = 1; SECONDS < until; n++)); do
					cut "$op" "$drive" "$kind" $n $side || break
				done
				row+=" $kind ${side:-before} $((n - 1))"
				[ $SECONDS -lt "$until" ] || row+=" (not all)"
			done
		done
		echo "$row"
	done
}

in_turn
[ "$cuts" -ge "$LEAST" ] || die "only $cuts cuts in $LIMIT seconds"
for op in $OPS; do [ "${COUNT[$op]:-0}" -gt 0 ] || die "$op: not one cut"; done
pass "$cuts cuts at flushes and FUA writes"
