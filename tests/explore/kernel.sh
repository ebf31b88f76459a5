#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The module recovers what build/explore --save left in $STATES (one folder for each
# layout, in it one for each state: DRIVE.img and ledger). What it finds must be what a
# power cut may leave. And it must be able to go on: a free map that is wrong after
# replay, a page or a place that is taken twice, shows only in what is written next. So
# TURNS= times there are writes, discards, orders and checkpoints, a power cut, the
# offline check, and the oracle once more; in the end a clean stop.
# Runs inside the machine.
# shellcheck disable=SC2119
. "$TERRACE_TREE/tests/vm/lib.sh"
. "$TERRACE_TREE/tests/vm/volume.bash"
PATH=$TERRACE_TREE/build:$PATH in_ram dmsetup dd orders
dmsetup() { from_ram dmsetup "$@"; }
klog_allow 'drive (fast|next|slow|meta|extra|other)'

RANDOM=${SEED:-1}
TURNS=${TURNS:-1}

bring() {
	local image name first nr
	VOL_DRIVES=()
	for image in "$state"*.img; do
		# no label yet: it is still to come
		cmp -s -n 8192 "$image" /dev/zero && continue
		name=${image##*/} name=${name%.img}
		mkdrive "$name" ram $(($(stat -c %s "$image") >> 20)) lbs=4096 group=pc seed="$RANDOM"
		while read -r first nr; do
			from_ram dd if="$image" of="/dev/mapper/$name" bs=1M skip="$first" seek="$first" count="$nr" oflag=direct status=none
		done < "${image%.img}.used"
		VOL_DRIVES+=("/dev/mapper/$name")
	done
	cp "$state/ledger" "$LEDGER"
}
up() { terracectl activate --as vol "${VOL_DRIVES[@]}" > /dev/shm/said 2>&1 || { cat /dev/shm/said; die "$state: $1: does not come up"; }; }
verified() { "$@" > /dev/shm/said || { cat /dev/shm/said; die "$state: $turn"; }; }
sound() { terracectl check --full "${VOL_DRIVES[@]}" > /dev/shm/said 2>&1 || { cat /dev/shm/said; die "$state: $turn: not sound"; }; }
writes() {
	local status=0
	oracle run --ledger "$LEDGER" --device "$VOL" --seed "$RANDOM" --depth 4 --max-kb 32 --max-discard-kb 131072 --hot 50 \
		--weights write=40,fua=4,read=20,discard=3,zero=1,flush=4,stream=1 --ops "$@" > /dev/shm/said 2>&1 || status=$?
	[ $status = 0 ] || { cat /dev/shm/said; die "$state: $turn: exit status $status"; }
}
orders_() { from_ram orders /dev/terrace/vol random 6 "$RANDOM" 4 tier_down="$last" > /dev/shm/orders 2>&1; }
# one turn: the second checkpoint uses again what the first one freed
go_on() {
	start writes 60
	orders_ || true
	wait "$JOB"
	vol_message checkpoint
	vol_message evict
	writes 30
	vol_message checkpoint
	writes 20
	drive_cut "${VOL_DRIVES[0]##*/}"
	dmr vol
	drive_revive "${VOL_DRIVES[0]##*/}"
	sound
	up "$turn"
	verified oracle_crash --touched --sample 16
}

load_drive
load_terrace
nr=0
for state in "$STATES"/*/*/; do
	bring
	turn="as the cut left it"
	up "$turn"
	last=$(vol_status | tr ' ' '\n' | sed -n 's/^\([0-9]\):.*/\1/p' | tail -1)
	verified oracle_crash --touched --sample 8
	for ((n = 1; n <= TURNS; n++)); do
		turn="turn $n after it"
		go_on
	done
	turn="stopped in the end"
	writes 20
	dmr vol
	sound
	for d in "${VOL_DRIVES[@]}"; do rmdrive "${d##*/}"; done
	nr=$((nr + 1))
done
[ $nr -gt 0 ] || die "no states in $STATES"
counted $((nr * TURNS)) cuts	# the states themselves are among those that were built
pass "$nr states recovered by the module, which then went on through $TURNS more cuts of each"
